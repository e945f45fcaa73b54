#include "gui/layout/fold_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "core/base/at.h"

namespace stitchwork::gui {
namespace {

/// Scopes while they are gathered: a trie whose leaves are steps.
struct Scope {
  std::string name;
  std::map<std::string, int> inner;
  std::vector<int> steps;  ///< directly within
  int all_steps = 0;
  int first_step = 0;
};

std::vector<NodeId> ops_of(const FusionPlan& plan, const PlanStep& step) {
  return step.kind == StepKind::kKernel ? plan.kernels[at(step.kernel)].ops : step.nodes;
}

/// The scope that more than half of a step's ops share, as deep as it goes.
std::vector<std::string> home(const Computation& computation, const std::vector<NodeId>& ops) {
  std::vector<std::vector<std::string>> all;
  for (NodeId op : ops)
    if (const auto& name = computation.node(op).metadata.op_name; !name.empty()) all.push_back(scopes(name));
  std::vector<std::string> path;
  const std::size_t half = all.size() / 2;
  while (true) {
    std::map<std::string, std::size_t> next;
    for (const auto& s : all)
      if (s.size() > path.size()) ++next[s[path.size()]];
    const auto most =
        std::max_element(next.begin(), next.end(), [](auto& a, auto& b) { return a.second < b.second; });
    if (most == next.end() || most->second <= half) return path;
    path.push_back(most->first);
    std::erase_if(all,
                  [&](const auto& s) { return s.size() < path.size() || s[path.size() - 1] != path.back(); });
  }
}

/// Adds the steps of the entry, or of one of the plan's computations, to a tree.
class Builder {
 public:
  /// `graph`: whose entry is the computation.
  Builder(const Graph& graph, const FusionPlan& whole, int body, FoldTree& tree, std::vector<char>& shown)
      : graph_(graph),
        computation_(graph.entry_computation()),
        whole_(whole),
        plan_(body < 0 ? whole : whole.computations[at(body)].plan),
        body_(body),
        first_step_(first_step(whole, body)),
        tree_(tree),
        shown_(shown) {}

  void add_to(int node) {
    gather_scopes();
    add_scope(node, 0);
    connect();
  }

 private:
  void gather_scopes() {
    trie_.emplace_back();
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      int scope = 0;
      ++trie_[0].all_steps;
      for (const std::string& name : home(computation_, ops_of(plan_, plan_.steps[s]))) {
        const auto [found, fresh] = trie_[at(scope)].inner.emplace(name, static_cast<int>(trie_.size()));
        scope = found->second;
        if (fresh) {
          trie_.push_back({.name = name, .first_step = static_cast<int>(s)});
        }
        ++trie_[at(scope)].all_steps;
      }
      trie_[at(scope)].steps.push_back(static_cast<int>(s));
    }
  }

  /// Steps of a scope and of the scopes within that are no layers.
  struct Content {
    std::vector<int> steps;
    std::vector<std::pair<int, std::string>> layers;  ///< scope and its path from here
  };
  void gather(int scope, const std::string& path, bool divide, Content& content) {
    const Scope& s = trie_[at(scope)];
    content.steps.insert(content.steps.end(), s.steps.begin(), s.steps.end());
    for (const auto& [name, inner] : s.inner) {
      const std::string inner_path = path.empty() ? name : path + "/" + name;
      const Scope& in = trie_[at(inner)];
      // A scope that holds all there is says nothing: its parts are shown in its place.
      const bool alone = in.all_steps == s.all_steps;
      if (!divide || alone || in.all_steps < kLeastStepsOfLayer)
        gather(inner, alone && scope == 0 ? std::string() : inner_path, divide && alone, content);
      else
        content.layers.emplace_back(inner, inner_path);
    }
  }

  void add_scope(int node, int scope) {
    Content content;
    gather(scope, {}, trie_[at(scope)].all_steps > kMostStepsUndivided, content);
    std::vector<std::pair<int, int>> children;  ///< (first step, index: layers behind steps)
    for (int step : content.steps) children.emplace_back(step, -1);
    for (std::size_t i = 0; i < content.layers.size(); ++i)
      children.emplace_back(trie_[at(content.layers[i].first)].first_step, static_cast<int>(i));
    std::sort(children.begin(), children.end());
    for (const auto& [step, layer] : children) {
      if (layer < 0) {
        add_step(node, step);
        continue;
      }
      const auto& [inner, path] = content.layers[at(layer)];
      add_scope(add(node, {FoldKind::kLayer, -1, {}, path}), inner);
    }
  }

  int add(int parent, FoldNode node) {
    const int id = static_cast<int>(tree_.nodes.size());
    node.parent = parent;
    node.body = body_;
    node.depth = tree_.node(parent).depth + 1;
    tree_.nodes.push_back(std::move(node));
    tree_.nodes[at(parent)].children.push_back(id);
    return id;
  }

