// Programs for loads, stores, atomics, asynchronous copies and fences: values, what the memory system counts,
// and which accesses of two blocks race.
#include <fmt/format.h>

#include "simulator/machine/atomics.h"
#include "tests/simulator/modifier_programs.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Addresses of 32 bytes of each space, which all hold the thread's values: %d28 global, %r28 shared, %d27
/// local, %d25 generic; constant ones are of the variable `table`.
const std::string kPlaces =
    ".shared .align 32 .b8 cells[4096];\n.local .align 32 .b8 cell[32];\n"
    ".const .align 32 .b32 table[8] = {0x81828384, 0x7f7e7d7c, 0xffffffff, 1, 2, 0x80000000, 7, 8};\n"
    "ld.param.u64 %d24, [in];\nmul.wide.u32 %d29, %r31, 32;\nadd.u64 %d28, %d24, %d29;\nmov.u64 %d25, %d28;\n"
    "mov.u32 %r28, cells;\nshl.b32 %r27, %r30, 5;\nadd.u32 %r28, %r28, %r27;\nmov.u64 %d27, cell;\n"
    "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d28];\nst.shared.v4.b32 [%r28], {%r1, %r2, %r3, %r4};\n"
    "st.local.v4.b32 [%d27], {%r1, %r2, %r3, %r4};\nld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d28+16];\n"
    "st.shared.v4.b32 [%r28+16], {%r1, %r2, %r3, %r4};\nst.local.v4.b32 [%d27+16], {%r1, %r2, %r3, %r4};\n";

struct Space {
  const char *name, *address;
};
constexpr Space kSpaces[] = {{".global", "%d28"},          {".shared", "%r28"}, {".shared::cta", "%r28"},
                             {".shared::cluster", "%r28"}, {".local", "%d27"},  {"", "%d25"}};

char letter_of(const std::string& type) { return type == "f32" ? 'f' : type == "f64" ? 'e' : 'd'; }
std::string list(char letter, int first, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += fmt::format("{}%{}{}", k == 0 ? "" : ", ", letter, first + k);
  return count == 1 ? text : "{" + text + "}";
}
std::string store_all(char letter, int first, int count) {
  std::string text;
  for (int k = 0; k < count; ++k)
    text += fmt::format("st.global.b{} [%d31+{}], %{}{};\n", letter == 'f' || letter == 'r' ? 32 : 64, 8 * k,
                        letter, first + k);
  return text;
}
int elements(const std::string& opcode) {
  return opcode.find(".v2") != opcode.npos ? 2 : opcode.find(".v4") != opcode.npos ? 4 : 1;
}

/// Twice, so that L1 may hold it.
ModifierProgram load_program(const std::string& opcode, const std::string& type, const std::string& address,
                             const std::string& hint) {
  const char letter = letter_of(type);
  const int count = elements(opcode);
  const std::string line =
      fmt::format("OPCODE {}, [{}]{};\n", list(letter, 3, count), address, hint.empty() ? "" : ", %d0");
  // A store to the same place tells apart reads that need not see it.
  const std::string own = address == "%d28" ? "ld.global.b32 %r1, [%d28];\nst.global.b32 [%d28], %r1;\n" : "";
  return modifier_program("mov.u64 %d0, 0;\n" + kPlaces + own + line + line + store_all(letter, 3, count), 4,
                          64, true);
}
ModifierProgram store_program(const std::string& opcode, const std::string& type, const Space& space,
                              const std::string& hint) {
  const char letter = letter_of(type);
  const int count = elements(opcode);
  std::string body = "mov.u64 %d0, 0;\n" + kPlaces;
  for (int k = 0; k < count; ++k)
    body += fmt::format("ld.global.b{} %{}{}, [%d30+{}];\n", letter == 'f' ? 32 : 64, letter, 3 + k, 16 * k);
  const bool global = std::string_view(space.name) == ".global" || *space.name == 0;
  body += fmt::format("OPCODE [{}], {}{};\n", global ? "%d31" : space.address, list(letter, 3, count),
                      hint.empty() ? "" : ", %d0");
  if (!global) {
    const std::string from = std::string_view(space.name) == ".local" ? "local" : "shared";
    for (int k = 0; k < 4; ++k)
      body += fmt::format("ld.{}.b64 %d9, [{}+{}];\nst.global.b64 [%d31+{}], %d9;\n", from, space.address,
                          8 * k, 8 * k);
  }
  return modifier_program(body, 4, 64, true);
}

