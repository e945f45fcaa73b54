// What modifiers of loads and stores go together.
#include <algorithm>

#include "core/base/error.h"
#include "simulator/lower/lower.h"

namespace stitchwork::ptx {
namespace {

namespace access {
enum Class { kOrder, kScope, kSpace, kNc, kMmio, kCache, kL1, kL2, kHint, kPrefetch, kVector };
struct Modifier {
  std::string_view name;
  Class of;
  bool load = true, store = true;
};
constexpr Modifier kKnown[] = {
    {"weak", kOrder},
    {"volatile", kOrder},
    {"relaxed", kOrder},
    {"acquire", kOrder, true, false},
    {"release", kOrder, false, true},
    {"cta", kScope},
    {"cluster", kScope},
    {"gpu", kScope},
    {"sys", kScope},
    {"global", kSpace},
    {"const", kSpace, true, false},
    {"shared", kSpace},
    {"shared::cta", kSpace},
    {"shared::cluster", kSpace},
    {"local", kSpace},
    {"param", kSpace},
    {"param::entry", kSpace},
    {"param::func", kSpace},
    {"nc", kNc, true, false},
    {"mmio", kMmio},
    {"ca", kCache, true, false},
    {"cg", kCache},
    {"cs", kCache},
    {"lu", kCache, true, false},
    {"cv", kCache, true, false},
    {"wb", kCache, false, true},
    {"wt", kCache, false, true},
    {"L1::no_allocate", kL1},
    {"L1::evict_last", kL1},
    {"L1::evict_first", kL1},
    {"L1::evict_normal", kL1},
    {"L1::evict_unchanged", kL1},
    {"L2::evict_last", kL2},
    {"L2::evict_first", kL2},
    {"L2::evict_normal", kL2},
    {"L2::cache_hint", kHint},
    {"L2::64B", kPrefetch, true, false},
    {"L2::128B", kPrefetch, true, false},
    {"L2::256B", kPrefetch, true, false},
    {"v2", kVector},
    {"v4", kVector},
    {"v8", kVector},
};
}  // namespace access

}  // namespace

/// Of each class at most one, in any order, which ptxas accepts too; and what excludes each other.
void Lowering::check_access_modifiers(const Opcode& op, bool is_store) const {
  using namespace access;
  const std::string& opcode = fn_.body[static_cast<std::size_t>(current_)].opcode;
  std::string_view given[kVector + 1] = {};
  for (std::size_t k = 0; k + 1 < op.modifiers.size(); ++k) {
    const std::string_view m = op.modifiers[k];
    const auto known =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Modifier& x) { return x.name == m; });
    if (known == std::end(kKnown) || !(is_store ? known->store : known->load))
      fail(fmt::format("instruction '{}' is not supported: no form of '{}' has '.{}'", opcode, op.base, m),
           "list the supported forms with: stitchwork ptx isa");
    if (!given[known->of].empty())
      fail(fmt::format("{}: '.{}' does not go with '.{}'", opcode, m, given[known->of]));
    given[known->of] = m;
  }
  const std::string_view order = given[kOrder];
  const bool scoped = order == "relaxed" || order == "acquire" || order == "release";
  if (scoped && given[kScope].empty()) fail(fmt::format("{}: '.{}' wants a scope", opcode, order));
  const auto excludes = [&](std::string_view a, std::string_view b) {
    if (!a.empty() && !b.empty()) fail(fmt::format("{}: '.{}' does not go with '.{}'", opcode, b, a));
  };
  if (!scoped) excludes(order.empty() ? op.base : order, given[kScope]);
  excludes(given[kNc], order);
  if (!given[kNc].empty() && given[kSpace] != "global")
    fail(fmt::format("{}: '.nc' is for '.global' alone", opcode));
  const std::string_view space = given[kSpace];
  const bool global = space.empty() || space == "global", ordered = global || space.starts_with("shared");
  if (!given[kMmio].empty() && (order != "relaxed" || given[kScope] != "sys" || !global))
    fail(fmt::format("{}: '.mmio' wants '.relaxed.sys', and no space but '.global'", opcode));
  if (scoped || order == "volatile") excludes(order, given[kCache]);
  // As ptxas has it.
  if (order == "volatile") excludes(order, given[kL1]);
  excludes(given[kCache], given[kL1]);
  if (!ordered && order != "weak") excludes(space, order);
  // PTX ISA, ld and st: .level2::eviction_priority goes with vectors of 32 bytes.
  const int bytes = type_bytes(op.last());
  if (!given[kL2].empty() &&
      !((given[kVector] == "v8" && bytes == 4) || (given[kVector] == "v4" && bytes == 8)))
    fail(fmt::format("{}: '.{}' wants a vector of 32 bytes, .v8.b32 or .v4.b64", opcode, given[kL2]));
  for (const Class hint : {kL1, kL2, kHint, kPrefetch})
    if (!global) excludes(space, given[hint]);
}

}  // namespace stitchwork::ptx
