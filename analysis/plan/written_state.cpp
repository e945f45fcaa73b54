#include "analysis/plan/written_state.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/plan/control_flow.h"
#include "core/evaluate/evaluator.h"
#include "core/passes/trip_count.h"

namespace stitchwork {
namespace {

/// A choice, not measured: a scan of a long sequence has some thousand; each trip takes microseconds here.
constexpr std::int64_t kMostTrips = 1 << 14;

/// The scalars of a loop's body in one trip after the other.
class Scalars {
 public:
  Scalars(const Graph& graph, const Node& loop)
      : graph_(graph), body_(graph.computation(loop.attrs.computations.at(1))) {
    const Computation& caller = graph.entry_computation();
    const Node& start = caller.node(loop.operands.at(0));
    if (start.op != Op::kTuple) return;
    for (std::size_t i = 0; i < start.operands.size(); ++i)
      if (const Node& node = caller.node(start.operands[i]); node.op == Op::kConstant && is_scalar(node))
        state_.emplace(static_cast<std::int64_t>(i), *node.attrs.literal);
  }

  /// Of this trip; nothing where it does not follow from the state's constants alone.
  const std::optional<Literal>& value(NodeId id) {
    if (const auto known = values_.find(id); known != values_.end()) return known->second;
    return values_.insert_or_assign(id, computed(body_.node(id))).first->second;
  }

  void next_trip() {
    std::map<std::int64_t, Literal> next;
    const Node& root = body_.node(body_.root);
    for (const auto& [element, literal] : state_)
      if (const auto& then = value(root.operands.at(static_cast<std::size_t>(element))))
        next.emplace(element, *then);
    state_ = std::move(next);
    values_.clear();
  }

 private:
  static bool is_scalar(const Node& node) {
    return !node.shape.is_tuple && node.shape.elements_count() == 1 && is_executable(node.shape.dtype) &&
           (node.op != Op::kConstant || node.attrs.literal != nullptr);
  }

  std::optional<Literal> computed(const Node& node) {
    if (node.op == Op::kGetTupleElement && node.operands[0] == body_.parameters.at(0)) {
      const auto known = state_.find(node.attrs.tuple_index);
      return known == state_.end() ? std::nullopt : std::optional(known->second);
    }
    const bool computes = node.op == Op::kConstant || node.op == Op::kReshape || is_elementwise(node.op);
    if (!computes || !is_scalar(node) || node.op == Op::kMap) return std::nullopt;
    std::vector<const Literal*> operands;
    for (const NodeId operand : node.operands) {
      const std::optional<Literal>& known = value(operand);  // a map's values stay where they are
      if (!known) return std::nullopt;
      operands.push_back(&*known);
    }
    return evaluate_node(graph_, body_, node, operands);
  }

  const Graph& graph_;
  const Computation& body_;
  std::map<std::int64_t, Literal> state_;  ///< by element: the scalars that are known
  std::unordered_map<NodeId, std::optional<Literal>> values_;
};

/// Which indices of the one dimension in which slices are smaller than their array have been written.
struct Written {
  NodeId update = kNoNode;
  int element = 0;
  std::size_t dimension = 0;
  std::int64_t size = 0;  ///< of a slice
  std::vector<bool> indices;

  bool all() const { return std::ranges::all_of(indices, std::identity()); }
  void add(std::int64_t start) {
    start = std::clamp<std::int64_t>(start, 0, std::ssize(indices) - size);
    std::fill_n(indices.begin() + start, size, true);
  }
};

/// Nothing where they differ in several dimensions.
std::optional<Written> nothing_of(const Computation& body, const Node& update) {
  const std::vector<std::int64_t>&array = update.attrs.updated->shape.dims, &slice = update.shape.dims;
  Written written{.update = update.id,
                  .element = static_cast<int>(body.node(update.attrs.updated->op).attrs.tuple_index)};
  std::size_t smaller = 0;
  for (std::size_t d = 0; d < array.size(); ++d)
    if (array[d] != slice[d]) written.dimension = d, ++smaller;
  if (smaller != 1 || update.operands.size() != array.size() + 1) return std::nullopt;
  written.size = slice[written.dimension];
  written.indices.assign(static_cast<std::size_t>(array[written.dimension]), false);
  return written;
}

std::vector<int> find(const Graph& graph, const Node& loop) {
  const std::optional<std::int64_t> trips = trip_count(graph, graph.entry_computation(), loop);
  if (!is_counted(loop, trips) || *trips > kMostTrips) return {};
  const Graph body = entered(graph, loop.attrs.computations.at(1));
  std::vector<Written> arrays;
  for (const Node& node : body.entry_computation().nodes)
    if (node.attrs.updated != nullptr)
      if (auto written = nothing_of(body.entry_computation(), node)) arrays.push_back(std::move(*written));
  Scalars scalars(graph, loop);
  for (std::int64_t trip = 0; trip < *trips && !arrays.empty(); ++trip) {
    std::erase_if(arrays, [&](Written& array) {
      const Node& update = body.entry_computation().node(array.update);
      const std::optional<Literal>& start = scalars.value(update.operands[1 + array.dimension]);
      if (start) array.add(start->get_int(0));
      return !start;
    });
    scalars.next_trip();
  }
  std::vector<int> elements;
  for (const Written& array : arrays)
    if (array.all()) elements.push_back(array.element);
  std::ranges::sort(elements);
  return elements;
}

/// Of the loops of a computation.
class KnownLoops {
 public:
  const std::vector<int>& of(const Graph& graph, const Node& loop) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = known_.try_emplace(loop.id);
    if (fresh) at->second = find(graph, loop);
    return at->second;
  }

 private:
  std::mutex mutex_;
  std::map<NodeId, std::vector<int>> known_;
};

}  // namespace

const std::vector<int>& wholly_written(const Graph& graph, const Node& loop) {
  return graph.entry_computation().derived.get<KnownLoops>().of(graph, loop);
}

}  // namespace stitchwork
