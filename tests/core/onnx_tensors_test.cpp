// Elements of ONNX models' tensors, in the file and beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/evaluate/evaluator.h"
#include "core/onnx/onnx.h"
#include "core/onnx/tensor.h"
#include "tests/support/onnx_reading.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::external;
using testing::floats;
using ::testing::HasSubstr;
using testing::numbers;
using testing::refusal;
namespace fs = std::filesystem;

/// Elements of every type, in the field that ONNX keeps it in and as raw bytes, give the same literal.
TEST(OnnxTensors, TypedFieldsAndRawBytesAreTheSame) {
  struct Case {
    int type;
    DType dtype;
  };
  for (const auto& [type, dtype] :
       {Case{1, DType::kF32}, Case{2, DType::kU8}, Case{3, DType::kS8}, Case{4, DType::kU16},
        Case{5, DType::kS16}, Case{6, DType::kS32}, Case{7, DType::kS64}, Case{9, DType::kPred},
        Case{10, DType::kF16}, Case{11, DType::kF64}, Case{12, DType::kU32}, Case{13, DType::kU64},
        Case{16, DType::kBF16}}) {
    Literal expected = Literal::zeros(Shape::array(dtype, {3}));
    for (int i = 0; i < 3; ++i) expected.set_int(i, i % 2);
    onnx::TensorProto raw, typed;
    for (onnx::TensorProto* tensor : {&raw, &typed}) {
      tensor->set_data_type(type);
      tensor->add_dims(3);
    }
    raw.set_raw_data(expected.bytes.data(), expected.bytes.size());
    for (int i = 0; i < 3; ++i) {
      const int one = i % 2;
      if (dtype == DType::kF32)
        typed.add_float_data(static_cast<float>(one));
      else if (dtype == DType::kF64)
        typed.add_double_data(one);
      else if (dtype == DType::kS64)
        typed.add_int64_data(one);
      else if (dtype == DType::kU64 || dtype == DType::kU32)
        typed.add_uint64_data(static_cast<std::uint64_t>(one));
      else if (dtype == DType::kF16)
        typed.add_int32_data(one == 1 ? 0x3c00 : 0);
      else if (dtype == DType::kBF16)
        typed.add_int32_data(one == 1 ? 0x3f80 : 0);
      else
        typed.add_int32_data(one);
    }
    EXPECT_EQ(onnx_reader::read_tensor(raw, {}), expected) << name(dtype);
    EXPECT_EQ(onnx_reader::read_tensor(typed, {}), expected) << name(dtype);
  }
}

TEST(OnnxTensors, SizesThatDoNotFitAreRefused) {
  onnx::TensorProto tensor = OnnxModel::integers("t", {2, 2}, {1, 2, 3});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
  tensor = OnnxModel::integers("t", {-1}, {});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
  tensor = OnnxModel::integers("t", {std::int64_t{1} << 32, std::int64_t{1} << 32}, {});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
  tensor = OnnxModel::integers("t", {0, std::int64_t{1} << 62, 4}, {});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
}

TEST(OnnxTensors, ElementsOutsideTheirTypeAreRefused) {
  onnx::TensorProto tensor;
  tensor.set_name("t");
  tensor.set_data_type(onnx::TensorProto::INT8);
  tensor.add_dims(1);
  tensor.add_int32_data(300);
  try {
    onnx_reader::read_tensor(tensor, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "tensor 't' has 300 in int32_data, outside INT8");
  }
}

TEST(OnnxTensors, ExternalDataLieBesideTheModel) {
  const testing::OnnxFolder folder;
  const Literal data = floats({4}, {1, 2, 3, 4});
  write_file((folder.path / "data.bin").string(), {reinterpret_cast<const char*>(data.bytes.data()), 16});
  write_file((folder.path / "m.onnx").string(), external("data.bin", "8", "8").bytes());
  const Graph graph = read_onnx((folder.path / "m.onnx").string());
  EXPECT_EQ(numbers(evaluate(graph, std::vector{floats({2}, {10, 20})}).at(0)),
            (std::vector<double>{13, 24}));
}

TEST(OnnxTensors, ExternalDataOutOfBoundsOrOutsideTheFolderAreRefused) {
  const testing::OnnxFolder folder;
  const std::string inside = (folder.path / "models").string();
  fs::create_directories(inside);
  write_file(inside + "/data.bin", "12345678");
  write_file((folder.path / "secret.bin").string(), "12345678");
  fs::create_symlink(folder.path / "secret.bin", inside + "/link.bin");
  const auto said = [&](const OnnxModel& m) { return refusal(m, {}, inside); };
  EXPECT_EQ(said(external("data.bin")), "");
  EXPECT_THAT(said(external("data.bin", "4")), HasSubstr("needs bytes 4 to 12 of 'data.bin', which has 8"));
  EXPECT_THAT(said(external("data.bin", "18446744073709551615")), HasSubstr("not a number of bytes"));
  EXPECT_THAT(said(external("data.bin", "9223372036854775807")), HasSubstr("which has 8"));
  EXPECT_THAT(said(external("data.bin", "0", "4")),
              HasSubstr("has 4 bytes in external_data, its type and dims need 8"));
  EXPECT_THAT(said(external("absent.bin")), HasSubstr("not beside the model"));
  EXPECT_THAT(said(external("../secret.bin")), HasSubstr("outside the model's folder"));
  EXPECT_THAT(said(external((folder.path / "secret.bin").string())), HasSubstr("outside the model's folder"));
  EXPECT_THAT(said(external("link.bin")), HasSubstr("outside the model's folder"));
  EXPECT_THAT(said(external("")), HasSubstr("external_data names none"));
  EXPECT_THAT(refusal(external("data.bin")), HasSubstr("and the model in none"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
