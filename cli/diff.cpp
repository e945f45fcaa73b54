// stitchwork diff A.json B.json
#include "analysis/explain/diff.h"

#include <nlohmann/json.hpp>

#include "analysis/plan/plan_json.h"
#include "analysis/verify/verify.h"
#include "cli/cli.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct PlanFile {
  std::string path, text;
  PlanHeader header;
};

PlanFile read_plan(const std::string& path) {
  std::string text = read_file(path);
  PlanHeader header = read_plan_header(text, path);
  return {path, std::move(text), std::move(header)};
}

FusionPlan parse_plan(const Graph& graph, const PlanFile& file) {
  FusionPlan plan = plan_from_json(graph, file.text, file.path);
  require_valid(graph, device(plan.device), plan, file.path);
  return plan;
}

/// A side of the document: whose plan it is, then its totals.
ordered_json side(const PlanFile& file, const FusionPlan& plan, const PlanTotals& totals) {
  ordered_json result{{"file", file.path}, {"planner", plan.planner}, {"device", plan.device}};
  result.update(totals_to_json(totals));
  return result;
}

/// Conditions of --fail-on.
struct Condition {
  std::string_view name, said;
  bool (*holds)(const PlanTotals& a, const PlanTotals& b);
};
constexpr Condition kConditions[] = {
    {"more-kernels", "has more memory kernels",
     [](const PlanTotals& a, const PlanTotals& b) { return b.memory_kernels > a.memory_kernels; }},
    {"slower", "is slower",
     [](const PlanTotals& a, const PlanTotals& b) { return b.predicted_us > a.predicted_us; }},
};

void diff_files(Cli& cli, const std::string& path_a, const std::string& path_b,
                const std::vector<std::string>& fail_on, const ModelOptions& open) {
  const PlanFile file_a = read_plan(path_a), file_b = read_plan(path_b);
  if (file_a.header.model_sha256 != file_b.header.model_sha256)
    throw Error(
        path_b, 0, 0,
        fmt::format("plans {}, but {} plans {}", file_b.header.model_path, path_a, file_a.header.model_path),
        "diff compares plans of the same version of one model");
  const Model model = open.load(file_a.header.model_path);
  if (model.graph.source_sha256 != file_a.header.model_sha256)
    throw Error(path_a, 0, 0, fmt::format("made for another version of {}", file_a.header.model_path),
                "plan the model again");
  const FusionPlan a = parse_plan(model.graph, file_a), b = parse_plan(model.graph, file_b);
  const PlanDiff result = diff(model.graph, a, b);
  std::vector<std::string_view> failed, said;
  for (const Condition& condition : kConditions)
    if (std::find(fail_on.begin(), fail_on.end(), condition.name) != fail_on.end() &&
        condition.holds(result.a, result.b)) {
      failed.push_back(condition.name);
      said.push_back(condition.said);
    }
  if (!failed.empty()) cli.exit_code = kExitDifference;
  if (cli.json) {
    ordered_json document{{"schema", "stitchwork.diff/1"},
                          {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
                          {"method", "modelled"},
                          {"a", side(file_a, a, result.a)},
                          {"b", side(file_b, b, result.b)}};
    document.update(changes_to_json(result));
    document["failed"] = failed;
    return cli.print(document);
  }
  cli.print(fmt::format("A {}: {} on {}\nB {}: {} on {}\n", path_a, a.planner, a.device, path_b, b.planner,
                        b.device) +
            to_text(result));
  for (const std::string_view what : said) cli.err << fmt::format("stitchwork: {}: B {}\n", path_b, what);
}

}  // namespace

void add_diff(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("diff", "what changed between two plans of a model, and why");
  auto a = std::make_shared<std::string>();
  auto b = std::make_shared<std::string>();
  auto fail_on = std::make_shared<std::vector<std::string>>();
  command->add_option("A", *a, "plan JSON")->required();
  command->add_option("B", *b, "plan JSON")->required();
  command
      ->add_option("--fail-on", *fail_on,
                   "exit with code 3 if B has more-kernels or is slower (comma-separated)")
      ->delimiter(',')
      ->check(CLI::IsMember({"more-kernels", "slower"}));
  auto open = std::make_shared<ModelOptions>();
  open->add(*command);
  add_common(*command, cli,
             "  stitchwork plan fig7 --planner xla -o a.json && stitchwork plan fig7 -o b.json\n"
             "  stitchwork diff a.json b.json --fail-on more-kernels,slower");
  command->callback([&cli, a, b, fail_on, open] { diff_files(cli, *a, *b, *fail_on, *open); });
}

}  // namespace stitchwork
