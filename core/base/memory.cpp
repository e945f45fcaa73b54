#include "core/base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// The number behind `key` in a file of "key number" lines, times 1 KiB where it says kB; -1: none.
std::int64_t entry(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    std::int64_t value = 0;
    std::string unit;
    if (!(words >> value)) return -1;
    return words >> unit && unit == "kB" ? value * 1024 : value;
  }
  return -1;
}

/// A file of one number; "max" and the huge numbers of version 1 are none.
std::int64_t number(const std::string& path) {
  std::ifstream in(path);
  std::int64_t value = 0;
  return in >> value ? value : -1;
}

/// What is left of one control group's limit; kNoLimit if it has none.
std::int64_t left_of(const std::string& limit_file, const std::string& used_file,
                     const std::string& stat_file, std::string_view file_pages) {
  const std::int64_t limit = number(limit_file), used = number(used_file);
  if (limit < 0 || used < 0) return kNoLimit;
  return std::max<std::int64_t>(0, limit - used + std::max<std::int64_t>(0, entry(stat_file, file_pages)));
}

/// Of the control groups this process is in, up to the root (version 2), and of version 1's memory group.
std::int64_t left_of_groups() {
  std::int64_t left = kNoLimit;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) continue;
    const bool unified = line.starts_with("0::"), memory = line.find(":memory:") != std::string::npos;
    if (!unified && !memory) continue;
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      const std::string folder = (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + path + "/";
      left = std::min(
          left,
          unified ? left_of(folder + "memory.max", folder + "memory.current", folder + "memory.stat", "file ")
                  : left_of(folder + "memory.limit_in_bytes", folder + "memory.usage_in_bytes",
                            folder + "memory.stat", "total_cache "));
      if (path.find('/') == std::string::npos) break;
    }
  }
  return left;
}

/// Of this process's own address space and data.
std::int64_t left_of_limits() {
  std::int64_t left = kNoLimit;
  const auto consider = [&](auto resource, std::string_view used_key) {
    rlimit limit{};
    const std::int64_t used = entry("/proc/self/status", used_key);
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || used < 0) return;
    left = std::min(left, std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - used));
  };
  consider(RLIMIT_AS, "VmSize:");
  consider(RLIMIT_DATA, "VmData:");
  return left;
}

}  // namespace

std::int64_t available_memory() {
  std::int64_t machine = entry("/proc/meminfo", "MemAvailable:");
  if (machine < 0) machine = kNoLimit;
  return std::min({machine, left_of_groups(), left_of_limits()});
}

void require_memory(double bytes, std::string_view what, std::string_view hint) {
  const auto available = static_cast<double>(available_memory());
  if (bytes <= available) return;
  throw Error(
      fmt::format("{}: {} of memory needed, {} available", what, human_bytes(bytes), human_bytes(available)),
      std::string(hint));
}

}  // namespace stitchwork

// AddressSanitizer has its own, which know what belongs together.
#ifndef SW_ADDRESS_SANITIZER

namespace {

void* allocated(std::size_t bytes) {
  if (void* memory = std::malloc(std::max<std::size_t>(1, bytes))) return memory;
  throw std::bad_alloc();
}

void* allocated(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  const std::size_t size = (std::max<std::size_t>(1, bytes) + to - 1) / to * to;
  if (void* memory = std::aligned_alloc(to, size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes); }
void* operator new[](std::size_t bytes) { return allocated(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocated(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return allocated(bytes, alignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
