// Tensor copies of columns of pixels (im2col) and of rows that are gathered and scattered. The reference is a
// convolution's patch matrix, made with plain loops.
#include "core/base/error.h"
#include "tests/simulator/tensor_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace tensor_copies;

/// A convolution over images [N]([D][H])W[C].
struct Convolution {
  std::vector<std::int64_t> size, filter, padding, stride, dilation;  ///< by W, H, D
  std::int64_t images = 1;

  int spatial() const { return static_cast<int>(size.size()); }
  std::int64_t outputs(int d) const {
    return (size[d] + 2 * padding[d] - dilation[d] * (filter[d] - 1) - 1) / stride[d] + 1;
  }
};

/// The map of a convolution's patches.
TensorMap map_of(const Convolution& c, TensorElement type, std::uint64_t channels, std::uint32_t per_pixel,
                 std::uint32_t pixels) {
  std::vector<std::uint64_t> dims{channels};
  dims.insert(dims.end(), c.size.begin(), c.size.end());
  dims.push_back(static_cast<std::uint64_t>(c.images));
  TensorMap m = tensor_of(type, dims, std::vector<std::uint32_t>(dims.size(), 1));
  m.mode = TensorMode::kIm2col;
  m.box[0] = per_pixel;
  m.pixels = pixels;
  for (int d = 0; d < c.spatial(); ++d) {
    m.lower_corner[d] = static_cast<std::int32_t>(-c.padding[d]);
    m.upper_corner[d] = static_cast<std::int32_t>(c.padding[d] - c.dilation[d] * (c.filter[d] - 1));
    m.element_strides[d + 1] = static_cast<std::uint32_t>(c.stride[d]);
  }
  return m;
}

/// Of output pixel `number` (over all images, W first), where the image's element under place `tap` of the
/// filter is: its offset in the tensor's bytes without channels, or -1 in the padding.
std::int64_t under_filter(const Convolution& c, const TensorMap& m, std::int64_t number,
                          const std::vector<std::int64_t>& tap) {
  std::int64_t from = 0;
  bool inside = true;
  for (int d = 0; d < c.spatial(); ++d) {
    const std::int64_t output = number % c.outputs(d);
    number /= c.outputs(d);
    const std::int64_t at = output * c.stride[d] - c.padding[d] + tap[d] * c.dilation[d];
    inside = inside && at >= 0 && at < c.size[d];
    from += at * static_cast<std::int64_t>(m.strides[d]);
  }
  inside = inside && number < c.images;
  return inside ? from + number * static_cast<std::int64_t>(m.strides[c.spatial()]) : -1;
}

/// The tensor coordinates of a column that begins at output `number`.
At corner_of(const Convolution& c, std::int64_t channel, std::int64_t number) {
  At at{static_cast<std::int32_t>(channel)};
  for (int d = 0; d < c.spatial(); ++d) {
    at[d + 1] = static_cast<std::int32_t>(number % c.outputs(d) * c.stride[d] - c.padding[d]);
    number /= c.outputs(d);
  }
  at[c.spatial() + 1] = static_cast<std::int32_t>(number);
  return at;
}

/// f(offset in shared memory, offset in the tensor or -1) for each element of a column.
template <class F>
void for_column(const Convolution& c, const TensorMap& m, std::int64_t channel, std::int64_t number,
                const std::vector<std::int64_t>& tap, F f) {
  for (std::uint32_t pixel = 0; pixel < m.pixels; ++pixel)
    for (std::uint32_t k = 0; k < m.box[0]; ++k) {
      const std::int64_t base = under_filter(c, m, number + pixel, tap);
      const bool inside = base >= 0 && channel + k < std::int64_t(m.dims[0]) && channel + k >= 0;
      const std::uint64_t linear = (std::uint64_t{pixel} * m.box[0] + k) * m.element_bytes();
      const std::uint64_t line = linear / 128, chunk = linear / 16 % 8;
      const std::uint64_t span = swizzle_span(m.swizzle);
      const std::uint64_t permuted = span == 0 ? chunk : chunk ^ line % (span / 16);
      f(line * 128 + permuted * 16 + linear % 16,
        inside ? base + (channel + k) * std::int64_t(m.element_bytes()) : -1);
    }
}

