// Sectors, bank conflicts and values of warp accesses of many shapes, against sets of sectors and words built
// one lane at a time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using u32 = std::uint32_t;

constexpr u32 kCells = 4096;  ///< words of memory the patterns lie in

struct Pattern {
  std::string name;
  u32 words = 1;       ///< words of an access: 1, 2 or 4
  u32 mask = ~0u;      ///< lanes that access
  u32 index[32] = {};  ///< first word of each lane, a multiple of `words`
};

/// Of each group of lanes that accesses anything the distinct words of its busiest bank.
std::vector<u32> words_in_busiest_bank(const Pattern& p, u32 group) {
  std::vector<u32> busiest;
  for (u32 begin = 0; begin < 32; begin += group) {
    std::map<u32, std::set<u32>> banks;
    for (u32 l = begin; l < begin + group; ++l)
      if (p.mask >> l & 1)
        for (u32 k = 0; k < p.words; ++k) banks[(p.index[l] + k) % 32].insert(p.index[l] + k);
    std::size_t most = 0;
    for (const auto& [bank, words] : banks) most = std::max(most, words.size());
    if (most > 0) busiest.push_back(static_cast<u32>(most));
  }
  return busiest;
}

u32 conflicts(const Pattern& p) {
  u32 sum = 0;
  for (const u32 words : words_in_busiest_bank(p, 32 / p.words)) sum += words - 1;
  return sum;
}

u32 wavefronts(const Pattern& p) {
  const auto sum = [&](u32 group) {
    const std::vector<u32> all = words_in_busiest_bank(p, group);
    return std::accumulate(all.begin(), all.end(), 0u);
  };
  // Twice as many lanes go together where all those that differ in one bit of their number read the same.
  bool packed = false;
  for (const u32 bit : {1u, 2u}) {
    bool same = true;
    for (u32 l = 0; l < 32; ++l)
      same &= !(p.mask >> l & 1) || !(p.mask >> (l ^ bit) & 1) || p.index[l] == p.index[l ^ bit];
    packed |= same;
  }
  const u32 group = 32 / p.words;
  return p.words > 1 && packed ? std::min(sum(group), sum(2 * group)) : sum(group);
}

u32 sectors(const Pattern& p) {
  std::set<u32> touched;
  for (u32 l = 0; l < 32; ++l)
    if (p.mask >> l & 1) touched.insert(p.index[l] / 8);
  return static_cast<u32>(touched.size());
}

std::vector<Pattern> patterns() {
  std::vector<Pattern> all;
  std::mt19937 rng(9);
  const auto add = [&](std::string name, u32 words, auto index) {
    for (const u32 mask : {~0u, 0x0000ffffu, 0xfffffffeu, 0x00010000u, 0x5a5a5a5au}) {
      Pattern p{
          .name = fmt::format("{}, {} words, lanes {:#x}", name, words, mask), .words = words, .mask = mask};
      for (u32 l = 0; l < 32; ++l) p.index[l] = index(l) * words % kCells;
      all.push_back(p);
    }
  };
  for (const u32 words : {1u, 2u, 4u}) {
    for (const u32 start : {0u, 1u, 5u, 31u})
      add(fmt::format("run from {}", start), words, [&](u32 l) { return start + l; });
    for (const u32 stride : {0u, 2u, 3u, 4u, 8u, 16u, 31u, 32u, 33u, 64u})
      add(fmt::format("stride {}", stride), words, [&](u32 l) { return 7 + l * stride; });
    for (const u32 apart : {0u, 1u, 4u, 8u, 15u, 16u, 17u, 20u, 24u, 31u, 32u, 33u, 48u, 64u, 100u}) {
      add(fmt::format("two runs {} apart", apart), words, [&](u32 l) { return l % 16 + l / 16 * apart; });
      add(fmt::format("two runs, the second {} below", apart), words,
          [&](u32 l) { return 200 + l % 16 - l / 16 * apart; });
      add(fmt::format("two words {} apart", apart), words, [&](u32 l) { return 3 + l / 16 * apart; });
      add(fmt::format("a word and a run {} above", apart), words,
          [&](u32 l) { return l < 16 ? 9 : 9 + apart + l % 16; });
      add(fmt::format("a run and a word {} above", apart), words, [&](u32 l) { return l < 16 ? l : apart; });
    }
    for (const u32 bit : {1u, 2u, 4u}) {
      add(fmt::format("the same but for bit {}", bit), words, [&](u32 l) { return 3 + (l & ~bit); });
      add(fmt::format("rows by bit {}", bit), words, [&](u32 l) { return (l & bit ? 0 : 1) + l / 8 * 40; });
    }
    add("backwards", words, [](u32 l) { return 100 - l; });
    add("swapped neighbours", words, [](u32 l) { return l ^ 1; });
    for (int k = 0; k < 8; ++k)
      add("scattered", words, [&](u32) { return static_cast<u32>(rng()) % (kCells / 4); });
    for (int k = 0; k < 8; ++k)
      add("scattered in two lines", words, [&](u32) { return static_cast<u32>(rng()) % 64; });
  }
  return all;
}