  void add_step(int parent, int s) {
    const PlanStep& step = plan_.steps[at(s)];
    FoldNode node{FoldKind::kStep, -1, {}, step.id, first_step_ + s};
    if (step.kind != StepKind::kKernel) {
      const int id = add(parent, std::move(node));
      for (NodeId op : step.nodes) {
        const int leaf = add_op(id, s, -1, op);
        if (step.kind != StepKind::kMemset) maker_[op] = leaf;
        if (step.kind == StepKind::kControl) add_bodies(id, computation_.node(op), step.trips);
      }
      return;
    }
    const KernelPlan& kernel = plan_.kernels[at(step.kernel)];
    node.label = kernel.id + " " + kernel.name;
    const int id = add(parent, std::move(node));
    if (kernel.code) add_compiled(id, s, kernel);
    for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
      const Group& group = kernel.groups[g];
      const int group_node = add(id, {FoldKind::kGroup,
                                      -1,
                                      {},
                                      computation_.node(group.dominant).name,
                                      first_step_ + s,
                                      static_cast<int>(g),
                                      group.dominant});
      const std::vector<NodeId> made = materialised(group);
      for (NodeId op : group.ops) {
        const int leaf = add_op(group_node, s, static_cast<int>(g), op);
        if (std::binary_search(made.begin(), made.end(), op)) {
          made_in_step_[{first_step_ + s, op}] = leaf;
          maker_[op] = leaf;
        }
      }
    }
  }

  /// The ops of a compiler's kernel, which has no groups.
  void add_compiled(int parent, int s, const KernelPlan& kernel) {
    for (const NodeId op : kernel.ops) {
      const int leaf = add_op(parent, s, -1, op);
      if (!std::binary_search(kernel.outputs.begin(), kernel.outputs.end(), op)) continue;
      made_in_step_[{first_step_ + s, op}] = leaf;
      maker_[op] = leaf;
    }
  }

  /// What a loop or branch runs. A computation that several run is unfolded at the first.
  void add_bodies(int parent, const Node& control, std::optional<std::int64_t> trips) {
    for (std::size_t i = 0; i < control.attrs.computations.size(); ++i) {
      const ComputationId id = control.attrs.computations[i];
      const auto found = std::ranges::find(whole_.computations, id, &ComputationPlan::computation);
      if (found == whole_.computations.end()) continue;
      const auto body = static_cast<int>(found - whole_.computations.begin());
      std::string label = control.op != Op::kWhile ? fmt::format("branch {}", i)
                          : i == 0                 ? "condition"
                          : trips                  ? fmt::format("body × {}", *trips)
                                                   : "body";
      label += " " + graph_.computations[at(id)].name;
      if (shown_[at(body)]) label += " (shown above)";
      const int node = add(parent, {FoldKind::kBody, -1, {}, std::move(label)});
      if (std::exchange(shown_[at(body)], 1)) continue;
      Builder(entered(graph_, id), whole_, body, tree_, shown_).add_to(node);
    }
  }

  int add_op(int parent, int step, int group, NodeId op) {
    const int leaf =
        add(parent, {FoldKind::kOp, -1, {}, computation_.node(op).name, first_step_ + step, group, op});
    in_group_[{parent, op}] = leaf;
    return leaf;
  }

  void connect() {
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
      if (tree_.nodes[i].kind != FoldKind::kOp || tree_.nodes[i].body != body_) continue;
      const PlanStep& step = step_of(tree_.nodes[i]);
      const int reader = static_cast<int>(i);
      if (step.kind == StepKind::kMemset) {
        if (const auto made = maker_.find(tree_.nodes[i].op); made != maker_.end())
          add_edge(reader, made->second, tree_.nodes[i].op, false);
        continue;
      }
      for (NodeId operand : computation_.node(tree_.nodes[i].op).operands) read(reader, operand);
    }
  }

  const PlanStep& step_of(const FoldNode& node) const { return plan_.steps[at(node.step - first_step_)]; }

  /// Where `reader` has `operand` from: its own group, another group of its kernel, another step.
  void read(int reader, NodeId operand) {
    const FoldNode& node = tree_.node(reader);
    const PlanStep& step = step_of(node);
    if (const auto near = in_group_.find({node.parent, operand});
        near != in_group_.end() && near->second != reader)
      return add_edge(near->second, reader, operand, step.kind == StepKind::kKernel);
    if (const auto near = made_in_step_.find({node.step, operand}); near != made_in_step_.end()) {
      const KernelPlan& kernel = plan_.kernels[at(step.kernel)];
      const auto scheme = kernel.schemes.find(operand);
      return add_edge(near->second, reader, operand,
                      scheme != kernel.schemes.end() && scheme->second != Scheme::kGlobal);
    }
    for (NodeId owner : values_read(computation_, operand)) {
      if (plan_role(computation_.node(owner)) == PlanRole::kSource || is_immediate(computation_, owner)) {
        ++tree_.nodes[at(reader)].sources;
        continue;
      }
      const auto made = maker_.find(owner);
      if (made != maker_.end() && made->second != reader) add_edge(made->second, reader, owner, false);
    }
  }

  void add_edge(int from, int to, NodeId value, bool on_chip) {
    tree_.edges.push_back({from, to, value, computation_.node(value).shape.byte_size(), on_chip});
  }

  const Graph& graph_;
  const Computation& computation_;
  const FusionPlan& whole_;
  const FusionPlan& plan_;
  const int body_, first_step_;
  FoldTree& tree_;
  std::vector<char>& shown_;  ///< by computation of the plan: its steps are in the tree
  std::vector<Scope> trie_;
  std::unordered_map<NodeId, int> maker_;               ///< op -> the leaf whose value others read
  std::map<std::pair<int, NodeId>, int> made_in_step_;  ///< (step, op) -> leaf
  std::map<std::pair<int, NodeId>, int> in_group_;      ///< (parent, op) -> leaf
};

