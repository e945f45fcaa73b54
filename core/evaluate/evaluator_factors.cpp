// Factors of matrices and systems of equations: LAPACK and BLAS in float64, a matrix at a time.
#include <cblas.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/lapack_call.h"
#include "core/graph/window.h"

// LAPACK as OpenBLAS has it (netlib.org/lapack): Fortran, whose texts pass their lengths behind the others.
extern "C" {
void dpotrf_(const char* uplo, const blasint* n, double* a, const blasint* lda, blasint* info, std::size_t);
void dgetrf_(const blasint* m, const blasint* n, double* a, const blasint* lda, blasint* pivots,
             blasint* info);
void dgeqrf_(const blasint* m, const blasint* n, double* a, const blasint* lda, double* tau, double* work,
             const blasint* lwork, blasint* info);
void dorgqr_(const blasint* m, const blasint* n, const blasint* k, double* a, const blasint* lda,
             const double* tau, double* work, const blasint* lwork, blasint* info);
void dsyevd_(const char* jobz, const char* uplo, const blasint* n, double* a, const blasint* lda, double* w,
             double* work, const blasint* lwork, blasint* iwork, const blasint* liwork, blasint* info,
             std::size_t, std::size_t);
void dgesdd_(const char* jobz, const blasint* m, const blasint* n, double* a, const blasint* lda, double* s,
             double* u, const blasint* ldu, double* vt, const blasint* ldvt, double* work,
             const blasint* lwork, blasint* iwork, blasint* info, std::size_t);
}

namespace stitchwork {
namespace {

/// A matrix as Fortran has it: columns one behind the other.
struct FortranMatrix {
  blasint rows = 0, columns = 0;
  std::vector<double> values;

