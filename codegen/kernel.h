// The one shape every kernel has, whatever planner asked for it:
//
//   kernel   = phases separated by grid barriers
//   phase    = task loops (one a set of groups tied by block-local values)
//   loop     = a block's tasks, in order (vertical packing); a task is steps separated by block barriers
//   step     = a per-thread element loop over a DAG of values keyed by (op, index map), and the roots it
//   stores
//
// A value is computed once per thread: values of one mapping used by several steps stay in registers while
// the budget lasts, else they are loaded or computed again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/plan.h"
#include "core/index_map.h"

namespace stitchwork {

enum class MemorySpace : std::uint8_t { kGlobalInput, kGlobalOutput, kScratch, kShared };

struct Buffer {
  MemorySpace space = MemorySpace::kGlobalInput;
  NodeId op = kNoNode;
  std::string name;           ///< C identifier, from the graph
  Shape shape;                ///< of the op
  std::int64_t elements = 0;  ///< shared: elements a block holds; partials: rows * split
  std::int64_t offset = 0;    ///< bytes, in shared memory or scratch
};

enum class ValueKind : std::uint8_t {
  kConstant,     ///< immediate
  kIndex,        ///< iota: an index expression
  kLoad,         ///< element of a buffer (guarded by the map's constraints)
  kFold,         ///< the `split` partials of a row, folded in order
  kApply,        ///< the op's CUDA expression of `arguments`
  kChoose,       ///< concatenate, pad, dynamic-update-slice: the argument whose map's constraints hold
  kInnerReduce,  ///< a serial reduction over symbols inside one thread (untiled reduce in a loop fusion)
};

/// One value of a step: `op` at index `map` (dims: row, col, then inner-reduction indices).
struct Value {
  ValueKind kind = ValueKind::kApply;
  NodeId op = kNoNode;
  IndexMap map;
  std::vector<int> arguments;  ///< indices of earlier values
  int buffer = -1;             ///< kLoad, kFold
  int scope = -1;              ///< the kInnerReduce value whose body it belongs to, or -1
  bool per_row = false;        ///< does not depend on col: computed once a row
  bool keep = false;           ///< stays in registers for later steps of the loop's task
};

enum class StoreKind : std::uint8_t {
  kElement,  ///< each element to `buffer`
  kReduce,   ///< accumulate over cols, combine in the block, the row's result to `buffer` (shared, scratch or
             ///< output)
  kPartial,  ///< likewise, the segment's partial to scratch
  kAtomic,   ///< likewise, combined into `buffer` atomically
};

struct Root {
  StoreKind store = StoreKind::kElement;
  NodeId op = kNoNode;
  int value = -1;            ///< kElement: the value; reductions: the operand's value
  std::vector<int> buffers;  ///< every place it is stored
};

struct Step {
  int group = 0;      ///< index into KernelPlan::groups: whose mapping it runs under
  bool rows = false;  ///< a loop over rows only (each row once), not over (row, col)
  std::vector<Value> values;
  std::vector<Root> roots;
};

struct TaskLoop {
  ThreadMapping mapping;  ///< tasks, tasks_per_block, blocks: shared by its steps' groups
  std::vector<Step> steps;
};

struct Phase {
  std::vector<TaskLoop> loops;
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Phase> phases;
  KernelLaunch launch;
  bool wide_indices = false;  ///< 64-bit index arithmetic
};

/// Lowers one kernel of a plan. SW_CHECKs what verify guarantees.
Kernel lower(const Graph& graph, const KernelPlan& plan);

std::string to_text(const Graph& graph, const Kernel& kernel);

/// CUDA C++ of one kernel, readable (`canonical` false: names from the graph, a comment a group) or canonical
/// (buffers and values renumbered, no comments; the text whose hash keys the kernel cache). Needs the prelude
/// in front.
std::string to_cuda(const Graph& graph, const Kernel& kernel, bool canonical);

/// Device functions and macros every kernel relies on; includes no CUDA header, serves NVRTC and clang.
std::string_view cuda_prelude();

}  // namespace stitchwork
