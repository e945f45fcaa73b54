// Tensor copies: which elements of a tensor a box is, where they are in shared memory, what is counted, and
// what is done wrong. The references work on whole tensors, element by element.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "core/base/error.h"
#include "simulator/forms.h"
#include "simulator/isa.h"
#include "simulator/tensor_map.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using Bytes = std::vector<std::byte>;
using At = std::array<std::int32_t, 5>;

constexpr Sanitizers kAll{.race = true, .init = true, .sync = true};

/// A kernel k(map, memory, at): the map by value, a pointer, coordinates. %d1 is the map's address, %d2 the
/// pointer, %r10 and on the coordinates, %r1 tid, %p1 whether it is thread 0, %r3 an mbarrier, %r4 128-byte
/// aligned data.
std::string kernel(const std::string& body) {
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 memory, .param .align 4 .b8 at[20])\n{\n"
      ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<60>;\n.reg .b64 %d<32>;\n"
      ".shared .align 8 .b8 bar[16];\n.shared .align 1024 .b8 data[40960];\n"
      "mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [memory];\n"
      "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, bar; mov.u32 %r4, data;\n";
  for (int d = 0; d < 5; ++d) text += fmt::format("ld.param.s32 %r{}, [at+{}];\n", 10 + d, 4 * d);
  return text + body + "\nret;\n}\n";
}

std::string coordinates(int rank) {
  std::string text;
  for (int d = 0; d < rank; ++d) text += fmt::format("{}%r{}", d == 0 ? "" : ", ", 10 + d);
  return "{" + text + "}";
}

const std::string kInit = R"(
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 fence.proxy.async.shared::cta;
bar.sync 0;
)";
const std::string kWait = R"(
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
)";
/// The first %r20 bytes of the data, to memory.
const std::string kDump = R"(
shl.b32 %r21, %r1, 2;
DUMP: setp.ge.u32 %p3, %r21, %r20;
@%p3 bra DUMPED;
add.u32 %r22, %r4, %r21; ld.shared.u32 %r23, [%r22];
cvt.u64.u32 %d5, %r21; add.u64 %d6, %d2, %d5; st.global.u32 [%d6], %r23;
add.u32 %r21, %r21, 128;
bra DUMP;
DUMPED:
)";
/// The other way, and made visible to what copies next.
const std::string kFill = R"(
shl.b32 %r21, %r1, 2;
FILL: setp.ge.u32 %p3, %r21, %r20;
@%p3 bra FILLED;
cvt.u64.u32 %d5, %r21; add.u64 %d6, %d2, %d5; ld.global.u32 %r23, [%d6];
add.u32 %r22, %r4, %r21; st.shared.u32 [%r22], %r23;
add.u32 %r21, %r21, 128;
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
)";
std::string load_form(int rank) {
  return fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes", rank);
}
std::string load(const TensorMap& map, const std::string& form) {
  return fmt::format(
      "mov.u32 %r20, {0};\n{1}@!%p1 bra WAIT;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {0};\n"
      "{2} [%r4], [%d1, {3}], [%r3];\n{4}{5}",
      map.box_bytes(), kInit, form, coordinates(map.rank), kWait, kDump);
}
std::string store_form(int rank) {
  return fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group", rank);
}
std::string store(const TensorMap& map, const std::string& form) {
  return fmt::format(
      "mov.u32 %r20, {};\n{}@!%p1 bra END;\n{} [%d1, {}], [%r4];\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\nEND:\n",
      map.box_bytes(), kFill, form, coordinates(map.rank));
}

/// One launch of `body` with a tensor and other memory.
struct Ran {
  LaunchResult result;
  Bytes tensor, memory;
  std::string text() const {
    return result.findings.empty()
               ? ""
               : std::string(name(result.findings[0].kind)) + ": " + result.findings[0].message;
  }
};
struct CopySetup {
  Sanitizers sanitize = kAll;
  std::uint32_t blocks = 1, cluster = 0;
  bool map_in_memory = false;  ///< its address is `memory`, in place of other memory
  bool writes_memory = true;
};
Ran run_copy(const std::string& body, TensorMap map, const Bytes& tensor, const Bytes& other, const At& at,
             const CopySetup& setup = {}) {
  const ptx::Module module = ptx::parse(kernel(body), "tensor.ptx");
  DeviceMemory memory(true);
  const DeviceAddress base = memory.allocate(tensor.size(), "tensor");
  memory.write(base, tensor);
  map.address = base;
  const auto encoded = map.encode();
  Bytes contents = other;
  if (setup.map_in_memory) contents.assign(encoded.begin(), encoded.end());
  const DeviceAddress second = memory.allocate(contents.size(), "memory");
  if (!setup.writes_memory || setup.map_in_memory) memory.write(second, contents);
  Launch launch{.kernel = "k", .grid = {setup.blocks, 1, 1}, .block = {32, 1, 1}};
  if (setup.cluster != 0) launch.cluster = Dim3{setup.cluster, 1, 1};
  launch.arguments = {{Bytes(encoded.begin(), encoded.end())}, Argument::pointer(second), {Bytes(20)}};
  std::memcpy(launch.arguments[2].bytes.data(), at.data(), 20);
  Options options;
  options.sanitize = setup.sanitize;
  Ran ran{run(module, launch, memory, device("h100"), options), Bytes(tensor.size()), Bytes(contents.size())};
  memory.read(base, ran.tensor);
  memory.read(second, ran.memory);
  return ran;
}