/// Each block takes one pattern: a row of `in` with mask and 32 byte offsets. Loads and stores by `space`.
std::string kernel_of(const std::string& space, u32 words) {
  const std::string v = words == 1 ? "" : words == 2 ? ".v2" : ".v4";
  const std::string regs = words == 1 ? "%r10" : words == 2 ? "{%r10, %r11}" : "{%r10, %r11, %r12, %r13}";
  std::string text;
  const bool shared = space == "shared";
  if (shared) text += fmt::format(".shared .align 16 .b8 cells[{}];\n", kCells * 4);
  text += R"(
ld.param.u64 %d20, [in]; ld.param.u64 %d21, [out]; mov.u32 %r20, %tid.x;
ld.global.u32 %r1, [%d20]; mul.wide.u32 %d1, %r20, 4; add.u64 %d2, %d20, %d1; ld.global.u32 %r2, [%d2+4];
shr.u32 %r3, %r1, %r20; and.b32 %r3, %r3, 1; setp.eq.u32 %p1, %r3, 1;
)";
  std::string where = "%d5";
  if (shared) {
    where = "%r5";
    text += "mov.u32 %r4, cells; add.u32 %r5, %r4, %r2;\n";
    // Fill shared memory with what global memory holds, a word a lane a step.
    text += fmt::format(R"(
shl.b32 %r6, %r20, 2; mov.u32 %r7, %r6;
FILL: cvt.u64.u32 %d6, %r7; add.u64 %d7, %d21, %d6; ld.global.u32 %r8, [%d7]; add.u32 %r9, %r4, %r7; st.shared.u32 [%r9], %r8;
add.u32 %r7, %r7, 128; setp.lt.u32 %p2, %r7, {}; @%p2 bra FILL; bar.sync 0;
)",
                        kCells * 4);
  } else {
    text += "cvt.u64.u32 %d4, %r2; add.u64 %d5, %d21, %d4;\n";
  }
  text += fmt::format("@!%p1 bra DONE;\nld.{0}{1}.u32 {2}, [{3}];\n", space, v, regs, where);
  for (u32 k = 0; k < words; ++k) text += fmt::format("xor.b32 %r{0}, %r{0}, -1;\n", 10 + k);
  text += fmt::format("st.{0}{1}.u32 [{3}], {2};\nDONE:\n", space, v, regs, where);
  if (shared)
    text += fmt::format(R"(
bar.sync 0; mov.u32 %r7, %r6;
BACK: cvt.u64.u32 %d6, %r7; add.u64 %d7, %d21, %d6; add.u32 %r9, %r4, %r7; ld.shared.u32 %r8, [%r9]; st.global.u32 [%d7], %r8;
add.u32 %r7, %r7, 128; setp.lt.u32 %p2, %r7, {}; @%p2 bra BACK;
)",
                        kCells * 4);
  return wrap_ptx(text + "ret;");
}

class AccessPatterns : public ::testing::TestWithParam<const char*> {};

