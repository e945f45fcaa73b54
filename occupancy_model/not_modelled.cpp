#include "occupancy_model/not_modelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "occupancy_model/device_reader.h"

namespace stitchwork {
namespace {

/// What the host takes to dispatch a kernel, from event to event: the most that any op took (docs/timing.md).
constexpr double kLongestDispatchUs = 34;
/// A limit is near another from this share of it on, and blocks are few up to so many an SM; chosen.
/// A choice, not measured: half of the limit that decides.
constexpr double kNear = 0.5;
// A choice, not measured: one block more or less is then half of the time or more.
constexpr int kFewBlocks = 2;
/// Shorter tails change a time by less than the model's error on large kernels.
/// A choice, not measured: about the error of large kernels' times.
constexpr double kLongTail = 0.1;

double memory_us(const KernelTime& t) { return std::max(t.dram_us, t.l2_us); }
bool memory_limits(const KernelTime& t) { return memory_us(t) >= std::max(t.issue_us, t.latency_us); }

/// By the source that the device's file gives for dram_efficiency; of a device without a file: true.
bool bandwidth_measured(const Device& device) {
  static const std::set<std::string> borrowed = [] {
    std::set<std::string> ids;
    for (const DeviceText& text : device_texts()) {
      const std::string id = parse_device(text.json, text.origin).id;
      const nlohmann::json document = parse_device_json(text.json, text.origin);
      const std::string source = document["dram_efficiency"]["source"];
      if (source.starts_with("not measured"))
        ids.insert(id);
      else
        ids.erase(id);
    }
    return ids;
  }();
  return !borrowed.contains(device.id);
}

struct Row {
  NotModelled effect;
  bool (*has)(const Device& device, const TimedKernel& kernel);
};

// No quantity: a table of texts.
constexpr std::array kRows{
    Row{{"host-dispatch",
         "the host takes 12 to 34 us to dispatch a kernel: launched one by one, this one may wait for it"},
        [](const Device&, const TimedKernel& k) { return k.time.total_us < kLongestDispatchUs; }},
    Row{{"contended-atomics",
         "several threads update one address: at what rate L2 makes them follow each other is not confirmed "
         "for this architecture, and who needs a result is taken to wait no longer for it"},
        [](const Device&, const TimedKernel& k) {
          return k.same_address_atomics > 1 || k.atomic_conflicts > 0;
        }},
    Row{{"loaded-latency", "round trips take the latency of idle memory, though memory is busy beside them"},
        [](const Device&, const TimedKernel& k) {
          return k.time.latency_us >= k.time.issue_us && k.time.latency_us >= memory_us(k.time) &&
                 memory_us(k.time) > kNear * k.time.latency_us;
        }},
    Row{{"shared-l1", "blocks of an SM find nothing in L1 that another of them loaded"},
        [](const Device&, const TimedKernel& k) { return k.blocks_per_sm > 1 && k.l2_hit_sectors > 0; }},
    Row{{"waits-at-barriers",
         "while the warps of a block wait for its slowest, the few resident blocks do not keep memory busy"},
        [](const Device&, const TimedKernel& k) {
          return k.has_block_barriers && k.blocks_per_sm <= kFewBlocks && memory_limits(k.time);
        }},
    Row{{"grid-barrier-elsewhere",
         "a grid barrier's time was measured on V100 and is scaled by the clock elsewhere"},
        [](const Device& d, const TimedKernel& k) {
          return k.grid_barriers > 0 && !(d.cc_major == 7 && d.cc_minor == 0);
        }},
    Row{{"tail", "times of uneven work and of a last wave that is not full were not compared with a GPU"},
        [](const Device&, const TimedKernel& k) { return k.time.tail_us > kLongTail * k.time.total_us; }},
    Row{{"issue-limits", "issue rates were not compared with a GPU, nor do clocks fall under load"},
        [](const Device&, const TimedKernel& k) {
          return k.time.issue_us > std::max(memory_us(k.time), k.time.latency_us);
        }},
    Row{{"bandwidth-not-measured",
         "the share of the peak bandwidth that a kernel reaches is another device's: none of this one was "
         "measured"},
        [](const Device& d, const TimedKernel& k) {
          return memory_limits(k.time) && k.time.dram_us >= k.time.l2_us && !bandwidth_measured(d);
        }},
    Row{{"spills", "registers that the compiler spilled to local memory move no bytes"},
        [](const Device&, const TimedKernel& k) { return k.spill_bytes > 0; }},
    Row{{"local-memory", "nobody waits for local memory, it takes bandwidth alone"},
        [](const Device&, const TimedKernel& k) { return k.local_requests > 0; }},
    Row{{"clusters", "accesses and barriers within a cluster take one H100's latencies, idle"},
        [](const Device&, const TimedKernel& k) { return k.cluster_requests > 0; }},
    Row{{"bulk-copies", "issue of bulk copies and waits at their mbarriers were not compared with a GPU"},
        [](const Device&, const TimedKernel& k) { return k.bulk_copies > 0; }},
    Row{{"index-arithmetic", "indices of gathers, reshapes and transposes take no instructions"},
        [](const Device&, const TimedKernel& k) { return !k.counted && k.moves_indices; }},
};

constexpr auto kEffects = [] {
  std::array<NotModelled, kRows.size()> effects{};
  std::ranges::transform(kRows, effects.begin(), &Row::effect);
  return effects;
}();

}  // namespace

std::span<const NotModelled> timing_omissions() { return kEffects; }

std::vector<NotModelled> not_modelled(const Device& device, const TimedKernel& kernel) {
  std::vector<NotModelled> found;
  for (const Row& row : kRows)
    if (row.has(device, kernel)) found.push_back(row.effect);
  return found;
}

std::string to_text(const std::vector<NotModelled>& left_out) {
  std::string text;
  for (const NotModelled& effect : left_out)
    text += fmt::format("not modelled: {}: {}\n", effect.id, effect.why);
  return text;
}

}  // namespace stitchwork
