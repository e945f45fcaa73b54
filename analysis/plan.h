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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/overrides.h"
#include "core/graph.h"
#include "core/verdict.h"
#include "occupancy_model/device.h"

namespace stitchwork {

/// Where a value of a kernel lives between its producer and its consumers, per (kernel, op). AStitch Table 1;
/// Recomputed is XLA/TVM-style inlining of an op into several places (or kernels).
/// Resident: it stays with the threads that made it across grid barriers (Residence).
enum class Scheme : std::uint8_t { kIndependent, kLocal, kRegional, kResident, kGlobal, kRecomputed };
/// "independent", "local", "regional", "resident", "global", "recomputed"
std::string_view name(Scheme scheme);

/// How a group's domain is dealt to blocks and threads. The domain is always two-dimensional, [rows, cols]:
///   a reduction:      rows = kept elements (flat, row-major), cols = reduced elements (flat);
///   element-wise:     rows * cols = elements of the dominant, flat index row * cols + col.
enum class MappingKind : std::uint8_t {
  kElementwise,  ///< consecutive threads on consecutive elements; cols = 1; rows_per_block elements a task
  kRowPack,  ///< threads_per_row threads a row, rows_per_block rows a task (AStitch Figure 8-a); no reduction
             ///< needed
  kRowSplit,  ///< `split` blocks a row (Figure 8-b); a task is one segment of one row, task = row * split +
              ///< segment
  kColumn,  ///< consecutive threads on consecutive *rows* (coalesced for column reductions): a task is a tile
            ///< of rows_per_block rows; block/rows_per_block threads share a row's cols, combined in shared
            ///< memory; `split` > 1 cuts cols into segments, task = tile * split + segment
  kRowSerial,  ///< one thread a row, a serial loop over cols (short reductions)
  kTile,  ///< a task is a tile of rows_per_block rows and threads_per_row cols, task = tile of rows * split +
          ///< segment; consecutive threads on consecutive cols, or, to and from the group's Tiles, rows; no
          ///< reduction
};
std::string_view name(MappingKind kind);

/// How the segments of a split reduction combine.
enum class Combine : std::uint8_t {
  kNone,      ///< split == 1
  kPartials,  ///< `split` partials a row in scratch; every consumer folds them in fixed order after a grid
              ///< barrier
  kAtomic,    ///< atomics on the accumulator, initialised by a memset step (XLA) or an earlier phase
};
std::string_view name(Combine combine);  ///< "none", "partials", "atomic"

struct ThreadMapping {
  MappingKind kind = MappingKind::kElementwise;
  std::int64_t rows = 1, cols = 1;
  int vector = 1;  ///< elements a load
  int unroll = 1;
  int threads_per_row = 1;           ///< row_pack: power of two or multiple of 32; others: see kind
  std::int64_t rows_per_block = 1;   ///< rows (elements) a task covers (horizontal packing)
  std::int64_t tasks = 1;            ///< over the whole domain, segments included
  std::int64_t tasks_per_block = 1;  ///< the most any block takes (vertical packing): ceil(tasks / blocks)
  int split = 1;
  Combine combine = Combine::kNone;
  /// At most `tasks`. Block b takes tasks [b * tasks / blocks, (b + 1) * tasks / blocks), rounded down:
  /// shares that differ by one task at most.
  std::int64_t blocks = 1;
  /// row_pack: the rows of a task, which lie one behind the other in memory, move between memory and tiles
  /// (Tile) as one range, whoever computes them.
  bool staged = false;
  /// staged: 0: what moves to tiles goes through registers. Else it is copied asynchronously (sm_80 and
  /// later), and of each range there are tiles for so many tasks of the block: the next ones are under way
  /// while one is computed.
  int stages = 0;
  /// stages > 0: a range is one bulk copy that one thread asks for and all wait for at an mbarrier (sm_90 and
  /// later); else every thread copies vectors of it (cp.async).
  bool bulk = false;
  /// row_pack: a task is one row, of so many blocks that form a thread block cluster (sm_90 and later) and
  /// reduce it through one another's shared memory. threads_per_row are those of all of them, the block of
  /// rank r has the r-th part; blocks are a multiple, and clusters take the place of blocks in dealing tasks.
  int cluster = 1;

