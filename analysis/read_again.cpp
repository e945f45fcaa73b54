#include "analysis/read_again.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/assemble.h"
#include "analysis/facts.h"
#include "analysis/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/stages.h"
#include "core/arithmetic.h"
#include "core/sorted.h"

namespace stitchwork {
namespace {

/// Rows that resident blocks go through again come from the L2 up to this share of it, and beyond that all
/// from DRAM: fitted to measured layer norms (docs/timing.md).
constexpr double kRowsOfL2 = 0.60, kRowsBeyondL2 = 1.40;
/// An SM's L1 and shared memory together are at least so much more than its most shared memory: 128 to 96 KB
/// on V100, 192 to 164 on A100, 256 to 228 on H100 (CUDA programming guide, compute capabilities).
constexpr std::int64_t kL1BesideShared = 28 * 1024;

/// Registers of a thread for its elements of a value.
std::int64_t registers(const Computation& computation, const KernelPlan& kernel, const Group& group,
                       NodeId op) {
  return Layout(group.mapping, kernel.launch.block).elements() *
         ceil_div(byte_size(computation.node(op).shape.dtype), kRegisterBytes);
}

}  // namespace

std::vector<int> loads_again(const Computation& computation, const KernelPlan& kernel, const Group& group,
                             const GroupEvaluations& found) {
  std::vector<int> again(found.values.size(), 0);
  if (group.mapping.kind != MappingKind::kRowPack || group.mapping.cols < 2) return again;
  std::vector<std::size_t> loads;
  std::int64_t widest = 0;
  for (std::size_t v = 0; v < found.values.size(); ++v) {
    const Evaluation& e = found.values[v];
    if (!e.load || e.resident || !depends_on(e.map, 0) || !depends_on(e.map, 1)) continue;
    if (contains_sorted(kernel.ops, e.op) && reads_shared(kernel, e.op, e.root)) continue;
    loads.push_back(v);
    if (!e.tile) widest = std::max(widest, registers(computation, kernel, group, e.op));
  }
  std::int64_t room = registers_to_keep_in(kernel.launch);
  for (const NodeId op : group.across)
    room -= Layout(group.mapping, kernel.launch.block).elements() *
            (accumulator_bytes(computation.node(op).shape.dtype) / kRegisterBytes);
  // One value made of all that is loaded may be what later steps read.
  if (widest <= room) std::erase_if(loads, [&](std::size_t v) { return !found.values[v].tile; });
  if (loads.empty()) return again;

  std::vector<NodeId> passing;  // what goes through the elements
  for (const NodeId op : materialised(group)) {
    const auto placed = found.placements.find(op);
    const bool full = placed != found.placements.end() && placed->second.coverage == Coverage::kFull;
    if (contains_sorted(group.one_pass, op)) continue;
    if (full || is_across(group, op) || reduces_cols(computation, op, group)) passing.push_back(op);
  }
  std::map<int, Stages> stages;  // by level
  for (const std::size_t v : loads) {
    const Evaluation& e = found.values[v];
    const int level = kernel.levels.at(e.root);
    Stages& of = stages.try_emplace(level, computation, kernel, level).first->second;
    std::set<int> steps;
    for (const NodeId op : passing)
      if (kernel.levels.at(op) == level && of.reads(op, e.op)) steps.insert(of.of(op));
    again[v] = std::max(0, static_cast<int>(steps.size()) - 1);
  }
  return again;
}

bool l1_holds(const Computation& computation, const Device& device, const KernelPlan& kernel,
              const Group& group, const GroupEvaluations& found, const std::vector<int>& again, int blocks) {
  std::int64_t bytes = 0;
  for (std::size_t v = 0; v < again.size(); ++v)
    if (again[v] > 0 && !found.values[v].tile)
      bytes += byte_size(computation.node(found.values[v].op).shape.dtype);
  const ThreadMapping& m = group.mapping;
  const std::int64_t at_once = std::max(1, blocks);
  return at_once * m.rows_per_block * m.cols / m.cluster * bytes <= l1_room(device, kernel, blocks);
}

std::int64_t l1_room(const Device& device, const KernelPlan& kernel, int blocks) {
  return device.shared_bytes_per_sm + kL1BesideShared - std::max(1, blocks) * kernel.launch.shared_bytes;
}

double share_beyond_l2(const Device& device, double resident_bytes) {
  const double of_l2 = resident_bytes / static_cast<double>(std::max<std::int64_t>(1, device.l2_bytes));
  return std::clamp((of_l2 - kRowsOfL2) / (kRowsBeyondL2 - kRowsOfL2), 0.0, 1.0);
}

}  // namespace stitchwork
