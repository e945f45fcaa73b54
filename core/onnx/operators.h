// The table of ONNX operators: one row an operator, a file a family. How to add one: core/onnx/onnx.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/onnx/node_context.h"

namespace stitchwork::onnx_reader {

using Lowering = std::vector<Value> (*)(NodeContext&);

struct OperatorRow {
  std::string_view name;
  int since;  ///< first version of the domain's operator set that has it (7: or before)
  Lowering lower;
  std::string_view domain = "";  ///< "" is ai.onnx
};

/// The domain of ONNX Runtime's own operators.
inline constexpr std::string_view kContrib = "com.microsoft";

/// Versions of ai.onnx that are read.
inline constexpr std::int64_t kOldestVersion = 7, kNewestVersion = 28;

/// nullptr if there is none. ai.onnx is the domain "".
const OperatorRow* find_operator(std::string_view domain, std::string_view name);
/// Why there is none, where that is no matter of time: ": it draws random numbers". Else empty.
std::string why_not(std::string_view domain, std::string_view name);
/// All rows, by domain and name.
std::vector<const OperatorRow*> all_operators();

// The families.
std::span<const OperatorRow> elementwise_operators();        ///< ops_elementwise.cpp
std::span<const OperatorRow> activation_operators();         ///< ops_activation.cpp
std::span<const OperatorRow> reduction_operators();          ///< ops_reduction.cpp
std::span<const OperatorRow> shape_operators();              ///< ops_shape.cpp
std::span<const OperatorRow> linear_operators();             ///< ops_linear.cpp
std::span<const OperatorRow> index_operators();              ///< ops_index.cpp
std::span<const OperatorRow> normalization_operators();      ///< ops_normalization.cpp
std::span<const OperatorRow> attention_operators();          ///< ops_attention.cpp
std::span<const OperatorRow> convolution_operators();        ///< ops_convolution.cpp
std::span<const OperatorRow> pooling_operators();            ///< ops_pooling.cpp
std::span<const OperatorRow> control_operators();            ///< ops_control.cpp
std::span<const OperatorRow> recurrent_operators();          ///< ops_recurrent.cpp
std::span<const OperatorRow> loss_operators();               ///< ops_loss.cpp
std::span<const OperatorRow> random_operators();             ///< ops_random.cpp
std::span<const OperatorRow> training_operators();           ///< ops_training.cpp
std::span<const OperatorRow> resize_operators();             ///< ops_resize.cpp
std::span<const OperatorRow> sample_operators();             ///< ops_sample.cpp
std::span<const OperatorRow> image_operators();              ///< ops_image.cpp
std::span<const OperatorRow> quantize_operators();           ///< ops_quantize.cpp
std::span<const OperatorRow> quantized_product_operators();  ///< ops_quantized_product.cpp
std::span<const OperatorRow> signal_operators();             ///< ops_signal.cpp
std::span<const OperatorRow> sequence_operators();           ///< ops_sequence.cpp
std::span<const OperatorRow> ml_operators();                 ///< ops_ml.cpp

}  // namespace stitchwork::onnx_reader
