// Registers wider or narrower than an instruction's type, for every form of the instruction table:
// conversions take wider ones (PTX ISA 9.4.1, "Operand Size Exceeding Instruction-Type Size"), all others
// refuse what does not fit, as ptxas does.
#include <fmt/format.h>

#include <random>
#include <set>

#include "core/base/error.h"
#include "simulator/isa/isa.h"
#include "tests/simulator/conformance_reference.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Bits of a register for a letter of a signature; 0: a predicate.
int bits_of(char letter) {
  return letter == 'p' ? 0 : letter == 'd' || letter == 'e' ? 64 : letter == 'h' || letter == 'x' ? 16 : 32;
}
std::string register_of(int bits, std::size_t k) {
  return fmt::format("%{}{}", bits == 0 ? "p" : bits == 16 ? "h" : bits == 32 ? "r" : "d", k);
}
std::string instruction(const std::string& form, const std::vector<int>& bits) {
  std::string text = form;
  for (std::size_t k = 0; k < bits.size(); ++k)
    text += fmt::format("{}{}", k == 0 ? " " : ", ", register_of(bits[k], k + 1));
  return text + ";";
}
std::string refusal(const std::string& line) {
  try {
    ptx::parse(wrap_ptx(line + "\nret;"), "sizes.ptx");
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

struct Conversion {
  std::string to, from;
};
/// Whether registers of a conversion's type may be wider.
bool may_be_wider(const std::string& type) {
  static const std::set<std::string> kTypes = {"u8",  "s8",  "u16", "s16", "u32", "s32",
                                               "u64", "s64", "f16", "f32", "f64"};
  return kTypes.contains(type);
}
std::optional<Conversion> conversion_of(const std::string& form) {
  if (!form.starts_with("cvt.") || form.starts_with("cvt.pack")) return std::nullopt;
  const std::size_t last = form.rfind('.'), before = form.rfind('.', last - 1);
  return Conversion{form.substr(before + 1, last - before - 1), form.substr(last + 1)};
}

struct FormRow {
  std::string form, signature;
};
std::vector<FormRow> forms_of(const std::string& base) {
  std::vector<FormRow> forms;
  for (const IsaRow& row : isa_rows()) {
    if (row.spelling[0] == '@') continue;
    for (const std::string& form : expand_spelling(row.spelling))
      if (form.substr(0, form.find('.')) == base) forms.push_back({form, row.signature});
  }
  return forms;
}
std::vector<std::string> bases() {
  std::set<std::string> all;
  for (const IsaRow& row : isa_rows())
    if (row.spelling[0] != '@')
      for (const std::string& form : expand_spelling(row.spelling))
        all.insert(form.substr(0, form.find('.')));
  return {all.begin(), all.end()};
}

class OperandSizes : public ::testing::TestWithParam<std::string> {};

TEST_P(OperandSizes, ThatDoNotFitAreRefusedUnlessAConversionTakesThem) {
  for (const auto& [form, signature] : forms_of(GetParam())) {
    if (form.starts_with("mov.") || form.starts_with("setp.")) continue;  // the same below
    std::vector<int> exact;
    for (const char letter : signature) exact.push_back(bits_of(letter));
    ASSERT_EQ(refusal(instruction(form, exact)), "") << form;
    const auto conversion = conversion_of(form);
    for (std::size_t k = 0; k < exact.size(); ++k) {
      for (const int bits : {16, 32, 64}) {
        if (exact[k] == 0 || bits == exact[k]) continue;
        std::vector<int> other = exact;
        other[k] = bits;
        const bool taken =
            conversion && bits > exact[k] && may_be_wider(k == 0 ? conversion->to : conversion->from);
        const std::string message = refusal(instruction(form, other));
        if (taken)
          EXPECT_EQ(message, "") << instruction(form, other);
        else
          EXPECT_NE(message.find("has the wrong size"), std::string::npos)
              << instruction(form, other) << message;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Table, OperandSizes, ::testing::ValuesIn(bases()),
                         [](const auto& info) { return info.param; });

TEST(OperandSizes, OfMovesAndComparisonsAreExact) {
  for (const char* line : {"mov.u16 %h1, %r1;",
                           "mov.u32 %r1, %h1;",
                           "mov.b64 %d1, %r1;",
                           "mov.u32 %d1, %r1;",
                           "mov.u32 %r1, %d1;",
                           "mov.b32 %r1, {%r2, %r3};",
                           "mov.b32 %r1, {%h1, %r2};",
                           "mov.b64 %d1, {%h1, %r2};",
                           "setp.eq.s32 %p1, %h1, %r1;",
                           "setp.eq.s16 %p1, %r1, %r2;",
                           "setp.lt.f64 %p1, %f1, %e1;",
                           "set.eq.u32.s32 %d1, %r1, %r2;",
                           "shfl.sync.idx.b32 %d1, %r1, %r2, %r3, -1;",
                           "shfl.sync.idx.b32 %r1, %h1, %r2, %r3, -1;",
                           "vote.sync.ballot.b32 %d1, %p1, -1;",
                           "redux.sync.add.u32 %d1, %r1, -1;",
                           "activemask.b32 %d1;",
                           "atom.global.add.u32 %d1, [%d2], %r1;",
                           "atom.global.add.u32 %r1, [%d2], %d1;",
                           "atom.global.cas.b16 %r1, [%d2], %r2, %r3;",
                           "red.global.add.u32 [%d2], %d1;",
                           "subc.cc.s32 %d1, %r1, %r2;",
                           "mad.lo.cc.u32 %r1, %h1, %r2, %r3;",
                           "ld.global.f32 %h1, [%d2];",
                           "ld.global.u64 %r1, [%d2];",
                           "ld.global.v2.u64 {%r1, %r2}, [%d2];",
                           "st.global.u32 [%d2], %h1;",
                           "st.global.u64 [%d2], %r1;"})
    EXPECT_NE(refusal(line).find("has the wrong size"), std::string::npos) << line << " " << refusal(line);
}

/// Each conversion into registers that are wider than its type, from registers that are, with other bits
/// above.
TEST(OperandSizes, WiderRegistersOfConversionsAreExtendedAndCut) {
  std::mt19937_64 rng(11);
  for (const auto& [form, signature] : forms_of("cvt")) {
    const auto conversion = conversion_of(form);
    if (!conversion || signature.size() != 2 || !may_be_wider(conversion->to) ||
        !may_be_wider(conversion->from))
      continue;
    const int to = bits_of(signature[0]), from = bits_of(signature[1]);
    for (const int wider_to : {16, 32, 64}) {
      for (const int wider_from : {16, 32, 64}) {
        if (wider_to < to || wider_from < from || (wider_to == to && wider_from == from)) continue;
        // The value, narrow in %d8 and wide in %d9, as 64 bits with what is above the register cleared.
        const auto into = [&](const std::string& reg, int bits) {
          return bits == 64   ? fmt::format("mov.b64 {}, %d1;\n", reg)
                 : bits == 32 ? fmt::format("cvt.u32.u64 {}, %d1;\n", reg)
                              : fmt::format("cvt.u16.u64 {}, %d1;\n", reg);
        };
        const auto out_of = [&](const std::string& d, const std::string& reg, int bits) {
          return bits == 64   ? fmt::format("mov.b64 {}, {};\n", d, reg)
                 : bits == 32 ? fmt::format("cvt.u64.u32 {}, {};\n", d, reg)
                              : fmt::format("cvt.u64.u16 {}, {};\n", d, reg);
        };
        const std::string body =
            "ld.param.u64 %d20, [in]; ld.param.u64 %d21, [out]; mov.u32 %r20, %tid.x; mul.wide.u32 %d22, "
            "%r20, 8;\n"
            "add.u64 %d20, %d20, %d22; mul.wide.u32 %d22, %r20, 16; add.u64 %d21, %d21, %d22;\n"
            "ld.global.u64 %d1, [%d20];\n" +
            into(register_of(from, 2), from) + into(register_of(wider_from, 3), wider_from) +
            fmt::format("{} {}, {};\n{} {}, {};\n", form, register_of(to, 4), register_of(from, 2), form,
                        register_of(wider_to, 5), register_of(wider_from, 3)) +
            out_of("%d8", register_of(to, 4), to) + out_of("%d9", register_of(wider_to, 5), wider_to) +
            "st.global.u64 [%d21], %d8; st.global.u64 [%d21+8], %d9;\nret;";
        const ptx::Module module = ptx::parse(wrap_ptx(body), "cvt.ptx");
        DeviceMemory memory;
        std::vector<std::uint64_t> in;
        for (int k = 0; k < 32; ++k) in.push_back(rng() >> (k % 4 * 16));
        const DeviceAddress out = upload(memory, std::vector<std::uint64_t>(64), "out");
        Launch launch{.kernel = "k", .grid = {}, .block = {32, 1, 1}};
        launch.arguments = {Argument::pointer(upload(memory, in, "in")), Argument::pointer(out)};
        ASSERT_TRUE(run(module, launch, memory, device("h100"), {}).findings.empty());
        const auto got = download<std::uint64_t>(memory, out, 64);
        const int width = std::max(reference::width_of(conversion->to), conversion->to[0] == 'f' ? to : 8);
        const std::uint64_t mask = wider_to == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << wider_to) - 1;
        for (std::size_t k = 0; k < 32; ++k) {
          const std::uint64_t narrow = got[2 * k] & reference::mask_of(width);
          const bool negative = conversion->to[0] == 's' && (narrow >> (width - 1) & 1);
          const std::uint64_t expected = (negative ? narrow | ~reference::mask_of(width) : narrow) & mask;
          ASSERT_EQ(got[2 * k + 1], expected)
              << form << " to " << wider_to << " from " << wider_from << " bits: " << in[k];
        }
      }
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