std::string im2col_form(int rank, const std::string& space = "shared::cta") {
  return fmt::format("cp.async.bulk.tensor.{}d.{}.global.im2col.mbarrier::complete_tx::bytes", rank, space);
}
std::string load_columns(const TensorMap& m, const std::string& form,
                         const std::vector<std::int64_t>& offsets) {
  std::string operand;
  for (const std::int64_t offset : offsets)
    operand += fmt::format("{}{}", operand.empty() ? "" : ", ", offset);
  return without(load(m, form), "], [%r3];\n", fmt::format("], [%r3], {{{}}};\n", operand));
}

void expect_columns(const Convolution& c, const TensorMap& m, std::int64_t channel, std::int64_t number,
                    const std::vector<std::int64_t>& tap, const std::string& form) {
  SCOPED_TRACE(
      fmt::format("type {} size {} filter {} padding {} stride {} dilation {} images {}; channels {} of "
                  "{}, {} pixels from {} on, tap {}, channel {}, {}",
                  int(m.type), fmt::join(c.size, ","), fmt::join(c.filter, ","), fmt::join(c.padding, ","),
                  fmt::join(c.stride, ","), fmt::join(c.dilation, ","), c.images, m.box[0], m.dims[0],
                  m.pixels, number, fmt::join(tap, ","), channel, form));
  ASSERT_EQ(m.wrong(), "");
  std::vector<std::int64_t> offsets;
  for (int d = 0; d < c.spatial(); ++d) offsets.push_back(tap[d] * c.dilation[d]);
  const Bytes tensor = random_bytes(bytes_of(m), 7);
  const Ran ran = run_copy(load_columns(m, form, offsets), m, tensor, Bytes(m.box_bytes()),
                           corner_of(c, channel, number));
  ASSERT_EQ(ran.text(), "");
  std::uint64_t elements = 0, read = 0;
  for_column(c, m, channel, number, tap, [&](std::uint64_t to, std::int64_t from) {
    ++elements;
    read += from >= 0;
    const std::byte* got = ran.memory.data() + to;
    if (from >= 0)
      ASSERT_EQ(std::memcmp(got, tensor.data() + from, m.element_bytes()), 0) << to;
    else if (m.fill_nan)
      ASSERT_TRUE(is_nan_of(m.type, got)) << to;
    else
      for (unsigned b = 0; b < m.element_bytes(); ++b) ASSERT_EQ(got[b], std::byte{0}) << to;
  });
  EXPECT_EQ(elements * m.element_bytes(), m.box_bytes());
  EXPECT_EQ(ran.result.counters.gld_bytes, read * m.element_bytes());
}

TEST(Im2colCopy, ColumnsAreAConvolutionsPatches) {
  const Convolution c{{9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3};
  const TensorMap m = map_of(c, TensorElement::kF16, 24, 16, 64);
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t s = 0; s < 3; ++s) expect_columns(c, m, 8, 40, {s, r}, im2col_form(4));
  // From the last image on there are no pixels left.
  expect_columns(c, m, 0, 9 * 7 * 3 - 5, {2, 2}, im2col_form(4, "shared::cluster"));
}

TEST(Im2colCopy, RandomConvolutions) {
  std::mt19937_64 rng(3);
  int tried = 0;
  for (int k = 0; k < 90; ++k) {
    Convolution c;
    const int spatial = 1 + static_cast<int>(rng() % 3);
    for (int d = 0; d < spatial; ++d) {
      c.size.push_back(1 + static_cast<std::int64_t>(rng() % (d == 0 ? 12 : 6)));
      c.filter.push_back(1 + static_cast<std::int64_t>(rng() % 3));
      c.padding.push_back(static_cast<std::int64_t>(rng() % 3));
      c.stride.push_back(1 + static_cast<std::int64_t>(rng() % 3));
      c.dilation.push_back(1 + static_cast<std::int64_t>(rng() % 2));
    }
    c.images = 1 + static_cast<std::int64_t>(rng() % 4);
    std::int64_t outputs = c.images;
    for (int d = 0; d < spatial; ++d)
      outputs *= c.size[d] + 2 * c.padding[d] > c.dilation[d] * (c.filter[d] - 1) ? c.outputs(d) : 0;
    if (outputs <= 0) continue;
    ++tried;
    const auto type = static_cast<TensorElement>(rng() % 10);
    TensorMap one;
    one.type = type;
    const std::uint32_t unit = std::max(1u, 16 / one.element_bytes());
    TensorMap m = map_of(c, type, 1 + rng() % 80, unit * (1 + static_cast<std::uint32_t>(rng() % 2)),
                         1 + static_cast<std::uint32_t>(rng() % 90));
    m.swizzle = m.row_bytes() == 32 && rng() % 2 ? Swizzle::k32B : Swizzle::kNone;
    m.fill_nan = rng() % 2 && type >= TensorElement::kF16;
    std::vector<std::int64_t> tap;
    for (int d = 0; d < spatial; ++d)
      tap.push_back(static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(c.filter[d])));
    const auto channel = static_cast<std::int64_t>(rng() % (m.dims[0] + 8)) - 4;
    const auto number = static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(outputs));
    expect_columns(c, m, channel, number, tap, im2col_form(spatial + 2));
  }
  EXPECT_GT(tried, 50);
}

