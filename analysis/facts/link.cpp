#include "analysis/facts/link.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/facts/value_numbers.h"
#include "core/base/at.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

/// What no step computes: parameters, constants.
bool is_source(const Node& node) { return node.op == Op::kParameter || node.op == Op::kConstant; }

class Linker {
 public:
  Linker(const Graph& model, const Graph& optimised)
      : model_graph_(model),
        optimised_graph_(optimised),
        model_(model.entry_computation()),
        optimised_(optimised.entry_computation()),
        of_(optimised_.nodes.size()) {
    for (const Node& node : model_.nodes)
      if (!node.metadata.op_name.empty() && !is_source(node))
        named_[node.metadata.op_name].push_back(node.id);
    for (const Node& node : model_.nodes) names_.emplace(node.name, node.id);
  }

  GraphLinks run() {
    model_numbers_ = numbers_.of(model_graph_);
    for (const Node& node : model_.nodes) valued_[model_numbers_[at(node.id)]].push_back(node.id);
    found_ = numbers_.of(optimised_graph_);
    for (const int number : found_) seen_.insert(number);
    know_results(model_.root, optimised_.root);
    numbers_.of(optimised_graph_, found_, [&](const Node& node, int number) {
      if (valued_.contains(number)) return number;
      if (const auto result = results_.find(node.id); result != results_.end()) return result->second;
      const std::optional<NodeId> one = named_candidate(node);
      return one ? model_numbers_[at(*one)] : number;
    });
    take_values();
    take_names();
    take_between();
    return result();
  }

 private:
  void know_results(NodeId before, NodeId after) {
    const Node &a = model_.node(before), &b = optimised_.node(after);
    if (a.op == Op::kTuple && b.op == Op::kTuple && a.operands.size() == b.operands.size()) {
      for (std::size_t i = 0; i < a.operands.size(); ++i) know_results(a.operands[i], b.operands[i]);
    } else if (a.shape.compatible(b.shape)) {
      results_.emplace(after, model_numbers_[at(before)]);
    }
  }

  /// Not only other places for the elements of its operands.
  static bool computes(const Node& node) {
    const OpClass cls = def(node.op).cls;
    return !is_source(node) && cls != OpClass::kBroadcast && cls != OpClass::kLayout &&
           cls != OpClass::kStructure;
  }

  /// Ops of the model with its op_name, which may stand behind that of the fusion that held it.
  const std::vector<NodeId>& named(const Node& node) const {
    static const std::vector<NodeId> none;
    std::string_view name = node.metadata.op_name;
    while (!name.empty()) {
      if (const auto found = named_.find(std::string(name)); found != named_.end()) return found->second;
      const std::size_t scope = name.find('/');
      if (scope == std::string_view::npos) break;
      name.remove_prefix(scope + 1);
    }
    return none;
  }

  /// The op of the model that the name is made of: copies are called "add.3.1", "add.3.clone.2".
  NodeId stem(std::string_view name) const {
    for (;;) {
      if (const auto found = names_.find(std::string(name)); found != names_.end()) return found->second;
      const std::size_t dot = name.rfind('.');
      if (dot == std::string_view::npos) return kNoNode;
      name = name.substr(0, dot);
    }
  }

  /// Ops of the model with its op_name that compute something if it does, and have its type and size.
  std::vector<NodeId> candidates(const Node& node) const {
    std::vector<NodeId> result;
    if (node.shape.is_tuple) return result;
    for (const NodeId id : named(node)) {
      const Node& one = model_.node(id);
      if (!one.shape.is_tuple && one.shape.dtype == node.shape.dtype && computes(one) == computes(node) &&
          one.shape.elements_count() == node.shape.elements_count() && (computes(node) || one.op == node.op))
        result.push_back(id);
    }
    return result;
  }

  /// Whether both read a value that is no constant.
  bool reads_alike(const Node& node, NodeId op) const {
    std::set<int> read;
    for (const NodeId operand : model_.node(op).operands)
      if (!is_immediate(model_, operand)) read.insert(model_numbers_[at(operand)]);
    return std::ranges::any_of(node.operands,
                               [&](NodeId operand) { return read.contains(found_[at(operand)]); });
  }

