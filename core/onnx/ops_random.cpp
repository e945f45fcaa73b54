// Operators of random numbers, where they draw none.
#include <array>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Ratio and training_mode are inputs from operator set 12 on; before, a model is read for inference.
Values lower_dropout(NodeContext& c) {
  const Value& x = c.in(0);
  c.ignore("seed");
  if (c.version < 12) {
    c.ignore("ratio");
    c.check(c.version >= 10 || !c.wants(1), "the mask is undefined for inference before operator set 10");
  } else if (c.has(2) && c.known_integer(2) != 0) {
    const std::vector<double> ratio = c.has(1) ? c.known_numbers(1) : std::vector{0.5};
    c.check(ratio == std::vector{0.0},
            fmt::format("training_mode with ratio {} draws random numbers", fmt::join(ratio, ",")));
  }
  c.ignore_input(1);
  Values outputs{x};
  if (c.wants(1)) outputs.push_back(c.b.full(Builder::scalar_int(DType::kPred, 1), x.dims()));
  return outputs;
}

constexpr std::array kRandomRows = {
    OperatorRow{"Dropout", 7, lower_dropout},
};

}  // namespace

std::span<const OperatorRow> random_operators() { return kRandomRows; }

}  // namespace stitchwork::onnx_reader
