// The value DAG of one step: what each root needs, by walking operands through composed index maps.
#pragma once

#include <map>
#include <tuple>

#include "codegen/lower_context.h"

namespace stitchwork {

class ValueBuilder {
 public:
  ValueBuilder(LowerContext& context, Step& step, int phase);

  /// The value of `op` at `map` (over the step's row and col), computed from its operands even where it has a
  /// place of its own: a root.
  int root_value(NodeId op, const IndexMap& map);
  /// The value of `op` at `map`, read from its place if it has one in this phase.
  int value(NodeId op, const IndexMap& map) { return value(op, map, -1); }
  /// In a step that folds the partials of a reduction across rows, its mapping [elements, partials]: one
  /// partial; and the index of the result.
  int partial(NodeId op);
  IndexMap fold_map(NodeId op) const;
  /// `op` at `map` from the group's tile.
  int load_tile(NodeId op, const IndexMap& map);

 private:
  int value(NodeId op, IndexMap map, int scope);
  int build(NodeId op, const IndexMap& map, int scope);
  int compute(NodeId op, const IndexMap& map, int scope);
  int constant(NodeId op, const IndexMap& map, int scope);
  bool in_tile(NodeId op, const IndexMap& map, int scope) const;
  int load(NodeId op, const IndexMap& map, int scope, int buffer);
  int load_shared(NodeId op, const IndexMap& map, int scope);
  int fold(NodeId op, const IndexMap& map, int scope);
  int choose(const Node& node, const IndexMap& map, int scope);
  int inner_reduce(const Node& node, const IndexMap& map, int scope);
  int apply(const Node& node, const IndexMap& map, int scope);
  Access access(const IndexMap& map, int scope);
  int add(Value value, int scope);
  /// Moves a map to the outermost scope that has all the dims it uses.
  void hoist(IndexMap& map, int& scope) const;

  LowerContext& context_;
  Step& step_;
  int phase_;
  std::map<std::tuple<int, NodeId, IndexMap>, int> known_;
};

/// `map` composed with the map of `operand`; the operand's own index where both have the same dims.
IndexMap read_map(const Computation& computation, const Node& node, int operand, const IndexMap& map);

/// 0, 1 or 2: whether `map` depends on nothing, on the row, on the col (results, constraints, runtime
/// indices).
int depth_of(const IndexMap& map);

/// (row, col) -> the operand's index of a reduction over the domain's cols, for its result at `result`.
IndexMap reduced_operand_map(const Computation& computation, const Node& reduce, const IndexMap& result);

}  // namespace stitchwork
