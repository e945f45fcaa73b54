// Any bytes give a graph that is valid, also after the passes, or an Error: no crash, no hang, no memory
// beyond what the bytes themselves hold and the reader's limits of folding.
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/onnx/onnx.h"
#include "core/passes/passes.h"
#include "tests/fuzz/mutate_onnx.h"

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

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  stitchwork::onnx_reader::pb::ModelProto model;
  if (seed % 8 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  stitchwork::fuzz::OnnxMutator(model, seed).mutate();
  const std::size_t bytes = model.ByteSizeLong();
  if (bytes > max_size) return LLVMFuzzerMutate(data, size, max_size);
  model.SerializeToArray(data, static_cast<int>(bytes));
  return bytes;
}
