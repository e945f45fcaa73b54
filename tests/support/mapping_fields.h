// A mapping and its deal by the fields of a plan's JSON: to write one down, to change single fields of it,
// and to look at them. What is no mapping throws Error where it is taken for one, as where a plan is read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "analysis/json/mapping_json.h"
#include "analysis/plan/plan.h"

namespace stitchwork::testing {

enum class MappingKind : std::uint8_t { kElementwise, kRowPack, kRowSplit, kColumn, kRowSerial, kTile };
inline constexpr std::array<std::string_view, 6> kMappingKinds = {"elementwise", "row_pack",   "row_split",
                                                                  "column",      "row_serial", "tile"};
enum class Combine : std::uint8_t { kNone, kPartials, kAtomic };
inline constexpr std::array<std::string_view, 3> kCombines = {"none", "partials", "atomic"};

struct MappingFields {
  MappingKind kind = MappingKind::kElementwise;
  std::int64_t rows = 1, cols = 1;
  int vector = 1, unroll = 1, threads_per_row = 1;
  std::int64_t rows_per_block = 1, tasks = 1, tasks_per_block = 1;
  int split = 1;
  Combine combine = Combine::kNone;
  std::int64_t blocks = 1;
  bool staged = false;
  int stages = 0;
  bool bulk = false;
  int cluster = 1;

  MappingFields() = default;
  MappingFields(const Mapping& mapping, const Deal& deal) {
    const nlohmann::json json = mapping_to_json(mapping, deal);
    const auto place = [&](const char* key, const auto& names) {
      return std::find(names.begin(), names.end(), json.at(key).get<std::string>()) - names.begin();
    };
    kind = static_cast<MappingKind>(place("kind", kMappingKinds));
    combine = static_cast<Combine>(place("combine", kCombines));
    visit(*this, [&](const char* key, auto& field) { field = json.value(key, field); });
  }
  MappingFields(const Dealt& dealt) : MappingFields(dealt.mapping, dealt.deal) {}
  MappingFields(const Group& group) : MappingFields(group.mapping, group.deal) {}

  Dealt dealt() const {
    nlohmann::json json = {{"kind", kMappingKinds[static_cast<std::size_t>(kind)]},
                           {"combine", kCombines[static_cast<std::size_t>(combine)]}};
    visit(*this, [&](const char* key, const auto& field) { json[key] = field; });
    const JsonSource source{"fields", "the schema"};
    return mapping_from_json(JsonCursor(json, "mapping", source));
  }
  operator Mapping() const { return dealt().mapping; }
  operator Dealt() const { return dealt(); }
  Deal deal() const { return dealt().deal; }

  /// The deal still begins where the group's did.
  void give(Group& group) const {
    const Dealt mine = dealt();
    const std::int64_t first_block = group.deal.first_block;
    group.mapping = mine.mapping;
    group.deal = mine.deal;
    group.deal.first_block = first_block;
  }

  bool operator==(const MappingFields&) const = default;

 private:
  /// The fields that are numbers or flags.
  template <typename Fields, typename Visit>
  static void visit(Fields& of, const Visit& field) {
    field("rows", of.rows);
    field("cols", of.cols);
    field("vector", of.vector);
    field("unroll", of.unroll);
    field("threads_per_row", of.threads_per_row);
    field("rows_per_block", of.rows_per_block);
    field("tasks", of.tasks);
    field("tasks_per_block", of.tasks_per_block);
    field("split", of.split);
    field("blocks", of.blocks);
    field("staged", of.staged);
    field("stages", of.stages);
    field("bulk", of.bulk);
    field("cluster", of.cluster);
  }
};

inline std::string to_text(const MappingFields& fields) {
  const Dealt dealt = fields;
  return stitchwork::to_text(dealt.mapping, dealt.deal);
}

template <typename Edit>
void edit_mapping(Group& group, const Edit& edit) {
  MappingFields fields = group;
  edit(fields);
  fields.give(group);
}

}  // namespace stitchwork::testing
