// Tensor copies to shared memory: which elements a box is, where they lie, and what is counted.
#include "tests/simulator/tensor_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace tensor_copies;

void expect_load(const TensorMap& m, const At& at, const std::string& form) {
  SCOPED_TRACE(fmt::format("type {} rank {} box {} swizzle {} at {}", int(m.type), m.rank,
                           fmt::join(m.box, ","), int(m.swizzle), fmt::join(at, ",")));
  ASSERT_EQ(m.wrong(), "");
  const Bytes tensor = random_bytes(bytes_of(m), 7);
  const Ran ran = run_copy(load(m, form), m, tensor, Bytes(m.box_bytes()), at);
  ASSERT_EQ(ran.text(), "");
  std::uint64_t elements = 0;
  for_box(m, at, [&](std::uint64_t to, std::int64_t from) {
    ++elements;
    const std::byte* got = ran.memory.data() + to;
    if (from >= 0)
      ASSERT_EQ(std::memcmp(got, tensor.data() + from, m.element_bytes()), 0) << to;
    else if (m.fill_nan)
      ASSERT_TRUE(is_nan_of(m.type, got)) << to;
    else
      for (unsigned b = 0; b < m.element_bytes(); ++b) ASSERT_EQ(got[b], std::byte{0}) << to;
  });
  EXPECT_EQ(elements * m.element_bytes(), m.box_bytes());
}

TEST(TensorCopy, LoadsBoxesOfEveryRank) {
  expect_load(tensor_of(TensorElement::kF32, {100}, {64}), {30}, load_form(1));
  expect_load(tensor_of(TensorElement::kF16, {100, 40}, {32, 8}), {64, 5}, load_form(2));
  expect_load(tensor_of(TensorElement::kU8, {48, 10, 6}, {32, 4, 3}), {16, 2, 1}, load_form(3));
  expect_load(tensor_of(TensorElement::kS64, {9, 5, 4, 3}, {4, 3, 2, 2}), {2, 1, 1, 0}, load_form(4));
  expect_load(tensor_of(TensorElement::kBF16, {24, 5, 4, 3, 4}, {8, 3, 2, 2, 3}), {8, 1, 1, 0, 1},
              load_form(5));
}

TEST(TensorCopy, WhatIsOutsideIsZeroOrNan) {
  for (const TensorElement type : {TensorElement::kF16, TensorElement::kBF16, TensorElement::kF32,
                                   TensorElement::kF64, TensorElement::kU16}) {
    TensorMap m = tensor_of(type, {37, 11}, {16, 8});
    m.fill_nan = type != TensorElement::kU16;
    for (const At& at : {At{-5, -3}, At{30, 7}, At{-40, 0}, At{0, 200}, At{3, -8}, At{37, 0}})
      expect_load(m, at, load_form(2));
  }
}

TEST(TensorCopy, SwizzlesPermuteChunksOfLines) {
  for (const auto& [swizzle, span] :
       {std::pair{Swizzle::k32B, 32u}, {Swizzle::k64B, 64u}, {Swizzle::k128B, 128u}}) {
    TensorMap m = tensor_of(TensorElement::kF16, {200, 50}, {span / 2, 40});
    m.swizzle = swizzle;
    for (const At& at : {At{0, 0}, At{64, 3}, At{190, 45}, At{-3, 0}}) expect_load(m, at, load_form(2));
  }
}

TEST(TensorCopy, RandomBoxesAreThoseOfTheTensor) {
  std::mt19937_64 rng(11);
  for (int k = 0; k < 60; ++k) {
    const int rank = 1 + static_cast<int>(rng() % 5);
    const auto type = static_cast<TensorElement>(rng() % 10);
    std::vector<std::uint64_t> dims;
    std::vector<std::uint32_t> box;
    TensorMap one;
    one.type = type;
    const std::uint32_t unit = std::max(1u, 16 / one.element_bytes());
    for (int d = 0; d < rank; ++d) {
      dims.push_back(1 + rng() % (d == 0 ? 90 : 9));
      box.push_back(d == 0 ? unit * (1 + rng() % 3) : 1 + rng() % 5);
    }
    TensorMap m = tensor_of(type, dims, box);
    for (int d = 0; d < rank; ++d) m.element_strides[d] = 1 + rng() % 3;
    if (rng() % 2)
      for (int d = 0; d + 1 < rank; ++d) m.strides[d] += 16 * (rng() % 3) * (d + 1 == rank - 1);
    m.swizzle = m.row_bytes() == 32 ? Swizzle::k32B : Swizzle::kNone;
    At at{};
    for (int d = 0; d < rank; ++d) at[d] = static_cast<int>(rng() % (dims[d] + 4)) - 2;
    expect_load(m, at, load_form(rank));
  }
}

