#include "analysis/planners/fusionstitching/one_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/kernel.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork::fusionstitching {
namespace {

/// Of a reduce: that of its operand; of other ops all operands are of the result's shape unless the key names
/// them.
std::vector<Shape> operands_of(const KeyOp& op) {
  if (!op.operands.empty()) return op.operands;
  const auto count = op.op == Op::kReduce ? 1 : def(op.op).min_operands;
  std::vector<Shape> all(static_cast<std::size_t>(count), op.shape);
  if (op.op == Op::kTranspose)  // the permutation is from the operand to the result
    for (std::size_t d = 0; d < op.dims.size() && d < op.shape.dims.size(); ++d)
      if (const auto to = static_cast<std::size_t>(op.dims[d]); to < all[0].dims.size())
        all[0].dims[to] = op.shape.dims[d];
  return all;
}

std::string attributes_of(const KeyOp& op) {
  if (op.op == Op::kReduce)
    return fmt::format(", dimensions={{{}}}, to_apply=reducer", fmt::join(op.dims, ","));
  if (op.op == Op::kTranspose) return fmt::format(", dimensions={{{}}}", fmt::join(op.dims, ","));
  if (op.op == Op::kCompare) return ", direction=" + op.kind;
  if (op.op != Op::kDot) return "";
  return fmt::format(
      ", lhs_batch_dims={{{}}}, lhs_contracting_dims={{{}}}, rhs_batch_dims={{{}}}, "
      "rhs_contracting_dims={{{}}}",
      fmt::join(op.dot.lhs_batch, ","), fmt::join(op.dot.lhs_contracting, ","),
      fmt::join(op.dot.rhs_batch, ","), fmt::join(op.dot.rhs_contracting, ","));
}

/// The module as HLO text; the op is called "op".
std::string module_of(const KeyOp& op) {
  const std::string element = to_text(Shape::array(op.shape.dtype, {}));
  const Shape result = Shape::array(op.shape.dtype, result_dims(op));
  std::string text = "HloModule one_op\n";
  if (op.op == Op::kReduce)
    text += fmt::format(
        "reducer {{\n  a = {0} parameter(0)\n  b = {0} parameter(1)\n  ROOT c = {0} {1}(a, b)\n}}\n", element,
        op.kind);
  text += "ENTRY main {\n";
  std::string operands;
  const std::vector<Shape> shapes = operands_of(op);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += fmt::format("  p{0} = {1} parameter({0})\n", i, to_text(shapes[i]));
    operands += fmt::format("{}p{}", i == 0 ? "" : ", ", i);
  }
  if (op.op == Op::kReduce) {
    text +=
        fmt::format("  init = {} constant({})\n", element, op.shape.dtype == DType::kPred ? "false" : "0");
    operands += ", init";
  }
  return text + fmt::format("  ROOT op = {} {}({}){}\n}}\n", to_text(result), def(op.op).name, operands,
                            attributes_of(op));
}

}  // namespace

OneOp one_op(const Device& device, const LibraryKey& key) {
  OneOp result;
  const std::string text = to_text(key);
  try {
    result.graph = parse_hlo(module_of(key.op), text);
  } catch (const Error& error) {
    throw Error(fmt::format("'{}' is no op of its operands: {}", text, error.message()));
  }
  result.graph.source = text;
  result.graph.source_sha256 = sha256_hex(module_of(key.op));
  const Graph& graph = result.graph;
  const Computation& computation = graph.entry_computation();
  const Node& node = computation.node(computation.root);
  const auto chunks = chunking(key.schedule, node.shape.dims);
  SW_CHECK(chunks && chunks->one_range(), "{} has a key and no chunks", text);
  const Dealt dealt = chunk_mapping(computation, node, chunks->elements(), key.threads, key.warps);
  Stitched stitched{{{node.id}, {node.id}}, {{node.id, {}, dealt, 0}}, {}, {}, key.threads};
  std::vector<KernelPlan> kernels;
  kernels.push_back(stitched_kernel(computation, stitched));
  result.plan = assemble(graph, device, "fusionstitching-2018", std::move(kernels));
  const PlanEvaluations found = evaluations(computation, result.plan);
  predict(graph, device, result.plan, found);
  const std::vector<Verdict> problems = verify(graph, device, result.plan, &found);
  SW_CHECK(problems.empty(), "the kernel of {} is invalid: {} [{}]", text, problems[0].why, problems[0].rule);
  return result;
}

}  // namespace stitchwork::fusionstitching
