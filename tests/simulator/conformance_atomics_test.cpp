// Every form of atom and red, in global and in shared memory, on pairs of edge values: what is returned, and
// what is left in memory.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "simulator/machine/atomics.h"
#include "tests/simulator/conformance_reference.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using reference::u32;
using reference::u64;

/// Memory after `operation` of x (for cas: compare, and y to store), in arithmetic of its own.
u64 after(const std::string& operation, const std::string& type, bool global, u64 old, u64 x, u64 y) {
  const u64 sources[3] = {old, x, 0};
  if ((operation == "min" || operation == "max") && type.find("f16") != std::string::npos)
    return reference::evaluate(reference::Form(operation + "." + type), sources)->bits;
  const __int128 a = reference::integer_of(type, old), b = reference::integer_of(type, x);
  if (operation == "exch") return x;
  if (operation == "cas") return old == x ? y : old;
  if (operation == "and") return old & x;
  if (operation == "or") return old | x;
  if (operation == "xor") return old ^ x;
  if (operation == "min") return static_cast<u64>(std::min(a, b));
  if (operation == "max") return static_cast<u64>(std::max(a, b));
  if (operation == "inc") return old >= x ? 0 : old + 1;
  if (operation == "dec") return old == 0 || old > x ? x : old - 1;
  if (reference::is_integer(type)) return static_cast<u64>(a + b);
  // PTX ISA, atom: .f32 flushes subnormal numbers in global memory and keeps them in shared memory; the other
  // types keep them.
  const char* opcode = type == "f32"   ? (global ? "add.rn.ftz.f32" : "add.rn.f32")
                       : type == "f64" ? "add.rn.f64"
                                       : nullptr;
  return reference::evaluate(reference::Form(opcode != nullptr ? opcode : "add.rn." + type), sources)->bits;
}

std::vector<u64> edges_of(const std::string& type) {
  if (type == "f32")
    return {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff,
            0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 0x33800000, 0x4b800000};
  if (type == "f64")
    return {0,
            0x8000000000000000,
            1,
            0x000fffffffffffff,
            0x0010000000000000,
            0x7fefffffffffffff,
            0x7ff0000000000000,
            0xfff0000000000000,
            0x7ff8000000000000,
            0x3ff0000000000000,
            0xbff0000000000000,
            0x3ca0000000000000};
  if (type.find("f16") != std::string::npos) {
    std::vector<u64> v = {0,      0x8000, 1,      0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00,
                          0xfc00, 0x7e00, 0x3c00, 0xbc00, 0x3f80, 0x7f7f, 0x7f80, 0x007f};
    if (type.ends_with("x2"))
      for (std::size_t k = 0; k < v.size(); ++k) v[k] |= (v[(k * 7 + 3) % v.size()] & 0xffff) << 16;
    return v;
  }
  std::vector<u64> v = {0,          1,          2,          0x7f,       0x80,       0xffff,
                        0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x12345678};
  if (reference::width_of(type) == 64)
    for (u64 wide : {u64{0x100000000}, u64{0x7fffffffffffffff}, u64{0x8000000000000000}, ~u64{0}})
      v.push_back(wide);
  for (u64& x : v) x &= reference::mask_of(reference::width_of(type));
  return v;
}

/// One thread a pair (old, x): loads both, applies the instruction to memory of its own, and stores what it
/// returned and what is left.
std::string kernel_of(const std::string& opcode, const std::string& operation, const std::string& type,
                      bool global, bool returns) {
  const int bytes = reference::width_of(type) / 8;
  const std::string reg = bytes == 2 ? "%h" : bytes == 4 ? "%r" : "%d";
  const std::string bits = fmt::format("b{}", bytes * 8);
  const std::string cell = global ? "[%d26]" : "[%r26]", space = global ? "global" : "shared";
  std::string text = R"(
ld.param.u64 %d20, [in]; ld.param.u64 %d21, [out];
mov.u32 %r20, %tid.x; mov.u32 %r21, %ctaid.x; mov.u32 %r22, %ntid.x; mad.lo.u32 %r23, %r21, %r22, %r20;
mul.wide.u32 %d22, %r23, 24; add.u64 %d23, %d20, %d22;
mul.wide.u32 %d24, %r23, 16; add.u64 %d25, %d21, %d24; add.u64 %d26, %d25, 8;
shl.b32 %r26, %r20, 3;
)";
  if (!global)
    text = ".shared .align 8 .b8 cells[2048];\n" + text + "mov.u32 %r27, cells; add.u32 %r26, %r26, %r27;\n";
  text += fmt::format(
      "ld.global.{0} {1}1, [%d23]; ld.global.{0} {1}2, [%d23+8]; ld.global.{0} {1}3, [%d23+16];\n", bits,
      reg);
  text += fmt::format("mov.{0} {1}4, {1}2; st.{2}.{0} {3}, {1}1;\n", bits, reg, space, cell);
  const auto operand = [&](int number) {
    return opcode.find(".v2.") == std::string::npos
               ? fmt::format("{}{}", reg, number)
               : fmt::format("{{{0}{1}, {0}{2}}}", reg, number, number + 2);
  };
  text += fmt::format("{} {}{}, {}{};\n", opcode, returns ? operand(4) + ", " : "", cell, operand(2),
                      operation == "cas" ? ", " + reg + "3" : "");
  if (returns) text += fmt::format("st.global.{} [%d25], {}4;\n", bits, reg);
  if (!global)
    text += fmt::format("ld.shared.{0} {1}5, {2}; st.global.{0} [%d25+8], {1}5;\n", bits, reg, cell);
  return wrap_ptx(text + "ret;");
}

