#include <algorithm>
#include <map>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::verification {
namespace {

void check_domain(const Computation& computation, const std::string& where, const Group& group,
                  Report& report) {
  const auto [rows, cols] = extents(group.mapping);
  const Node& dominant = computation.node(group.dominant);
  if (is_reduction(dominant) && !is<mapping::Elements>(group.mapping) && !is<mapping::Patch>(group.mapping)) {
    const ReductionSize shape = reduction_size(computation, group.dominant);
    if (shape.rows != rows || shape.cols != cols)
      report.add("mapping.domain", "{}: {} reduces {} rows of {}, the mapping has {} of {}", where,
                 dominant.name, shape.rows, shape.cols, rows, cols);
  } else if (rows * cols != dominant.shape.elements_count()) {
    report.add("mapping.domain", "{}: {} has {} elements, the mapping {} x {} = {}", where, dominant.name,
               dominant.shape.elements_count(), rows, cols, rows * cols);
  }
}

/// What a thread has of its one row: places that hold nothing of a second.
std::string_view kept_of_a_row(const KernelPlan& kernel, const Group& group) {
  if (is_staged(group.mapping)) return "a tile of shared memory";
  if (!group.across.empty()) return "sums across the rows";
  if (!group.one_pass.empty()) return "a reduction in one pass";
  const auto keeps = [&](const Residence& r) { return r.group == group.dominant; };
  return std::any_of(kernel.resident.begin(), kernel.resident.end(), keeps) ? "a resident value" : "";
}

/// The threads of a row, or of a line of a tile, are those of a block or of a cluster's. A block takes
/// further rows of a task in turn, if a thread keeps nothing of a row.
void check_threads(const std::string& where, const KernelPlan& kernel, const Group& group, Report& report) {
  const int block = kernel.launch.block;
  const std::int64_t rows = task_rows(group.mapping), a_row = threads_a_row(group.mapping);
  std::int64_t threads = a_row * rows;
  if (is<mapping::Elements>(group.mapping)) threads = 1;
  const Layout layout(group.mapping, block);
  if (layout.turns > 1) {
    threads = a_row;
    if (const std::string_view kept = kept_of_a_row(kernel, group); !kept.empty())
      report.add("mapping.turns", "{}: {} rows a task, {} at a time, and {} of one row a thread ({})", where,
                 rows, layout.rows_a_turn, kept, to_text(group.mapping, group.deal));
  }
  if (is<mapping::Patch>(group.mapping)) threads = std::max(a_row, rows);
  if (threads > std::int64_t{block} * group.deal.cluster)
    report.add("mapping.threads", "{}: {} threads a task in blocks of {} ({})", where, threads, block,
               to_text(group.mapping, group.deal));
}

/// Reductions across the rows: a thread has the same cols in every task.
void check_across(const std::string& where, const Group& group, Report& report) {
  if (group.across.empty() || packs_rows(group.mapping)) return;
  report.add("mapping.across",
             "{}: only whole rows of row_pack leave partials of their columns, not {}, split {}", where,
             name(group.mapping), segments(group.mapping));
}

/// Of an element of the narrowest array that the group's ops read or make in vectors, of the domain's size or
/// that of the dimension along which vectors lie: that of its dominant where it has none.
int narrowest_bytes(const Computation& computation, const Group& group, int lane_dim) {
  const Extents domain = extents(group.mapping);
  const std::int64_t along = lane_dim == 0 ? domain.rows : domain.cols;
  const Node& dominant = computation.node(group.dominant);
  const bool reduces = is_reduction(dominant);
  int bytes = byte_size(computation.node(reduces ? dominant.operands[0] : group.dominant).shape.dtype);
  const auto visit = [&](NodeId id) {
    const Shape& shape = computation.node(id).shape;
    if (shape.is_tuple) return;
    const std::int64_t count = shape.elements_count();
    if (count == domain.elements() || count == along) bytes = std::min(bytes, byte_size(shape.dtype));
  };
  for (const NodeId op : group.ops) {
    visit(op);
    for (const NodeId operand : computation.node(op).operands) visit(operand);
  }
  return bytes;
}

/// Vectors of the narrowest array move by one instruction each, and those of columns lie in a block's
/// threads; accumulators across the rows want whole ones.
void check_vectors(const Computation& computation, int vector_bytes, const std::string& where,
                   const Group& group, int block, Report& report) {
  const Layout layout(group.mapping, block);
  if (layout.width == 1) return;
  const int most = is_staged(group.mapping) ? kVectorBytes : vector_bytes;
  if (const int bytes = narrowest_bytes(computation, group, layout.lane_dim); layout.width * bytes > most)
    report.add("mapping.vector", "{}: vectors of {} elements of {} bytes; up to {} bytes move at a time",
               where, layout.width, bytes, most);
  const bool whole = layout.columns == ColumnVectors::kFlat || layout.places % layout.width == 0;
  if (layout.columns != ColumnVectors::kNone &&
      (layout.slices * layout.places > std::int64_t{block} * layout.width || !whole))
    report.add("mapping.vector", "{}: vectors of {} do not lie in tiles of {} columns in a block of {}",
               where, layout.width, layout.task_rows, block);
  if (layout.peeled && !group.across.empty())
    report.add("mapping.vector", "{}: rows of {} in vectors of {}, and accumulators that want whole vectors",
               where, layout.cols, layout.width);
}

}  // namespace

