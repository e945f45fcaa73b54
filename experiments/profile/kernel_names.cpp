#include "experiments/profile/kernel_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>

namespace stitchwork {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool has_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return text.find(w) != std::string::npos; });
}

}  // namespace

bool is_library_product(std::string_view kernel) {
  return is_convolution(kernel) || has_any(lower_case(kernel), {"gemm", "gemv", "cutlass", "cublas", "xmma",
                                                                "nvjet", "wgmma", "cijk_"});
}

bool is_convolution(std::string_view kernel) {
  std::string text = lower_case(kernel);
  for (std::size_t at; (at = text.find("convert")) != std::string::npos;) text.erase(at, 7);
  return has_any(text, {"conv", "fprop", "dgrad", "wgrad", "winograd", "cudnn"});
}

bool ends_product(std::string_view kernel) {
  return has_any(lower_case(kernel), {"splitk"}) && lower_case(kernel).find("reduce") != std::string::npos;
}

std::optional<InductorName> inductor_name(std::string_view kernel) {
  constexpr std::string_view kTriton = "triton_", kFused = "_fused_";
  if (!kernel.starts_with(kTriton)) return std::nullopt;
  const std::string_view rest = kernel.substr(kTriton.size());
  const std::size_t fused = rest.find(kFused);
  if (fused == std::string_view::npos || fused == 0) return std::nullopt;
  InductorName name{std::string(rest.substr(0, fused)), {}, 0};
  if (name.kind.find('_') != std::string::npos) return std::nullopt;
  std::string_view number = rest.substr(fused + kFused.size());
  if (const std::size_t last = number.rfind('_'); last != std::string_view::npos) {
    name.words = number.substr(0, last);
    number = number.substr(last + 1);
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.number);
  if (error != std::errc() || end != number.data() + number.size() || name.number < 0) return std::nullopt;
  return name;
}

bool is_same_kernel(const InductorName& a, const InductorName& b) {
  return a.kind == b.kind && a.number == b.number &&
         (a.words == b.words || a.words.empty() || b.words.empty());
}

}  // namespace stitchwork
