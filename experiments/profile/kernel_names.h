// How libraries and compilers call their kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stitchwork {

/// Whether a kernel of a library's is a matrix product or convolution, by its name.
bool is_library_product(std::string_view kernel);

/// Of those, whether it is a convolution: cuDNN's and CUTLASS's words ("convert" is none).
bool is_convolution(std::string_view kernel);
/// Whether it is the second kernel of a product whose sum over k is split.
bool ends_product(std::string_view kernel);

/// How Inductor calls what it makes for Triton. "triton_red_fused_add_pow_3": kind "red", words "add_pow",
/// number 3. The words are those of `config.triton.descriptive_names`, none where that is off or a graph
/// tells no ATen op.
struct InductorName {
  std::string kind;   ///< "poi" point by point, "per" persistent, "red" looped reduction, "tem" template, ..
  std::string words;  ///< of the ops that it fuses
  int number = 0;     ///< of the kernel in its module, in the order in which they were generated

  bool operator==(const InductorName&) const = default;
};

/// Nothing where a kernel is not called so (torch/_inductor/codegen/triton.py: `triton_KIND_fused_WORDS_N`).
std::optional<InductorName> inductor_name(std::string_view kernel);

/// Whether both may be one kernel, compiled twice: kind and number, and the words where both have some.
bool is_same_kernel(const InductorName& a, const InductorName& b);

}  // namespace stitchwork
