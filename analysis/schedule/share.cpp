#include "analysis/schedule/share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/schedule/context.h"
#include "analysis/schedule/layout.h"
#include "core/graph/float_semantics.h"

namespace stitchwork {
namespace {

/// A block finds its entry by two loads that depend on each other before it loads anything else; for fewer
/// loops than this the instructions saved are not worth them.
/// A choice, not measured: of three loops the instructions saved are about those of the loads.
constexpr std::size_t kFewestEntries = 4;

/// Buffers of two loops that stand at the same places, by order of appearance.
class BufferPairs {
 public:
  bool match(int a, int b) {
    const auto [first, new_a] = to_.try_emplace(a, b);
    const auto [second, new_b] = from_.try_emplace(b, a);
    if (new_a && new_b) order_.push_back(a);
    return first->second == b && second->second == a;
  }
  int partner(int a) const { return to_.at(a); }
  const std::vector<int>& order() const { return order_; }

 private:
  std::unordered_map<int, int> to_, from_;
  std::vector<int> order_;
};

/// Compares the lowered form of loops. Rows, the first dimension of every step's domain, may differ: all that
/// depends on them is which rows of the last task exist.
class LoopComparison {
 public:
  LoopComparison(const Graph& graph, const Schedule& kernel)
      : computation_(graph.entry_computation()), graph_(graph), kernel_(kernel) {}

  /// The buffers in correspondence, or nothing where the body of `a` does not serve `b`.
  std::optional<BufferPairs> pairs(const TaskLoop& a, const TaskLoop& b) const {
    // Accumulators across rows belong to a block and its whole share of one loop.
    if (a.steps.size() != b.steps.size() || !a.across.empty() || !b.across.empty()) return std::nullopt;
    if (!a.gathered.empty() || !b.gathered.empty()) return std::nullopt;
    // Tiles have places of their own, and lines that the rows cut off.
    for (const Step& step : a.steps)
      if (is<mapping::Patch>(step.mapping) || step.turned) return std::nullopt;
    BufferPairs buffers;
    for (std::size_t s = 0; s < a.steps.size(); ++s)
      if (!same(a.steps[s], b.steps[s], b.deal.tasks == 1, buffers)) return std::nullopt;
    if (!same_overlaps(buffers)) return std::nullopt;
    return buffers;
  }

  /// Equal for equal loops.
  std::size_t hash(const TaskLoop& loop) const {
    std::size_t result = loop.steps.size();
    const auto mix = [&](std::size_t n) { result = (result ^ n) * 0x9E3779B97F4A7C15ull; };
    for (const Step& step : loop.steps) {
      mix(step.mapping.index());
      mix(static_cast<std::size_t>(step.layout.cols));
      mix(static_cast<std::size_t>(step.layout.width));
      for (const Value& value : step.values) {
        mix(static_cast<std::size_t>(value.kind));
        if (value.kind == ValueKind::kApply) mix(static_cast<std::size_t>(computation_.node(value.op).op));
      }
      for (const Root& root : step.roots) mix(root.targets.size());
    }
    return result;
  }

 private:
  /// The place of a single task is its own, whatever a task's length.
  bool same(const Step& a, const Step& b, bool one_task, BufferPairs& buffers) const {
    const auto every = [&](const auto& x, const auto& y, const auto& equal) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
    };
    return a.stage == b.stage && a.rows == b.rows && serves(a, b, one_task) &&
           every(a.values, b.values,
                 [&](const Value& x, const Value& y) {
                   return (x.task_offset == y.task_offset || one_task) && same(x, y, buffers);
                 }) &&
           every(a.roots, b.roots, [&](const Root& x, const Root& y) { return same(x, y, buffers); });
  }

  /// The mapping of `a`, which has at least as many rows, would do for `b` too.
  static bool serves(const Step& a, const Step& b, bool one_task) {
    const Layout &x = a.layout, &y = b.layout;
    const bool columns = is<mapping::Columns>(a.mapping);
    if (y.rows > x.rows || (columns && x.width > 1 && y.rows != x.rows)) return false;
    // What goes unguarded in vectors or unrolled needs whole tasks.
    if (is<mapping::Elements>(a.mapping) && (x.width > 1 || x.unroll > 1) && x.unguarded > 0 &&
        y.rows % x.task_rows != 0)
      return false;
    Mapping longer = b.mapping;
    // A single task may be one of the longer ones; but a task's rows decide how a column's threads lie.
    const bool lengthened = !columns && one_task && y.task_rows <= x.task_rows;
    set_rows(longer, x.rows, lengthened ? x.task_rows : y.task_rows);
    return longer == a.mapping;
  }

