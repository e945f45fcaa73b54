#include "simulator/machine/atomics.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "core/graph/literal.h"

namespace stitchwork::sim {
namespace {

constexpr AtomicForm kForms[] = {
    {"add.u32", AtomicOp::kAdd32, 4},    {"add.s32", AtomicOp::kAdd32, 4},
    {"add.u64", AtomicOp::kAdd64, 8},    {"add.s64", AtomicOp::kAdd64, 8},
    {"add.f32", AtomicOp::kAddF32, 4},   {"add.f64", AtomicOp::kAddF64, 8},
    {"add.f16", AtomicOp::kAddF16, 2},   {"add.f16x2", AtomicOp::kAddF16x2, 4},
    {"add.bf16", AtomicOp::kAddBF16, 2}, {"add.bf16x2", AtomicOp::kAddBF16x2, 4},
    {"min.f16", AtomicOp::kMinF16, 2},   {"min.f16x2", AtomicOp::kMinF16x2, 4},
    {"min.bf16", AtomicOp::kMinBF16, 2}, {"min.bf16x2", AtomicOp::kMinBF16x2, 4},
    {"max.f16", AtomicOp::kMaxF16, 2},   {"max.f16x2", AtomicOp::kMaxF16x2, 4},
    {"max.bf16", AtomicOp::kMaxBF16, 2}, {"max.bf16x2", AtomicOp::kMaxBF16x2, 4},
    {"exch.b32", AtomicOp::kExch32, 4},  {"exch.b64", AtomicOp::kExch64, 8},
    {"cas.b16", AtomicOp::kCas16, 2},    {"cas.b32", AtomicOp::kCas32, 4},
    {"cas.b64", AtomicOp::kCas64, 8},    {"min.u32", AtomicOp::kMinU32, 4},
    {"min.s32", AtomicOp::kMinS32, 4},   {"min.u64", AtomicOp::kMinU64, 8},
    {"min.s64", AtomicOp::kMinS64, 8},   {"max.u32", AtomicOp::kMaxU32, 4},
    {"max.s32", AtomicOp::kMaxS32, 4},   {"max.u64", AtomicOp::kMaxU64, 8},
    {"max.s64", AtomicOp::kMaxS64, 8},   {"and.b32", AtomicOp::kAnd32, 4},
    {"and.b64", AtomicOp::kAnd64, 8},    {"or.b32", AtomicOp::kOr32, 4},
    {"or.b64", AtomicOp::kOr64, 8},      {"xor.b32", AtomicOp::kXor32, 4},
    {"xor.b64", AtomicOp::kXor64, 8},    {"inc.u32", AtomicOp::kInc32, 4},
    {"dec.u32", AtomicOp::kDec32, 4},
};

template <class T, class F>
std::uint64_t update(std::byte* p, bool& changed, F f) {
  T old;
  std::memcpy(&old, p, sizeof old);
  const T now = f(old);
  std::memcpy(p, &now, sizeof now);
  changed = std::memcmp(&old, &now, sizeof old) != 0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &old, sizeof old);
  return bits;
}

/// The NaN that 16-bit arithmetic gives (PTX ISA, add.f16).
constexpr std::uint16_t kHalfNan = 0x7fff;
std::uint16_t add_half(std::uint16_t a, std::uint16_t b) {
  const float sum = f16_to_f32(a) + f16_to_f32(b);
  return sum == sum ? f32_to_f16(sum) : kHalfNan;
}
std::uint16_t add_bf16(std::uint16_t a, std::uint16_t b) {
  const float sum = bf16_to_f32(a) + bf16_to_f32(b);
  return sum == sum ? f32_to_bf16(sum) : kHalfNan;
}
/// As min.f16 and max.f16 have it: the operand that is no NaN, and -0 below +0.
template <class F>
std::uint16_t extremum(std::uint16_t a, std::uint16_t b, bool most, F value) {
  const float x = value(a), y = value(b);
  if (x != x) return y != y ? kHalfNan : b;
  if (y != y) return a;
  if (x == y) return most == bool(a >> 15) ? b : a;  // zeros of two signs, or the same
  return (x < y) != most ? a : b;
}
template <bool kMost>
std::uint16_t half_extremum(std::uint16_t a, std::uint16_t b) {
  return extremum(a, b, kMost, f16_to_f32);
}
template <bool kMost>
std::uint16_t bf16_extremum(std::uint16_t a, std::uint16_t b) {
  return extremum(a, b, kMost, bf16_to_f32);
}
float flushed(float v) { return std::fabs(v) < FLT_MIN ? std::copysign(0.0f, v) : v; }

template <class F>
std::uint32_t both_halves(std::uint32_t a, std::uint32_t b, F f) {
  return f(std::uint16_t(a), std::uint16_t(b)) |
         std::uint32_t(f(std::uint16_t(a >> 16), std::uint16_t(b >> 16))) << 16;
}

/// Operations on halves, and on two at once.
constexpr struct {
  AtomicOp one, two;
  std::uint16_t (*value)(std::uint16_t, std::uint16_t);
} kOfHalves[] = {{AtomicOp::kAddF16, AtomicOp::kAddF16x2, add_half},
                 {AtomicOp::kAddBF16, AtomicOp::kAddBF16x2, add_bf16},
                 {AtomicOp::kMinF16, AtomicOp::kMinF16x2, half_extremum<false>},
                 {AtomicOp::kMinBF16, AtomicOp::kMinBF16x2, bf16_extremum<false>},
                 {AtomicOp::kMaxF16, AtomicOp::kMaxF16x2, half_extremum<true>},
                 {AtomicOp::kMaxBF16, AtomicOp::kMaxBF16x2, bf16_extremum<true>}};

}  // namespace

