#include "runtime/program/link_loops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/facts/facts.h"
#include "core/base/at.h"
#include "core/base/sorted.h"
#include "core/passes/trip_count.h"

namespace stitchwork {
namespace {

bool runs_others(const Node& node) { return node.op == Op::kWhile || node.op == Op::kConditional; }

/// Of two graphs: the model's, and the compiler's.
template <typename T>
using Both = std::array<T, 2>;
constexpr Both<std::size_t> kSides{0, 1};

/// One element of the state of a loop, or of what a branch is given or gives.
struct Element {
  NodeId start = kNoNode;   ///< what it is at the start, of the caller; kNoNode: not known
  NodeId inside = kNoNode;  ///< what reads it inside; kNoNode: nothing does
  NodeId end = kNoNode;     ///< what it becomes, of the computation that runs
  NodeId result = kNoNode;  ///< what reads that of the caller
};

/// What runs_others runs, and by what its values are known outside: one computation of it.
struct State {
  std::vector<Element> given, gives;  ///< of a loop's body one list, twice
};

class StateReader {
 public:
  StateReader(const Computation& caller, const Node& node, std::size_t which, const Computation& runs)
      : caller_(caller), runs_(runs) {
    const bool loop = node.op == Op::kWhile;
    const NodeId operand = node.operands[loop ? 0 : 1 + which];
    read(caller_, operand, &Element::start, state_.given);
    take(runs_, runs_.parameters.at(0), &Element::inside, state_.given);
    std::vector<Element>& gives = loop ? state_.given : state_.gives;
    if (!loop || which == 1) {
      read(runs_, runs_.root, &Element::end, gives);
      take(caller_, node.id, &Element::result, gives);
    }
    if (loop) state_.gives = state_.given;
  }

  State run() { return std::move(state_); }

 private:
  static Element& element(std::vector<Element>& list, std::int64_t index) {
    if (list.size() <= static_cast<std::size_t>(index)) list.resize(static_cast<std::size_t>(index) + 1);
    return list[static_cast<std::size_t>(index)];
  }

  /// The elements of a tuple that is put together.
  static void read(const Computation& of, NodeId value, NodeId Element::*what, std::vector<Element>& list) {
    const Node& node = of.node(value);
    if (!node.shape.is_tuple) {
      element(list, 0).*what = value;
    } else if (node.op == Op::kTuple) {
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        element(list, static_cast<std::int64_t>(i)).*what = node.operands[i];
    }
  }

  /// Those that are taken out of one.
  static void take(const Computation& of, NodeId value, NodeId Element::*what, std::vector<Element>& list) {
    if (!of.node(value).shape.is_tuple) element(list, 0).*what = value;
    for (const Node& node : of.nodes)
      if (node.op == Op::kGetTupleElement && node.operands[0] == value)
        element(list, node.attrs.tuple_index).*what = node.id;
  }

  const Computation &caller_, &runs_;
  State state_;
};

/// The numbers under which values that are the same in both are parameters.
class Opened {
 public:
  explicit Opened(const Graph& graph, ComputationId id) : graph_(graph) {
    graph_.computations.resize(at(id) + 1);
    graph_.entry = id;
    size_ = computation().nodes.size();
  }

  Computation& computation() { return graph_.computations[at(graph_.entry)]; }

  /// From now on the op is a parameter of that number.
  void parameter(NodeId op, std::int64_t number) {
    Node& node = computation().nodes[at(op)];
    node.op = Op::kParameter;
    node.operands.clear();
    node.attrs = {};
    node.attrs.parameter_number = number;
  }

  void results(const std::vector<NodeId>& ops) {
    Node root;
    root.op = Op::kTuple;
    root.id = static_cast<NodeId>(computation().nodes.size());
    root.name = "results of both";
    root.operands = ops;
    root.shape.is_tuple = true;
    for (const NodeId op : ops) root.shape.elements.push_back(computation().node(op).shape);
    computation().root = root.id;
    computation().nodes.push_back(std::move(root));
  }

  const Graph& graph() const { return graph_; }
  std::size_t size() const { return size_; }

