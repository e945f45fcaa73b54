#include "analysis/planners/astra/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/traffic.h"
#include "core/base/at.h"
#include "core/substitute/matrix_side.h"

namespace stitchwork::astra {
namespace {

using Dims = std::vector<std::int64_t>;

std::optional<Operand> operand_of(const Computation& computation, NodeId read, const Dims& contracting) {
  const std::optional<MatrixSide> side = matrix_side(computation.node(read).shape.dims, contracting);
  if (!side) return std::nullopt;
  return Operand{{buffer_of(computation, read), side->rows, side->cols}, side->contracted};
}

Verdict of_two_matrices(const Computation& computation, const Node& dot) {
  if (!is_product(dot) || !is_floating(dot.shape.dtype))
    return Verdict::no("astra.dtype", fmt::format("{} is no product of floats", to_text(dot.shape)));
  for (const NodeId read : dot.operands)
    if (computation.node(read).shape.dtype != dot.shape.dtype)
      return Verdict::no("astra.dtype", fmt::format("{} of {}: one type in a fused call", to_text(dot.shape),
                                                    to_text(computation.node(read).shape)));
  if (!dot.attrs.dot->lhs_batch.empty())
    return Verdict::no("astra.batch-dims",
                       fmt::format("{} batch dimensions: several products, of no two matrices",
                                   dot.attrs.dot->lhs_batch.size()));
  return Verdict::yes();
}

std::optional<Product> product_of(const Computation& computation, const Node& dot) {
  const DotDims dims = with_sorted_contraction(*dot.attrs.dot);
  const auto left = operand_of(computation, dot.operands[0], dims.lhs_contracting);
  const auto right = operand_of(computation, dot.operands[1], dims.rhs_contracting);
  if (!left || !right || dot.shape.elements_count() == 0 || left->summed() == 0) return std::nullopt;
  return Product{dot.id, dot.id, *left, *right, {dot.id, left->free(), right->free()}};
}

void take_in_transpose(const Computation& computation, const std::vector<NodeId>& users, Product& product) {
  if (users.size() != 1) return;
  const Node& reader = computation.node(users[0]);
  if (reader.op != Op::kTranspose || reader.attrs.dimensions != Dims{1, 0}) return;
  product.result = reader.id;
  std::swap(product.left, product.right);
  product.to = {reader.id, product.m(), product.n()};
}

/// Calls that are no products read and fill arrays of their own.
void find_places(const Computation& computation, Products& products) {
  for (const NodeId id : values_read(computation, computation.root)) products.is_result[at(id)] = true;
  const auto keep = [&](NodeId op, NodeId who) {
    if (products.in_place[at(op)]) return;
    products.in_place[at(op)] = true;
    products.in_place_for[at(op)] = who;
  };
  for (const Node& node : computation.nodes) {
    const PlanRole role = plan_role(node);
    if (role != PlanRole::kOpaque && (role != PlanRole::kLibrary || is_product(node))) {
      // Elements of a tuple lie where whoever made the tuple left them.
      if (node.op == Op::kGetTupleElement) keep(buffer_of(computation, node.id), node.operands[0]);
      continue;
    }
    keep(node.id, node.id);
    for (const NodeId read : node.operands)
      for (const NodeId owner : buffers_read(computation, read)) keep(owner, node.id);
  }
}

Verdict may_be_placed(const Computation& computation, const Products& products, const Product& product) {
  for (const Matrix& matrix : {product.left.matrix, product.right.matrix, product.to}) {
    if (!products.in_place[at(matrix.op)]) continue;
    const NodeId who = products.in_place_for[at(matrix.op)];
    return Verdict::no("astra.host-call",
                       fmt::format("{} needs the array of {} dense", computation.node(who).name,
                                   computation.node(matrix.op).name));
  }
  return Verdict::yes();
}

/// Every array is one matrix, the first that it is read as.
Verdict is_one_matrix(const Computation& computation, std::map<NodeId, Matrix>& seen,
                      const Product& product) {
  const Matrix all[] = {product.left.matrix, product.right.matrix, product.to};
  for (const Matrix& matrix : all) {
    const auto known = seen.find(matrix.op);
    if (known != seen.end() && known->second != matrix)
      return Verdict::no("astra.layout",
                         fmt::format("{} is a matrix of {} rows elsewhere, of {} here",
                                     computation.node(matrix.op).name, known->second.rows, matrix.rows));
  }
  if (all[0].op == all[1].op && all[0] != all[1])
    return Verdict::no("astra.layout", "both sides are one array, as different matrices");
  for (const Matrix& matrix : all) seen.emplace(matrix.op, matrix);
  return Verdict::yes();
}

}  // namespace

Products products(const Computation& computation, const std::vector<std::vector<NodeId>>& users,
                  Recorder& recorder) {
  const std::size_t size = at(computation.size());
  Products result{{},
                  std::vector<int>(size, -1),
                  {},
                  std::vector<bool>(size),
                  std::vector<bool>(size),
                  std::vector<NodeId>(size, kNoNode)};
  find_places(computation, result);
  std::map<NodeId, Matrix> seen;
  for (const Node& node : computation.nodes) {
    if (node.op != Op::kDot) continue;
    result.dots.push_back(node.id);
    Verdict verdict = of_two_matrices(computation, node);
    std::optional<Product> product;
    if (verdict) {
      product = product_of(computation, node);
      if (!product) verdict = Verdict::no("astra.layout", "what is summed over is no side of two matrices");
    }
    if (product && !result.is_result[at(node.id)])
      take_in_transpose(computation, users[at(node.id)], *product);
    if (product) verdict = may_be_placed(computation, result, *product);
    if (product && verdict && !result.list.empty() &&
        node.attrs.other != computation.node(result.list[0].dot).attrs.other)
      verdict =
          Verdict::no("astra.attributes", fmt::format("its precision or other attributes are not those of {}",
                                                      computation.node(result.list[0].dot).name));
    if (product && verdict) verdict = is_one_matrix(computation, seen, *product);
    if (verdict) {
      result.of_result[at(product->result)] = static_cast<int>(result.list.size());
      result.list.push_back(*product);
    } else {
      recorder.add(kFusionStep, node.name, "", [&] { return verdict; });
    }
  }
  return result;
}

}  // namespace stitchwork::astra
