#include "analysis/planners/astitch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "analysis/forms/mapping_tuned.h"
#include "analysis/planners/astitch/sharing.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/mapping.h"
#include "analysis/schedule/tiles.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// Section 4.5 takes the largest block: fewer blocks make grid barriers cheaper.
constexpr int kLargestBlock = 1024;
/// mapping=tuned tries these, 256 first: it leaves the scheduler blocks to fill an SM's gaps with. Where an
/// SM has one block only, 512 first: that many warps hide the latency of arithmetic.
/// A choice, not measured: the powers of two of 4 warps and more, up to the device's most.
constexpr std::array kTunedBlocks = {256, 128, 512, 1024}, kTunedLoneBlocks = {512, 256, 128, 1024};
/// And of the blocks an SM holds at 32 registers a thread all, half or a quarter: the fewer, the longer the
/// rows that stay in registers.
/// A choice, not measured: an eighth would leave fewer than 8 warps of blocks of 256.
constexpr std::array kTunedShares = {1, 2, 4};
/// Threads of a block of XLA's element-wise kernels.
constexpr int kElementwiseBlock = 256;

void set_block(MappingLimits& limits, const Device& device, int block) {
  limits.block = block;
  const LaunchBound bound = assume_relax_apply(device, block, 0, limits.max_blocks_per_sm);
  limits.blocks_per_wave =
      std::max<std::int64_t>(1, limits.one_wave ? resident_blocks(device, bound.blocks_per_sm, limits.cluster)
                                                : bound.blocks_per_wave);
}

/// What decides how long the stitch op takes: its largest reduction, or where it has none its largest op.
NodeId largest_op(const Nodes& nodes, const StitchOp& op) {
  NodeId largest = kNoNode;
  bool reduces = false;
  std::int64_t elements = -1;
  for (const NodeId id : op.members) {
    if (nodes.node(id).shape.is_tuple || (reduces && !nodes[id].reduction)) continue;
    const Domain domain = domain_of(nodes, id);
    const bool first = nodes[id].reduction.has_value() && !reduces;
    if (!first && domain.rows * domain.cols <= elements) continue;
    reduces = reduces || first;
    elements = domain.rows * domain.cols;
    largest = id;
  }
  return largest;
}

/// The members of which values of more than one element lead to `first` or from it: an optimiser's updates of
/// many tensors are one stitch op, and a thread has elements of one tensor at a time.
std::set<NodeId> tied_to(const Nodes& nodes, const StitchOp& op, NodeId first) {
  const auto one = [&](NodeId id) { return nodes[id].elements <= 1; };
  const auto ties = [&](NodeId id) {
    if (one(id)) return false;
    const std::vector<NodeId>& operands = nodes.node(id).operands;
    if (nodes[id].transparent) return !std::all_of(operands.begin(), operands.end(), one);
    return std::binary_search(op.members.begin(), op.members.end(), id);
  };
  std::set<NodeId> found{first};
  std::vector<NodeId> open{first};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const std::vector<NodeId>* next : {&nodes.node(id).operands, &nodes[id].users})
      for (const NodeId other : *next)
        if (ties(other) && found.insert(other).second) open.push_back(other);
  }
  return found;
}

/// Whether an operand of `id`, which has the domain's size and order, is of a value a row. Sizes say so, but
/// where the domain has as many rows as cols: there the map does.
bool is_of_rows(const Nodes& nodes, NodeId id, std::size_t operand, const Domain& domain) {
  const NodeId value = nodes.node(id).operands[operand];
  if (nodes[value].elements != domain.rows) return false;
  if (domain.rows != domain.cols) return true;
  const std::optional<IndexMap>& edge = nodes[id].edges[operand].map;
  if (!edge || !edge->constraints.empty() || !edge->runtime.empty()) return false;
  IndexMap place;  // (row, col) -> index of id
  place.dims = {domain.rows, domain.cols};
  place.results = delinearize(IndexExpr::dim(0) * domain.cols + IndexExpr::dim(1), nodes.node(id).shape.dims);
  const IndexMap read = compose(place, *edge);
  return !simplify(linearize(read.results, nodes.node(value).shape.dims), read).uses_dim(1);
}

