#include "core/passes/fold_transposes.h"
#include "core/passes/passes.h"

namespace stitchwork {

Graph canonicalize(const Graph& graph, OpTrace* trace) {
  Graph result = inline_calls(join_async(graph, trace), trace);
  result = expand(result, trace);
  if (any_complex(result)) result = expand(split_complex(result, trace), trace);
  result = fold_transposes(fold_tuples(result, trace), trace);
  result = eliminate_common_subexpressions(result, trace);
  return eliminate_dead_code(result, trace);
}

}  // namespace stitchwork
