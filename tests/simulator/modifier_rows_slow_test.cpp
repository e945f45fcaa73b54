// Programs for what computes lane by lane: the rows of the instruction table, and forms built from several.
#include <fmt/format.h>

#include <random>
#include <set>

#include "simulator/isa/isa.h"
#include "tests/simulator/edge_values.h"
#include "tests/simulator/modifier_programs.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr std::size_t kThreads = 8192, kRowBytes = 80, kOperands = 5;
constexpr std::size_t kMatrixWords = 65536;  // two regions of 128 threads x 512 bytes, and room behind

/// Patterns of registers of 16, 32 and 64 bits: edge values of all types that fit, and any bits. All pairs of
/// them are tried.
std::vector<std::uint64_t> patterns(int bits) {
  std::vector<std::uint64_t> all;
  const auto& halves = edge_values("h");
  if (bits == 64) {
    all = edge_values("f64");
    for (std::size_t k = 0; k + 1 < edge_values("f32").size(); k += 3)
      all.push_back(edge_values("f32")[k] | edge_values("f32")[k + 1] << 32);
  } else if (bits == 32) {
    all = edge_values("f32");
    for (std::size_t k = 0; k + 1 < halves.size(); k += 2) all.push_back(halves[k] | halves[k + 1] << 16);
  } else {
    all = halves;
  }
  for (const std::uint64_t v : edge_values("integer"))
    all.push_back(bits == 64 ? v : v & ((1ull << bits) - 1));
  std::mt19937_64 rng(5);
  // -130, whose power of two is subnormal; bfloat16 that halves round; an integer next to a half's tie.
  if (bits == 32) all.push_back(0xc3020000);
  if (bits == 16) all.push_back(0x33c1);
  all.push_back(2049);
  while (all.size() < 90) all.push_back(bits == 64 ? rng() : rng() & ((1ull << bits) - 1));
  std::set<std::uint64_t> seen;
  std::erase_if(all, [&](std::uint64_t v) { return !seen.insert(v).second; });
  return all;
}

/// "add.rz.f32" of a signature as isa.h has them: sources from the thread's row, the result to its output.
std::string load(char letter, std::size_t k) {
  const std::size_t at = 16 * (k - 1);
  if (letter == 'p')
    return fmt::format("ld.global.u16 %h15, [%d30+{}];\nsetp.ne.u16 %p{}, %h15, 0;\n", at + 14, k);
  const bool wide = letter == 'd' || letter == 'e', narrow = letter == 'h' || letter == 'x';
  return fmt::format("ld.global.b{} %{}{}, [%d30+{}];\n",
                     wide     ? 64
                     : narrow ? 16
                              : 32,
                     letter == 'x' ? 'h' : letter, k,
                     at + (wide     ? 0
                           : narrow ? 12
                                    : 8));
}
std::string store(char letter, std::size_t k, int at) {
  if (letter == 'p')
    return fmt::format("selp.b32 %r29, 1, 0, %p{};\nst.global.b32 [%d31+{}], %r29;\n", k, at);
  const bool wide = letter == 'd' || letter == 'e', narrow = letter == 'h' || letter == 'x';
  return fmt::format("st.global.b{} [%d31+{}], %{}{};\n",
                     wide     ? 64
                     : narrow ? 16
                              : 32,
                     at, letter == 'x' ? 'h' : letter, k);
}
std::string registers(const std::string& signature) {
  std::string text;
  for (std::size_t k = 0; k < signature.size(); ++k)
    text += fmt::format("{}%{}{}", k == 0 ? " " : ", ", signature[k] == 'x' ? 'h' : signature[k], k);
  return text;
}
std::string loads(const std::string& signature) {
  std::string text;
  for (std::size_t k = 1; k < signature.size(); ++k) text += load(signature[k], k);
  return text;
}
ModifierForm lanes(const std::string& opcode, const std::string& signature) {
  return {opcode,
          {modifier_program(
              loads(signature) + "OPCODE" + registers(signature) + ";\n" + store(signature[0], 0, 0), 32, 256,
              false)}};
}

