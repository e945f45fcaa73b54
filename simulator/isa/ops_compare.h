// setp: comparisons into predicates. set, and setp with .and/.or/.xor or two destinations, are built from
// these when a kernel is lowered.
#pragma once

#include "simulator/isa/ops_half_forms.h"

namespace stitchwork::sim {
namespace {

void add_compare_rows() {
#define SW_INT(CMP, EXPR)                                                      \
  add_compare<u32>("setp." CMP ".u32", SW_F2(EXPR));                           \
  add_compare<i32>("setp." CMP ".s32", SW_F2(EXPR));                           \
  add_compare<u64>("setp." CMP ".u64", SW_F2(EXPR));                           \
  add_compare<i64>("setp." CMP ".s64", SW_F2(EXPR));                           \
  add_compare_cold<u32>("setp." CMP ".u16", SW_F2(EXPR), Pipe::kInt32, "phh"); \
  add_compare_cold<u32>(                                                       \
      "setp." CMP ".s16", [](auto x, auto y) __attribute__((always_inline)) {  \
        auto a = (Words<i32>)x << 16, b = (Words<i32>)y << 16;                 \
        return EXPR;                                                           \
      },                                                                       \
      Pipe::kInt32, "phh")
  SW_INT("eq", a == b);
  SW_INT("ne", a != b);
  SW_INT("lt", a < b);
  SW_INT("le", a <= b);
  SW_INT("gt", a > b);
  SW_INT("ge", a >= b);
#undef SW_INT
#define SW_UNSIGNED(CMP, EXPR)                       \
  add_compare<u32>("setp." CMP ".u32", SW_F2(EXPR)); \
  add_compare<u64>("setp." CMP ".u64", SW_F2(EXPR)); \
  add_compare_cold<u32>("setp." CMP ".u16", SW_F2(EXPR), Pipe::kInt32, "phh")
  SW_UNSIGNED("lo", a < b);
  SW_UNSIGNED("ls", a <= b);
  SW_UNSIGNED("hi", a > b);
  SW_UNSIGNED("hs", a >= b);
#undef SW_UNSIGNED
#define SW_BITS(CMP, EXPR)                           \
  add_compare<u32>("setp." CMP ".b32", SW_F2(EXPR)); \
  add_compare<u64>("setp." CMP ".b64", SW_F2(EXPR)); \
  add_compare_cold<u32>("setp." CMP ".b16", SW_F2(EXPR), Pipe::kInt32, "phh")
  SW_BITS("eq", a == b);
  SW_BITS("ne", a != b);
#undef SW_BITS
#define SW_FLOAT(CMP, EXPR)                                                       \
  add_compare<f32>("setp." CMP ".f32", SW_F2(EXPR), Pipe::kFp32);                 \
  add_compare_cold<f32>(                                                          \
      "setp." CMP ".ftz.f32", [](auto x, auto y) __attribute__((always_inline)) { \
        auto a = flush(x), b = flush(y);                                          \
        return EXPR;                                                              \
      },                                                                          \
      Pipe::kFp32);                                                               \
  add_compare_cold<f64>("setp." CMP ".f64", SW_F2(EXPR));                         \
  add_compare_cold<u32>(                                                          \
      "setp." CMP ".f16", [](auto x, auto y) __attribute__((always_inline)) {     \
        auto a = half_to_float(x), b = half_to_float(y);                          \
        return EXPR;                                                              \
      },                                                                          \
      Pipe::kHalf2, "pxx");                                                       \
  add_compare_cold<u32>(                                                          \
      "setp." CMP ".bf16", [](auto x, auto y) __attribute__((always_inline)) {    \
        auto a = bf16_to_float(x), b = bf16_to_float(y);                          \
        return EXPR;                                                              \
      },                                                                          \
      Pipe::kHalf2, "pxx")
  SW_FLOAT("eq", a == b);
  SW_FLOAT("ne", (a < b) | (a > b));
  SW_FLOAT("lt", a < b);
  SW_FLOAT("le", a <= b);
  SW_FLOAT("gt", a > b);
  SW_FLOAT("ge", a >= b);
  SW_FLOAT("equ", ~((a < b) | (a > b)));
  SW_FLOAT("neu", a != b);
  SW_FLOAT("ltu", ~(a >= b));
  SW_FLOAT("leu", ~(a > b));
  SW_FLOAT("gtu", ~(a <= b));
  SW_FLOAT("geu", ~(a < b));
  SW_FLOAT("num", (a == a) & (b == b));
  SW_FLOAT("nan", (a != a) | (b != b));
#undef SW_FLOAT
}

}  // namespace
}  // namespace stitchwork::sim
