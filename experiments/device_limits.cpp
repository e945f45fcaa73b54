#include "experiments/device_limits.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

struct Axis {
  const char* name;
  std::int64_t least;
  void (*apply)(Device&, std::int64_t);
};

template <typename T>
void lower(T& value, std::int64_t limit) {
  value = static_cast<T>(std::min<std::int64_t>(static_cast<std::int64_t>(value), limit));
}

constexpr std::int64_t kFewestRegisters = 16;

constexpr Axis kAxes[] = {
    {"threads_per_block", kWarp, [](Device& d, std::int64_t n) { lower(d.max_threads_per_block, n); }},
    {"shared_bytes_per_block", 0,
     [](Device& d, std::int64_t n) {
       lower(d.shared_bytes_per_block_default, n);
       lower(d.shared_bytes_per_block_optin, n);
     }},
    {"registers_per_thread", kFewestRegisters,
     [](Device& d, std::int64_t n) { lower(d.max_registers_per_thread, n); }},
    {"registers_per_sm", kFewestRegisters * 1024,
     [](Device& d, std::int64_t n) { lower(d.registers_per_sm, n); }},
    {"shared_bytes_per_sm", 0, [](Device& d, std::int64_t n) { lower(d.shared_bytes_per_sm, n); }},
};

}  // namespace

Device limited(const Device& device, const DeviceLimits& limits) {
  Device result = device;
  for (const auto& [name, value] : limits) {
    const auto* axis =
        std::find_if(std::begin(kAxes), std::end(kAxes), [&](const Axis& a) { return name == a.name; });
    if (axis == std::end(kAxes)) {
      std::vector<std::string> known;
      for (const Axis& a : kAxes) known.emplace_back(a.name);
      throw Error(fmt::format("no limit of a device is called '{}'", name),
                  fmt::format("known: {}", fmt::join(known, ", ")));
    }
    if (value < axis->least)
      throw Error(fmt::format("limit {} {}: no kernel keeps to it", name, value),
                  fmt::format("it is {} at least", axis->least));
    axis->apply(result, value);
  }
  return result;
}

std::string to_text(const DeviceLimits& limits) {
  std::string text;
  for (const auto& [name, value] : limits)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

}  // namespace stitchwork