/// Who exchanges a message: two blocks, alone or in a cluster, or two warps of a block in global or shared
/// memory.
enum class Between { kBlocks, kCluster, kWarps, kWarpsShared };

/// One writes a word and then the flag by `raise`, and tells by another word that it has, which orders
/// nothing. The other waits for that, reads the flag by `look` and the word behind it. Both name the flag
/// [%d28], between warps [%r28]; `values` sets registers for both.
ModifierProgram message(const std::string& raise, const std::string& look, Between between,
                        const std::string& values = "") {
  const bool shared = between == Between::kWarpsShared, warps = shared || between == Between::kWarps;
  const std::string space = shared ? "shared" : "global", at = shared ? "%r28" : "%d28";
  const std::string own =
      (shared ? ".shared .align 32 .b8 cells[256];\nmov.u32 %r28, cells;\nsetp.eq.u32 %p1, %r30, 0;\n@%p1 "
                "st.shared.b64 [%r28], 0;\n@%p1 st.shared.b32 [%r28+64], 0;\nbar.sync 0;\n"
              : std::string()) +
      (warps ? "shr.u32 %r21, %r30, 5;\n" : "mov.u32 %r21, %ctaid.x;\n");
  ModifierProgram program = modifier_program(
      fmt::format("ld.param.u64 %d28, [out];\nmov.u64 %d0, 0;\nmov.u32 %r3, 1;\n{0}{1}and.b32 %r20, %r30, "
                  "31;\nsetp.ne.u32 %p1, %r20, 0;\n@%p1 bra END;\nsetp.eq.u32 %p2, %r21, 1;\n@%p2 bra "
                  "READER;\nst.{2}.u32 [{3}+128], 42;\n{4}mov.u32 %r22, 1;\nst.relaxed.gpu.{2}.u32 "
                  "[{3}+64], %r22;\nbra END;\nREADER:\nmov.u32 %r23, 0;\nAGAIN:\nadd.u32 %r23, %r23, "
                  "1;\nld.relaxed.gpu.{2}.u32 %r22, [{3}+64];\nsetp.eq.u32 %p3, %r22, 0;\n"
                  "setp.lt.and.u32 %p3, %r23, 1000, %p3;\n@%p3 bra AGAIN;\n{5}ld.{2}.u32 %r7, "
                  "[{3}+128];\nst.global.u32 [%d28+192], %r7;\nEND:\n",
                  own, values, space, at, raise, look),
      warps ? 1 : 2, warps ? 64 : 32, true);
  if (between == Between::kCluster)
    program.text.insert(program.text.find("\n{\n"), "\n.reqnctapercluster 2, 1, 1");
  return program;
}
/// What surely writes the flag, and what surely reads it.
std::string raised(Between between) {
  return between == Between::kWarpsShared ? "st.release.gpu.shared.u32 [%r28], %r3;\n"
                                          : "st.release.gpu.global.u32 [%d28], %r3;\n";
}
std::string looked(Between between) {
  return between == Between::kWarpsShared ? "ld.acquire.gpu.shared.u32 %r5, [%r28];\n"
                                          : "ld.acquire.gpu.global.u32 %r5, [%d28];\n";
}
/// Of a space whose messages others get, and where they are: shared memory, or global by name or not.
std::vector<Between> meetings(const std::string& space, bool scoped) {
  if (space.starts_with(".shared")) return {Between::kWarpsShared};
  if (space != ".global" && !space.empty()) return {};
  return scoped ? std::vector{Between::kBlocks, Between::kCluster, Between::kWarps}
                : std::vector{Between::kBlocks};
}

