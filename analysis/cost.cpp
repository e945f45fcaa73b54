#include "analysis/cost.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "analysis/assemble.h"
#include "analysis/evaluations.h"
#include "analysis/facts.h"
#include "analysis/launch.h"
#include "core/error.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

constexpr int kWarp = 32;
constexpr int kSectorBytes = 32;
/// Registers assumed of a kernel nobody bounds, as in assume-relax-apply (AStitch section 4.5).
constexpr int kAssumedRegisters = 32;
/// Integer instructions that compute an address and guard a load or store.
constexpr double kAddressInstructions = 4;
/// Shuffle and add, five steps a warp, that end a row's reduction.
constexpr double kWarpReduceInstructions = 10;
/// A thread keeps no more loads than this in flight: the scoreboard and the registers end it.
constexpr double kMaxLoadsInFlight = 8;

/// Does lane 0..31 of a warp lie along the rows of the domain, or along its cols?
int lane_dim(const ThreadMapping& mapping) {
  return mapping.kind == MappingKind::kRowPack || mapping.kind == MappingKind::kRowSplit ? 1 : 0;
}

/// Sectors one warp's access under `map` touches, counted on a sample of 32 lanes in the middle of the
/// domain.
double sectors_a_warp(const IndexMap& map, const std::vector<std::int64_t>& extents,
                      const ThreadMapping& mapping, int element_bytes) {
  const IndexExpr linear = linearize(map.results, extents);
  const int lane = lane_dim(mapping);
  std::vector<std::int64_t> point(map.dims.size());
  for (std::size_t d = 0; d < point.size(); ++d) point[d] = map.dims[d] / 2 / kWarp * kWarp;
  const std::vector<std::int64_t> symbols(map.symbols.size(), 0), runtime(map.runtime.size(), 0);
  std::array<std::int64_t, kWarp> sectors{};
  for (int i = 0; i < kWarp; ++i) {
    std::vector<std::int64_t> at = point;
    if (lane < static_cast<int>(at.size())) {
      // Rows shorter than a warp: the lanes go on in the next row.
      const std::int64_t extent = std::max<std::int64_t>(1, map.dims[static_cast<std::size_t>(lane)]);
      const std::int64_t position = at[static_cast<std::size_t>(lane)] + i;
      at[static_cast<std::size_t>(lane)] = position % extent;
      if (lane == 1 && position >= extent)
        at[0] = std::min(at[0] + position / extent, std::max<std::int64_t>(0, map.dims[0] - 1));
    }
    sectors[static_cast<std::size_t>(i)] =
        evaluate(linear, at, symbols, runtime) * element_bytes / kSectorBytes;
  }
  std::sort(sectors.begin(), sectors.end());
  return static_cast<double>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

bool uses(const IndexMap& map, int dim) {
  return std::any_of(map.results.begin(), map.results.end(),
                     [dim](const IndexExpr& e) { return e.uses_dim(dim); });
}

/// Warps that issue one access each for a value under `map`. A value that does not vary along the lanes is
/// still loaded by every warp that works on it.
double warp_accesses(const IndexMap& map, const ThreadMapping& mapping) {
  const double count = evaluation_count(map);
  const int lane = lane_dim(mapping);
  if (uses(map, lane) || map.dims.size() < 2) return count / kWarp;
  const double lanes = lane == 1 ? mapping.threads_per_row : static_cast<double>(mapping.rows);
  return count * std::max(1.0, lanes / kWarp);
}

class KernelCounter {
 public:
  KernelCounter(const Graph& graph, const Device& device, const KernelPlan& kernel)
      : computation_(graph.entry_computation()), device_(device), kernel_(kernel) {
    inside_.insert(kernel.ops.begin(), kernel.ops.end());
    outputs_.insert(kernel.outputs.begin(), kernel.outputs.end());
  }

  KernelCost run() {
    for (const Group& group : kernel_.groups) count_group(group);
    count_dram();
    for (const auto& [op, evaluated] : evaluated_) {
      const std::int64_t elements = computation_.node(op).shape.elements_count();
      cost_.recomputed_elements += std::max<std::int64_t>(0, static_cast<std::int64_t>(evaluated) - elements);
    }
    finish();
    return cost_;
  }

 private:
  void count_group(const Group& group) {
    const GroupEvaluations found = evaluations(computation_, kernel_, group);
    const double before = work_.warp_instructions;
    double loads_a_thread = 0;
    for (const Evaluation& e : found.values) {
      if (e.load)
        count_load(group, e, loads_a_thread);
      else
        count_value(group, e);
    }
    for (NodeId op : materialised(KernelPlan{.groups = {group}})) {
      const auto placed = found.placements.find(op);
      if (placed != found.placements.end()) count_store(group, op, placed->second.map);
    }
    loads_.push_back({&group, work_.warp_instructions - before});
    const double vector = static_cast<double>(group.mapping.vector) * group.mapping.unroll;
    work_.independent_loads =
        std::max(work_.independent_loads, std::clamp(loads_a_thread * vector, 1.0, kMaxLoadsInFlight));
  }

  void count_value(const Group& group, const Evaluation& e) {
    const Node& node = computation_.node(e.op);
    const OpDef& row = def(node.op);
    double count = evaluation_count(e.map);
    if (row.instructions > 0) evaluated_[e.op] += count;  // maps cost nothing again
    if (row.cls == OpClass::kReduce) {
      // Accumulating is once an element of the operand.
      const Node& operand = computation_.node(node.operands[0]);
      const double reduced = static_cast<double>(operand.shape.elements_count()) /
                             static_cast<double>(std::max<std::int64_t>(1, node.shape.elements_count()));
      work_.fp32_warp_instructions += count * reduced / kWarp;
      count *= reduced;
      if (reduces_domain(computation_, e.op, group.mapping) && group.mapping.threads_per_row > 1)
        work_.warp_instructions += kWarpReduceInstructions * static_cast<double>(group.mapping.rows) *
                                   std::max(1, group.mapping.threads_per_row / kWarp);
    } else if (is_elementwise(node.op) && is_floating(node.shape.dtype)) {
      work_.fp32_warp_instructions += count * row.instructions / kWarp;
      if (row.cls == OpClass::kHeavyElementwise) work_.mufu_warp_instructions += count / kWarp;
    }
    work_.warp_instructions += count * row.instructions / kWarp;
  }

  void count_load(const Group& group, const Evaluation& e, double& loads_a_thread) {
    const double accesses = warp_accesses(e.map, group.mapping);
    work_.ldst_warp_instructions += accesses;
    work_.warp_instructions += accesses * (1 + kAddressInstructions);
    const auto scheme = kernel_.schemes.find(e.op);
    const bool internal = inside_.contains(e.op);
    if (internal && scheme != kernel_.schemes.end() && scheme->second == Scheme::kRegional) {
      work_.shared_wavefronts += accesses;
      return;
    }
    const Shape& shape = computation_.node(e.op).shape;
    const int bytes = byte_size(shape.dtype);
    work_.l2_sectors += accesses * sectors_a_warp(e.map, shape.dims, group.mapping, bytes);
    if (uses(e.map, lane_dim(group.mapping))) loads_a_thread += 1;
    const NodeId buffer = internal ? e.op : buffer_of(computation_, e.op);
    const int level = kernel_.levels.contains(e.root) ? kernel_.levels.at(e.root) : 0;
    double& touched = touched_[buffer][level];
    touched = std::min(touched + evaluation_count(e.map) * bytes, static_cast<double>(shape.byte_size()));
  }

  void count_store(const Group& group, NodeId op, const IndexMap& map) {
    const Node& node = computation_.node(op);
    const Scheme scheme = kernel_.schemes.at(op);
    const bool split =
        group.mapping.combine != Combine::kNone && reduces_domain(computation_, op, group.mapping);
    const double accesses = std::max(1.0, evaluation_count(map) / kWarp) * (split ? group.mapping.split : 1);
    work_.ldst_warp_instructions += accesses;
    work_.warp_instructions += accesses * (1 + kAddressInstructions);
    if (scheme == Scheme::kRegional) work_.shared_wavefronts += accesses;
    const bool output = outputs_.contains(op);
    if (!output && scheme != Scheme::kGlobal) return;
    const int bytes = byte_size(node.shape.dtype);
    work_.l2_sectors += accesses * sectors_a_warp(map, node.shape.dims, group.mapping, bytes);
    if (output) cost_.dram_write_bytes += node.shape.byte_size();
  }

  /// Every input byte comes from DRAM once; again in a later phase if what the kernel touches exceeds the L2.
  /// Scratch stays in the L2 unless it, with the inputs, does not fit.
  void count_dram() {
    double footprint = static_cast<double>(kernel_.launch.scratch_bytes + cost_.dram_write_bytes);
    for (const auto& [buffer, levels] : touched_) {
      double most = 0;
      for (const auto& [level, bytes] : levels) most = std::max(most, bytes);
      footprint += most;
    }
    const bool spills = footprint > static_cast<double>(device_.l2_bytes);
    double read = 0;
    for (const auto& [buffer, levels] : touched_) {
      const bool scratch = inside_.contains(buffer);
      double once = 0, all = 0;
      for (const auto& [level, bytes] : levels) {
        once = std::max(once, bytes);
        all += bytes;
      }
      if (!scratch)
        read += spills ? all : once;
      else if (spills)
        read += all;
    }
    if (spills) cost_.dram_write_bytes += kernel_.launch.scratch_bytes;
    cost_.dram_read_bytes = static_cast<std::int64_t>(read);
  }

  /// Instructions of the busiest SM over those of the average one: groups of a phase may run on few of the
  /// blocks (lanes), and phases wait for each other. Blocks are dealt to SMs in turn.
  double busiest(std::int64_t resident) const {
    const std::int64_t grid = kernel_.launch.grid;
    if (grid > resident) return 1;  // what one wave leaves idle the next fills
    std::map<int, std::vector<double>> phases;
    double total = 0;
    for (const auto& [group, instructions] : loads_) {
      const NodeId first =
          group->sub_dominants.empty() ? group->dominant : std::min(group->dominant, group->sub_dominants[0]);
      std::vector<double>& sms = phases[kernel_.levels.at(first)];
      sms.resize(static_cast<std::size_t>(std::min<std::int64_t>(grid, device_.sms)));
      const double each = instructions / static_cast<double>(group->mapping.blocks);
      for (std::int64_t b = 0; b < group->mapping.blocks; ++b)
        sms[static_cast<std::size_t>(group->first_block + b) % sms.size()] += each;
      total += instructions;
    }
    double most = 0;
    for (const auto& [phase, sms] : phases) most += *std::max_element(sms.begin(), sms.end());
    const double average = total / static_cast<double>(std::min<std::int64_t>(grid, device_.sms));
    return average > 0 ? std::max(1.0, most / average) : 1;
  }

  void finish() {
    const KernelLaunch& launch = kernel_.launch;
    work_.grid_blocks = launch.grid;
    work_.threads_per_block = launch.block;
    const int registers = launch.register_bound > 0 ? launch.register_bound : kAssumedRegisters;
    work_.blocks_per_sm =
        std::max(1, occupancy(device_, launch.block, registers, launch.shared_bytes).blocks_per_sm);
    work_.busiest_sm = busiest(static_cast<std::int64_t>(device_.sms) * work_.blocks_per_sm);
    work_.grid_barriers = launch.grid_barriers;
    work_.phases = launch.grid_barriers + 1;
    work_.dram_sectors = static_cast<double>(cost_.dram_read_bytes + cost_.dram_write_bytes) / kSectorBytes;
    work_.l2_sectors = std::max(work_.l2_sectors, work_.dram_sectors);
    cost_.work = work_;
    cost_.predicted_us = kernel_time(device_, work_).total_us;
  }

  const Computation& computation_;
  const Device& device_;
  const KernelPlan& kernel_;
  std::unordered_set<NodeId> inside_, outputs_;
  std::map<NodeId, double> evaluated_;
  std::map<NodeId, std::map<int, double>> touched_;     ///< buffer -> level -> bytes
  std::vector<std::pair<const Group*, double>> loads_;  ///< warp instructions of each group
  KernelWork work_;
  KernelCost cost_;
};

}  // namespace

KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel) {
  return KernelCounter(graph, device, kernel).run();
}

}  // namespace stitchwork
