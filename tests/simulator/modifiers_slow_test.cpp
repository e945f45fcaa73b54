// A mutation test of modifiers. Every modifier of every accepted form is left out, or another one of its
// instruction is put in its place or beside it: the other spelling is refused, or shows (results, findings,
// what the memory system counts) on some of the inputs, or the table below says why it cannot.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "simulator/isa/isa.h"
#include "tests/simulator/modifier_programs.h"
#include "tests/simulator/modifiers_alike.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using Words = std::vector<std::string>;

Words split(const std::string& text, char at) {
  Words words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}
std::string joined(const Words& words, const char* by) { return fmt::format("{}", fmt::join(words, by)); }

/// An opcode, and the same with one modifier changed.
struct Change {
  std::string opcode, changed;
  std::string from, to;  ///< "": left out, or put in
};

/// What a program came to.
struct Shown {
  std::string refusal;
  std::string contents;
};

class Judge {
 public:
  Judge() : memory_(true), inputs_(upload(memory_, modifier_inputs(), "in")) {
    outputs_ = memory_.allocate(kModifierOutputs, "out");
  }
  /// Whether the instruction alone is refused, which is cheaper to ask.
  bool refuses(const ModifierProgram& program, const std::string& opcode) {
    const std::size_t at = program.text.find("OPCODE"), end = program.text.find('\n', at);
    const std::string line = opcode + program.text.substr(at + 6, end - at - 6);
    const auto [entry, fresh] = refused_.try_emplace(line);
    if (fresh) {
      const std::size_t body = program.text.find("ld.param.u64 %d30");
      try {
        ptx::parse(program.text.substr(0, body) + line + "\nret;\n}\n", "modifiers.ptx");
      } catch (const Error& e) {
        entry->second = e.message();
      }
    }
    return !entry->second.empty();
  }
  const Shown& shown(const ModifierProgram& program, const std::string& opcode) {
    std::string text = program.text;
    text.replace(text.find("OPCODE"), 6, opcode);
    for (std::size_t at = text.find("OPCODE"); at != text.npos; at = text.find("OPCODE", at))
      text.replace(at, 6, opcode);
    const auto [entry, fresh] = known_.try_emplace(std::hash<std::string>{}(text));
    if (fresh) entry->second = run_text(program, text);
    return entry->second;
  }

 private:
  Shown run_text(const ModifierProgram& program, const std::string& text) {
    try {
      const ptx::Module module = ptx::parse(text, "modifiers.ptx");
      memory_.write(outputs_, std::vector<std::byte>(kModifierOutputs));
      Launch launch{.kernel = "k", .grid = program.grid, .block = program.block};
      launch.arguments = {Argument::pointer(inputs_), Argument::pointer(outputs_)};
      const bool checked = program.accesses;
      const LaunchResult r =
          run(module, launch, memory_, device(text.find(".target sm_60") == text.npos ? "h100" : "p100"),
              {.sanitize = {.race = checked, .init = false, .sync = checked}, .host_threads = 1});
      const auto bytes = download<char>(memory_, outputs_, kModifierOutputs);
      Shown shown;
      if (!r.findings.empty()) {
        const Finding& f = r.findings[0];
        shown.contents = fmt::format("{} line {}: {}", name(f.kind), f.ptx_line, f.message);
      } else {
        shown.contents = fmt::format("{:x}", std::hash<std::string_view>{}({bytes.data(), bytes.size()}));
        if (checked)
          for (const auto& [what, count] : counter_list(r.counters))
            if (what != "inst_integer" && what != "inst_fp_32" && what != "issue_slots")
              shown.contents += fmt::format(" {}={}", what, count);
      }
      return shown;
    } catch (const Error& e) {
      return {.refusal = e.message(), .contents = ""};
    }
  }

  DeviceMemory memory_;
  DeviceAddress inputs_ = 0, outputs_ = 0;
  std::unordered_map<std::size_t, Shown> known_;
  std::unordered_map<std::string, std::string> refused_;  ///< by the line
};

/// The same for all orders of modifiers that are alike (forms.h): what only stands in another order is no
/// change.
std::string in_order(const std::string& opcode) {
  Words words = split(opcode, '.');
  std::sort(words.begin() + 1, words.end());
  return joined(words, ".");
}