/// Of other spaces than .global some types, and of vectors some.
bool is_tried(const Space& space, const std::string& type, const std::string& vector) {
  const bool common = type == "u8" || type == "s16" || type == "u32" || type == "b64" || type == "f32";
  return (vector.empty() || type == "u32" || type == "b64") &&
         (std::string_view(space.name) == ".global" || common);
}

ModifierForm load_form(const std::string& opcode, const std::string& type, const Space& space, bool scoped,
                       bool hint) {
  ModifierForm form{opcode, {load_program(opcode, type, space.address, hint ? "hint" : "")}};
  for (const Between between : meetings(space.name, scoped)) {
    const std::string flag = between == Between::kWarpsShared ? "%r28" : "%d28";
    const std::string look = fmt::format("OPCODE {}, [{}]{};\n", list(letter_of(type), 3, elements(opcode)),
                                         flag, hint ? ", %d0" : "");
    form.programs.push_back(message(raised(between), look, between));
  }
  return form;
}
ModifierForm store_form(const std::string& opcode, const std::string& type, const Space& space, bool scoped,
                        bool hint) {
  ModifierForm form{opcode, {store_program(opcode, type, space, hint ? "hint" : "")}};
  const char letter = letter_of(type);
  const int count = elements(opcode);
  std::string values;
  for (int k = 0; k < count; ++k)
    values +=
        fmt::format("ld.global.b{} %{}{}, [%d30+{}];\n", letter == 'f' ? 32 : 64, letter, 3 + k, 16 * k);
  for (const Between between : meetings(space.name, scoped)) {
    const std::string raise =
        fmt::format("OPCODE [{}], {}{};\n", between == Between::kWarpsShared ? "%r28" : "%d28",
                    list(letter, 3, count), hint ? ", %d0" : "");
    form.programs.push_back(message(raise, looked(between), between, values));
  }
  return form;
}

using MakesForm = ModifierForm (*)(const std::string&, const std::string&, const Space&, bool, bool);
/// Of ld or st: types and vectors in every space, orders and scopes, caches and hints.
void add_accesses(std::vector<ModifierForm>& forms, const std::string& base, MakesForm form,
                  const std::string& ordering, const std::vector<std::string>& caches) {
  for (const Space& space : kSpaces)
    for (const std::string type :
         {"u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"})
      for (const std::string vector : {"", ".v2", ".v4"})
        if (is_tried(space, type, vector))
          forms.push_back(form(base + space.name + vector + "." + type, type, space, false, false));
  for (const Space& space : {kSpaces[0], kSpaces[1]}) {
    const auto add = [&](const std::string& modifiers, bool scoped) {
      forms.push_back(form(base + modifiers + space.name + ".u32", "u32", space, scoped, false));
    };
    add(".weak", false);
    add(".volatile", false);
    for (const std::string& order : {std::string(".relaxed"), ordering})
      for (const std::string scope : {".cta", ".cluster", ".gpu", ".sys"}) add(order + scope, true);
  }
  for (const std::string& cache : caches)
    forms.push_back(form(base + cache + ".global.u32", "u32", kSpaces[0], false, cache == ".L2::cache_hint"));
}

void add_loads(std::vector<ModifierForm>& forms) {
  add_accesses(forms, "ld", load_form, ".acquire",
               {".mmio.relaxed.sys", ".ca", ".cg", ".cs", ".lu", ".cv", ".L1::no_allocate", ".L1::evict_last",
                ".L1::evict_first", ".L1::evict_normal", ".L1::evict_unchanged", ".L2::64B", ".L2::128B",
                ".L2::256B", ".L2::cache_hint"});
  for (const std::string type : {"u8", "s16", "u32", "s32", "f32", "u64"})
    forms.push_back({"ld.const." + type, {load_program("ld", type, "table", "")}});
  forms.push_back({"ld.global.nc.u32",
                   {load_program("ld", "u32", "%d25", ""),
                    message(raised(Between::kBlocks), "OPCODE %r5, [%d28];\n", Between::kBlocks)}});
}

void add_stores(std::vector<ModifierForm>& forms) {
  add_accesses(forms, "st", store_form, ".release",
               {".wb", ".cg", ".cs", ".wt", ".L1::no_allocate", ".L1::evict_last", ".L1::evict_first",
                ".L1::evict_normal", ".L1::evict_unchanged", ".L2::cache_hint"});
}

