// Building the instruction table: add<D, S...>("spelling", class, expression).
#pragma once

#include "simulator/isa/isa.h"
#include "simulator/machine/lanes.h"

namespace stitchwork::sim {
namespace {

constexpr int kMaxRows = 3000;
IsaRow g_rows[kMaxRows];
int g_row_count = 0;

void add_row(const char* spelling, const char* signature, Pipe pipe, Handler full, Handler masked) {
  if (g_row_count == kMaxRows) __builtin_trap();
  g_rows[g_row_count++] = {spelling, signature, full, masked, pipe};
}

template <class T>
constexpr char letter() {
  if (__is_same(T, f32)) return 'f';
  if (__is_same(T, f64)) return 'e';
  return sizeof(T) == 8 ? 'd' : 'r';
}
template <class... T>
struct Signature {
  static constexpr char text[] = {letter<T>()..., 0};
};
template <class... T>
struct CompareSignature {
  static constexpr char text[] = {'p', letter<T>()..., 0};
};

/// Of a row whose lanes have these types, unless it says otherwise.
template <class... T>
constexpr Pipe pipe_of() {
  return (__is_same(T, f64) || ...) ? Pipe::kFp64 : Pipe::kInt32;
}

template <bool M, class F, class D, class... S>
const Inst* run_map(Strand& s, const Inst* i) {
  return map<M, D, S...>(s, i, F{});
}
template <bool M, class F, class S>
const Inst* run_compare(Strand& s, const Inst* i) {
  return compare<M, S>(s, i, F{});
}

/// A row whose destination lanes are D and sources S; `f` maps vectors of sources to a vector of D.
template <class D, class... S, class F>
void add(const char* spelling, F, Pipe pipe = pipe_of<D, S...>(), const char* signature = nullptr) {
  add_row(spelling, signature ? signature : Signature<D, S...>::text, pipe, &run_map<false, F, D, S...>,
          &run_map<true, F, D, S...>);
}
/// As add, for rarer instructions: one handler, always masked, to keep the code small.
template <class D, class... S, class F>
void add_cold(const char* spelling, F, Pipe pipe = pipe_of<D, S...>(), const char* signature = nullptr) {
  add_row(spelling, signature ? signature : Signature<D, S...>::text, pipe, &run_map<true, F, D, S...>,
          &run_map<true, F, D, S...>);
}
template <class S, class F>
void add_compare_cold(const char* spelling, F, Pipe pipe = pipe_of<S>(), const char* signature = nullptr) {
  add_row(spelling, signature ? signature : CompareSignature<S, S>::text, pipe, &run_compare<true, F, S>,
          &run_compare<true, F, S>);
}
template <class S, class F>
void add_compare(const char* spelling, F, Pipe pipe = pipe_of<S>(), const char* signature = nullptr) {
  add_row(spelling, signature ? signature : CompareSignature<S, S>::text, pipe, &run_compare<false, F, S>,
          &run_compare<true, F, S>);
}

#define SW_F1(...) \
  [](auto a) __attribute__((always_inline)) { return __VA_ARGS__; }
#define SW_F2(...) \
  [](auto a, auto b) __attribute__((always_inline)) { return __VA_ARGS__; }
#define SW_F3(...) \
  [](auto a, auto b, auto c) __attribute__((always_inline)) { return __VA_ARGS__; }

/// f applied lane by lane, for what has no vector form.
#define SW_LANES1(D, ...)                                                        \
  [](auto a) __attribute__((always_inline)) {                                    \
    constexpr int N = sizeof(a) / sizeof(a[0]);                                  \
    vec<D, N> r;                                                                 \
    for (int j = 0; j < N; ++j) r[j] = [](auto a) { return __VA_ARGS__; }(a[j]); \
    return r;                                                                    \
  }
#define SW_LANES2(D, ...)                                                                      \
  [](auto a, auto b) __attribute__((always_inline)) {                                          \
    constexpr int N = sizeof(a) / sizeof(a[0]);                                                \
    vec<D, N> r;                                                                               \
    for (int j = 0; j < N; ++j) r[j] = [](auto a, auto b) { return __VA_ARGS__; }(a[j], b[j]); \
    return r;                                                                                  \
  }
#define SW_LANES3(D, ...)                                                                                    \
  [](auto a, auto b, auto c) __attribute__((always_inline)) {                                                \
    constexpr int N = sizeof(a) / sizeof(a[0]);                                                              \
    vec<D, N> r;                                                                                             \
    for (int j = 0; j < N; ++j) r[j] = [](auto a, auto b, auto c) { return __VA_ARGS__; }(a[j], b[j], c[j]); \
    return r;                                                                                                \
  }

/// f(group, members): lanes that run and name the same members.
template <class F>
SW_INLINE void for_groups(const Strand& s, int w, u32 operand, F f) {
  for (u32 rest = s.mask[w]; rest != 0;) {
    const std::byte* named = s.regs + operand + w * 128;
    const u32 members = load<u32>(named + __builtin_ctz(rest) * 4);
    u32 same = 0;
    for (int l = 0; l < 32; l += kWords)
      same |= movemask((Words<i32>)(load<Words<u32>>(named + l * 4) == members)) << l;
    f(rest & same, members);
    rest &= ~same;
  }
}

}  // namespace
}  // namespace stitchwork::sim
