// The forms of instructions that are no row of the table and whose modifiers do not combine freely: whatever
// is not spelled here is refused.
#include "simulator/isa/forms.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "core/base/error.h"
#include "simulator/isa/isa.h"
#include "simulator/ptx/syntax.h"

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
    "fence.proxy.tensormap::generic.{acquire,release}.{cta,cluster,gpu,sys}",
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
    "prefetch{,.const,.param}.tensormap",
    "prefetchu.L1",
    "redux.sync.{add,min,max}.{u32,s32}",
    "redux.sync.{and,or,xor}.b32",
    "redux.sync.{min,max}{,.abs}{,.NaN}.f32",
    "ret{,.uni}",
    "setmaxnreg.{inc,dec}.sync.aligned.u32",
    "shfl{,.sync}.{up,down,bfly,idx}.b32",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{cta,cluster,gpu,sys}.sync."
    "aligned",
    "tensormap.replace.tile.global_address{,.global,.shared::cta}.b1024.b64",
    "tensormap.replace.tile.global_stride{,.global,.shared::cta}.b1024.b64",
    "tensormap.replace.tile.{rank,box_dim,global_dim,element_stride,elemtype,interleave_layout,swizzle_mode,"
    "fill_"
    "mode}{,.global,.shared::cta}.b1024.b32",
    "trap",
    "vote{,.sync}.{all,any,uni}.pred",
    "vote{,.sync}.ballot.b32",
    "wgmma.{commit_group,fence}.sync.aligned",
    "wgmma.mma_async.sync.aligned.m64n{8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,136,144"
    ",152,160,168,176,184,192,200,208,216,224,232,240,248,256}k16.{f16,f32}.f16.f16",
    "wgmma.mma_async.sync.aligned.m64n{8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,136,144"
    ",152,160,168,176,184,192,200,208,216,224,232,240,248,256}k16.f32.bf16.bf16",
    "wgmma.mma_async.sync.aligned.m64n{8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,136,144"
    ",152,160,168,176,184,192,200,208,216,224,232,240,248,256}k32.{f16,f32}.{e4m3,e5m2}.{e4m3,e5m"
    "2}",
    "wgmma.mma_async.sync.aligned.m64n{8,16,24,32,48,64,80,96,112,128,144,160,176,192,208,224,240"
    ",256}k32{,.satfinite}.s32.{s8,u8}.{s8,u8}",
    "wgmma.mma_async.sync.aligned.m64n{8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,136,144"
    ",152,160,168,176,184,192,200,208,216,224,232,240,248,256}k8.f32.tf32.tf32",
    "wgmma.wait_group.sync.aligned",
};

