// What the reader of ONNX models says of a model, and arrays and folders for it.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/literal.h"
#include "core/onnx/onnx.h"
#include "tests/support/onnx_model.h"

namespace stitchwork::testing {

/// What reading says, "file: message; hint", or "" if it reads.
inline std::string refusal(const OnnxModel& m, const OnnxOptions& options = {},
                           const std::string& folder = {}) {
  try {
    parse_onnx(m.bytes(), "m.onnx", options, folder);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

inline Literal floats(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(DType::kF32, dims));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

inline std::vector<double> numbers(const Literal& literal) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) values.push_back(literal.get_double(i));
  return values;
}

/// A folder of its own that goes away.
struct OnnxFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("stitchwork_onnx_{}", ::getpid());
  OnnxFolder() { std::filesystem::create_directories(path); }
  ~OnnxFolder() { std::filesystem::remove_all(path); }
  OnnxFolder(const OnnxFolder&) = delete;
  OnnxFolder& operator=(const OnnxFolder&) = delete;
};

/// x + w, whose w lies in another file, there.
inline OnnxModel external(const std::string& location, const std::string& offset = "",
                          const std::string& length = "") {
  OnnxModel m;
  m.input("x", {2}).output("y");
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}})
    if (!value.empty()) {
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  m.initializer(tensor);
  m.node("Add", {"x", "w"}, {"y"});
  return m;
}

}  // namespace stitchwork::testing