/// Whether a map (broadcast, reshape, slice, ...) to the domain's size leaves its operand's elements in the
/// domain's order, or is of a value a row.
bool keeps_order(const Nodes& nodes, NodeId id, const Domain& domain) {
  const Op op = nodes.node(id).op;
  if (op == Op::kIota) return true;
  const std::vector<NodeId>& operands = nodes.node(id).operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::int64_t elements = nodes[operands[i]].elements;
    if (elements == nodes[id].elements ? op != Op::kReshape && op != Op::kBitcast
                                       : elements > 1 && !is_of_rows(nodes, id, i, domain))
      return false;
  }
  return true;
}

/// The same, but for what is smaller: whether the elements of an array of the domain's size stay in order.
bool keeps_arrays(const Nodes& nodes, NodeId id) {
  const Op op = nodes.node(id).op;
  const std::vector<NodeId>& operands = nodes.node(id).operands;
  return std::all_of(operands.begin(), operands.end(), [&](NodeId operand) {
    if (nodes[operand].elements == nodes[id].elements)
      return op == Op::kReshape || op == Op::kBitcast || op == Op::kCopy;
    return op == Op::kBroadcast || nodes[operand].elements <= 1;
  });
}

/// Whether neighbours in the memory of what the transpose `id` of the domain's size reads are neighbours
/// along the domain's rows.
bool turns_rows(const Nodes& nodes, NodeId id, const Domain& domain) {
  const Node& node = nodes.node(id);
  if (node.op != Op::kTranspose || domain.kind != Domain::Kind::kRows) return false;
  const std::vector<std::int64_t>& order = node.attrs.dimensions;
  const auto last = static_cast<std::int64_t>(order.size()) - 1;
  std::int64_t further = 1;  // elements of the result from one of these neighbours to the next
  for (std::size_t d = order.size(); d-- > 0 && order[d] != last;) further *= node.shape.dims[d];
  return further == domain.cols && domain.rows > 1;
}

/// The arrays in memory that the member `id` of the domain's size reads or is.
class ArrayBytes {
 public:
  ArrayBytes(const Nodes& nodes, const StitchOp& op, const Domain& domain, RowWork& work)
      : nodes_(nodes), op_(op), domain_(domain), work_(work) {}

  void visit(NodeId id) {
    const std::vector<NodeId>& operands = nodes_.node(id).operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const NodeId operand = operands[i];
      const std::int64_t elements = nodes_[operand].elements;
      const bool of_cols = elements > 1 && elements == domain_.cols && elements != work_.elements &&
                           !(domain_.rows == domain_.cols && is_of_rows(nodes_, id, i, domain_));
      if ((elements == work_.elements || of_cols) && in_memory(operand)) add(operand);
      if (of_cols) visit_cols(operand);
    }
    if (!in_op(id) || nodes_[id].elements != work_.elements || !is_read_outside(id)) return;
    written_.push_back(byte_size(nodes_.node(id).shape.dtype));
    add(id);
  }
  /// Of an element of the arrays of the domain's size that are written.
  const std::vector<int>& written() const { return written_; }
  /// Of a col: of the arrays of that many elements that are read.
  int col_bytes() const { return col_bytes_; }

 private:
  bool in_op(NodeId id) const { return std::binary_search(op_.members.begin(), op_.members.end(), id); }
  bool in_memory(NodeId id) const {
    return !nodes_.node(id).shape.is_tuple && !nodes_[id].transparent && !nodes_[id].immediate && !in_op(id);
  }
  bool is_read_outside(NodeId id) const {
    const std::vector<NodeId>& users = nodes_[id].users;
    return nodes_[id].buffer_needed || std::any_of(users.begin(), users.end(), [&](NodeId user) {
             return !nodes_[user].transparent && !in_op(user);
           });
  }
  /// What a value a col is made from.
  void visit_cols(NodeId first) {
    std::vector<NodeId> open{first};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (nodes_[id].elements != domain_.cols || !of_cols_.insert(id).second) continue;
      if (in_memory(id))
        col_bytes_ += byte_size(nodes_.node(id).shape.dtype);
      else if (!nodes_[id].reduction)
        open.insert(open.end(), nodes_.node(id).operands.begin(), nodes_.node(id).operands.end());
    }
  }
  void add(NodeId id) {
    const int bytes = byte_size(nodes_.node(id).shape.dtype);
    work_.widest_bytes = std::max(work_.widest_bytes, bytes);
    work_.narrowest_bytes = work_.narrowest_bytes == 0 ? bytes : std::min(work_.narrowest_bytes, bytes);
  }

  const Nodes& nodes_;
  const StitchOp& op_;
  const Domain& domain_;
  RowWork& work_;
  std::vector<int> written_;
  std::set<NodeId> of_cols_;
  int col_bytes_ = 0;
};

