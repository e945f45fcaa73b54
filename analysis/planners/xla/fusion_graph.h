// XLA's computation while its fusion passes run: instructions that are single ops or fusions of several. An
// original op may be in several fusions (XLA duplicates it), but its value is provided by at most one
// instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/plan/constraints.h"
#include "analysis/planners/planner.h"
#include "core/graph/graph.h"

namespace stitchwork::xla {

enum class InstructionKind : std::uint8_t {
  kPlain,  ///< one op
  kLoop,   ///< a fusion emitted as a loop over its root's elements
  kInput,  ///< a fusion emitted as a tiled reduction of its inputs
  kTiles,  ///< a fusion that Triton emits: a block holds whole rows (XLA of today)
};

struct Instruction {
  InstructionKind kind = InstructionKind::kPlain;
  bool alive = true;
  int region = 0;
  /// While the passes run in the order they came; of the kernels that are left ascending, which is
  /// topological.
  std::vector<NodeId> ops;
  std::vector<NodeId> roots;  ///< ascending; the values it provides
  std::vector<NodeId> reads;  ///< ascending; values of others, scalar constants left out
};

// No quantity: stands for every region.
inline constexpr int kAnyRegion = -1;

class FusionGraph {
 public:
  /// `regions`, by node, if given: no kernel has ops of two. Ops of kAnyRegion may go into any.
  explicit FusionGraph(const Graph& graph, Constraints constraints = {},
                       const std::vector<int>& regions = {});

  const Computation& computation() const { return computation_; }
  const Instruction& operator[](int i) const { return instructions_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(instructions_.size()); }
  /// The instruction that provides `value`, -1 for what is no instruction (scalar constants).
  int provider(NodeId value) const { return provider_[static_cast<std::size_t>(value)]; }
  /// Live instructions that read any value of `i`, each once, ascending.
  std::vector<int> users(int i) const;
  bool has_several_users(int i) const;
  /// Live instructions that read `value`.
  const std::vector<int>& readers(NodeId value) const { return readers_[static_cast<std::size_t>(value)]; }
  /// From now on adds to `changes` every value and reader where one begins or ceases to read the other.
  void watch_readers(std::vector<std::pair<NodeId, int>>* changes) { changes_ = changes; }
  /// The pseudo-instruction that reads the result.
  int result() const { return size() - 1; }

  /// Its single op, of a call its product; for plain instructions.
  const Node& op(int i) const { return computation_.node((*this)[i].ops.at(0)); }
  /// A tiled reduction, or a fusion rooted at one: the first such root, else kNoNode.
  NodeId reduction_root(int i) const;
  bool contains(int i, NodeId op) const;
  /// The ops ascending.
  std::vector<NodeId> sorted_ops(int i) const;

  /// Copies the ops of `producer` into `consumer`; the producer goes away when nobody reads it any more.
  void fuse(int producer, int consumer);
  /// One instruction, a plain one of its product, for a call (analysis/plan/epilogue.h).
  void make_call(const std::vector<NodeId>& call);
  /// One instruction with the roots of both.
  void join(int into, int other);
  /// From now on Triton emits it, and what is fused with it.
  void give_tiles(int i) { instructions_[static_cast<std::size_t>(i)].kind = InstructionKind::kTiles; }

  /// Whether the regions let `a` go into `b`, or, with `join`, a kernel give the values of both.
  bool regions_allow(int a, int b, bool join) const;
  /// The ops an override keeps apart that one kernel of `a` and `b` would hold.
  std::optional<Constraints::Pair> keeps_apart(int a, int b) const;

  /// Live instructions, operands before users, depth-first from the result.
  std::vector<int> post_order() const;

 private:
  void absorb(int into, int other, bool last);
  void set_reads(int i, std::vector<NodeId> reads);
  void collect(int i);

  const Computation& computation_;
  Constraints constraints_;
  std::vector<Instruction> instructions_;
  std::vector<std::unordered_set<NodeId>> members_;  ///< the ops of fusions
  std::vector<int> provider_;
  std::vector<std::vector<int>> readers_;
  std::vector<std::pair<NodeId, int>>* changes_ = nullptr;
};

/// Why a fusion was refused: a rule and a sentence with places for up to two numbers. Empty rule: allowed.
struct Ruling {
  std::string_view rule;
  std::string_view why;
  std::int64_t a = 0, b = 0;
  explicit operator bool() const { return rule.empty(); }
};
inline constexpr Ruling kAllowed{};

/// Turns rulings into Decisions; does nothing unless asked to record.
class Recorder {
 public:
  Recorder(bool on, const Computation& computation) : on_(on), computation_(computation) {}
  bool enabled() const { return on_; }
  /// `taken` says what an allowed pair became. The same pair and rule is recorded once, where it was last
  /// decided: passes come again, and the last decides.
  void record(std::string_view step, NodeId subject, NodeId object, const Ruling& ruling,
              std::string_view taken);
  std::vector<Decision> take();

 private:
  bool on_;
  const Computation& computation_;
  std::unordered_map<std::string, std::size_t> seen_;  ///< index of each decision
  std::vector<Decision> decisions_;                    ///< an empty step: decided again later
};

/// Shared memory and parameters of a kernel that held the ops of both.
Ruling fits_one_kernel(const FusionGraph& graph, int a, int b, bool keeps_roots_of_a);

// The passes of XLA of today, in order; each says whether it changed anything.
bool fuse_normalizations(FusionGraph& graph, Recorder& recorder);
bool priority_fusion(FusionGraph& graph, const Device& device, Recorder& recorder);
bool multi_output_fusion_of_today(FusionGraph& graph, Recorder& recorder);

/// Whether a kernel comes of a live instruction; not of scalars that stand in the kernels that read them.
bool becomes_kernel(const FusionGraph& graph, int i);

// The passes of 2019-2020, in the order XLA runs them; each says whether it changed anything.
bool instruction_fusion(FusionGraph& graph, bool may_duplicate, Recorder& recorder);
bool fusion_merger(FusionGraph& graph, Recorder& recorder);
bool multi_output_fusion(FusionGraph& graph, Recorder& recorder);

/// The passes to a fixpoint; what is left that becomes a kernel. `regions` as FusionGraph has them.
std::vector<Instruction> fused_kernels(const Graph& graph, const Constraints& constraints, Recorder& recorder,
                                       const std::vector<int>& regions = {});

/// The root whose domain the kernel of these roots has: the first tiled reduction, else the first reduction,
/// else the first.
NodeId leading_root(const Computation& computation, const std::vector<NodeId>& roots);

/// The kernel an instruction becomes: mapping, groups and launch, schemes not yet told apart.
KernelPlan lower_instruction(const Graph& graph, const Instruction& instruction);

}  // namespace stitchwork::xla
