// What lanes of a warp do together, carry chains, and the types of loads and stores, against what the PTX ISA
// says of each, worked out here lane by lane.
#include <fmt/format.h>

#include <random>

#include "tests/simulator/conformance_reference.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using reference::u32;
using reference::u64;

/// Runs `body` by one warp: %d1 is where this lane's row of `in` begins, %d2 where its row of the output
/// does.
std::vector<u64> run_warp(const std::string& body, const std::vector<u64>& in, std::size_t outputs) {
  const std::string text = wrap_ptx(fmt::format(R"(
ld.param.u64 %d20, [in]; ld.param.u64 %d21, [out]; mov.u32 %r20, %tid.x;
mul.wide.u32 %d22, %r20, {}; add.u64 %d1, %d20, %d22;
mul.wide.u32 %d23, %r20, {}; add.u64 %d2, %d21, %d23;
{}
ret;)",
                                                in.size() / 32 * 8, outputs * 8, body));
  const ptx::Module module = ptx::parse(text, "warp.ptx");
  DeviceMemory memory;
  const DeviceAddress source = upload(memory, in, "in"),
                      target = upload(memory, std::vector<u64>(32 * outputs), "out");
  Launch launch{.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(source), Argument::pointer(target)};
  const LaunchResult r = run(module, launch, memory, device("v100"), {});
  EXPECT_TRUE(r.findings.empty()) << r.findings[0].message;
  return download<u64>(memory, target, 32 * outputs);
}

/// PTX ISA, shfl.sync: the pseudocode of its semantics.
std::pair<u32, bool> source_lane(const std::string& mode, u32 lane, u32 b, u32 c) {
  const u32 bval = b & 0x1f, cval = c & 0x1f, mask = c >> 8 & 0x1f;
  const u32 max_lane = (lane & mask) | (cval & ~mask & 0x1f), min_lane = lane & mask;
  int j = 0;
  bool valid = false;
  if (mode == "up") {
    j = static_cast<int>(lane) - static_cast<int>(bval);
    valid = j >= static_cast<int>(max_lane);
  } else if (mode == "down") {
    j = static_cast<int>(lane + bval);
    valid = j <= static_cast<int>(max_lane);
  } else if (mode == "bfly") {
    j = static_cast<int>(lane ^ bval);
    valid = j <= static_cast<int>(max_lane);
  } else {
    j = static_cast<int>(min_lane | (bval & ~mask & 0x1f));
    valid = j <= static_cast<int>(max_lane);
  }
  return {valid ? static_cast<u32>(j) : lane, valid};
}

TEST(Conformance, ShufflesReadTheLaneThatTheIsaNames) {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (u32 c : {0x1fu, 0u, 0x1007u, 0x181fu, 0x1c03u, 0x1e1fu, 0x0f10u}) {
      std::vector<u64> in;
      for (u32 lane = 0; lane < 32; ++lane) in.insert(in.end(), {lane * 1000 + 7, (lane * 5 + c) % 33});
      const auto out = run_warp(fmt::format(R"(
ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d1+8];
shfl.sync.{}.b32 %r3|%p1, %r1, %r2, {}, -1;
selp.b32 %r4, 1, 0, %p1; st.global.u32 [%d2], %r3; st.global.u32 [%d2+8], %r4;)",
                                            mode, c),
                                in, 2);
      for (u32 lane = 0; lane < 32; ++lane) {
        const auto [from, valid] = source_lane(mode, lane, static_cast<u32>(in[2 * lane + 1]), c);
        ASSERT_EQ(out[2 * lane + 1], valid) << mode << " " << c << " lane " << lane;
        ASSERT_EQ(out[2 * lane], in[2 * from]) << mode << " " << c << " lane " << lane;
      }
    }
  }
}