TEST_P(AccessPatterns, CountsAndValuesAreThoseOfEachLaneOnItsOwn) {
  const std::string space = GetParam();
  std::map<u32, ptx::Module> modules;
  for (u32 words : {1u, 2u, 4u}) modules.emplace(words, ptx::parse(kernel_of(space, words), "pattern.ptx"));
  Counters nothing[3];  // what the kernel does beside the two accesses, by words
  std::vector<Pattern> all = patterns();
  for (u32 words : {4u, 2u, 1u}) all.insert(all.begin(), Pattern{.name = "none", .words = words, .mask = 0});
  for (const Pattern& p : all) {
    SCOPED_TRACE(p.name);
    std::vector<u32> in(33), cells(kCells);
    in[0] = p.mask;
    for (u32 l = 0; l < 32; ++l) in[l + 1] = p.index[l] * 4;
    for (u32 k = 0; k < kCells; ++k) cells[k] = k * 2654435761u;
    DeviceMemory memory;
    const DeviceAddress source = upload(memory, in, "in"), target = upload(memory, cells, "cells");
    Launch launch{.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
    launch.arguments = {Argument::pointer(source), Argument::pointer(target)};
    const LaunchResult r = run(modules.at(p.words), launch, memory, device("v100"), {});
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
    Counters& other = nothing[p.words / 2];
    if (p.mask == 0) {
      other = r.counters;
      continue;
    }
    for (u32 l = 0; l < 32; ++l)
      if (p.mask >> l & 1)
        for (u32 k = 0; k < p.words; ++k) cells[p.index[l] + k] = ~((p.index[l] + k) * 2654435761u);
    ASSERT_EQ(download<u32>(memory, target, kCells), cells);
    if (space == "shared") {
      ASSERT_EQ(r.counters.shared_bank_conflicts - other.shared_bank_conflicts, 2 * conflicts(p));
      ASSERT_EQ(r.counters.shared_wavefronts - other.shared_wavefronts, 2 * wavefronts(p));
    } else {
      ASSERT_EQ(r.counters.gld_transactions - other.gld_transactions, sectors(p));
      ASSERT_EQ(r.counters.gst_transactions - other.gst_transactions, sectors(p));
      ASSERT_EQ(r.counters.l2_write_sectors - other.l2_write_sectors, sectors(p));
    }
  }
}

/// Shared loads and stores through one register, and the same through a copy of it each: `apart` adds a zero
/// that nobody knows to be one. The register is written anew in between, and a barrier lets warps part.
std::string through_one_register(const std::string& offsets, bool apart) {
  std::string body = R"(
.shared .align 16 .b8 s[8192];
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.global.u32 %r20, [%d1];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.f32 %f1, 0f00000000; mov.u32 %r9, 0;
shr.u32 %r4, %r1, PART; shl.b32 %r4, %r4, STEP; add.u32 %r4, %r4, %r2; shl.b32 %r5, %r1, WIDE; add.u32 %r5, %r5, %r2;
)" + offsets;
  int copy = 21;
  std::string text;
  for (std::size_t at = 0; at < body.size(); ++at) {
    // "<%r4+8>" is an access at that address.
    if (body[at] != '<') {
      text += body[at];
      continue;
    }
    const std::size_t end = body.find('>', at), plus = std::min(body.find('+', at), end);
    const std::string reg = body.substr(at + 1, plus - at - 1), offset = body.substr(plus, end - plus);
    std::string address = reg;
    if (apart) {
      address = fmt::format("%r{}", copy);
      const std::size_t line = text.rfind('\n') + 1;
      text.insert(line, fmt::format("add.u32 {}, {}, %r20; ", address, reg));
      copy = copy == 31 ? 21 : copy + 1;
    }
    text += "[" + address + offset + "]";
    at = end;
  }
  text += "\nmul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d2, %d3; st.global.u32 [%d3], %r9;\nret;";
  return wrap_ptx(text);
}

