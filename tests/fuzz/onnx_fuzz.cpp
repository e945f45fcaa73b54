// Any bytes give a graph that is valid, also after the passes, or an Error: no crash, no hang, no memory
// beyond what the bytes themselves hold and the reader's limits of folding.
#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "core/onnx/onnx.h"
#include "core/passes.h"

namespace stitchwork {
namespace {

void read(std::string_view bytes) {
  try {
    validate(canonicalize(parse_onnx(bytes, "fuzz.onnx")));
  } catch (const Error& error) {
    if (error.file().empty() || error.message().empty()) std::abort();
  }
}

}  // namespace
}  // namespace stitchwork

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stitchwork::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
