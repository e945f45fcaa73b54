#include "analysis/forms/transposes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/tiles.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/errors.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// Lines of a tile: a warp reads or writes 128 bytes of 4-byte elements.
/// Derived from 128 bytes of a line and 4 of an element.
constexpr std::int64_t kTileLine = 32;
/// Elements of a tile a thread takes, all of them in flight.
/// A choice, not measured: a tile of 32 lines then has blocks of 256 threads.
constexpr int kElementsAThread = 4;
/// An access is against the order in memory if it touches so many times the sectors it would along the other
/// dimension of the tile: lines of odd lengths begin anywhere, and take a sector more in either order.
/// A choice, not measured: a line of 128 bytes that begins anywhere takes 5 sectors for 4, which is 1.25
/// times.
constexpr double kAgainst = 1.3;

/// Tile mappings of an element-wise group: cut where neighbours along the rows are neighbours in the memory
/// of some value.
class TileSearch {
 public:
  /// `found`: what the kernel's groups evaluate.
  TileSearch(const Graph& graph, const Device& device, const Options& options, const KernelPlan& kernel,
             std::size_t group, const KernelEvaluations& found)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(device),
        options_(options),
        kernel_(kernel),
        group_(group),
        found_(found) {}

  /// The fastest kernel, or none.
  std::optional<KernelPlan> run() {
    if (packs_rows(group().mapping)) {
      attempt({group().mapping, group().deal});
      return std::move(best_);
    }
    for (const auto& [rows, period] : cuts())
      attempt(cut_at(rows, extents(group().mapping).rows / rows, period));
    return std::move(best_);
  }
  bool tried() const { return us_.has_value(); }
  double us() const { return *us_; }
  double best_us() const { return best_us_; }

 private:
  const Group& group() const { return kernel_.groups[group_]; }

  /// Rows, and the extent of the last dimension among them, of every cut of the shapes that ops of the group
  /// have in the dominant's order.
  std::set<std::pair<std::int64_t, std::int64_t>> cuts() const {
    std::set<std::pair<std::int64_t, std::int64_t>> found;
    const std::int64_t elements = extents(group().mapping).rows;
    for (const auto& [op, placed] : *found_[group_].placements) {
      const std::vector<std::int64_t>& extents = computation_.node(op).shape.dims;
      if (placed.coverage != Coverage::kFull ||
          simplify(linearize(placed.map.results, extents), placed.map) != IndexExpr::dim(0))
        continue;
      std::int64_t rows = 1;
      for (const std::int64_t extent : extents) {
        rows *= extent;
        if (extent > 1 && rows < elements) found.emplace(rows, extent);
      }
    }
    return found;
  }

  /// Tiles of rows of which `period` at a time are neighbours in memory.
  Dealt cut_at(std::int64_t rows, std::int64_t cols, std::int64_t period) const {
    const int block = kernel_.launch.block;
    const std::int64_t area = std::int64_t{block} * kElementsAThread;
    // Short lines whole, and as many of them as fill the tile; long ones by whole lines of memory.
    std::int64_t height = period;
    if (period > kTileLine) {
      height = kTileLine;
      while (height > kTileLine / 2 && period % height != 0) height /= 2;
      if (period % height != 0) height = kTileLine;
    }
    std::int64_t width = std::min<std::int64_t>(cols, block);
    if (cols > kTileLine)
      width = std::min<std::int64_t>({std::max(kTileLine, area / height / kTileLine * kTileLine),
                                      round_up(cols, kTileLine), std::int64_t{block}});
    else if (period > kTileLine)
      height = std::max(height, area / width / kTileLine * kTileLine);
    height = std::min<std::int64_t>({height, rows, std::int64_t{block}});
    mapping::Patch patch{rows, cols, height, static_cast<int>(width), 1};
    patch.unroll = static_cast<int>(
        std::clamp<std::int64_t>(Layout(patch, block, TileOrder::kAlongRows).vectors, 1, kElementsAThread));
    const bool alone = kernel_.groups.size() == 1 && kernel_.launch.grid_barriers == 0;
    Deal deal = deal_to(patch, alone ? task_count(patch) : group().deal.blocks());
    deal.first_block = group().deal.first_block;
    return {patch, deal};
  }

