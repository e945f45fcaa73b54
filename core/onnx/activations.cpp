#include "core/onnx/activations.h"

namespace stitchwork::onnx_reader {
namespace {

Value negative(Builder& b, const Value& x) { return b.compare(Comparison::kLt, x, 0); }

}  // namespace

Value relu(Builder& b, const Value& x) { return b.max(x, Builder::scalar_int(x.dtype(), 0)); }

Value softplus(Builder& b, const Value& x) {
  return b.add(b.max(x, 0), b.unary(Op::kLog1p, b.unary(Op::kExp, b.neg(b.unary(Op::kAbs, x)))));
}

Value softsign(Builder& b, const Value& x) { return b.div(x, b.add(b.unary(Op::kAbs, x), 1)); }

Value leaky_relu(Builder& b, const Value& x, double alpha) {
  return b.select(negative(b, x), b.mul(x, alpha), x);
}

Value elu(Builder& b, const Value& x, double alpha) {
  return b.select(negative(b, x), b.mul(b.unary(Op::kExpm1, x), alpha), x);
}

Value hard_sigmoid(Builder& b, const Value& x, double alpha, double beta) {
  return b.max(b.min(b.add(b.mul(x, alpha), beta), 1), 0);
}

Value log_softmax(Builder& b, const Value& x, const Dims& dims) {
  const Value shifted = b.sub(x, b.reduce(Op::kMaximum, x, dims, true));
  return b.sub(shifted, b.unary(Op::kLog, b.reduce(Op::kAdd, b.unary(Op::kExp, shifted), dims, true)));
}

}  // namespace stitchwork::onnx_reader
