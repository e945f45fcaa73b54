// Tensor maps of programs of PTX: what cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col take, as JSON.
#include <algorithm>
#include <cstring>

#include "runtime/program/script.h"
#include "simulator/tensor_map.h"

namespace stitchwork {
namespace {

using sim::TensorElement;
using sim::TensorMap;

TensorElement element_of(const JsonCursor& map, const sim::ProgramBuffer& buffer) {
  const auto given = map.find("type");
  const std::string type = given ? given->text() : std::string(name(buffer.value.shape.dtype));
  // A map knows no signs of bytes and halves.
  static constexpr std::pair<std::string_view, TensorElement> kSigned[] = {
      {"i8", TensorElement::kU8},   {"s8", TensorElement::kU8},   {"i16", TensorElement::kU16},
      {"s16", TensorElement::kU16}, {"s32", TensorElement::kS32}, {"s64", TensorElement::kS64}};
  for (const auto& [known, element] : kSigned)
    if (known == type) return element;
  const auto element = sim::tensor_element(type);
  if (!element)
    (given ? *given : map)
        .fail(fmt::format("no tensor map has elements of type '{}'", type),
              "known: u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64");
  return *element;
}

/// An extent, or a place where T has a sign; what T does not hold becomes its limit, which no map takes.
template <class T>
T read_number(const JsonCursor& number) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const std::int64_t n = number.integer();
  if (n < (std::is_signed_v<T> ? -kMost : 0) || n > kMost)
    number.fail(fmt::format("{} is no {}", n, std::is_signed_v<T> ? "offset" : "extent"));
  return static_cast<T>(std::clamp<std::int64_t>(
      n, static_cast<std::int64_t>(std::numeric_limits<T>::min()),
      static_cast<std::int64_t>(std::min<std::uint64_t>(std::numeric_limits<T>::max(), INT64_MAX))));
}

/// A list of as many numbers as `count`; `to` stays as it is where the map has none.
template <class T, std::size_t N>
void read_numbers(const JsonCursor& map, const char* key, std::size_t count, std::array<T, N>& to) {
  const auto list = map.find(key);
  if (!list) return;
  std::size_t given = 0;
  list->each([&](const JsonCursor& number) {
    if (given == count) list->fail(fmt::format("has more than {} numbers", count));
    to[given++] = read_number<T>(number);
  });
  if (given != count) list->fail(fmt::format("has {} numbers, {} are needed", given, count));
}

sim::Swizzle swizzle_of(const JsonCursor& map) {
  const auto given = map.find("swizzle");
  if (!given || given->text() == "none") return sim::Swizzle::kNone;
  if (given->text() == "32B") return sim::Swizzle::k32B;
  if (given->text() == "64B") return sim::Swizzle::k64B;
  if (given->text() == "128B") return sim::Swizzle::k128B;
  given->fail(fmt::format("'{}' is no swizzle that is simulated", given->text()),
              "known: none, 32B, 64B, 128B");
}

void require_one_of(const JsonCursor& map, const char* key, std::initializer_list<std::string_view> known,
                    const char* what) {
  const auto given = map.find(key);
  if (given && std::ranges::find(known, given->text()) == known.end())
    given->fail(fmt::format("'{}' is no {}", given->text(), what),
                fmt::format("known: {}", fmt::join(known, ", ")));
}

constexpr const char *kLowerCorner = "pixel_box_lower_corner", *kUpperCorner = "pixel_box_upper_corner",
                     *kChannels = "channels_per_pixel", *kPixels = "pixels_per_column";

/// What a copy moves: a box, or columns of pixels, whose keys stand in place of `box`.
void read_mode(const JsonCursor& c, TensorMap& map) {
  const auto rank = static_cast<std::size_t>(map.rank);
  const bool im2col = c.find(kLowerCorner) || c.find(kUpperCorner) || c.find(kChannels) || c.find(kPixels);
  if (!im2col) {
    c.at("box");
    return read_numbers(c, "box", rank, map.box);
  }
  if (c.find("box"))
    c.fail(fmt::format("has both box and {}, {}, {} or {}", kLowerCorner, kUpperCorner, kChannels, kPixels));
  if (rank < 3)
    c.at("dims").fail(
        fmt::format("columns of pixels (im2col) are of 3 to {} dimensions", TensorMap::kMaxRank));
  map.mode = sim::TensorMode::kIm2col;
  map.box[0] = read_number<std::uint32_t>(c.at(kChannels));
  map.pixels = read_number<std::uint32_t>(c.at(kPixels));
  c.at(kLowerCorner);
  c.at(kUpperCorner);
  read_numbers(c, kLowerCorner, rank - 2, map.lower_corner);
  read_numbers(c, kUpperCorner, rank - 2, map.upper_corner);
}

}  // namespace

sim::ProgramArgument read_tensor_map(const JsonCursor& c, const ScriptNames& names) {
  c.only({"buffer", "type", "dims", "strides", "box", "element_strides", "swizzle", "interleave",
          "l2promotion", "oob_fill", kLowerCorner, kUpperCorner, kChannels, kPixels});
  const sim::BufferView view = names.view(c.at("buffer"));
  TensorMap map;
  map.address = view.offset;  // buffers begin at multiples of 256
  map.type = element_of(c, names.program->buffers[view.buffer]);
  map.rank = 0;
  c.at("dims").each([&](const JsonCursor&) { ++map.rank; });
  if (map.rank < 1 || map.rank > TensorMap::kMaxRank)
    c.at("dims").fail(fmt::format("a tensor map has 1 to {} dimensions", TensorMap::kMaxRank));
  const auto rank = static_cast<std::size_t>(map.rank);
  read_numbers(c, "dims", rank, map.dims);
  for (std::size_t d = 1; d < rank; ++d)  // packed
    map.strides[d - 1] = (d == 1 ? map.element_bytes() : map.strides[d - 2]) * map.dims[d - 1];
  read_numbers(c, "strides", rank - 1, map.strides);
  read_mode(c, map);
  read_numbers(c, "element_strides", rank, map.element_strides);
  map.swizzle = swizzle_of(c);
  require_one_of(c, "interleave", {"none"}, "interleaved layout that is simulated");
  require_one_of(c, "l2promotion", {"none", "64B", "128B", "256B"}, "size of L2 promotion");
  require_one_of(c, "oob_fill", {"zero", "nan"}, "fill of what is outside");
  map.fill_nan = c.find("oob_fill") && c.at("oob_fill").text() == "nan";
  if (const std::string wrong = map.wrong(); !wrong.empty()) c.fail(wrong);
  std::uint64_t end = map.dims[0] * map.element_bytes();
  for (std::size_t d = 1; d < rank; ++d) end += (map.dims[d] - 1) * map.strides[d - 1];
  if (end > names.room(view))
    c.fail(fmt::format("the tensor takes {} bytes: there are {} from there on", end, names.room(view)));
  const auto bytes = map.encode();
  return {{bytes.begin(), bytes.end()}, {{TensorMap::kAddressAt, view}}};
}

}  // namespace stitchwork
