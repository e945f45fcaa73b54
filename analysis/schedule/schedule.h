// What a kernel does, whatever planner asked for it: derived from its plan once, read by whoever counts,
// checks or prints it.
//
//   schedule = phases separated by grid barriers
//   phase    = task loops (one a set of groups tied by block-local values)
//   loop     = a block's tasks, in order (vertical packing); a task is steps in stages separated by block
//              barriers
//   step     = a per-thread element loop over a DAG of values keyed by (op, index map), and the roots it
//              stores
//
// Loops of a phase that are equal up to buffers and sizes are one loop with a table of entries.
//
// A value is computed once per thread: values of one mapping used by several steps stay in registers while
// the budget lasts, else they are loaded or computed again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/one_pass.h"
#include "core/index/index_map.h"

namespace stitchwork {

enum class MemorySpace : std::uint8_t { kGlobalInput, kGlobalOutput, kScratch, kShared };

struct Buffer {
  MemorySpace space = MemorySpace::kGlobalInput;
  NodeId op = kNoNode;
  Shape shape;  ///< of the op
  std::int64_t elements =
      0;  ///< shared: elements of one task, 0 if nothing is put there after all; partials: rows * split
  std::int64_t offset = 0;  ///< bytes, in shared memory or scratch
  bool partials = false;    ///< accumulators of a split reduction: 16-bit floats are stored as float
  /// Partials of a reduction across the rows of its group: [blocks or clusters, elements], instead of [split,
  /// elements].
  bool across = false;
  bool tile = false;  ///< shared: rows of a task, padded or staged (analysis/schedule/tiles.h)
  int stages = 1;     ///< of a tile: those of so many tasks in turn, `stage_elements` apart
  std::int64_t stage_elements = 0;
  /// Of a tile: the task's elements lie as many behind its beginning as in memory behind a multiple of this.
  int alignment = 1;

  /// Of the elements in shared memory.
  std::int64_t bytes() const { return elements * byte_size(shape.dtype); }
};

enum class ValueKind : std::uint8_t {
  kConstant,  ///< immediate: element 0 of the constant `op`
  kIndex,     ///< an index expression (iota): at.map has one result
  kSlice,     ///< of an update in place: the elements of the array before the slice, one result as of kIndex
  kLoad,      ///< element `offset` of a buffer (0 where the access's constraints fail)
  kFold,    ///< the `split` partials of row `offset`, folded in order, and the initial value arguments[0], if
            ///< it has one
  kApply,   ///< the op's CUDA expression of `arguments`; of a dot, of an element of either operand
  kChoose,  ///< concatenate, pad, dynamic-update-slice: the first argument whose guard holds, else the last
  kInnerReduce,  ///< a serial reduction inside one thread of arguments[0], starting from arguments[1], if
                 ///< it has one
};

/// An index to read at. Dims: row, col, then the indices of the inner reductions around it.
struct Access {
  IndexMap map;
  std::vector<int> runtime;  ///< the value of map.runtime[i], before clamping
};

/// One value of a step.
struct Value {
  ValueKind kind = ValueKind::kApply;
  NodeId op = kNoNode;
  Access at;
  std::vector<int> arguments;  ///< indices of earlier values (an inner reduction's body may follow it)
  std::vector<Access> guards;  ///< kChoose: of each argument; kInnerReduce: of arguments[0]
  int buffer = -1;             ///< kLoad, kFold
  IndexExpr offset;            ///< kLoad, kFold: elements from the buffer's start; shared: see `local`
  bool local = false;  ///< shared loads: d0 of `offset` is the row within the task, not in the domain; in a
                       ///< tile d1 likewise the col
  std::int64_t task_offset = 0;       ///< shared loads that are not local: subtract task * task_offset
  int scope = -1;                     ///< the kInnerReduce value whose body it belongs to, or -1
  std::vector<std::int64_t> extents;  ///< kInnerReduce: of its last dims; concatenate: `offset` of each piece
  int depth = 0;        ///< 0: once a task, 1: once a row, 2: once an element (it depends on col)
  int kept = -1;        ///< index into Schedule::kept: stored there by this step
  int restored = -1;    ///< index into Schedule::kept: read from there instead of being computed
  int row_result = -1;  ///< kLoad: index into TaskLoop::row_results, read from there and from no buffer
  int row_place = -1;   ///< kLoad: index into TaskLoop::row_results: put there by this step
  /// kLoad: a vector of it is loaded before the elements are computed. kFold: a vector is folded there.
  bool ahead = false;
  bool same = false;  ///< ahead: one element, which all of the vector have
};

enum class StoreKind : std::uint8_t {
  kElement,  ///< each element to `buffers`
  kReduce,   ///< accumulate over cols, combine in the block, the row's result to `buffers`
  kPartial,  ///< likewise, the segment's partial to scratch
  kAtomic,   ///< likewise, combined into the zeroed buffer atomically
  kAcross,   ///< accumulate over the rows of all tasks of the block (TaskLoop::across)
  kGather,   ///< take the element into the thread's part of a later reduction (TaskLoop::gathered)
};

/// Where a root's result goes.
struct Target {
  int buffer = -1;
  IndexExpr offset;     ///< elements; shared: of (row in the task, col), in a tile of (row, col) in it
  bool vector = false;  ///< the elements of a vector are stored by one instruction
};

struct Root {
  StoreKind store = StoreKind::kElement;
  NodeId op = kNoNode;
  int value = -1;    ///< kElement: the value; reductions: the operand's value (-1: nothing to reduce)
  int initial = -1;  ///< reductions: the initial value; -1: that of a product, which has none
  /// Of an update in place: the kSlice value that is added to offsets in its array; -1: of no other.
  int slice = -1;
  Op reducer = Op::kAdd;
  std::vector<Target> targets;
  int row_result = -1;  ///< index into TaskLoop::row_results: every thread of the row has the result there
  /// Index into TaskLoop::gathered. kGather: takes `value`; kReduce: starts from what the thread has
  /// gathered, about the row's `value`, and passes over no elements.
  int gathered = -1;
};

/// When a step that fills tiles does so.
enum class Filling : std::uint8_t {
  kInTask,  ///< with the task's other steps, through registers
  kAhead,   ///< by asynchronous copies (TaskLoop::bulk), for the task TaskLoop::stages - 1 further on
  kOnce,    ///< before the block's tasks, which all have the same
};

struct Step {
  int group = 0;      ///< index into KernelPlan::groups
  int stage = 0;      ///< a block barrier stands between stages
  bool rows = false;  ///< over rows only (each row once), not over (row, col)
  /// Between memory and tiles: consecutive threads on consecutive rows of kTile; of a staged task on
  /// consecutive vectors, under an element-wise mapping of its own.
  bool turned = false;
  Filling filling = Filling::kInTask;
  bool in_bulk = false;  ///< from tiles to memory, by bulk copies (of a loop that has such)
  bool by_all = false;   ///< rows: by all threads that share the row, of which the first stores
  Mapping mapping;
  Layout layout;  ///< of the mapping, in the launch's blocks
  std::vector<Value> values;
  std::vector<Root> roots;
  /// Values needed for the roots, by index, arguments first; the others were replaced by kept ones.
  std::vector<int> order;