  void attempt(const Dealt& dealt) {
    KernelPlan trial = kernel_;
    trial.groups[group_].mapping = dealt.mapping;
    trial.groups[group_].deal = dealt.deal;
    GroupEvaluations evaluated = evaluations(computation_, trial, trial.groups[group_]);
    if (!add_tiles(trial, evaluated)) return;
    mark_tiles(computation_, trial, trial.groups[group_], evaluated);
    std::int64_t grid = 1;
    for (const Group& g : trial.groups) grid = std::max(grid, g.deal.end_block());
    trial.launch.grid = round_up(grid, std::int64_t{trial.launch.cluster});
    if (packs_rows(dealt.mapping)) leave_room(trial.launch);
    if (!fits(trial.launch)) return;
    if (!us_) best_us_ = us_.emplace(kernel_cost(graph_, device_, kernel_, found_).predicted_us);
    std::swap(found_[group_], evaluated);
    const double us = kernel_cost(graph_, device_, trial, found_).predicted_us;
    std::swap(found_[group_], evaluated);
    // The estimate knows what comes from L2, not how often lanes far apart ask L1 for the same sectors.
    if (us >= (best_ ? best_us_ : best_us_ * (1 + kWholeSectors))) return;
    best_us_ = us;
    best_ = std::move(trial);
  }

  /// As many blocks an SM as tiles beside rows leave room for, with so many more registers.
  void leave_room(KernelLaunch& launch) const {
    if (launch.grid_barriers > 0) return;
    const LaunchBound bound =
        assume_relax_apply(device_, launch.block, launch.shared_bytes, launch.blocks_per_sm);
    launch.blocks_per_sm = bound.blocks_per_sm;
    launch.blocks_per_wave = bound.blocks_per_wave;
    if (options_.register_relaxation) launch.register_bound = bound.register_bound;
  }

  /// Within what a block may have, and with grid barriers as many blocks an SM as the grid counts on.
  bool fits(const KernelLaunch& launch) const {
    const bool rows = packs_rows(group().mapping);
    if (launch.shared_bytes >
        (rows ? device_.shared_bytes_per_block_optin : device_.shared_bytes_per_block_default))
      return false;
    return launch.grid_barriers == 0 ||
           occupancy(device_, launch.block, std::max(1, launch.register_bound), launch.shared_bytes)
                   .blocks_per_sm >= launch.blocks_per_sm;
  }

  /// Whether some value goes through a tile, and all that an element-wise group stores lies whole in its
  /// domain.
  bool add_tiles(KernelPlan& trial, const GroupEvaluations& found) const {
    const Group& g = trial.groups[group_];
    if (!found.unplaced.empty()) return false;
    for (const NodeId op : materialised(g)) {
      const Placement& placed = found.placements->at(op);
      if (placed.coverage != Coverage::kFull) {
        if (is<mapping::Patch>(g.mapping)) return false;
        continue;
      }
      if (scheme_in_phase(trial, op) == Scheme::kRegional) continue;
      const bool output = contains_sorted(trial.outputs, op);
      if ((output || trial.schemes.at(op) == Scheme::kGlobal) && against(g, op, placed.map))
        add_tile(trial, op, level_of(op));
    }
    for (const Evaluation& e : found.values) {
      if (!e.load || find_tile(trial, e.op, g.dominant, level_of(e.root)) != nullptr) continue;
      if (contains_sorted(trial.ops, e.op) && reads_shared(trial, e.op, e.root)) continue;
      const auto placed = found.placements->find(e.op);
      if (placed == found.placements->end() || placed->second.map != e.map) continue;
      if (against(g, e.op, e.map)) add_tile(trial, e.op, level_of(e.root));
    }
    return trial.tiles.size() > kernel_.tiles.size();
  }

  bool against(const Group& g, NodeId op, const IndexMap& map) const {
    if (!map.runtime.empty() || !map.symbols.empty() || computation_.node(op).attrs.updated != nullptr)
      return false;
    const Shape& shape = computation_.node(op).shape;
    const auto sectors = [&](TileOrder order) {
      return tile_sectors(map, shape.dims, tile_mapping(g.mapping), byte_size(shape.dtype), order);
    };
    // Lanes that read one element (of a bias, along the rows) touch fewer sectors than neighbours fill.
    const double whole = static_cast<double>(kWarp * byte_size(shape.dtype)) / kSectorBytes;
    return sectors(TileOrder::kAlongCols) > kAgainst * std::max(whole, sectors(TileOrder::kAlongRows));
  }

