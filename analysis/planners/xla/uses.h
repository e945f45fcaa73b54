// What an instruction's ops do with the values that they read: how often, and at how many indices.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/planners/xla/fusion_graph.h"

namespace stitchwork::xla {

/// What an instruction's own ops do with each value they read, kept up to date while ops are fused in: asked
/// anew for every fusion, it would cost the square of a kernel's ops.
class Uses {
 public:
  /// Of one value.
  struct Use {
    bool reused = false;             ///< read repeatedly, or what is computed from it is
    bool in_loop = false;            ///< read by a reduction or window, or what is computed from it is
    std::vector<NodeId> indexed_by;  ///< the ops that read it, or pass on to it, at indices of their own
    std::int64_t emissions = 0;      ///< at how many different indices it is needed
  };

  /// `emissions`: at how many indices the instruction's results are needed.
  Uses(const FusionGraph& graph, int instruction, std::int64_t emissions = 1);

  /// Whether this is still what the instruction does.
  bool is_of(const Instruction& instruction) const {
    return ops_ == instruction.ops.size() && roots_ == instruction.roots.size();
  }
  /// All zero of what it does not read.
  const Use& of(NodeId value) const;
  /// Of the value that is needed at most indices.
  std::int64_t most_emissions() const { return most_; }
  /// `op` is fused in, and all its users there are in already.
  void add(NodeId op);

 private:
  void index(Use& use, NodeId by);

  const Computation& computation_;
  std::size_t ops_ = 0, roots_;
  std::int64_t roots_emissions_, most_;
  std::unordered_map<NodeId, Use> uses_;
};

/// By instruction, kept while ops are fused into it.
class UsesByInstruction {
 public:
  explicit UsesByInstruction(const FusionGraph& graph) : graph_(graph) {}
  const Uses& of(int instruction);
  /// These ops, operands first, are about to be fused into `consumer`.
  void fuse(const std::vector<NodeId>& ops, int consumer);

 private:
  const FusionGraph& graph_;
  std::unordered_map<int, Uses> uses_;
};

/// Refuses what would be emitted more often than XLA allows (FusionNodeIndexingEvaluation).
Ruling emitted_rarely(std::int64_t emissions);

/// Of merging a fusion into one of its users: neither it nor what it is computed from is emitted too often
/// (FusedIrEmitter::IsFusedIrEmitterInefficient). `user`: what that does.
Ruling merged_rarely(const FusionGraph& graph, int fusion, const Uses& user);

}  // namespace stitchwork::xla
