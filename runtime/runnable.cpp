// What a run refuses before it starts.
#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/lapack_call.h"
#include "core/graph/complex_type.h"
#include "core/graph/window.h"
#include "core/passes/moved.h"
#include "runtime/run.h"

namespace stitchwork {

void require_runnable(const Graph& graph) {
  // Called computations too: a loop's body is run by the evaluator.
  for (const Computation& computation : graph.computations)
    for (const Node& node : computation.nodes) {
      std::string what = fmt::format("{} ({})", node.name, def(node.op).name);
      if (node.op == Op::kCustomCall && !custom_call_target(node).empty())
        what = fmt::format("{} (custom-call of {})", node.name, custom_call_target(node));
      const bool complex = !node.shape.is_tuple && is_complex(node.shape.dtype);
      // It stands beside the op that is to be named (split_complex).
      if (complex && node.op == Op::kBitcastConvert) continue;
      const char* hint =
          complex ? "it can be planned and explained; to run the model write it by arithmetic of real and "
                    "imaginary parts"
                  : "it can be planned and explained; remove it or replace it to run the model";
      if (def(node.op).execution == Execution::kOpaque && !is_lapack_call(node))
        throw Error(graph.source, node.line, 0, what + " cannot be executed", hint);
      if (node.op == Op::kConstant && node.attrs.literal == nullptr)
        throw Error(graph.source, node.line, 0,
                    fmt::format("{} cannot be executed: its values were left out of the file", what),
                    kLeftOutHint);
      if (!node.shape.is_tuple && node.shape.dtype != DType::kToken && !is_executable(node.shape.dtype) &&
          !is_moved(node))
        throw Error(graph.source, node.line, 0,
                    fmt::format("{} cannot be executed: values of type {} are not computed", what,
                                name(node.shape.dtype)),
                    hint);
    }
}

}  // namespace stitchwork
