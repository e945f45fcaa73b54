#include "simulator/machine/register_pool.h"

#include <map>
#include <mutex>
#include <new>

namespace stitchwork::sim {
namespace {

constexpr std::align_val_t kAlignment{4096};
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;

struct Pool {
  std::mutex mutex;
  std::multimap<std::size_t, std::byte*> free;
  std::size_t bytes = 0;
  ~Pool() {
    for (auto& [size, p] : free) ::operator delete[](p, kAlignment);
  }
};
Pool& pool() {
  static Pool p;
  return p;
}

}  // namespace

RegisterFile acquire_registers(std::size_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  Pool& p = pool();
  {
    const std::lock_guard lock(p.mutex);
    if (const auto it = p.free.lower_bound(bytes); it != p.free.end() && it->first <= 2 * bytes) {
      RegisterFile file(it->second, {it->first});
      p.bytes -= it->first;
      p.free.erase(it);
      return file;
    }
  }
  return RegisterFile(new (kAlignment) std::byte[bytes], {bytes});
}

void RegisterFileDeleter::operator()(std::byte* memory) const {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (p.bytes + bytes > kKeptBytes) {
    ::operator delete[](memory, kAlignment);
    return;
  }
  p.free.emplace(bytes, memory);
  p.bytes += bytes;
}

}  // namespace stitchwork::sim
