// stitchwork quality [MODEL...]
#include "analysis/explain/quality.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct Row {
  std::string model;
  Quality quality;
  const PaperCount* paper = nullptr;
};

Row row_of(const std::string& name, const ModelOptions& open, const Device& target,
           const PlanOptions& options) {
  Row row{name, quality(open.load(name).graph, target, options), nullptr};
  for (const PaperCount& count : paper_counts())
    if (count.dataset == name) row.paper = &count;
  return row;
}

/// The rules that refused most, most first.
std::string refusals_text(const Quality& quality) {
  std::vector<std::pair<int, std::string>> rules;
  for (const auto& [rule, count] : quality.refusals) rules.emplace_back(-count, rule);
  std::ranges::sort(rules);
  std::vector<std::string> parts;
  for (const auto& [count, rule] : rules) parts.push_back(fmt::format("{} {}", -count, rule));
  return fmt::format("{}", fmt::join(parts, ", "));
}

ordered_json to_json(const Row& row) {
  const Quality& q = row.quality;
  ordered_json json = {
      {"model", row.model},
      {"unfused", q.kernels.at("unfused")},
      {"xla", q.kernels.at("xla")},
      {"astitch", q.kernels.at("astitch")},
      {"bound", {{"kernels", q.bound.kernels}, {"stages", q.bound.stages}, {"ops", q.bound.ops}}},
      {"ratio", q.ratio},
      {"reduction", q.reduction},
      {"refusals", q.refusals},
      {"paper", nullptr}};
  if (row.paper)
    json["paper"] = {{"model", row.paper->model},
                     {"xla", row.paper->xla},
                     {"astitch", row.paper->astitch},
                     {"reduction", row.paper->reduction()}};
  return json;
}

}  // namespace

void add_quality(CLI::App& app, Cli& cli) {
  struct QualityArguments {
    PlanArguments plan;
    std::vector<std::string> models;
  };
  CLI::App* command = app.add_subcommand("quality", "AStitch's kernel counts against the fewest possible");
  auto a = std::make_shared<QualityArguments>();
  command->add_option("MODEL", a->models, "datasets or HLO or ONNX files (default: all datasets)");
  a->plan.open.add(*command);
  a->plan.add_device(*command);
  command->add_option("--set", a->plan.set, "knobs of astitch: name=value[,name=value...]")->delimiter(',');
  add_common(*command, cli,
             "  stitchwork quality bert_base crnn\n"
             "  stitchwork quality adam_200 --set remote_stitching=off --json");
  command->callback([&cli, a] {
    if (a->models.empty())
      for (const Dataset& d : datasets()) a->models.push_back(d.name);
    const Device& target = device(a->plan.device);
    std::vector<Row> rows;
    for (const std::string& name : a->models) {
      cli.progress(name);
      rows.push_back(row_of(name, a->plan.open, target, a->plan.options()));
    }
    cli.progress("");
    if (cli.json) {
      ordered_json list = ordered_json::array();
      for (const Row& row : rows) list.push_back(to_json(row));
      return cli.print(
          ordered_json{{"schema", "stitchwork.quality/1"}, {"device", target.id}, {"rows", list}});
    }
    Table table({"model", ">unfused", ">xla", ">astitch", ">bound", ">ratio", ">saved of xla", ">paper's"});
    for (const Row& row : rows) {
      const Quality& q = row.quality;
      table.add({row.model, with_commas(q.kernels.at("unfused")), with_commas(q.kernels.at("xla")),
                 with_commas(q.kernels.at("astitch")), with_commas(q.bound.kernels),
                 fmt::format("{:.2f}", q.ratio), percent(q.reduction),
                 row.paper ? fmt::format("{} ({})", percent(row.paper->reduction()), row.paper->model) : ""});
    }
    cli.print(table.text());
    for (const Row& row : rows)
      if (row.quality.ratio > 1)
        cli.print(fmt::format("{}: kept apart by {}", row.model, refusals_text(row.quality)));
    cli.print(fmt::format("memory kernels on {}; paper: Table 3, 65.7 % on average", target.id));
  });
}

}  // namespace stitchwork