  bool operator==(const ThreadMapping&) const = default;
};
std::string to_text(const ThreadMapping& mapping);

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
  /// exp(x - c) or (x - c)^2 with c from a reduction of the same rows (analysis/one_pass.h). Threads
  /// accumulate it about a value of their own in an earlier reduction's pass and move it to c behind that.
  /// Topological order.
  std::vector<NodeId> one_pass;
  std::vector<NodeId> ops;  ///< topological order, dominant and sub-dominants included
  ThreadMapping mapping;
  /// Groups of one phase in different lanes run on disjoint block ranges; those of one lane start at the same
  /// block and run one after the other.
  int lane = 0;
  std::int64_t first_block = 0;  ///< of the lane: blocks [first_block, first_block + mapping.blocks)
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
/// it lies in memory and taken up along the cols, at its placement in the group. Of a kTile or
/// row_pack group the elements lie along the rows; those of a staged task are one range.
struct Tile {
  NodeId op = kNoNode;
  NodeId group = kNoNode;              ///< the group's dominant
  int level = 0;                       ///< the phase that reads or stores it so
  std::int64_t offset = 0, bytes = 0;  ///< rows_per_block rows, padded unless staged (analysis/tiles.h)
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
  KernelLaunch launch;
  double predicted_us = 0;  ///< modelled
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
  std::optional<std::int64_t> trips;  ///< of a while, if known (core/trip_count.h)
};

/// Of the entry and of every computation it runs, each once.
struct PlanCounts {
  int memory_kernels = 0, library_calls = 0, copies = 0, memsets = 0;
  /// As often as they are launched: in loops times the trips (once where they are unknown), of branches the
  /// most.
  std::int64_t dynamic_memory_kernels = 0;
};

/// "1 memory kernel, 2 library calls, 0 copies, 0 memsets"
std::string to_text(const PlanCounts& counts);

struct ComputationPlan;

struct FusionPlan {
  std::string model_path, model_sha256;
  std::string device;   ///< id
  std::string planner;  ///< row of the planner table
  std::map<std::string, std::string>
      options;              ///< knobs that differ from the planner's defaults, and "mapping"
  std::vector<Edit> edits;  ///< overrides it was made with
  /// Library products may round f32 operands to TF32 (10 bits of mantissa), and are timed so.
  bool tf32 = false;
  std::vector<PlanStep> steps;  ///< a valid order
  std::vector<KernelPlan> kernels;
  /// What loops and branches run, each once, callees first; also what those run. Their plans have none of
  /// their own.
  std::vector<ComputationPlan> computations;
  PlanCounts counts;
  double predicted_us = 0;
  std::vector<Decision> decisions;  ///< empty unless asked for
};

/// How `op`, which the kernel evaluates, is had by what reads it in the phase that makes it.
Scheme scheme_in_phase(const KernelPlan& kernel, NodeId op);
/// Whether `reader` takes `op`'s value from shared memory: both are of one phase, and it is Regional there.
bool reads_shared(const KernelPlan& kernel, NodeId op, NodeId reader);
/// "regional"; "global (regional in its phase)".
std::string scheme_text(const KernelPlan& kernel, NodeId op);

/// The plan of a computation as the entry of a graph of its own (analysis/control_flow.h entered). Its counts
/// are its own steps' alone, but for dynamic_memory_kernels.
struct ComputationPlan {
  ComputationId computation = -1;
  FusionPlan plan;
};

/// Human-readable plan: steps, kernels, groups, schemes (no predicted times: goldens are made of this).
std::string to_text(const Graph& graph, const FusionPlan& plan);

}  // namespace stitchwork
