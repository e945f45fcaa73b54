#include "core/hlo/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  std::string_view text;  ///< without the byte order character
  DType type;
  bool pair = false;  ///< complex: read as pairs of the type, in a last dimension (core/passes/passes.h)
};
/// bfloat16 has no NumPy spelling: it is stored as two raw bytes.
constexpr std::array kDescrs = {
    Descr{"b1", DType::kPred}, Descr{"i1", DType::kS8},        Descr{"i2", DType::kS16},
    Descr{"i4", DType::kS32},  Descr{"i8", DType::kS64},       Descr{"u1", DType::kU8},
    Descr{"u2", DType::kU16},  Descr{"u4", DType::kU32},       Descr{"u8", DType::kU64},
    Descr{"V2", DType::kBF16}, Descr{"f2", DType::kF16},       Descr{"f4", DType::kF32},
    Descr{"f8", DType::kF64},  Descr{"c8", DType::kF32, true}, Descr{"c16", DType::kF64, true}};

/// The header is a Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Shape shape() const {
    if (value_of("fortran_order").starts_with("True"))
      fail("is in Fortran order", "save a C-ordered copy: numpy.ascontiguousarray");
    const Descr& row = descr();
    std::vector<std::int64_t> dims = extents();
    if (row.pair) dims.push_back(2);
    return Shape::array(row.type, std::move(dims));
  }

 private:
  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    throw Error(path_, 0, 0, std::move(message), std::move(hint));
  }

  std::string_view value_of(std::string_view key) const {
    const std::string quoted = fmt::format("'{}'", key);
    const auto at = text_.find(quoted);
    const auto colon = at == std::string_view::npos ? at : text_.find(':', at + quoted.size());
    if (colon == std::string_view::npos) fail(fmt::format("is damaged: its .npy header has no {}", quoted));
    std::string_view value = text_.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    return value;
  }

  const Descr& descr() const {
    std::string_view descr = value_of("descr");
    const auto end = descr.size() < 2 ? std::string_view::npos : descr.find('\'', 1);
    if (end == std::string_view::npos) fail("holds a structured type", "save one plain array");
    descr = descr.substr(1, end - 1);
    const std::string_view spelled = descr;
    const bool swapped = descr.starts_with('>');
    if (!descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos)
      descr.remove_prefix(1);
    for (const Descr& row : kDescrs)
      if (row.text == descr) {
        if (swapped && byte_size(row.type) > 1)
          fail("is big-endian", "save it as little-endian: a.astype('<f4')");
        return row;
      }
    fail(fmt::format("holds elements of type '{}'", spelled),
         "bool, integers, f2, f4, f8, c8, c16 and V2 (bfloat16) are read");
  }

  std::vector<std::int64_t> extents() const {
    std::string_view text = value_of("shape");
    const auto close = text.find(')');
    if (!text.starts_with('(') || close == std::string_view::npos)
      fail("is damaged: its shape is not a tuple");
    text = text.substr(1, close - 1);
    std::vector<std::int64_t> dims;
    while (!text.empty()) {
      if (text.front() == ' ' || text.front() == ',' || text.front() == 'L') {
        text.remove_prefix(1);
        continue;
      }
      std::int64_t extent = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
      if (error != std::errc{} || extent < 0) fail("is damaged: its shape has an extent that is no number");
      dims.push_back(extent);
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    return dims;
  }

  std::string_view text_;
  const std::string& path_;
};

/// A damaged header must not make us allocate, nor its extents overflow when multiplied.
void check_extents(const Shape& shape, std::int64_t available, const std::string& path) {
  std::int64_t room = available / byte_size(shape.dtype);
  double needed = static_cast<double>(byte_size(shape.dtype));  // what a header claims may be beyond 64 bits
  for (std::int64_t extent : shape.dims) {
    if (extent == 0) return;
    needed *= static_cast<double>(extent);
  }
  for (std::int64_t extent : shape.dims) {
    if (extent > room)
      throw Error(
          path, 0, 0,
          fmt::format("is cut off: {} bytes of data, {} needs {:.0f}", available, to_text(shape), needed),
          "write it again; its header says how many elements there are");
    room /= extent;
  }
}

}  // namespace

Literal read_npy(const std::string& path) {
  const std::string file = read_file(path);
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(file[i]));
  };
  if (file.size() < 10 || std::string_view(file).substr(0, 6) != kMagic)
    throw Error(path, 0, 0, "is not a .npy file");
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) throw Error(path, 0, 0, fmt::format(".npy format {} is unknown", version));
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (file.size() < prefix) throw Error(path, 0, 0, "is cut off in its header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (file.size() < prefix + length) throw Error(path, 0, 0, "is cut off in its header");
  const Shape shape = Header(std::string_view(file).substr(prefix, length), path).shape();
  const auto available = static_cast<std::int64_t>(file.size() - prefix - length);
  check_extents(shape, available, path);
  Literal literal = Literal::zeros(shape);
  if (static_cast<std::int64_t>(literal.bytes.size()) != available)
    throw Error(
        path, 0, 0,
        fmt::format("has {} bytes of data, {} needs {}", available, to_text(shape), literal.bytes.size()));
  if (available > 0) std::memcpy(literal.bytes.data(), file.data() + prefix + length, literal.bytes.size());
  return literal;
}

void write_npy(const std::string& path, const Literal& literal) {
  std::optional<Descr> descr;
  for (const Descr& row : kDescrs)
    if (!literal.shape.is_tuple && row.type == literal.shape.dtype && !row.pair) descr = row;
  if (!descr) throw Error(path, 0, 0, fmt::format("{} has no .npy form", to_text(literal.shape)));
  std::string dims;
  for (std::int64_t extent : literal.shape.dims) dims += fmt::format("{}, ", extent);
  if (literal.shape.rank() > 1) dims.resize(dims.size() - 2);
  if (literal.shape.rank() == 1) dims.pop_back();
  const char order = byte_size(descr->type) == 1 || descr->text[0] == 'V' ? '|' : '<';
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, descr->text, dims);
  // Data starts at a multiple of 64 bytes; a header beyond 64 KB would need format 2.0, dims never get there.
  header.append(64 - (kMagic.size() + 4 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  write_file(path, {file, {reinterpret_cast<const char*>(literal.bytes.data()), literal.bytes.size()}});
}

}  // namespace stitchwork
