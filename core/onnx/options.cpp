#include <charconv>

#include "core/base/error.h"
#include "core/onnx/onnx.h"

namespace stitchwork {

OnnxOptions onnx_options(const std::vector<std::string>& dims, const std::vector<std::string>& values) {
  OnnxOptions options;
  for (const std::string& text : dims) {
    const auto equals = text.rfind('=');
    std::int64_t size = -1;
    const char* const end = text.data() + text.size();
    const auto read =
        std::from_chars(text.data() + (equals == std::string::npos ? 0 : equals + 1), end, size);
    if (equals == std::string::npos || equals == 0 || read.ec != std::errc{} || read.ptr != end || size < 0)
      throw Error(fmt::format("--dim {}: expected NAME=SIZE", text), "for example --dim batch=8");
    if (!options.dims.emplace(text.substr(0, equals), size).second)
      throw Error(fmt::format("--dim {}: the dimension is given twice", text));
  }
  for (const std::string& text : values) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(fmt::format("--value {}: expected NAME=NUMBERS or NAME=FILE.npy", text),
                  "for example --value shape=2,3");
    if (!options.values.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw Error(fmt::format("--value {}: the input is given twice", text));
  }
  return options;
}

}  // namespace stitchwork
