#include "analysis/facts/gemm.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/index/buffer.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

using Axis = ProductAxis;

Dims remaining(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims result;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.dims.size()); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end())
      result.push_back(d);
  return result;
}

/// Axes of one element say nothing; neighbours that lie one behind the other in every array are one axis.
std::vector<Axis> collapsed(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!result.empty()) {
      Axis& outer = result.back();
      if (outer.a == axis.a * axis.extent && outer.b == axis.b * axis.extent &&
          outer.c == axis.c * axis.extent) {
        outer = {outer.extent * axis.extent, axis.a, axis.b, axis.c};
        continue;
      }
    }
    result.push_back(axis);
  }
  return result;
}

Axis innermost(std::vector<Axis>& axes) {
  if (axes.empty()) return {};
  const Axis last = axes.back();
  axes.pop_back();
  return last;
}

/// A matrix's strides where one of its extents may be 1, whose stride says nothing then.
bool settle(std::int64_t rows, std::int64_t cols, std::int64_t& row, std::int64_t& col) {
  if (cols == 1 && row != 1) col = 1;
  if (rows == 1 && col != 1) row = 1;
  if (cols == 1 && rows == 1) row = col = 1;
  if (col == 1)
    row = std::max(row, cols);
  else if (row == 1)
    col = std::max(col, rows);
  return row == 1 || col == 1;
}

/// Strides of the dimensions of a result that is stored as its transpose with `dimensions`.
Dims strides_across(const Dims& result, std::span<const std::int64_t> dimensions) {
  Dims stored;
  for (const std::int64_t d : dimensions) stored.push_back(result[static_cast<std::size_t>(d)]);
  const Dims strides = strides_of(stored);
  Dims across(result.size());
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    across[static_cast<std::size_t>(dimensions[i])] = strides[i];
  return across;
}

/// The same product, the right operand first.
Product exchanged(Product product) {
  std::swap(product.rows, product.cols);
  for (auto* axes : {&product.batch, &product.rows, &product.cols, &product.contracted})
    for (Axis& axis : *axes) std::swap(axis.a, axis.b);
  return product;
}

}  // namespace

std::optional<Gemm> gemm_of(Product product) {
  // Sums may be taken in any order.
  std::stable_sort(product.contracted.begin(), product.contracted.end(),
                   [](const Axis& x, const Axis& y) { return x.a > y.a; });
  std::vector<Axis> rows = collapsed(product.rows), cols = collapsed(product.cols),
                    contracted = collapsed(product.contracted);
  if (contracted.size() > 1) return std::nullopt;
  const Axis sum = innermost(contracted), row = innermost(rows), col = innermost(cols);
  Gemm gemm;
  gemm.m = row.extent;
  gemm.n = col.extent;
  gemm.k = sum.extent;
  gemm.a_row = row.a;
  gemm.a_col = sum.a;
  gemm.b_row = sum.b;
  gemm.b_col = col.b;
  gemm.c_row = gemm.m == 1 ? gemm.n : row.c;
  if (gemm.n > 1 && col.c != 1) return std::nullopt;
  if (gemm.n == 1 && gemm.m > 1 && gemm.c_row < 1) return std::nullopt;
  if (!settle(gemm.m, gemm.k, gemm.a_row, gemm.a_col)) return std::nullopt;
  if (!settle(gemm.k, gemm.n, gemm.b_row, gemm.b_col)) return std::nullopt;
  for (const std::vector<Axis>& axes : {collapsed(product.batch), rows, cols})
    for (const Axis& axis : axes) gemm.batch.push_back({axis.extent, axis.a, axis.b, axis.c});
  // The widest loop is innermost: one call makes all its products.
  const auto widest = std::max_element(gemm.batch.begin(), gemm.batch.end(),
                                       [](const auto& x, const auto& y) { return x.extent < y.extent; });
  if (widest != gemm.batch.end()) std::iter_swap(widest, std::prev(gemm.batch.end()));
  return gemm;
}

std::optional<Gemm> gemm_of(const Node& dot, const Node& lhs, const Node& rhs,
                            std::span<const std::int64_t> transposed) {
  SW_CHECK(dot.attrs.dot.has_value(), "{} is no dot", dot.name);
  const DotDims& dims = *dot.attrs.dot;
  const Dims a = strides_of(buffer_extents(lhs)), b = strides_of(buffer_extents(rhs)),
             c = transposed.empty() ? strides_of(dot.shape.dims) : strides_across(dot.shape.dims, transposed);
  const auto at = [](const Dims& of, std::int64_t d) { return of[static_cast<std::size_t>(d)]; };

  Product product;
  std::size_t out = 0;
  for (std::size_t i = 0; i < dims.lhs_batch.size(); ++i, ++out)
    product.batch.push_back(
        {at(lhs.shape.dims, dims.lhs_batch[i]), at(a, dims.lhs_batch[i]), at(b, dims.rhs_batch[i]), c[out]});
  for (const std::int64_t d : remaining(lhs.shape, dims.lhs_batch, dims.lhs_contracting))
    product.rows.push_back({at(lhs.shape.dims, d), at(a, d), 0, c[out++]});
  for (const std::int64_t d : remaining(rhs.shape, dims.rhs_batch, dims.rhs_contracting))
    product.cols.push_back({at(rhs.shape.dims, d), 0, at(b, d), c[out++]});
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i)
    product.contracted.push_back({at(lhs.shape.dims, dims.lhs_contracting[i]), at(a, dims.lhs_contracting[i]),
                                  at(b, dims.rhs_contracting[i]), 0});
  if (transposed.empty()) return gemm_of(std::move(product));
  if (auto gemm = gemm_of(product)) return gemm;
  auto gemm = gemm_of(exchanged(std::move(product)));
  if (gemm) gemm->exchanged = true;
  return gemm;
}

}  // namespace stitchwork