/// Counted over the members tied to the domain's op that are of its size: each reduction of its rows asks for
/// a pass, and results of that size for one more.
RowWork row_work(const Nodes& nodes, const StitchOp& op, NodeId dominant, const Domain& domain) {
  const std::int64_t elements = domain.rows * domain.cols;
  RowWork work;
  work.elements = elements;
  work.reductions = 0;
  ArrayBytes arrays(nodes, op, domain, work);
  std::set<NodeId> inputs;
  work.instructions = 0;
  work.in_order = work.arrays_in_order = domain.kind == Domain::Kind::kRows && !domain.guarded;
  for (const NodeId id : tied_to(nodes, op, dominant)) {
    if (nodes[id].reduction && nodes[id].reduction->rows * nodes[id].reduction->cols == elements) {
      if (nodes[id].reduction->row_reduce) ++work.reductions;
      work.instructions += 1;
    } else if (nodes[id].elements == elements) {
      work.instructions += static_cast<double>(instructions(nodes, id));
    } else {
      continue;
    }
    arrays.visit(id);
    if (nodes[id].transparent || nodes.node(id).op == Op::kTranspose) {
      work.in_order = work.in_order && keeps_order(nodes, id, domain);
      work.arrays_in_order = work.arrays_in_order && keeps_arrays(nodes, id);
      if (turns_rows(nodes, id, domain)) work.turned_bytes += byte_size(nodes.node(id).shape.dtype);
    }
    for (const NodeId operand : nodes.node(id).operands)
      if (nodes[operand].elements == elements && !nodes[operand].transparent && !nodes[operand].immediate &&
          !std::binary_search(op.members.begin(), op.members.end(), operand))
        inputs.insert(operand);
  }
  work.inputs = std::max(1, static_cast<int>(inputs.size()));
  work.passes = std::max(1, work.reductions + (arrays.written().empty() ? 0 : 1));
  std::multiset<int> replaced;
  for (const NodeId id : inputs) {
    work.staged_bytes += byte_size(nodes.node(id).shape.dtype);
    work.staged_input_bytes += byte_size(nodes.node(id).shape.dtype);
    replaced.insert(byte_size(nodes.node(id).shape.dtype));
  }
  work.staged_col_bytes = arrays.col_bytes();
  for (const int bytes : arrays.written())
    if (const auto found = replaced.find(bytes); found != replaced.end())
      replaced.erase(found);
    else
      work.staged_bytes += bytes;
  return work;
}

/// The simplest first: without clusters, then ever larger ones of blocks that each have a part of the row.
std::vector<TunedLaunch> tuned_launches(const Domain& domain, bool alone, bool blocks_are_given,
                                        int cluster_limit) {
  std::vector<TunedLaunch> launches;
  const int most = domain.kind == Domain::Kind::kRows ? cluster_limit : 1;
  for (int cluster = 1; cluster <= most; cluster *= 2)
    for (const int share : kTunedShares)
      for (const int block : alone ? kTunedLoneBlocks : kTunedBlocks) {
        if (share > 1 && blocks_are_given) continue;
        if (cluster > 1 && domain.cols < std::int64_t{block} * cluster) continue;
        launches.push_back({block, share, cluster});
      }
  return launches;
}