  void add_tile(KernelPlan& trial, NodeId op, int level) const {
    const Group& g = trial.groups[group_];
    Tile tile{op, g.dominant, level, round_up(trial.launch.shared_bytes, kSharedAlignment),
              tile_bytes(g.mapping, byte_size(computation_.node(op).shape.dtype))};
    trial.launch.shared_bytes = tile.offset + tile.bytes;
    trial.tiles.push_back(tile);
  }

  int level_of(NodeId op) const { return kernel_.levels.at(op); }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const Options& options_;
  const KernelPlan& kernel_;
  std::size_t group_;
  KernelEvaluations found_;   ///< of the kernel; while a mapping is tried, of its group under that
  std::optional<double> us_;  ///< as it is; none before the first try
  double best_us_ = 0;
  std::optional<KernelPlan> best_;
};

/// Whether an op of the kernel turns the order of its elements: without one nothing lies against the order of
/// a group's domain.
bool has_transpose(const Computation& computation, const KernelPlan& kernel) {
  return std::any_of(kernel.ops.begin(), kernel.ops.end(), [&](NodeId op) {
    const Node& node = computation.node(op);
    const std::vector<std::int64_t>& order = node.attrs.dimensions;
    return node.op == Op::kTranspose ||
           (node.op == Op::kBroadcast && !std::is_sorted(order.begin(), order.end()));
  });
}

/// Whether elements are all that the group deals in, and no other group reads what its tasks make, or its
/// tasks are whole rows, which stay as they are.
bool may_have_tiles(const KernelPlan& kernel, const Group& group) {
  const auto [rows, cols] = extents(group.mapping);
  if (packs_rows(group.mapping) && has_tiles(group.mapping)) return rows > 1 && cols > 1;
  if (!is<mapping::Elements>(group.mapping) || rows == 0) return false;
  const std::vector<NodeId> made = materialised(group);
  return std::none_of(made.begin(), made.end(),
                      [&](NodeId op) { return scheme_in_phase(kernel, op) == Scheme::kRegional; });
}

/// Whether it reads nothing that other groups of the kernel share, and reads or stores a value under a map
/// that transposes: only that is worth the search.
bool may_turn(const Computation& computation, const KernelPlan& kernel, const Group& group,
              const GroupEvaluations& found) {
  const auto transposes = [&](NodeId op, const IndexMap& map) {
    const IndexExpr offset = simplify(linearize(map.results, computation.node(op).shape.dims), map);
    return offset.terms.size() > 1 || (offset.terms.size() == 1 && offset.terms[0].kind != AtomKind::kDim);
  };
  const bool rows = packs_rows(group.mapping);
  return (rows || std::none_of(found.values.begin(), found.values.end(),
                               [&](const Evaluation& e) {
                                 return e.load && contains_sorted(kernel.ops, e.op) &&
                                        reads_shared(kernel, e.op, e.root);
                               })) &&
         std::any_of(found.values.begin(), found.values.end(),
                     [&](const Evaluation& e) { return (e.load || e.by < 0) && transposes(e.op, e.map); });
}

}  // namespace

void turn_through_tiles(const Graph& graph, const Device& device, const Options& options, KernelPlan& kernel,
                        Recorder& recorder) {
  if (!options.tiles || !options.tuned) return;
  const Computation& computation = graph.entry_computation();
  if (!has_transpose(computation, kernel)) return;
  KernelEvaluations found;  // of the kernel as it is; empty: not asked for yet
  for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
    const Group& group = kernel.groups[g];
    if (!may_have_tiles(kernel, group)) continue;
    if (found.empty()) found = evaluations(computation, kernel);
    if (!may_turn(computation, kernel, group, found[g])) continue;
    TileSearch search(graph, device, options, kernel, g, found);
    std::optional<KernelPlan> turned = search.run();
    if (!search.tried()) continue;
    recorder.add("mapping", computation.node(group.dominant).name, "", [&] {
      if (!turned)
        return Verdict::no("astitch.tiles",
                           fmt::format("{:.2f} us, no less through tiles of shared memory", search.us()));
      const Mapping& m = turned->groups[g].mapping;
      return Verdict::yes("astitch.tiles",
                          fmt::format("{} values through tiles of {} x {} elements: {:.2f} us, {:.2f} us "
                                      "against their order in memory",
                                      turned->tiles.size() - kernel.tiles.size(), task_rows(m),
                                      threads_a_row(m), search.best_us(), search.us()));
    });
    if (!turned) continue;
    kernel = std::move(*turned);
    found.clear();
  }
}

}  // namespace stitchwork::astitch
