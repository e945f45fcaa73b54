#include "core/passes/passes.h"

namespace stitchwork {

Graph canonicalize(const Graph& graph) {
  Graph result = inline_calls(join_async(graph));
  result = expand(result);
  result = fold_tuples(result);
  result = eliminate_common_subexpressions(result);
  return eliminate_dead_code(result);
}

}  // namespace stitchwork
