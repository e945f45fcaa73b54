// Factors of matrices: what they multiply to, and systems of equations put in again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

std::vector<Literal> values_of(const std::string& body, const std::vector<Literal>& inputs) {
  return evaluate(parse_hlo("HloModule m\nENTRY e {\n" + body + "\n}\n", "test.hlo"), inputs);
}

Literal filled(std::vector<std::int64_t> dims, double diagonal, DType type = DType::kF32) {
  Literal literal = Literal::zeros(Shape::array(type, dims));
  const std::int64_t columns = dims.back(), rows = dims[dims.size() - 2];
  for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i)
    literal.set_double(
        i, std::sin(1.0 + 1.7 * static_cast<double>(i)) + (i % columns == i / columns % rows ? diagonal : 0));
  return literal;
}

double at(const Literal& m, std::int64_t batch, std::int64_t r, std::int64_t c) {
  const auto& dims = m.shape.dims;
  return m.get_double((batch * dims[dims.size() - 2] + r) * dims.back() + c);
}

TEST(Factors, ACholeskyFactorTimesItsTransposeIsTheMatrix) {
  constexpr std::int64_t kBatch = 3, kN = 7;
  Literal a = Literal::zeros(Shape::array(DType::kF64, {kBatch, kN, kN}));
  const Literal m = filled({kBatch, kN, kN}, 0, DType::kF64);
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t i = 0; i < kN; ++i)
      for (std::int64_t j = 0; j < kN; ++j) {
        double sum = i == j ? 1 : 0;
        for (std::int64_t k = 0; k < kN; ++k) sum += at(m, b, i, k) * at(m, b, j, k);
        a.set_double((b * kN + i) * kN + j, sum);
      }
  for (const bool lower : {true, false}) {
    const Literal l = values_of(fmt::format("a = f64[3,7,7] parameter(0)\n ROOT l = f64[3,7,7] cholesky(a){}",
                                            lower ? ", lower=true" : ""),
                                {a})[0];
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t i = 0; i < kN; ++i)
        for (std::int64_t j = 0; j < kN; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < kN; ++k)
            sum += lower ? at(l, b, i, k) * at(l, b, j, k) : at(l, b, k, i) * at(l, b, k, j);
          EXPECT_NEAR(sum, at(a, b, i, j), 1e-12);
          if (lower ? j > i : j < i) {
            EXPECT_EQ(at(l, b, i, j), 0);
          }
        }
  }
}

TEST(Factors, AMatrixThatIsNotPositiveDefiniteGivesNan) {
  const Literal a = filled({4, 4}, -5);
  const Literal l =
      values_of("a = f32[4,4] parameter(0)\n ROOT l = f32[4,4] cholesky(a), lower=true", {a})[0];
  EXPECT_TRUE(std::isnan(l.get_double(0)));
  EXPECT_TRUE(std::isnan(l.get_double(15)));
}

TEST(Factors, TriangularSolvesSolveWhateverTheirFlags) {
  constexpr std::int64_t kN = 5, kColumns = 3;
  for (int flags = 0; flags < 16; ++flags) {
    const bool left = (flags & 1) != 0, lower = (flags & 2) != 0, transposed = (flags & 4) != 0,
               unit = (flags & 8) != 0;
    SCOPED_TRACE(flags);
    const Literal a = filled({2, kN, kN}, 4, DType::kF64);
    const Literal b =
        filled(left ? std::vector<std::int64_t>{2, kN, kColumns} : std::vector<std::int64_t>{2, kColumns, kN},
               0, DType::kF64);
    const Literal x = values_of(
        fmt::format("a = f64[2,5,5] parameter(0)\n b = {0} parameter(1)\n ROOT x = {0} "
                    "triangular-solve(a, b), left_side={1}, lower={2}, unit_diagonal={3}, transpose_a={4}",
                    to_text(b.shape), left, lower, unit, transposed ? "TRANSPOSE" : "NO_TRANSPOSE"),
        {a, b})[0];
    const auto coefficient = [&](std::int64_t batch, std::int64_t i, std::int64_t j) {
      if (transposed) std::swap(i, j);
      if (i == j) return unit ? 1.0 : at(a, batch, i, j);
      return (lower ? j < i : j > i) ? at(a, batch, i, j) : 0.0;
    };
    for (std::int64_t batch = 0; batch < 2; ++batch)
      for (std::int64_t i = 0; i < kN; ++i)
        for (std::int64_t c = 0; c < kColumns; ++c) {
          double sum = 0;
          for (std::int64_t k = 0; k < kN; ++k)
            sum += left ? coefficient(batch, i, k) * at(x, batch, k, c)
                        : at(x, batch, c, k) * coefficient(batch, k, i);
          EXPECT_NEAR(sum, left ? at(b, batch, i, c) : at(b, batch, c, i), 1e-12);
        }
  }
}