  FortranMatrix() = default;
  FortranMatrix(blasint r, blasint c)
      : rows(r), columns(c), values(static_cast<std::size_t>(r) * static_cast<std::size_t>(c)) {}
  double& at(blasint r, blasint c) {
    return values[static_cast<std::size_t>(c) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(r)];
  }
  double* data() { return values.data(); }
  /// No leading dimension may be 0.
  blasint stride() const { return std::max<blasint>(1, rows); }
};

/// The last two extents of an array of matrices; vectors have one.
blasint extent_from_end(const Shape& shape, int from_end) {
  if (shape.rank() < from_end)
    throw Error(fmt::format("{} is no array of matrices", to_text(shape)), "its last two dimensions are one");
  const std::int64_t extent = shape.dims[shape.dims.size() - static_cast<std::size_t>(from_end)];
  if (extent > std::numeric_limits<blasint>::max())
    throw Error(fmt::format("a matrix of {} rows or columns is beyond LAPACK's", extent));
  return static_cast<blasint>(extent);
}

std::int64_t matrices_of(const Shape& shape) {
  std::int64_t count = 1;
  for (std::size_t d = 0; d + 2 < shape.dims.size(); ++d) count *= shape.dims[d];
  return count;
}

FortranMatrix matrix_of(const Literal& literal, std::int64_t number) {
  FortranMatrix m(extent_from_end(literal.shape, 2), extent_from_end(literal.shape, 1));
  std::int64_t i = number * m.rows * m.columns;
  for (blasint r = 0; r < m.rows; ++r)
    for (blasint c = 0; c < m.columns; ++c) m.at(r, c) = literal.get_double(i++);
  return m;
}

void put(FortranMatrix& m, Literal& literal, std::int64_t number) {
  std::int64_t i = number * m.rows * m.columns;
  for (blasint r = 0; r < m.rows; ++r)
    for (blasint c = 0; c < m.columns; ++c) literal.set_double(i++, m.at(r, c));
}

template <typename T>
void put(const std::vector<T>& values, Literal& literal, std::int64_t number) {
  std::int64_t i = number * static_cast<std::int64_t>(values.size());
  for (const T value : values) {
    if constexpr (std::is_floating_point_v<T>)
      literal.set_double(i++, value);
    else
      literal.set_int(i++, value);
  }
}

void require_real(const Node& node, const Literal& operand) {
  if (!is_floating(operand.shape.dtype) || !is_executable(operand.shape.dtype))
    throw Error(fmt::format("{} of {} is not computed", def(node.op).name, name(operand.shape.dtype)),
                "convert it to f32");
}

bool flag(const Node& node, std::string_view key) { return other_attribute(node, key) == "true"; }

/// Zero beside the triangle. False where the matrix is not positive definite: then NaN.
bool cholesky(FortranMatrix& m, bool lower) {
  blasint info = 0;
  const blasint stride = m.stride();
  dpotrf_(lower ? "L" : "U", &m.rows, m.data(), &stride, &info, 1);
  for (blasint r = 0; r < m.rows; ++r)
    for (blasint c = 0; c < m.columns; ++c) {
      if (info != 0) m.at(r, c) = std::nan("");
      if (lower ? c > r : c < r) m.at(r, c) = 0;
    }
  return info == 0;
}

struct Solve {
  bool left = false, lower = false, transposed = false, unit_diagonal = false;
};

Literal solved(const Solve& how, const Literal& a, const Literal& b) {
  Literal result = Literal::zeros(b.shape);
  for (std::int64_t i = 0, n = matrices_of(b.shape); i < n; ++i) {
    const FortranMatrix triangle = matrix_of(a, i);
    FortranMatrix x = matrix_of(b, i);
    cblas_dtrsm(CblasColMajor, how.left ? CblasLeft : CblasRight, how.lower ? CblasLower : CblasUpper,
                how.transposed ? CblasTrans : CblasNoTrans, how.unit_diagonal ? CblasUnit : CblasNonUnit,
                x.rows, x.columns, 1.0, triangle.values.data(), triangle.stride(), x.data(), x.stride());
    put(x, result, i);
  }
  return result;
}

// The calls. JAX makes them in two forms: older ones take sizes and flags in front and give workspace, whose
// values say nothing, behind (jaxlib, lapack.py); those of XLA's typed FFI have flags as attributes.

/// What one call asks for, whichever its form.
struct LapackCall {
  bool lower = false, vectors = true, full = false;
  const Literal* matrix = nullptr;
  const Literal* reflectors = nullptr;  ///< factors of the Householder reflectors
};
using Results = std::span<Literal* const>;

void put_info(Results out, std::size_t at, std::int64_t i, std::int64_t info) {
  if (at < out.size()) out[at]->set_int(i, info);
}

void potrf(const LapackCall& call, Results out, std::int64_t i) {
  FortranMatrix m = matrix_of(*call.matrix, i);
  const bool definite = cholesky(m, call.lower);
  put(m, *out[0], i);
  put_info(out, 1, i, definite ? 0 : 1);
}

void getrf(const LapackCall& call, Results out, std::int64_t i) {
  FortranMatrix m = matrix_of(*call.matrix, i);
  std::vector<blasint> pivots(static_cast<std::size_t>(std::min(m.rows, m.columns)));
  blasint info = 0;
  const blasint stride = m.stride();
  dgetrf_(&m.rows, &m.columns, m.data(), &stride, pivots.data(), &info);
  put(m, *out[0], i);
  put(pivots, *out[1], i);
  put_info(out, 2, i, info);
}

/// As much as LAPACK wants is asked for by -1.
template <typename Call>
void with_workspace(const Call& call) {
  double wanted = 0;
  blasint size = -1;
  call(&wanted, &size);
  size = std::max<blasint>(1, static_cast<blasint>(wanted));
  std::vector<double> work(static_cast<std::size_t>(size));
  call(work.data(), &size);
}

void geqrf(const LapackCall& call, Results out, std::int64_t i) {
  FortranMatrix m = matrix_of(*call.matrix, i);
  std::vector<double> tau(static_cast<std::size_t>(std::min(m.rows, m.columns)));
  blasint info = 0;
  const blasint stride = m.stride();
  with_workspace([&](double* work, const blasint* size) {
    dgeqrf_(&m.rows, &m.columns, m.data(), &stride, tau.data(), work, size, &info);
  });
  put(m, *out[0], i);
  put(tau, *out[1], i);
  put_info(out, 2, i, info);
}

void orgqr(const LapackCall& call, Results out, std::int64_t i) {
  FortranMatrix m = matrix_of(*call.matrix, i);
  const Literal& factors = *call.reflectors;
  const blasint k = extent_from_end(factors.shape, 1);
  std::vector<double> tau;
  for (std::int64_t j = 0; j < k; ++j) tau.push_back(factors.get_double(i * k + j));
  blasint info = 0;
  const blasint stride = m.stride();
  with_workspace([&](double* work, const blasint* size) {
    dorgqr_(&m.rows, &m.columns, &k, m.data(), &stride, tau.data(), work, size, &info);
  });
  put(m, *out[0], i);
  put_info(out, 1, i, info);
}

void syevd(const LapackCall& call, Results out, std::int64_t i) {
  FortranMatrix m = matrix_of(*call.matrix, i);
  const blasint n = m.rows, stride = m.stride(), integers = 3 + 5 * n;
  std::vector<double> values(static_cast<std::size_t>(n));
  std::vector<blasint> more(static_cast<std::size_t>(integers));
  const char* triangle = call.lower ? "L" : "U";
  blasint info = 0;
  with_workspace([&](double* work, const blasint* size) {
    dsyevd_("V", triangle, &n, m.data(), &stride, values.data(), work, size, more.data(), &integers, &info, 1,
            1);
  });
  put(m, *out[0], i);
  put(values, *out[1], i);
  put_info(out, 2, i, info);
}

void gesdd(const LapackCall& call, Results out, std::int64_t i) {
  FortranMatrix m = matrix_of(*call.matrix, i);
  FortranMatrix u(extent_from_end(out[2]->shape, 2), extent_from_end(out[2]->shape, 1));
  FortranMatrix v(extent_from_end(out[3]->shape, 2), extent_from_end(out[3]->shape, 1));
  const blasint least = std::min(m.rows, m.columns), stride = m.stride(), u_stride = u.stride(),
                v_stride = v.stride();
  std::vector<double> values(static_cast<std::size_t>(least));
  std::vector<blasint> integers(static_cast<std::size_t>(8 * std::max<blasint>(1, least)));
  blasint info = 0;
  with_workspace([&](double* work, const blasint* size) {
    dgesdd_(!call.vectors ? "N"
            : call.full   ? "A"
                          : "S",
            &m.rows, &m.columns, m.data(), &stride, values.data(), u.data(), &u_stride, v.data(), &v_stride,
            work, size, integers.data(), &info, 1);
  });
  put(values, *out[1], i);
  put(u, *out[2], i);
  put(v, *out[3], i);
  put_info(out, 4, i, info);
}

struct LapackRow {
  std::string_view routine;  ///< behind the letter of the type
  std::size_t operands, results;
  std::size_t ffi_operands, ffi_results;  ///< of the typed form
  void (*call)(const LapackCall& call, Results out, std::int64_t matrix);
};

constexpr LapackRow kLapackRows[] = {{"potrf", 4, 2, 1, 2, potrf}, {"getrf", 4, 3, 1, 3, getrf},
                                     {"geqrf", 5, 4, 1, 2, geqrf}, {"orgqr", 7, 3, 2, 1, orgqr},
                                     {"syevd", 4, 5, 1, 3, syevd}, {"gesdd", 7, 7, 1, 5, gesdd}};

bool is_typed(const Node& node) { return custom_call_target(node).ends_with("_ffi"); }

/// Behind "lapack_s" or "lapack_d" and before "_ffi".
std::string_view routine_of(const Node& node) {
  std::string_view target = custom_call_target(node);
  if (!target.starts_with("lapack_s") && !target.starts_with("lapack_d")) return {};
  target.remove_prefix(std::string_view("lapack_s").size());
  if (target.ends_with("_ffi")) target.remove_suffix(std::string_view("_ffi").size());
  return target;
}

const LapackRow* lapack_row(const Node& node) {
  const std::size_t results = node.shape.is_tuple ? node.shape.elements.size() : 1;
  for (const LapackRow& row : kLapackRows)
    if (row.routine == routine_of(node))
      return node.operands.size() == (is_typed(node) ? row.ffi_operands : row.operands) &&
                     results == (is_typed(node) ? row.ffi_results : row.results)
                 ? &row
                 : nullptr;
  return nullptr;
}

/// side, lower, transposed, unit diagonal, m, n, count, alpha, a, b; typed: a, b.
bool is_trsm(const Node& node) {
  const std::string_view target = custom_call_target(node);
  const bool old = (target == "blas_strsm" || target == "blas_dtrsm") && node.operands.size() == 10;
  const bool typed = is_typed(node) && routine_of(node) == "trsm" && node.operands.size() == 2;
  return (old || typed) && !node.shape.is_tuple;
}

/// A flag of a typed call, a letter of LAPACK's by its number: backend_config={uplo = 76 : ui8}.
char letter(const Node& node, std::string_view key) {
  const std::string_view text = other_attribute(node, "backend_config");
  const std::string wanted = fmt::format("{} = ", key);
  std::size_t at = text.find(wanted);
  if (at == std::string_view::npos)
    throw Error(fmt::format("{} has no {}", custom_call_target(node), key),
                "backend_config={uplo = 76 : ui8}");
  at += wanted.size();
  int number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return static_cast<char>(number);
}

LapackCall lapack_call(const Node& node, Values operands) {
  const std::string_view routine = routine_of(node);
  const bool typed = is_typed(node), two = routine == "orgqr";
  const auto is_set = [&](std::size_t i) { return !typed && operands[i]->get_int(0) != 0; };
  LapackCall call;
  call.matrix = operands[operands.size() - (two ? 2 : 1)];
  call.reflectors = two ? operands.back() : nullptr;
  if (routine == "potrf" || routine == "syevd") call.lower = typed ? letter(node, "uplo") == 'L' : is_set(0);
  if (routine == "gesdd") {
    call.vectors = typed ? letter(node, "mode") != 'N' : is_set(1);
    call.full = typed ? letter(node, "mode") == 'A' : is_set(0);
  }
  return call;
}

Literal trsm(const Node& node, Values operands) {
  if (is_typed(node))
    return solved({.left = letter(node, "side") == 'L',
                   .lower = letter(node, "uplo") == 'L',
                   .transposed = letter(node, "trans_x") != 'N',
                   .unit_diagonal = letter(node, "diag") == 'U'},
                  *operands[0], *operands[1]);
  const auto is_set = [&](std::size_t i) { return operands[i]->get_int(0) != 0; };
  Literal b = *operands[9];
  if (const double alpha = operands[7]->get_double(0); alpha != 1)
    for (std::int64_t i = 0, n = b.shape.elements_count(); i < n; ++i)
      b.set_double(i, alpha * b.get_double(i));
  return solved({.left = is_set(0), .lower = is_set(1), .transposed = is_set(2), .unit_diagonal = is_set(3)},
                *operands[8], b);
}

}  // namespace

bool is_lapack_call(const Node& node) {
  return node.op == Op::kCustomCall && (is_trsm(node) || lapack_row(node) != nullptr);
}

Literal evaluate_cholesky(const Node& node, Values operands) {
  require_real(node, *operands[0]);
  Literal result = Literal::zeros(node.shape);
  for (std::int64_t i = 0, n = matrices_of(node.shape); i < n; ++i) {
    FortranMatrix m = matrix_of(*operands[0], i);
    cholesky(m, flag(node, "lower"));
    put(m, result, i);
  }
  return result;
}

Literal evaluate_triangular_solve(const Node& node, Values operands) {
  require_real(node, *operands[0]);
  const std::string_view transposed = other_attribute(node, "transpose_a");
  return solved({.left = flag(node, "left_side"),
                 .lower = flag(node, "lower"),
                 .transposed = transposed == "TRANSPOSE" || transposed == "ADJOINT",
                 .unit_diagonal = flag(node, "unit_diagonal")},
                *operands[0], *operands[1]);
}

Literal evaluate_lapack_call(const Node& node, Values operands) {
  require_real(node, *operands.back());
  if (is_trsm(node)) return trsm(node, operands);
  const LapackRow* row = lapack_row(node);
  SW_CHECK(row != nullptr, "{} is no call of LAPACK", node.name);
  const LapackCall call = lapack_call(node, operands);
  Literal result = Literal::zeros(node.shape);
  std::vector<Literal*> out;
  for (Literal& element : result.elements) out.push_back(&element);
  if (!node.shape.is_tuple) out.push_back(&result);
  for (std::int64_t i = 0, n = matrices_of(call.matrix->shape); i < n; ++i) row->call(call, out, i);
  return result;
}

}  // namespace stitchwork
