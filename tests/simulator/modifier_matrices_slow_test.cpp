// Programs for matrix instructions, of elements of moderate size and accumulators near the largest integers.
#include <fmt/format.h>

#include <charconv>

#include "simulator/isa/forms.h"
#include "simulator/isa/isa.h"
#include "simulator/machine/matrix.h"
#include "tests/simulator/modifier_programs.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Behind the rows of operands (modifier_inputs): where a thread's elements and accumulators begin.
constexpr int kElements = 8192 * 80, kAccumulators = kElements + 65536 * 4, kThreadBytes = 512;

MatrixElement element_of(const std::string& type) {
  using E = MatrixElement;
  return type == "f16"    ? E::kF16
         : type == "bf16" ? E::kBF16
         : type == "tf32" ? E::kTF32
         : type == "f32"  ? E::kF32
         : type == "f64"  ? E::kF64
         : type == "s8"   ? E::kS8
         : type == "u8"   ? E::kU8
         : type == "s32"  ? E::kS32
         : type == "e4m3" ? E::kE4M3
         : type == "e5m2" ? E::kE5M2
         : type == "s4"   ? E::kS4
                          : E::kU4;
}
struct Shape {
  explicit Shape(const std::string& word) {
    const char *at = word.data() + 1, *end = word.data() + word.size();
    at = std::from_chars(at, end, m).ptr + 1;
    at = std::from_chars(at, end, n).ptr + 1;
    std::from_chars(at, end, k);
  }
  int m = 0, n = 0, k = 0;
};
std::vector<std::string> words_of(const std::string& opcode) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', begin), opcode.size());
    words.push_back(opcode.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

char letter_of(MatrixElement e) {
  return e == MatrixElement::kF64 ? 'e' : e == MatrixElement::kF32 ? 'f' : 'r';
}
std::string list(char letter, int first, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += fmt::format("{}%{}{}", k == 0 ? "" : ", ", letter, first + k);
  return "{" + text + "}";
}
/// From the words behind `base`, from the one numbered `at` on.
std::string load(char letter, int first, int count, int base, int at) {
  const int bytes = letter == 'e' ? 8 : 4;
  std::string text;
  for (int k = 0; k < count; ++k)
    text += fmt::format("ld.global.b{} %{}{}, [%d28+{}];\n", bytes * 8, letter, first + k,
                        base + 4 * at + bytes * k);
  return text;
}
std::string store(char letter, int first, int count) {
  const int bytes = letter == 'e' ? 8 : 4;
  std::string text;
  for (int k = 0; k < count; ++k)
    text += fmt::format("st.global.b{} [%d27+{}], %{}{};\n", bytes * 8, bytes * k, letter, first + k);
  return text;
}
/// %d28: the thread's elements, less kElements; %d27: its output, of 512 bytes.
const std::string kThread = fmt::format(
    "// %r399\nld.param.u64 %d28, [in];\nmul.wide.u32 %d29, %r30, {0};\nadd.u64 %d28, %d28, %d29;\n"
    "ld.param.u64 %d27, [out];\nadd.u64 %d27, %d27, %d29;\n",
    kThreadBytes);

ModifierForm product(const std::string& opcode) {
  std::vector<std::string> words = words_of(opcode);
  const bool wmma = words[0] == "wmma", sparse = words[1].starts_with("sp");
  const auto found = std::find_if(words.begin(), words.end(),
                                  [](const std::string& w) { return w[0] == 'm' && isdigit(w[1]); });
  const Shape shape(*found);
  const std::size_t n = words.size();
  const MatrixElement d = element_of(words[n - 4]), a = element_of(words[n - 3]),
                      b = element_of(words[n - 2]), c = element_of(words[n - 1]);
  const auto registers = [&](int elements, MatrixElement e, bool input) {
    return wmma ? wmma_registers(elements, e, input) : fragment_registers(elements, e);
  };
  const int of_a = registers(shape.m * shape.k / (sparse ? 2 : 1), a, true),
            of_b = registers(shape.n * shape.k, b, true), of_c = registers(shape.m * shape.n, c, false),
            of_d = registers(shape.m * shape.n, d, false);
  std::string body = kThread + load(letter_of(a), 1, of_a, kElements, 0) +
                     load(letter_of(b), 33, of_b, kElements, 48) +
                     load(letter_of(c), 65, of_c, c == MatrixElement::kS32 ? kAccumulators : kElements, 80);
  // Metadata: of each pair of indices, 0 and 2 in odd lanes (in words: 0x8888..., 1 and 3 in even ones
  // (0xdddd...).
  if (sparse)
    body +=
        "and.b32 %r5, %r30, 1;\nsetp.eq.u32 %p1, %r5, 0;\nselp.b32 %r200, 0xdddddddd, 0x88888888, %p1;\n" +
        (a == MatrixElement::kTF32 ? std::string("selp.b32 %r200, 0x4e4e4e4e, 0xe4e4e4e4, %p1;\n") : "") +
        load(letter_of(a), 1, of_a, kElements, 0);
  body += fmt::format("OPCODE {}, {}, {}, {}{};\n", list(letter_of(d), 97, of_d), list(letter_of(a), 1, of_a),
                      list(letter_of(b), 33, of_b), list(letter_of(c), 65, of_c), sparse ? ", %r200, 0" : "");
  if (letter_of(d) == 'e') body = body;
  return {opcode, {modifier_program(body + store(letter_of(d), 97, of_d), 1, 32, false)}};
}

/// K-major matrices without swizzle, in 48 KiB of shared memory.
ModifierForm warpgroup_product(const std::string& opcode) {
  const std::vector<std::string> words = words_of(opcode);
  const Shape shape(words[4]);
  const std::size_t n = words.size();
  const MatrixElement d = element_of(words[n - 3]), a = element_of(words[n - 2]);
  const int of_d = shape.n / (d == MatrixElement::kF16 ? 4 : 2);
  const bool whole = d == MatrixElement::kS32, halves = a == MatrixElement::kF16 || a == MatrixElement::kBF16;
  std::string body = ".shared .align 1024 .b8 tiles[16384];\n" + kThread +
                     "mov.u32 %r1, tiles;\nmov.u32 %r2, tiles;\n"
                     "shl.b32 %r3, %r30, 7;\nadd.u32 %r3, %r2, %r3;\n";
  for (int k = 0; k < 8; ++k)
    body += fmt::format(
        "ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d28+{}];\nst.shared.v4.b32 [%r3+{}], {{%r4, %r5, %r6, "
        "%r7}};\n",
        kElements + 16 * k, 16 * k);
  // Core matrices of 128 bytes follow each other: 128 bytes along k, 256 along m and n.
  body +=
      "fence.proxy.async;\nbar.sync 0;\nshr.u32 %r8, %r1, 4;\ncvt.u64.u32 %d1, %r8;\n"
      "or.b64 %d1, %d1, 0x0000001000080000;\nadd.u64 %d2, %d1, 128;\nsetp.eq.u32 %p1, %r30, 999;\n";
  const char letter = letter_of(d);
  const int first = 10;
  if (whole)
    body += "setp.ne.u32 %p1, %r30, 999;\n" + load('r', first, of_d, kAccumulators, 0);
  else
    for (int k = 0; k < of_d; ++k) body += fmt::format("mov.b32 %{}{}, 0;\n", letter, first + k);
  body += fmt::format(
      "wgmma.fence.sync.aligned;\nOPCODE {}, %d1, %d2, %p1{}{};\nwgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n",
      list(letter, first, of_d), whole ? "" : ", 1, 1", halves ? ", 0, 0" : "");
  return {opcode, {modifier_program(body + store(letter, first, of_d), 1, 128, false)}};
}

void add_moves(std::vector<ModifierForm>& forms) {
  const std::string cells =
      ".shared .align 16 .b8 cells[1024];\nmov.u32 %r1, cells;\nshl.b32 %r2, %r30, 4;\n"
      "add.u32 %r2, %r1, %r2;\ncvt.u64.u32 %d1, %r2;\ncvta.shared.u64 %d1, %d1;\nshl.b32 %r3, %r30, "
      "5;\nadd.u32 %r3, %r1, %r3;\n";
  for (const int count : {1, 2, 4})
    for (const std::string transposed : {"", ".trans"})
      for (const std::string space : {"", ".shared", ".shared::cta"}) {
        const std::string rest = fmt::format(".sync.aligned.m8n8.x{}{}{}.b16", count, transposed, space),
                          address = space.empty() ? "%d1" : "%r2";
        const std::string filled = kThread + cells + load('r', 10, 4, kElements, 0);
        forms.push_back(
            {"ldmatrix" + rest,
             {modifier_program(filled +
                                   "st.shared.v4.b32 [%r2], {%r10, %r11, %r12, %r13};\nbar.warp.sync -1;\n"
                                   "OPCODE " +
                                   list('r', 20, count) + ", [" + address + "];\n" + store('r', 20, count),
                               1, 32, true)}});
        forms.push_back({"stmatrix" + rest,
                         {modifier_program(
                             filled +
                                 "mov.u32 %r20, 0;\nst.shared.v4.b32 [%r2], {%r20, %r20, %r20, "
                                 "%r20};\nbar.warp.sync -1;\n"
                                 "OPCODE [" +
                                 address + "], " + list('r', 10, count) +
                                 ";\nbar.warp.sync -1;\nld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r2];\n" +
                                 store('r', 10, 4),
                             1, 32, true)}});
      }
  forms.push_back({"movmatrix.sync.aligned.m8n8.trans.b16",
                   {modifier_program(
                       kThread + load('r', 10, 1, kElements, 0) + "OPCODE %r11, %r10;\n" + store('r', 11, 1),
                       1, 32, false)}});
}

/// Of matrices in global and in shared memory.
void add_wmma_moves(std::vector<ModifierForm>& forms) {
  for (const auto& [m, n, k] : {std::array{16, 16, 16}, {32, 8, 16}, {8, 32, 16}})
    for (const std::string layout : {"row", "col"})
      for (const std::string space : {"", ".global", ".shared"}) {
        for (const auto& [which, type] : {std::pair{"a", "f16"},
                                          {"b", "f16"},
                                          {"a", "bf16"},
                                          {"b", "bf16"},
                                          {"a", "s8"},
                                          {"b", "u8"},
                                          {"c", "f16"},
                                          {"c", "f32"},
                                          {"c", "s32"},
                                          {"d", "f16"},
                                          {"d", "f32"},
                                          {"d", "s32"}}) {
          if (m != 16 && std::string_view(type) != "f16") continue;
          const bool stores = *which == 'd', input = *which == 'a' || *which == 'b';
          const MatrixElement e = element_of(type);
          const int count = wmma_registers((*which == 'b' ? k : m) * (*which == 'a' ? k : n), e, input);
          const std::string opcode =
              fmt::format("wmma.{}.{}.sync.aligned.{}.m{}n{}k{}{}.{}", stores ? "store" : "load", which,
                          layout, m, n, k, space, type);
          std::string body = ".shared .align 32 .b8 cells[8192];\n" + kThread +
                             "mov.u32 %r1, cells;\nld.param.u64 %d1, [in];\n"
                             "add.u64 %d1, %d1, " +
                             std::to_string(kElements) +
                             ";\nld.param.u64 %d2, [out];\n"
                             "add.u64 %d2, %d2, 65536;\nshl.b32 %r2, %r30, 7;\nadd.u32 %r2, %r1, %r2;\n";
          for (int w = 0; w < 8; ++w)
            body += fmt::format(
                "ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d28+{}];\nst.shared.v4.b32 [%r2+{}], {{%r4, %r5, "
                "%r6, %r7}};\n",
                kElements + 16 * w, 16 * w);
          body += "bar.warp.sync -1;\n";
          const char letter = letter_of(e);
          const std::string address = space == ".shared" ? "%r1" : stores ? "%d2" : "%d1";
          if (stores)
            body += load(letter, 10, count, kElements, 0) + "OPCODE [" + address + "], " +
                    list(letter, 10, count) + ", 32;\n" + "bar.warp.sync -1;\n" +
                    (space == ".shared" ? "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\nst.global.v4.b32 "
                                          "[%d27], {%r4, %r5, %r6, %r7};\n"
                                        : "");
          else
            body +=
                "OPCODE " + list(letter, 10, count) + ", [" + address + "], 32;\n" + store(letter, 10, count);
          forms.push_back({opcode, {modifier_program(body, 1, 32, true)}});
        }
      }
}

}  // namespace TEST_FILE