TEST(Conformance, ReductionsOfAWarpCoverItsMembers) {
  std::mt19937_64 rng(3);
  for (const char* form :
       {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"}) {
    const std::string name = form, operation = name.substr(0, 3), type = name.substr(name.find('.') + 1);
    std::vector<u64> in;
    for (int lane = 0; lane < 32; ++lane) {
      static constexpr u32 kEdges[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
      in.push_back(rng() % 2 ? kEdges[rng() % 5] : static_cast<u32>(rng()));
    }
    const auto out = run_warp(fmt::format(R"(
ld.global.u32 %r1, [%d1]; redux.sync.{} %r2, %r1, -1; st.global.u32 [%d2], %r2;)",
                                          name.substr(0, 2) == "or" ? "or.b32" : name),
                              in, 1);
    u64 expected = in[0];
    for (int lane = 1; lane < 32; ++lane) {
      const u64 sources[3] = {expected, in[static_cast<std::size_t>(lane)], 0};
      expected = *reference::integer_form(reference::Form(name), sources) & 0xffffffff;
    }
    for (int lane = 0; lane < 32; ++lane) ASSERT_EQ(out[static_cast<std::size_t>(lane)], expected) << form;
  }
}

TEST(Conformance, ReductionsOfFloatsOrderNumbersAndKeepNaNWhereAsked) {
  const auto bits = [](float v) { return u64{std::bit_cast<u32>(v)}; };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto reduced = [&](const std::string& form, const std::vector<float>& values) {
    std::vector<u64> in;
    for (std::size_t lane = 0; lane < 32; ++lane) in.push_back(bits(values[lane % values.size()]));
    const auto out = run_warp(
        "ld.global.u32 %r1, [%d1]; redux.sync." + form + " %r2, %r1, -1; st.global.u32 [%d2], %r2;", in, 1);
    for (std::size_t lane = 1; lane < 32; ++lane) EXPECT_EQ(out[lane], out[0]) << form;
    return std::bit_cast<float>(static_cast<u32>(out[0]));
  };
  // As integers -2 would lie above 3, and 1 below -1.
  EXPECT_EQ(reduced("max.f32", {-2, 3, 1, -1}), 3);
  EXPECT_EQ(reduced("min.f32", {-2, 3, 1, -1}), -2);
  EXPECT_EQ(reduced("max.abs.f32", {-5, 3, 1, -1}), 5);
  EXPECT_EQ(reduced("min.abs.f32", {-5, 3, -2}), 2);
  EXPECT_EQ(reduced("max.f32", {nan, -2, -7}), -2);
  EXPECT_TRUE(std::isnan(reduced("max.f32", {nan})));
  EXPECT_TRUE(std::isnan(reduced("min.NaN.f32", {1, nan, -2})));
  EXPECT_TRUE(std::isnan(reduced("min.abs.NaN.f32", {1, nan, -2})));
  EXPECT_FALSE(std::signbit(reduced("max.f32", {-0.0f, 0.0f})));
  EXPECT_TRUE(std::signbit(reduced("min.f32", {0.0f, -0.0f})));
  for (const char* form : {"add.f32", "max.b32", "and.u32", "min.NaN.u32", "max.ftz.f32", "xor.s32", "add"}) {
    const std::string body = fmt::format("redux.sync.{} %r2, %r1, -1;", form);
    EXPECT_THROW(ptx::parse(wrap_ptx(body), "k.ptx"), Error) << form;
  }
}

TEST(Conformance, VotesAndMatchesNameTheLanes) {
  std::vector<u64> in;
  for (u64 lane = 0; lane < 32; ++lane) in.push_back(lane % 5);
  const auto out = run_warp(R"(
ld.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 2; setp.lt.u32 %p2, %r1, 5;
vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.any.pred %p3, %p1, -1; vote.sync.all.pred %p4, %p1, -1;
vote.sync.all.pred %p5, %p2, -1; vote.sync.uni.pred %p6, %p1, -1;
match.any.sync.b32 %r3, %r1, -1; match.all.sync.b32 %r4|%p7, %r1, -1;
st.global.u32 [%d2], %r2; selp.b32 %r5, 1, 0, %p3; selp.b32 %r6, 2, 0, %p4; selp.b32 %r7, 4, 0, %p5;
selp.b32 %r8, 8, 0, %p6; or.b32 %r5, %r5, %r6; or.b32 %r5, %r5, %r7; or.b32 %r5, %r5, %r8;
st.global.u32 [%d2+8], %r5; st.global.u32 [%d2+16], %r3; st.global.u32 [%d2+24], %r4;)",
                            in, 4);
  for (u64 lane = 0; lane < 32; ++lane) {
    u32 same = 0, twos = 0;
    for (u64 other = 0; other < 32; ++other) {
      same |= u32{in[other] == in[lane]} << other;
      twos |= u32{in[other] == 2} << other;
    }
    EXPECT_EQ(out[4 * lane], twos);
    EXPECT_EQ(out[4 * lane + 1], 1u | 4u);  // some, not all, all below 5, not unanimous
    EXPECT_EQ(out[4 * lane + 2], same);
    EXPECT_EQ(out[4 * lane + 3], 0u);
  }
}

