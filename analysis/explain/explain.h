// Which kernel did my op end up in, and why?
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/plan/plan.h"
#include "core/passes/op_trace.h"
#include "occupancy_model/library.h"
#include "occupancy_model/not_modelled.h"

namespace stitchwork {

/// Where one kernel computes the op.
struct OpPlacement {
  std::string kernel_id, kernel_name;
  std::string role;      ///< "dominant", "sub-dominant", "inlined"; "compiled" in a compiler's kernel
  std::string dominant;  ///< of its group ("" if inlined into several groups)
  Scheme scheme = Scheme::kLocal;
  std::optional<Scheme> in_phase;  ///< how readers of its own phase have it, where they have it otherwise
  int level = 0;
  std::string mapping;  ///< the group's thread mapping, as text
  bool output = false;  ///< stored to device memory for others
  std::string code;     ///< of a compiler's kernel: what computes it; scheme and level say nothing
  std::vector<std::string> beside;  ///< of a compiler's kernel: the other ops of the model that it computes
  std::vector<std::string> producers, consumers;  ///< of the op, within this kernel
  KernelTime time;                                ///< the kernel's, modelled
  std::vector<NotModelled> not_modelled;          ///< of what that leaves out
  std::vector<Decision> forms;  ///< of the kernel, tried by the planner's search: one is taken
};

/// A kernel (or call) on the other side of one of its kernels' boundaries.
struct Neighbour {
  std::string relation;            ///< "producer", "consumer": of the op's kernel; "sibling": neither
  std::string producer, consumer;  ///< the ops that meet there; of a sibling: the op and the sibling
  std::string where;               ///< "kernel k0 reduce_1", or what an op outside kernels is
  bool in_kernel = false;          ///< false: a library call and the like
  std::optional<Decision> refusal;
  std::string needs;  ///< what would have to be different (analysis/explain/remedy.h)
};

/// A refusal that names the op and is not about a neighbour.
struct Refusal {
  Decision decision;
  std::string needs;
};

struct Explanation {
  std::string op, opcode, shape;
  std::string updates;  ///< of an update in place: the array, "get-tuple-element.5 = f32[300,32,250]"
  /// Of an array that shares a matrix with others: "rows 16 to 31, columns 0 to 1499 of f32[560,3000], the
  /// buffer of slice.47".
  std::string place;
  /// Where the name asked for is no op's any more: what became of it while the model was read, and when the
  /// planner rewrote it, a line a step.
  /// With nothing left of it, all else is empty.
  std::vector<std::string> became;
  std::string step;  ///< for ops outside kernels: "library call lib:dot.5", "parameter", "alias of ..."
  std::string library_time;             ///< of a matrix product or convolution: modelled, with the arithmetic
  std::vector<OpPlacement> placements;  ///< several: the op is recomputed
  std::vector<Neighbour> neighbours;    ///< what it was nearly fused with, nearest first
  std::vector<Refusal> refusals;
  std::vector<Decision> decisions;  ///< those that name the op, in order
};

/// Throws Error with close names where there is no such op.
NodeId op_named(const Computation& computation, const std::string& op);

/// The steps that are no kernels, by each of their ops; memsets have none.
std::unordered_map<NodeId, const PlanStep*> steps_outside_kernels(const FusionPlan& plan);
/// Where an array lies that shares a matrix with others (core/passes/lay_beside.h), as Explanation has it;
/// "": it has its buffer to itself.
std::string place_text(const Computation& computation, const Node& node);

/// What an op outside kernels is: "library call lib:dot.5", "parameter", "alias of ..."; `step`: that of the
/// op, nullptr where it has none.
std::string step_text(const Computation& computation, const PlanStep* step, const Node& node);
/// The product that a library call computes which has the op, with what the call adds to it; `step` as above.
std::optional<MatrixProduct> called_product(const Computation& computation, const FusionPlan& plan,
                                            const PlanStep* step, const Node& node);

/// Whether the model or the planned graph has an op of this name that explain tells about: of the entry, of
/// what its loops and branches run, or of what an op applies (a reducer).
bool has_op(const Graph& graph, const FusionPlan& plan, const std::string& op);

/// Of an op of the model that the planner rewrote: of what gives its value now, or of the last op that stands
/// for it. Decisions are the plan's, or those of planning again as it says (analysis/explain/boundary.h).
/// Throws Error naming close op names if there is no such op.
Explanation explain(const Graph& graph, const FusionPlan& plan, const std::string& op);
/// An op of the model that a name of the file stands for, and what became of what had that name, a line a
/// step.
struct AsRead {
  std::string op;  ///< "": nothing is left of it
  std::vector<std::string> became;
};
/// nullopt: the file has no such name.
std::optional<AsRead> op_as_read(const Graph& model, const OpTrace& trace, const std::string& op);
/// The same by a name of the file: `trace` says what became of its ops while the model was read. Names of
/// scopes (the op_name of HLO metadata, the node of an ONNX model) stand for the last op of theirs.
Explanation explain_as_read(const Graph& graph, const FusionPlan& plan, const OpTrace& trace,
                            const std::string& op);
std::string to_text(const Explanation& explanation);

}  // namespace stitchwork
