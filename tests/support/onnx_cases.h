// The ONNX project's backend node tests: a folder a case, read in place where they are (docs/onnx.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/evaluate/evaluator.h"
#include "core/onnx/onnx.h"
#include "core/onnx/proto.h"
#include "core/onnx/tensor.h"

// After proto.h: it needs the same macros.
#include <onnx/onnx-data_pb.h>

namespace stitchwork {

/// Beside the source tree, or where STITCHWORK_ONNX_TESTS says. Empty where the data are not there.
inline std::string onnx_cases_folder() {
  const char* given = std::getenv("STITCHWORK_ONNX_TESTS");
  const std::string folder =
      given != nullptr ? given : STITCHWORK_SOURCE_DIR "/../shared/data/onnx-node-tests";
  return std::filesystem::is_directory(folder) ? folder : "";
}

/// Names in order; STITCHWORK_ONNX_CASES=TEXT keeps those that contain it.
inline std::vector<std::string> onnx_case_names(const std::string& folder) {
  const char* wanted = std::getenv("STITCHWORK_ONNX_CASES");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory()) continue;
    if (wanted != nullptr && name.find(wanted) == std::string::npos) continue;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct OnnxCase {
  std::string path;       ///< of the model
  std::string operators;  ///< the node's operator; of several nodes, joined by +
  onnx::ModelProto model;

  OnnxCase(const std::string& folder, const std::string& name) : path(folder + "/" + name) {
    model.ParseFromString(read_file(path + "/model.onnx"));
    for (const auto& node : model.graph().node())
      operators += (operators.empty() ? "" : "+") + (node.domain().empty() ? "" : node.domain() + ".") +
                   node.op_type();
  }

  /// The values of a graph input or output; sequences give their elements. Throws Error where a type is none
  /// of ours.
  std::vector<Literal> values(const char* kind, int i, const onnx::TypeProto& type) const {
    const std::string bytes = read_file(path + "/test_data_set_0/" + kind + "_" + std::to_string(i) + ".pb");
    if (type.has_sequence_type()) {
      onnx::SequenceProto sequence;
      sequence.ParseFromString(bytes);
      std::vector<Literal> elements;
      for (const auto& tensor : sequence.tensor_values())
        elements.push_back(onnx_reader::read_tensor(tensor, {}));
      return elements;
    }
    onnx::TensorProto tensor;
    tensor.ParseFromString(bytes);
    return {onnx_reader::read_tensor(tensor, {})};
  }
};

/// The graph of a case: where its reader asks for a dimension or an input's value, that of the test's data is
/// given.
struct OnnxCaseGraph {
  Graph graph;
  std::vector<Literal> inputs;
  std::vector<Literal> outputs;    ///< that ONNX says
  std::vector<std::string> fixed;  ///< inputs whose value was given to the reader
};

inline OnnxCaseGraph read_onnx_case(const OnnxCase& test) {
  const auto& declared = test.model.graph();
  OnnxOptions options;
  OnnxCaseGraph result;
  const auto asked = [](const std::string& hint, const std::string& option) -> std::string {
    const auto at = hint.find(option);
    if (at == std::string::npos) return {};
    const auto begin = at + option.size();
    return hint.substr(begin, hint.find('=', begin) - begin);
  };
  for (;;) {
    try {
      result.graph = read_onnx(test.path + "/model.onnx", options);
      break;
    } catch (const Error& error) {
      const std::string value = asked(error.hint(), "--value "), dim = asked(error.hint(), "--dim ");
      if (value.empty() && dim.empty()) throw;
      bool given = false;
      for (int i = 0; i < declared.input_size(); ++i) {
        const auto& input = declared.input(i);
        if (!value.empty() && input.name() == value && !options.values.contains(value)) {
          options.values[value] = test.values("input", i, input.type()).at(0);
          result.fixed.push_back(value);
          given = true;
        }
        for (int d = 0; !dim.empty() && d < input.type().tensor_type().shape().dim_size(); ++d) {
          const auto& extent = input.type().tensor_type().shape().dim(d);
          const std::string name =
              extent.dim_param().empty() ? input.name() + "[" + std::to_string(d) + "]" : extent.dim_param();
          if (extent.has_dim_value() || name != dim || options.dims.contains(dim)) continue;
          options.dims[dim] =
              test.values("input", i, input.type()).at(0).shape.dims.at(static_cast<std::size_t>(d));
          given = true;
        }
      }
      if (!given) throw;
    }
  }
  for (int i = 0; i < declared.input_size(); ++i)
    if (!options.values.contains(declared.input(i).name()))
      for (Literal& value : test.values("input", i, declared.input(i).type()))
        result.inputs.push_back(std::move(value));
  for (int i = 0; i < declared.output_size(); ++i)
    for (Literal& value : test.values("output", i, declared.output(i).type()))
      result.outputs.push_back(std::move(value));
  return result;
}

/// ONNX's backend test: integers are equal, |a - r| <= atol + rtol |r| with rtol = 1e-3 and atol = 1e-7
/// (bfloat16, which keeps 8 bits: rtol = 2^-8, one unit in the last place). Empty if it holds.
inline std::string onnx_difference(const std::vector<Literal>& actual, const std::vector<Literal>& expected,
                                   double atol = 1e-7) {
  if (actual.size() != expected.size())
    return fmt::format("{} outputs, {} are expected", actual.size(), expected.size());
  for (std::size_t o = 0; o < actual.size(); ++o) {
    const Literal &a = actual[o], &r = expected[o];
    if (!a.shape.compatible(r.shape))
      return fmt::format("output {} is {}, {} is expected", o, to_text(a.shape), to_text(r.shape));
    const double rtol = r.shape.dtype == DType::kBF16 ? 0x1p-8 : 1e-3;
    for (std::int64_t i = 0; i < r.shape.elements_count(); ++i) {
      if (!is_floating(r.shape.dtype)) {
        if (a.get_int(i) != r.get_int(i))
          return fmt::format("output {} element {} is {}, {} is right", o, i, a.get_int(i), r.get_int(i));
        continue;
      }
      const double x = a.get_double(i), y = r.get_double(i);
      const bool same =
          std::isnan(y) ? std::isnan(x) : x == y || std::abs(x - y) <= atol + rtol * std::abs(y);
      if (!same) return fmt::format("output {} element {} is {}, {} is right", o, i, x, y);
    }
  }
  return {};
}

}  // namespace stitchwork