void check(const std::string& operation, const std::string& type, bool global, bool returns) {
  const bool halves = type.find("f16") != std::string::npos, vector = halves && operation != "add";
  if (vector && !global) return;  // PTX ISA: the least and the greatest half are of vectors in global memory
  const std::string opcode =
      fmt::format("{}.{}.{}{}{}.{}", returns ? "atom" : "red", global ? "global" : "shared", operation,
                  halves ? ".noftz" : "", vector ? ".v2" : "", type);
  SCOPED_TRACE(opcode);
  const std::vector<u64> edges = edges_of(type);
  std::vector<u64> in;
  for (u64 old : edges)
    for (u64 x : edges) {
      in.insert(in.end(), {old, x, edges[(old + x) % edges.size()]});
      if (operation == "cas" && old != x) in.insert(in.end(), {x, x, old});  // the comparison holds
    }
  const std::size_t pairs = in.size() / 3, blocks = (pairs + 255) / 256;
  in.resize(blocks * 256 * 3);
  const ptx::Module module = ptx::parse(kernel_of(opcode, operation, type, global, returns), "atomic.ptx");
  DeviceMemory memory;
  const DeviceAddress source = upload(memory, in, "in"),
                      target = upload(memory, std::vector<u64>(blocks * 512), "out");
  Launch launch{.kernel = "k", .grid = {static_cast<u32>(blocks), 1, 1}, .block = {256, 1, 1}};
  launch.arguments = {Argument::pointer(source), Argument::pointer(target)};
  const LaunchResult r = run(module, launch, memory, device("v100"), {});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  const auto out = download<u64>(memory, target, blocks * 512);
  for (std::size_t k = 0; k < pairs; ++k) {
    const u64 old = in[3 * k], x = in[3 * k + 1], y = in[3 * k + 2];
    if (returns) {
      ASSERT_EQ(out[2 * k], old);
    }
    const reference::Expected expected{.bits = after(operation, type, global, old, x, y), .value = {}};
    ASSERT_TRUE(reference::matches(type, expected, out[2 * k + 1])) << fmt::format(
        "{:#x} with {:#x}, {:#x} gives {:#x}, not {:#x}", old, x, y, out[2 * k + 1], expected.bits);
  }
}

TEST(Conformance, EveryAtomicGivesWhatItsReferenceDoesInBothSpaces) {
  int forms = 0;
  for (const char* operation : {"add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec"}) {
    for (const char* type :
         {"u32", "s32", "u64", "s64", "b16", "b32", "b64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"}) {
      if (!find_atomic(operation, type)) continue;
      ++forms;
      for (bool global : {false, true}) {
        check(operation, type, global, true);
        if (operation != std::string_view("exch") && operation != std::string_view("cas"))
          check(operation, type, global, false);
      }
    }
  }
  EXPECT_EQ(forms, 39);
}

/// As ptxas 13.0 takes them.
TEST(Conformance, VectorsOfAtomicsAreOfTheTypesThatTheIsaHas) {
  const auto is_taken = [](const std::string& form, int elements, char letter) {
    std::string operand = elements > 1 ? "{" : "";
    for (int k = 0; k < elements; ++k) operand += fmt::format("{}%{}{}", k == 0 ? "" : ", ", letter, k + 1);
    if (elements > 1) operand += "}";
    try {
      ptx::parse(wrap_ptx(fmt::format("ld.param.u64 %d20, [out];\nred.global.{} [%d20], {};", form, operand)),
                 "t.ptx");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (const char* good : {"add.noftz.v2.f16", "min.noftz.v2.bf16", "max.noftz.v2.f16"})
    EXPECT_TRUE(is_taken(good, 2, 'h')) << good;
  EXPECT_TRUE(is_taken("max.noftz.v8.bf16", 8, 'h'));
  EXPECT_TRUE(is_taken("min.noftz.v4.f16x2", 4, 'r'));
  EXPECT_TRUE(is_taken("add.v4.f32", 4, 'f'));
  EXPECT_FALSE(is_taken("min.noftz.f16", 1, 'h'));
  EXPECT_FALSE(is_taken("min.noftz.f16x2", 1, 'r'));
  EXPECT_FALSE(is_taken("min.v2.f16", 2, 'h'));
  EXPECT_FALSE(is_taken("add.f16", 1, 'h'));
  EXPECT_FALSE(is_taken("add.noftz.v8.f16x2", 8, 'r'));
  EXPECT_FALSE(is_taken("add.v8.f32", 8, 'f'));
  EXPECT_FALSE(is_taken("min.v2.f32", 2, 'f'));
  EXPECT_FALSE(is_taken("add.v2.u32", 2, 'r'));
  EXPECT_FALSE(is_taken("min.v2.s32", 2, 'r'));
  EXPECT_FALSE(is_taken("exch.v2.b32", 2, 'r'));
  EXPECT_FALSE(is_taken("and.v2.b32", 2, 'r'));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