/// A carry goes in, and the one that comes out is read.
ModifierForm carry(const std::string& opcode, const std::string& signature) {
  return {opcode,
          {modifier_program(loads(signature) + "ld.global.u16 %h15, [%d30+78];\ncvt.u32.u16 %r28, %h15;\n" +
                                "and.b32 %r28, %r28, 1;\nadd.cc.u32 %r27, %r28, -1;\nOPCODE" +
                                registers(signature) + ";\naddc.u32 %r27, 0, 0;\n" +
                                store(signature[0], 0, 0) + store('r', 27, 8),
                            32, 256, false)}};
}

char letter_of(const std::string& type) {
  if (type.ends_with("x2")) return 'r';
  if (type.ends_with("f16")) return 'x';
  if (type.ends_with("16")) return 'h';
  if (type == "f32") return 'f';
  return type == "f64" ? 'e' : type.ends_with("64") ? 'd' : 'r';
}

/// setp with two results or combined with a predicate, and set, of one comparison.
void add_comparisons(std::vector<ModifierForm>& forms, const std::string& compare, const std::string& flush,
                     const std::string& type) {
  const char t = letter_of(type);
  const bool packed = type.ends_with("x2");
  const std::string both{t, t};
  for (const std::string combine : {"", ".and", ".or", ".xor"}) {
    if (!combine.empty() && compare != "lt" && compare != "ne") continue;
    const std::string middle = "." + compare + combine + flush, third = combine.empty() ? "" : ", %p3";
    if (packed || !combine.empty())
      forms.push_back({"setp" + middle + "." + type,
                       {modifier_program(
                           loads("p" + both + "p") +
                               fmt::format("OPCODE %p0|%p4, %{0}1, %{0}2{1};\n", t == 'x' ? 'h' : t, third) +
                               store('p', 0, 0) + store('p', 4, 4),
                           32, 256, false)}});
    // PTX ISA, set: of halves also in their own type and in integers of 16 bits.
    std::vector<std::string> results{"u32", "s32", "f32"};
    if (type.find("f16") != std::string::npos) results.insert(results.end(), {"u16", "s16", type});
    if (packed) results = {"u32", "s32", type};
    if (!combine.empty()) results.resize(1);
    for (const std::string& to : results)
      forms.push_back(
          lanes("set" + middle + "." + to + "." + type, letter_of(to) + both + (combine.empty() ? "" : "p")));
  }
}

}  // namespace TEST_FILE

std::vector<std::byte> modifier_inputs() {
  using namespace TEST_FILE;
  std::vector<std::byte> all(kThreads * kRowBytes + 3 * kMatrixWords * 4);
  std::mt19937_64 rng(7);
  for (std::size_t i = 0; i < kThreads; ++i) {
    for (std::size_t k = 0; k < kOperands; ++k) {
      std::byte* at = all.data() + i * kRowBytes + 16 * k;
      const std::uint64_t any = rng();
      for (const auto& [bits, offset] : {std::pair{64, 0}, {32, 8}, {16, 12}}) {
        static const std::vector<std::uint64_t> kPatterns[] = {patterns(16), patterns(32), patterns(64)};
        const auto& list = kPatterns[bits / 32];
        const std::size_t n = list.size();
        const std::uint64_t v = list[k == 0 ? i % n : k == 1 ? i / n % n : any % n];
        std::memcpy(at + offset, &v, static_cast<std::size_t>(bits / 8));
      }
      const std::uint16_t predicate = any >> 40 & 1;
      std::memcpy(at + 14, &predicate, 2);
    }
  }
  // Bytes of 0x30 to 0x3f of both signs: no infinities in any type. Accumulators near the largest integers.
  std::byte* at = all.data() + kThreads * kRowBytes;
  for (std::size_t w = 0; w < 3 * kMatrixWords; ++w) {
    std::uint32_t v = (static_cast<std::uint32_t>(rng()) & 0x8f8f8f8f) | 0x30303030;
    if (w >= kMatrixWords && w / 128 % 2 == 1) v = (w / 128 % 4 == 1 ? 0x7fffff00 : 0x80000000) | (v & 0xff);
    std::memcpy(at + 4 * w, &v, 4);
  }
  return all;
}