TEST(Factors, CallsOfLapackGiveFactorsOfTheirMatrix) {
  const Literal a = filled({5, 3}, 2);
  const auto lu = values_of(R"(
    a = f32[5,3] parameter(0)
    one = s32[] constant(1)
    m = s32[] constant(5)
    n = s32[] constant(3)
    ROOT lu = (f32[5,3], s32[3], s32[]) custom-call(one, m, n, a), custom_call_target="lapack_sgetrf")",
                            {a});
  Literal product = Literal::zeros(a.shape);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k <= std::min(i, j); ++k)
        sum += (k == i ? 1 : at(lu[0], 0, i, k)) * at(lu[0], 0, k, j);
      product.set_double(i * 3 + j, sum);
    }
  for (std::int64_t k = 2; k >= 0; --k) {  // the rows that were exchanged, back; LAPACK counts from one
    const std::int64_t with = lu[1].get_int(k) - 1;
    for (std::int64_t j = 0; j < 3; ++j) {
      const double kept = at(product, 0, k, j);
      product.set_double(k * 3 + j, at(product, 0, with, j));
      product.set_double(with * 3 + j, kept);
    }
  }
  for (std::int64_t i = 0; i < 15; ++i) EXPECT_NEAR(product.get_double(i), a.get_double(i), 1e-6);

  const auto qr = values_of(R"(
    a = f32[5,3] parameter(0)
    one = s32[] constant(1)
    m = s32[] constant(5)
    n = s32[] constant(3)
    w = s32[] constant(96)
    qr = (f32[5,3], f32[3], s32[], f32[96]) custom-call(one, m, n, w, a), custom_call_target="lapack_sgeqrf"
    r = f32[5,3] get-tuple-element(qr), index=0
    t = f32[3] get-tuple-element(qr), index=1
    g = (f32[5,3], s32[], f32[96]) custom-call(one, m, n, n, w, r, t), custom_call_target="lapack_sorgqr"
    q = f32[5,3] get-tuple-element(g), index=0
    ROOT both = (f32[5,3], f32[5,3]) tuple(q, r))",
                            {a});
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k <= j; ++k) sum += at(qr[0], 0, i, k) * at(qr[1], 0, k, j);
      EXPECT_NEAR(sum, at(a, 0, i, j), 1e-6);
    }

  const auto svd = values_of(R"(
    a = f32[5,3] parameter(0)
    one = s32[] constant(1)
    no = s32[] constant(0)
    m = s32[] constant(5)
    n = s32[] constant(3)
    w = s32[] constant(300)
    ROOT s = (f32[5,3], f32[3], f32[5,3], f32[3,3], s32[], s32[24], f32[300])
      custom-call(no, one, one, m, n, w, a), custom_call_target="lapack_sgesdd")",
                             {a});
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < 3; ++k)
        sum += at(svd[2], 0, i, k) * svd[1].get_double(k) * at(svd[3], 0, k, j);
      EXPECT_NEAR(sum, at(a, 0, i, j), 1e-6);
    }

  Literal symmetric = Literal::zeros(Shape::array(DType::kF32, {2, 4, 4}));
  for (std::int64_t i = 0; i < 32; ++i)
    symmetric.set_double(i, std::cos(static_cast<double>(i / 16 + (i % 16 / 4) * (i % 4))));
  const auto eigen = values_of(R"(
    a = f32[2,4,4] parameter(0)
    one = s32[] constant(1)
    n = s32[] constant(4)
    ROOT e = (f32[2,4,4], f32[2,4], s32[2], f32[57], s32[23]) custom-call(one, one, n, a),
      custom_call_target="lapack_ssyevd")",
                               {symmetric});
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t j = 0; j < 4; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < 4; ++k) sum += at(symmetric, b, i, k) * at(eigen[0], b, k, j);
        EXPECT_NEAR(sum, at(eigen[0], b, i, j) * eigen[1].get_double(b * 4 + j), 1e-5);
      }
}

