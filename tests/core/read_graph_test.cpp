#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "core/base/sha256.h"
#include "core/graph/dtype.h"
#include "core/graph/shape.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(Sha256, GivesThePublishedDigests) {
  // FIPS 180-4 examples, and the lengths around a block's end against coreutils' sha256sum.
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(ReadGraph, ACompressedFileIsTheSameGraphWithTheSameSum) {
  const std::string plain = STITCHWORK_SOURCE_DIR "/datasets/fig7.hlo";
  const Graph graph = read_graph(plain);
  EXPECT_EQ(graph.source, plain);
  EXPECT_EQ(graph.source_sha256.size(), 64u);

  const std::string text = to_text(graph);
  const std::string path = ::testing::TempDir() + "/fig7.hlo.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const Graph packed = read_graph(path);
  EXPECT_TRUE(equal(packed, graph));
  EXPECT_EQ(packed.source, path);
  EXPECT_EQ(packed.source_sha256, sha256_hex(text));
  std::filesystem::remove(path);
}

TEST(DType, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::kOpaque); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(type)), type);
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
}

TEST(Shape, LayoutsArePrintedWhereTheyAreNotTheDefault) {
  Shape shape = Shape::array(DType::kF32, {2, 3});
  EXPECT_EQ(to_text(shape), "f32[2,3]");
  EXPECT_EQ(to_text(shape, true), "f32[2,3]{1,0}");
  shape.minor_to_major = {0, 1};
  EXPECT_EQ(to_text(shape), "f32[2,3]{0,1}");
  EXPECT_FALSE(shape.has_default_layout());
  EXPECT_TRUE(shape.compatible(Shape::array(DType::kF32, {2, 3})));
  EXPECT_EQ(to_text(Shape::array(DType::kPred, {}), true), "pred[]");
  const Shape scalar = Shape::array(DType::kS32, {});
  EXPECT_EQ(to_text(Shape::tuple({scalar, scalar, scalar, scalar, scalar, shape})),
            "(s32[], s32[], s32[], s32[], s32[], /*index=5*/f32[2,3]{0,1})");
}

TEST(Shape, SizesCountTheElementsOfAllParts) {
  const Shape shape = Shape::array(DType::kBF16, {4, 5});
  EXPECT_EQ(shape.elements_count(), 20);
  EXPECT_EQ(shape.byte_size(), 40);
  EXPECT_EQ(Shape::array(DType::kF32, {}).elements_count(), 1);
  EXPECT_EQ(Shape::array(DType::kF32, {3, 0}).elements_count(), 0);
  EXPECT_EQ(Shape::tuple({shape, Shape::array(DType::kToken, {})}).byte_size(), 40);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