void print(const FoldTree& tree, int id, std::string& text) {
  const FoldNode& n = tree.node(id);
  text += fmt::format("{:{}}{} {}\n", "", 2 * n.depth, name(n.kind), n.label);
  for (int child : n.children) print(tree, child, text);
}

}  // namespace

std::string_view name(FoldKind kind) {
  switch (kind) {
    case FoldKind::kModel:
      return "model";
    case FoldKind::kLayer:
      return "layer";
    case FoldKind::kBody:
      return "body";
    case FoldKind::kStep:
      return "step";
    case FoldKind::kGroup:
      return "group";
    case FoldKind::kOp:
      return "op";
  }
  return "";
}

int FoldTree::find_step(int step) const {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind == FoldKind::kStep && nodes[i].step == step) return static_cast<int>(i);
  return -1;
}

std::vector<int> FoldTree::places(NodeId op, int body) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind == FoldKind::kOp && nodes[i].op == op && nodes[i].body == body)
      found.push_back(static_cast<int>(i));
  return found;
}

int FoldTree::find_op(NodeId op, int body) const {
  const std::vector<int> all = places(op, body);
  for (int place : all)
    if (const FoldNode& parent = node(node(place).parent); parent.kind == FoldKind::kGroup && parent.op == op)
      return place;
  return all.empty() ? -1 : all.front();
}

int first_step(const FusionPlan& plan, int body) {
  if (body < 0) return 0;
  auto first = static_cast<int>(plan.steps.size());
  for (std::size_t c = 0; c < at(body); ++c)
    first += static_cast<int>(plan.computations[c].plan.steps.size());
  return first;
}

std::vector<std::string> scopes(std::string_view op_name) {
  std::vector<std::string> parts;
  int nesting = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < op_name.size(); ++i) {
    const char c = op_name[i];
    if (c == '(' || c == '[' || c == '{') ++nesting;
    if (c == ')' || c == ']' || c == '}') --nesting;
    if (c == '/' && nesting <= 0) {
      parts.emplace_back(op_name.substr(begin, i - begin));
      begin = i + 1;
    }
  }  // the last part is the op itself
  std::erase_if(parts, [](const std::string& part) {
    return part.empty() || part.starts_with("jit(") || part.starts_with("pjit") || part.starts_with("jvp(") ||
           part.starts_with("transpose(") || part.starts_with("while") || part == "body" || part == "cond";
  });
  return parts;
}

FoldTree fold_tree(const Graph& model, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  FoldTree tree;
  tree.nodes.push_back({FoldKind::kModel, -1, {}, graph.name});
  std::vector<char> shown(plan.computations.size());
  Builder(graph, plan, -1, tree, shown).add_to(0);
  std::sort(tree.edges.begin(), tree.edges.end(), [](const FoldEdge& a, const FoldEdge& b) {
    return std::tie(a.from, a.to, a.value) < std::tie(b.from, b.to, b.value);
  });
  const auto last =
      std::unique(tree.edges.begin(), tree.edges.end(), [](const FoldEdge& a, const FoldEdge& b) {
        return a.from == b.from && a.to == b.to && a.value == b.value;
      });
  tree.edges.erase(last, tree.edges.end());
  for (std::size_t i = tree.nodes.size(); i-- > 1;) {
    const FoldNode& n = tree.nodes[i];
    FoldNode& parent = tree.nodes[at(n.parent)];
    parent.steps += n.kind == FoldKind::kStep ? 1 + n.steps : n.steps;
    parent.ops += n.kind == FoldKind::kOp ? 1 : n.ops;
  }
  return tree;
}

std::string to_text(const FoldTree& tree) {
  std::string text;
  if (!tree.nodes.empty()) print(tree, 0, text);
  return text;
}

}  // namespace stitchwork::gui
