// Element types, with the names HLO text uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stitchwork {

enum class DType : std::uint8_t {
  kPred,
  kS1,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU1,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF8E8M0FNU,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
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

/// Bytes one element occupies in memory (types narrower than a byte are stored one a byte; token and opaque:
/// 0).
int byte_size(DType type);
/// Bits that tell its values apart: of pred 1, of s4 and f4e2m1fn 4, of the others 8 * byte_size.
int bit_width(DType type);
bool is_floating(DType type);
bool is_integral(DType type);  ///< signed or unsigned integers, not pred
bool is_signed_integer(DType type);
/// True if values of this type can be executed (evaluator, generated code) rather than only planned:
/// pred, s8..s64, u8..u64, f16, bf16, f32, f64.
bool is_executable(DType type);

}  // namespace stitchwork
