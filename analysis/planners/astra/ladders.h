// Sums of products that one product makes: [A1 A2] [B1; B2] = A1 B1 + A2 B2 (Astra, section 4.4.1).
#pragma once

#include <vector>

#include "analysis/planners/astra/products.h"

namespace stitchwork::astra {

/// Products whose sum `root` is; one product alone is a ladder of one rung.
struct Ladder {
  NodeId root = kNoNode;      ///< the last add; of one rung the product's result
  std::vector<int> rungs;     ///< places in Products::list, by their lefts' ops
  NodeId start = kNoNode;     ///< the value that the products are added to, if there is one
  std::vector<NodeId> inner;  ///< the adds that go: the root and those below, ascending; none of one rung
};

/// Every product is a rung of exactly one ladder; ladders by their roots, ascending.
///
/// In a maximal tree of adds (one shape; inner ones have one reader and are no results) products that the
/// tree alone reads are rungs; the root is the lowest add above all rungs of the tree. One other leaf may be
/// what they are added to, if the root's tree is its only reader; where there are more, the root stays an add
/// and both sides are trees of their own. Refused: astra.read-elsewhere, astra.depends,
/// astra.same-operand-twice, astra.dtype, astra.layout (rungs of unlike sides).
std::vector<Ladder> ladders(const Computation& computation, const std::vector<std::vector<NodeId>>& users,
                            const Products& products, Recorder& recorder);

}  // namespace stitchwork::astra