TEST(Factors, TypedCallsGiveWhatTheOthersDo) {
  const Literal a = filled({2, 5, 5}, 4), b = filled({2, 5, 3}, 0);
  const std::vector<Literal> typed = values_of(R"(
    a = f32[2,5,5]{1,2,0} parameter(0)
    b = f32[2,5,3]{1,2,0} parameter(1)
    lu = (f32[2,5,5]{1,2,0}, s32[2,5], s32[2]) custom-call(a), custom_call_target="lapack_sgetrf_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={}
    m = f32[2,5,5] get-tuple-element(lu), index=0
    x = f32[2,5,3] custom-call(m, b), custom_call_target="lapack_strsm_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}
    t = f32[2,5,3] custom-call(m, b), custom_call_target="lapack_strsm_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 85 : ui8}
    ROOT r = (f32[2,5,5], f32[2,5,3], f32[2,5,3]) tuple(m, x, t))",
                                               {a, b});
  const std::vector<Literal> plain = values_of(R"(
    m = f32[2,5,5] parameter(0)
    b = f32[2,5,3] parameter(1)
    x = f32[2,5,3] triangular-solve(m, b), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE
    t = f32[2,5,3] triangular-solve(m, b), left_side=true, lower=false, transpose_a=TRANSPOSE
    ROOT r = (f32[2,5,3], f32[2,5,3]) tuple(x, t))",
                                               {typed[0], b});
  EXPECT_EQ(typed[1].bytes, plain[0].bytes);
  EXPECT_EQ(typed[2].bytes, plain[1].bytes);

  const std::vector<Literal> thin = values_of(R"(
    b = f32[2,5,3] parameter(0)
    qr = (f32[2,5,3], f32[2,3]) custom-call(b), custom_call_target="lapack_sgeqrf_ffi", backend_config={}
    h = f32[2,5,3] get-tuple-element(qr), index=0
    tau = f32[2,3] get-tuple-element(qr), index=1
    q = f32[2,5,3] custom-call(h, tau), custom_call_target="lapack_sorgqr_ffi", backend_config={}
    g = f32[2,3,3] dot(q, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
    svd = (f32[2,5,3], f32[2,3], f32[2,5,3], f32[2,3,3], s32[2]) custom-call(b), custom_call_target="lapack_sgesdd_ffi", backend_config={mode = 83 : ui8}
    s = f32[2,3] get-tuple-element(svd), index=1
    ROOT r = (f32[2,3,3], f32[2,3]) tuple(g, s))",
                                              {b});
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    double squares = 0, values = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) EXPECT_NEAR(at(thin[0], batch, i, j), i == j, 1e-5);
      values += std::pow(thin[1].get_double(batch * 3 + i), 2);
      for (std::int64_t r = 0; r < 5; ++r) squares += std::pow(at(b, batch, r, i), 2);
    }
    EXPECT_NEAR(values, squares, 1e-4);
  }
}

TEST(Factors, OtherCallsAreRefusedByName) {
  try {
    values_of("a = c64[2,2] parameter(0)\n ROOT l = c64[2,2] cholesky(a)",
              {Literal::zeros(Shape::array(DType::kC64, {2, 2}))});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("cholesky of c64 is not computed"), std::string::npos) << error.message();
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