TEST(Im2colCopy, StoresAndReductionsWriteThePixelsThatAreThere) {
  for (const std::int64_t number : {0, 17, 100}) {
    // The corner may be outside of the tensor, whose pixels there are not written.
    const Convolution c{{8, 6}, {1, 1}, {1, 0}, {2, 1}, {1, 1}, 2};
    const TensorMap m = map_of(c, TensorElement::kU32, 12, 8, 40);
    const Bytes tensor = random_bytes(bytes_of(m), 5), source = random_bytes(m.box_bytes(), 6);
    const At at = corner_of(c, 8, number);
    Bytes stored = tensor, added = tensor;
    for_column(c, m, 8, number, {0, 0}, [&](std::uint64_t from, std::int64_t to) {
      if (to < 0) return;
      std::memcpy(stored.data() + to, source.data() + from, 4);
      std::uint32_t a, b;
      std::memcpy(&a, added.data() + to, 4);
      std::memcpy(&b, source.data() + from, 4);
      a += b;
      std::memcpy(added.data() + to, &a, 4);
    });
    const CopySetup reads{.writes_memory = false};
    const Ran plain =
        run_copy(store(m, "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group"), m, tensor,
                 source, at, reads);
    ASSERT_EQ(plain.text(), "");
    EXPECT_EQ(plain.tensor, stored) << number;
    const Ran sum =
        run_copy(store(m, "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group"),
                 m, tensor, source, at, reads);
    ASSERT_EQ(sum.text(), "");
    EXPECT_EQ(sum.tensor, added) << number;
  }
}

TEST(Im2colCopy, MulticastsPrefetchesAndModifiersInAnyOrder) {
  const Convolution c{{16}, {3}, {1}, {1}, {1}, 2};
  const TensorMap m = map_of(c, TensorElement::kF32, 8, 8, 16);
  expect_columns(c, m, 0, 3, {2},
                 "cp.async.bulk.tensor.3d.im2col.shared::cluster.global.mbarrier::complete_tx::bytes");
  std::string body =
      load_columns(m, im2col_form(3, "shared::cluster") + ".multicast::cluster.L2::cache_hint", {1});
  body = without(body, "{1};", "{%h1}, %h2, %d9;");
  body =
      "mov.u64 %d9, 0; mov.u16 %h1, 1; mov.u16 %h2, 1;\n"
      "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [%d1, {%r10, %r11, %r12}], {%h1};\n" +
      body;
  const Bytes tensor = random_bytes(bytes_of(m), 2);
  const Ran ran = run_copy(body, m, tensor, Bytes(m.box_bytes()), corner_of(c, 0, 3), {.cluster = 1});
  ASSERT_EQ(ran.text(), "");
  for_column(c, m, 0, 3, {1}, [&](std::uint64_t to, std::int64_t from) {
    std::uint32_t got = 1, expected = 0;
    std::memcpy(&got, ran.memory.data() + to, 4);
    if (from >= 0) std::memcpy(&expected, tensor.data() + from, 4);
    ASSERT_EQ(got, expected) << to;
  });
  EXPECT_EQ(ran.result.counters.bulk_copies, 1u);
}

