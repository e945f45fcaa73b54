#include "core/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "core/base/interrupt.h"

namespace stitchwork {
namespace {

thread_local bool in_a_body = false;

}  // namespace

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  const std::size_t workers = std::min<std::size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  if (workers <= 1 || in_a_body) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  // Items are begun in order, so those before one that fails have been begun and will end.
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  const auto work = [&] {
    in_a_body = true;
    for (std::size_t i = next++; i < count; i = next++) try {
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
        next = count;
      }
    in_a_body = false;
  };
  const Interruptible::Poll poll = Interruptible::current();
  std::vector<std::thread> others;
  others.reserve(workers);
  try {
    for (std::size_t t = 1; t < workers; ++t)
      others.emplace_back([&] {
        const Interruptible interruptible(poll);
        work();
      });
  } catch (const std::exception&) {  // no memory for another stack: those there are do it all
  }
  work();
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace stitchwork
