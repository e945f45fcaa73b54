#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/graph/rewrite.h"
#include "core/graph/window.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

/// Newer exporters name a callee's scopes from the call on ("max"), older ones from the module on
/// ("jit(f)/jit(relu)/max"): only the former lack the call's own.
std::string scoped(const std::string& call, const std::string& inner) {
  if (call.empty() || inner.empty() || inner.substr(0, inner.find('/')) == call.substr(0, call.find('/'))) {
    return inner;
  }
  return call + "/" + inner;
}

bool inlines(const Node& node) { return node.op == Op::kCall || node.op == Op::kFusion; }

/// Rebuilds a computation with its callees' nodes in place of calls and fusions.
class Inliner {
 public:
  Inliner(const Graph& graph, const Computation& computation, OpTrace* trace)
      : graph_(graph), computation_(computation), trace_(trace), builder_(computation.name) {}

  Computation run() {
    for (const Node& node : computation_.nodes)
      if (!inlines(node)) builder_.reserve(node.name);
    std::vector<NodeId> first, place;
    for (const Node& node : computation_.nodes) {
      first.push_back(builder_.peek().size());
      Node copy = node;
      for (NodeId& operand : copy.operands) operand = place[static_cast<std::size_t>(operand)];
      place.push_back(inlines(node) ? splice(node, copy.operands) : builder_.add_reserved(std::move(copy)));
    }
    first.push_back(builder_.peek().size());
    Computation result = std::move(builder_).finish(place[static_cast<std::size_t>(computation_.root)]);
    result.attributes = computation_.attributes;
    result.imported = moved(computation_.imported, first, place);
    result.imported.insert(result.imported.end(), imported_.begin(), imported_.end());
    return result;
  }

 private:
  /// Copies the callee's nodes, its parameters standing for `arguments`. Returns where its root went.
  NodeId splice(const Node& call, const std::vector<NodeId>& arguments) {
    const Computation& callee = graph_.computation(applied(call));
    std::vector<NodeId> first, place;
    for (const Node& node : callee.nodes) {
      first.push_back(builder_.peek().size());
      if (node.op == Op::kParameter) {
        place.push_back(arguments.at(static_cast<std::size_t>(node.attrs.parameter_number)));
        continue;
      }
      Node copy = node;
      copy.metadata.op_name = scoped(call.metadata.op_name, node.metadata.op_name);
      for (NodeId& operand : copy.operands) operand = place[static_cast<std::size_t>(operand)];
      place.push_back(builder_.add(std::move(copy)));
    }
    first.push_back(builder_.peek().size());
    const NodeId root = place[static_cast<std::size_t>(callee.root)];
    if (trace_ != nullptr) tell(call, callee, place);
    if (call.op == Op::kFusion) {
      import(call, first.front(), root);
    } else {
      const std::vector<ImportedKernel> inner = moved(callee.imported, first, place);
      imported_.insert(imported_.end(), inner.begin(), inner.end());
    }
    return root;
  }

  void tell(const Node& call, const Computation& callee, const std::vector<NodeId>& place) {
    const auto name_at = [&](NodeId id) {
      return OpName{computation_.name, builder_.peek().node(place[static_cast<std::size_t>(id)]).name};
    };
    for (const Node& node : callee.nodes)
      trace_->add(OpChange::kCopied, {callee.name, node.name}, {name_at(node.id)});
    trace_->add(OpChange::kInlined, {computation_.name, call.name}, {name_at(callee.root)});
  }

  /// The nodes from `first` on are those of `fusion`.
  void import(const Node& fusion, NodeId first, NodeId root) {
    const Computation& built = builder_.peek();
    ImportedKernel kernel{fusion.name, std::string(other_attribute(fusion, "kind")), {}, {root}};
    for (NodeId id = first; id < built.size(); ++id)
      if (built.node(id).op != Op::kTuple) kernel.ops.push_back(id);
    if (built.node(root).op == Op::kTuple) kernel.roots = built.node(root).operands;
    sort_unique(kernel.roots);
    if (!kernel.ops.empty()) imported_.push_back(std::move(kernel));
  }

  const Graph& graph_;
  const Computation& computation_;
  OpTrace* trace_;
  ComputationBuilder builder_;
  std::vector<ImportedKernel> imported_;
};

}  // namespace

namespace {

/// Calls of calls multiply: a page of text could ask for all memory. Ten times the largest module that is
/// planned in practice, about 2 GB.
constexpr std::int64_t kMaxInlined = 2'000'000;

void require_bounded(const Graph& graph) {
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;
  for (const Computation& computation : graph.computations) {
    std::int64_t size = 0;
    for (const Node& node : computation.nodes) {
      size += inlines(node) ? sizes[static_cast<std::size_t>(applied(node))] : 1;
      if (total + size > kMaxInlined)
        throw Error(graph.source, node.line, 0,
                    fmt::format("with its calls inlined the module has more than {} ops", kMaxInlined),
                    "export the part of interest alone");
    }
    total += size;
    sizes.push_back(size);
  }
}

}  // namespace

Graph inline_calls(const Graph& graph, OpTrace* trace) {
  require_bounded(graph);
  Graph result = head_of(graph);
  // Callees come first, so what is spliced in has no calls left.
  for (const Computation& computation : graph.computations) {
    result.computations.push_back(Inliner(result, computation, trace).run());
  }
  return result;
}

}  // namespace stitchwork