  bool same(const Value& a, const Value& b, BufferPairs& buffers) const {
    const Node &x = computation_.node(a.op), &y = computation_.node(b.op);
    if (a.kind != b.kind || a.arguments != b.arguments || a.local != b.local ||
        (a.task_offset > 0) != (b.task_offset > 0) || a.scope != b.scope || a.extents != b.extents ||
        a.depth != b.depth || a.offset != b.offset || x.shape.dtype != y.shape.dtype || !same(a.at, b.at) ||
        !std::equal(a.guards.begin(), a.guards.end(), b.guards.begin(), b.guards.end(),
                    [&](const Access& p, const Access& q) { return same(p, q); }))
      return false;
    if (a.buffer >= 0 && !same_buffer(a.buffer, b.buffer, buffers)) return false;
    switch (a.kind) {
      case ValueKind::kConstant:
        return std::ranges::equal(first_element(x), first_element(y));
      case ValueKind::kApply:
        return same_expression(x, y);
      case ValueKind::kFold:
        return partials_a_row(a) == partials_a_row(b) && same_reducer(x, y);
      case ValueKind::kInnerReduce:
        return same_reducer(x, y);
      case ValueKind::kIndex:
      case ValueKind::kSlice:
        return a.at.map.results == b.at.map.results;
      default:
        return true;
    }
  }

  static std::span<const std::byte> first_element(const Node& constant) {
    return std::span(constant.attrs.literal->bytes)
        .first(static_cast<std::size_t>(byte_size(constant.shape.dtype)));
  }

  /// Whether the ops are one expression of their operands' elements; their results have one type.
  bool same_expression(const Node& a, const Node& b) const {
    if (a.op != b.op || a.operands.size() != b.operands.size()) return false;
    for (std::size_t i = 0; i < a.operands.size(); ++i)
      if (computation_.node(a.operands[i]).shape.dtype != computation_.node(b.operands[i]).shape.dtype)
        return false;
    switch (a.op) {
      case Op::kCompare:
        return a.attrs.comparison == b.attrs.comparison && is_total_order(a) == is_total_order(b);
      case Op::kReducePrecision: {
        const FloatFormat x = reduced_precision(a), y = reduced_precision(b);
        return x.exponent_bits == y.exponent_bits && x.mantissa_bits == y.mantissa_bits;
      }
      case Op::kPower:  // a small integer exponent is part of the expression
        return one_integer(source_of(computation_, a.operands[1])) ==
               one_integer(source_of(computation_, b.operands[1]));
      case Op::kGetDimensionSize: {
        const auto size = [&](const Node& node) {
          return computation_.node(node.operands[0])
              .shape.dims.at(static_cast<std::size_t>(node.attrs.dimensions.at(0)));
        };
        return size(a) == size(b);
      }
      default:
        return true;
    }
  }

  bool same_reducer(const Node& a, const Node& b) const {
    return reducer_of(graph_, a) == reducer_of(graph_, b);
  }

  std::int64_t partials_a_row(const Value& fold) const {
    return kernel_.buffers[static_cast<std::size_t>(fold.buffer)].elements /
           std::max<std::int64_t>(1, computation_.node(fold.op).shape.elements_count());
  }

  /// What an access comes to in a body: the constraints that guard it and the ranges of its runtime indices,
  /// under dimensions of which the first, the rows, may differ. Which element of the op's shape it names is
  /// in the offset of a load, and else in those of the loads behind it.
  static bool same(const Access& a, const Access& b) {
    const IndexMap &x = a.map, &y = b.map;
    return a.runtime == b.runtime && x.constraints == y.constraints && x.symbols == y.symbols &&
           x.dims.size() == y.dims.size() &&
           (x.dims.empty() || std::equal(x.dims.begin() + 1, x.dims.end(), y.dims.begin() + 1)) &&
           std::equal(x.runtime.begin(), x.runtime.end(), y.runtime.begin(), y.runtime.end(),
                      [](const RuntimeVariable& p, const RuntimeVariable& q) { return p.range == q.range; });
  }

  bool same(const Root& a, const Root& b, BufferPairs& buffers) const {
    return a.store == b.store && a.value == b.value && a.initial == b.initial && a.slice == b.slice &&
           a.reducer == b.reducer &&
           computation_.node(a.op).shape.dtype == computation_.node(b.op).shape.dtype &&
           std::equal(a.targets.begin(), a.targets.end(), b.targets.begin(), b.targets.end(),
                      [&](const Target& x, const Target& y) {
                        return x.offset == y.offset && same_buffer(x.buffer, y.buffer, buffers);
                      });
  }

  bool same_buffer(int a, int b, BufferPairs& buffers) const {
    const Buffer &x = buffer(a), &y = buffer(b);
    return x.space == y.space && x.partials == y.partials && x.shape.dtype == y.shape.dtype &&
           buffers.match(a, b);
  }

  /// Values in shared memory take over one another's bytes alike: which barriers that asks for is the body's.
  bool same_overlaps(const BufferPairs& buffers) const {
    std::vector<int> shared;
    for (const int b : buffers.order())
      if (buffer(b).space == MemorySpace::kShared) shared.push_back(b);
    const auto relation = [&](int a, int b) {
      const Buffer &x = buffer(a), &y = buffer(b);
      const bool apart = x.offset + x.bytes() <= y.offset || y.offset + y.bytes() <= x.offset;
      return std::pair(apart, !apart && x.offset == y.offset && x.bytes() == y.bytes());
    };
    return std::all_of(shared.begin(), shared.end(), [&](int a) {
      return std::all_of(shared.begin(), shared.end(), [&](int b) {
        return relation(a, b) == relation(buffers.partner(a), buffers.partner(b));
      });
    });
  }

