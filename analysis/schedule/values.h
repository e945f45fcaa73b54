// The value DAG of one step: what each root needs, by walking operands through composed index maps.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "analysis/schedule/context.h"

namespace stitchwork {

class ValueBuilder {
 public:
  ValueBuilder(BuildContext& context, Step& step, int phase);

  /// The value of `op` at `map` (over the step's row and col), computed from its operands even where it has a
  /// place of its own: a root.
  int root_value(NodeId op, const IndexMap& map);
  /// The value of `op` at `map`, read from its place if it has one in this phase.
  int value(NodeId op, const IndexMap& map) { return value(op, map, -1); }
  /// The element that a reduction over the domain's cols accumulates for its result at `result`: its
  /// operand's, or the product of its operands'.
  int reduced_value(const Node& node, const IndexMap& result);
  /// The value that a reduction starts from, for its result at `map`; -1: from none.
  int initial(const Node& node, const IndexMap& map);
  /// Of an update in place at `map`: the elements of its array before the slice.
  int slice(const Node& node, const IndexMap& map);
  /// In a step that folds the partials of a reduction across rows, its mapping [elements, partials]: one
  /// partial; and the index of the result.
  int partial(NodeId op);
  IndexMap fold_map(NodeId op) const;
  /// `op` at `map` from the group's tile.
  int load_tile(NodeId op, const IndexMap& map);

 private:
  using Key = std::tuple<int, NodeId, IndexMap>;  ///< scope, op, map

  /// A value asked for.
  struct Wanted {
    NodeId op = kNoNode;
    IndexMap map;
    int scope = -1;
  };
  /// A value on its way: chains of ops are as long as the graph, so what waits for its operands waits on a
  /// stack of these and not on the program's.
  struct Pending {
    std::optional<Key> key;     ///< under which it is known then
    std::vector<Wanted> needs;  ///< in the order in which they are made
    std::vector<int> had;       ///< the values of the first needs
    /// When it has all: the value; or nothing, where that has asked for more.
    std::function<std::optional<int>(Pending&)> finish;
  };

  int value(NodeId op, IndexMap map, int scope);
  /// Makes what `first` needs, then `first`.
  int settle(Pending first);
  Pending build(NodeId op, const IndexMap& map, int scope);
  Pending compute(NodeId op, const IndexMap& map, int scope);
  int constant(NodeId op, const IndexMap& map, int scope);
  bool in_tile(NodeId op, const IndexMap& map, int scope) const;
  Pending load(NodeId op, const IndexMap& map, int scope, int buffer);
  Pending load_shared(NodeId op, const IndexMap& map, int scope);
  Pending tile_load(NodeId op, const IndexMap& map);
  Pending fold(NodeId op, const IndexMap& map, int scope);
  Pending choose(const Node& node, const IndexMap& map, int scope);
  void set_depth_of_choice(int choice);
  Pending inner_reduce(const Node& node, const IndexMap& map, int scope);
  /// What a reduction starts from: one value, or none.
  std::vector<Wanted> initial_values(const Node& node, const IndexMap& map, int scope) const;
  /// The product of two elements, at the index of the result they belong to and what is contracted.
  int multiply(const Node& product, IndexMap at, std::vector<int> factors, int scope);
  Pending apply(const Node& node, const IndexMap& map, int scope);
  /// A value that is there.
  static Pending there(int value);
  /// `v`, read at `map`.
  Pending read_at(Value v, const IndexMap& map, int scope);
  /// The values of the runtime variables of `map`, before clamping.
  static std::vector<Wanted> runtime_values(const IndexMap& map, int scope);
  int add(Value value, int scope);
  /// Moves a map to the outermost scope that has all the dims it uses.
  void hoist(IndexMap& map, int& scope) const;

  BuildContext& context_;
  Step& step_;
  int phase_;
  std::map<Key, int> known_;
};

}  // namespace stitchwork