 private:
  Graph graph_;
  std::size_t size_;
};

bool same_size(const Node& a, const Node& b) {
  return !a.shape.is_tuple && !b.shape.is_tuple && a.shape.dtype == b.shape.dtype &&
         a.shape.elements_count() == b.shape.elements_count();
}

using Pairs = std::vector<Both<std::size_t>>;

/// Pairs elements of which each is the other's best, and no other's as good.
template <typename Score>
Pairs best_pairs(std::size_t rows, std::size_t columns, Score score) {
  std::vector<std::vector<int>> scores(rows, std::vector<int>(columns));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) scores[i][j] = score(i, j);
  std::set<std::size_t> row_left, column_left;
  for (std::size_t i = 0; i < rows; ++i) row_left.insert(i);
  for (std::size_t j = 0; j < columns; ++j) column_left.insert(j);
  Pairs pairs;
  for (bool found = true; found;) {
    found = false;
    for (const std::size_t i : std::set(row_left)) {
      std::size_t best = columns;
      for (const std::size_t j : column_left)
        if (scores[i][j] > 0 && (best == columns || scores[i][j] > scores[i][best])) best = j;
      if (best == columns) continue;
      const int most = scores[i][best];
      const bool only =
          std::ranges::none_of(column_left,
                               [&](std::size_t j) { return j != best && scores[i][j] >= most; }) &&
          std::ranges::none_of(row_left, [&](std::size_t r) { return r != i && scores[r][best] >= most; });
      if (!only) continue;
      pairs.push_back({i, best});
      row_left.erase(i);
      column_left.erase(best);
      found = true;
    }
  }
  std::ranges::sort(pairs);
  return pairs;
}

class ComputationLinker {
 public:
  ComputationLinker(const Graph& model, const Graph& optimised) : graphs_{&model, &optimised} {}

  std::vector<LinkedComputations> run() {
    link({graphs_[0]->entry, graphs_[1]->entry}, {}, {}, {});
    return std::move(found_);
  }

 private:
  struct Controls {
    Both<NodeId> node;
    std::vector<Both<State>> states;  ///< by the computations they run
    std::vector<Pairs> given, gives;
  };

  const Computation& of(std::size_t side, ComputationId id) const { return graphs_[side]->computation(id); }

  /// `given`: pairs of ops that are the same values; `apart`: others that are given; `results`: pairs that
  /// are.
  void link(Both<ComputationId> ids, const std::vector<Both<NodeId>>& given,
            const Both<std::vector<NodeId>>& apart, const std::vector<Both<NodeId>>& results) {
    if (!taken_[0].insert(ids[0]).second || !taken_[1].insert(ids[1]).second) return;
    const bool entry = found_.empty();
    std::vector<Controls> controls;
    GraphLinks links;
    // Loops behind loops are paired by what is known of those before. A choice: three in a row.
    constexpr int kRounds = 3;
    for (int round = 0;; ++round) {
      Both<Opened> opened{Opened(*graphs_[0], ids[0]), Opened(*graphs_[1], ids[1])};
      open(opened, given, apart, controls);
      if (!entry) {
        Both<std::vector<NodeId>> ends;
        for (const Both<NodeId>& pair : results)
          for (const std::size_t side : kSides) ends[side].push_back(pair[side]);
        for (const std::size_t side : kSides) opened[side].results(ends[side]);
      }
      links = link_graphs(opened[0].graph(), opened[1].graph());
      trim(links, opened);
      if (round == kRounds) break;
      controls = pair_controls(ids, links);
      if (controls.empty()) break;
    }
    for (const Controls& pair : controls) stand(links, pair);
    found_.push_back({ids[0], ids[1], std::move(links)});
    for (const Controls& pair : controls) enter(ids, pair);
  }

  static void open(Both<Opened>& opened, const std::vector<Both<NodeId>>& given,
                   const Both<std::vector<NodeId>>& apart, const std::vector<Controls>& controls) {
    // Beyond the numbers of real parameters; those of no pair are different on both sides.
    constexpr std::int64_t kFirst = 1 << 20, kApart = std::int64_t{1} << 32;
    std::int64_t next = kFirst;
    for (const Both<NodeId>& pair : given) {
      for (const std::size_t side : kSides) opened[side].parameter(pair[side], next);
      ++next;
    }
    for (const Controls& control : controls)
      for (std::size_t which = 0; which < control.gives.size(); ++which)
        for (const Both<std::size_t>& pair : control.gives[which]) {
          const Both<NodeId> ops{control.states[which][0].gives[pair[0]].result,
                                 control.states[which][1].gives[pair[1]].result};
          if (ops[0] == kNoNode || ops[1] == kNoNode ||
              opened[0].computation().node(ops[0]).operands.empty() ||
              opened[1].computation().node(ops[1]).operands.empty())
            continue;
          for (const std::size_t side : kSides) opened[side].parameter(ops[side], next);
          ++next;
        }
    for (const std::size_t side : kSides) {
      std::int64_t number = kApart * (1 + static_cast<std::int64_t>(side));
      for (const NodeId op : apart[side]) opened[side].parameter(op, number++);
    }
  }

