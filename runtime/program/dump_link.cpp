// The optimised module of a dump, its ops linked to the model's.
#include "runtime/program/dump_link.h"

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "runtime/program/dump_calls.h"
#include "runtime/program/link_loops.h"

namespace stitchwork {
namespace {

/// What an op reads and gives shapes by, for people: "f32[64,96] maximum".
std::string described(const Node& node) {
  return fmt::format("{} {}", to_text(node.shape), def(node.op).name);
}

using Ids = std::vector<NodeId>;

/// By op of the entry of `given`: those of that of `model` that compute the same.
std::vector<Ids> same_ops(const Graph& given, const Graph& model) {
  const Computation &theirs = given.entry_computation(), &ours = model.entry_computation();
  const Ids equal = equal_values(given, model), back = equal_values(model, given);
  std::vector<Ids> result(theirs.nodes.size());
  for (const Node& node : ours.nodes)
    if (const NodeId of = back[at(node.id)]; of != kNoNode) result[at(of)].push_back(node.id);
  // Several of one value: the first has them.
  for (const Node& node : theirs.nodes)
    if (result[at(node.id)].empty() && equal[at(node.id)] != kNoNode)
      result[at(node.id)] = result[at(back[at(equal[at(node.id)])])];
  return result;
}

/// By computation of what the compiler was given: the model's that runs the same, and by op the model's ops.
struct SameComputation {
  ComputationId model = -1;
  std::vector<Ids> ops;
};
using SameComputations = std::map<ComputationId, SameComputation>;

void find_same(const Graph& given, const Graph& model, ComputationId theirs, ComputationId ours,
               SameComputations& found) {
  if (found.contains(theirs)) return;
  const std::vector<Ids> ops = same_ops(with_entry(given, theirs), with_entry(model, ours));
  found[theirs] = {ours, ops};
  for (const Node& node : given.computation(theirs).nodes) {
    if (!is_control(node) || ops[at(node.id)].empty()) continue;
    const Node& same = model.computation(ours).node(ops[at(node.id)].front());
    for (std::size_t i = 0; i < std::min(node.attrs.computations.size(), same.attrs.computations.size()); ++i)
      find_same(given, model, node.attrs.computations[i], same.attrs.computations[i], found);
  }
}

void require_same_results(const Dump& dump, const Graph& given, const Graph& optimised) {
  const Computation &a = given.entry_computation(), &b = optimised.entry_computation();
  if (a.parameters.size() != b.parameters.size() || !a.node(a.root).shape.compatible(b.node(b.root).shape))
    throw Error(dump.optimised, 0, 0,
                fmt::format("is not made of {}: parameters or results differ", dump.model),
                "make the dump anew");
}

/// What the links of one computation say of the model's own ops.
void add_links(const LinkedComputations& linked, const SameComputation& same, const Graph& model,
               rewriting::Origins& origins, std::map<std::string, std::string>& gone) {
  const Computation& ours = model.computation(same.model);
  for (const Ids& of : linked.links.origins.of) {
    Ids& now = origins.of.emplace_back();
    for (const NodeId op : of)
      for (const NodeId own : same.ops[at(op)]) insert_sorted(now, own);
  }
  origins.now.assign(ours.nodes.size(), kNoNode);
  for (std::size_t op = 0; op < same.ops.size(); ++op)
    for (const NodeId own : same.ops[op])
      if (linked.links.origins.now[op] != kNoNode) origins.now[at(own)] = linked.links.origins.now[op];
  const auto placed = [&](NodeId own) {
    return std::ranges::any_of(origins.of, [&](const Ids& of) { return contains_sorted(of, own); });
  };
  for (const auto& [op, why] : linked.links.gone)
    for (const NodeId own : same.ops[at(op)])
      if (!placed(own)) gone[ours.node(own).name] = why;
}

/// Origins are looked up by the names of computations: each is called as the model's that it is linked to.
void rename(Graph& graph, const Graph& model, const std::map<ComputationId, std::string>& names) {
  std::set<std::string> taken;
  for (const Computation& computation : model.computations) taken.insert(computation.name);
  for (std::size_t c = 0; c < graph.computations.size(); ++c) {
    std::string& name = graph.computations[c].name;
    if (const auto known = names.find(static_cast<ComputationId>(c)); known != names.end())
      name = known->second;
    else
      while (!taken.insert(name).second) name += ".compiled";
  }
}

bool is_computed(const Node& node) { return node.op != Op::kParameter && node.op != Op::kConstant; }

}  // namespace

void require_dump_of(const Dump& dump, const Graph& given, const Graph& model) {
  const Computation &theirs = given.entry_computation(), &ours = model.entry_computation();
  const auto refuse = [&](const std::string& what) {
    throw Error(dump.script.file, 0, 0, fmt::format("is no dump of {}: {}", model.source, what),
                "make the dump anew");
  };
  if (theirs.parameters.size() != ours.parameters.size())
    refuse(
        fmt::format("it has {} parameters, the model {}", theirs.parameters.size(), ours.parameters.size()));
  std::vector<Shape> shapes;
  for (const NodeId id : ours.parameters) shapes.push_back(ours.node(id).shape);
  if (const std::size_t arrays = arrays_of(shapes).size(); dump.parameters.size() != arrays)
    refuse(fmt::format("it has {} parameters, the model {}", dump.parameters.size(), arrays));
  for (std::size_t i = 0; i < ours.parameters.size(); ++i) {
    const Shape &a = theirs.node(theirs.parameters[i]).shape, &b = ours.node(ours.parameters[i]).shape;
    if (!a.compatible(b))
      refuse(fmt::format("parameter {} is {}, in the model {}", i, to_text(a), to_text(b)));
  }
  const std::vector<NodeId> equal = equal_values(given, model);
  if (equal[at(theirs.root)] == kNoNode)
    for (const Node& node : theirs.nodes)  // operands come first
      if (equal[at(node.id)] == kNoNode)
        refuse(fmt::format("the model does not compute its {} ({})", node.name, described(node)));
}

std::string LinkedDump::kind_of(const std::string& instruction) const {
  const auto home = std::ranges::find_if(raw.computations, [&](const Computation& computation) {
    return computation.find(instruction) != kNoNode;
  });
  if (home == raw.computations.end()) return "";
  const Node& node = home->node(home->find(instruction));
  if (node.op != Op::kFusion) return std::string(def(node.op).name);
  for (const auto& [key, value] : node.attrs.other) {
    if (key != "backend_config") continue;
    constexpr std::string_view kKind = "\"kind\":\"__";
    if (const std::size_t from = value.find(kKind); from != std::string::npos) {
      const std::size_t start = from + kKind.size();
      return value.substr(start, value.find('"', start) - start) + " fusion";
    }
  }
  for (const auto& [key, value] : node.attrs.other)
    if (key == "kind" && value.size() > 1 && value.front() == 'k') {
      std::string word = value.substr(1);
      std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
      return word + " fusion";
    }
  return "fusion";
}

LinkedDump::Ops LinkedDump::ops_of(ComputationId id, const std::string& instruction) const {
  const Computation& computation = rewritten->graph.computation(id);
  Ops ops;
  for (const ImportedKernel& fusion : computation.imported) {
    if (fusion.name != instruction) continue;
    for (const NodeId op : fusion.ops)
      if (is_computed(computation.node(op))) ops.all.push_back(op);
    for (const NodeId root : fusion.roots) {
      const NodeId owner = buffer_of(computation, root);
      insert_sorted(ops.given, contains_sorted(ops.all, owner) ? owner : root);
    }
    std::erase_if(ops.given, [&](NodeId op) { return !contains_sorted(ops.all, op); });
    return ops;
  }
  if (const auto call = calls.find(instruction); call != calls.end()) {
    for (const std::string& name : call->second) insert_sorted(ops.all, computation.find(name));
    if (!ops.all.empty()) ops.given = {ops.all.back()};
    return ops;
  }
  std::vector<std::string> names{instruction};
  if (computation.find(instruction) == kNoNode) {
    names.clear();
    for (const OpName& now : trace.now(rewritten->graph, {computation.name, instruction}))
      if (now.computation == computation.name) names.push_back(now.op);
  }
  for (const std::string& name : names)
    if (const NodeId op = computation.find(name); op != kNoNode && is_computed(computation.node(op)))
      insert_sorted(ops.all, op);
  ops.given = ops.all;
  return ops;
}

std::shared_ptr<const rewriting::RewrittenGraph> LinkedDump::finished() {
  rename(rewritten->graph, *rewritten->model, names);
  return std::move(rewritten);
}

LinkedDump link_dump(const Dump& dump, const Graph& given, const Graph& model) {
  LinkedDump linked;
  linked.raw = read_graph(dump.optimised);
  GraphOfCalls optimised = with_calls(canonicalize(linked.raw, &linked.trace), dump.script);
  linked.calls = std::move(optimised.of);
  require_same_results(dump, given, optimised.graph);
  SameComputations same;
  find_same(given, model, given.entry, model.entry, same);
  auto rewritten = std::make_shared<rewriting::RewrittenGraph>();
  rewritten->graph = std::move(optimised.graph);
  rewritten->graph.source = model.source;
  rewritten->graph.source_sha256 = model.source_sha256;
  rewritten->model = std::make_shared<const Graph>(model);
  rewritten->origins.resize(rewritten->graph.computations.size());
  for (const LinkedComputations& part : link_computations(given, rewritten->graph)) {
    const auto own = same.find(part.model);
    if (own == same.end() ||
        !linked.names.emplace(part.optimised, model.computation(own->second.model).name).second)
      continue;
    add_links(part, own->second, model, rewritten->origins[at(part.optimised)], linked.gone);
    for (const NodeId op : part.links.own)
      linked.own.push_back(rewritten->graph.computation(part.optimised).node(op).name);
  }
  linked.rewritten = std::move(rewritten);
  return linked;
}

}  // namespace stitchwork
