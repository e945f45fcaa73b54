// Of ai.onnx.ml what is plain arithmetic on arrays.
#include <array>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

Value list_of(const std::vector<double>& values, const Dims& dims) {
  Literal literal = Literal::zeros(Shape::array(DType::kF32, dims));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return Builder::known(std::move(literal));
}

/// Elements of the last dimension at the indices, which count as one list.
Values lower_array_feature_extractor(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &indices = c.in(1);
  c.check(x.rank() >= 1 && x.dims().back() > 0, fmt::format("{} has no features", to_text(x.shape)));
  const std::int64_t last = x.rank() - 1, count = product(indices.dims());
  GatherDims dims;
  for (std::int64_t d = 0; d < last; ++d) dims.offset_dims.push_back(d);
  dims.slice_sizes = x.dims();
  dims.slice_sizes.back() = 1;
  dims.collapsed_slice_dims = dims.start_index_map = {last};
  dims.index_vector_dim = 1;
  const Value taken = b.gather(x, b.reshape(indices, {count, 1}), dims);
  return {last == 0 ? b.reshape(taken, {1, count}) : taken};
}

Values lower_binarizer(NodeContext& c) {
  const Value& x = c.in(0);
  return {c.b.convert(c.b.compare(Comparison::kGt, x, c.number("threshold", 0)), x.dtype())};
}

Values lower_scaler(NodeContext& c) {
  const Value& x = c.in(0);
  const auto attribute = [&](const char* name) {
    const std::vector<double> values = c.numbers(name);
    const auto count = static_cast<std::int64_t>(values.size());
    c.check(x.rank() >= 1 && (count == 1 || count == x.dims().back()),
            fmt::format("{} has {} values for {}", name, count, to_text(x.shape)));
    return list_of(values, {count});
  };
  const Value offset = attribute("offset"), scale = attribute("scale");
  return {c.b.mul(c.b.sub(c.b.convert(x, DType::kF32), offset), scale)};
}

Values lower_linear_regressor(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t targets = c.integer("targets", 1);
  const std::vector<double> coefficients = c.numbers("coefficients"), intercepts = c.numbers("intercepts");
  const std::string post = c.text("post_transform", "NONE");
  c.check(post == "NONE", fmt::format("post_transform {} is not supported", post));
  c.check_range("targets", {targets}, 1);
  c.check(
      x.rank() == 2 && std::ssize(coefficients) == targets * x.dim(1),
      fmt::format("{} coefficients for {} and {} targets", coefficients.size(), to_text(x.shape), targets));
  c.check(intercepts.empty() || std::ssize(intercepts) == targets,
          fmt::format("{} intercepts for {} targets", intercepts.size(), targets));
  const Value weights = list_of(coefficients, {targets, x.dim(1)});
  const Value y = c.b.dot(c.b.convert(x, DType::kF32), weights, {{}, {}, {1}, {1}});
  return {intercepts.empty() ? y : c.b.add(y, list_of(intercepts, {targets}))};
}

constexpr const char* kMlDomain = "ai.onnx.ml";
constexpr std::array kMlRows = {
    OperatorRow{"ArrayFeatureExtractor", 1, lower_array_feature_extractor, kMlDomain},
    OperatorRow{"Binarizer", 1, lower_binarizer, kMlDomain},
    OperatorRow{"LinearRegressor", 1, lower_linear_regressor, kMlDomain},
    OperatorRow{"Scaler", 1, lower_scaler, kMlDomain},
};

}  // namespace

std::span<const OperatorRow> ml_operators() { return kMlRows; }

}  // namespace stitchwork::onnx_reader
