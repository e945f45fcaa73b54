// Custom calls that the reference makes itself.
#pragma once

#include "core/graph/graph.h"

namespace stitchwork {

/// What JAX calls on a CPU for LU, QR and Cholesky factors, systems of a triangular matrix, eigenvalues of
/// symmetric matrices and singular values (lapack_sgetrf, blas_strsm, ...), in f32 and f64.
bool is_lapack_call(const Node& node);

}  // namespace stitchwork
