// batch-norm-training, -inference and -grad, as XLA's BatchNormExpander writes them.
#include "core/base/error.h"
#include "core/graph/window.h"
#include "core/passes/expand_ops.h"

namespace stitchwork {
namespace {

class BatchNorm {
 public:
  BatchNorm(Emitter& emit, const Node& node, NodeId from, ComputationId add)
      : emit_(emit), from_(emit.shape(from)), add_(add) {
    feature_ = other_integer(node, "feature_index", -1);
    epsilon_ = other_number(node, "epsilon", 0);
  }

  NodeId training(NodeId x, NodeId scale, NodeId offset) {
    const NodeId mean = average(x);
    const NodeId square_of_mean = emit_.binary(Op::kMultiply, mean, mean);
    const NodeId variance =
        emit_.binary(Op::kSubtract, average(emit_.binary(Op::kMultiply, x, x)), square_of_mean);
    return tuple({inference(x, scale, offset, mean, variance), mean, variance});
  }

  NodeId inference(NodeId x, NodeId scale, NodeId offset, NodeId mean, NodeId variance) {
    const NodeId centred = emit_.binary(Op::kSubtract, x, spread(mean));
    const NodeId normal = emit_.binary(Op::kMultiply, centred, spread(inverse_deviation(variance)));
    return emit_.binary(Op::kAdd, emit_.binary(Op::kMultiply, normal, spread(scale)), spread(offset));
  }

  NodeId gradient(NodeId x, NodeId scale, NodeId mean, NodeId variance, NodeId grad) {
    const NodeId inverse = inverse_deviation(variance);
    const NodeId centred = emit_.binary(Op::kSubtract, x, spread(mean));
    const NodeId sum_of_products = sum(emit_.binary(Op::kMultiply, grad, centred));
    const NodeId offset_grad = sum(grad);
    const NodeId scale_grad = emit_.binary(Op::kMultiply, sum_of_products, inverse);
    // scale * inverse * (grad - mean(grad) - centred * inverse^2 * mean(grad * centred))
    const NodeId factor =
        emit_.binary(Op::kMultiply, emit_.binary(Op::kMultiply, inverse, inverse), divided(sum_of_products));
    const NodeId slope = emit_.binary(Op::kMultiply, centred, spread(factor));
    const NodeId left = emit_.binary(Op::kSubtract, grad, spread(divided(offset_grad)));
    const NodeId inner = emit_.binary(Op::kSubtract, left, slope);
    const NodeId outer = spread(emit_.binary(Op::kMultiply, scale, inverse));
    return tuple({emit_.binary(Op::kMultiply, outer, inner), scale_grad, offset_grad});
  }

 private:
  /// Over all dimensions but the feature's.
  NodeId sum(NodeId x) {
    Attributes attributes;
    for (int d = 0; d < from_.rank(); ++d)
      if (d != feature_) attributes.dimensions.push_back(d);
    attributes.computations = {add_};
    return emit_.add(Op::kReduce, Shape::array(from_.dtype, {features()}), {x, emit_.scalar(from_.dtype, 0)},
                     attributes);
  }
  NodeId divided(NodeId total) {
    const double count = static_cast<double>(from_.elements_count()) / static_cast<double>(features());
    return emit_.binary(Op::kDivide, total, emit_.fill(emit_.shape(total), count));
  }
  NodeId average(NodeId x) { return divided(sum(x)); }
  NodeId inverse_deviation(NodeId variance) {
    return emit_.unary(Op::kRsqrt,
                       emit_.binary(Op::kAdd, variance, emit_.fill(emit_.shape(variance), epsilon_)));
  }
  NodeId spread(NodeId per_feature) { return emit_.broadcast(per_feature, from_.dims, {feature_}); }
  NodeId tuple(const std::vector<NodeId>& parts) {
    std::vector<Shape> shapes;
    for (const NodeId part : parts) shapes.push_back(emit_.shape(part));
    return emit_.add(Op::kTuple, Shape::tuple(std::move(shapes)), parts);
  }
  std::int64_t features() const { return from_.dims[static_cast<std::size_t>(feature_)]; }

  Emitter& emit_;
  Shape from_;
  ComputationId add_;
  std::int64_t feature_ = 0;
  double epsilon_ = 0;
};

}  // namespace

NodeId expand_batch_norm(Emitter& emit, const Node& node, const std::vector<NodeId>& operands,
                         ComputationId add) {
  BatchNorm norm(emit, node, operands[0], add);
  switch (node.op) {
    case Op::kBatchNormTraining:
      return norm.training(operands[0], operands[1], operands[2]);
    case Op::kBatchNormInference:
      return norm.inference(operands[0], operands[1], operands[2], operands[3], operands[4]);
    default:
      return norm.gradient(operands[0], operands[1], operands[2], operands[3], operands[4]);
  }
}

}  // namespace stitchwork
