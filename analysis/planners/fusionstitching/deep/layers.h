// Work/Span analysis (FusionStitching 2018, section 3.1) of a graph in which fusions are single nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/stitching/nodes.h"

namespace stitchwork::fusionstitching::deep {

/// The graph with fusions contracted: a unit is an op that orders others (astitch::is_step), or a fusion of
/// such. Index maps that cost nothing belong to none: every kernel evaluates those it reads.
class Contraction {
 public:
  /// `products`: batch dots may be fused.
  Contraction(const astitch::Nodes& nodes, bool products);

  /// The unit of an op, named by one of its ops; kNoNode of index maps, parameters and constants.
  NodeId unit_of(NodeId op) const;
  bool is_fusible(NodeId unit) const { return fusible_[static_cast<std::size_t>(unit)]; }
  /// A library call, control flow or an opaque op.
  bool is_call(NodeId unit) const;
  const std::vector<NodeId>& ops(NodeId unit) const {
    return ops_[static_cast<std::size_t>(unit)];
  }                                                  ///< ascending
  std::vector<NodeId> units() const;                 ///< ascending
  std::vector<NodeId> producers(NodeId unit) const;  ///< units, ascending
  std::vector<NodeId> users(NodeId unit) const;      ///< units, ascending
  /// Whether something outside the unit reads the op: another unit, or the caller.
  bool is_read_outside(NodeId op) const;

  /// Whether a path leads from the one to the other past a third: joined to one, they would be in a cycle.
  bool reaches(NodeId from, NodeId to) const;
  /// All ops of both are `into`'s from now on. No path may lead from one to the other past a third.
  void merge(NodeId into, NodeId from);

  const astitch::Nodes& nodes() const { return nodes_; }

  /// A step that reads an op, and the index maps between them, at most.
  struct Reader {
    NodeId op = kNoNode;
    int maps = 0;
  };
  const std::vector<Reader>& readers(NodeId op) const { return readers_[static_cast<std::size_t>(op)]; }
  /// Index maps between the op and the result of the computation, where it is read through these alone; -1:
  /// it is not.
  int maps_to_result(NodeId op) const { return to_result_[static_cast<std::size_t>(op)]; }

 private:
  void find_readers();
  void raise_users(NodeId unit);

  const astitch::Nodes& nodes_;
  std::vector<bool> fusible_;
  std::vector<std::vector<NodeId>> ops_;
  mutable std::vector<NodeId> parent_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<std::vector<NodeId>> producers_;
  std::vector<int> to_result_;
  std::vector<std::int64_t> level_;  ///< by unit: below those of its users
  mutable std::vector<int> seen_;
  mutable int stamp_ = 0;
};

/// span(root) = 0, span(i) = 1 + the most of its users. Units of equal span are a layer, without dependences
/// among them.
struct Layers {
  std::vector<int> span;                    ///< by unit
  std::vector<std::vector<NodeId>> layers;  ///< units by span, ascending
  std::vector<int> next_call;               ///< of each span the next larger one of a layer that holds a call

  int of(NodeId unit) const { return span[static_cast<std::size_t>(unit)]; }
};

Layers find_layers(const Contraction& graph);
std::string to_text(const Contraction& graph, const Layers& layers);

}  // namespace stitchwork::fusionstitching::deep
