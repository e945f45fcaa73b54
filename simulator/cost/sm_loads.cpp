#include "simulator/cost/sm_loads.h"

#include <algorithm>

namespace stitchwork::sim {

namespace {
/// An SM moves 64 bytes a clock to and from the L2.
constexpr double kSectorsPerClock = 2;
}  // namespace

SmLoads::SmLoads(const Device& device, std::uint64_t resident)
    : device_(&device), resident_(resident), sms_(static_cast<std::size_t>(device.sms)), busy_(sms_.size()) {}

double SmLoads::clocks(const ThreadWork& work) const {
  return std::max(issue_clocks(*device_, work), work.l2_sectors / kSectorsPerClock);
}

void SmLoads::add_to_first_free(const ThreadWork& work) {
  const auto sm = static_cast<std::size_t>(std::min_element(busy_.begin(), busy_.end()) - busy_.begin());
  sms_[sm] += work;
  busy_[sm] = clocks(sms_[sm]);
}

bool SmLoads::level_within(double clocks) const {
  const auto [least, most] = std::minmax_element(busy_.begin(), busy_.end());
  return *most - *least <= clocks;
}

void SmLoads::add(std::uint64_t index, const ThreadWork& work) {
  all_ += work;
  longest_.raise_to(work);
  if (index >= resident_) return add_to_first_free(work);
  const std::size_t sm = index % sms_.size();
  sms_[sm] += work;
  busy_[sm] = clocks(sms_[sm]);
}

void SmLoads::add(std::uint64_t first, std::span<const ThreadWork> blocks, std::uint64_t times) {
  if (blocks.empty()) return;
  const std::uint64_t sms = sms_.size();
  const bool alike =
      std::all_of(blocks.begin(), blocks.end(), [&](const ThreadWork& b) { return b == blocks.front(); });
  if (!alike || !level_within(clocks(blocks.front()))) {
    for (std::uint64_t t = 0; t < times; ++t)
      for (std::size_t b = 0; b < blocks.size(); ++b) add(first + t * blocks.size() + b, blocks[b]);
    return;
  }
  // Where all are alike, every SM gets as many; only what is left over needs a choice.
  const std::uint64_t count = blocks.size() * times, each = count / sms;
  const ThreadWork of_each = blocks.front() * static_cast<double>(each);
  for (std::size_t s = 0; s < sms_.size(); ++s) {
    sms_[s] += of_each;
    busy_[s] = clocks(sms_[s]);
  }
  all_ += of_each * static_cast<double>(sms);
  longest_.raise_to(blocks.front());
  for (std::uint64_t b = each * sms; b < count; ++b) add(first + b, blocks.front());
}

Stretch SmLoads::close(double waves, double blocks) {
  Stretch s{.waves = waves, .blocks = blocks, .all = all_};
  ThreadWork busiest;
  for (const ThreadWork& sm : sms_) busiest.raise_to(sm);
  s.busiest_sm = busiest + closed_ * -1;
  s.longest_block = (all_ * (1 / blocks)).raise_to(longest_);
  closed_ = busiest;
  all_ = longest_ = {};
  return s;
}

}  // namespace stitchwork::sim