/// Calls judge(form, change) for every change of every form.
template <class F>
void each_change(const std::vector<ModifierForm>& forms, F judge) {
  std::map<std::string, std::set<std::string>> vocabulary;
  for (const ModifierForm& form : forms) {
    const Words words = split(form.opcode, '.');
    auto& known = vocabulary[words[0]];
    known.insert(words.begin() + 1, words.end());
    known.insert({"ftz", "sat", "rz", "cc", "v2", "magic"});  // of others, and of none
  }
  for (const ModifierForm& form : forms) {
    const Words words = split(form.opcode, '.');
    const auto& known = vocabulary.at(words[0]);
    std::unordered_set<std::string> tried{in_order(form.opcode)};
    const auto change = [&](Words changed, const std::string& from, const std::string& to) {
      const std::string opcode = joined(changed, ".");
      if (opcode != form.opcode && tried.insert(opcode).second)
        judge(form, Change{form.opcode, opcode, from, to});
    };
    for (std::size_t k = 1; k < words.size(); ++k) {
      Words changed = words;
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(k));
      change(changed, words[k], "");
      for (const std::string& other : known) {
        changed = words;
        changed[k] = other;
        change(changed, words[k], other);
      }
    }
    for (const std::string& other : known) {
      Words changed = words;
      changed.insert(changed.begin() + 1, other);
      change(changed, "", other);
    }
  }
}

/// Whether ".of" stands in the opcode, whole.
bool holds(const std::string& opcode, const std::string& of) {
  const std::string all = opcode + ".";
  return all.find("." + of + ".") != all.npos;
}

/// Where bits of a register come from that an integer was converted to: from these of the source, -1: zero.
std::optional<std::vector<int>> converted_bits(const std::string& opcode) {
  const Words words = split(opcode, '.');
  if (words.size() < 3 || words[0] != "cvt") return std::nullopt;
  const std::string &to = words[words.size() - 2], &from = words.back();
  const auto is_integer = [](const std::string& t) { return (t[0] == 'u' || t[0] == 's') && isdigit(t[1]); };
  const bool saturates = words.size() == 4 && words[1] == "sat";
  if (!is_integer(to) || !is_integer(from) || (words.size() == 4 && !saturates) || words.size() > 4)
    return std::nullopt;
  const int wide = std::stoi(to.substr(1)), narrow = std::stoi(from.substr(1));
  const bool is_signed = to[0] == 's', was_signed = from[0] == 's';
  const bool fits = was_signed ? is_signed && wide >= narrow : wide >= narrow + (is_signed ? 1 : 0);
  if (saturates && !fits) return std::nullopt;
  std::vector<int> bits;
  for (int k = 0; k < 64; ++k) {
    if (k >= wide)
      bits.push_back(is_signed ? bits[static_cast<std::size_t>(wide - 1)] : -1);
    else
      bits.push_back(k < narrow ? k : was_signed ? narrow - 1 : -1);
  }
  return bits;
}
/// Conversions that take a register's bits to the same ones of a register of `width`.
bool convert_alike(const Change& change, int width) {
  auto a = converted_bits(change.opcode), b = converted_bits(change.changed);
  if (!a || !b) return false;
  a->resize(static_cast<std::size_t>(width));
  b->resize(static_cast<std::size_t>(width));
  return *a == *b;
}

/// What the table names an instruction by: its first word, or two of them where the second makes it another.
std::string base_of(const std::string& opcode) {
  const Words words = split(opcode, '.');
  const auto is = [&](std::size_t k, const char* word) { return words.size() > k && words[k] == word; };
  const bool async = is(1, "async") && (words[0] != "cp" || is(2, "bulk") || is(2, "mbarrier"));
  const bool two = async || (words[0] == "barrier" && is(1, "cluster")) || is(1, "proxy") ||
                   is(1, "mbarrier_init") || is(1, "reduce");
  return two ? words[0] + "." + words[1] : words[0];
}

using Used = std::vector<std::set<std::string>>;  ///< instructions that each entry of the table was for

/// Whether the table has an entry for one modifier as another ("": none) where the change has both, which it
/// marks as used.
bool is_listed(const Change& change, const std::string& from, const std::string& to, Used& used) {
  const std::string base = base_of(change.opcode);
  const auto lists = [](const char* list, const std::string& word) {
    const Words all = split(list, ' ');
    return std::find(all.begin(), all.end(), word.empty() ? "-" : word) != all.end();
  };
  const auto both_hold = [&](const char* list) {
    const Words of = split(list, ' ');
    return *list == 0 || std::any_of(of.begin(), of.end(), [&](const std::string& word) {
      return holds(change.opcode, word) && holds(change.changed, word);
    });
  };
  bool found = false;
  for (std::size_t k = 0; k < std::size(kAlikeModifiers); ++k) {
    const AlikeModifiers& entry = kAlikeModifiers[k];
    if (!lists(entry.bases, base) || !lists(entry.modifiers, from) || !lists(entry.modifiers, to) ||
        !both_hold(entry.of) || !both_hold(entry.with))
      continue;
    used[k].insert(base);
    found = true;
  }
  return found;
}

