#include "core/hlo/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace TEST_FILE {

class Npy : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("stitchwork-npy-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// A file with this header text and so many bytes of data.
  std::string made(const std::string& header, std::size_t data, char version = 1) {
    std::string file = std::string("\x93NUMPY") + version + '\0';
    file += static_cast<char>(header.size());
    file += '\0';
    if (version > 1) file += std::string(2, '\0');
    write_file(path("made.npy"), file + header + std::string(data, '\1'));
    return path("made.npy");
  }

  std::filesystem::path folder_;
};

TEST_F(Npy, RoundTripsEveryExecutableTypeAndRank) {
  using enum DType;
  for (DType type : {kPred, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64})
    for (const std::vector<std::int64_t>& dims :
         {std::vector<std::int64_t>{}, {3}, {2, 3}, {2, 0}, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1}}) {
      Literal literal = Literal::zeros(Shape::array(type, dims));
      for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) literal.set_int(i, i % 2);
      write_npy(path("a.npy"), literal);
      EXPECT_EQ(read_npy(path("a.npy")), literal) << to_text(literal.shape);
    }
}

TEST_F(Npy, WritesTheBytesNumpyWrites) {
  Literal literal = Literal::zeros(Shape::array(DType::kF32, {2, 3}));
  write_npy(path("a.npy"), literal);
  const std::string file = read_file(path("a.npy"));
  ASSERT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_EQ(file[127], '\n');
}

TEST_F(Npy, ComplexNumbersAreReadAsPairs) {
  const Literal single = read_npy(made("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", 24));
  EXPECT_EQ(single.shape, Shape::array(DType::kF32, {3, 2}));
  const Literal wide = read_npy(made("{'descr': '<c16', 'fortran_order': False, 'shape': (), }", 16));
  EXPECT_EQ(wide.shape, Shape::array(DType::kF64, {2}));
  EXPECT_THROW(read_npy(made("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", 20)), Error);
}

TEST_F(Npy, ReadsVersionTwo) {
  const Literal literal = read_npy(made("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", 3, 2));
  EXPECT_EQ(literal.shape, Shape::array(DType::kU8, {3}));
  EXPECT_EQ(literal.get_int(2), 1);
}

TEST_F(Npy, RefusesWhatItCannotReadAndNamesTheFile) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  const std::vector<std::pair<std::string, std::size_t>> bad = {
      {good, 7},
      {good, 9},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8},
      {"{'descr': '<c32', 'fortran_order': False, 'shape': (1,), }", 32},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }", 8},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", 8},
      {"{'fortran_order': False, 'shape': (2,), }", 8},
      {"", 0}};
  for (const auto& [header, bytes] : bad) {
    const std::string file = made(header, bytes);
    try {
      read_npy(file);
      ADD_FAILURE() << "was read: " << header;
    } catch (const Error& error) {
      EXPECT_EQ(error.file(), file) << error.what();
    }
  }
  EXPECT_NO_THROW(read_npy(made(good, 8)));
  try {
    read_npy(made(good, 3));
    ADD_FAILURE() << "was read";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("3 bytes of data, f32[2] needs 8"), std::string::npos) << error.what();
  }
  write_file(path("text.npy"), "not an array");
  EXPECT_THROW(read_npy(path("text.npy")), Error);
  EXPECT_THROW(read_npy(path("absent.npy")), Error);
  EXPECT_THROW(write_npy(path("a.npy"), Literal::zeros(Shape::array(DType::kToken, {}))), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