  /// The same op of the same values but of another constant: 7 - i is not 8 - i, though made of it.
  bool has_another_constant(const Node& node, NodeId op) const {
    const Node& one = model_.node(op);
    if (one.op != node.op || one.operands.size() != node.operands.size()) return false;
    bool differs = false;
    for (std::size_t i = 0; i < one.operands.size(); ++i) {
      const NodeId before = one.operands[i], now = node.operands[i];
      if (model_numbers_[at(before)] == found_[at(now)]) continue;
      if (!is_immediate(model_, before) || !is_immediate(optimised_, now)) return false;
      differs = true;
    }
    return differs;
  }

  /// The one op of the model that has the op_name and could give the value.
  std::optional<NodeId> named_candidate(const Node& node) const {
    if (is_source(node)) return std::nullopt;
    std::vector<NodeId> all = candidates(node);
    // What another op gives for sure is not looked for.
    std::erase_if(all, [&](NodeId id) { return seen_.contains(model_numbers_[at(id)]); });
    const auto only = [&](auto keep) -> std::optional<NodeId> {
      std::optional<NodeId> one;
      for (const NodeId id : all) {
        if (!keep(id)) continue;
        if (one) return std::nullopt;
        one = id;
      }
      return one;
    };
    if (const NodeId copied = stem(node.name);
        std::ranges::find(all, copied) != all.end() && model_.node(copied).op == node.op)
      return copied;
    const auto alike = [&](NodeId id) { return reads_alike(node, id) && !has_another_constant(node, id); };
    const auto same = [&](NodeId id) { return model_.node(id).op == node.op; };
    if (const auto one = only([&](NodeId id) { return same(id) && alike(id); })) return one;
    if (const auto one = only(alike)) return one;
    return std::nullopt;
  }

  void take_values() {
    now_.assign(model_.nodes.size(), kNoNode);
    for (const Node& node : optimised_.nodes) {
      const auto values = valued_.find(found_[at(node.id)]);
      if (values == valued_.end()) continue;
      of_[at(node.id)] = values->second;
      for (const NodeId op : values->second)
        if (now_[at(op)] == kNoNode) now_[at(op)] = node.id;
    }
    for (const std::vector<NodeId>& of : of_)
      for (const NodeId op : of) linked_.insert(op);
  }

  void stand(NodeId op, NodeId of) {
    insert_sorted(of_[at(op)], of);
    linked_.insert(of);
  }

  /// Ops that give no value of the model's but have a name of it: parts of what one op became.
  void take_names() {
    for (const Node& node : optimised_.nodes) {
      if (!of_[at(node.id)].empty() || is_source(node)) continue;
      std::vector<NodeId> all;
      for (const NodeId id : named(node))
        if (computes(model_.node(id)) == computes(node)) all.push_back(id);
      std::vector<NodeId> alike = all;
      std::erase_if(alike, [&](NodeId id) { return !reads_alike(node, id); });
      if (alike.size() == 1)
        stand(node.id, alike[0]);
      else if (all.size() == 1)
        stand(node.id, all[0]);
    }
  }

  /// Linked ops that are reached from `op` by `next` through others that are not.
  template <typename Next, typename Linked>
  static std::vector<NodeId> nearest(NodeId op, Next next, Linked linked,
                                     std::vector<NodeId>* passed = nullptr) {
    std::vector<NodeId> open{op}, result;
    std::set<NodeId> seen{op};
    while (!open.empty()) {
      const NodeId at_op = open.back();
      open.pop_back();
      for (const NodeId other : next(at_op)) {
        if (!seen.insert(other).second) continue;
        if (linked(other)) {
          result.push_back(other);
        } else {
          open.push_back(other);
          if (passed != nullptr) passed->push_back(other);
        }
      }
    }
    return result;
  }

  void take_between() {
    const auto users = model_.users();
    std::vector<std::vector<NodeId>> stands(model_.nodes.size());
    for (const Node& node : optimised_.nodes)
      for (const NodeId op : of_[at(node.id)]) stands[at(op)].push_back(node.id);
    std::vector<bool> taken;  // before this step
    for (const auto& of : of_) taken.push_back(!of.empty());
    const std::set<NodeId> linked = linked_;
    for (const Node& node : model_.nodes) {
      if (linked.contains(node.id) || is_source(node)) continue;
      const auto is_linked = [&](NodeId id) { return linked.contains(id) || is_source(model_.node(id)); };
      std::set<int> from;  // values that it is computed from
      for (const NodeId id : nearest(
               node.id, [&](NodeId id) { return model_.node(id).operands; }, is_linked))
        if (!is_immediate(model_, id)) from.insert(model_numbers_[at(id)]);
      if (from.empty()) continue;  // folded
      for (const NodeId reader : nearest(
               node.id, [&](NodeId id) { return users[at(id)]; }, is_linked))
        for (const NodeId place : stands[at(reader)]) stand_between(node, from, place, taken);
    }
  }