/// Listed, or both that the one is left out and that the other is put in; or a conversion that keeps the same
/// bits.
bool is_alike(const Change& change, Used& used) {
  if (is_listed(change, change.from, change.to, used)) return true;
  if (!change.from.empty() && !change.to.empty() && is_listed(change, change.from, "", used) &&
      is_listed(change, "", change.to, used))
    return true;
  const int row = find_row(change.opcode);
  if (row < 0) return false;
  const char letter = isa_rows()[static_cast<std::size_t>(row)].signature[0];
  return convert_alike(change, letter == 'd' ? 64 : letter == 'h' ? 16 : 32);
}

struct Counts {
  std::size_t forms = 0;
  int changes = 0, refused = 0, honoured = 0, alike = 0;
  Used used = Used(std::size(kAlikeModifiers));
  Words left;
};

Counts judge_all(const std::vector<ModifierForm>& forms) {
  Judge judge;
  Counts counts;
  counts.forms = forms.size();
  for (const ModifierForm& form : forms)
    for (const ModifierProgram& program : form.programs)
      if (const Shown& shown = judge.shown(program, form.opcode); !shown.refusal.empty())
        counts.left.push_back(fmt::format("{} is refused: {}", form.opcode, shown.refusal));
  each_change(forms, [&](const ModifierForm& form, const Change& change) {
    ++counts.changes;
    bool refused = true, shows = false;
    for (const ModifierProgram& program : form.programs) {
      if (judge.refuses(program, change.changed)) continue;
      refused = false;
      const Shown &as_is = judge.shown(program, form.opcode), &other = judge.shown(program, change.changed);
      shows = shows || as_is.refusal != other.refusal || as_is.contents != other.contents;
    }
    if (refused)
      ++counts.refused;
    else if (shows)
      ++counts.honoured;
    else if (is_alike(change, counts.used))
      ++counts.alike;
    else
      counts.left.push_back(fmt::format("{} and {}: the same on all inputs", form.opcode, change.changed));
  });
  return counts;
}

struct Family {
  const char* name;
  std::vector<ModifierForm> (*forms)();
};
template <bool kConversions, bool kComparisons>
std::vector<ModifierForm> some_rows() {
  std::vector<ModifierForm> forms = row_forms();
  std::erase_if(forms, [](const ModifierForm& form) {
    return form.opcode.starts_with("cvt.") != kConversions || form.opcode.starts_with("set") != kComparisons;
  });
  return forms;
}
constexpr Family kFamilies[] = {{"Conversions", some_rows<true, false>},
                                {"Comparisons", some_rows<false, true>},
                                {"OtherRows", some_rows<false, false>},
                                {"Memory", memory_forms},
                                {"Warps", warp_forms},
                                {"Products", product_forms},
                                {"WarpgroupProducts", warpgroup_forms},
                                {"MatrixMoves", matrix_moves},
                                {"Asynchronous", async_forms}};

class Modifiers : public ::testing::TestWithParam<Family> {};

TEST_P(Modifiers, AreHonouredOrRefused) {
  const std::vector<ModifierForm> forms = GetParam().forms();
  std::set<std::string> bases;
  for (const ModifierForm& form : forms) bases.insert(base_of(form.opcode));
  Counts counts = judge_all(forms);
  for (std::size_t k = 0; k < std::size(kAlikeModifiers); ++k)
    for (const std::string& base : split(kAlikeModifiers[k].bases, ' '))
      if (bases.contains(base) && !counts.used[k].contains(base))
        counts.left.push_back(
            fmt::format("the table's entry '{}' is of no use to '{}'", kAlikeModifiers[k].modifiers, base));
  EXPECT_TRUE(counts.left.empty()) << counts.left.size() << " left:\n" << joined(counts.left, "\n");
  fmt::print("{} forms, {} changes: {} refused, {} honoured, {} alike\n", counts.forms, counts.changes,
             counts.refused, counts.honoured, counts.alike);
  EXPECT_GT(counts.honoured, 0);
}
INSTANTIATE_TEST_SUITE_P(Families, Modifiers, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return info.param.name; });

