#include "core/passes/trip_count.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

using Wide = __int128_t;

/// As it is or, in older text, as a quoted string; null where there is none.
nlohmann::json backend_config(const Node& loop) {
  nlohmann::json config = nlohmann::json::parse(other_attribute(loop, "backend_config"), nullptr, false);
  if (config.is_string()) config = nlohmann::json::parse(config.get<std::string>(), nullptr, false);
  return config;
}

/// {"known_trip_count":{"n":"5"}}
std::optional<std::int64_t> known(const Node& loop) {
  const nlohmann::json config = backend_config(loop);
  if (!config.is_object() || !config.contains("known_trip_count")) return std::nullopt;
  const nlohmann::json& count = config["known_trip_count"];
  if (!count.is_object() || !count.contains("n")) return std::nullopt;
  const nlohmann::json& n = count["n"];
  std::int64_t value = -1;
  if (n.is_number_integer()) {
    value = n.get<std::int64_t>();
  } else if (n.is_string()) {
    const std::string digits = n.get<std::string>();
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ptr !=
        digits.data() + digits.size())
      return std::nullopt;
  }
  return value >= 0 ? std::optional(value) : std::nullopt;
}

/// The op behind copies, and conversions to a type that holds every value.
const Node& behind_copies(const Computation& computation, NodeId id) {
  for (;;) {
    const Node& node = computation.node(id);
    if (node.shape.is_tuple || node.operands.size() != 1) return node;
    const Shape& from = computation.node(node.operands[0]).shape;
    const bool widens = node.op == Op::kConvert && is_integral(node.shape.dtype) && is_integral(from.dtype) &&
                        is_signed_integer(node.shape.dtype) == is_signed_integer(from.dtype) &&
                        bit_width(node.shape.dtype) >= bit_width(from.dtype);
    const bool renames = (node.op == Op::kReshape || node.op == Op::kBitcast) &&
                         from.dtype == node.shape.dtype && !from.is_tuple && from.elements_count() == 1;
    if (node.op != Op::kCopy && !widens && !renames) return node;
    id = node.operands[0];
  }
}

std::optional<Wide> constant(const Computation& computation, NodeId id) {
  const Node& node = behind_copies(computation, id);
  if (node.op != Op::kConstant || node.attrs.literal == nullptr || !is_integral(node.shape.dtype) ||
      !is_executable(node.shape.dtype) || node.shape.elements_count() != 1)
    return std::nullopt;
  if (node.shape.dtype == DType::kU64) return static_cast<std::uint64_t>(node.attrs.literal->get_int(0));
  return node.attrs.literal->get_int(0);
}

/// Which element of the state (the computation's one parameter) a value is; -1: the state itself, no tuple.
std::optional<std::int64_t> element(const Computation& computation, NodeId id) {
  const Node& node = behind_copies(computation, id);
  if (node.op == Op::kParameter && !node.shape.is_tuple) return -1;
  if (node.op == Op::kGetTupleElement && computation.node(node.operands[0]).op == Op::kParameter)
    return node.attrs.tuple_index;
  return std::nullopt;
}

/// What element of a tuple, or the value itself for -1.
NodeId part(const Computation& computation, NodeId state, std::int64_t which) {
  if (which < 0) return state;
  const Node& node = computation.node(state);
  return node.op == Op::kTuple ? node.operands[static_cast<std::size_t>(which)] : kNoNode;
}

Comparison swapped(Comparison how) {
  switch (how) {
    case Comparison::kLt:
      return Comparison::kGt;
    case Comparison::kLe:
      return Comparison::kGe;
    case Comparison::kGt:
      return Comparison::kLt;
    case Comparison::kGe:
      return Comparison::kLe;
    default:
      return how;
  }
}

/// Iterations of `for (i = first; i HOW bound; i += step)`.
std::optional<Wide> iterations(Wide first, Comparison how, Wide bound, Wide step) {
  const Wide distance = bound - first;
  const bool upwards = how == Comparison::kLt || how == Comparison::kLe;
  switch (how) {
    case Comparison::kEq:
      return distance == 0 ? (step != 0 ? std::optional<Wide>(1) : std::nullopt) : 0;
    case Comparison::kNe:
      if (distance == 0) return 0;
      if (step == 0 || distance % step != 0 || distance / step < 0) return std::nullopt;
      return distance / step;
    default:
      break;
  }
  const bool inclusive = how == Comparison::kLe || how == Comparison::kGe;
  const Wide room = (upwards ? distance : -distance) + (inclusive ? 1 : 0), stride = upwards ? step : -step;
  if (room <= 0) return 0;
  if (stride <= 0) return std::nullopt;
  return (room + stride - 1) / stride;
}

Wide largest(DType type) { return (Wide{1} << (bit_width(type) - (is_signed_integer(type) ? 1 : 0))) - 1; }

class CountedLoop {
 public:
  CountedLoop(const Graph& graph, const Computation& computation, const Node& loop)
      : computation_(computation),
        initial_(loop.operands[0]),
        condition_(graph.computation(loop.attrs.computations.at(0))),
        body_(graph.computation(loop.attrs.computations.at(1))) {}

  std::optional<std::int64_t> count() const {
    const Node& root = behind_copies(condition_, condition_.root);
    if (root.op != Op::kCompare) return std::nullopt;
    if (const auto found = count(root.operands[0], *root.attrs.comparison, root.operands[1])) return found;
    return count(root.operands[1], swapped(*root.attrs.comparison), root.operands[0]);
  }

