// rng-bit-generator: the bits XLA gives (xla/hlo/builder/lib/prng.cc and RngBitGeneratorExpander), so those
// of JAX.
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

using Words = std::vector<std::uint32_t>;

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

/// ThreeFry-2x32 with 20 rounds (Salmon et al., SC 2011).
std::array<std::uint32_t, 2> three_fry(std::uint64_t key, std::uint64_t counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t keys[3] = {low(key), high(key), low(key) ^ high(key) ^ 0x1bd11bdau};
  std::uint32_t a = low(counter) + keys[0], b = high(counter) + keys[1];
  for (std::uint32_t group = 1; group <= 5; ++group) {
    for (const int rotation : kRotations[(group - 1) % 2]) {
      a += b;
      b = (b << rotation) | (b >> (32 - rotation));
      b ^= a;
    }
    a += keys[group % 3];
    b += keys[(group + 1) % 3] + group;
  }
  return {a, b};
}

/// Philox-4x32 with 10 rounds (ibid.).
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                    std::uint64_t counter_high) {
  std::array<std::uint32_t, 4> x{low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  std::uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xd2511f53u} * x[0], p1 = std::uint64_t{0xcd9e8d57u} * x[2];
    x = {high(p1) ^ x[1] ^ k0, low(p1), high(p0) ^ x[3] ^ k1, low(p0)};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return x;
}

/// What a generator makes: 32-bit words, two an element of a 64-bit type, low word first, and its state
/// afterwards.
struct Draw {
  Words words;
  std::vector<std::uint64_t> state;
};

/// A 64-bit element is one draw. For narrower types the first even dimension (else the largest) is halved:
/// the two words of a draw are neighbours in it. Draws are counted over the halved array, row-major.
Draw draw_three_fry(const std::vector<std::uint64_t>& state, const Shape& shape, bool wide) {
  const std::uint64_t key = state.at(0);
  std::uint64_t counter = state.at(1);
  Draw draw;
  const std::int64_t count = shape.elements_count();
  if (wide) {
    for (std::int64_t i = 0; i < count; ++i)
      for (const std::uint32_t word : three_fry(key, counter + static_cast<std::uint64_t>(i)))
        draw.words.push_back(word);
    draw.state = {key, counter + static_cast<std::uint64_t>(count)};
    return draw;
  }
  std::int64_t split = 1, inner = 1, outer = 1;
  if (!shape.dims.empty()) {
    std::size_t dim = shape.dims.size();
    for (std::size_t d = shape.dims.size(); d-- > 0;)
      if (shape.dims[d] % 2 == 0) dim = d;
    if (dim == shape.dims.size()) {
      dim = 0;
      for (std::size_t d = 1; d < shape.dims.size(); ++d)
        if (shape.dims[d] > shape.dims[dim]) dim = d;
    }
    split = shape.dims[dim];
    for (std::size_t d = 0; d < dim; ++d) outer *= shape.dims[d];
    for (std::size_t d = dim + 1; d < shape.dims.size(); ++d) inner *= shape.dims[d];
  }
  const std::int64_t half = (split + 1) / 2;
  draw.words.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < outer * half * inner; ++i) {
    const auto words = three_fry(key, counter + static_cast<std::uint64_t>(i));
    const std::int64_t row = i / (half * inner), at = i / inner % half, column = i % inner;
    for (std::int64_t which = 0; which < 2; ++which)
      if (2 * at + which < split)
        draw.words[static_cast<std::size_t>((row * split + 2 * at + which) * inner + column)] =
            words[static_cast<std::size_t>(which)];
  }
  draw.state = {key, counter + static_cast<std::uint64_t>(outer * half * inner)};
  return draw;
}

/// Four words a draw, in order. The counter has 128 bits; a state of two words is key and
/// lower half, and its upper half is the key too.
Draw draw_philox(const std::vector<std::uint64_t>& state, std::int64_t words) {
  const std::uint64_t key = state.at(0), start = state.at(1), upper = state.size() > 2 ? state[2] : key;
  const auto draws = static_cast<std::uint64_t>((words + 3) / 4);
  Draw draw;
  for (std::uint64_t i = 0; i < draws; ++i)
    for (const std::uint32_t word : philox(key, start + i, upper + (start + i < start ? 1 : 0)))
      draw.words.push_back(word);
  draw.state = {key, start + draws};
  if (state.size() > 2) draw.state.push_back(upper + (start + draws < start ? 1 : 0));
  return draw;
}

std::vector<std::uint64_t> state_of(const Literal& literal) {
  std::vector<std::uint64_t> state(literal.bytes.size() / 8);
  std::memcpy(state.data(), literal.bytes.data(), state.size() * 8);
  return state;
}

}  // namespace

Literal evaluate_random_bits(const Node& node, Values operands) {
  const bool fits = node.shape.is_tuple && node.shape.elements.size() == 2 &&
                    node.shape.elements[0].compatible(operands[0]->shape) &&
                    operands[0]->shape.dtype == DType::kU64 && operands[0]->shape.rank() == 1 &&
                    is_integral(node.shape.elements[1].dtype) && is_executable(node.shape.elements[1].dtype);
  const std::vector<std::uint64_t> state = fits ? state_of(*operands[0]) : std::vector<std::uint64_t>{};
  const std::string_view algorithm = other_attribute(node, "algorithm");
  const bool counter_of_128 = algorithm != "rng_three_fry";
  if (state.size() != 2 && !(counter_of_128 && state.size() == 3))
    throw Error(fmt::format("rng-bit-generator {} of {} cannot give {}", algorithm,
                            to_text(operands[0]->shape), to_text(node.shape)),
                "the state is u64[2], of Philox also u64[3]; the result a tuple of state and integers");
  const Shape& shape = node.shape.elements[1];
  const bool wide = bit_width(shape.dtype) == 64;
  // rng_default is Philox on CPU and GPU.
  const Draw draw = counter_of_128 ? draw_philox(state, shape.elements_count() * (wide ? 2 : 1))
                                   : draw_three_fry(state, shape, wide);
  Literal result;
  result.shape = node.shape;
  Literal& next = result.elements.emplace_back(Literal::zeros(node.shape.elements[0]));
  std::memcpy(next.bytes.data(), draw.state.data(), next.bytes.size());
  Literal& bits = result.elements.emplace_back(Literal::zeros(shape));
  const auto width = static_cast<std::size_t>(byte_size(shape.dtype));
  // Narrow types keep the low bits of a word.
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements_count()); ++i)
    std::memcpy(bits.bytes.data() + i * width, draw.words.data() + (wide ? 2 * i : i), width);
  return result;
}

}  // namespace stitchwork