ModifierProgram modifier_program(const std::string& body, std::uint32_t blocks, std::uint32_t threads,
                                 bool accesses, const std::string& target) {
  std::string text = wrap_ptx(
      "ld.param.u64 %d30, [in];\nld.param.u64 %d31, [out];\nmov.u32 %r30, %tid.x;\nmov.u32 %r31, %ctaid.x;\n"
      "mov.u32 %r29, %ntid.x;\nmad.lo.u32 %r31, %r31, %r29, %r30;\nmul.wide.u32 %d29, %r31, 80;\n"
      "add.u64 %d30, %d30, %d29;\nmul.wide.u32 %d29, %r31, 32;\nadd.u64 %d31, %d31, %d29;\n" +
      body + "ret;");
  const auto replace = [&](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace(".target sm_75", ".target " + target);
  replace(".version 7.8", target == "sm_60" ? ".version 6.3" : ".version 8.8");
  if (body.find("%r399") != body.npos) {  // of the widest products
    replace("%r<32>", "%r<400>");
    replace("%f<16>", "%f<200>");
    replace("%e<16>", "%e<200>");
  }
  return {text, {blocks, 1, 1}, {threads, 1, 1}, accesses};
}

std::vector<ModifierForm> row_forms() {
  using namespace TEST_FILE;
  std::vector<ModifierForm> forms;
  std::set<std::vector<std::string>> compared;
  for (const IsaRow& row : isa_rows()) {
    if (row.spelling[0] == '@') continue;
    for (const std::string& opcode : expand_spelling(row.spelling)) {
      forms.push_back(lanes(opcode, row.signature));
      // Those that have forms with a carry leave it as it was.
      if (opcode.starts_with("add.") || opcode.starts_with("sub.") || opcode.starts_with("mad."))
        forms.back().programs.push_back(carry(opcode, row.signature).programs[0]);
      if (!opcode.starts_with("setp.")) continue;
      const std::size_t dot = opcode.find('.', 5), last = opcode.rfind('.');
      const std::string compare = opcode.substr(5, dot - 5), flush = opcode.substr(dot, last - dot),
                        type = opcode.substr(last + 1);
      add_comparisons(forms, compare, flush, type);
      if (type.ends_with("f16")) add_comparisons(forms, compare, flush, type + "x2");
    }
  }
  for (const std::string type : {"u32", "s32", "u64", "s64"}) {
    const char t = letter_of(type);
    const std::string three(3, t), four(4, t);
    for (const std::string base : {"add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc"})
      forms.push_back(carry(base + "." + type, three));
    for (const std::string half : {"lo", "hi"})
      for (const auto& [base, cc] : {std::pair{"mad.", ".cc."}, {"madc.", "."}, {"madc.", ".cc."}})
        forms.push_back(carry(base + half + cc + type, four));
  }
  for (const std::string rounding : {"", ".rn", ".rz", ".rm", ".rp"})
    for (const std::string saturated : {"", ".sat"})
      for (const std::string type : {"f16", "bf16"}) {
        if (!saturated.empty() && rounding.size() > 1 && rounding != ".rn")
          continue;  // refused, as without halves
        const std::string rest = rounding + saturated + ".f32." + type;
        forms.push_back(lanes("add" + rest, "fxf"));
        forms.push_back(lanes("sub" + rest, "fxf"));
        if (!rounding.empty()) forms.push_back(lanes("fma" + rest, "fxxf"));
      }
  for (const std::string base : {"min", "max"})
    for (const std::string flush : {"", ".ftz"})
      for (const std::string nan : {"", ".NaN"})
        for (const std::string absolute : {"", ".abs"})
          forms.push_back(lanes(base + flush + nan + absolute + ".f32", "ffff"));
  return forms;
}

}  // namespace stitchwork::sim