  const Buffer& buffer(int b) const { return kernel_.buffers[static_cast<std::size_t>(b)]; }

  const Computation& computation_;
  const Graph& graph_;
  const Schedule& kernel_;
};

bool has_work(const TaskLoop& loop) {
  return loop.deal.cluster == 1 && std::all_of(loop.steps.begin(), loop.steps.end(), [](const Step& step) {
           return step.layout.rows * step.layout.cols > 0;
         });
}

bool more_rows(const TaskLoop& a, const TaskLoop& b) {
  const Layout &x = a.steps.front().layout, &y = b.steps.front().layout;
  return std::pair(x.task_rows, x.rows) > std::pair(y.task_rows, y.rows);
}

LoopEntry entry_of(const TaskLoop& loop, const std::vector<int>& buffers) {
  LoopEntry entry;
  entry.deal = loop.deal;
  entry.buffers = buffers;
  for (const Step& step : loop.steps) {
    entry.rows.push_back(step.layout.rows);
    for (const Value& value : step.values) entry.ops.push_back(value.op);
  }
  return entry;
}

/// One loop for all of a class.
TaskLoop shared(const LoopComparison& compare, const std::vector<const TaskLoop*>& loops) {
  TaskLoop result = *loops.front();
  std::vector<BufferPairs> pairs;
  for (const TaskLoop* loop : loops) pairs.push_back(*compare.pairs(result, *loop));
  for (const int buffer : pairs.front().order())
    if (std::any_of(pairs.begin(), pairs.end(),
                    [&](const BufferPairs& of) { return of.partner(buffer) != buffer; }))
      result.own_buffers.push_back(buffer);
  for (std::size_t l = 0; l < loops.size(); ++l) {
    std::vector<int> buffers;
    for (const int buffer : result.own_buffers) buffers.push_back(pairs[l].partner(buffer));
    result.entries.push_back(entry_of(*loops[l], buffers));
  }
  std::stable_sort(result.entries.begin(), result.entries.end(), [](const LoopEntry& a, const LoopEntry& b) {
    return std::pair(a.deal.first_block, -a.deal.blocks()) < std::pair(b.deal.first_block, -b.deal.blocks());
  });
  return result;
}

/// Whether block ranges that start apart lie apart, so that a block's entries follow one another.
bool lanes_apart(const TaskLoop& loop) {
  std::int64_t first = 0, end = 0;
  for (const LoopEntry& entry : loop.entries) {
    if (entry.deal.first_block != first && entry.deal.first_block < end) return false;
    first = entry.deal.first_block;
    end = std::max(end, entry.deal.end_block());
  }
  return true;
}

void share(const LoopComparison& compare, Phase& phase) {
  std::unordered_map<std::size_t, std::vector<std::vector<std::size_t>>> classes;  // by hash
  std::vector<std::size_t> by_rows;
  for (std::size_t l = 0; l < phase.loops.size(); ++l)
    if (has_work(phase.loops[l])) by_rows.push_back(l);
  std::stable_sort(by_rows.begin(), by_rows.end(),
                   [&](std::size_t a, std::size_t b) { return more_rows(phase.loops[a], phase.loops[b]); });
  for (const std::size_t l : by_rows) {
    auto& same_hash = classes[compare.hash(phase.loops[l])];
    const auto found = std::find_if(same_hash.begin(), same_hash.end(), [&](const auto& loops) {
      return compare.pairs(phase.loops[loops.front()], phase.loops[l]).has_value();
    });
    if (found == same_hash.end())
      same_hash.push_back({l});
    else
      found->push_back(l);
  }
  std::vector<bool> gone(phase.loops.size(), false);
  for (auto& [hash, same_hash] : classes)
    for (std::vector<std::size_t>& loops : same_hash) {
      if (loops.size() < kFewestEntries) continue;
      std::vector<const TaskLoop*> members;
      for (const std::size_t l : loops) members.push_back(&phase.loops[l]);
      TaskLoop together = shared(compare, members);
      if (!lanes_apart(together)) continue;
      for (const std::size_t l : loops) gone[l] = true;
      const std::size_t first = *std::min_element(loops.begin(), loops.end());
      gone[first] = false;
      phase.loops[first] = std::move(together);
    }
  std::vector<TaskLoop> left;
  for (std::size_t l = 0; l < phase.loops.size(); ++l)
    if (!gone[l]) left.push_back(std::move(phase.loops[l]));
  phase.loops = std::move(left);
}

}  // namespace

void share_bodies(const Graph& graph, Schedule& kernel) {
  const LoopComparison compare(graph, kernel);
  for (Phase& phase : kernel.phases)
    if (phase.loops.size() >= kFewestEntries) share(compare, phase);
}

}  // namespace stitchwork