namespace TEST_FILE {
std::vector<ModifierForm> products(const std::string& begins) {
  std::vector<ModifierForm> forms;
  for (const std::string& pattern : ptx::supported_instructions()) {
    if (!pattern.starts_with(begins)) continue;
    // Of wmma's shapes of three that differ in registers alone, one.
    if (pattern.find(".m32n8k16") != pattern.npos || pattern.find(".m8n32k16") != pattern.npos) continue;
    std::string spelled = pattern;  // "{.satfinite}" as an alternative to nothing
    for (const std::string optional : {"{.satfinite}", "{::ordered_metadata}"})
      if (const std::size_t at = spelled.find(optional); at != spelled.npos) spelled.insert(at + 1, ",");
    for (const std::string& opcode : expand_spelling(spelled)) forms.push_back(product(opcode));
  }
  return forms;
}

}  // namespace TEST_FILE

std::vector<ModifierForm> product_forms() { return TEST_FILE::products("mma."); }

std::vector<ModifierForm> warpgroup_forms() {
  using namespace TEST_FILE;
  std::vector<ModifierForm> forms;
  for (const std::string_view pattern : ptx::listed_patterns())
    if (pattern.starts_with("wgmma.mma_async"))
      for (const std::string& opcode : expand_spelling(pattern))
        // Of widths: the others have the same rows of addresses, and are those of Wgmma's own tests.
        if (const int n = Shape(words_of(opcode)[4]).n; n == 8 || n == 16 || n == 64)
          forms.push_back(warpgroup_product(opcode));
  return forms;
}

std::vector<ModifierForm> matrix_moves() {
  using namespace TEST_FILE;
  std::vector<ModifierForm> forms = products("wmma.mma");
  add_moves(forms);
  add_wmma_moves(forms);
  return forms;
}

}  // namespace stitchwork::sim