TEST(TensorCopy, FormsOfTheDestinationAndHints) {
  const TensorMap m = tensor_of(TensorElement::kF16, {100, 40}, {32, 8});
  for (const std::string form :
       {"cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"})
    expect_load(m, {64, 5}, form);
  std::string hinted = load(m, load_form(2) + ".L2::cache_hint");
  hinted.replace(hinted.find("], [%r3];\n"), 9, "], [%r3], %d9;");
  const Ran ran = run_copy(
      "mov.u64 %d9, 0;\nprefetch.tensormap [%d1];\ncp.async.bulk.prefetch.tensor.2d.L2.global.tile "
      "[%d1, {%r10, %r11}];\nprefetch.param.tensormap [map];\n" +
          hinted,
      m, Bytes(bytes_of(m)), Bytes(m.box_bytes()), {});
  EXPECT_EQ(ran.text(), "");
}

TEST(TensorCopy, AMapMayLieInMemory) {
  const TensorMap m = tensor_of(TensorElement::kU32, {64, 8}, {32, 4});
  const Bytes tensor = random_bytes(bytes_of(m), 3);
  // The box replaces the tensor's first rows.
  std::string body = load(m, load_form(2));
  body.replace(body.find("[%d1,"), 4, "[%d2");
  body = "ld.global.b64 %d7, [%d2+8];\nfence.proxy.tensormap::generic.acquire.gpu [%d2], 128;\n" + body;
  body.replace(body.find("add.u64 %d6, %d2"), 16, "add.u64 %d6, %d7");
  const Ran ran = run_copy(body, m, tensor, {}, {32, 4}, {.map_in_memory = true});
  ASSERT_EQ(ran.text(), "");
  for (std::uint32_t row = 0; row < 4; ++row)
    EXPECT_EQ(std::memcmp(ran.tensor.data() + row * 128, tensor.data() + (row + 4) * 256 + 128, 128), 0)
        << row;
}

TEST(TensorCopy, KernelsMayWriteTheirMaps) {
  TensorMap m = tensor_of(TensorElement::kBF16, {100, 40}, {32, 8});
  m.swizzle = Swizzle::k64B;
  const Bytes tensor = random_bytes(bytes_of(m), 3);
  // From zeros in shared memory, as compilers do it; then copied to global memory, in front of what is
  // dumped.
  std::string fields =
      "ld.param.u64 %d8, [map+8];\nmov.u32 %r40, data; cvt.u64.u32 %d7, %r40; add.u64 %d7, %d7, 4096;\n"
      "shl.b32 %r41, %r1, 2; add.u32 %r41, %r41, %r40; mov.u32 %r42, 0; st.shared.b32 [%r41+4096], %r42;\n"
      "bar.warp.sync -1;\n";
  const auto replace = [&](const std::string& field, const std::string& value, int bits = 32) {
    fields +=
        fmt::format("@%p1 tensormap.replace.tile.{}.shared::cta.b1024.b{} [%d7], {};\n", field, bits, value);
  };
  replace("global_address", "%d8", 64);
  replace("rank", "1");
  for (int d = 0; d < 2; ++d) {
    replace("box_dim", fmt::format("{}, {}", d, m.box[d]));
    replace("global_dim", fmt::format("{}, {}", d, m.dims[d]));
    replace("element_stride", fmt::format("{}, 1", d));
  }
  replace("global_stride", fmt::format("0, {}", m.strides[0]), 64);
  replace("elemtype", "10");
  replace("interleave_layout", "0");
  replace("swizzle_mode", "2");
  replace("fill_mode", "1");
  m.fill_nan = true;
  fields +=
      "bar.warp.sync -1;\n"
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d2], [%d7], "
      "128;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;\nmov.u64 %d1, %d2;\nadd.u64 %d2, %d2, 128;\n";
  const At at{80, 36};
  const Ran ran = run_copy(fields + load(m, load_form(2)), m, tensor, Bytes(128 + m.box_bytes()), at);
  ASSERT_EQ(ran.text(), "");
  for_box(m, at, [&](std::uint64_t to, std::int64_t from) {
    const std::byte* got = ran.memory.data() + 128 + to;
    ASSERT_TRUE(from >= 0 || is_nan_of(m.type, got)) << to;
    ASSERT_TRUE(from < 0 || std::memcmp(got, tensor.data() + from, 2) == 0) << to;
  });
  const std::string tf32 = without(fields, "b1024.b32 [%d7], 10;", "b1024.b32 [%d7], 11;");
  EXPECT_THROW(run_copy(tf32, m, tensor, Bytes(128), at), Error);
}

