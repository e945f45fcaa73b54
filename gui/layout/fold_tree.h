// What the graph view folds: model -> layer -> kernel (or call) -> group -> op, and the values that flow
// between ops; a loop or branch -> the computations it runs -> layer and so on. A pure function of graph and
// plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork::gui {

enum class FoldKind : std::uint8_t { kModel, kLayer, kBody, kStep, kGroup, kOp };
std::string_view name(FoldKind kind);  ///< "model", "layer", "body", "step", "group", "op"

struct FoldNode {
  FoldKind kind = FoldKind::kModel;
  int parent = -1;
  std::vector<int> children;  ///< in the plan's order
  std::string label;    ///< "encoder/layer/3", "body step", "k12 multiply_1", "dot.5", "reduce.2", "add.7"
  int step = -1;        ///< as first_step numbers them: of steps, groups and ops
  int group = -1;       ///< index into KernelPlan::groups: of groups and their ops
  NodeId op = kNoNode;  ///< of ops; of groups the dominant
  int depth = 0;
  int steps = 0;  ///< within
  int ops = 0;    ///< leaves within; an op that several groups evaluate counts in each
  int sources =
      0;          ///< of ops: parameters and constants it reads, drawn with it and not as nodes of their own
  int body = -1;  ///< index into FusionPlan::computations of what it is part of; -1: the entry
};

/// A value that one leaf makes and another reads.
struct FoldEdge {
  int from = 0, to = 0;  ///< nodes of kind kOp
  NodeId value = kNoNode;
  std::int64_t bytes = 0;
  bool on_chip = false;  ///< within a kernel, and not through global memory
};

struct FoldTree {
  std::vector<FoldNode> nodes;  ///< parents before children; [0] is the model
  std::vector<FoldEdge> edges;  ///< ascending by (from, to)

  const FoldNode& node(int i) const { return nodes[static_cast<std::size_t>(i)]; }
  bool leaf(int i) const { return node(i).children.empty(); }
  /// The node of a step, or of the op where it is materialised, else first evaluated; -1 if there is none.
  /// `body` is the computation whose op it is.
  int find_step(int step) const;
  int find_op(NodeId op, int body = -1) const;
  /// Every place that evaluates the op.
  std::vector<int> places(NodeId op, int body = -1) const;
};

/// Steps are numbered through: those of the entry, then those of each of FusionPlan::computations. Where the
/// steps of computation `body` begin (-1: the entry; the number of computations: how many steps there are).
int first_step(const FusionPlan& plan, int body);

/// Scopes of an op by its metadata: "jit(f)/jit(main)/Bert/layer/0/add" is {"Bert", "layer", "0"}; what JAX
/// wraps around (jit(...), pjit[...]) and the op itself are left out.
std::vector<std::string> scopes(std::string_view op_name);

/// Layers of fewer steps are dissolved into the one around them.
inline constexpr int kLeastStepsOfLayer = 3;
/// What has no more steps is looked at as a whole: the scopes within are no layers of their own.
inline constexpr int kMostStepsUndivided = 40;

FoldTree fold_tree(const Graph& graph, const FusionPlan& plan);

/// Indented, a line a node: for tests.
std::string to_text(const FoldTree& tree);

}  // namespace stitchwork::gui