  /// Leaves out what was added, and the tuples of states, which no step makes.
  static void trim(GraphLinks& links, const Both<Opened>& opened) {
    links.origins.of.resize(opened[1].size());
    links.origins.now.resize(opened[0].size());
    for (std::vector<NodeId>& of : links.origins.of)
      std::erase_if(of, [&](NodeId op) { return at(op) >= opened[0].size(); });
    for (NodeId& now : links.origins.now)
      if (now != kNoNode && at(now) >= opened[1].size()) now = kNoNode;
    const auto is_state = [&](std::size_t side, NodeId op) {
      if (at(op) >= opened[side].size()) return true;
      const Computation& computation = opened[side].graph().entry_computation();
      const Node& node = computation.node(op);
      if (node.op != Op::kGetTupleElement) return node.op == Op::kTuple;
      const Node& of = computation.node(node.operands[0]);
      return runs_others(of) || of.op == Op::kParameter;
    };
    std::erase_if(links.gone, [&](const auto& one) { return is_state(0, one.first); });
    std::erase_if(links.own, [&](NodeId op) { return is_state(1, op); });
  }

  std::vector<Controls> pair_controls(Both<ComputationId> ids, const GraphLinks& links) const {
    std::vector<Controls> pairs;
    std::set<NodeId> taken;
    for (const Node& theirs : of(1, ids[1]).nodes) {
      if (!runs_others(theirs)) continue;
      std::optional<Controls> best;
      std::size_t most = 0;
      for (const Node& ours : of(0, ids[0]).nodes) {
        if (taken.contains(ours.id) || !may_pair(ids, ours, theirs)) continue;
        Controls one = controls(ids, ours, theirs, links);
        std::size_t agree = 1;
        for (const Pairs& given : one.given) agree += given.size();
        for (const Pairs& gives : one.gives) agree += gives.size();
        // A choice: an op_name says more than any number of elements.
        constexpr std::size_t kNamed = 1 << 20;
        if (!ours.metadata.op_name.empty() && ours.metadata.op_name == theirs.metadata.op_name)
          agree += kNamed;
        if (agree > most) {
          most = agree;
          best = std::move(one);
        }
      }
      if (!best) continue;
      taken.insert(best->node[0]);
      pairs.push_back(std::move(*best));
    }
    return pairs;
  }

  bool may_pair(Both<ComputationId> ids, const Node& ours, const Node& theirs) const {
    return ours.op == theirs.op && ours.attrs.computations.size() == theirs.attrs.computations.size() &&
           (ours.op != Op::kWhile ||
            trip_count(*graphs_[0], of(0, ids[0]), ours) == trip_count(*graphs_[1], of(1, ids[1]), theirs));
  }

  Controls controls(Both<ComputationId> ids, const Node& ours, const Node& theirs,
                    const GraphLinks& links) const {
    Controls pair{{ours.id, theirs.id}, {}, {}, {}};
    const bool loop = ours.op == Op::kWhile;
    for (std::size_t which = 0; which < ours.attrs.computations.size(); ++which) {
      const Both<const Computation*> runs{&of(0, ours.attrs.computations[which]),
                                          &of(1, theirs.attrs.computations[which])};
      Both<State>& states =
          pair.states.emplace_back(Both<State>{StateReader(of(0, ids[0]), ours, which, *runs[0]).run(),
                                               StateReader(of(1, ids[1]), theirs, which, *runs[1]).run()});
      const auto score = [&](const std::vector<Element>& a, const std::vector<Element>& b) {
        return best_pairs(a.size(), b.size(), [&](std::size_t i, std::size_t j) {
          return likeness({a[i], b[j]}, {&of(0, ids[0]), &of(1, ids[1])}, runs, links);
        });
      };
      pair.given.push_back(score(states[0].given, states[1].given));
      pair.gives.push_back(loop ? Pairs{} : score(states[0].gives, states[1].gives));
    }
    if (loop) {  // one state, told by the body
      pair.given[0] = pair.given[1];
      pair.gives[1] = pair.given[1];
    }
    return pair;
  }