TEST(TensorCopy, MulticastsReachTheSamePlaceOfEveryBlockNamed) {
  const TensorMap m = tensor_of(TensorElement::kU32, {64, 8}, {32, 4});
  const Bytes tensor = random_bytes(bytes_of(m), 3);
  // Rank 1 of 4 copies to ranks 0, 1 and 3; each writes what it got behind the others'.
  std::string body = fmt::format(
      "mov.u32 %r20, 512;\nmov.u32 %r30, %cluster_ctarank;\nmul.wide.u32 %d5, %r30, 512;\nadd.u64 %d2, %d2, "
      "%d5;\n"
      "{}barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nsetp.eq.u32 %p5, %r30, 2;\n@%p5 bra "
      "DUMPED;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;\nsetp.eq.and.u32 %p4, %r30, 1, %p1;\n"
      "mov.u16 %h1, 0xb;\n"
      "@%p4 {}.multicast::cluster [%r4], [%d1, {{%r10, %r11}}], [%r3], %h1;\n{}{}\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
      kInit, load_form(2), kWait, kDump);
  const Ran ran = run_copy(body, m, tensor, Bytes(4 * 512), {32, 2}, {.blocks = 4, .cluster = 4});
  ASSERT_EQ(ran.text(), "");
  for (std::uint32_t rank : {0u, 1u, 3u})
    for (std::uint32_t row = 0; row < 4; ++row)
      EXPECT_EQ(
          std::memcmp(ran.memory.data() + rank * 512 + row * 128, tensor.data() + (row + 2) * 256 + 128, 128),
          0)
          << rank << " " << row;
  EXPECT_EQ(ran.result.counters.bulk_copies, 1u);
  EXPECT_EQ(ran.result.counters.gld_transactions, 16u);  // read once
  std::string outside = body;
  outside.replace(outside.find("0xb"), 3, "0x13");
  EXPECT_NE(run_copy(outside, m, tensor, Bytes(4 * 512), {}, {.blocks = 4, .cluster = 4})
                .text()
                .find("mask 0x0013"),
            std::string::npos);
}

TEST(TensorCopy, CountsTheSectorsOfItsRows) {
  const TensorMap m = tensor_of(TensorElement::kF16, {256, 64}, {64, 32});
  const Ran in =
      run_copy(load(m, load_form(2)), m, Bytes(bytes_of(m)), Bytes(m.box_bytes()), {}, {.sanitize = {}});
  EXPECT_EQ(in.result.counters.bulk_copies, 1u);
  EXPECT_EQ(in.result.counters.gld_requests, 1u);
  EXPECT_EQ(in.result.counters.gld_bytes, 4096u);
  EXPECT_EQ(in.result.counters.gld_transactions, 32u * 4);
  EXPECT_EQ(in.result.counters.bulk_sectors, 32u * 4);
  EXPECT_EQ(in.result.counters.dram_read_transactions, 32u * 4);
  // What is outside is not read; rows that follow each other share their sectors.
  const Ran edge = run_copy(load(m, load_form(2)), m, Bytes(bytes_of(m)), Bytes(m.box_bytes()), {240, 60},
                            {.sanitize = {}});
  EXPECT_EQ(edge.result.counters.gld_transactions, 4u);
  const TensorMap whole = tensor_of(TensorElement::kU8, {16, 64}, {16, 64});
  const Ran joined =
      run_copy(load(whole, load_form(2)), whole, Bytes(bytes_of(whole)), Bytes(1024), {}, {.sanitize = {}});
  EXPECT_EQ(joined.result.counters.gld_transactions, 32u);
  const Ran out = run_copy(store(m, store_form(2)), m, Bytes(bytes_of(m)), Bytes(m.box_bytes()), {},
                           {.sanitize = {}, .writes_memory = false});
  EXPECT_EQ(out.result.counters.gst_transactions, 32u * 4);
  EXPECT_EQ(out.result.counters.bulk_sectors, 32u * 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
