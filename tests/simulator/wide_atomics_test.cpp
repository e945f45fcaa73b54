// atom.exch.b128 and atom.cas.b128, in every space.
#include <fmt/format.h>

#include "core/base/error.h"
#include "tests/simulator/clusters.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using u64 = std::uint64_t;

struct Number {
  u64 low = 0, high = 0;
  bool operator==(const Number&) const = default;
};

/// A kernel k(in, out) of sm_90; %d1 holds in, %d2 out, %r1 the number of the thread in the launch, %r2 that
/// in its block.
std::string wide_kernel(const std::string& body) {
  return ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<20>;\n.reg .b64 %d<32>;\n.reg .b128 %q<8>;\n"
         ".shared .align 16 .b8 cells[1024];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;\n"
         "mov.u32 %r4, %ntid.x; mad.lo.u32 %r1, %r3, %r4, %r2;\n" +
         body + "\nret;\n}\n";
}

/// `out` of a launch: `count` numbers, which are zero before.
std::vector<Number> run_wide(const std::string& body, const std::vector<Number>& in, std::size_t count,
                             std::uint32_t blocks, std::uint32_t threads) {
  const ptx::Module module = ptx::parse(wide_kernel(body), "wide.ptx");
  std::vector<Number> out;
  for (const Sanitizers& what : {Sanitizers{}, clusters::kBoth}) {
    DeviceMemory memory(true);
    const DeviceAddress from = upload(memory, in, "in"),
                        to = upload(memory, std::vector<Number>(count), "out");
    Launch launch{.kernel = "k", .grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
    launch.arguments = {Argument::pointer(from), Argument::pointer(to)};
    Options options;
    options.sanitize = what;
    const LaunchResult r = run(module, launch, memory, device("h100"), options);
    EXPECT_TRUE(r.findings.empty()) << r.findings[0].message;
    const std::vector<Number> now = download<Number>(memory, to, count);
    if (what.any()) {
      EXPECT_EQ(now, out);
    }
    out = now;
  }
  return out;
}

/// The cell of a thread (%d10 or %r10), in `space`; its number goes from %q1 there, and back to %q5.
struct Cell {
  const char *space, *place, *store, *load;
};
const Cell kCells[] = {
    {".global", "[%d10]", "st.global.b128 [%d10], %q1;", "ld.global.b128 %q5, [%d10];"},
    {"", "[%d10]", "st.b128 [%d10], %q1;", "ld.b128 %q5, [%d10];"},
    {".shared", "[%r10]", "st.shared.b128 [%r10], %q1;", "ld.shared.b128 %q5, [%r10];"},
    {".shared::cta", "[%r10]", "st.shared.b128 [%r10], %q1;", "ld.shared.b128 %q5, [%r10];"},
    {".shared::cluster", "[%r10]", "st.shared.b128 [%r10], %q1;", "ld.shared.b128 %q5, [%r10];"},
    {"", "[%d11]", "st.shared.b128 [%r10], %q1;", "ld.shared.b128 %q5, [%r10];"},
};

TEST(WideAtomics, ExchangeAndCompareAllBits) {
  const u64 edges[] = {0, 1, ~u64{0}, u64{1} << 63, 0x0123456789abcdef};
  std::vector<Number> in;  // old, operand, second operand
  for (const u64 a : edges)
    for (const u64 b : edges) {
      in.insert(in.end(), {{a, b}, {a, b}, {b + 7, a}});               // as it is
      in.insert(in.end(), {{a, b}, {a, b ^ 1}, {b, a}});               // the upper half differs
      in.insert(in.end(), {{a, b}, {a ^ (u64{1} << 40), b}, {b, a}});  // the lower one
    }
  const std::size_t cases = in.size() / 3;
  in.resize(96 * 3);
  for (const Cell& cell : kCells)
    for (const char* operation : {"exch", "cas"})
      for (const char* order : {"", ".relaxed.gpu", ".acq_rel.gpu", ".acquire.cta", ".release.sys"}) {
        const bool compares = operation == std::string_view("cas");
        const std::string opcode = fmt::format("atom{}{}.{}.b128", order, cell.space, operation);
        const auto out = run_wide(
            fmt::format(
                "mul.wide.u32 %d3, %r1, 48; add.u64 %d3, %d1, %d3; mul.wide.u32 %d4, %r1, 32; add.u64 %d4, "
                "%d2, %d4;\nmov.u32 %r10, cells; mad.lo.u32 %r10, %r2, 16, %r10; add.u64 %d10, %d4, 16;\n"
                "cvt.u64.u32 %d11, %r10; cvta.shared.u64 %d11, %d11;\n"
                "ld.global.b128 %q1, [%d3]; ld.global.b128 %q2, [%d3+16]; ld.global.b128 %q3, [%d3+32];\n"
                "{}\n{} %q4, {}, %q2{};\n{}\nst.global.b128 [%d4], %q4; st.global.b128 [%d4+16], %q5;",
                cell.store, opcode, cell.place, compares ? ", %q3" : "", cell.load),
            in, 96 * 2, 3, 32);
        for (std::size_t k = 0; k < cases; ++k) {
          const Number old = in[3 * k], x = in[3 * k + 1], y = in[3 * k + 2];
          ASSERT_EQ(out[2 * k], old) << opcode << ", case " << k;
          ASSERT_EQ(out[2 * k + 1], !compares ? x : old == x ? y : old) << opcode << ", case " << k;
        }
      }
}

/// All threads add 2^63 + 5 to one number by compare and swap, over its two halves.
TEST(WideAtomics, ALoopAddsUpWithoutLosingAny) {
  for (const char* first : {"ld.global.b128 %q1, [%d2];", "ld.relaxed.gpu.global.b128 %q1, [%d2];"}) {
    const auto out = run_wide(std::string(first) + R"(
AGAIN:
mov.b128 {%d5, %d6}, %q1;
add.cc.u64 %d7, %d5, 0x8000000000000005; addc.u64 %d8, %d6, 0;
mov.b128 %q2, {%d7, %d8};
atom.global.cas.b128 %q3, [%d2], %q1, %q2;
mov.b128 {%d9, %d10}, %q3;
setp.ne.u64 %p1, %d5, %d9; setp.ne.u64 %p2, %d6, %d10; or.pred %p1, %p1, %p2;
mov.b128 %q1, %q3;
@%p1 bra AGAIN;)",
                              {{}}, 1, 4, 64);
    EXPECT_EQ(out[0], (Number{256 * 5, 128}));
  }
}