/// The block, the threads an SM shares its registers among, and the blocks of a cluster, in which the largest
/// domain takes least time, with grid barriers one barrier included; or the `given` ones.
void tune_block(const Nodes& nodes, const StitchOp& op, const Device& device, int cluster_limit,
                const std::optional<TunedLaunch>& given, MappingLimits& limits) {
  const NodeId largest = largest_op(nodes, op);
  const Domain domain = largest == kNoNode ? Domain{} : domain_of(nodes, largest);
  if (largest != kNoNode) limits.row_work = row_work(nodes, op, largest, domain);
  if (given) {
    limits.cluster = given->cluster;
    limits.max_blocks_per_sm = assume_relax_apply(device, given->block, 0, 0).blocks_per_sm / given->share;
    return set_block(limits, device, given->block);
  }
  const int wanted_blocks = limits.max_blocks_per_sm;
  set_block(limits, device, std::min(kTunedBlocks.front(), device.max_threads_per_block));
  const bool alone = map_tuned(domain, limits).deal.blocks() <= device.sms;
  int best = 0, best_blocks = 0, best_cluster = 1;
  double best_us = 0;
  for (const auto& [block, share, cluster] :
       tuned_launches(domain, alone, wanted_blocks > 0, cluster_limit)) {
    if (block > device.max_threads_per_block) continue;
    limits.max_blocks_per_sm = wanted_blocks;
    limits.cluster = cluster;
    if (share > 1) {
      const int full = assume_relax_apply(device, block, 0, 0).blocks_per_sm;
      if (full < share) continue;
      limits.max_blocks_per_sm = full / share;
    }
    set_block(limits, device, block);
    const auto dealt = map_tuned(domain, limits);
    const Deal& deal = dealt.deal;
    double us = domain_us(domain, dealt, limits);
    // Partials are written and read once more.
    us += 2.0 * 4 * static_cast<double>(deal.takers * extents(dealt.mapping).cols * limits.accumulators) /
          bytes_per_us(device);
    if (limits.one_wave) us += device.grid_barrier_us_per_block * static_cast<double>(deal.blocks());
    if (best > 0 && us >= best_us * (1 - kIndifference)) continue;
    best = block;
    best_blocks = limits.max_blocks_per_sm;
    best_cluster = deal.cluster;
    best_us = us;
  }
  limits.max_blocks_per_sm = best_blocks;
  limits.cluster = best_cluster;
  set_block(limits, device, best);
}

}  // namespace

std::vector<TunedLaunch> waiting_launches(const Device& device, int most_blocks) {
  std::vector<TunedLaunch> launches;
  for (int cluster = 1; cluster <= largest_cluster(device); cluster *= 2)
    for (const int block : {1024, 512, 256})
      for (const int threads : {512, 1024}) {
        const int full = assume_relax_apply(device, block, 0, 0).blocks_per_sm, blocks = threads / block;
        if (blocks == 0) continue;
        if (most_blocks > 0 && blocks > most_blocks) continue;
        if (full >= blocks && resident_blocks(device, blocks, cluster) > 0)
          launches.push_back({block, full / blocks, cluster});
      }
  return launches;
}

MappingLimits mapping_limits(const Nodes& nodes, const StitchOp& op, const Device& device,
                             const Options& options, bool one_wave, int accumulators, WideForms forms) {
  MappingLimits limits;
  limits.accumulators = accumulators;
  limits.tiles = options.tiles;
  limits.staging = forms.staging && options.tiles;
  limits.async_copies = options.async_copies && has_async_copies(device);
  limits.bulk_copies = limits.async_copies && options.bulk_copies && has_bulk_copies(device);
  limits.single_rows = forms.single_rows && options.tiles;
  limits.column_vectors = forms.column_vectors;
  if (const auto* wanted = Constraints::find(options.constraints.residency, op.members))
    limits.max_blocks_per_sm = wanted->second;
  const bool tuned = options.tuned && options.adaptive_mapping;
  limits.block = std::min(kLargestBlock, device.max_threads_per_block);
  limits.adaptive = options.adaptive_mapping;
  limits.one_wave = one_wave || (options.adaptive_mapping && !tuned);
  limits.wanted_splits = &options.constraints.split_factor;
  const auto* wanted_block = Constraints::find(options.constraints.block, op.members);
  if (tuned) {
    limits.tuned_for = &device;
    const int clusters = forms.clusters && options.clusters && !one_wave ? largest_cluster(device) : 1;
    if (wanted_block == nullptr) tune_block(nodes, op, device, clusters, forms.launch, limits);
  }
  if (!options.adaptive_mapping) {
    std::int64_t widest = 0;
    for (const NodeId id : op.members) {
      if (!nodes[id].reduction) continue;
      const ReductionShape& shape = *nodes[id].reduction;
      widest = std::max(widest, shape.row_reduce ? shape.cols : kLargestBlock);
    }
    if (widest == 0) widest = kElementwiseBlock;
    limits.block =
        static_cast<int>(std::min<std::int64_t>(limits.block, round_up(widest, std::int64_t{kWarp})));
  }
  set_block(limits, device, wanted_block != nullptr ? wanted_block->second : limits.block);
  return limits;
}