/// Forms without programs here, and the tests that tell their modifiers apart; "" where there is nothing to
/// tell.
struct Elsewhere {
  const char *begins, *test, *reason;
};
constexpr Elsewhere kElsewhere[] = {
    {"applypriority", "", "a hint"},
    {"createpolicy", "", "a hint, as is what uses it"},
    {"discard", "", "a hint"},
    {"prefetch", "", "a hint"},
    {"prefetchu", "", "a hint"},
    {"nanosleep", "", "time is not that of single instructions"},
    {"griddepcontrol", "", "kernels run one after the other"},
    {"setmaxnreg", "", "residency is of the registers that warps start with"},
    {"bra", "", ".uni is a promise"},
    {"ret", "", ".uni is a promise"},
    {"exit", "", "no modifiers"},
    {"trap", "", "no modifiers"},
    {"wgmma.commit_group", "", "one form"},
    {"wgmma.wait_group", "", "one form"},
    {"wgmma.fence", "", "one form"},
    {"fence.acquire.sync_restrict::shared::cluster.cluster", "",
     "orders as .acquire.cluster does, of all memory"},
    {"fence.release.sync_restrict::shared::cta.cluster", "",
     "orders as .release.cluster does, of all memory"},
    {"fence.proxy.tensormap::generic", "TensorCopy.KernelsMayWriteTheirMaps", ""},
    {"cp.async.bulk.tensor", "TensorCopy.LoadsBoxesOfEveryRank", ""},
    {"cp.async.bulk.prefetch", "", "a hint"},
    {"cp.reduce.async.bulk.tensor", "TensorCopy.ReductionsAreThoseOfTheMapsType", ""},
    {"tensormap", "TensorCopy.KernelsMayWriteTheirMaps", ""},
    {"wgmma.mma_async", "WgmmaForms.OthersAreRefused", "of the widths that have no program"},
    {"wmma.mma", "MatrixForms.TakeNoOtherModifier", "of the shapes that have no program"},
};

/// The entry whose beginning is the longest.
const Elsewhere* elsewhere(const std::string& form) {
  const Elsewhere* best = nullptr;
  for (const Elsewhere& e : kElsewhere) {
    const std::string begins = e.begins;
    const bool whole = form.size() == begins.size() ||
                       form[std::min(begins.size(), form.size() - 1)] == '.' ||
                       form[std::min(begins.size(), form.size() - 1)] == '{';
    if (form.starts_with(begins) && whole && (best == nullptr || begins.size() > std::strlen(best->begins)))
      best = &e;
  }
  return best;
}

TEST(ModifiersJudged, EveryFormIsOfAProgramOrOfATestElsewhere) {
  std::set<std::string> opcodes, bases;
  for (const Family& family : kFamilies)
    for (const ModifierForm& form : family.forms()) {
      opcodes.insert(form.opcode);
      bases.insert(split(form.opcode, '.')[0]);
    }
  std::set<const Elsewhere*> used;
  for (const std::string& form : ptx::supported_instructions()) {
    if (opcodes.contains(form)) continue;
    if (const Elsewhere* e = elsewhere(form)) {
      used.insert(e);
      continue;
    }
    // What docs/ptx.md's list spells as a pattern: "ld{.weak,...}.TYPE", "{min,max}... of three numbers".
    const std::string base = form.substr(0, form.find_first_of(".{"));
    EXPECT_TRUE(form.find('{') != form.npos && (base.empty() || bases.contains(base))) << form;
  }
  std::string sources;
  for (const auto& file : std::filesystem::directory_iterator(STITCHWORK_SOURCE_DIR "/tests/simulator"))
    if (file.path().extension() == ".cpp") {
      std::ifstream in(file.path());
      sources.append(std::istreambuf_iterator<char>(in), {});
    }
  for (const Elsewhere& e : kElsewhere) {
    EXPECT_TRUE(used.contains(&e)) << e.begins << " is of no use";
    const Words test = split(e.test, '.');
    if (*e.test != 0) {
      EXPECT_NE(sources.find(fmt::format("TEST({}, {})", test[0], test[1])), sources.npos) << e.test;
    }
  }
}

/// On zeros alone no rounding shows.
TEST(ModifiersJudged, ADifferenceThatNoInputShowsIsReported) {
  std::vector<ModifierForm> forms;
  for (const char* opcode : {"add.rn.f32", "add.rz.f32"})
    forms.push_back(
        {opcode,
         {modifier_program("mov.f32 %f1, 0f00000000;\nOPCODE %f2, %f1, %f1;\nst.global.f32 [%d31], %f2;\n", 1,
                           32, false)}});
  const Words left = judge_all(forms).left;
  EXPECT_NE(std::find(left.begin(), left.end(), "add.rn.f32 and add.rz.f32: the same on all inputs"),
            left.end());
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
