// Concatenations without a copy: arrays that are computed where a concatenation of them has them, as blocks
// of one matrix (Astra, section 3.2: tensors to be fused "must lie contiguously").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Which arrays lie beside each other so that concatenations of them need no copy. Arrays are matrices:
/// dimensions in front of the concatenated one are the rows, the others the cols (of dimension 0: itself the
/// rows).
class Beside {
 public:
  /// A block of a matrix, in elements.
  struct Block {
    std::int64_t row = 0, col = 0, rows = 0, cols = 0;
    bool operator==(const Block&) const = default;
  };
  /// What an operand of a concatenation is: the op whose buffer it is.
  struct Piece {
    NodeId op = kNoNode;
    /// The concatenation needs an array of its own with the op's value: a number that fills it, or a copy of
    /// what cannot be a block.
    bool own = false;
    Block block;  ///< in the concatenation
  };

  explicit Beside(const Computation& computation) : computation_(computation), users_(computation.users()) {}

  /// The concatenation's operands lie beside each other from here on, and so do those of all added before;
  /// concatenations that it is made of come before it. False, and nothing changed, where that cannot be: all
  /// operands would have to be copied, or one has its place elsewhere. `within_room`: or the matrix would not
  /// hold (`holds`).
  bool add(NodeId concat, bool within_room = false);
  /// Whether every array is a block by extents of its own dimensions, and no matrix has more room left empty
  /// than is used.
  bool holds() const;

  /// Operand by operand; nothing where none can be a block. Parameters and what kernels compute can, unless
  /// something that reads it wants it dense.
  std::optional<std::vector<Piece>> pieces(NodeId concat) const;

  /// Where the concatenation lies: equal numbers share a matrix.
  struct At {
    int matrix = -1;
    Block block;
  };
  std::optional<At> place_of(NodeId op) const;

  /// All arrays that have a place get Attributes::placed, concatenations that were added and their operands.
  void settle(Computation& computation) const;

 private:
  struct Cluster {
    std::map<NodeId, Block> arrays;  ///< operands and concatenations
    struct Leaf {
      NodeId op = kNoNode;
      bool own = false;  ///< a piece's
      Block block;
    };
    std::vector<Leaf> leaves;  ///< what takes room
    Block box() const;
  };

  bool may_be_block(NodeId op) const;
  bool holds(const Cluster& cluster) const;
  void take(Cluster cluster);
  std::optional<Cluster> joined(NodeId concat, const std::vector<Piece>& pieces) const;

  const Computation& computation_;
  std::vector<std::vector<NodeId>> users_;
  std::map<NodeId, int> cluster_of_;
  std::map<int, Cluster> clusters_;
  int next_ = 0;
};

/// Of these concatenations and those that they are made of, which can be in place together: the largest
/// first, ascending.
std::vector<NodeId> concats_in_place(const Computation& computation, std::vector<NodeId> concats);

/// Made for its place among other arrays: equal ones lie elsewhere.
inline bool has_own_place(const Node& node) { return node.attrs.placed != nullptr && node.attrs.placed->own; }

/// Settles the places of all concat-in-place ops of the computation, after whatever renumbered it. Throws
/// Error naming one whose operands cannot lie beside each other.
void lay_beside(Computation& computation);

}  // namespace stitchwork
