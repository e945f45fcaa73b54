// The update tree of a space (Astra, section 4.4.2, figure 2).
#pragma once

#include <string>
#include <vector>

#include "analysis/planners/astra/space.h"
#include "analysis/planners/astra/tree.h"

namespace stitchwork::astra {

/// The kernel of products that a library takes by itself.
inline constexpr const char* kLibraryKernel = "library";

struct TreeOptions {
  std::vector<std::string> variants = {kLibraryKernel};  ///< kernels of a product; the first is the default
  bool chunks = true;                                    ///< off: every product by itself
  bool allocations = true;                               ///< off: the first strategy
  int streams = 2;
  /// Pieces of some rungs of a ladder, which the others are added to; off: one or all.
  bool partial_sums = true;
  bool sums = true;     ///< off: no piece has several rungs
  bool appends = true;  ///< kernels copy operands beside each other; off: they lie there
};

/// A fork over strategies; in each, first all groups in parallel, a fork over chunks whose calls' kernels are
/// chosen in parallel, with the products in no group; then all super-epochs in parallel, their epochs in
/// turn. Names: "strategy"; "g3", "g3/1x4x2/0"; "dot:NAME"; "se0/e2". Chunks and counts on streams are the
/// options; (1, 1, 1) and all on stream 0 come first.
TreeNode space_tree(const Graph& graph, const Device& device, const FusionPlan& plan, const Space& space,
                    const TreeOptions& options);

/// Its part below all super-epochs: how many steps of each class are on each stream.
TreeNode stream_tree(const StreamSpace& space, int streams);

/// The chunks that a tree offers for a group, (1, 1, 1) first; and their names, "1x4x2".
std::vector<Chunk> offered_chunks(const FusionGroup& group, const Device& device, const TreeOptions& options);
std::string to_text(const Chunk& chunk);
/// The name of a product in no group: that of its dot may be a group's, too.
std::string product_name(const Computation& computation, NodeId dot);

}  // namespace stitchwork::astra
