#include "core/base/on_interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>

namespace stitchwork {
namespace {

/// What a signal's handler may touch: no locks, no memory of its own.
template <typename T>
class Slots {
 public:
  /// -1 where all are taken: then nothing is done on an interrupt.
  int take(T value) {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (T none{}; slots_[i].compare_exchange_strong(none, value)) return static_cast<int>(i);
    return -1;
  }
  void give_back(int slot) {
    if (slot >= 0) slots_[static_cast<std::size_t>(slot)] = T{};
  }
  template <typename F>
  void each(const F& f) const {
    for (const std::atomic<T>& slot : slots_)
      if (const T value = slot; value != T{}) f(value);
  }

 private:
  std::array<std::atomic<T>, 32> slots_{};
  static_assert(std::atomic<T>::is_always_lock_free);
};

Slots<const char*> files;
Slots<pid_t> children;

void on_interrupt(int signal) {
  children.each([](pid_t child) {
    ::kill(-child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  });
  files.each([](const char* path) { ::unlink(path); });
  constexpr std::string_view kLine = "stitchwork: interrupted\n",
                             kClear = "\r\033[K";  // of a line of progress
  ssize_t ignored = 0;
  if (::isatty(STDERR_FILENO) != 0) ignored = ::write(STDERR_FILENO, kClear.data(), kClear.size());
  ignored = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  static_cast<void>(ignored);
  ::_exit(128 + signal);
}

}  // namespace

void exit_on_interrupt() {
  struct sigaction now {};
  if (::sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;  // nohup, background jobs
  now.sa_handler = on_interrupt;
  ::sigemptyset(&now.sa_mask);
  ::sigaction(SIGINT, &now, nullptr);
}

RemovedOnInterrupt::RemovedOnInterrupt(std::string path)
    : path_(std::move(path)), slot_(files.take(path_.c_str())) {}
RemovedOnInterrupt::~RemovedOnInterrupt() { files.give_back(slot_); }

EndedOnInterrupt::EndedOnInterrupt(pid_t child) : slot_(children.take(child)) {}
EndedOnInterrupt::~EndedOnInterrupt() { children.give_back(slot_); }

}  // namespace stitchwork
