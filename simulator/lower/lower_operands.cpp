// What the file is for; operands: what a register, a constant, a variable or a special register is as a
// value, and whether it fits.
#include <algorithm>
#include <bit>
#include <charconv>

#include "core/base/error.h"
#include "simulator/lower/lower.h"

namespace stitchwork::ptx {

int Lowering::ptx_version() const {
  const std::string& text = file_.version;
  int major = 0, minor = 0;
  const auto [dot, error] = std::from_chars(text.data(), text.data() + text.size(), major);
  if (error == std::errc() && dot != text.data() + text.size())
    std::from_chars(dot + 1, text.data() + text.size(), minor);
  return 10 * major + minor;
}

int Lowering::target_sm() const {
  int sm = 0;
  if (file_.target.starts_with("sm_"))
    std::from_chars(file_.target.data() + 3, file_.target.data() + file_.target.size(), sm);
  return sm;
}

RegisterClass class_of_letter(char letter) {
  return letter == 'p'                    ? RegisterClass::kPred
         : letter == 'd' || letter == 'e' ? RegisterClass::k64
         : letter == 'h' || letter == 'x' ? RegisterClass::k16
                                          : RegisterClass::k32;
}

namespace {

bool is_clock(std::string_view name) {
  static constexpr std::string_view kClocks[] = {"%clock",       "%clock_hi",       "%clock64",
                                                 "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"};
  return std::ranges::find(kClocks, name) != std::end(kClocks);
}

}  // namespace

std::uint32_t Lowering::special(std::string_view name, RegisterClass* cls) {
  using S = Special;
  static const std::map<std::string_view, Special> kNames = {
      {"%tid.x", S::kTidX},
      {"%tid.y", S::kTidY},
      {"%tid.z", S::kTidZ},
      {"%ntid.x", S::kNtidX},
      {"%ntid.y", S::kNtidY},
      {"%ntid.z", S::kNtidZ},
      {"%ctaid.x", S::kCtaidX},
      {"%ctaid.y", S::kCtaidY},
      {"%ctaid.z", S::kCtaidZ},
      {"%nctaid.x", S::kNctaidX},
      {"%nctaid.y", S::kNctaidY},
      {"%nctaid.z", S::kNctaidZ},
      {"%laneid", S::kLaneId},
      {"%warpid", S::kWarpId},
      {"%nwarpid", S::kNwarpId},
      {"%smid", S::kSmId},
      {"%nsmid", S::kNsmId},
      {"%gridid", S::kGridId},
      {"%lanemask_eq", S::kLaneMaskEq},
      {"%lanemask_le", S::kLaneMaskLe},
      {"%lanemask_lt", S::kLaneMaskLt},
      {"%lanemask_ge", S::kLaneMaskGe},
      {"%lanemask_gt", S::kLaneMaskGt},
      {"%dynamic_smem_size", S::kDynamicSharedSize},
      {"%total_smem_size", S::kTotalSharedSize},
      {"%reserved_smem_offset_begin", S::kReservedSharedBegin},
      {"%reserved_smem_offset_end", S::kReservedSharedEnd},
      {"%reserved_smem_offset_cap", S::kReservedSharedSize},
      {"%reserved_smem_offset_0", S::kReservedShared0},
      {"%reserved_smem_offset_1", S::kReservedShared1},
      {"%envreg1", S::kGridWorkspaceHigh},
      {"%envreg2", S::kGridWorkspaceLow},
      {"%clusterid.x", S::kClusterIdX},
      {"%clusterid.y", S::kClusterIdY},
      {"%clusterid.z", S::kClusterIdZ},
      {"%nclusterid.x", S::kNclusterIdX},
      {"%nclusterid.y", S::kNclusterIdY},
      {"%nclusterid.z", S::kNclusterIdZ},
      {"%cluster_ctaid.x", S::kClusterCtaidX},
      {"%cluster_ctaid.y", S::kClusterCtaidY},
      {"%cluster_ctaid.z", S::kClusterCtaidZ},
      {"%cluster_nctaid.x", S::kClusterNctaidX},
      {"%cluster_nctaid.y", S::kClusterNctaidY},
      {"%cluster_nctaid.z", S::kClusterNctaidZ},
      {"%cluster_ctarank", S::kClusterCtarank},
      {"%cluster_nctarank", S::kClusterNctarank},
      {"%is_explicit_cluster", S::kIsExplicitCluster}};
  const auto it = kNames.find(name);
  if (it == kNames.end()) return kNone;
  *cls = it->second == S::kIsExplicitCluster ? RegisterClass::kPred : RegisterClass::k32;
  program_.info.uses_clusters |= it->second >= S::kClusterIdX;
  program_.uses_reserved_shared |= it->second >= S::kReservedSharedBegin && it->second <= S::kReservedShared1;
  return value({Value::Kind::kSpecial, *cls, 0, 0, static_cast<std::uint32_t>(it->second)});
}

std::uint32_t Lowering::address_of(std::string_view name, RegisterClass cls, std::int64_t addend) {
  if (const auto it = shared_offset_.find(name); it != shared_offset_.end()) {
    return value({Value::Kind::kShared, cls, static_cast<std::uint64_t>(it->second + addend), 0, 0});
  }
  if (const auto it = local_offset_.find(name); it != local_offset_.end()) {
    return constant(cls, static_cast<std::uint64_t>(it->second + addend));
  }
  for (const ParameterInfo& p : fn_.info.parameters) {
    if (p.name == name) return constant(cls, static_cast<std::uint64_t>(p.offset + addend));
  }
  for (std::uint32_t g = 0; g < file_.globals.size(); ++g) {
    if (file_.globals[g].name != name) continue;
    if (file_.globals[g].linkage == Linkage::kExternal)
      fail(fmt::format("'{}' is declared .extern, and no module of the program defines it", name),
           "name the module that does, too, in a script (docs/ptx_programs.md)");
    return value({Value::Kind::kVariable, RegisterClass::k64, static_cast<std::uint64_t>(addend), 8, g});
  }
  for (std::size_t f = 0; f < file_.device_functions.size(); ++f)
    if (file_.device_functions[f].info.name == name) return constant(RegisterClass::k64, function_address(f));
  fail(fmt::format("'{}' is not declared", name));
}

void Lowering::wrong_size(std::uint32_t reg) const {
  fail(fmt::format("register '{}' has the wrong size for {}", fn_.registers[reg].name,
                   fn_.body[static_cast<std::size_t>(current_)].opcode));
}

/// A reading of a clock, of which names that end in "_hi" are the upper half.
std::uint32_t Lowering::clock_value(std::string_view name) {
  const bool upper = name.ends_with("_hi"), wide = upper || name == "%clock64" || name == "%globaltimer";
  const std::uint32_t v = temporary(wide ? RegisterClass::k64 : RegisterClass::k32);
  IrInst& i = emit("@clock", 1);
  i.o[0] = v;
  i.flags = wide;
  if (!upper) return v;
  const std::uint32_t shifted = temporary(RegisterClass::k64), half = temporary(RegisterClass::k32);
  emit_simple(sim::find_row("shr.u64"), {shifted, v, constant(RegisterClass::k32, 32)});
  emit_simple(sim::find_row("@low32"), {half, shifted});
  return half;
}

std::uint32_t Lowering::source(const Operand& o, char letter, bool may_be_wider) {
  const RegisterClass want = class_of_letter(letter);
  using Kind = Operand::Kind;
  std::uint32_t v = kNone;
  switch (o.kind) {
    case Kind::kRegister:
      v = static_cast<std::uint32_t>(o.reg);
      if (const RegisterClass have = class_of(v); have != want && (have != RegisterClass::kPred) &&
                                                  (want != RegisterClass::kPred) &&
                                                  !(may_be_wider && have > want))
        wrong_size(v);
      break;
    case Kind::kInteger:
      if (want == RegisterClass::kPred) return constant(want, o.bits != 0);
      return constant(want, o.bits);
    case Kind::kFloat32:
      if (want == RegisterClass::k64) {
        return constant(want,
                        std::bit_cast<std::uint64_t>(double{std::bit_cast<float>(std::uint32_t(o.bits))}));
      }
      return constant(want, o.bits);
    case Kind::kFloat64:
      if (want == RegisterClass::k64) return constant(want, o.bits);
      return constant(want, std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.bits))));
    case Kind::kName: {
      if (o.name == "WARP_SZ") return constant(want, 32);
      if (o.name == "%current_graph_exec") return constant(want, 0);  // no kernel here is of a graph
      if (is_clock(o.name)) {
        v = clock_value(o.name);
        break;
      }
      RegisterClass cls;
      v = special(o.name, &cls);
      if (v == kNone) {
        if (o.name[0] == '%') fail(fmt::format("special register '{}' is not supported", o.name));
        v = address_of(o.name, want == RegisterClass::k64 ? RegisterClass::k64 : RegisterClass::k32,
                       o.offset);
      }
      break;
    }
    default:
      fail("this kind of operand does not fit here");
  }
  const RegisterClass have = class_of(v);
  const bool want_narrow = want == RegisterClass::k16 || want == RegisterClass::k32;
  if ((have == RegisterClass::kPred) != (want == RegisterClass::kPred)) {
    fail("a predicate is used as a value or a value as a predicate");
  }
  if (have == RegisterClass::k64 && want_narrow) {
    const std::uint32_t t = temporary(RegisterClass::k32);
    emit_simple(sim::find_row("@low32"), {t, v});
    v = t;
  } else if (want == RegisterClass::k64 && have != RegisterClass::k64) {
    const std::uint32_t t = temporary(RegisterClass::k64);
    emit_simple(sim::find_row("cvt.u64.u32"), {t, v});
    v = t;
  }
  if (want == RegisterClass::k16 && have != RegisterClass::k16 && have != RegisterClass::kPred &&
      f_.values[v].kind == Value::Kind::kRegister) {
    const std::uint32_t t = temporary(RegisterClass::k32);
    emit_simple(sim::find_row("@low16"), {t, v});
    v = t;
  }
  if (o.negated) {
    const std::uint32_t t = temporary(RegisterClass::kPred);
    emit_simple(sim::find_row("not.pred"), {t, v});
    v = t;
  }
  return v;
}

char Lowering::letter_of(const Operand& o, int bytes) const {
  if (o.kind != Operand::Kind::kRegister) return bytes == 8 ? 'd' : 'r';
  const auto v = static_cast<std::uint32_t>(o.reg);
  const RegisterClass cls = class_of(v);
  const int held = cls == RegisterClass::k64   ? 8
                   : cls == RegisterClass::k32 ? 4
                   : cls == RegisterClass::k16 ? 2
                                               : 0;
  if (held < bytes) wrong_size(v);
  return held == 8 ? 'd' : held == 4 ? 'r' : 'h';
}

std::uint32_t Lowering::destination(const Operand& o, char letter) {
  const bool wide = letter == 'd' || letter == 'e';
  if (o.kind == Operand::Kind::kSink) {
    return temporary(letter == 'p' ? RegisterClass::kPred : wide ? RegisterClass::k64 : RegisterClass::k32);
  }
  if (o.kind != Operand::Kind::kRegister) fail("the first operand must be a register");
  const auto v = static_cast<std::uint32_t>(o.reg);
  if (class_of(v) != class_of_letter(letter)) wrong_size(v);
  return v;
}

}  // namespace stitchwork::ptx
