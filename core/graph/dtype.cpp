#include "core/graph/dtype.h"

#include <array>

namespace stitchwork {
namespace {

enum class Kind : std::uint8_t { kPred, kSigned, kUnsigned, kFloat, kComplex, kNone };

struct DTypeRow {
  DType type;
  std::string_view name;
  std::int8_t bytes;
  Kind kind;
  bool executable;
  std::int8_t bits = 0;  ///< where it is not all of its bytes
};

constexpr std::array kRows = {
    DTypeRow{DType::kPred, "pred", 1, Kind::kPred, true, 1},
    DTypeRow{DType::kS1, "s1", 1, Kind::kSigned, false, 1},
    DTypeRow{DType::kS2, "s2", 1, Kind::kSigned, false, 2},
    DTypeRow{DType::kS4, "s4", 1, Kind::kSigned, false, 4},
    DTypeRow{DType::kS8, "s8", 1, Kind::kSigned, true},
    DTypeRow{DType::kS16, "s16", 2, Kind::kSigned, true},
    DTypeRow{DType::kS32, "s32", 4, Kind::kSigned, true},
    DTypeRow{DType::kS64, "s64", 8, Kind::kSigned, true},
    DTypeRow{DType::kU1, "u1", 1, Kind::kUnsigned, false, 1},
    DTypeRow{DType::kU2, "u2", 1, Kind::kUnsigned, false, 2},
    DTypeRow{DType::kU4, "u4", 1, Kind::kUnsigned, false, 4},
    DTypeRow{DType::kU8, "u8", 1, Kind::kUnsigned, true},
    DTypeRow{DType::kU16, "u16", 2, Kind::kUnsigned, true},
    DTypeRow{DType::kU32, "u32", 4, Kind::kUnsigned, true},
    DTypeRow{DType::kU64, "u64", 8, Kind::kUnsigned, true},
    DTypeRow{DType::kF4E2M1FN, "f4e2m1fn", 1, Kind::kFloat, false, 4},
    DTypeRow{DType::kF8E8M0FNU, "f8e8m0fnu", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E3M4, "f8e3m4", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E4M3, "f8e4m3", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E4M3FN, "f8e4m3fn", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E4M3FNUZ, "f8e4m3fnuz", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E4M3B11FNUZ, "f8e4m3b11fnuz", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E5M2, "f8e5m2", 1, Kind::kFloat, false},
    DTypeRow{DType::kF8E5M2FNUZ, "f8e5m2fnuz", 1, Kind::kFloat, false},
    DTypeRow{DType::kF16, "f16", 2, Kind::kFloat, true},
    DTypeRow{DType::kBF16, "bf16", 2, Kind::kFloat, true},
    DTypeRow{DType::kF32, "f32", 4, Kind::kFloat, true},
    DTypeRow{DType::kF64, "f64", 8, Kind::kFloat, true},
    DTypeRow{DType::kC64, "c64", 8, Kind::kComplex, false},
    DTypeRow{DType::kC128, "c128", 16, Kind::kComplex, false},
    DTypeRow{DType::kToken, "token", 0, Kind::kNone, false},
    DTypeRow{DType::kOpaque, "opaque", 0, Kind::kNone, false},
};

constexpr bool dtypes_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].type) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(DType::kOpaque) + 1;
}
static_assert(dtypes_in_order(), "one row a dtype, in the order of the enum");

const DTypeRow& row(DType type) { return kRows[static_cast<std::size_t>(type)]; }

}  // namespace

std::string_view name(DType type) { return row(type).name; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (const DTypeRow& r : kRows) {
    if (r.name == text) return r.type;
  }
  return std::nullopt;
}

int byte_size(DType type) { return row(type).bytes; }
int bit_width(DType type) { return row(type).bits != 0 ? row(type).bits : 8 * row(type).bytes; }
bool is_floating(DType type) { return row(type).kind == Kind::kFloat; }
bool is_integral(DType type) { return row(type).kind == Kind::kSigned || row(type).kind == Kind::kUnsigned; }
bool is_signed_integer(DType type) { return row(type).kind == Kind::kSigned; }
bool is_executable(DType type) { return row(type).executable; }

}  // namespace stitchwork