std::optional<AtomicForm> find_atomic(std::string_view operation, std::string_view type) {
  for (const AtomicForm& form : kForms) {
    const std::size_t dot = form.name.find('.');
    if (form.name.substr(0, dot) == operation && form.name.substr(dot + 1) == type) return form;
  }
  return std::nullopt;
}

std::uint64_t apply_atomic(AtomicOp op, std::byte* p, std::uint64_t x, std::uint64_t y, bool& changed) {
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  using i32 = std::int32_t;
  using i64 = std::int64_t;
  const u32 x32 = u32(x);
  switch (op) {
    case AtomicOp::kAdd32:
      return update<u32>(p, changed, [&](u32 v) { return v + x32; });
    case AtomicOp::kAdd64:
      return update<u64>(p, changed, [&](u64 v) { return v + x; });
    case AtomicOp::kAddF32:
      return update<float>(p, changed, [&](float v) { return v + std::bit_cast<float>(x32); });
    case AtomicOp::kAddF32Flush:
      return update<float>(p, changed,
                           [&](float v) { return flushed(flushed(v) + flushed(std::bit_cast<float>(x32))); });
    case AtomicOp::kAddF64:
      return update<double>(p, changed, [&](double v) { return v + std::bit_cast<double>(x); });
    case AtomicOp::kExch32:
      return update<u32>(p, changed, [&](u32) { return x32; });
    case AtomicOp::kExch64:
      return update<u64>(p, changed, [&](u64) { return x; });
    case AtomicOp::kCas16:
      return update<u16>(p, changed, [&](u16 v) { return v == u16(x) ? u16(y) : v; });
    case AtomicOp::kCas32:
      return update<u32>(p, changed, [&](u32 v) { return v == x32 ? u32(y) : v; });
    case AtomicOp::kCas64:
      return update<u64>(p, changed, [&](u64 v) { return v == x ? y : v; });
    case AtomicOp::kMinU32:
      return update<u32>(p, changed, [&](u32 v) { return v < x32 ? v : x32; });
    case AtomicOp::kMinS32:
      return update<i32>(p, changed, [&](i32 v) { return v < i32(x) ? v : i32(x); });
    case AtomicOp::kMinU64:
      return update<u64>(p, changed, [&](u64 v) { return v < x ? v : x; });
    case AtomicOp::kMinS64:
      return update<i64>(p, changed, [&](i64 v) { return v < i64(x) ? v : i64(x); });
    case AtomicOp::kMaxU32:
      return update<u32>(p, changed, [&](u32 v) { return v > x32 ? v : x32; });
    case AtomicOp::kMaxS32:
      return update<i32>(p, changed, [&](i32 v) { return v > i32(x) ? v : i32(x); });
    case AtomicOp::kMaxU64:
      return update<u64>(p, changed, [&](u64 v) { return v > x ? v : x; });
    case AtomicOp::kMaxS64:
      return update<i64>(p, changed, [&](i64 v) { return v > i64(x) ? v : i64(x); });
    case AtomicOp::kAnd32:
      return update<u32>(p, changed, [&](u32 v) { return v & x32; });
    case AtomicOp::kAnd64:
      return update<u64>(p, changed, [&](u64 v) { return v & x; });
    case AtomicOp::kOr32:
      return update<u32>(p, changed, [&](u32 v) { return v | x32; });
    case AtomicOp::kOr64:
      return update<u64>(p, changed, [&](u64 v) { return v | x; });
    case AtomicOp::kXor32:
      return update<u32>(p, changed, [&](u32 v) { return v ^ x32; });
    case AtomicOp::kXor64:
      return update<u64>(p, changed, [&](u64 v) { return v ^ x; });
    case AtomicOp::kInc32:
      return update<u32>(p, changed, [&](u32 v) { return v >= x32 ? 0 : v + 1; });
    case AtomicOp::kDec32:
      return update<u32>(p, changed, [&](u32 v) { return v == 0 || v > x32 ? x32 : v - 1; });
    default:
      break;
  }
  for (const auto& of : kOfHalves) {
    if (op == of.one) return update<u16>(p, changed, [&](u16 v) { return of.value(v, u16(x)); });
    if (op == of.two) return update<u32>(p, changed, [&](u32 v) { return both_halves(v, x32, of.value); });
  }
  __builtin_unreachable();
}

}  // namespace stitchwork::sim