void plan_launch(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                 const Device& device, const Options& options, const MappingLimits& limits,
                 KernelPlan& kernel, Recorder& recorder) {
  KernelLaunch& launch = kernel.launch;
  launch.block = limits.block;
  launch.grid = launch.cluster = 1;
  for (const OpGroup& group : groups) {
    launch.grid = std::max(launch.grid, group.deal.end_block());
    launch.cluster = std::max(launch.cluster, group.deal.cluster);
  }
  launch.grid = round_up(launch.grid, launch.cluster);
  launch.grid_barriers = finalization.grid_barriers;

  const std::int64_t workspace = reduction_workspace_bytes(*body.nodes->computation, kernel);
  MemoryPlan memory =
      plan_memory(body, groups, finalization, {workspace, launch.block}, options.shared_reuse, recorder);
  kernel.shared = std::move(memory.shared);
  kernel.scratch = std::move(memory.scratch);
  launch.shared_bytes = memory.shared_bytes;
  launch.scratch_bytes = memory.scratch_bytes;

  bound_launch(device, options, limits, launch);
}

namespace {

/// Of blocks that wait for each other, those that are surely resident at once.
std::int64_t wave_of(const Device& device, const LaunchBound& bound, const KernelLaunch& launch) {
  if (launch.grid_barriers > 0) return resident_blocks(device, bound.blocks_per_sm, launch.cluster);
  return launch.cluster == 1
             ? bound.blocks_per_wave
             : launch.cluster * clusters_per_wave(device, bound.blocks_per_sm, launch.cluster);
}

}  // namespace

void bound_launch(const Device& device, const Options& options, const MappingLimits& limits,
                  KernelLaunch& launch) {
  const LaunchBound bound =
      assume_relax_apply(device, launch.block, launch.shared_bytes, limits.max_blocks_per_sm);
  launch.blocks_per_sm = bound.blocks_per_sm;
  launch.blocks_per_wave = wave_of(device, bound, launch);
  launch.register_bound = options.register_relaxation ? bound.register_bound : kAssumedRegisters;
}

void settle_registers(const Device& device, const Options& options, KernelLaunch& launch) {
  int share = blocks_an_sm(device, launch.grid);
  // Clusters that wait for each other may leave places of some SMs unused.
  if (launch.grid_barriers > 0)
    while (share < launch.blocks_per_sm && resident_blocks(device, share, launch.cluster) < launch.grid)
      ++share;
  if (share >= launch.blocks_per_sm) return;
  const LaunchBound bound = assume_relax_apply(device, launch.block, launch.shared_bytes, share);
  launch.blocks_per_sm = bound.blocks_per_sm;
  launch.blocks_per_wave = wave_of(device, bound, launch);
  if (options.register_relaxation) launch.register_bound = bound.register_bound;
}

bool stages_single_rows(const KernelPlan& kernel) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(),
                     [](const Group& group) { return stages_a_row(group.mapping); });
}

Verdict fits_device(const KernelPlan& kernel, const Device& device, const MappingLimits& limits) {
  const KernelLaunch& launch = kernel.launch;
  const std::int64_t allowed = stages_single_rows(kernel) ? device.shared_bytes_per_block_optin
                                                          : device.shared_bytes_per_block_default;
  if (launch.shared_bytes > allowed) {
    return Verdict::no("astitch.shared-memory", fmt::format("needs {} bytes of shared memory, {} allowed",
                                                            launch.shared_bytes, allowed));
  }
  // Staged rows are dealt to the blocks that their tiles leave room for.
  const bool staged = std::any_of(kernel.groups.begin(), kernel.groups.end(),
                                  [](const Group& group) { return is_staged(group.mapping); });
  const std::int64_t assumed = staged ? launch.grid : limits.blocks_per_wave;
  if (limits.one_wave && launch.blocks_per_wave < assumed) {
    return Verdict::no("astitch.wave",
                       fmt::format("{} bytes of shared memory leave {} blocks a wave, mappings assumed {}",
                                   launch.shared_bytes, launch.blocks_per_wave, assumed));
  }
  return Verdict::yes();
}

}  // namespace stitchwork::astitch
