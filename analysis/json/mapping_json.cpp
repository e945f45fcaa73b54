#include "analysis/json/mapping_json.h"

#include <algorithm>
#include <string>

namespace stitchwork {
namespace {

using namespace mapping;

std::string one_of(const JsonCursor& json, std::initializer_list<std::string_view> known) {
  std::string given = json.text();
  if (std::find(known.begin(), known.end(), given) == known.end())
    json.fail(fmt::format("'{}' is none of {}", given, fmt::join(known, ", ")));
  return given;
}

std::int64_t at_least(std::int64_t least, const JsonCursor& json) {
  const std::int64_t value = json.integer();
  if (value < least) json.fail(fmt::format("{} is out of range", value), fmt::format("{} or more", least));
  return value;
}

std::optional<Copy> read_tile(const JsonCursor& json) {
  const auto staged = json.find("staged"), stages = json.find("stages"), bulk = json.find("bulk");
  if (stages) at_least(0, *stages);
  if (!staged || !staged->boolean()) return std::nullopt;
  return copy_of(stages ? stages->small() : 0, bulk && bulk->boolean());
}

Mapping read(const JsonCursor& json) {
  const auto small = [&](const char* key) {
    at_least(1, json.at(key));
    return json.at(key).small();
  };
  const std::string kind =
      one_of(json.at("kind"), {"elementwise", "row_pack", "row_split", "column", "row_serial", "tile"});
  const bool atomic = one_of(json.at("combine"), {"none", "partials", "atomic"}) == "atomic";
  const std::int64_t rows = at_least(0, json.at("rows")), cols = at_least(0, json.at("cols"));
  const std::int64_t of_task = at_least(1, json.at("rows_per_block"));
  const Vectors moved{small("vector"), small("unroll")};
  const int threads = small("threads_per_row"), split = small("split");
  const int blocks = json.find("cluster") ? small("cluster") : 1;
  if (kind == "elementwise") return Elements{rows, of_task, moved, std::nullopt};
  if (kind == "row_serial") return Rows{rows, cols, OneThread{of_task}};
  if (kind == "row_split") return Rows{rows, cols, Segments{threads, moved, split, atomic}};
  if (kind == "column") return Columns{rows, cols, of_task, threads, moved, split, atomic};
  if (kind == "tile") return Patch{rows, cols, of_task, threads, moved.unroll};
  const std::optional<Copy> tile = read_tile(json);
  if (blocks == 1) return Rows{rows, cols, Lanes{threads, of_task, moved, tile}};
  std::optional<PartCopy> part;
  if (tile) part = std::holds_alternative<Async>(*tile) ? PartCopy(std::get<Async>(*tile)) : ByLoads{};
  return Rows{rows, cols, mapping::Cluster{blocks, threads, moved, part}};
}

}  // namespace

nlohmann::ordered_json mapping_to_json(const Mapping& mapping, const Deal& deal) {
  const auto [rows, cols] = extents(mapping);
  const auto [width, unroll] = vectors(mapping);
  nlohmann::ordered_json json = {{"kind", name(mapping)},
                                 {"rows", rows},
                                 {"cols", cols},
                                 {"vector", width},
                                 {"unroll", unroll},
                                 {"threads_per_row", threads_a_row(mapping)},
                                 {"rows_per_block", task_rows(mapping)},
                                 {"tasks", deal.tasks},
                                 {"tasks_per_block", deal.most_tasks()},
                                 {"split", segments(mapping)},
                                 {"combine", combine_name(mapping)},
                                 {"blocks", deal.blocks()}};
  if (is_staged(mapping)) json["staged"] = true;
  if (copy_depth(mapping) > 0) json["stages"] = copy_depth(mapping);
  if (copies_in_bulk(mapping)) json["bulk"] = true;
  if (cluster_blocks(mapping) > 1) json["cluster"] = cluster_blocks(mapping);
  return json;
}

Dealt mapping_from_json(const JsonCursor& json) {
  const Mapping mapping = read(json);
  const int cluster = cluster_blocks(mapping);
  const std::int64_t takers = std::max<std::int64_t>(1, at_least(1, json.at("blocks")) / cluster);
  const Deal deal{at_least(1, json.at("tasks")), takers, 0, cluster};
  const nlohmann::json absent = {{"staged", false}, {"stages", 0}, {"bulk", false}, {"cluster", 1}};
  nlohmann::json written = absent;
  written.update(nlohmann::json(mapping_to_json(mapping, deal)));
  for (const auto& [key, value] : written.items()) {
    const auto said = absent.contains(key) ? json.find(key) : json.at(key);
    if (said && !said->is(value))
      said->fail(fmt::format("beside its other fields a {} mapping has {} here", name(mapping), value.dump()),
                 "change it, or the fields it follows from");
  }
  return {mapping, deal};
}

}  // namespace stitchwork