TEST(AccessPatterns, AccessesThroughOneRegisterAreTheSameAsEachOnItsOwn) {
  const std::string exchange = R"(
st.shared.u32 <%r5+0>, %r1;
st.shared.u32 <%r5+2048>, %r2;
bar.sync 0;
ld.shared.u32 %r6, <%r5+2048>; add.u32 %r9, %r9, %r6;
ld.shared.u32 %r6, <%r4+0>; mad.lo.u32 %r9, %r9, 31, %r6;
ld.shared.u32 %r6, <%r4+4>; mad.lo.u32 %r9, %r9, 31, %r6;
add.u32 %r4, %r4, 8;
ld.shared.u32 %r6, <%r4+12>; mad.lo.u32 %r9, %r9, 31, %r6;
ld.shared.u32 %r4, <%r4+0>;
and.b32 %r4, %r4, 127; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r2;
ld.shared.u32 %r6, <%r4+16>; mad.lo.u32 %r9, %r9, 31, %r6;
bar.sync 0;
ld.shared.u32 %r6, <%r5+4>; mad.lo.u32 %r9, %r9, 31, %r6;
ld.shared.v2.u32 {%r6, %r7}, <%r5+8>; mad.lo.u32 %r9, %r6, 31, %r7;
ld.shared.v2.u32 {%r6, %r7}, <%r5+16>; mad.lo.u32 %r9, %r6, 31, %r7;
setp.lt.u32 %p1, %r1, 40;
@%p1 ld.shared.u32 %r6, <%r5+24>; mad.lo.u32 %r9, %r9, 31, %r6;
)";
  const auto outcome = [&](const std::string& part, const std::string& step, const std::string& wide,
                           const std::string& body, bool apart, int threads, Sanitizers what) {
    std::string text = through_one_register(body, apart);
    for (const auto& [name, value] : {std::pair{"PART", part}, {"STEP", step}, {"WIDE", wide}})
      for (std::size_t at; (at = text.find(name)) != text.npos;) text.replace(at, std::strlen(name), value);
    const ptx::Module module = ptx::parse(text, "t.ptx");
    DeviceMemory memory(true);
    const DeviceAddress in = upload(memory, std::vector<std::uint32_t>(1), "in"),
                        out = upload(memory, std::vector<std::uint32_t>(2048), "out");
    Launch launch{.kernel = "k", .grid = {2, 1, 1}, .block = {static_cast<std::uint32_t>(threads), 1, 1}};
    launch.arguments = {Argument::pointer(in), Argument::pointer(out)};
    Options options;
    options.sanitize = what;
    const LaunchResult r = run(module, launch, memory, device("v100"), options);
    std::string summary = r.findings.empty()
                              ? ""
                              : r.findings[0].message + fmt::format(" {} {}", r.findings[0].thread.x,
                                                                    static_cast<int>(r.findings[0].kind));
    const Counters& c = r.counters;
    summary += fmt::format(" {} {} {} {} {}; {} {};", c.shared_load_requests, c.shared_store_requests,
                           c.shared_wavefronts, c.shared_bank_conflicts, c.accesses_checked,
                           r.sanitized.race_accesses, r.sanitized.init_accesses);
    for (const std::uint32_t v : download<std::uint32_t>(memory, out, 2048)) summary += fmt::format(" {}", v);
    return summary;
  };
  int findings = 0;
  for (const Sanitizers& what : {Sanitizers{}, Sanitizers{.race = true, .init = false}})
    for (const auto& [part, step, wide] : {std::tuple{"4", "6", "2"},
                                           {"5", "7", "2"},
                                           {"0", "2", "2"},
                                           {"0", "3", "3"},
                                           {"0", "7", "2"},
                                           {"1", "2", "4"}})
      for (const int threads : {256, 512, 100, 32})
        for (const char* last : {"", "ld.shared.u32 %r6, <%r5+0>; ld.shared.u32 %r6, <%r5+8188>;",
                                 "ld.shared.u32 %r6, <%r5+0>; ld.shared.u32 %r6, <%r5+2>;",
                                 "ld.shared.u32 %r6, <%r5+0>; ld.shared.u32 %r6, <%r5+-4>;",
                                 "st.shared.u32 <%r5+0>, %r1; ld.shared.u32 %r6, <%r5+4>;"}) {
          SCOPED_TRACE(fmt::format("{} {} {} {} {}", part, step, wide, threads, last));
          const std::string one = outcome(part, step, wide, exchange + last, false, threads, what);
          EXPECT_EQ(one, outcome(part, step, wide, exchange + last, true, threads, what));
          findings += one[0] != ' ';
        }
  EXPECT_GT(findings, 20);
}

INSTANTIATE_TEST_SUITE_P(Spaces, AccessPatterns, ::testing::Values("global", "shared"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