  /// How much speaks for two elements being the same value; 0: nothing, or that they cannot be.
  static int likeness(const Both<Element>& one, const Both<const Computation*>& callers,
                      const Both<const Computation*>& runs, const GraphLinks& links) {
    const auto both = [&](NodeId Element::*what) {
      return one[0].*what != kNoNode && one[1].*what != kNoNode;
    };
    const auto fit = [&](NodeId Element::*what, const Both<const Computation*>& of) {
      return !both(what) || same_size(of[0]->node(one[0].*what), of[1]->node(one[1].*what));
    };
    if (!fit(&Element::start, callers) || !fit(&Element::inside, runs) || !fit(&Element::end, runs) ||
        !fit(&Element::result, callers))
      return 0;
    // Choices: what an element starts or ends as says more than how it is made.
    constexpr int kSameValue = 4, kSameWay = 2;
    int score = 0;
    const auto linked = [&](NodeId Element::*what) {
      return both(what) && contains_sorted(links.origins.of[at(one[1].*what)], one[0].*what);
    };
    if (linked(&Element::start)) score += kSameValue;
    if (linked(&Element::result)) score += kSameValue;
    if (both(&Element::end)) {
      const bool passed[] = {one[0].end == one[0].inside, one[1].end == one[1].inside};
      if (passed[0] != passed[1]) return 0;
      const Node &a = runs[0]->node(one[0].end), &b = runs[1]->node(one[1].end);
      if (!passed[0] && !a.metadata.op_name.empty() && a.metadata.op_name == b.metadata.op_name)
        score += kSameWay;
      if (!passed[0] && a.op == b.op) ++score;
    }
    return score;
  }

  void stand(GraphLinks& links, const Controls& pair) const {
    insert_sorted(links.origins.of[at(pair.node[1])], pair.node[0]);
    if (links.origins.now[at(pair.node[0])] == kNoNode) links.origins.now[at(pair.node[0])] = pair.node[1];
    links.gone.erase(pair.node[0]);
    std::erase(links.own, pair.node[1]);
  }

  void enter(Both<ComputationId> ids, const Controls& pair) {
    const Node &ours = of(0, ids[0]).node(pair.node[0]), &theirs = of(1, ids[1]).node(pair.node[1]);
    for (std::size_t which = 0; which < pair.states.size(); ++which) {
      const Both<State>& states = pair.states[which];
      std::vector<Both<NodeId>> given, results;
      Both<std::set<NodeId>> paired;
      for (const Both<std::size_t>& p : pair.given[which]) {
        const Both<NodeId> ops{states[0].given[p[0]].inside, states[1].given[p[1]].inside};
        if (ops[0] == kNoNode || ops[1] == kNoNode) continue;
        given.push_back(ops);
        for (const std::size_t side : kSides) paired[side].insert(ops[side]);
      }
      Both<std::vector<NodeId>> apart;
      for (const std::size_t side : kSides)
        for (const Element& element : states[side].given)
          if (element.inside != kNoNode && !paired[side].contains(element.inside))
            apart[side].push_back(element.inside);
      const bool condition = ours.op == Op::kWhile && which == 0;
      const Both<ComputationId> run{ours.attrs.computations[which], theirs.attrs.computations[which]};
      if (condition) {
        results.push_back({of(0, run[0]).root, of(1, run[1]).root});
      } else {
        for (const Both<std::size_t>& p : pair.gives[which]) {
          const Both<NodeId> ops{states[0].gives[p[0]].end, states[1].gives[p[1]].end};
          if (ops[0] != kNoNode && ops[1] != kNoNode) results.push_back(ops);
        }
      }
      link(run, given, apart, results);
    }
  }

  Both<const Graph*> graphs_;
  Both<std::set<ComputationId>> taken_;
  std::vector<LinkedComputations> found_;
};

}  // namespace

std::vector<LinkedComputations> link_computations(const Graph& model, const Graph& optimised) {
  return ComputationLinker(model, optimised).run();
}

}  // namespace stitchwork
