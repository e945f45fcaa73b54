#include "analysis/planners/astra/ladders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/facts/facts.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

using Users = std::vector<std::vector<NodeId>>;
using Ids = std::vector<NodeId>;

class LadderFinder {
 public:
  LadderFinder(const Computation& computation, const Users& users, const Products& products,
               Recorder& recorder)
      : computation_(computation), users_(users), products_(products), recorder_(recorder) {}

  std::vector<Ladder> find() {
    std::vector<NodeId> open;
    for (const Node& node : computation_.nodes)
      if (is_add(node.id) && !is_inner(node.id)) open.push_back(node.id);
    while (!open.empty()) {
      const NodeId tree = open.back();
      open.pop_back();
      search(tree, open);
    }
    for (std::size_t p = 0; p < products_.list.size(); ++p)
      if (!taken_.contains(static_cast<int>(p)))
        found_.push_back({products_.list[p].result, {static_cast<int>(p)}, kNoNode, {}});
    std::sort(found_.begin(), found_.end(), [](const Ladder& a, const Ladder& b) { return a.root < b.root; });
    return std::move(found_);
  }

 private:
  const Node& node(NodeId id) const { return computation_.node(id); }
  const Product& product(NodeId result) const { return products_.list[at(products_.of_result[at(result)])]; }
  bool is_product_leaf(NodeId id) const { return products_.of_result[at(id)] >= 0; }
  bool is_add(NodeId id) const { return node(id).op == Op::kAdd && is_floating(node(id).shape.dtype); }
  bool read_once(NodeId id) const { return users_[at(id)].size() == 1 && !products_.is_result[at(id)]; }
  /// An add whose only reader adds it to something else.
  bool is_inner(NodeId id) const {
    if (!is_add(id) || !read_once(id)) return false;
    const Node& reader = node(users_[at(id)][0]);
    return is_add(reader.id) && reader.operands[0] != reader.operands[1];
  }

