// What an editor leaves: its ops in order and named, equal ones merged, what nobody reads gone.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/graph/rewrite.h"
#include "core/passes/lay_beside.h"
#include "core/passes/passes.h"
#include "core/substitute/editor.h"

namespace stitchwork::rewriting {
namespace {

using OriginsByName = std::unordered_map<std::string, std::vector<NodeId>>;

OriginsByName by_name(const Computation& computation, const Origins& origins) {
  OriginsByName result;
  for (const Node& node : computation.nodes)
    if (!origins.of.empty()) result[node.name] = origins.of[static_cast<std::size_t>(node.id)];
  return result;
}

/// The names that give the values of the model's ops; "": nobody.
std::vector<std::string> giver_names(const Computation& computation, const Origins& origins) {
  std::vector<std::string> result;
  for (const NodeId id : origins.now) result.push_back(id == kNoNode ? "" : computation.node(id).name);
  return result;
}

/// Of every computation: who each op stands for and who gives what, by name, while passes renumber.
struct Traced {
  std::map<std::string, OriginsByName> of;
  std::map<std::string, std::vector<std::string>> now;

  explicit Traced(const RewrittenGraph& graph) {
    for (std::size_t c = 0; c < graph.graph.computations.size(); ++c) {
      const Computation& computation = graph.graph.computations[c];
      of[computation.name] = by_name(computation, graph.origins[c]);
      now[computation.name] = giver_names(computation, graph.origins[c]);
    }
  }

  /// `gone` is `kept` from here on.
  void merge(const std::string& computation, const std::string& gone, const std::string& kept, bool own) {
    OriginsByName& origins = of[computation];
    if (!own) {  // an op of the model stands for itself alone
      std::vector<NodeId>& all = origins[kept];
      all.insert(all.end(), origins[gone].begin(), origins[gone].end());
      sort_unique(all);
    }
    std::ranges::replace(now[computation], gone, kept);
  }

  void rename(const std::string& computation, const std::string& from, const std::string& to) {
    of[computation].insert_or_assign(to, of[computation][from]);
    std::ranges::replace(now[computation], from, to);
  }