std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("no " + part);
  return text.replace(at, part.size(), instead);
}

/// A packed tensor of rows padded to 16 bytes, and some more.
TensorMap tensor_of(TensorElement type, std::vector<std::uint64_t> dims, std::vector<std::uint32_t> box) {
  TensorMap m;
  m.type = type;
  m.rank = static_cast<int>(dims.size());
  std::uint64_t pitch = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    m.dims[d] = dims[d];
    m.box[d] = box[d];
    pitch = d == 0 ? (dims[0] * m.element_bytes() + 15) / 16 * 16 : pitch * dims[d];
    if (d + 1 < dims.size()) m.strides[d] = pitch;
  }
  return m;
}
std::size_t bytes_of(const TensorMap& m) {
  return m.rank == 1 ? (m.dims[0] * m.element_bytes() + 15) / 16 * 16
                     : m.strides[m.rank - 2] * m.dims[m.rank - 1];
}
Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Bytes bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

/// f(offset in shared memory, offset in the tensor or -1) for each element of the box.
template <class F>
void for_box(const TensorMap& m, const At& at, F f) {
  std::array<std::uint32_t, 5> count{1, 1, 1, 1, 1}, k{};
  for (int d = 0; d < m.rank; ++d)
    count[d] =
        d == 0 ? m.box[0] : static_cast<std::uint32_t>(std::ceil(double(m.box[d]) / m.element_strides[d]));
  std::uint64_t linear = 0;
  for (k[4] = 0; k[4] < count[4]; ++k[4])
    for (k[3] = 0; k[3] < count[3]; ++k[3])
      for (k[2] = 0; k[2] < count[2]; ++k[2])
        for (k[1] = 0; k[1] < count[1]; ++k[1])
          for (k[0] = 0; k[0] < count[0]; ++k[0], linear += m.element_bytes()) {
            std::int64_t from = 0;
            bool inside = true;
            for (int d = 0; d < m.rank; ++d) {
              const std::int64_t c =
                  std::int64_t{at[d]} + std::int64_t{k[d]} * (d == 0 ? 1 : m.element_strides[d]);
              inside &= c >= 0 && c < std::int64_t(m.dims[d]);
              from += c * std::int64_t(d == 0 ? m.element_bytes() : m.strides[d - 1]);
            }
            // CUDA C++ Programming Guide, "TMA Swizzle": chunks of a 128-byte line are permuted by the line's
            // number.
            const std::uint64_t line = linear / 128, chunk = linear / 16 % 8;
            const std::uint64_t permuted = m.swizzle == Swizzle::k128B  ? chunk ^ line % 8
                                           : m.swizzle == Swizzle::k64B ? chunk ^ line % 4
                                           : m.swizzle == Swizzle::k32B ? chunk ^ line % 2
                                                                        : chunk;
            f(line * 128 + permuted * 16 + linear % 16, inside ? from : -1);
          }
}

bool is_nan_of(TensorElement type, const std::byte* p) {
  if (type == TensorElement::kF64) {
    double v;
    std::memcpy(&v, p, 8);
    return std::isnan(v);
  }
  if (type == TensorElement::kF32) {
    float v;
    std::memcpy(&v, p, 4);
    return std::isnan(v);
  }
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return type == TensorElement::kF16 ? (v & 0x7fff) > 0x7c00 : (v & 0x7fff) > 0x7f80;
}

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

void expect_store(const TensorMap& m, const At& at) {
  SCOPED_TRACE(fmt::format("rank {} swizzle {} at {}", m.rank, int(m.swizzle), fmt::join(at, ",")));
  const Bytes tensor = random_bytes(bytes_of(m), 5), source = random_bytes(m.box_bytes(), 6);
  const Ran ran = run_copy(store(m, store_form(m.rank)), m, tensor, source, at, {.writes_memory = false});
  ASSERT_EQ(ran.text(), "");
  Bytes expected = tensor;
  for_box(m, at, [&](std::uint64_t from, std::int64_t to) {
    if (to >= 0) std::memcpy(expected.data() + to, source.data() + from, m.element_bytes());
  });
  EXPECT_EQ(ran.tensor, expected);
}

