// What a Gemm says, done.
#pragma once

#include <vector>

#include "analysis/facts/gemm.h"
#include "core/graph/literal.h"

namespace stitchwork::testing {

/// The products that a Gemm describes, made one by one.
inline Literal multiplied(const Gemm& gemm, const Literal& a, const Literal& b, const Shape& shape) {
  Literal c = Literal::zeros(shape);
  std::vector<std::int64_t> index(gemm.batch.size(), 0);
  for (;;) {
    std::int64_t at_a = 0, at_b = 0, at_c = 0;
    for (std::size_t l = 0; l < index.size(); ++l) {
      at_a += index[l] * gemm.batch[l].a;
      at_b += index[l] * gemm.batch[l].b;
      at_c += index[l] * gemm.batch[l].c;
    }
    for (std::int64_t i = 0; i < gemm.m; ++i)
      for (std::int64_t j = 0; j < gemm.n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < gemm.k; ++l)
          sum += a.get_double(at_a + i * gemm.a_row + l * gemm.a_col) *
                 b.get_double(at_b + l * gemm.b_row + j * gemm.b_col);
        c.set_double(at_c + i * gemm.c_row + j, sum);
      }
    std::size_t l = index.size();
    while (l > 0 && ++index[l - 1] == gemm.batch[l - 1].extent) index[--l] = 0;
    if (l == 0) return c;
  }
}

}  // namespace stitchwork::testing