TEST(Conformance, CarriesPassFromWordToWord) {
  static constexpr u64 kEdges[] = {0,
                                   1,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   0x100000000,
                                   0x7fffffffffffffff,
                                   0x8000000000000000,
                                   ~u64{0},
                                   0x123456789abcdef0};
  std::vector<u64> in;
  std::mt19937_64 rng(4);
  for (int lane = 0; lane < 32; ++lane)
    for (int k = 0; k < 4; ++k) in.push_back(kEdges[rng() % 10]);
  // 128 bits: sum and difference in words of 64, and the same of 64 bits in words of 32; a product of 64
  // bits.
  const auto out = run_warp(R"(
ld.global.u64 %d3, [%d1]; ld.global.u64 %d4, [%d1+8]; ld.global.u64 %d5, [%d1+16]; ld.global.u64 %d6, [%d1+24];
add.cc.u64 %d7, %d3, %d5; addc.u64 %d8, %d4, %d6; st.global.u64 [%d2], %d7; st.global.u64 [%d2+8], %d8;
sub.cc.u64 %d7, %d3, %d5; subc.u64 %d8, %d4, %d6; st.global.u64 [%d2+16], %d7; st.global.u64 [%d2+24], %d8;
mov.b64 {%r1, %r2}, %d3; mov.b64 {%r3, %r4}, %d5;
add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r4; mov.b64 %d9, {%r5, %r6}; st.global.u64 [%d2+32], %d9;
sub.cc.u32 %r5, %r1, %r3; subc.u32 %r6, %r2, %r4; mov.b64 %d9, {%r5, %r6}; st.global.u64 [%d2+40], %d9;
mul.lo.u32 %r5, %r1, %r3; mul.hi.u32 %r6, %r1, %r3;
mad.lo.cc.u32 %r6, %r1, %r4, %r6; madc.hi.u32 %r7, %r1, %r4, 0;
mad.lo.cc.u32 %r6, %r2, %r3, %r6; madc.hi.cc.u32 %r7, %r2, %r3, %r7; addc.u32 %r8, 0, 0;
mad.lo.cc.u32 %r7, %r2, %r4, %r7; madc.hi.u32 %r8, %r2, %r4, %r8;
mov.b64 %d9, {%r5, %r6}; st.global.u64 [%d2+48], %d9; mov.b64 %d9, {%r7, %r8}; st.global.u64 [%d2+56], %d9;)",
                            in, 8);
  using Wide = unsigned __int128;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const u64* v = &in[4 * lane];
    const Wide a = static_cast<Wide>(v[1]) << 64 | v[0], b = static_cast<Wide>(v[3]) << 64 | v[2];
    const Wide product = static_cast<Wide>(v[0]) * v[2];
    const Wide expected[4] = {a + b, a - b, static_cast<Wide>(v[0] - v[2]) << 64 | (v[0] + v[2]), product};
    for (std::size_t k = 0; k < 4; ++k) {
      ASSERT_EQ(out[8 * lane + 2 * k], static_cast<u64>(expected[k])) << "lane " << lane << " value " << k;
      ASSERT_EQ(out[8 * lane + 2 * k + 1], static_cast<u64>(expected[k] >> 64))
          << "lane " << lane << " value " << k;
    }
  }
}

TEST(Conformance, LoadsExtendAndStoresCutAsTheirTypeSays) {
  std::vector<u64> in;
  for (u64 lane = 0; lane < 32; ++lane)
    in.push_back(lane % 4 == 0   ? 0x8081828384858687
                 : lane % 4 == 1 ? 0x7f7e7d7c7b7a7978
                 : lane % 4 == 2 ? ~u64{0}
                                 : lane * 0x0101010101010101);
  for (const std::string type :
       {"u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"}) {
    for (const std::string space : {"global", "shared", "local", "generic"}) {
      const int width = reference::width_of(type);
      const std::string wide = type == "f64" ? "%e1" : "%d3";
      const std::string where = space == "global" || space == "generic" ? "%d1"
                                : space == "shared"                     ? "%r9"
                                                                        : "%d10";
      std::string body = "ld.global.u64 %d5, [%d1];\n";
      if (space == "shared")
        body =
            ".shared .align 8 .b8 cells[256];\n" + body +
            "mov.u32 %r9, cells; shl.b32 %r10, %r20, 3; add.u32 %r9, %r9, %r10; st.shared.u64 [%r9], %d5;\n";
      if (space == "local")
        body = ".local .align 8 .b8 cell[8];\n" + body + "mov.u64 %d10, cell; st.local.u64 [%d10], %d5;\n";
      const std::string prefix = space == "generic" ? "" : "." + space;
      // Registers of 64 bits, wider than the type where it has fewer.
      const std::string load =
          type == "f32"
              ? fmt::format("ld{}.f32 %f1, [{}]; mov.b32 %r1, %f1; cvt.u64.u32 %d3, %r1;", prefix, where)
          : type == "f64" ? fmt::format("ld{}.f64 %e1, [{}]; mov.b64 %d3, %e1;", prefix, where)
                          : fmt::format("ld{}.{} %d3, [{}];", prefix, type, where);
      body += load + "\nst.global.u64 [%d2], %d3;\nst.global.u64 [%d2+8], 0;\n";
      body += type == "f32"   ? "mov.b64 {%r3, %r4}, %d5; mov.b32 %f2, %r3; st.global.f32 [%d2+8], %f2;"
              : type == "f64" ? "mov.b64 %e2, %d5; st.global.f64 [%d2+8], %e2;"
                              : "st.global." + type + " [%d2+8], %d5;";
      const auto out = run_warp(body, in, 2);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const auto expected =
            static_cast<u64>(reference::integer_of(type[0] == 'f' ? "b" + type.substr(1) : type, in[lane]));
        ASSERT_EQ(out[2 * lane], expected) << type << " " << space << " lane " << lane;
        ASSERT_EQ(out[2 * lane + 1], in[lane] & reference::mask_of(width)) << type << " lane " << lane;
      }
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