/// Pairs of edge values, one a thread, in memory of its own; what is returned, and what is left.
ModifierProgram atomic_program(const std::string& operation, const std::string& type, const Space& space,
                               bool returns) {
  const auto form = find_atomic(operation, type);
  const int bytes = form->bytes;
  const char letter = type == "f32" ? 'f' : type == "f64" ? 'e' : bytes == 2 ? 'h' : bytes == 8 ? 'd' : 'r';
  const bool global = std::string_view(space.name) == ".global" || *space.name == 0;
  const std::string where = global ? "%d26" : "%r28", kind = global ? "global" : "shared";
  const int at = bytes == 8 ? 0 : bytes == 4 ? 8 : 12;
  std::string body = fmt::format(
      ".shared .align 8 .b8 cells[2048];\nmov.u32 %r28, cells;\nshl.b32 %r27, %r30, 3;\nadd.u32 %r28, %r28, "
      "%r27;\n"
      "add.u64 %d26, %d31, 16;\nld.global.b{0} %{1}1, [%d30+{2}];\nld.global.b{0} %{1}2, [%d30+{3}];\n"
      "ld.global.b{0} %{1}3, [%d30+{4}];\nst.{5}.b{0} [{6}], %{1}1;\n",
      bytes * 8, letter, at, at + 16, at + 32, kind, where);
  const bool vector = type.find("f16") != type.npos && operation != "add";
  const auto operand = [&](int k) {
    return vector ? fmt::format("{{%h{}, %h{}}}", k, k + 4) : fmt::format("%{}{}", letter, k);
  };
  if (vector) body += "mov.b16 %h6, %h3;\nst.global.b16 [%d26+2], %h2;\n";
  body += fmt::format("OPCODE {}[{}], {}{};\n", returns ? operand(4) + ", " : "", where, operand(2),
                      operation == "cas" ? fmt::format(", %{}3", letter) : "");
  if (returns) body += fmt::format("st.global.b{} [%d31], %{}4;\n", bytes * 8, letter);
  if (!global)
    body +=
        fmt::format("ld.shared.b{0} %{1}5, [%r28];\nst.global.b{0} [%d31+8], %{1}5;\n", bytes * 8, letter);
  return modifier_program(body, 32, 256, true);
}

/// The same as who raises the flag, and as who looks for it.
void add_messages(ModifierForm& form, const std::string& operation, const std::string& type,
                  const Space& space, bool returns, bool scoped) {
  const int bytes = find_atomic(operation, type)->bytes;
  const char letter = type == "f32" ? 'f' : type == "f64" ? 'e' : bytes == 2 ? 'h' : bytes == 8 ? 'd' : 'r';
  const bool vector = type.find("f16") != type.npos && operation != "add";
  const std::string values = fmt::format(
      "ld.global.b{0} %{1}1, [%d30];\nmov.b{0} %{1}2, %{1}1;\nmov.b{0} %{1}5, %{1}1;\nmov.b{0} %{1}6, "
      "%{1}1;\n",
      bytes * 8, letter);
  const auto operand = [&](int k) {
    return vector ? fmt::format("{{%h{}, %h{}}}", k, k + 4) : fmt::format("%{}{}", letter, k);
  };
  for (const Between between : meetings(space.name, scoped)) {
    const std::string flag = fmt::format("OPCODE {}[{}], {}{};\n", returns ? operand(4) + ", " : "",
                                         between == Between::kWarpsShared ? "%r28" : "%d28", operand(2),
                                         operation == "cas" ? fmt::format(", %{}1", letter) : "");
    form.programs.push_back(message(flag, looked(between), between, values));
    if (returns) form.programs.push_back(message(raised(between), flag, between, values));
  }
}

