#include <algorithm>
#include <cmath>

#include "analysis/judge/cost_internal.h"
#include "analysis/judge/read_again.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "core/base/arithmetic.h"

namespace stitchwork::costs {

std::size_t KernelCounter::pass_of(const Group& group) {
  const Pass pass{group.lane, group.deal.tasks, group.deal.blocks(),
                  task_rows(group.mapping) * extents(group.mapping).cols};
  const auto known = std::find(passes_.begin(), passes_.end(), pass);
  if (known == passes_.end()) passes_.push_back(pass);
  return static_cast<std::size_t>(std::find(passes_.begin(), passes_.end(), pass) - passes_.begin());
}

bool KernelCounter::kept_from(const Mapping& before, const Group& group, DType dtype) const {
  if (before != group.mapping) return false;
  // A warp that has rows of its own waits for no other between groups: the L1 has what it read last.
  const auto* lanes = as<mapping::Lanes>(group.mapping);
  if (lanes != nullptr && lanes->threads <= kWarp) return true;
  return registers_of_elements(group, kernel_.launch.block, dtype) <= registers_to_keep_in(kernel_.launch);
}

void KernelCounter::touch(const Group& group, const Evaluation& e, double bytes, double most) {
  const bool internal = inside_.contains(e.op);
  const NodeId buffer = internal ? e.op : buffer_of(computation_, e.op);
  const int level = level_of(e.root);
  Touched& touched = touched_[buffer][{level, pass_of(group)}];
  const bool again = touched.by != nullptr && touched.by != &group && !internal &&
                     !kept_from(touched.by->mapping, group, computation_.node(e.op).shape.dtype);
  const double resident = touched.bytes * resident_share(group);
  const std::int64_t sms = std::min<std::int64_t>(device_.sms, group.deal.blocks());
  if (again && resident > static_cast<double>(l1_room(device_, kernel_, blocks_per_sm()) * sms)) {
    Phase& phase = phases_[level];
    phase.bytes_again += std::min(bytes, touched.bytes);
    if (!touched.again) phase.resident_bytes += resident;
    touched.again = true;
  }
  touched.by = &group;
  touched.bytes = std::min(touched.bytes + bytes, most);
}

void KernelCounter::write(std::int64_t bytes) {
  cost_.dram_write_bytes += bytes;
  phases_[level_].dram_bytes += static_cast<double>(bytes);
}

double KernelCounter::resident_share(const Group& group) const {
  const std::int64_t places = std::int64_t{device_.sms} * std::max(1, blocks_per_sm());
  const std::int64_t takers =
      ceil_div(std::min(group.deal.blocks(), places), std::int64_t{group.deal.cluster});
  return std::min(1.0, static_cast<double>(takers * task_rows(group.mapping)) /
                           static_cast<double>(std::max<std::int64_t>(1, extents(group.mapping).rows)));
}

void KernelCounter::count_dram() {
  double footprint = static_cast<double>(kernel_.launch.scratch_bytes + cost_.dram_write_bytes);
  for (const auto& [buffer, levels] : touched_) {
    double most = 0;
    for (const auto& [when, of] : levels) most = std::max(most, of.bytes);
    footprint += most;
  }
  const bool spills = footprint > static_cast<double>(device_.l2_bytes);
  double read = 0;
  const auto fetch = [&](int level, double bytes) {
    read += bytes;
    phases_[level].dram_bytes += bytes;
  };
  for (const auto& [buffer, levels] : touched_) {
    const bool scratch = inside_.contains(buffer);
    double so_far = 0;
    for (const auto& [when, of] : levels) {
      const double bytes = of.bytes;
      if (spills)
        fetch(when.first, bytes);
      else if (!scratch && bytes > so_far)
        fetch(when.first, bytes - so_far);
      so_far = std::max(so_far, bytes);
    }
  }
  for (auto& [level, phase] : phases_)
    fetch(level, phase.bytes_again * share_beyond_l2(device_, phase.resident_bytes));
  write_scratch();
  cost_.dram_read_bytes = static_cast<std::int64_t>(read);
  count_table();
}

void KernelCounter::write_scratch() {
  double slots = 0;  // some share their bytes
  for (const MemorySlot& slot : kernel_.scratch) slots += static_cast<double>(slot.bytes);
  if (slots == 0) return;
  const auto all = static_cast<double>(kernel_.launch.scratch_bytes);
  cost_.dram_write_bytes += kernel_.launch.scratch_bytes;
  for (const MemorySlot& slot : kernel_.scratch)
    phases_[level_of(slot.op)].dram_bytes += all * static_cast<double>(slot.bytes) / slots;
}

void KernelCounter::count_table() {
  // A pointer has 8 bytes (PTX ISA, .address_size 64).
  constexpr double kPointerBytes = 8;
  std::size_t pointers = outputs_.size();
  for (const auto& [buffer, levels] : touched_) pointers += !inside_.contains(buffer);
  if (pointers <= kMostPointerArguments) return;
  const double bytes = kPointerBytes * static_cast<double>(pointers);
  cost_.dram_read_bytes += static_cast<std::int64_t>(bytes);
  level_ = phases_.begin()->first;
  phases_[level_].dram_bytes += bytes;
  const double of_a_group = bytes / static_cast<double>(kernel_.groups.size());
  now().l2_sectors += static_cast<double>(kernel_.launch.grid) * std::ceil(of_a_group / kSectorBytes);
}

}  // namespace stitchwork::costs