TEST(WideAtomics, ResultsMayBeDroppedAndCacheHintsGiven) {
  const auto out = run_wide(
      "ld.global.b128 %q1, [%d1]; setp.eq.u32 %p1, %r1, 3; createpolicy.fractional.L2::evict_last.b64 %d5;\n"
      "@%p1 atom.global.exch.b128 _, [%d2], %q1;\n@%p1 atom.global.exch.L2::cache_hint.b128 %q2, [%d2+16], "
      "%q1, "
      "%d5;",
      {{11, 12}}, 2, 1, 8);
  EXPECT_EQ(out, (std::vector<Number>{{11, 12}, {11, 12}}));
}

TEST(WideAtomics, OtherFormsDevicesAndAddressesAreRefused) {
  const auto refusal = [](const std::string& line, const char* device_id = "h100") -> std::string {
    try {
      const ptx::Module module = ptx::parse(wide_kernel(line), "wide.ptx");
      const Outcome r =
          run_on_numbers(module, {.kernel = "k", .grid = {}, .block = {1, 1, 1}}, {}, device_id, 64, 64);
      return r.text();
    } catch (const Error& e) {
      return e.message();
    }
  };
  for (const char* line :
       {"atom.global.add.b128 %q1, [%d2], %q2;", "red.global.exch.b128 [%d2], %q2;",
        "atom.global.cas.b128 %q1, [%d2], %q2;", "atom.global.exch.b128 %d3, [%d2], %d4;",
        "atom.global.exch.v2.b128 {%q1, %q2}, [%d2], {%q3, %q4};", "atom.global.min.b128 %q1, [%d2], %q2;"})
    EXPECT_NE(refusal(line), "") << line;
  const std::string exchange = "ld.global.b128 %q2, [%d1]; atom.global.exch.b128 %q1, [%d2], %q2;";
  EXPECT_EQ(refusal(exchange), "");
  EXPECT_NE(refusal(exchange, "a100").find("atomics of 128 bits"), std::string::npos)
      << refusal(exchange, "a100");
  EXPECT_TRUE(refusal("ld.global.b128 %q2, [%d1]; atom.global.exch.b128 %q1, [%d2+8], %q2;")
                  .starts_with("misaligned"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