  /// Of blocks of so many threads.
  void set(const Mapping& of, int block) {
    mapping = of;
    layout = Layout(of, block, turned ? TileOrder::kAlongRows : TileOrder::kAlongCols);
    layout.together |= turned;
  }
};

/// Where an element's value stays from one step to later ones of the same task (also across a grid barrier,
/// where a block has one task, or where the plan keeps it for all of the block's tasks): one place a thread,
/// element and task.
struct Kept {
  NodeId op = kNoNode;
  DType dtype = DType::kF32;
  std::int64_t elements = 1;        ///< a thread computes in a task, at most
  std::int64_t tasks = 1;           ///< of a block; of several in registers, the loop over them is unrolled
  std::int64_t shared_offset = -1;  ///< bytes, in shared memory; -1: in registers
  int group = -1;                   ///< Residence: index into KernelPlan::groups, and the value's index
  IndexMap map;
};

/// One of the loops that share the steps of a TaskLoop: its size, its blocks, its buffers.
struct LoopEntry {
  Deal deal;
  std::vector<std::int64_t> rows;  ///< of the mapping, by step
  std::vector<int> buffers;        ///< in place of TaskLoop::own_buffers
  std::vector<NodeId> ops;         ///< of the values of its steps, one step after the other
};

/// Accumulators of a reduction across the rows of a row_pack group, one a thread and element of a row: set
/// before a block's tasks, combined over the rows of a task and written to `partials` behind them.
struct AcrossRows {
  NodeId op = kNoNode;
  Op reducer = Op::kAdd;
  Layout layout;      ///< of the group
  int partials = -1;  ///< buffer
};

/// A value of a row that every thread of the row has in a register from the step that makes it to the end of
/// the task.
struct RowResult {
  NodeId op = kNoNode;
  DType dtype = DType::kF32;
};

/// What a thread gathers of a row for a reduction that has no pass of its own (Group::one_pass), from the
/// step that reads the elements to the one that knows the row's value they are taken about.
struct Gathered {
  NodeId op = kNoNode;
  OnePassKind kind = OnePassKind::kExponentials;
  DType dtype = DType::kF32;
};

struct TaskLoop {
  Deal deal;                ///< of all its groups
  std::vector<Step> steps;  ///< by stage
  int stages =
      0;  ///< tasks for which tiles are asked for at a time, that at hand included; 0: none are ahead
  /// They are bulk copies, one a step and task. Those of a task are waited for at one mbarrier, behind the
  /// elements of the first such step's tile.
  bool bulk = false;
  /// Loops that share these steps, by first block, of one first block the widest first; empty: no others do.
  /// The steps and the deal above are then those of the entry with most rows.
  std::vector<LoopEntry> entries;
  std::vector<int> own_buffers;  ///< buffers of the steps in whose place each entry has its own
  std::vector<AcrossRows> across;
  std::vector<RowResult> row_results;
  std::vector<Gathered> gathered;

  /// Of a block, its most in any of the entries.
  std::int64_t most_tasks() const;
};

struct Phase {
  std::vector<TaskLoop> loops;
};

struct Schedule {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Phase> phases;
  std::vector<Kept> kept;
  std::vector<Group> groups;          ///< of the plan, for comments
  KernelLaunch launch;                ///< block rounded up to whole warps
  std::int64_t workspace_offset = 0;  ///< of the reduction workspace in shared memory
  std::int64_t workspace_bytes = 0;
  bool wide_indices = false;  ///< 64-bit index arithmetic
};

/// The schedule of one kernel of a plan. Throws Error naming the op that can be planned but that no kernel
/// computes; SW_CHECKs what verify guarantees.
Schedule build_schedule(const Graph& graph, const KernelPlan& plan);

/// Whether some step of the loop keeps or takes up a value that stays for all of a block's tasks.
bool keeps_over_tasks(const Schedule& kernel, const TaskLoop& loop);

std::string to_text(const Graph& graph, const Schedule& kernel);

}  // namespace stitchwork
