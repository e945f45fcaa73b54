#include "analysis/planners/fusionstitching/ilp/templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/planners/fusionstitching/alone.h"
#include "analysis/planners/fusionstitching/ilp/layout.h"
#include "analysis/planners/fusionstitching/sharing.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/plain_mapping.h"
#include "analysis/schedule/propagation.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::fusionstitching {
namespace {

/// A choice, not measured: the waves of blocks that chunks are sized for, beside the finest chunks of all.
constexpr std::array<int, 4> kWaves = {1, 2, 4, 8};

class Enumeration {
 public:
  Enumeration(const Ops& ops, const Fusion& fusion, int cta_size, const IlpOptions& options)
      : ops_(ops),
        computation_(*ops.nodes->computation),
        fusion_(fusion),
        cta_size_(cta_size),
        options_(options) {
    for (const NodeId op : fusion.ops) {
      for (const NodeId operand : computation_.node(op).operands)
        if (contains_sorted(fusion.ops, operand)) insert_sorted(read_, operand);
      if (reduces(op)) reductions_.push_back(op);
    }
    for (const NodeId op : reductions_)
      if (contains_sorted(read_, op)) must_share_.push_back(op);
  }

  Templates run() {
    if (must_share_.empty()) {
      add_thread(false);
      const auto narrow = [&](NodeId op) { return column_tile(op, true) < column_tile(op, false); };
      if (std::ranges::any_of(fusion_.roots, narrow)) add_thread(true);
    }
    add_warp();
    if (!must_share_.empty()) add_block();
    std::stable_sort(result_.all.begin(), result_.all.end(), [](const Template& a, const Template& b) {
      return a.stitched.slots.bytes < b.stitched.slots.bytes;
    });
    if (result_.all.size() > kMostTemplates) result_.all.resize(kMostTemplates);
    if (!result_.all.empty()) result_.made = Verdict::yes();
    return std::move(result_);
  }

 private:
  const Node& node(NodeId op) const { return computation_.node(op); }
  bool reduces(NodeId op) const { return is_reduction(ops_[op].kind) || is_product(ops_[op].kind); }

  void add(Composition composition, std::vector<Loop> loops, Slots slots) {
    result_.all.push_back({composition, {fusion_, std::move(loops), std::move(slots), {}, cta_size_}});
  }

  Slots slots_of(const std::vector<Loop>& loops, const std::vector<Request>& asked) const {
    return shared_slots(ops_, {fusion_, loops, {}, {}, cta_size_}, asked, options_);
  }

  /// A loop a reduction, as it would have alone, of narrow tiles of columns or not, and one for all
  /// element-wise outputs of one size. What lies in another's domain is computed there.
  void add_thread(bool narrow) {
    std::vector<Loop> loops;
    std::vector<NodeId> reduced, elementwise;
    for (const NodeId root : fusion_.roots) (reduces(root) ? reduced : elementwise).push_back(root);
    while (!reduced.empty()) {
      Loop loop{reduced.back(), {}, alone(reduced.back(), narrow), 0};
      reduced.pop_back();
      take_what_lies_in(loop, reduced);
      take_what_lies_in(loop, elementwise);
      loops.push_back(std::move(loop));
    }
    while (!elementwise.empty()) {
      const NodeId dominant = elementwise.back();
      elementwise.pop_back();
      Loop loop{dominant, {}, element_mapping(node(dominant).shape.elements_count(), cta_size_), 0};
      take_what_lies_in(loop, elementwise);
      loops.push_back(std::move(loop));
    }
    add(Composition::kThread, std::move(loops), {});
  }

  /// Moves those of `roots` that have their place in the loop's domain into it.
  void take_what_lies_in(Loop& loop, std::vector<NodeId>& roots) const {
    if (roots.empty() || is_product(ops_[loop.dominant].kind)) return;
    const auto placed = propagate(computation_, loop.dominant, loop.dealt.mapping, fusion_.ops);
    std::erase_if(roots, [&](NodeId op) {
      const auto at = placed->find(op);
      if (at == placed->end() || !lies_in(loop.dominant, op, at->second.coverage)) return false;
      insert_sorted(loop.sub_dominants, op);
      return true;
    });
  }

  /// Element-wise: each element once, or once a row; reductions: of the same rows.
  bool lies_in(NodeId dominant, NodeId op, Coverage coverage) const {
    if (is_product(ops_[op].kind)) return false;
    // A reduction of single elements has its place by ways that the loop may not evaluate.
    if (!is_reduction(ops_[op].kind))
      return coverage == Coverage::kFull && def(node(op).op).cls != OpClass::kReduce;
    if (!is_reduction(ops_[dominant].kind) || coverage != Coverage::kRows) return false;
    const ReductionSize of = reduction_size(computation_, op), in = reduction_size(computation_, dominant);
    return of.rows == in.rows && of.cols == in.cols && of.row_reduce == in.row_reduce;
  }