void add_atomics(std::vector<ModifierForm>& forms) {
  for (const bool returns : {true, false}) {
    const std::string base = returns ? "atom" : "red";
    for (const std::string operation : {"add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec"})
      for (const std::string type : {"u32", "s32", "u64", "s64", "b16", "b32", "b64", "f32", "f64", "f16",
                                     "f16x2", "bf16", "bf16x2"}) {
        const bool halves = type.find("f16") != type.npos, vector = halves && operation != "add";
        if (!find_atomic(operation, type) || (!returns && (operation == "exch" || operation == "cas")))
          continue;
        if (vector && type.ends_with("x2")) continue;  // the same in elements of 32 bits
        for (const Space& space : {kSpaces[0], kSpaces[1], kSpaces[5]}) {
          if (vector && std::string_view(space.name) == ".shared") continue;  // of global memory alone
          forms.push_back({fmt::format("{}{}.{}{}{}.{}", base, space.name, operation, halves ? ".noftz" : "",
                                       vector ? ".v2" : "", type),
                           {atomic_program(operation, type, space, returns)}});
          add_messages(forms.back(), operation, type, space, returns, false);
        }
      }
    for (const Space& space : {kSpaces[0], kSpaces[1]})
      for (const std::string order : {".relaxed", ".acquire", ".release", ".acq_rel"})
        for (const std::string scope : {".cta", ".cluster", ".gpu", ".sys"}) {
          if (!returns && (order == ".acquire" || order == ".acq_rel")) continue;
          forms.push_back({base + order + scope + space.name + ".add.u32",
                           {atomic_program("add", "u32", space, returns)}});
          add_messages(forms.back(), "add", "u32", space, returns, true);
        }
  }
}

void add_copies(std::vector<ModifierForm>& forms) {
  const auto program = [](const std::string& operands) {
    return modifier_program(
        kPlaces + "mov.u64 %d0, 0;\nmov.u32 %r3, 4;\n" +
            fmt::format("OPCODE [%r28], [%d28+{}], {};\n", 16, operands) + "OPCODE [%r28+16], [%d28+16], " +
            operands +
            ";\ncp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.v2.b64 {%d3, %d4}, "
            "[%r28];\n" +
            store_all('d', 3, 2),
        4, 64, true);
  };
  for (const std::string prefetch : {"", ".L2::64B", ".L2::128B", ".L2::256B", ".L2::cache_hint"})
    for (const std::string space : {".shared", ".shared::cta"}) {
      const std::string hint = prefetch == ".L2::cache_hint" ? ", %d0" : "";
      forms.push_back({"cp.async.cg" + space + ".global" + prefetch, {program("16" + hint)}});
      forms.push_back({"cp.async.ca" + space + ".global" + prefetch,
                       {program("16" + hint), program("16, %r3" + hint), program("4" + hint)}});
    }
}

/// At either end of a message, around relaxed accesses.
void add_fences(std::vector<ModifierForm>& forms) {
  std::vector<ModifierProgram> programs;
  for (const Between between : {Between::kBlocks, Between::kCluster, Between::kWarpsShared}) {
    const bool warps = between == Between::kWarpsShared;
    const std::string raise = warps ? "st.relaxed.gpu.shared.u32 [%r28], %r3;\n"
                                    : "st.relaxed.gpu.global.u32 [%d28], %r3;\n",
                      look = warps ? "ld.relaxed.gpu.shared.u32 %r5, [%r28];\n"
                                   : "ld.relaxed.gpu.global.u32 %r5, [%d28];\n";
    programs.push_back(message("OPCODE;\n" + raise, looked(between), between));
    programs.push_back(message(raised(between), look + "OPCODE;\n", between));
  }
  for (const std::string scope : {".cta", ".cluster", ".gpu", ".sys"})
    for (const std::string order : {"", ".sc", ".acq_rel", ".acquire", ".release"})
      forms.push_back({"fence" + order + scope, programs});
  for (const std::string level : {".cta", ".gl", ".sys"}) forms.push_back({"membar" + level, programs});
}

}  // namespace TEST_FILE

std::vector<ModifierForm> memory_forms() {
  using namespace TEST_FILE;
  std::vector<ModifierForm> forms;
  add_loads(forms);
  add_stores(forms);
  add_atomics(forms);
  add_copies(forms);
  add_fences(forms);
  return forms;
}

}  // namespace stitchwork::sim