void check_mappings(const Computation& computation, int vector_bytes, const KernelPlan& kernel,
                    Report& report) {
  for (const Group& group : kernel.groups) {
    const std::string where =
        fmt::format("kernel {}, group {}", kernel.id, computation.node(group.dominant).name);
    if (const Verdict verdict = legal(group.mapping, group.deal); !verdict) {
      report.add(verdict.rule, "{}: {}", where, verdict.why);
      continue;
    }
    check_domain(computation, where, group, report);
    check_threads(where, kernel, group, report);
    check_across(where, group, report);
    check_vectors(computation, vector_bytes, where, group, kernel.launch.block, report);
  }
}

namespace {

void check_slots(const KernelPlan& kernel, std::string_view what, const std::vector<MemorySlot>& slots,
                 std::int64_t bytes, Report& report) {
  for (const MemorySlot& slot : slots)
    if (slot.offset < 0 || slot.bytes < 0 || slot.offset + slot.bytes > bytes)
      report.add("slot", "kernel {}: a {} slot of {} bytes at {} does not fit the {} bytes asked for",
                 kernel.id, what, slot.bytes, slot.offset, bytes);
}

/// Phases in which a group stores something.
std::set<int> phases(const Computation& computation, const KernelPlan& kernel, const Group& group) {
  std::set<int> result;
  for (NodeId op : materialised(group)) {
    const int level = kernel.levels.at(op);
    result.insert(level);
    // Readers fold the partials for themselves; a split result that is an output is folded a phase later.
    const bool output = std::find(kernel.outputs.begin(), kernel.outputs.end(), op) != kernel.outputs.end();
    if (output && leaves_partials(computation, group, op)) result.insert(level + 1);
  }
  return result;
}

void check_lanes(const Computation& computation, const KernelPlan& kernel, Report& report) {
  const auto name = [&](const Group& group) { return computation.node(group.dominant).name; };
  std::map<int, std::vector<const Group*>> by_phase;
  std::map<int, const Group*> lanes;
  for (const Group& group : kernel.groups) {
    for (int phase : phases(computation, kernel, group)) by_phase[phase].push_back(&group);
    const Group& first = *lanes.emplace(group.lane, &group).first->second;
    if (first.deal.first_block != group.deal.first_block)
      report.add("lane", "kernel {}: groups {} and {} of lane {} start at blocks {} and {}", kernel.id,
                 name(first), name(group), group.lane, first.deal.first_block, group.deal.first_block);
  }
  for (auto& [phase, groups] : by_phase) {
    std::stable_sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) {
      return a->deal.first_block < b->deal.first_block;
    });
    const Group* widest = nullptr;  // of the lanes before
    for (std::size_t g = 1; g < groups.size(); ++g) {
      const Group &before = *groups[g - 1], &group = *groups[g];
      const auto end = [](const Group& of) { return of.deal.end_block(); };
      if (widest == nullptr || end(before) > end(*widest)) widest = &before;
      if (group.lane != widest->lane && end(*widest) > group.deal.first_block)
        report.add("lane",
                   "kernel {}: group {} (lane {}) ends at block {}, group {} (lane {}) starts at {} in "
                   "the same phase",
                   kernel.id, name(*widest), widest->lane, end(*widest) - 1, name(group), group.lane,
                   group.deal.first_block);
    }
  }
}