  /// The mapping of a reduction or product that has the grid for itself.
  Dealt alone(NodeId op, bool narrow) const {
    const ReductionSize size = reduction_size(computation_, op);
    if (is_product(ops_[op].kind)) {
      const Mapping mapping = rows_of(op, size);
      return {mapping, deal_to(mapping, task_count(mapping))};
    }
    if (size.cols < kSerialColumns) return thread_a_row_mapping(size.rows, size.cols, cta_size_);
    if (!size.row_reduce) {
      const int tile = column_tile(op, narrow);
      const Mapping mapping = mapping::Columns{
          .results = size.rows, .length = size.cols, .tile = tile, .threads = cta_size_ / tile};
      return {mapping, deal_to(mapping, task_count(mapping))};
    }
    return whole_rows(size);
  }

  /// Columns of a block: a warp's, so that it reads whole lines; `narrow`: fewer where their blocks would not
  /// fill the device, down to those of a sector. The paper names none (F19 section 5.2); the score chooses.
  int column_tile(NodeId op, bool narrow) const {
    int tile = static_cast<int>(kWarp);
    if (!narrow || !is_reduction(ops_[op].kind)) return tile;
    const ReductionSize size = reduction_size(computation_, op);
    if (size.row_reduce || size.cols < kSerialColumns) return tile;
    const DType read = node(node(op).operands.front()).shape.dtype;
    const int least = std::max(1, kSectorBytes / static_cast<int>(byte_size(read)));
    while (tile / 2 >= least && size.rows < std::int64_t{tile} * ops_.device->sms) tile /= 2;
    return tile;
  }

  /// All threads of a block on a row, or on as many short ones as they have threads for.
  Dealt whole_rows(const ReductionSize& size) const {
    int threads = cta_size_;
    while (threads > kWarp && threads / 2 >= size.cols) threads /= 2;
    const Mapping mapping =
        mapping::Rows{size.rows, size.cols, mapping::Lanes{.threads = threads, .rows = cta_size_ / threads}};
    return {mapping, deal_to(mapping, task_count(mapping))};
  }

  /// Rows of a thread each where they are short, else of a warp each, for all threads of a block.
  Mapping rows_of(NodeId op, const ReductionSize& size) const {
    const bool product = is_product(ops_[op].kind);
    if (product ? !shares_rows(computation_, node(op)) : size.cols <= kSerialColumns)
      return mapping::Rows{size.rows, size.cols, mapping::OneThread{cta_size_}};
    const int warp = static_cast<int>(kWarp);
    return mapping::Rows{size.rows, size.cols, mapping::Lanes{.threads = warp, .rows = cta_size_ / warp}};
  }

  /// "Warp composition ... block loop fused, warp reduction, result in registers": all that is stored, and
  /// all reductions, lie in the rows of the last reduction or product.
  void add_warp() {
    if (reductions_.empty()) return;
    const NodeId dominant = reductions_.back();
    const ReductionSize size = reduction_size(computation_, dominant);
    if (!size.row_reduce && !is_product(ops_[dominant].kind)) return;
    std::vector<NodeId> stored = fusion_.roots;
    for (const NodeId op : reductions_) insert_sorted(stored, op);
    erase_sorted(stored, dominant);
    const Mapping mapping = rows_of(dominant, size);
    const auto placed = propagate(computation_, dominant, mapping, fusion_.ops);
    for (const NodeId op : stored) {
      const auto at = placed->find(op);
      if (at == placed->end()) return;
      const bool once_a_row = !is_reduction(ops_[op].kind) && at->second.coverage == Coverage::kRows;
      if (!once_a_row && !lies_in(dominant, op, at->second.coverage)) return;
    }
    std::vector<Loop> loops{{dominant, stored, {mapping, deal_to(mapping, task_count(mapping))}, 0}};
    std::vector<Request> asked;  // what the threads of a row have together they all read there
    for (const NodeId op : must_share_)
      asked.push_back({op, RequestClass::kMust, task_rows(mapping) * byte_size(node(op).shape.dtype)});
    Slots slots = slots_of(loops, asked);
    if (slots.bytes > options_.shared_bytes) return;
    add(Composition::kWarp, std::move(loops), std::move(slots));
    const auto of_rows = evaluated_within_maps(computation_, result_.all.back().stitched);
    if (const auto* too_often = std::get_if<NodeId>(&of_rows))
      result_.made = too_many_maps(ops_, *too_often);
    else if (reads_own_rows(std::get<EvaluatedKernel>(of_rows).found.front()))
      return;
    result_.all.pop_back();
  }

