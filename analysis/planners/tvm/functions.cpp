#include "analysis/planners/tvm/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"

namespace stitchwork::tvm {
namespace {

/// Values that something else than a kernel reads: results, operands of calls and of device copies.
std::set<NodeId> read_outside(const Computation& computation, const std::set<NodeId>& in_kernels) {
  std::set<NodeId> result;
  const auto add = [&](const std::vector<NodeId>& values) { result.insert(values.begin(), values.end()); };
  add(values_read(computation, computation.root));
  for (const Node& node : computation.nodes) {
    const PlanRole role = plan_role(node);
    const bool call = role == PlanRole::kLibrary || role == PlanRole::kOpaque;
    if (call || (node.op == Op::kCopy && !in_kernels.contains(node.id)))
      add(library_inputs(computation, node));
  }
  return result;
}

std::set<NodeId> ops_of(const std::vector<Function>& functions) {
  std::set<NodeId> result;
  for (const Function& f : functions) result.insert(f.ops.begin(), f.ops.end());
  return result;
}

/// Values a function reads from memory.
std::vector<NodeId> inputs(const Computation& computation, const Function& function) {
  std::set<NodeId> values;
  for (NodeId op : function.ops)
    for (NodeId operand : computation.node(op).operands) {
      const NodeId value = buffer_of(computation, operand);
      if (!is_immediate(computation, operand) &&
          !std::binary_search(function.ops.begin(), function.ops.end(), value))
        values.insert(value);
    }
  return {values.begin(), values.end()};
}

Function function_of(const ForwardGraph& graph, const FusedGroup& group) {
  const Computation& computation = *graph.computation;
  Function function;
  function.inlinable = true;
  for (int node : group.nodes) {
    const Node& op = computation.node(graph[node].op);
    if (plan_role(op) != PlanRole::kMemory || graph[node].kind == Kind::kTuple) continue;
    function.ops.push_back(op.id);
    function.inlinable = function.inlinable && graph[node].kind <= Kind::kInjective;
  }
  std::sort(function.ops.begin(), function.ops.end());
  function.root = buffer_of(computation, graph[group.root].op);
  return function;
}

/// A function that takes in others.
struct Growing {
  Function function;
  std::optional<int> maps;  ///< its loop computes no op under more index maps; none: not known yet
};

/// Sets `maps`, or returns an op that the loop computes under more than kMostMaps.
std::optional<NodeId> find_maps(const Computation& computation, Growing& of) {
  const auto kernel = inlined_within_maps(computation, of.function.ops, {of.function.root}, of.function.root,
                                          natural_mapping(computation, computation.node(of.function.root)));
  if (const auto* op = std::get_if<NodeId>(&kernel)) return *op;
  of.maps = most_maps(computation, evaluations(computation, std::get<KernelPlan>(kernel)));
  return std::nullopt;
}

/// `user` with the ops of `own` computed in it. At each place that it reads them its loop may read them under
/// as many index maps as it computes the reader.
Growing joined(const Computation& computation, const Growing& user, const Growing& own) {
  Growing result{{{}, user.function.root, user.function.inlinable}, {}};
  std::ranges::set_union(user.function.ops, own.function.ops, std::back_inserter(result.function.ops));
  if (!user.maps || !own.maps) return result;
  int places = 0;
  for (const NodeId op : user.function.ops)
    for (const NodeId operand : computation.node(op).operands)
      places += buffer_of(computation, operand) == own.function.root ? 1 : 0;
  result.maps = std::max(*user.maps, *user.maps * places * *own.maps);
  return result;
}

/// Whether the readers of a function, grown by its ops, take its place: they may read no more than storing
/// its value and reading it back moves, be no larger than TVM's functions, and compute no op at too many
/// indices.
Verdict verdict_of_copies(const Computation& computation, const Function& own,
                          const std::vector<NodeId>& reads, std::vector<Growing>& grown) {
  const auto bytes = [&](NodeId value) {
    return static_cast<double>(computation.node(value).shape.byte_size());
  };
  double in = 0;
  for (NodeId value : reads) in += bytes(value);
  const double copies = in * static_cast<double>(grown.size());
  const double stored = in + bytes(own.root) * static_cast<double>(grown.size() + 1);
  const std::string moved =
      fmt::format("{} copies read {:.0f} bytes; storing it and reading it back moves {:.0f}", grown.size(),
                  copies, stored);
  if (copies > stored) return Verdict::no("tvm.duplicate-reads-more", moved);
  for (const Growing& user : grown)
    if (std::ssize(user.function.ops) > kMaxNodes)
      return Verdict::no("tvm.too-many-ops", fmt::format("the function would have {} ops, {} allowed",
                                                         user.function.ops.size(), kMaxNodes));
  for (Growing& user : grown) {
    if (user.maps && *user.maps <= kMostMaps) continue;
    if (const auto op = find_maps(computation, user))
      return Verdict::no(
          "tvm.duplicate-indices",
          fmt::format("{} would be computed at more than {} indices of the loop of {}",
                      computation.node(*op).name, kMostMaps, computation.node(user.function.root).name));
  }
  return Verdict::yes("tvm.duplicated", moved);
}

}  // namespace

std::vector<Function> functions(const ForwardGraph& graph, const std::vector<FusedGroup>& groups,
                                Recorder& recorder) {
  const Computation& computation = *graph.computation;
  std::vector<Function> result;
  for (const FusedGroup& group : groups) {
    Function function = function_of(graph, group);
    if (function.ops.empty()) continue;
    const auto call = std::find_if(group.nodes.begin(), group.nodes.end(), [&](int node) {
      return plan_role(computation.node(graph[node].op)) == PlanRole::kLibrary;
    });
    if (call != group.nodes.end()) {
      recorder.add("functions", graph.name(group.root), graph.name(*call), [&] {
        const std::int64_t bytes = 2 * computation.node(graph[*call].op).shape.byte_size();
        return Verdict::no(
            "tvm.library-epilogue",
            fmt::format("TVM computes these {} ops in the call's own kernel, without {} bytes of traffic; "
                        "the library's call has no such epilogue here, so they are a kernel of their own",
                        function.ops.size(), bytes));
      });
    }
    // A copy alone is a device-to-device copy, not a kernel.
    if (function.ops.size() == 1 && computation.node(function.root).op == Op::kCopy) continue;
    result.push_back(std::move(function));
  }
  // Constants of more than one element that only calls or results need are filled by a kernel.
  for (NodeId value : read_outside(computation, ops_of(result)))
    if (is_immediate(computation, value) && plan_role(computation.node(value)) == PlanRole::kMemory)
      result.push_back({{value}, value, false});
  std::sort(result.begin(), result.end(),
            [](const Function& a, const Function& b) { return a.root < b.root; });
  return result;
}

std::vector<Function> functions(const Computation& computation, Recorder& recorder) {
  const ForwardGraph forward = forward_graph(computation);
  return functions(forward, partition(forward, post_dominators(forward), recorder), recorder);
}

KernelPlan kernel_of(const Computation& computation, const Function& function) {
  return inlined_kernel(computation, function.ops, {function.root}, function.root,
                        natural_mapping(computation, computation.node(function.root)));
}

std::vector<Function> duplicate_cheap(const Computation& computation, std::vector<Function> functions,
                                      Recorder& recorder) {
  const std::set<NodeId> outside = read_outside(computation, ops_of(functions));
  std::map<NodeId, std::set<std::size_t>> readers;
  for (std::size_t f = 0; f < functions.size(); ++f)
    for (NodeId value : inputs(computation, functions[f])) readers[value].insert(f);
  std::vector<Growing> growing;
  for (Function& function : functions) growing.push_back({std::move(function), {}});
  // Readers first: what they read grows by the copies they take in.
  for (std::size_t f = growing.size(); f-- > 0;) {
    Growing& own = growing[f];
    const NodeId root = own.function.root;
    const std::set<std::size_t> users = readers[root];
    if (!own.function.inlinable || users.empty() || outside.contains(root)) continue;
    const std::vector<NodeId> reads = inputs(computation, own.function);
    if (!own.maps) find_maps(computation, own);
    std::vector<Growing> grown;
    for (std::size_t user : users) {
      if (!growing[user].maps) find_maps(computation, growing[user]);
      grown.push_back(joined(computation, growing[user], own));
    }
    const Verdict verdict = verdict_of_copies(computation, own.function, reads, grown);
    for (std::size_t user : users)
      recorder.add("functions", computation.node(root).name,
                   computation.node(growing[user].function.root).name, [&] { return verdict; });
    if (!verdict.ok) continue;
    std::size_t next = 0;
    for (std::size_t user : users) {
      growing[user] = std::move(grown[next++]);
      for (NodeId value : reads) readers[value].insert(user);
    }
    for (NodeId value : reads) readers[value].erase(f);
    own.function.ops.clear();
  }
  functions.clear();
  for (Growing& of : growing)
    if (!of.function.ops.empty()) functions.push_back(std::move(of.function));
  return functions;
}

}  // namespace stitchwork::tvm