// Copies in bulk, which begin as those of cp.async; asynchronous stores, which begin as those of st and red.
constexpr std::string_view kBulkPatterns[] = {
    "cp.async.bulk.commit_group",
    "cp.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}",
    "cp.async.bulk.prefetch.L2.global{,.L2::cache_hint}",
    "cp.async.bulk.prefetch.tensor.{1d,2d,3d,4d,5d}.L2.global{,.tile}{,.L2::cache_hint}",
    "cp.async.bulk.prefetch.tensor.{3d,4d,5d}.L2.global.im2col{,.L2::cache_hint}",
    "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4{,.L2::cache_hint}",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{,.multicast::cluster}{,.L2::cache_"
    "hint}",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{,.L2::cache_hint}",
    "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta{,.tile}.bulk_group{,.L2::cache_hint}",
    "cp.async.bulk.tensor.{3d,4d,5d}.global.shared::cta.im2col_no_offs.bulk_group{,.L2::cache_hint}",
    "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group{,.L2::cache_hint}",
    "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cluster.global{,.tile}.mbarrier::complete_tx::bytes{,."
    "multicast::cluster}{,.L2::cache_hint}",
    "cp.async.bulk.tensor.{3d,4d,5d}.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{,.multicast::"
    "cluster}{,.L2::cache_hint}",
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes{,.multicast::"
    "cluster}{,.L2::cache_hint}",
    "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cta.global{,.tile}.mbarrier::complete_tx::bytes{,.L2::"
    "cache_hint}",
    "cp.async.bulk.tensor.{3d,4d,5d}.shared::cta.global.im2col.mbarrier::complete_tx::bytes{,.L2::cache_"
    "hint}",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes{,.L2::cache_hint}",
    "cp.async.bulk.wait_group{,.read}",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint}.{add.u32,add.s32,add.u64,add.f32,"
    "add.f64,"
    "add.noftz.f16,add.noftz.bf16,min.u32,min.s32,min.u64,min.s64,min.f16,min.bf16,max.u32,max.s32,max.u64,"
    "max.s64,max.f16,max.bf16,and.b32,"
    "and.b64,"
    "or.b32,or.b64,xor.b32,xor.b64,inc.u32,dec.u32}",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add.u32,add.s32,add.u64,"
    "min.u32,min.s32,max.u32,max.s32,and.b32,or.b32,xor.b32,inc.u32,dec.u32}",
    "cp.reduce.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{,.tile}"
    ".bulk_group{,.L2::cache_hint}",
    "cp.reduce.async.bulk.tensor.{3d,4d,5d}.global.shared::cta.{add,min,max,inc,dec,and,or,xor}.im2col_no_"
    "offs.bulk_group{,.L2::cache_hint}",
    "red.async.relaxed.cluster{,.shared::cluster}.mbarrier::complete_tx::bytes.{add.u32,add.s32,add.u64,"
    "add.s64,min.u32,min.s32,max.u32,max.s32,inc.u32,dec.u32,and.b32,or.b32,xor.b32}",
    "st.async{,.weak}{,.shared::cluster,.shared::cta}.mbarrier::complete_tx::bytes{,.v2}.{b32,b64,u32,u64,"
    "s32,s64,f32,f64}",
    "st.async{,.weak}{,.shared::cluster,.shared::cta}.mbarrier::complete_tx::bytes.v4.{b32,u32,s32,f32}",
};

std::set<std::string, std::less<>> forms_of(std::span<const std::string_view> patterns) {
  std::set<std::string, std::less<>> forms;
  for (const std::string_view pattern : patterns)
    for (std::string& form : sim::expand_spelling(pattern)) forms.insert(std::move(form));
  return forms;
}
const std::set<std::string, std::less<>>& all_forms() {
  static const std::set<std::string, std::less<>> kForms = forms_of(kPatterns);
  return kForms;
}
const std::set<std::string, std::less<>>& bulk_forms() {
  static const std::set<std::string, std::less<>> kForms = forms_of(kBulkPatterns);
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
std::span<const std::string_view> bulk_patterns() { return kBulkPatterns; }

namespace {

/// Words that ptxas wants in front and in this order.
bool leads(std::string_view modifier) {
  static constexpr std::string_view kLeading[] = {"reduce", "async", "bulk", "prefetch", "tensor"};
  return std::ranges::find(kLeading, modifier) != std::end(kLeading);
}
bool is_vector(std::string_view modifier) { return modifier == "v2" || modifier == "v4" || modifier == "v8"; }
/// A copy's direction is the order of its two.
bool is_space(std::string_view modifier) {
  return modifier == "global" || modifier == "shared::cta" || modifier == "shared::cluster";
}

/// The same for all orders of modifiers; types keep theirs, as that of cvt tells result from source, and so
/// do state spaces.
std::string without_order(std::string_view opcode) {
  std::set<std::string_view> modifiers;
  std::string in_order;
  std::size_t dot = opcode.find('.');
  std::string key(opcode.substr(0, dot));
  bool leading = true;
  while (dot != opcode.npos) {
    const std::size_t next = opcode.find('.', dot + 1);
    const std::string_view m = opcode.substr(dot + 1, next == opcode.npos ? next : next - dot - 1);
    leading = leading && leads(m);
    if (leading)
      key += fmt::format(".{}", m);
    else if (leads(m))
      return "";
    else if (type_bytes(m) > 0 || is_vector(m) || is_space(m))
      in_order += fmt::format(".{}", m);
    else if (!modifiers.insert(m).second)
      return "";
    dot = next;
  }
  for (const std::string_view m : modifiers) key += fmt::format(".{}", m);
  return key + in_order;
}

/// The one of `forms` that has these modifiers in whatever order; "" if there is none.
std::string_view in_any_order(const std::set<std::string, std::less<>>& forms,
                              const std::unordered_map<std::string, std::string_view>& by_key,
                              std::string_view opcode) {
  if (const auto same = forms.find(opcode); same != forms.end()) return *same;
  const std::string key = without_order(opcode);  // "" where a modifier is there twice
  const auto at = by_key.find(key);
  return key.empty() || at == by_key.end() ? std::string_view{} : at->second;
}
std::unordered_map<std::string, std::string_view> keys_of(const std::set<std::string, std::less<>>& forms) {
  std::unordered_map<std::string, std::string_view> keys;
  for (const std::string& form : forms) keys.emplace(without_order(form), form);
  return keys;
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

std::string_view listed_form(std::string_view opcode) {
  static const auto kKeys = keys_of(all_forms());
  return in_any_order(all_forms(), kKeys, opcode);
}
std::string_view bulk_form(std::string_view opcode) {
  if (opcode.find(".async") == opcode.npos) return {};  // most statements
  static const auto kKeys = keys_of(bulk_forms());
  return in_any_order(bulk_forms(), kKeys, opcode);
}

const MissingFeature* missing_feature(std::string_view base) {
  constexpr std::string_view kTextures = "texture and surface instructions are not simulated",
                             kPointer = "read the data through a pointer";
  static constexpr MissingFeature kMissing[] = {
      {"tex", kTextures, kPointer},
      {"tld4", kTextures, kPointer},
      {"txq", kTextures, kPointer},
      {"suld", kTextures, kPointer},
      {"sust", kTextures, kPointer},
      {"sured", kTextures, kPointer},
      {"suq", kTextures, kPointer},
      {"istypep", kTextures, kPointer},
      {"clusterlaunchcontrol",
       "clusterlaunchcontrol, which takes over the work of clusters that have not started, is not simulated",
       "compile for sm_90, or give each block its work by its index or by an atomic counter"},
      {"multimem", "multimem works on memory that several GPUs map together, and one GPU is simulated",
       "load, reduce and store through the pointer of one GPU"},
      {"tcgen05", "tcgen05, the tensor cores of sm_100 with a memory of their own, is not simulated",
       "compile for sm_90a, whose wgmma is; it would take tensor memory and its allocation, instruction "
       "descriptors, and commits to mbarriers"},
  };
  const auto found = std::ranges::find_if(kMissing, [&](const MissingFeature& f) { return f.base == base; });
  return found == std::end(kMissing) ? nullptr : found;
}

namespace {

using ModifiersByBase = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;

void add_modifiers(ModifiersByBase& known, std::string_view form) {
  auto& of_base = known[std::string(base_of(form))];
  for (std::size_t dot = form.find('.'); dot != form.npos;) {
    const std::size_t next = form.find('.', dot + 1);
    of_base.emplace(form.substr(dot + 1, next == form.npos ? next : next - dot - 1));
    dot = next;
  }
}
/// Those of all forms, with or without the asynchronous ones.
ModifiersByBase all_modifiers(bool asynchronous) {
  ModifiersByBase known;
  for (const std::string& form : all_forms()) add_modifiers(known, form);
  if (asynchronous)
    for (const std::string& form : bulk_forms()) add_modifiers(known, form);
  for (const sim::IsaRow& row : sim::isa_rows())
    for (const std::string& form : sim::expand_spelling(row.spelling)) add_modifiers(known, form);
  return known;
}

}  // namespace

std::string unknown_modifier(std::string_view opcode) {
  static const ModifiersByBase kOrdinary = all_modifiers(false), kAsynchronous = all_modifiers(true);
  const bool asynchronous = opcode.find(".bulk") != opcode.npos || opcode.find(".async") != opcode.npos;
  const ModifiersByBase& all = asynchronous ? kAsynchronous : kOrdinary;
  const auto known = all.find(base_of(opcode));
  if (known == all.end()) return "";
  for (std::size_t dot = opcode.find('.'); dot != opcode.npos;) {
    const std::size_t next = opcode.find('.', dot + 1);
    const std::string_view m = opcode.substr(dot + 1, next == opcode.npos ? next : next - dot - 1);
    if (!known->second.contains(m)) return std::string(m);
    dot = next;
  }
  return "";
}

}  // namespace stitchwork::ptx
