// Tensor maps: what tensor copies know of a tensor in global memory (CUtensorMap of the CUDA driver API, PTX
// ISA 8.7, 5.5).
//
// The 128 bytes of a map are opaque on hardware: programs hand them on and look at none. Those here are the
// simulator's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stitchwork::sim {

/// As CUtensorMapDataType numbers them.
enum class TensorElement : std::uint8_t { kU8, kU16, kU32, kS32, kU64, kS64, kF16, kF32, kF64, kBF16 };

/// Which 16-byte chunks of its row a box is packed into: chunk c of a row lies at c ^ (row bits of the
/// address).
enum class Swizzle : std::uint8_t { kNone, k32B, k64B, k128B };

/// The span of a swizzle in bytes; 0: none.
constexpr unsigned swizzle_span(Swizzle s) { return s == Swizzle::kNone ? 0 : 16u << static_cast<int>(s); }
/// Where the byte at `address` of shared memory lies: address bits 4 to 6 are changed by bits 7 to 9, as many
/// of them as the span has.
constexpr std::uint64_t swizzled(std::uint64_t address, Swizzle s) {
  const std::uint64_t chunks = s == Swizzle::kNone ? 0 : swizzle_span(s) / 16 - 1;
  return address ^ (address >> 7 & chunks) << 4;
}

/// What a copy by a map moves: a box of the tensor (PTX ISA 8.7, 5.5.3), or a column of pixels, each some
/// channels, that the corner of a convolution's filter passes over (5.5.4).
enum class TensorMode : std::uint8_t { kTile, kIm2col };

struct TensorMap {
  static constexpr std::size_t kBytes = 128;
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kAddressAt = 8;  ///< where a map's bytes hold `address`
  static constexpr int kMaxRank = 5;
  static constexpr int kMaxSpatial = kMaxRank - 2;  ///< dimensions between channels and batch

  std::uint64_t address = 0;  ///< of the first element
  TensorElement type = TensorElement::kF32;
  int rank = 1;
  TensorMode mode = TensorMode::kTile;
  Swizzle swizzle = Swizzle::kNone;
  bool fill_nan = false;                                    ///< outside the tensor; else zero
  std::array<std::uint64_t, kMaxRank> dims{1, 1, 1, 1, 1};  ///< elements, the innermost first
  std::array<std::uint64_t, kMaxRank - 1> strides{};        ///< bytes, of dims[1] and on
  std::array<std::uint32_t, kMaxRank> box{1, 1, 1, 1, 1};   ///< elements; im2col: box[0] channels
  std::array<std::uint32_t, kMaxRank> element_strides{1, 1, 1, 1, 1};
  /// Of im2col, along dims[1] and on (W, H, D): where the filter's corner may be, from the first and from the
  /// last element on, both included.
  std::array<std::int32_t, kMaxSpatial> lower_corner{}, upper_corner{};
  std::uint32_t pixels = 1;  ///< of a column

  int spatial() const { return rank - 2; }
  /// The last place of the filter's corner along dims[d].
  std::int64_t last_corner(int d) const {
    return static_cast<std::int64_t>(dims[d]) - 1 + upper_corner[d - 1];
  }

  unsigned element_bytes() const;
  /// Elements of a box that are copied along a dimension.
  std::uint32_t copied(int dim) const {
    return dim == 0 ? box[0] : (box[dim] + element_strides[dim] - 1) / element_strides[dim];
  }
  std::uint64_t row_bytes() const { return std::uint64_t{box[0]} * element_bytes(); }
  /// Of shared memory.
  std::uint64_t box_bytes() const;
  /// "" or what cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col would refuse, or the simulator.
  std::string wrong() const;

  std::array<std::byte, kBytes> encode() const;
  /// Nothing where the bytes are no map.
  static std::optional<TensorMap> decode(std::span<const std::byte> bytes);

 private:
  std::string wrong_box() const;
  std::string wrong_columns() const;
};

/// Fields of a map that tensormap.replace writes, by their order in kTensorMapFields.
enum class TensorMapField : std::uint8_t {
  kAddress,
  kStride,
  kRank,
  kBox,
  kDim,
  kElementStride,
  kType,
  kInterleave,
  kSwizzle,
  kFill,
};
inline constexpr std::string_view kTensorMapFields[] = {
    "global_address", "global_stride",     "rank",         "box_dim",  "global_dim", "element_stride",
    "elemtype",       "interleave_layout", "swizzle_mode", "fill_mode"};
/// Writes `value` as PTX has it (PTX ISA 8.7, 9.7.9.28), of dimension `ord`, into the bytes of a map. False
/// where the simulator has no such value. The map is one of tiles (is_tile_map).
bool replace_field(std::byte* map, TensorMapField field, unsigned ord, std::uint64_t value);

/// Whether bytes are no map yet, or one whose mode is tile.
bool is_tile_map(const std::byte* map);

/// "f16" -> kF16; nothing where no map has the type.
std::optional<TensorElement> tensor_element(std::string_view name);

}  // namespace stitchwork::sim
