// Any text gives a graph that prints and reads back as itself and that the passes keep valid, or an Error.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/fuzz/mutate_hlo.h"

namespace stitchwork {
namespace {

void read(std::string_view text) {
  try {
    const Graph graph = parse_hlo(text, "fuzz.hlo");
    if (!equal(parse_hlo(to_text(graph), "again.hlo"), graph)) std::abort();
    validate(canonicalize(graph));
  } catch (const Error& error) {
    if (error.line() == 0 || error.message().empty()) std::abort();  // bad input has a place
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
  if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text =
      stitchwork::fuzz::HloMutator({reinterpret_cast<const char*>(data), size}, seed).mutated();
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