 private:
  std::optional<std::int64_t> count(NodeId value, Comparison how, NodeId limit) const {
    const std::optional<std::int64_t> counter = element(condition_, value);
    const std::optional<Wide> bound = fixed(limit);
    if (!counter || !bound) return std::nullopt;
    const NodeId start = part(computation_, initial_, *counter);
    const NodeId next = part(body_, body_.root, *counter);
    if (start == kNoNode || next == kNoNode) return std::nullopt;
    const std::optional<Wide> first = constant(computation_, start), by = step(next, *counter);
    if (!first || !by) return std::nullopt;
    const std::optional<Wide> trips = iterations(*first, how, *bound, *by);
    if (!trips || *trips > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    const DType type = body_.node(next).shape.dtype;
    const Wide last = *first + *trips * *by, most = largest(type);
    if (last > most || last < (is_signed_integer(type) ? -most - 1 : 0)) return std::nullopt;
    return static_cast<std::int64_t>(*trips);
  }

  /// A constant of the condition, or an element of the state that starts as one and that the body passes on.
  std::optional<Wide> fixed(NodeId limit) const {
    if (const auto value = constant(condition_, limit)) return value;
    const std::optional<std::int64_t> which = element(condition_, limit);
    if (!which || *which < 0) return std::nullopt;
    const NodeId passed = part(body_, body_.root, *which), start = part(computation_, initial_, *which);
    if (passed == kNoNode || start == kNoNode || element(body_, passed) != which) return std::nullopt;
    return constant(computation_, start);
  }

  /// What the body adds to the element.
  std::optional<Wide> step(NodeId next, std::int64_t counter) const {
    const Node& sum = behind_copies(body_, next);
    if (sum.op != Op::kAdd && sum.op != Op::kSubtract) return std::nullopt;
    const auto of = [&](std::size_t i) { return sum.operands[i]; };
    if (element(body_, of(0)) == counter)
      if (const auto by = constant(body_, of(1))) return sum.op == Op::kAdd ? *by : -*by;
    if (sum.op == Op::kAdd && element(body_, of(1)) == counter) return constant(body_, of(0));
    return std::nullopt;
  }

  const Computation& computation_;
  NodeId initial_;
  const Computation& condition_;
  const Computation& body_;
};

}  // namespace

std::optional<std::int64_t> trip_count(const Graph& graph, const Computation& computation, const Node& loop) {
  if (const auto count = known(loop)) return count;
  return CountedLoop(graph, computation, loop).count();
}

bool trips_are_assumed(const Node& loop) {
  const nlohmann::json config = backend_config(loop);
  return config.is_object() && config.contains("assumed") && config["assumed"] == true;
}

namespace {

/// The computations that the entry reaches through loops and branches, the entry first.
std::vector<ComputationId> running(const Graph& graph) {
  std::vector<ComputationId> found{graph.entry};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const Node& node : graph.computation(found[i]).nodes) {
      if (node.op != Op::kWhile && node.op != Op::kConditional) continue;
      for (const ComputationId callee : node.attrs.computations)
        if (std::find(found.begin(), found.end(), callee) == found.end()) found.push_back(callee);
    }
  return found;
}

}  // namespace

std::vector<LoopTrips> loops(const Graph& graph) {
  std::vector<LoopTrips> result;
  for (const ComputationId id : running(graph)) {
    const Computation& computation = graph.computation(id);
    for (const Node& node : computation.nodes)
      if (node.op == Op::kWhile)
        result.push_back({computation.name, node.name, trip_count(graph, computation, node)});
  }
  return result;
}

std::string to_text(const std::vector<LoopTrips>& loops) {
  std::string text;
  for (const LoopTrips& loop : loops) {
    text += fmt::format("{}{} ", text.empty() ? "" : ", ", loop.op);
    text += loop.trips ? counted(*loop.trips, "trip")
                       : fmt::format("trips unknown: counted once (--trips {}=N)", loop.op);
  }
  return text;
}

Graph with_trips(Graph graph, const std::map<std::string, std::int64_t>& trips) {
  const std::vector<ComputationId> ids = running(graph);
  for (const auto& [name, count] : trips) {
    bool found = false;
    for (const ComputationId id : ids) {
      Computation& computation = graph.computations[static_cast<std::size_t>(id)];
      const NodeId at = computation.find(name);
      if (at == kNoNode || computation.node(at).op != Op::kWhile) continue;
      found = true;
      if (const auto told = trip_count(graph, computation, computation.node(at))) {
        if (*told == count) continue;
        throw Error(fmt::format("--trips {}={}: the model says {}", name, count, counted(*told, "trip")),
                    "leave it out: known trips are counted as they are");
      }
      auto& other = computation.nodes[static_cast<std::size_t>(at)].attrs.other;
      std::erase_if(other, [](const auto& pair) { return pair.first == "backend_config"; });
      other.emplace_back("backend_config",
                         fmt::format(R"({{"known_trip_count":{{"n":"{}"}},"assumed":true}})", count));
    }
    if (found) continue;
    std::vector<std::string> names;
    for (const LoopTrips& loop : loops(graph)) names.push_back(loop.op);
    throw Error(fmt::format("--trips {}: no loop is called so", name),
                names.empty() ? std::string("the model has no loop")
                              : fmt::format("its loops: {}", fmt::join(names, ", ")));
  }
  return graph;
}

}  // namespace stitchwork
