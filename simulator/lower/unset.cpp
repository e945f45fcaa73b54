// Which values may be unset, and how that passes through instructions: what --sanitize=init looks after.
#include <algorithm>
#include <charconv>
#include <string>

#include "simulator/lower/ir.h"

namespace stitchwork::ptx {
namespace {

/// A load or store of memory that ends with the kernel, or may be of such.
bool is_passing(const IrInst& i, std::string_view what) {
  const std::string_view name = sim::isa_rows()[i.row].spelling;
  if (!name.starts_with(what)) return false;
  const std::string_view space = name.substr(what.size());
  return space.starts_with("shared") || space.starts_with("cluster") || space.starts_with("local") ||
         space.starts_with("generic");
}

/// `unset`: the values that are live where the kernel begins, or may come from memory that nothing wrote.
/// Adds those that are computed from them, by way of memory too. Returns whether some are stored there.
bool add_possibly_unset(const IrFunction& f, std::vector<bool>& unset) {
  bool stored = false;
  if (std::find(unset.begin(), unset.end(), true) == unset.end()) return stored;
  for (bool changed = true; changed;) {
    changed = false;
    const auto add = [&](std::uint32_t v) {
      if (!unset[v]) unset[v] = changed = true;
    };
    for (const IrBlock& b : f.blocks) {
      for (const IrInst& i : b.insts) {
        if (stored && is_passing(i, "@ld.")) {
          for (int k = 0; k < i.count; ++k)
            if (i.defs >> k & 1) add(i.o[k]);
        } else if (!stored && is_passing(i, "@st.")) {
          for (int k = 0; k < i.count; ++k)
            if ((i.uses >> k & 1) && unset[i.o[k]]) stored = changed = true;
        } else if (unset_rule(i) != TrackedInst::Rule::kUse && !unset[i.o[0]]) {
          for (int k = 1; k < 6; ++k)
            if ((i.uses >> k & 1) && unset[i.o[k]]) add(i.o[0]);
        }
      }
    }
  }
  return stored;
}

/// Elements of vector loads that nothing is sure to use: compilers load a whole vector and leave out what is
/// beyond its row's end later. Those that an instruction of the load's own block uses, or of one that comes
/// behind it on every path, are used.
void add_late_elements(const IrFunction& f, std::vector<bool>& late) {
  std::vector<std::vector<int>> users(f.values.size());  // blocks
  for (std::size_t b = 0; b < f.blocks.size(); ++b)
    for (const IrInst& i : f.blocks[b].insts)
      for (int k = 0; k < 6; ++k)
        if ((i.uses >> k & 1) && unset_rule(i) != TrackedInst::Rule::kAny)
          users[i.o[k]].push_back(static_cast<int>(b));
  std::vector<int> meet;
  const auto is_behind = [&](int block, int from) {
    for (int at = from; at >= 0; at = meet[static_cast<std::size_t>(at)])
      if (at == block) return true;
    return false;
  };
  for (std::size_t b = 0; b < f.blocks.size(); ++b) {
    for (const IrInst& i : f.blocks[b].insts) {
      if (i.count < 2 || !std::string_view(sim::isa_rows()[i.row].spelling).starts_with("@ld.")) continue;
      if (meet.empty()) meet = immediate_postdominators(f.blocks);
      for (int k = 1; k < i.count; ++k)
        if ((i.defs >> k & 1) && std::ranges::none_of(users[i.o[k]], [&](int user) {
              return is_behind(user, static_cast<int>(b));
            }))
          late[i.o[k]] = true;
    }
  }
}

/// A constant that leaves some bits out.
bool is_mask(const Value& v) {
  return v.kind == Value::Kind::kBits && v.bits != ~0u && v.bits != ~std::uint64_t{0} && v.bits != 0xffff;
}

/// Words that are loaded to have a bit field set in them, and stored again: what of them nothing has written
/// is masked out, bit by bit. Found from the stores back.
void add_bit_fields(const IrFunction& f, std::vector<bool>& unset) {
  using Kind = BitRule::Kind;
  constexpr std::uint8_t kStored = 1, kMaskedAndStored = 2;
  std::vector<std::uint8_t> becomes(f.values.size());
  std::vector<std::uint32_t> open;
  const auto add = [&](std::uint32_t v, std::uint8_t what) {
    if ((becomes[v] & what) == what) return;
    becomes[v] |= what;
    open.push_back(v);
  };
  std::vector<std::vector<const IrInst*>> makers(f.values.size());
  std::vector<bool> otherwise(f.values.size());  // used
  for (const IrBlock& b : f.blocks) {
    for (const IrInst& i : b.insts) {
      for (int k = 0; k < 6; ++k)
        if ((i.uses >> k & 1) && !(is_passing(i, "@st.") && k < i.count)) otherwise[i.o[k]] = true;
      if (bit_rule(i).kind != Kind::kNone || unset_rule(i) == TrackedInst::Rule::kChoice)
        makers[i.o[0]].push_back(&i);
      for (int k = 0; k < i.count && is_passing(i, "@st."); ++k)
        if (i.uses >> k & 1) add(i.o[k], kStored);
    }
  }
  while (!open.empty()) {
    const std::uint32_t v = open.back();
    open.pop_back();
    for (const IrInst* i : makers[v]) {
      const Kind kind = bit_rule(*i).kind;
      for (int k = 1; k < 6; ++k) {
        if (!(i->uses >> k & 1)) continue;
        const bool masks =
            (kind == Kind::kAnd && is_mask(f.values[i->o[3 - k]])) || (kind == Kind::kInsert && k == 2);
        add(i->o[k], masks && (becomes[v] & kStored) ? becomes[v] | kMaskedAndStored : becomes[v]);
      }
    }
  }
  for (const IrBlock& b : f.blocks)
    for (const IrInst& i : b.insts)
      for (int k = 0; k < i.count && is_passing(i, "@ld."); ++k)
        if ((i.defs >> k & 1) &&
            ((becomes[i.o[k]] & kMaskedAndStored) || ((becomes[i.o[k]] & kStored) && !otherwise[i.o[k]])))
          unset[i.o[k]] = true;
}

}  // namespace

TrackedInst::Rule unset_rule(const IrInst& i) {
  using Rule = TrackedInst::Rule;
  const std::string_view name = sim::isa_rows()[i.row].spelling;
  // NVRTC fills the bytes that dp2a does not read with registers that nothing sets.
  if (name.starts_with("@pack") || name.starts_with("prmt")) return Rule::kAny;
  if (name == "@shuffle") return Rule::kExchange;
  if (!i.pure) return Rule::kUse;
  if (name.starts_with("selp")) return Rule::kChoice;
  if (name == "and.pred") return Rule::kAnd;
  if (name == "or.pred") return Rule::kOr;
  return Rule::kAll;
}

namespace {

/// "u32" -> 32; 0 of what is no integer.
int integer_bits(std::string_view type) {
  int bits = 0;
  if (type.empty() || std::string_view("usb").find(type[0]) == std::string_view::npos) return 0;
  std::from_chars(type.data() + 1, type.data() + type.size(), bits);
  return bits;
}

/// By the first form of a row.
BitRule rule_of(const std::string& form) {
  using Kind = BitRule::Kind;
  const std::size_t dot = form.find('.'), last = form.rfind('.');
  const std::string_view base = std::string_view(form).substr(0, dot);
  const std::string_view type = last == form.npos ? "" : std::string_view(form).substr(last + 1);
  const bool is_signed = !type.empty() && type[0] == 's';
  const auto bits = static_cast<std::uint8_t>(integer_bits(type));
  if (form == "@low32") return {Kind::kConvert, 64, 32};
  if (bits == 0) return {};
  if (base == "cvt") {
    const std::string_view to = std::string_view(form).substr(dot + 1, last - dot - 1);
    const auto to_bits = static_cast<std::uint8_t>(integer_bits(to));
    if (to_bits == 0) return {};  // saturates, or makes floats
    return {is_signed ? Kind::kConvertSigned : Kind::kConvert, bits, to_bits};
  }
  static constexpr struct {
    std::string_view base;
    Kind plain, with_sign;
  } kRules[] = {{"mov", Kind::kCopy, Kind::kCopy},
                {"and", Kind::kAnd, Kind::kAnd},
                {"or", Kind::kOr, Kind::kOr},
                {"xor", Kind::kBoth, Kind::kBoth},
                {"not", Kind::kNot, Kind::kNot},
                {"shl", Kind::kLeft, Kind::kLeft},
                {"shr", Kind::kRight, Kind::kRightSigned},
                {"bfi", Kind::kInsert, Kind::kInsert},
                {"bfe", Kind::kExtract, Kind::kExtractSigned}};
  for (const auto& rule : kRules)
    if (rule.base == base && last == dot) return {is_signed ? rule.with_sign : rule.plain, bits, bits};
  return {};
}

}  // namespace

BitRule bit_rule(const IrInst& i) {
  static const std::vector<BitRule> kByRow = [] {
    std::vector<BitRule> rules;
    for (const sim::IsaRow& row : sim::isa_rows())
      rules.push_back(rule_of(sim::expand_spelling(row.spelling)[0]));
    return rules;
  }();
  return i.pure ? kByRow[i.row] : BitRule{};
}

bool find_unset(const IrFunction& f, std::vector<bool>& unset) {
  add_late_elements(f, unset);
  add_bit_fields(f, unset);
  return add_possibly_unset(f, unset);
}

}  // namespace stitchwork::ptx