TEST(Im2colCopy, WhatIsDoneWrongIsFound) {
  const Convolution c{{9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3};
  const TensorMap m = map_of(c, TensorElement::kF16, 24, 16, 64);
  const Bytes tensor(bytes_of(m)), box(m.box_bytes());
  const auto expect = [&](const std::string& body, const std::string& found, const At& at,
                          const TensorMap& map, const CopySetup& setup = {}) {
    const std::string text = run_copy(body, map, tensor, box, at, setup).text();
    EXPECT_NE(text.find(found), std::string::npos) << "found: " << text << "\nin:\n" << body;
  };
  const At at = corner_of(c, 0, 40);
  const std::string good = load_columns(m, im2col_form(4), {1, 1});
  expect(without(good, kWait, "WAIT:\n"), "shared-race", at, m);
  expect(without(good, "[%r4], [%d1", "[%r4+64], [%d1"), "misaligned", at, m);
  expect(without(good, "{1, 1}", "{1, 256}"), "has the im2col offset 256 along dimension 2, where 0 to 255",
         at, m);
  expect(good, "begins at 8 along dimension 1, outside of its pixels' box, -1 to 7", {0, 8, 0, 0}, m);
  expect(good, "begins at -2 along dimension 2, outside of its pixels' box, -1 to 5", {0, 0, -2, 0}, m);
  TensorMap tiles = m;
  tiles.mode = TensorMode::kTile;
  tiles.box = {16, 4, 4, 4, 1};
  expect(good, "copies columns of pixels (im2col) by a tensor map of tiles", at, tiles);
  expect(load(m, load_form(4)), "copies a tile by a tensor map of columns of pixels (im2col)", at, m);
  TensorMap larger = m;
  larger.dims[3] = 30;
  expect(good, "out-of-bounds", corner_of(c, 0, 9 * 7 * 3 - 5), larger);
  const std::string out = store(m, "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group");
  const CopySetup reads{.writes_memory = false};
  expect(without(out, "fence.proxy.async.shared::cta;"), "fence.proxy.async", at, m, reads);
  expect(without(out, "st.shared.u32 [%r22], %r23;"), "never written", at, m, reads);
  CopySetup two = reads;
  two.blocks = 2;
  expect(out, "global-race", at, m, two);
  expect("tensormap.replace.tile.rank.global.b1024.b32 [%d2], 2;\n", "replaces the rank of a map of tiles",
         at, m, {.map_in_memory = true});
}

TEST(Im2colCopy, MapsThatNoDriverMakesAreRefused) {
  const Convolution c{{9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3};
  const TensorMap good = map_of(c, TensorElement::kF16, 24, 16, 64);
  ASSERT_EQ(good.wrong(), "");
  const auto wrong = [&](const std::function<void(TensorMap&)>& edit) {
    TensorMap m = good;
    edit(m);
    EXPECT_FALSE(TensorMap::decode(m.encode()).has_value() && !m.wrong().empty());
    return m.wrong();
  };
  EXPECT_EQ(wrong([](TensorMap& m) { m.rank = 2; }), "rank 2: im2col takes 3 to 5");
  EXPECT_EQ(wrong([](TensorMap& m) { m.box[0] = 257; }), "257 channels a pixel: 1 to 256 are possible");
  EXPECT_EQ(wrong([](TensorMap& m) { m.pixels = 1025; }), "1025 pixels a column: 1 to 1024 are possible");
  EXPECT_EQ(wrong([](TensorMap& m) { m.lower_corner[1] = -129; }),
            "a corner -129 of the pixels' box in dimension 2: -128 to 127 are possible");
  EXPECT_EQ(wrong([](TensorMap& m) { m.upper_corner[0] = -10; }),
            "the pixels' box of dimension 1 ends at -2, before it begins at -1");
  EXPECT_EQ(wrong([](TensorMap& m) { m.element_strides[3] = 2; }),
            "element stride 2 of the batch dimension 3, which im2col has none of");
  EXPECT_EQ(wrong([](TensorMap& m) { m.box[0] = 4; }),
            "a row of the box has 8 bytes, which is no multiple of 16");
  EXPECT_EQ(wrong([](TensorMap& m) {
              m.rank = 5;
              m.dims[4] = 2;
              m.strides[3] = 1 << 20;
              m.lower_corner[0] = -17;
            }),
            "a corner -17 of the pixels' box in dimension 1: -16 to 15 are possible");
}

TEST(RowCopy, GathersAndScattersFourRows) {
  TensorMap m = tensor_of(TensorElement::kF16, {100, 40}, {64, 1});
  m.swizzle = Swizzle::k128B;
  const CopySetup blackwell{.device = "b200", .target = "sm_100a"};
  const At at{80, 7, 0, 7, 41};  // the last row is outside, one is there twice
  const std::string numbers = "{%r10, %r11, %r12, %r13, %r14}";
  const auto for_gathered = [&](const auto& f) {
    for (std::uint64_t row = 0; row < 4; ++row)
      for (std::uint64_t k = 0; k < 64; ++k) {
        const bool inside = at[0] + k < 100 && at[row + 1] < 40;
        f(row * 128 + (k / 8 ^ row) * 16 + k % 8 * 2,
          inside ? std::int64_t(at[row + 1] * m.strides[0] + (at[0] + k) * 2) : -1);
      }
  };
  const Bytes tensor = random_bytes(bytes_of(m), 7);
  std::string body =
      load(m, "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes");
  body = without(without(without(body, "{%r10, %r11}", numbers), "mov.u32 %r20, 128", "mov.u32 %r20, 512"),
                 "[%r3], 128;", "[%r3], 512;");
  const Ran ran = run_copy(body, m, tensor, Bytes(512), at, blackwell);
  ASSERT_EQ(ran.text(), "");
  for_gathered([&](std::uint64_t to, std::int64_t from) {
    std::uint16_t got = 1, expected = 0;
    std::memcpy(&got, ran.memory.data() + to, 2);
    if (from >= 0) std::memcpy(&expected, tensor.data() + from, 2);
    ASSERT_EQ(got, expected) << to;
  });
  TensorMap tall = m;
  tall.box[1] = 2;
  EXPECT_NE(run_copy(body, tall, tensor, Bytes(512), at, blackwell).text().find("whose box has 2, not 1"),
            std::string::npos);
  const At apart{80, 7, 0, 9, 41};
  CopySetup reads = blackwell;
  reads.writes_memory = false;
  std::string out = store(m, "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group");
  out = without(without(out, "{%r10, %r11}", numbers), "mov.u32 %r20, 128", "mov.u32 %r20, 512");
  const Bytes source = random_bytes(512, 8);
  const Ran stored = run_copy(out, m, tensor, source, apart, reads);
  ASSERT_EQ(stored.text(), "");
  Bytes expected = tensor;
  for (std::uint64_t row = 0; row < 3; ++row)
    for (std::uint64_t k = 0; k < 20; ++k)
      std::memcpy(expected.data() + std::uint64_t(apart[row + 1]) * m.strides[0] + (80 + k) * 2,
                  source.data() + row * 128 + (k / 8 ^ row) * 16 + k % 8 * 2, 2);
  EXPECT_EQ(stored.tensor, expected);
  // Only where the ISA has it.
  const auto refusal = [&](const std::string& text, const CopySetup& setup) {
    try {
      run_copy(text, m, tensor, Bytes(512), at, setup);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("ran");
  };
  EXPECT_EQ(refusal(body, {.device = "b200", .target = "sm_100"}),
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes wants "
            ".target sm_100a, not sm_100");
  EXPECT_EQ(
      refusal(without(body, "shared::cluster.global", "shared::cta.global"), {}),
      "kernel 'k' uses tensor copies that gather or scatter rows, which h100-sxm (sm_90) does not have");
}

TEST(Im2colCopy, OperandsAreCounted) {
  const auto refusal = [](const std::string& line) {
    try {
      ptx::parse(kernel(line), "tensor.ptx");
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  const std::string form = im2col_form(4);
  const std::string head = form + " [%r4], [%d1, {%r10, %r11, %r12, %r13}], [%r3]";
  EXPECT_EQ(refusal(head + ", {1, 2};"), "");
  EXPECT_EQ(refusal(head + ";"),
            form + " takes [shared], [map, {coordinates}], [mbarrier], {im2col offsets}");
  EXPECT_EQ(refusal(head + ", {1};"), form + " takes 2 im2col offsets, 1 given");
  EXPECT_EQ(refusal(im2col_form(2) + " [%r4], [%d1, {%r10, %r11}], [%r3], {1};"),
            "instruction '" + im2col_form(2) + "' is not supported");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