  /// The compiler's own ops on the way from those values to `place`, else that itself, if it is computed of
  /// them.
  void stand_between(const Node& node, const std::set<int>& from, NodeId place,
                     const std::vector<bool>& taken) {
    std::vector<NodeId> passed;
    const auto operands = [&](NodeId id) { return optimised_.node(id).operands; };
    const std::vector<NodeId> read = nearest(
        place, operands, [&](NodeId id) { return taken[at(id)] || is_source(optimised_.node(id)); }, &passed);
    const auto gives = [&](NodeId id) { return from.contains(found_[at(id)]); };
    if (std::ranges::none_of(read, gives)) {
      // One of these computes more than the op that it is known by: a call with what follows a product.
      for (const NodeId id : read)
        if (!is_source(optimised_.node(id)) && std::ranges::any_of(operands(id), gives)) stand(id, node.id);
      return;
    }
    std::set<NodeId> on_the_way;
    std::ranges::sort(passed);
    for (const NodeId id : passed)
      if (std::ranges::any_of(
              operands(id), [&](NodeId operand) { return gives(operand) || on_the_way.contains(operand); }) &&
          (computes(optimised_.node(id)) == computes(node)))
        on_the_way.insert(id);
    if (on_the_way.empty()) return stand(place, node.id);
    for (const NodeId id : on_the_way) stand(id, node.id);
  }

  std::string why_gone(NodeId op) const {
    std::vector<NodeId> open{op};
    std::set<NodeId> seen{op};
    bool constant = true;
    while (!open.empty() && constant) {
      const Node& node = model_.node(open.back());
      open.pop_back();
      constant = node.op != Op::kParameter && node.op != Op::kRng && node.op != Op::kCustomCall;
      for (const NodeId operand : node.operands)
        if (seen.insert(operand).second) open.push_back(operand);
    }
    if (constant) return "folded: it is computed of constants alone";
    const auto named = named_.find(model_.node(op).metadata.op_name);
    const bool ambiguous = named != named_.end() && named->second.size() > 1;
    return ambiguous
               ? "not linked: nothing in the compiled module computes its value, and several ops have its "
                 "op_name"
               : "not linked: nothing in the compiled module computes its value or has its op_name";
  }

  GraphLinks result() {
    GraphLinks links;
    for (const Node& node : model_.nodes)
      if (!linked_.contains(node.id) && !is_source(node) && !is_immediate(model_, node.id))
        links.gone.emplace(node.id, why_gone(node.id));
    for (const Node& node : optimised_.nodes)
      if (of_[at(node.id)].empty() && !is_source(node)) links.own.push_back(node.id);
    links.origins.of = std::move(of_);
    links.origins.now = std::move(now_);
    return links;
  }

  const Graph &model_graph_, &optimised_graph_;
  const Computation &model_, &optimised_;
  ValueNumbers numbers_;
  std::vector<int> model_numbers_, found_;
  std::map<NodeId, int> results_;  ///< ops of the optimised module, and the values they give
  std::unordered_map<int, std::vector<NodeId>> valued_;  ///< ops of the model, by the value they give
  std::set<int> seen_;                                   ///< values that the optimised module computes alike
  std::unordered_map<std::string, std::vector<NodeId>> named_;  ///< by op_name
  std::unordered_map<std::string, NodeId> names_;
  std::vector<std::vector<NodeId>> of_;
  std::vector<NodeId> now_;
  std::set<NodeId> linked_;  ///< ops of the model
};

}  // namespace

GraphLinks link_graphs(const Graph& model, const Graph& optimised) { return Linker(model, optimised).run(); }

std::vector<NodeId> equal_values(const Graph& a, const Graph& b) {
  ValueNumbers numbers;
  const std::vector<int> of_a = numbers.of(a), of_b = numbers.of(b);
  std::unordered_map<int, NodeId> first;
  for (std::size_t i = 0; i < of_b.size(); ++i) first.emplace(of_b[i], static_cast<NodeId>(i));
  std::vector<NodeId> result;
  for (const int number : of_a) {
    const auto found = first.find(number);
    result.push_back(found == first.end() ? kNoNode : found->second);
  }
  return result;
}

}  // namespace stitchwork