  std::vector<Origins> origins(const Graph& graph) const {
    std::vector<Origins> result;
    for (const Computation& computation : graph.computations) {
      Origins& origins = result.emplace_back();
      const auto known = of.find(computation.name);
      if (known == of.end() || known->second.empty()) continue;
      std::unordered_map<std::string_view, NodeId> ids;
      for (const Node& node : computation.nodes) {
        ids.emplace(node.name, node.id);
        const auto found = known->second.find(node.name);
        origins.of.push_back(found == known->second.end() ? std::vector<NodeId>{} : found->second);
      }
      for (const std::string& name : now.at(computation.name)) {
        const auto found = ids.find(name);
        origins.now.push_back(found == ids.end() ? kNoNode : found->second);
      }
    }
    return result;
  }
};

/// Merges equal ops. Where one of the model's is merged with a new one before it, it keeps its name.
void merge_equal(RewrittenGraph& result, Traced& traced) {
  OpTrace trace;
  Graph merged = eliminate_common_subexpressions(result.graph, &trace);
  for (std::size_t c = 0; c < merged.computations.size(); ++c) {
    Computation& kept = merged.computations[c];
    const Computation& before = result.graph.computations[c];
    if (kept.size() == before.size()) continue;
    std::unordered_map<std::string, NodeId> ids;
    for (const Node& node : kept.nodes) ids.emplace(node.name, node.id);
    const Computation* model = result.model_computation(kept.name);
    const auto is_models = [&](const std::string& name) {
      return model != nullptr && model->find(name) != kNoNode;
    };
    std::unordered_map<std::string, std::string> renamed;
    std::unordered_map<NodeId, const Node*> named_as;  // in the end: the trace goes by the names before
    for (const Node& node : before.nodes) {
      if (ids.contains(node.name)) continue;
      const std::vector<OpName> into = trace.now(merged, {kept.name, node.name});
      SW_CHECK(into.size() == 1, "'{}' was merged with {} ops", node.name, into.size());
      std::string survivor = into[0].op;
      if (const auto other = renamed.find(survivor); other != renamed.end()) survivor = other->second;
      if (is_models(node.name) && !is_models(survivor)) {
        named_as[ids.at(into[0].op)] = &node;
        traced.of[kept.name][node.name] = {model->find(node.name)};
        traced.merge(kept.name, survivor, node.name, true);
        renamed[into[0].op] = node.name;
      } else {
        traced.merge(kept.name, node.name, survivor, is_models(survivor));
      }
    }
    for (const auto& [id, node] : named_as) {
      kept.nodes[static_cast<std::size_t>(id)].name = node->name;
      kept.nodes[static_cast<std::size_t>(id)].metadata = node->metadata;
    }
  }
  result.graph = std::move(merged);
}

}  // namespace

NodeId Editor::resolved(NodeId id) const {
  while (id < static_cast<NodeId>(replaced_by_.size()) && replaced_by_[static_cast<std::size_t>(id)] != id)
    id = replaced_by_[static_cast<std::size_t>(id)];
  return id;
}

/// Old ops where they were; new ones in front of the first that needs them. nullopt: there is none.
std::optional<std::vector<NodeId>> Editor::order() const {
  enum class State : std::uint8_t { kNew, kOpen, kPlaced };
  const Computation& built = builder_.peek();
  std::vector<NodeId> result;
  std::vector<State> state(built.nodes.size(), State::kNew);
  std::vector<std::pair<NodeId, std::size_t>> open;  // op, its next operand
  const auto visit = [&](NodeId id) {
    State& found = state[static_cast<std::size_t>(id)];
    if (found == State::kNew) open.emplace_back(id, 0);
    const bool fine = found != State::kOpen;
    if (found == State::kNew) found = State::kOpen;
    return fine;
  };
  for (NodeId start = 0; start < static_cast<NodeId>(replaced_by_.size()); ++start) {
    visit(resolved(start));
    while (!open.empty()) {
      auto& [id, next] = open.back();
      const Node& node = built.node(id);
      if (next < node.operands.size()) {
        if (!visit(resolved(node.operands[next++]))) return std::nullopt;
      } else {
        state[static_cast<std::size_t>(id)] = State::kPlaced;
        result.push_back(id);
        open.pop_back();
      }
    }
  }
  return result;
}

const Match& Editor::match_of(NodeId made) const {
  const auto next = std::ranges::upper_bound(first_made_, made);
  return matches_[static_cast<std::size_t>(next - first_made_.begin()) - 1];
}

std::vector<NodeId> Editor::origins_of(NodeId id) const {
  const auto old = static_cast<NodeId>(replaced_by_.size());
  const std::vector<std::vector<NodeId>>& of = from_.origins[static_cast<std::size_t>(view_.id())].of;
  if (id < old) return of.empty() ? std::vector<NodeId>{} : of[static_cast<std::size_t>(id)];
  std::vector<NodeId> result;
  for (const NodeId at : match_of(id).at) {
    const std::vector<NodeId> part = origins_of(at);
    result.insert(result.end(), part.begin(), part.end());
  }
  sort_unique(result);
  return result;
}

/// The model's op that the place of the match stands for: the last, if several.
std::string Editor::base_name(NodeId made) const {
  const NodeId place = match_of(made).at.front();
  const std::vector<NodeId> origins = origins_of(place);
  return model_ == nullptr || origins.empty() ? view_.node(place).name : model_->node(origins.back()).name;
}

Computation Editor::ordered(const std::vector<NodeId>& order, RewrittenGraph& result) const {
  const Computation& built = builder_.peek();
  const auto old = static_cast<NodeId>(replaced_by_.size());
  ComputationBuilder builder(built.name);
  if (model_ != nullptr)
    for (const Node& node : model_->nodes) builder.reserve(node.name);
  for (const NodeId id : order)
    if (id < old) builder.reserve(built.node(id).name);
  Origins& origins = result.origins[static_cast<std::size_t>(view_.id())];
  const bool has_origins = model_ != nullptr;
  origins.of.clear();
  std::vector<NodeId> place(built.nodes.size(), kNoNode);
  for (const NodeId id : order) {
    Node node = built.node(id);
    for (NodeId& operand : node.operands) operand = place[static_cast<std::size_t>(resolved(operand))];
    if (id >= old) {
      const auto i = static_cast<std::size_t>(id - old);
      node.name = fmt::format("{}.{}", base_name(id), def(node.op).name);
      if (i < layouts_.size()) node.shape.minor_to_major = layouts_[i];
      place[static_cast<std::size_t>(id)] = builder.add(std::move(node));
    } else {
      place[static_cast<std::size_t>(id)] = builder.add_reserved(std::move(node));
    }
    if (has_origins) origins.of.push_back(origins_of(id));
  }
  for (NodeId& now : origins.now)
    if (now != kNoNode) now = place[static_cast<std::size_t>(resolved(now))];
  const Computation& before = view_.computation();
  Computation computation = std::move(builder).finish(place[static_cast<std::size_t>(resolved(before.root))]);
  computation.attributes = before.attributes;
  for (const ImportedKernel& kernel : before.imported) {  // those that are as they were
    ImportedKernel moved{kernel.name, kernel.kind, {}, {}};
    for (const auto& [from, to] :
         {std::pair{&kernel.ops, &moved.ops}, std::pair{&kernel.roots, &moved.roots}}) {
      for (const NodeId id : *from)
        if (resolved(id) == id) to->push_back(place[static_cast<std::size_t>(id)]);
      std::ranges::sort(*to);
    }
    if (moved.ops.size() == kernel.ops.size() && moved.roots.size() == kernel.roots.size())
      computation.imported.push_back(std::move(moved));
  }
  return computation;
}

RewrittenGraph Editor::finish() && {
  RewrittenGraph result = from_;
  const ComputationId id = view_.id();
  const std::optional<std::vector<NodeId>> ops = order();
  SW_CHECK(ops, "an op of '{}' would be computed from itself", view_.computation().name);
  Computation edited = ordered(*ops, result);
  result.graph.computations[static_cast<std::size_t>(id)] = std::move(edited);
  if (!added_.empty()) {  // in front: callees precede callers
    const auto shift = static_cast<ComputationId>(added_.size());
    const auto known = static_cast<ComputationId>(result.graph.computations.size());
    for (Computation& computation : result.graph.computations)
      for (Node& node : computation.nodes)
        for (ComputationId& callee : node.attrs.computations)
          callee = callee < known ? callee + shift : callee - known;
    result.graph.computations.insert(result.graph.computations.begin(), added_.begin(), added_.end());
    result.origins.insert(result.origins.begin(), added_.size(), Origins{});
    result.graph.entry += shift;
  }
  const Computation& made = result.graph.computation(id + static_cast<ComputationId>(added_.size()));
  for (const Node& node : made.nodes) check_node(result.graph, made, node);
  Traced traced(result);
  merge_equal(result, traced);
  result.graph = eliminate_dead_code(result.graph);
  for (const ComputationId c : running_computations(result.graph))
    lay_beside(result.graph.computations[static_cast<std::size_t>(c)]);
  result.origins = traced.origins(result.graph);
  return result;
}

}  // namespace stitchwork::rewriting
