// FusionPlan: what every planner returns and the one code generator consumes. A plan is complete and ordered:
// compiling a saved plan gives byte-identical source.
//
// Vocabulary (AStitch sections 3-4): an op is *materialised* in a kernel if its values are put somewhere
// (shared memory, scratch, an output buffer): dominants, sub-dominants and outputs. Every other op of the
// kernel is inlined into the materialised ops that read it, through composed index maps, and computed once
// per thread and index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/plan/mapping.h"
#include "analysis/plan/overrides.h"
#include "core/base/verdict.h"
#include "core/graph/graph.h"
#include "core/substitute/rewritten_graph.h"
#include "occupancy_model/device.h"
#include "occupancy_model/not_modelled.h"

namespace stitchwork {

/// Where a value of a kernel lives between its producer and its consumers, per (kernel, op). AStitch Table 1;
/// Recomputed is XLA/TVM-style inlining of an op into several places (or kernels).
/// Resident: it stays with the threads that made it across grid barriers (Residence).
enum class Scheme : std::uint8_t { kIndependent, kLocal, kRegional, kResident, kGlobal, kRecomputed };
/// "independent", "local", "regional", "resident", "global", "recomputed"
std::string_view name(Scheme scheme);

/// A dominant op, the sub-dominants that follow its thread mapping, and the Local ops between them
/// (section 4.3). Every materialised op of a kernel is dominant or sub-dominant of exactly one group; an
/// inlined op is listed in the groups that evaluate it.
struct Group {
  NodeId dominant = kNoNode;
  std::vector<NodeId> sub_dominants;  ///< topological order
  /// Sub-dominant reductions of a row_pack group over the domain's *rows*, their results one a col. Every
  /// block (or cluster) accumulates them over its tasks in registers and leaves one partial a col,
  /// [blocks or clusters, cols], in scratch; readers fold these in fixed order behind a grid barrier.
  /// Topological order.
  std::vector<NodeId> across;
  /// Sub-dominant reductions of a row_pack group that take no pass over the row of their own: the sum of
  /// exp(x - c) or (x - c)^2 with c from a reduction of the same rows (analysis/schedule/one_pass.h). Threads
  /// accumulate it about a value of their own in an earlier reduction's pass and move it to c behind that.
  /// Topological order.
  std::vector<NodeId> one_pass;
  std::vector<NodeId> ops;  ///< topological order, dominant and sub-dominants included
  /// Of the domain [rows, cols]: a reduction's kept elements and those it reduces; else the dominant's own,
  /// element row * cols + col.
  Mapping mapping;
  Deal deal;
  /// Groups of one phase in different lanes run on disjoint block ranges; those of one lane start at the same
  /// block and run one after the other.
  int lane = 0;
};

/// A piece of shared memory or scratch. Slots of different lifetimes may overlap.
struct MemorySlot {
  NodeId op = kNoNode;
  std::int64_t offset = 0, bytes = 0;
};

/// A value that the threads of a group have in one phase and need again in later ones, each thread its own
/// elements of the same tasks: kept across the grid barrier for all the tasks of a block. (Where a block has
/// one task, its values stay in registers as they do within a task, and no plan is needed.)
struct Residence {
  NodeId op = kNoNode;     ///< of the kernel, or an input of it
  NodeId group = kNoNode;  ///< the group's dominant; the elements are those of the op's placement in it
  int level = 0;           ///< the phase from which on they have it
  bool shared = false;     ///< in shared memory, indexed by task, element and thread; else in registers, with
                           ///< the loop over the tasks unrolled
  std::int64_t offset = 0;  ///< shared: bytes
  std::int64_t bytes = 0;   ///< shared: of a block; registers: of a thread
};

/// Shared memory through which a group's elements of a value change their order, once a task. If the group
/// materialises the value it is computed along the cols and stored as it lies in memory; else it is read as
/// it lies in memory and taken up along the cols, at its placement in the group. Of a patch
/// or row_pack group the elements lie along the rows; those of a staged task are one range.
struct Tile {
  NodeId op = kNoNode;
  NodeId group = kNoNode;              ///< the group's dominant
  int level = 0;                       ///< the phase that reads or stores it so
  std::int64_t offset = 0, bytes = 0;  ///< a task's rows, padded unless staged (analysis/schedule/tiles.h)
  int stages = 1;  ///< of `bytes`, so many parts: those of so many tasks, one after the other in turn
};

struct KernelLaunch {
  std::int64_t grid = 1;
  int block = 1;
  std::int64_t shared_bytes = 0;   ///< values and reduction workspace
  std::int64_t scratch_bytes = 0;  ///< global scratch of Global values and partials
  int register_bound = 0;          ///< 0: none
  int blocks_per_sm = 0;           ///< residency the bound admits (0: unbounded by us)
  std::int64_t blocks_per_wave = 0;
  int grid_barriers = 0;
  int cluster = 1;  ///< blocks of a thread block cluster: those whose numbers agree but for the remainder
};

/// A kernel as a compiler made it (docs/peers.md). It has no groups: how its values are kept is in its code
/// alone.
struct KernelCode {
  std::string module, entry;               ///< PTX file, as the dump names it, and the kernel in it
  std::string instruction;                 ///< of the compiler's module that it carries out; "": not known
  std::string kind;                        ///< what the compiler calls that: "loop fusion", "triton fusion"
  bool product = false;                    ///< it holds a matrix product: not memory-intensive
  std::int64_t dram_bytes = 0;             ///< simulated, as is `timed`; of one launch
  std::optional<TimedKernel> timed;        ///< none: it was not run
  std::vector<std::string> not_linked_to;  ///< names of ops it is said to hold that the model does not have
};

struct KernelPlan {
  std::string id;                    ///< "k0", "k1", ... in plan order
  std::string name;                  ///< from its last materialised op, made a C identifier: "multiply_1"
  std::vector<NodeId> ops;           ///< every op the kernel evaluates, topological
  std::vector<NodeId> outputs;       ///< materialised ops read outside the kernel (or graph results)
  std::vector<Group> groups;         ///< those that make Regional values before those that read them
  std::map<NodeId, Scheme> schemes;  ///< of every op in `ops`
  std::map<NodeId, int> levels;      ///< of every op in `ops`: the phase that computes it
  /// Global or Resident values that are also read in their own phase, and how they are had there: kRegional
  /// (a slot of `shared`) or kLocal (in the registers of the thread that computed it, or computed again).
  /// Only readers of later phases take them from global memory, behind a grid barrier.
  std::map<NodeId, Scheme> in_phase;
  std::vector<MemorySlot> shared;   ///< Regional values; plus op == kNoNode: the reduction workspace
  std::vector<MemorySlot> scratch;  ///< Global values not in an output buffer, and split partials
  std::vector<Residence> resident;  ///< ascending by op
  std::vector<Tile> tiles;
  /// Values that asked for shared memory and gave it up, ascending: their readers compute them for themselves
  /// (FusionStitching 2018, section 5.1.2).
  std::vector<NodeId> shrunk;
  KernelLaunch launch;
  double predicted_us = 0;         ///< modelled; of a compiler's code simulated, 0 where it was not run
  std::optional<KernelCode> code;  ///< a compiler's own, in place of groups, slots and tiles
};

enum class StepKind : std::uint8_t {
  kKernel,
  kLibrary,
  kCopy,
  kMemset,
  kControl,  ///< a loop or branch: runs FusionPlan::computations
};
std::string_view name(StepKind kind);

struct PlanStep {
  StepKind kind = StepKind::kKernel;
  std::string id;   ///< kernel id; "lib:<op name>", "copy:<op name>", "memset:<op name>", "control:<op name>"
  int kernel = -1;  ///< index into FusionPlan::kernels
  std::vector<NodeId> nodes;  ///< library: the ops of the call (several if fused together); copy, memset: the
                              ///< buffer's op; control: the while or conditional
  int stream = 0;
  std::vector<int>
      waits;  ///< indices of steps on other streams that must have finished (empty with one stream)
  double predicted_us = 0;
  std::optional<std::int64_t> trips;  ///< of a while, if known (core/passes/trip_count.h)
  /// What it makes depends on weights alone: it is done before the first run, its results stay, and it takes
  /// no time of a run.
  bool once = false;
  /// library: the tiled kernel of ours that makes the product (codegen/gemm), by name; "": the library's own
  /// choice. Estimates are the library's in any case.
  std::string variant;
};

/// Of the entry and of every computation it runs, each once; steps that are done once are not of a run.
struct PlanCounts {
  int memory_kernels = 0, library_calls = 0, copies = 0, memsets = 0;
  int product_kernels = 0;  ///< a compiler's own that hold matrix products; ours call libraries
  /// As often as they are launched: in loops times the trips (once where they are unknown), of branches the
  /// most.
  std::int64_t dynamic_memory_kernels = 0;
};

/// "1 memory kernel, 2 library calls, 0 copies, 0 memsets"
std::string to_text(const PlanCounts& counts);

struct ComputationPlan;

/// What is known of a plan that a compiler made and carries out by its own kernels, read from its dump
/// (docs/peers.md).
struct PeerPlan {
  std::string dump;             ///< folder
  std::string title;            ///< "xla (jaxlib 0.10.2)"
  bool simulated = false;       ///< its kernels were run: predicted_us are those times
  std::int64_t dram_bytes = 0;  ///< of all steps: kernels' simulated, others' modelled
  /// Ops of the model that no step carries out, by name, and why: folded, computed as another, not linked.
  std::map<std::string, std::string> gone;
  std::vector<std::string> own;  ///< ops of the planned graph that stand for none of the model's
};

/// Ops are those of the graph it plans: the model's, or, of planners that rewrite, `rewritten`'s.
struct FusionPlan {
  /// The graph that is planned, where it is not the model's own; its steps are saved with the plan. null: it
  /// is. Plans of computations have none: theirs are computations of this graph.
  std::shared_ptr<const rewriting::RewrittenGraph> rewritten;
  /// A compiler's plan: its graph is `rewritten`, without steps, or the model. null: a planner's.
  std::shared_ptr<const PeerPlan> peer;
  std::string model_path, model_sha256;
  std::string device;   ///< id
  std::string planner;  ///< row of the planner table; of a peer's plan what made it: "xla jaxlib 0.10.2"
  std::map<std::string, std::string>
      options;              ///< knobs that differ from the planner's defaults, and "mapping"
  std::vector<Edit> edits;  ///< overrides it was made with
  std::string library;      ///< SHA-256 of the performance library's file; "": times were modelled
  /// Keys that the library does not have, ascending, of loops and branches, too; none without a library, and
  /// none of a plan read from a file.
  std::vector<std::string> library_misses;
  /// Library products may round f32 operands to TF32 (10 bits of mantissa), and are timed so.
  bool tf32 = false;
  /// Parameters, by name, ascending, whose values are the same in every run: steps that depend on these alone
  /// are done once (knob weights=stable).
  std::vector<std::string> weights;
  std::vector<PlanStep> steps;  ///< a valid order; those done once come first
  std::vector<KernelPlan> kernels;
  /// What loops and branches run, each once, callees first; also what those run. Their plans have none of
  /// their own.
  std::vector<ComputationPlan> computations;
  PlanCounts counts;
  double predicted_us = 0;          ///< of a run: steps done once are not in it
  double once_us = 0;               ///< of these
  std::vector<Decision> decisions;  ///< empty unless asked for
};

/// The graph whose ops the plan names. Whoever takes a model and a plan asks this first, so `model` may be
/// either.
const Graph& planned_graph(const Graph& model, const FusionPlan& plan);
/// The model that was planned; `graph` may be it or the planned graph.
const Graph& model_graph(const Graph& graph, const FusionPlan& plan);

/// The op of the planned graph's entry that gives the value of the model's `op`, else the last that stands
/// for it; kNoNode: none. Itself where nothing was rewritten.
NodeId planned_op(const FusionPlan& plan, NodeId op);
/// The model's ops that an op of the planned graph's entry stands for, ascending. Itself likewise.
std::vector<NodeId> model_ops(const FusionPlan& plan, NodeId op);

/// By kernel, whether its step is done once.
std::vector<bool> once_kernels(const FusionPlan& plan);

/// How the times of its kernels were had: "modelled"; "simulated", of a compiler's plan that was run; "": of
/// one that was not. Library calls are modelled in each.
std::string times_method(const FusionPlan& plan);

/// How `op`, which the kernel evaluates, is had by what reads it in the phase that makes it.
Scheme scheme_in_phase(const KernelPlan& kernel, NodeId op);
/// Whether `reader` takes `op`'s value from shared memory: both are of one phase, and it is Regional there.
bool reads_shared(const KernelPlan& kernel, NodeId op, NodeId reader);
/// "regional"; "global (regional in its phase)".
std::string scheme_text(const KernelPlan& kernel, NodeId op);

/// The plan of a computation as the entry of a graph of its own (analysis/plan/control_flow.h entered). Its
/// counts are its own steps' alone, but for dynamic_memory_kernels.
struct ComputationPlan {
  ComputationId computation = -1;
  FusionPlan plan;
};

/// Human-readable plan: steps, kernels, groups, schemes (no predicted times: goldens are made of this).
std::string to_text(const Graph& graph, const FusionPlan& plan);

}  // namespace stitchwork
