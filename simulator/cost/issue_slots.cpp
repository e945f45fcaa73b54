#include "simulator/cost/issue_slots.h"

#include <string>
#include <unordered_map>

namespace stitchwork::sim {
namespace {

// Counted in machine code: ptxas 13.0 at -O3 for sm_75 and sm_90, two and six independent instances of each
// form a kernel, the difference over four (docs/simulator.md, "Issue slots"). Where a slow path is called for
// rare operands, the path that does not call it. sm_75 and sm_90 differ by two slots at most; sm_75's are
// here. Those of fp64 are DADD, DMUL, DFMA and DSETP, the same for both.
constexpr IssueRow kIssueRows[] = {
    // Copies are renamed away, and so are conversions that only drop bits.
    {"cvt.{u32,s32}.{u32,s32,u64,s64}", {0}},
    {"cvt.{u64,s64}.{u64,s64}", {0}},
    // IEEE arithmetic: an approximation, Newton's steps, a check for operands that need the slow path.
    {"div.rn{,.ftz}.f32", {11, 6, 1}},
    {"rcp.{rn,rz}{,.ftz}.f32", {11, 3, 1}},
    {"sqrt.rn{,.ftz}.f32", {11, 4, 1}},
    {"sqrt.rz{,.ftz}.f32", {15, 8, 1}},
    {"div.rn.f64", {17, 3, 1, 8}},
    {"rcp.rn.f64", {12, 1, 1, 5}},
    {"sqrt.rn.f64", {19, 0, 1, 8}},
    {"rsqrt.approx.f64", {15, 0, 1, 5}},
    {"{max,min}.f64", {7, 1, 0, 1}},
    // Approximations keep subnormals by scaling unless .ftz is given.
    {"{ex2,lg2,rsqrt,sqrt}.approx.f32", {4, 3, 1}},
    {"rcp.approx.f32", {7, 6, 1}},
    {"div.approx.f32", {5, 4, 1}},
    {"div.approx.ftz.f32", {2, 1, 1}},
    {"div.full.f32", {8, 7, 1}},
    {"div.full.ftz.f32", {5, 4, 1}},
    {"{sin,cos}.approx{,.ftz}.f32", {2, 1, 1}},
    {"ex2.approx.f16x2", {3, 0, 2}},
    // Division of integers: by a reciprocal in floating point, and corrections.
    {"div.u32", {18, 0, 3}},
    {"div.s32", {25, 0, 3}},
    {"rem.u32", {17, 0, 3}},
    {"rem.s32", {22, 0, 3}},
    {"{div,rem}.{u64,s64}", {70, 0, 3}},  // a called routine, of 66 to 86 instructions
    // 64 bits are two words.
    {"{add,sub}.{u64,s64}", {2}},
    {"neg.s64", {2}},
    {"{and,or,xor,not}.b64", {2}},
    {"shl.b64", {2}},
    {"shr.{b64,u64,s64}", {2}},
    {"brev.b64", {2}},
    {"selp.{b64,u64,s64,f64}", {2}},
    {"{min,max}.{u64,s64}", {4}},
    {"mul.lo.{u64,s64}", {4}},
    {"mad.lo.{u64,s64}", {4}},
    {"mul.hi.u64", {7}},
    {"mul.hi.s64", {17}},
    {"abs.s64", {5}},
    {"clz.b64", {6}},
    {"popc.b64", {3}},
    {"bfe.u64", {8}},
    {"bfe.s64", {17}},
    {"bfi.b64", {12}},
    {"bfind.u64", {8}},
    {"bfind.s64", {14}},
    // Integer forms that the hardware has no instruction for.
    {"mad.hi.{u32,s32}", {2}},
    {"clz.b32", {2}},
    {"add.sat.s32", {5}},
    {"bfe.{u32,s32}", {5}},
    {"bfi.b32", {6}},
    {"fns.b32", {50}},
};

}  // namespace

std::span<const IssueRow> issue_rows() { return kIssueRows; }

IssueSlots issue_slots(std::string_view opcode, Pipe pipe) {
  static const auto index = [] {
    std::unordered_map<std::string, IssueSlots> map;
    for (const IssueRow& row : kIssueRows)
      for (std::string& form : expand_spelling(row.spelling)) map.emplace(std::move(form), row.slots);
    return map;
  }();
  // Moves and address conversions are renamed away, parameters are operands in constant memory.
  if (opcode.starts_with("mov.") || opcode.starts_with("cvta") || opcode.starts_with("ld.param")) return {0};
  const auto it = index.find(std::string(opcode));
  IssueSlots slots = it != index.end()
                         ? it->second
                         : IssueSlots{1, pipe == Pipe::kFp32, pipe == Pipe::kMufu, pipe == Pipe::kFp64};
  const auto others = static_cast<std::uint16_t>(slots.all - slots.fp32 - slots.special - slots.fp64);
  if (pipe == Pipe::kHalf2) slots.half2 = others;
  if (pipe == Pipe::kInt32) slots.int32 = others;
  return slots;
}

}  // namespace stitchwork::sim