  /// Whether reductions are only read in the row that they are of.
  bool reads_own_rows(const GroupEvaluations& found) const {
    if (!found.unplaced.empty()) return false;
    return std::all_of(found.values.begin(), found.values.end(), [&](const Evaluation& e) {
      return !contains_sorted(must_share_, e.op) || e.map == found.placements->at(e.op).map;
    });
  }

  /// How the threads of a block share the rows of its reductions.
  enum class RowStyle : std::uint8_t { kWarp, kBlock };

  void add_block() {
    const std::vector<std::int64_t> numbers = block_numbers(computation_, fusion_, must_share_);
    NodeId refused = fusion_.roots.front();
    std::vector<std::int64_t> chosen;  // the finest that passes, and of coarser ones those near whole waves
    ChunkLayout finest;
    for (const std::int64_t blocks : numbers) {
      finest = chunk_layout(computation_, fusion_, must_share_, blocks);
      if (finest.refused == kNoNode) {
        chosen.push_back(blocks);
        break;
      }
      refused = finest.refused;
    }
    if (chosen.empty()) {
      result_.made = Verdict::no("fs19.layout",
                                 fmt::format("{} is read across blocks, however few", ops_.name(refused)));
      return;
    }
    add_chunks(finest);
    for (const int waves : kWaves) {
      const double wanted = static_cast<double>(waves) * ops_.device->sms * blocks_an_sm();
      auto near = std::find(numbers.begin(), numbers.end(), chosen.front());
      while (near + 1 != numbers.end() && distance(near[1], wanted) < distance(near[0], wanted)) ++near;
      // Chunks that need too many bytes are made finer.
      for (; std::find(chosen.begin(), chosen.end(), *near) == chosen.end(); --near) {
        const ChunkLayout layout = chunk_layout(computation_, fusion_, must_share_, *near);
        if (layout.refused != kNoNode) continue;
        chosen.push_back(*near);
        if (add_chunks(layout)) break;
      }
    }
    if (result_.all.empty() && result_.made.ok)
      result_.made = Verdict::no("fs19.layout", "no chunks of its outputs are a block's");
  }

  int blocks_an_sm() const {
    return std::max(1, ops_.device->max_warps_per_sm * static_cast<int>(kWarp) / cta_size_);
  }
  static double distance(std::int64_t blocks, double wanted) {
    return std::abs(std::log(static_cast<double>(blocks) / wanted));
  }

  /// False: its values do not fit in a block's shared memory.
  bool add_chunks(const ChunkLayout& layout) {
    const auto is_long = [&](NodeId op) {
      return is_reduction(ops_[op].kind) &&
             row_warps(computation_, node(op), whole_row_threads(op)).size() > 1;
    };
    const bool fits = add_chunks(layout, RowStyle::kWarp);
    if (std::none_of(reductions_.begin(), reductions_.end(), is_long)) return fits;
    return add_chunks(layout, RowStyle::kBlock) || fits;
  }

  bool add_chunks(const ChunkLayout& layout, RowStyle style) {
    // A value that leaves the kernel is no further user's: one that is read once here is computed again, as
    // log_1 and multiply_2 of Figure 1 are.
    const Fusion inside{fusion_.ops, {}};
    std::vector<Request> asked = requests(
        computation_, inside,
        [&](NodeId op) {
          const auto chunk = layout.chunks.find(op);
          return chunk == layout.chunks.end() || layout.recomputed.contains(op) ? 0 : chunk->second;
        },
        ops_.users);
    std::vector<Loop> loops = chunk_loops(asked, layout, style);
    Slots slots = slots_of(loops, asked);
    if (slots.bytes > options_.shared_bytes) {
      std::erase_if(asked, [](const Request& request) { return request.cls != RequestClass::kMust; });
      loops = chunk_loops(asked, layout, style);
      slots = slots_of(loops, asked);
    }
    if (slots.bytes > options_.shared_bytes) {
      result_.made = Verdict::no("fs19.volume", fmt::format("{} bytes of shared memory a block, {} allowed",
                                                            slots.bytes, options_.shared_bytes));
      return false;
    }
    add(Composition::kBlock, std::move(loops), std::move(slots));
    return true;
  }

