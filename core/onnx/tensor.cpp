#include "core/onnx/tensor.h"

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {
namespace {

namespace fs = std::filesystem;

struct TypeRow {
  const char* name;
  std::optional<DType> dtype;
};
/// By number of TensorProto::DataType; the header's enumeration ends at 16, models go on.
constexpr std::array kTypes = {TypeRow{"UNDEFINED", {}},
                               TypeRow{"FLOAT", DType::kF32},
                               TypeRow{"UINT8", DType::kU8},
                               TypeRow{"INT8", DType::kS8},
                               TypeRow{"UINT16", DType::kU16},
                               TypeRow{"INT16", DType::kS16},
                               TypeRow{"INT32", DType::kS32},
                               TypeRow{"INT64", DType::kS64},
                               TypeRow{"STRING", {}},
                               TypeRow{"BOOL", DType::kPred},
                               TypeRow{"FLOAT16", DType::kF16},
                               TypeRow{"DOUBLE", DType::kF64},
                               TypeRow{"UINT32", DType::kU32},
                               TypeRow{"UINT64", DType::kU64},
                               TypeRow{"COMPLEX64", {}},
                               TypeRow{"COMPLEX128", {}},
                               TypeRow{"BFLOAT16", DType::kBF16},
                               TypeRow{"FLOAT8E4M3FN", DType::kF8E4M3FN},
                               TypeRow{"FLOAT8E4M3FNUZ", DType::kF8E4M3FNUZ},
                               TypeRow{"FLOAT8E5M2", DType::kF8E5M2},
                               TypeRow{"FLOAT8E5M2FNUZ", DType::kF8E5M2FNUZ},
                               TypeRow{"UINT4", DType::kU4},
                               TypeRow{"INT4", DType::kS4},
                               TypeRow{"FLOAT4E2M1", DType::kF4E2M1FN},
                               TypeRow{"FLOAT8E8M0", DType::kF8E8M0FNU},
                               TypeRow{"UINT2", DType::kU2},
                               TypeRow{"INT2", DType::kS2}};

bool is_packed(DType type) { return type != DType::kPred && bit_width(type) < 8; }

std::int64_t stored_bytes(const Shape& shape) {
  if (!is_packed(shape.dtype)) return shape.byte_size();
  const std::int64_t in_a_byte = 8 / bit_width(shape.dtype);
  return (shape.elements_count() + in_a_byte - 1) / in_a_byte;
}

/// The literal of ONNX's bytes: several elements of fewer than 8 bits a byte (low ones first), bool as any
/// non-zero byte.
Literal from_bytes(const Shape& shape, const char* bytes) {
  Literal literal = Literal::zeros(shape);
  if (is_packed(shape.dtype)) {
    const auto bits = static_cast<std::size_t>(bit_width(shape.dtype)), in_a_byte = 8 / bits;
    const unsigned mask = (1U << bits) - 1, sign = 1U << (bits - 1);
    for (std::size_t i = 0; i < literal.bytes.size(); ++i) {
      const auto packed = static_cast<unsigned char>(bytes[i / in_a_byte]);
      unsigned element = (packed >> (i % in_a_byte * bits)) & mask;
      if (is_signed_integer(shape.dtype) && element >= sign) element |= ~mask;
      literal.bytes[i] = static_cast<std::byte>(element);
    }
    return literal;
  }
  if (!literal.bytes.empty()) std::memcpy(literal.bytes.data(), bytes, literal.bytes.size());
  if (shape.dtype == DType::kPred)
    for (std::byte& byte : literal.bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
  return literal;
}

class Reader {
 public:
  Reader(const pb::TensorProto& tensor, const fs::path& folder) : tensor_(tensor), folder_(folder) {}

  Literal read() const {
    if (tensor_.has_segment()) fail("is one segment of several", "save the model with whole tensors");
    const Shape shape = Shape::array(dtype_of(tensor_.data_type()), dims());
    if (tensor_.data_location() == pb::TensorProto::EXTERNAL) return from_file(shape);
    if (tensor_.has_raw_data()) {
      const std::string& raw = tensor_.raw_data();
      check_bytes("raw_data", static_cast<std::int64_t>(raw.size()), stored_bytes(shape));
      return from_bytes(shape, raw.data());
    }
    return from_field(shape);
  }

 private:
  [[noreturn]] void fail(const std::string& message, std::string hint = {}) const {
    throw Error(fmt::format("tensor '{}' {}", tensor_.name(), message), std::move(hint));
  }

  void check_bytes(const char* where, std::int64_t have, std::int64_t want) const {
    if (have != want) fail(fmt::format("has {} bytes in {}, its type and dims need {}", have, where, want));
  }

  Dims dims() const {
    Dims result(tensor_.dims().begin(), tensor_.dims().end());
    std::int64_t room = kMaxElements;
    for (const std::int64_t extent : result) {
      if (extent < 0) fail(fmt::format("has a negative dimension: dims [{}]", fmt::join(result, ",")));
      if (extent > room) fail(fmt::format("is too large: dims [{}]", fmt::join(result, ",")));
      room /= std::max<std::int64_t>(extent, 1);
    }
    return result;
  }

  Literal from_field(const Shape& shape) const {
    switch (shape.dtype) {
      case DType::kF32:
        return copied(shape, tensor_.float_data(), "float_data");
      case DType::kF64:
        return copied(shape, tensor_.double_data(), "double_data");
      case DType::kS64:
        return copied(shape, tensor_.int64_data(), "int64_data");
      case DType::kU64:
        return copied(shape, tensor_.uint64_data(), "uint64_data");
      case DType::kU32:
        return narrowed<std::uint32_t>(shape, tensor_.uint64_data(), "uint64_data");
      case DType::kS32:
        return copied(shape, tensor_.int32_data(), "int32_data");
      case DType::kS16:
        return narrowed<std::int16_t>(shape, tensor_.int32_data(), "int32_data");
      case DType::kS8:
        return narrowed<std::int8_t>(shape, tensor_.int32_data(), "int32_data");
      case DType::kU16:
      case DType::kF16:
      case DType::kBF16:
        return narrowed<std::uint16_t>(shape, tensor_.int32_data(), "int32_data");
      default:
        return narrowed<std::uint8_t>(shape, tensor_.int32_data(), "int32_data");
    }
  }

  template <typename Field>
  Literal copied(const Shape& shape, const Field& field, const char* name) const {
    return narrowed<typename Field::value_type>(shape, field, name);
  }

  /// Elements (of fewer than 8 bits: bytes of several) of a field whose numbers are wider than T.
  template <typename T, typename Field>
  Literal narrowed(const Shape& shape, const Field& field, const char* name) const {
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(field.size()));
    for (const auto wide : field) {
      const T value = static_cast<T>(wide);
      if constexpr (std::is_integral_v<T>)
        if (static_cast<decltype(wide)>(value) != wide)
          fail(fmt::format("has {} in {}, outside {}", wide, name, type_name(tensor_.data_type())));
      values.push_back(value);
    }
    check_bytes(name, static_cast<std::int64_t>(values.size() * sizeof(T)), stored_bytes(shape));
    return from_bytes(shape, reinterpret_cast<const char*>(values.data()));
  }

  std::string entry(const char* key) const {
    for (const auto& pair : tensor_.external_data())
      if (pair.key() == key) return pair.value();
    return {};
  }

  std::int64_t number(const char* key, std::int64_t otherwise) const {
    const std::string text = entry(key);
    if (text.empty()) return otherwise;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0)
      fail(fmt::format("has external_data {} = '{}', not a number of bytes", key, text));
    return value;
  }

  /// The file named, which must lie in the model's folder, links followed.
  fs::path located() const {
    const std::string location = entry("location");
    if (location.empty()) fail("is kept in another file, but external_data names none");
    if (folder_.empty()) fail(fmt::format("is kept in file '{}', and the model in none", location));
    const fs::path relative(location);
    bool escapes = relative.is_absolute();
    for (const fs::path& part : relative) escapes = escapes || part == "..";
    std::error_code error;
    const fs::path home = fs::canonical(folder_, error);
    const fs::path path = escapes || error ? fs::path() : fs::canonical(home / relative, error);
    if (!escapes && (error || !fs::is_regular_file(path, error)))
      fail(fmt::format("is kept in file '{}', which is not beside the model", location),
           "copy the file to the model's folder");
    const auto [rest, unused] = std::mismatch(home.begin(), home.end(), path.begin(), path.end());
    if (escapes || rest != home.end())
      fail(fmt::format("is kept in file '{}', outside the model's folder", location));
    return path;
  }

  Literal from_file(const Shape& shape) const {
    const fs::path path = located();
    std::error_code error;
    const auto size = static_cast<std::int64_t>(fs::file_size(path, error));
    const std::int64_t want = stored_bytes(shape), offset = number("offset", 0);
    const std::int64_t length = number("length", want);
    check_bytes("external_data", length, want);
    if (error || offset > size || length > size - offset)
      fail(fmt::format("needs bytes {} to {} of '{}', which has {}", offset,
                       static_cast<double>(offset) + static_cast<double>(length), entry("location"), size));
    std::string bytes(static_cast<std::size_t>(length), '\0');
    std::ifstream in(path, std::ios::binary);
    in.seekg(offset);
    in.read(bytes.data(), length);
    if (!in) fail(fmt::format("cannot be read from '{}'", entry("location")));
    return from_bytes(shape, bytes.data());
  }

  const pb::TensorProto& tensor_;
  const fs::path& folder_;
};

}  // namespace

std::string type_name(std::int32_t onnx_type) {
  if (onnx_type < 0 || onnx_type >= static_cast<std::int32_t>(kTypes.size()))
    return fmt::format("type {}", onnx_type);
  return kTypes[static_cast<std::size_t>(onnx_type)].name;
}

DType dtype_of(std::int32_t onnx_type) {
  const bool listed = onnx_type >= 0 && onnx_type < static_cast<std::int32_t>(kTypes.size());
  if (listed && kTypes[static_cast<std::size_t>(onnx_type)].dtype)
    return *kTypes[static_cast<std::size_t>(onnx_type)].dtype;
  throw Error(fmt::format("element type {} is not supported", type_name(onnx_type)));
}

Literal read_tensor(const pb::TensorProto& tensor, const fs::path& folder) {
  return Reader(tensor, folder).read();
}

}  // namespace stitchwork::onnx_reader
