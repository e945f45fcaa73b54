// The forms of instructions that are no row of the table and whose modifiers do not combine freely: whatever
// is not spelled here is refused.
#include "simulator/forms.h"

#include <set>
#include <string>
#include <unordered_map>

#include "core/base/error.h"
#include "simulator/isa.h"
#include "simulator/ptx_syntax.h"

namespace stitchwork::ptx {
namespace {

// By the order of the PTX ISA 8.8, chapter 9.7.
constexpr std::string_view kPatterns[] = {
    "activemask.b32",
    "applypriority{,.global}.L2::evict_normal",
    "bar.warp.sync",
    "bar{,.cta}.{sync,arrive}",
    "bar{,.cta}.red.popc.u32",
    "bar{,.cta}.red.{and,or}.pred",
    "barrier{,.cta}.{sync,arrive}{,.aligned}",
    "barrier{,.cta}.red.popc{,.aligned}.u32",
    "barrier{,.cta}.red.{and,or}{,.aligned}.pred",
    "barrier.cluster.arrive{,.release,.relaxed}{,.aligned}",
    "barrier.cluster.wait{,.acquire}{,.aligned}",
    "bra{,.uni}",
    "createpolicy.cvt.L2.b64",
    "createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}{,.L2::evict_first,.L2:"
    ":evict_"
    "unchanged}.b64",
    "createpolicy.range{,.global}.L2::{evict_last,evict_normal,evict_first,evict_unchanged}{,.L2::evict_"
    "first,.L2::"
    "evict_unchanged}.b64",
    "cvta{,.to}.{const,global,local,shared,shared::cta,shared::cluster,param,param::entry}.u64",
    "discard{,.global}.L2",
    "elect.sync",
    "exit",
    "fence{,.sc,.acq_rel,.acquire,.release}.{cta,cluster,gpu,sys}",
    "fence.acquire.sync_restrict::shared::cluster.cluster",
    "fence.release.sync_restrict::shared::cta.cluster",
    "fence.mbarrier_init.release.cluster",
    "fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}",
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
    "griddepcontrol.{launch_dependents,wait}",
    "isspacep.{const,global,local,shared,shared::cta,shared::cluster,param,param::entry}",
    "match.{any,all}.sync.{b32,b64}",
    "membar.{cta,gl,sys}",
    "membar.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}",
    "nanosleep.u32",
    "prefetch{,.global,.local}.{L1,L2}",
    "prefetch.global.{L2::evict_last,L2::evict_normal}",
    "prefetchu.L1",
    "redux.sync.{add,min,max}.{u32,s32}",
    "redux.sync.{and,or,xor}.b32",
    "redux.sync.{min,max}{,.abs}{,.NaN}.f32",
    "ret{,.uni}",
    "setmaxnreg.{inc,dec}.sync.aligned.u32",
    "shfl{,.sync}.{up,down,bfly,idx}.b32",
    "trap",
    "vote{,.sync}.{all,any,uni}.pred",
    "vote{,.sync}.ballot.b32",
};

const std::set<std::string, std::less<>>& all_forms() {
  static const std::set<std::string, std::less<>> kForms = [] {
    std::set<std::string, std::less<>> forms;
    for (const std::string_view pattern : kPatterns)
      for (std::string& form : sim::expand_spelling(pattern)) forms.insert(std::move(form));
    return forms;
  }();
  return kForms;
}

std::string_view base_of(std::string_view opcode) { return opcode.substr(0, opcode.find('.')); }

}  // namespace

bool is_listed_form(std::string_view opcode) { return all_forms().contains(opcode); }

bool has_listed_forms(std::string_view base) {
  const auto at = all_forms().lower_bound(base);
  return at != all_forms().end() && base_of(*at) == base;
}

std::span<const std::string_view> listed_patterns() { return kPatterns; }

namespace {

/// The same for all orders of modifiers; types keep theirs, as that of cvt tells result from source.
std::string without_order(std::string_view opcode) {
  std::set<std::string_view> modifiers;
  std::string types;
  std::size_t dot = opcode.find('.');
  std::string key(opcode.substr(0, dot));
  while (dot != opcode.npos) {
    const std::size_t next = opcode.find('.', dot + 1);
    const std::string_view m = opcode.substr(dot + 1, next == opcode.npos ? next : next - dot - 1);
    if (type_bytes(m) > 0)
      types += fmt::format(".{}", m);
    else if (!modifiers.insert(m).second)
      return "";
    dot = next;
  }
  for (const std::string_view m : modifiers) key += fmt::format(".{}", m);
  return key + types;
}

}  // namespace

int find_row_in_any_order(std::string_view opcode) {
  if (const int row = sim::find_row(opcode); row >= 0) return row;
  static const auto kRows = [] {
    std::unordered_map<std::string, int> rows;
    const auto all = sim::isa_rows();
    for (std::size_t r = 0; r < all.size(); ++r)
      for (const std::string& form : sim::expand_spelling(all[r].spelling))
        rows.emplace(without_order(form), static_cast<int>(r));
    return rows;
  }();
  const auto at = kRows.find(without_order(opcode));
  return at == kRows.end() ? -1 : at->second;
}

std::string unknown_modifier(std::string_view opcode) {
  const std::string_view base = base_of(opcode);
  std::set<std::string, std::less<>> known;
  bool any = false;
  const auto add = [&](std::string_view form) {
    if (base_of(form) != base) return;
    any = true;
    for (std::size_t dot = form.find('.'); dot != form.npos;) {
      const std::size_t next = form.find('.', dot + 1);
      known.emplace(form.substr(dot + 1, next == form.npos ? next : next - dot - 1));
      dot = next;
    }
  };
  for (const std::string& form : all_forms()) add(form);
  for (const sim::IsaRow& row : sim::isa_rows())
    if (std::string_view(row.spelling).starts_with(base))
      for (const std::string& form : sim::expand_spelling(row.spelling)) add(form);
  if (!any) return "";
  for (std::size_t dot = opcode.find('.'); dot != opcode.npos;) {
    const std::size_t next = opcode.find('.', dot + 1);
    const std::string_view m = opcode.substr(dot + 1, next == opcode.npos ? next : next - dot - 1);
    if (!known.contains(m)) return std::string(m);
    dot = next;
  }
  return "";
}

}  // namespace stitchwork::ptx
