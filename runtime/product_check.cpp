#include "runtime/product_check.h"

#include <fmt/format.h>

#include <random>
#include <vector>

namespace stitchwork {
namespace {

std::vector<double> numbers(const Literal& literal) {
  std::vector<double> values(static_cast<std::size_t>(literal.shape.elements_count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = literal.get_double(static_cast<std::int64_t>(i));
  return values;
}

/// One of the batch, whose matrices begin there.
void multiply(const Gemm& gemm, const double* a, const double* b, Literal& c, std::int64_t at,
              bool accumulate) {
  std::vector<double> row(static_cast<std::size_t>(gemm.n));
  for (std::int64_t i = 0; i < gemm.m; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::int64_t l = 0; l < gemm.k; ++l) {
      const double left = a[i * gemm.a_row + l * gemm.a_col];
      const double* const right = b + l * gemm.b_row;
      for (std::size_t j = 0; j < row.size(); ++j)
        row[j] += left * right[static_cast<std::int64_t>(j) * gemm.b_col];
    }
    for (std::int64_t j = 0; j < gemm.n; ++j) {
      const std::int64_t to = at + i * gemm.c_row + j;
      c.set_double(to, (accumulate ? c.get_double(to) : 0) + row[static_cast<std::size_t>(j)]);
    }
  }
}

}  // namespace

Literal drawn_elements(std::int64_t elements, DType type, std::uint64_t seed) {
  Literal literal = Literal::zeros(Shape::array(type, {elements}));
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < elements; ++i)
    literal.set_double(i, (static_cast<double>(random() % 17) - 8) / 8);
  return literal;
}

Literal host_product(const Gemm& gemm, const Literal& a, const Literal& b, Literal c, bool accumulate) {
  const std::vector<double> left = numbers(a), right = numbers(b);
  std::vector<std::int64_t> index(gemm.batch.size(), 0);
  for (;;) {
    std::int64_t at_a = 0, at_b = 0, at_c = 0;
    for (std::size_t l = 0; l < index.size(); ++l) {
      at_a += index[l] * gemm.batch[l].a;
      at_b += index[l] * gemm.batch[l].b;
      at_c += index[l] * gemm.batch[l].c;
    }
    multiply(gemm, left.data() + at_a, right.data() + at_b, c, at_c, accumulate);
    std::size_t l = index.size();
    while (l > 0 && ++index[l - 1] == gemm.batch[l - 1].extent) index[--l] = 0;
    if (l == 0) return c;
  }
}

Verdict equal_elements(const Literal& right, const Literal& made) {
  for (std::int64_t i = 0; i < right.shape.elements_count(); ++i)
    if (const double want = right.get_double(i), is = made.get_double(i); want != is)
      return Verdict::no("gemm.result", fmt::format("element {} of C is {}, not {}", i, is, want));
  return Verdict::yes();
}

}  // namespace stitchwork