  void leaves_below(NodeId add, Ids& leaves, Ids& adds) const {
    std::vector<NodeId> open{add};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      adds.push_back(id);
      for (const NodeId read : node(id).operands) (is_inner(read) ? open : leaves).push_back(read);
    }
    std::sort(leaves.begin(), leaves.end());
    std::sort(adds.begin(), adds.end());
  }

  /// Whether `from` reaches one of `others`, ascending, itself aside.
  NodeId reached(NodeId from, const Ids& others) const {
    std::set<NodeId> open{from};
    while (!open.empty()) {
      const NodeId id = *open.begin();
      open.erase(open.begin());
      if (id != from && std::binary_search(others.begin(), others.end(), id) && is_product_leaf(id))
        return id;
      for (const NodeId user : users_[at(id)])
        if (user <= others.back()) open.insert(user);
    }
    return kNoNode;
  }

  Verdict may_be_rung(NodeId leaf, const Ids& leaves) const {
    if (std::count(leaves.begin(), leaves.end(), leaf) > 1)
      return Verdict::no("astra.read-elsewhere", "it is added to itself");
    if (read_once(leaf)) return Verdict::yes();
    if (const NodeId on = reached(leaf, leaves); on != kNoNode)
      return Verdict::no("astra.depends", fmt::format("{} depends on it", node(on).name));
    return Verdict::no("astra.read-elsewhere",
                       products_.is_result[at(leaf)] ? "it is a result, too" : "others read it, too");
  }

  /// The rungs among the leaves of a tree.
  Ids rungs_of(NodeId root, const Ids& leaves) {
    Ids rungs;
    std::map<std::pair<int, int>, int> sides;
    for (const NodeId leaf : leaves) {
      if (!is_product_leaf(leaf) || (!rungs.empty() && rungs.back() == leaf)) continue;
      const Verdict verdict = may_be_rung(leaf, leaves);
      if (!verdict) {
        refuse(leaf, root, verdict);
        continue;
      }
      rungs.push_back(leaf);
      ++sides[{product(leaf).left.contracted, product(leaf).right.contracted}];
    }
    if (sides.size() > 1) {
      const auto most = std::max_element(sides.begin(), sides.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      std::erase_if(rungs, [&](NodeId rung) {
        if (std::pair(product(rung).left.contracted, product(rung).right.contracted) == most->first)
          return false;
        refuse(rung, root, Verdict::no("astra.layout", "its sides lie otherwise than those of most"));
        return true;
      });
    }
    std::set<NodeId> held;
    std::erase_if(rungs, [&](NodeId rung) {
      const NodeId left = product(rung).left.matrix.op, right = product(rung).right.matrix.op;
      const auto again = [&](NodeId op) { return !is_immediate(computation_, op) && held.contains(op); };
      const NodeId twice = again(left) || left == right ? left : again(right) ? right : kNoNode;
      if (twice != kNoNode) {
        refuse(rung, root,
               Verdict::no("astra.same-operand-twice", fmt::format("{} has one place", node(twice).name)));
        return true;
      }
      held.insert(left);
      held.insert(right);
      return false;
    });
    return rungs;
  }

  /// The lowest add of the tree that is above all of `rungs`.
  NodeId lowest_above(NodeId root, const Ids& rungs) const {
    for (;;) {
      NodeId next = kNoNode;
      for (const NodeId read : node(root).operands) {
        if (!is_inner(read)) continue;
        Ids leaves, adds;
        leaves_below(read, leaves, adds);
        if (std::includes(leaves.begin(), leaves.end(), rungs.begin(), rungs.end())) next = read;
      }
      if (next == kNoNode) return root;
      root = next;
    }
  }

  Verdict may_start(NodeId other) const {
    const PlanRole role = plan_role(node(other));
    if (role != PlanRole::kMemory && !is_product(node(other)))
      return Verdict::no("astra.read-elsewhere", "products are not added to what no kernel or product makes");
    if (!read_once(other)) return Verdict::no("astra.read-elsewhere", "others read it, too");
    if (products_.in_place[at(other)]) return Verdict::no("astra.host-call", "its array stays by itself");
    return Verdict::yes();
  }

  /// Takes the tree's ladder, or opens the trees on both sides of where it is cut.
  void search(NodeId tree, std::vector<NodeId>& open) {
    Ids leaves, adds;
    leaves_below(tree, leaves, adds);
    const Ids rungs = rungs_of(tree, leaves);
    if (rungs.size() < 2) return;
    const NodeId root = lowest_above(tree, rungs);
    leaves.clear();
    adds.clear();
    leaves_below(root, leaves, adds);
    Ids others;
    std::set_difference(leaves.begin(), leaves.end(), rungs.begin(), rungs.end(), std::back_inserter(others));
    Verdict verdict = Verdict::yes();
    if (others.size() > 1)
      verdict = Verdict::no("astra.read-elsewhere",
                            fmt::format("{} values beside {} products: one may be what they are added to",
                                        others.size(), rungs.size()));
    else if (!others.empty())
      verdict = may_start(others[0]);
    if (verdict) return take(root, rungs, others.empty() ? kNoNode : others[0], std::move(adds));
    refuse(root, others[0], verdict);
    for (const NodeId read : node(root).operands)
      if (is_inner(read)) open.push_back(read);
  }

  void take(NodeId root, const Ids& rungs, NodeId start, Ids adds) {
    Ladder ladder{root, {}, start, std::move(adds)};
    for (const NodeId rung : rungs) ladder.rungs.push_back(products_.of_result[at(rung)]);
    taken_.insert(ladder.rungs.begin(), ladder.rungs.end());
    std::sort(ladder.rungs.begin(), ladder.rungs.end(), [&](int a, int b) {
      const auto key = [&](int p) { return std::pair(products_.list[at(p)].left.matrix.op, p); };
      return key(a) < key(b);
    });
    found_.push_back(std::move(ladder));
  }

  /// A leaf of a tree that is cut is refused once.
  void refuse(NodeId subject, NodeId object, const Verdict& verdict) {
    if (!refused_.insert({subject, verdict.rule}).second) return;
    recorder_.add(kFusionStep, node(subject).name, node(object).name, [&] { return verdict; });
  }

  const Computation& computation_;
  const Users& users_;
  const Products& products_;
  Recorder& recorder_;
  std::vector<Ladder> found_;
  std::set<int> taken_;
  std::set<std::pair<NodeId, std::string>> refused_;
};

}  // namespace

std::vector<Ladder> ladders(const Computation& computation, const Users& users, const Products& products,
                            Recorder& recorder) {
  return LadderFinder(computation, users, products, recorder).find();
}

}  // namespace stitchwork::astra