  /// A loop of every output and of what asks for shared memory, over a block's chunk of it.
  std::vector<Loop> chunk_loops(const std::vector<Request>& asked, const ChunkLayout& layout,
                                RowStyle style) const {
    std::vector<NodeId> stored = fusion_.roots;
    for (const Request& request : asked) insert_sorted(stored, request.op);
    std::vector<Loop> loops;
    for (const NodeId op : stored) {
      int warps = 1;
      if (style == RowStyle::kBlock && is_reduction(ops_[op].kind))
        warps = row_warps(computation_, node(op), whole_row_threads(op)).back();
      loops.push_back(
          {op, {}, chunk_mapping(computation_, node(op), layout.chunks.at(op), cta_size_, warps), 0});
    }
    return loops;
  }

  /// No more threads than a row has elements.
  int whole_row_threads(NodeId op) const {
    return static_cast<int>(std::min<std::int64_t>(cta_size_, reduction_size(computation_, op).cols));
  }

  const Ops& ops_;
  const Computation& computation_;
  const Fusion& fusion_;
  const int cta_size_;
  const IlpOptions& options_;
  std::vector<NodeId> read_;  ///< ops that others of the fusion read
  std::vector<NodeId> reductions_, must_share_;
  Templates result_;
};

/// What shared_slots found of a computation's fusions: templates differ in threads, which nothing of it asks
/// for.
class SharedSlots {
 public:
  using Key = std::vector<std::int64_t>;

  static Key key_of(const Fusion& fusion, const std::vector<Request>& asked, bool in_place, bool reuse) {
    Key key{in_place, reuse, std::ssize(fusion.ops), std::ssize(fusion.roots)};
    key.insert(key.end(), fusion.ops.begin(), fusion.ops.end());
    key.insert(key.end(), fusion.roots.begin(), fusion.roots.end());
    for (const Request& request : asked) {
      key.push_back(request.op);
      key.push_back(request.bytes);
    }
    return key;
  }

  template <typename Find>
  Slots of(Key key, Find find) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
    }
    Slots slots = find();
    const std::lock_guard lock(mutex_);
    // A choice, not measured: some ten MB. A fusion's templates are asked for one after the other.
    constexpr std::size_t kMostNumbers = 2'000'000;
    if (numbers_ += key.size(); numbers_ > kMostNumbers) {
      kept_.clear();
      numbers_ = key.size();
    }
    kept_.emplace(std::move(key), slots);
    return slots;
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return boost::hash_range(key.begin(), key.end()); }
  };
  std::mutex mutex_;
  std::unordered_map<Key, Slots, Hash> kept_;
  std::size_t numbers_ = 0;
};

}  // namespace

std::string_view name(Composition composition) {
  switch (composition) {
    case Composition::kThread:
      return "thread";
    case Composition::kWarp:
      return "warp";
    case Composition::kBlock:
      return "block";
  }
  return "";
}

Slots shared_slots(const Ops& ops, Stitched kernel, const std::vector<Request>& asked,
                   const IlpOptions& options) {
  const Computation& computation = *ops.nodes->computation;
  auto& known = computation.derived.get<SharedSlots>();
  const auto slots_by = [&](const InPlace& may_be) {
    return known.of(SharedSlots::key_of(kernel.fusion, asked, may_be != nullptr, options.shared_reuse), [&] {
      const auto nowhere = [](NodeId, NodeId, const IsShared&) { return false; };
      return share(computation, kernel.fusion, asked, may_be != nullptr ? may_be : nowhere,
                   options.shared_reuse);
    });
  };
  kernel.slots = slots_by([&](NodeId op, NodeId read, const IsShared& is_shared) {
    return is_elementwise_in_place(computation, op, read, is_shared);
  });
  const bool in_place = std::any_of(kernel.slots.slots.begin(), kernel.slots.slots.end(),
                                    [](const Slot& slot) { return slot.in_place; });
  if (!in_place || kernel.slots.bytes > options.shared_bytes) return kernel.slots;
  const auto made = evaluated_within_maps(computation, kernel);
  // Wherever its values lie, a kernel of too many maps is none.
  if (std::holds_alternative<NodeId>(made) ||
      is_sound(*ops.nodes->graph, std::get<EvaluatedKernel>(made).kernel))
    return kernel.slots;
  return slots_by(nullptr);
}

Verdict too_many_maps(const Ops& ops, NodeId op) {
  return Verdict::no("fs19.maps", fmt::format("{} would be computed at more than {} indices of a loop's",
                                              ops.name(op), kMostMaps));
}

Fusion fusion_of(const Ops& ops, const std::vector<NodeId>& component) {
  return {evaluated_ops(*ops.nodes, component), outputs_of(ops, component)};
}

Templates find_templates(const Ops& ops, const Fusion& component, int cta_size, const IlpOptions& options) {
  return Enumeration(ops, component, cta_size, options).run();
}

}  // namespace stitchwork::fusionstitching