TEST(TensorCopy, StoresWriteWhatIsInside) {
  expect_store(tensor_of(TensorElement::kF32, {100}, {64}), {70});
  for (const At& at : {At{0, 0}, At{88, 35}, At{-4, -2}, At{0, 90}})
    expect_store(tensor_of(TensorElement::kF16, {100, 40}, {32, 8}), at);
  TensorMap swizzled = tensor_of(TensorElement::kF16, {100, 40}, {64, 16});
  swizzled.swizzle = Swizzle::k128B;
  for (const At& at : {At{0, 0}, At{64, 30}}) expect_store(swizzled, at);
  TensorMap far = tensor_of(TensorElement::kU8, {48, 10, 6}, {32, 4, 5});
  far.element_strides[2] = 2;
  expect_store(far, {16, 7, 1});
  expect_store(tensor_of(TensorElement::kU64, {9, 5, 4, 3, 2}, {4, 3, 2, 2, 2}), {6, 1, 1, 2, 0});
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template <class T>
Bytes bytes_of_values(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T, class F>
void expect_reduction(TensorElement type, const std::string& operation, F f) {
  SCOPED_TRACE(operation);
  const TensorMap m = tensor_of(type, {20, 6}, {8, 4});
  std::mt19937_64 rng(2);
  std::vector<T> tensor(bytes_of(m) / sizeof(T)), source(32);
  for (T& v : tensor) v = static_cast<T>(rng() % 1000);
  for (T& v : source) v = static_cast<T>(rng() % 1000);
  const At at{16, -1};
  std::vector<T> expected = tensor;
  constexpr std::uint32_t kBlocks = 3;  // all the same
  for_box(m, at, [&](std::uint64_t from, std::int64_t to) {
    for (std::uint32_t b = 0; b < kBlocks && to >= 0; ++b)
      expected[std::size_t(to) / sizeof(T)] =
          f(expected[std::size_t(to) / sizeof(T)], source[from / sizeof(T)]);
  });
  const Ran ran = run_copy(
      store(m,
            fmt::format("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group", operation)),
      m, bytes_of_values(tensor), bytes_of_values(source), at, {.blocks = kBlocks, .writes_memory = false});
  ASSERT_EQ(ran.text(), "");
  EXPECT_EQ(values_of<T>(ran.tensor), expected);
}

TEST(TensorCopy, ReductionsAreThoseOfTheMapsType) {
  expect_reduction<float>(TensorElement::kF32, "add", [](float a, float b) { return a + b; });
  expect_reduction<std::uint32_t>(TensorElement::kU32, "add", [](auto a, auto b) { return a + b; });
  expect_reduction<std::uint64_t>(TensorElement::kU64, "add", [](auto a, auto b) { return a + b; });
  expect_reduction<std::int32_t>(TensorElement::kS32, "min", [](auto a, auto b) { return std::min(a, b); });
  expect_reduction<std::uint32_t>(TensorElement::kU32, "max", [](auto a, auto b) { return std::max(a, b); });
  expect_reduction<std::uint32_t>(TensorElement::kU32, "inc",
                                  [](auto a, auto b) { return a >= b ? 0 : a + 1; });
  expect_reduction<std::uint32_t>(TensorElement::kU32, "dec",
                                  [](auto a, auto b) { return a == 0 || a > b ? b : a - 1; });
  expect_reduction<std::uint32_t>(TensorElement::kU32, "and", [](auto a, auto b) { return a & b; });
  expect_reduction<std::uint64_t>(TensorElement::kU64, "or", [](auto a, auto b) { return a | b; });
  expect_reduction<std::int32_t>(TensorElement::kS32, "xor", [](auto a, auto b) { return a ^ b; });
  const TensorMap bytes = tensor_of(TensorElement::kU8, {32, 6}, {16, 4});
  EXPECT_THROW(run_copy(store(bytes, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"),
                        bytes, Bytes(bytes_of(bytes)), Bytes(64), {}, {.writes_memory = false}),
               Error);
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

TEST(TensorCopy, WhatIsDoneWrongIsFound) {
  const TensorMap m = tensor_of(TensorElement::kF16, {100, 40}, {64, 8});
  const Bytes tensor(bytes_of(m)), box(m.box_bytes());
  const auto expect = [&](const std::string& body, const std::string& found, const TensorMap& map,
                          const CopySetup& setup = {}) {
    const Ran ran = run_copy(body, map, tensor, box, {}, setup);
    EXPECT_NE(ran.text().find(found), std::string::npos) << "found: " << ran.text() << "\nin:\n" << body;
    EXPECT_FALSE(ran.result.findings.empty());
  };
  const std::string good = load(m, load_form(2));
  expect(without(good, kWait, "WAIT:\n"), "shared-race", m);
  expect(without(without(good, kWait, "WAIT:\n"), kDump), "block-lifetime", m);
  expect(without(good, "[%r4], [%d1", "[%r4+64], [%d1"), "misaligned", m);
  expect(without(good, "[%r4], [%d1", "[%r4+40448], [%d1"), "out-of-bounds", m);
  expect(without(good, "[%d1,", "[%d1+16,"), "misaligned", m);
  expect(without(good, "[%d1,", "[%d1+64,"), "past the 156 bytes", m);
  expect("mov.u64 %d1, %d2;\n" + good, "as a tensor map, which they are not", m, {.writes_memory = false});
  expect(without(without(good, "tensor.2d", "tensor.3d"), "{%r10, %r11}", "{%r10, %r11, %r12}"),
         "a box of 3 dimensions by a tensor map of 2", m);
  expect(without(good, "_, [%r3], 1024", "_, [%r3], 2048"), "barrier-mismatch", m);
  TensorMap larger = m;
  larger.dims[1] = 400;
  const Ran past = run_copy(good, larger, tensor, box, {0, 36});
  EXPECT_NE(past.text().find("out-of-bounds"), std::string::npos) << past.text();
  const std::string out = store(m, store_form(2));
  const CopySetup reads{.writes_memory = false};
  expect(without(out, "fence.proxy.async.shared::cta;"), "fence.proxy.async", m, reads);
  expect(without(out, "cp.async.bulk.wait_group 0;"), "block-lifetime", m, reads);
  expect(without(out, "st.shared.u32 [%r22], %r23;"), "never written", m, reads);
  // Two blocks write the same.
  CopySetup two = reads;
  two.blocks = 2;
  expect(out, "global-race", m, two);
}

TEST(TensorCopy, WhatIsNotSimulatedIsRefusedByName) {
  const auto refusal = [](const std::string& line) {
    try {
      ptx::parse(kernel(line), "tensor.ptx");
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  for (const char* mode : {"im2col", "im2col::w", "im2col::w::128", "tile::gather4"})
    EXPECT_EQ(refusal(fmt::format(
                  "cp.async.bulk.tensor.4d.shared::cluster.global.{}.mbarrier::complete_tx::bytes [%r4], "
                  "[%d1, {{%r10, %r11, %r12, %r13}}], [%r3], {{%h1, %h2}};",
                  mode)),
              fmt::format("tensor copies '.{0}' are not simulated: "
                          "'cp.async.bulk.tensor.4d.shared::cluster.global.{0}.mbarrier::complete_tx::bytes'",
                          mode));
  EXPECT_EQ(
      refusal("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%d1, {%r10}], "
              "[%r3];"),
      "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes takes 2 coordinates, 1 given");
}

/// Every form with a modifier more, or one less: another form, or refused.
TEST(TensorCopy, FormsTakeNoOtherModifier) {
  int tried = 0;
  for (const std::string_view pattern : ptx::bulk_patterns()) {
    for (const std::string& form : expand_spelling(pattern)) {
      EXPECT_TRUE(ptx::is_bulk_form(form));
      for (const char* modifier : {"ftz", "sat", "v2", "L1::evict_last", "magic"}) {
        ++tried;
        try {
          ptx::parse(kernel(form + "." + modifier + " [%r4], [%d1, {%r10}], [%r3];"), "t.ptx");
          ADD_FAILURE() << form << "." << modifier;
        } catch (const Error& e) {
          EXPECT_EQ(e.message(),
                    fmt::format("instruction '{0}.{1}' is not supported: no form of 'cp' has '.{1}'", form,
                                modifier));
        }
      }
      std::size_t dot = form.find('.');
      while (dot != std::string::npos) {
        const std::size_t next = form.find('.', dot + 1);
        const std::string less = form.substr(0, dot) + (next == std::string::npos ? "" : form.substr(next));
        if (!ptx::is_bulk_form(less)) {
          EXPECT_THROW(ptx::parse(kernel(less + " [%r4], [%d1, {%r10}], [%r3];"), "t.ptx"), Error) << less;
        }
        dot = next;
      }
    }
  }
  EXPECT_GT(tried, 300);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
