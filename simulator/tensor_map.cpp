#include "simulator/tensor_map.h"

#include <cstring>
#include <iterator>

#include "core/base/error.h"

namespace stitchwork::sim {
namespace {

/// How the bytes of a map begin.
constexpr std::uint64_t kMagic = 0x70616d726f736e74;  // "tnsormap"

/// The limits of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col (CUDA driver API, "Tensor Map Object
/// Management").
constexpr std::uint32_t kMostBox = 256, kMostElementStride = 8, kMostPixels = 1024;
/// Bits of a corner, by the number of spatial dimensions.
constexpr int kCornerBits[] = {0, 16, 8, 5};
constexpr std::uint64_t kMostDim = std::uint64_t{1} << 32, kMostStride = std::uint64_t{1} << 40;
constexpr std::uint64_t kMapUnit = 16;
constexpr std::uint64_t kMostBoxBytes = std::uint64_t{1} << 18;  // of shared memory an SM has less

struct MapBytes {
  std::uint64_t magic, address;
  std::uint64_t dims[TensorMap::kMaxRank];
  std::uint64_t strides[TensorMap::kMaxRank - 1];
  std::uint16_t box[TensorMap::kMaxRank];
  std::int16_t lower_corner[TensorMap::kMaxSpatial], upper_corner[TensorMap::kMaxSpatial];
  std::uint16_t pixels;
  std::uint8_t element_strides[TensorMap::kMaxRank];
  std::uint8_t type, rank, swizzle, fill_nan, mode;
  std::uint8_t unused[6];
};
static_assert(sizeof(MapBytes) == TensorMap::kBytes && offsetof(MapBytes, address) == TensorMap::kAddressAt);

constexpr std::pair<std::string_view, TensorElement> kElementNames[] = {
    {"u8", TensorElement::kU8},    {"u16", TensorElement::kU16}, {"u32", TensorElement::kU32},
    {"i32", TensorElement::kS32},  {"u64", TensorElement::kU64}, {"i64", TensorElement::kS64},
    {"f16", TensorElement::kF16},  {"f32", TensorElement::kF32}, {"f64", TensorElement::kF64},
    {"bf16", TensorElement::kBF16}};

}  // namespace

std::optional<TensorElement> tensor_element(std::string_view name) {
  for (const auto& [known, element] : kElementNames)
    if (known == name) return element;
  return std::nullopt;
}

unsigned TensorMap::element_bytes() const {
  switch (type) {
    case TensorElement::kU8:
      return 1;
    case TensorElement::kU16:
    case TensorElement::kF16:
    case TensorElement::kBF16:
      return 2;
    case TensorElement::kU64:
    case TensorElement::kS64:
    case TensorElement::kF64:
      return 8;
    default:
      return 4;
  }
}

std::uint64_t TensorMap::box_bytes() const {
  std::uint64_t bytes = row_bytes();
  if (mode == TensorMode::kIm2col) return bytes * pixels;
  for (int d = 1; d < rank; ++d) bytes *= copied(d);
  return bytes;
}

std::string TensorMap::wrong_box() const {
  for (int d = 0; d < rank; ++d)
    if (box[d] == 0 || box[d] > kMostBox)
      return fmt::format("the box has {} elements in dimension {}: 1 to {} are possible", box[d], d,
                         kMostBox);
  return "";
}

std::string TensorMap::wrong_columns() const {
  if (rank < 3) return fmt::format("rank {}: im2col takes 3 to {}", rank, kMaxRank);
  if (box[0] == 0 || box[0] > kMostBox)
    return fmt::format("{} channels a pixel: 1 to {} are possible", box[0], kMostBox);
  if (pixels == 0 || pixels > kMostPixels)
    return fmt::format("{} pixels a column: 1 to {} are possible", pixels, kMostPixels);
  const std::int32_t limit = 1 << (kCornerBits[spatial()] - 1);
  for (int d = 1; d <= spatial(); ++d) {
    for (const std::int32_t corner : {lower_corner[d - 1], upper_corner[d - 1]})
      if (corner < -limit || corner >= limit)
        return fmt::format("a corner {} of the pixels' box in dimension {}: {} to {} are possible", corner, d,
                           -limit, limit - 1);
    if (last_corner(d) < lower_corner[d - 1])
      return fmt::format("the pixels' box of dimension {} ends at {}, before it begins at {}", d,
                         last_corner(d), lower_corner[d - 1]);
  }
  // The ISA has strides along D, H and W alone.
  if (element_strides[rank - 1] != 1)
    return fmt::format("element stride {} of the batch dimension {}, which im2col has none of",
                       element_strides[rank - 1], rank - 1);
  return "";
}

std::string TensorMap::wrong() const {
  if (rank < 1 || rank > kMaxRank) return fmt::format("rank {}: 1 to {} are possible", rank, kMaxRank);
  if (address % kMapUnit != 0) return "the tensor's address is no multiple of 16";
  for (int d = 0; d < rank; ++d) {
    if (dims[d] == 0 || dims[d] > kMostDim) return fmt::format("dimension {} has {} elements", d, dims[d]);
    if (element_strides[d] == 0 || element_strides[d] > kMostElementStride)
      return fmt::format("element stride {} of dimension {}: 1 to {} are possible", element_strides[d], d,
                         kMostElementStride);
    if (d > 0 && (strides[d - 1] % kMapUnit != 0 || strides[d - 1] >= kMostStride))
      return fmt::format("the stride of dimension {} is {} bytes: multiples of 16 below 2^40 are possible", d,
                         strides[d - 1]);
  }
  const std::string shape = mode == TensorMode::kIm2col ? wrong_columns() : wrong_box();
  if (!shape.empty()) return shape;
  if (row_bytes() % kMapUnit != 0)
    return fmt::format("a row of the box has {} bytes, which is no multiple of 16", row_bytes());
  if (const unsigned span = swizzle_span(swizzle); span != 0 && row_bytes() != span)
    return row_bytes() > span
               ? fmt::format("a row of the box has {} bytes, more than the {} of its swizzle", row_bytes(),
                             span)
               : fmt::format(
                     "a row of the box has {} bytes, fewer than the {} of its swizzle, which is not "
                     "simulated",
                     row_bytes(), span);
  if (box_bytes() > kMostBoxBytes)
    return fmt::format("the box has {} bytes, more than any shared memory", box_bytes());
  const bool floating = type == TensorElement::kF16 || type == TensorElement::kBF16 ||
                        type == TensorElement::kF32 || type == TensorElement::kF64;
  if (fill_nan && !floating) return "only tensors of floats are filled with NaN";
  return "";
}

std::array<std::byte, TensorMap::kBytes> TensorMap::encode() const {
  MapBytes b{};
  b.magic = kMagic;
  b.address = address;
  for (int d = 0; d < kMaxRank; ++d) {
    b.dims[d] = dims[d];
    b.box[d] = static_cast<std::uint16_t>(box[d]);
    b.element_strides[d] = static_cast<std::uint8_t>(element_strides[d]);
    if (d > 0) b.strides[d - 1] = strides[d - 1];
  }
  for (int d = 0; d < kMaxSpatial; ++d) {
    b.lower_corner[d] = static_cast<std::int16_t>(lower_corner[d]);
    b.upper_corner[d] = static_cast<std::int16_t>(upper_corner[d]);
  }
  b.pixels = static_cast<std::uint16_t>(pixels);
  b.mode = static_cast<std::uint8_t>(mode);
  b.type = static_cast<std::uint8_t>(type);
  b.rank = static_cast<std::uint8_t>(rank);
  b.swizzle = static_cast<std::uint8_t>(swizzle);
  b.fill_nan = fill_nan;
  std::array<std::byte, kBytes> bytes;
  std::memcpy(bytes.data(), &b, sizeof b);
  return bytes;
}

std::optional<TensorMap> TensorMap::decode(std::span<const std::byte> bytes) {
  MapBytes b;
  if (bytes.size() < sizeof b) return std::nullopt;
  std::memcpy(&b, bytes.data(), sizeof b);
  if (b.magic != kMagic || b.type > static_cast<std::uint8_t>(TensorElement::kBF16) ||
      b.swizzle > static_cast<std::uint8_t>(Swizzle::k128B) ||
      b.mode > static_cast<std::uint8_t>(TensorMode::kIm2col))
    return std::nullopt;
  TensorMap m;
  m.address = b.address;
  m.type = static_cast<TensorElement>(b.type);
  m.rank = b.rank;
  m.swizzle = static_cast<Swizzle>(b.swizzle);
  m.fill_nan = b.fill_nan != 0;
  m.mode = static_cast<TensorMode>(b.mode);
  m.pixels = b.pixels;
  for (int d = 0; d < kMaxSpatial; ++d) {
    m.lower_corner[d] = b.lower_corner[d];
    m.upper_corner[d] = b.upper_corner[d];
  }
  for (int d = 0; d < kMaxRank; ++d) {
    m.dims[d] = b.dims[d];
    m.box[d] = b.box[d];
    m.element_strides[d] = b.element_strides[d];
    if (d > 0) m.strides[d - 1] = b.strides[d - 1];
  }
  if (!m.wrong().empty()) return std::nullopt;
  return m;
}

bool is_tile_map(const std::byte* map) {
  MapBytes b;
  std::memcpy(&b, map, sizeof b);
  return b.magic != kMagic || b.mode == static_cast<std::uint8_t>(TensorMode::kTile);
}

bool replace_field(std::byte* map, TensorMapField field, unsigned ord, std::uint64_t value) {
  MapBytes b;
  std::memcpy(&b, map, sizeof b);
  if (b.magic != kMagic) {  // a map begins as 128 zero bytes
    b.magic = kMagic;
    for (std::uint8_t& stride : b.element_strides) stride = 1;
    for (std::uint64_t& dim : b.dims) dim = 1;
    for (std::uint16_t& size : b.box) size = 1;
  }
  // By .elemtype's values; f32.ftz, tf32 and what is packed are none here.
  static constexpr int kTypes[] = {0, 1, 2, 3, 4, 5, 6, 7, -1, 8, 9};
  switch (field) {
    case TensorMapField::kAddress:
      b.address = value;
      break;
    case TensorMapField::kStride:
      b.strides[ord] = value;
      break;
    case TensorMapField::kRank:
      b.rank = static_cast<std::uint8_t>(value + 1);
      break;
    case TensorMapField::kBox:
      b.box[ord] = static_cast<std::uint16_t>(value);
      break;
    case TensorMapField::kDim:
      b.dims[ord] = value == 0 ? kMostDim : value;
      break;
    case TensorMapField::kElementStride:
      b.element_strides[ord] = static_cast<std::uint8_t>(value);
      break;
    case TensorMapField::kType:
      if (value >= std::size(kTypes) || kTypes[value] < 0) return false;
      b.type = static_cast<std::uint8_t>(kTypes[value]);
      break;
    case TensorMapField::kInterleave:
      if (value != 0) return false;
      break;
    case TensorMapField::kSwizzle:
      if (value > static_cast<std::uint64_t>(Swizzle::k128B)) return false;
      b.swizzle = static_cast<std::uint8_t>(value);
      break;
    case TensorMapField::kFill:
      b.fill_nan = value != 0;
      break;
  }
  std::memcpy(map, &b, sizeof b);
  return true;
}

}  // namespace stitchwork::sim
