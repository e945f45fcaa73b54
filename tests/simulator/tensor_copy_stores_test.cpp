// Tensor copies and reductions from shared memory.
#include "tests/simulator/tensor_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace tensor_copies;

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
  // Halves of whole numbers, as what they are.
  const auto of_halves = [](auto f) {
    return [f](std::uint16_t a, std::uint16_t b) {
      const auto value = [](std::uint16_t v) { return v < 1000 ? v * 0x1p-24 : NAN; };  // subnormal
      return f(value(a), value(b)) ? a : b;
    };
  };
  expect_reduction<std::uint16_t>(TensorElement::kF16, "min",
                                  of_halves([](double a, double b) { return a < b; }));
  expect_reduction<std::uint16_t>(TensorElement::kF16, "max",
                                  of_halves([](double a, double b) { return a > b; }));
  const TensorMap bytes = tensor_of(TensorElement::kU8, {32, 6}, {16, 4});
  EXPECT_THROW(run_copy(store(bytes, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"),
                        bytes, Bytes(bytes_of(bytes)), Bytes(64), {}, {.writes_memory = false}),
               Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