void check_residency(const Device& device, const KernelPlan& kernel, Report& report) {
  const KernelLaunch& launch = kernel.launch;
  if (launch.grid_barriers == 0) return;
  if (launch.register_bound == 0) {
    report.add("residency", "kernel {}: has grid barriers but no register bound to guarantee its residency",
               kernel.id);
    return;
  }
  // The compiler is told the blocks an SM, not the registers: of more blocks it knows nothing.
  Occupancy fits = occupancy(device, launch.block, launch.register_bound, launch.shared_bytes);
  if (launch.blocks_per_sm < fits.blocks_per_sm) {
    fits.blocks_per_sm = launch.blocks_per_sm;
    fits.limiter = "the plan's blocks an SM";
  }
  if (launch.cluster < 1 || (launch.cluster > 1 && device.gpcs == 0)) return;  // see check_clusters
  const std::int64_t resident = resident_blocks(device, fits.blocks_per_sm, launch.cluster);
  if (launch.grid > resident)
    report.add("residency",
               "kernel {}: {} blocks wait for each other at grid barriers, but only {} are resident at a "
               "time ({} an SM at {} threads, {} registers, {} bytes of shared memory; limited by {}{})",
               kernel.id, launch.grid, resident, fits.blocks_per_sm, launch.block, launch.register_bound,
               launch.shared_bytes, fits.limiter,
               launch.cluster > 1 ? fmt::format("; in clusters of {} within a GPC", launch.cluster) : "");
}

}  // namespace

void check_launch(const Computation& computation, const Device& device, const KernelPlan& kernel,
                  Report& report) {
  const KernelLaunch& launch = kernel.launch;
  if (launch.block < 1 || launch.block > device.max_threads_per_block)
    report.add("block", "kernel {}: {} threads a block, {} admits 1 to {}", kernel.id, launch.block,
               device.id, device.max_threads_per_block);
  if (launch.grid < 1 || launch.grid > kMaxGrid)
    report.add("grid", "kernel {}: a grid of {} blocks", kernel.id, launch.grid);
  for (const Group& group : kernel.groups)
    if (group.deal.end_block() > launch.grid)
      report.add("grid", "kernel {}: group {} needs {} blocks from block {}, the grid has {}", kernel.id,
                 computation.node(group.dominant).name, group.deal.blocks(), group.deal.first_block,
                 launch.grid);
  check_lanes(computation, kernel, report);
  if (launch.shared_bytes < 0 || launch.shared_bytes > device.shared_bytes_per_block_optin)
    report.add("shared-memory", "kernel {}: needs {} bytes of shared memory, {} allows {} a block", kernel.id,
               launch.shared_bytes, device.id, device.shared_bytes_per_block_optin);
  if (launch.register_bound < 0 || launch.register_bound > device.max_registers_per_thread)
    report.add("registers", "kernel {}: a bound of {} registers, {} has up to {} a thread", kernel.id,
               launch.register_bound, device.id, device.max_registers_per_thread);
  else if (std::int64_t{launch.register_bound} * launch.block > device.registers_per_sm)
    report.add("registers", "kernel {}: {} threads of {} registers need {}, an SM has {}", kernel.id,
               launch.block, launch.register_bound, std::int64_t{launch.register_bound} * launch.block,
               device.registers_per_sm);
  int top = 0;
  for (const auto& [op, level] : kernel.levels) top = std::max(top, level);
  // An output left in partials is folded and stored one phase later.
  for (const Group& group : kernel.groups)
    for (NodeId op : kernel.outputs)
      if (std::binary_search(group.ops.begin(), group.ops.end(), op) &&
          leaves_partials(computation, group, op))
        top = std::max(top, kernel.levels.at(op) + 1);
  if (launch.grid_barriers != top)
    report.add("barriers", "kernel {}: its levels take {} grid barriers, not {}", kernel.id, top,
               launch.grid_barriers);
  check_residency(device, kernel, report);
  check_slots(kernel, "shared-memory", kernel.shared, launch.shared_bytes, report);
  check_slots(kernel, "scratch", kernel.scratch, launch.scratch_bytes, report);
  const std::int64_t workspace = reduction_workspace_bytes(computation, kernel);
  const auto slot = std::find_if(kernel.shared.begin(), kernel.shared.end(),
                                 [](const MemorySlot& s) { return s.op == kNoNode; });
  if (workspace > (slot == kernel.shared.end() ? 0 : slot->bytes))
    report.add("workspace", "kernel {}: its reductions need a workspace of {} bytes of shared memory",
               kernel.id, workspace);
}

}  // namespace stitchwork::verification
