// Activation functions that several ONNX operators share: as operators of their own and inside recurrent
// ones, losses and others.
#pragma once

#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {

Value relu(Builder& b, const Value& x);
/// log(1 + exp(x)) without overflow.
Value softplus(Builder& b, const Value& x);
Value softsign(Builder& b, const Value& x);
Value leaky_relu(Builder& b, const Value& x, double alpha);
Value elu(Builder& b, const Value& x, double alpha);
/// alpha * x + beta, held in [0, 1].
Value hard_sigmoid(Builder& b, const Value& x, double alpha, double beta);
/// log of the soft maximum over `dims`, from x less its largest element.
Value log_softmax(Builder& b, const Value& x, const Dims& dims);

}  // namespace stitchwork::onnx_reader
