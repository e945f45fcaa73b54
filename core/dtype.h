// Element types, with the names HLO text uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stitchwork {

enum class DType : std::uint8_t {
  kPred,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E5M2,
  kF8E4M3FN,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kToken,
  kOpaque,
};

/// HLO spelling: "pred", "s32", "f32", "bf16", "f8e4m3fn", ...
std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view text);

/// Bytes one element occupies in memory (4-bit types are stored one a byte; token and opaque: 0).
int byte_size(DType type);
bool is_floating(DType type);
bool is_integral(DType type);  ///< signed or unsigned integers, not pred
bool is_signed_integer(DType type);
/// True if values of this type can be executed (evaluator, generated code) rather than only planned:
/// pred, s8..s64, u8..u64, f16, bf16, f32, f64.
bool is_executable(DType type);

}  // namespace stitchwork
