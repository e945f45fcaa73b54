// stitchwork diff A.json B.json
#include "analysis/explain/diff.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/verify/verify.h"
#include "cli/cli.h"
#include "cli/peer_plan.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// A plan's file or a compiler's dump.
struct PlanFile {
  std::string path;
  bool dump = false;
  std::string text;
  PlanHeader header;  ///< of a dump: its own model
};

PlanFile read_plan(const std::string& path) {
  if (is_dump(path)) return {path, true, {}, {read_dump(path).model, {}}};
  std::string text = read_file(path);
  PlanHeader header = read_plan_header(text, path);
  return {path, false, std::move(text), std::move(header)};
}

/// The model of the plans: a planner's names it, and a dump is of whatever computes the same.
Model model_of(const PlanFile& a, const PlanFile& b, const ModelOptions& open) {
  if (!a.dump && !b.dump && a.header.model_sha256 != b.header.model_sha256)
    throw Error(b.path, 0, 0,
                fmt::format("plans {}, but {} plans {}", b.header.model_path, a.path, a.header.model_path),
                "diff compares plans of the same version of one model");
  const PlanFile& names_it = a.dump ? b : a;
  Model model = open.load(model_of_plan(names_it.header.model_path, names_it.path));
  for (const PlanFile* file : {&a, &b})
    if (!file->dump && model.graph.source_sha256 != file->header.model_sha256)
      throw Error(file->path, 0, 0, fmt::format("made for another version of {}", file->header.model_path),
                  "plan the model again");
  return model;
}

FusionPlan plan_in(const Cli& cli, const Model& model, const PlanFile& file, bool timed) {
  if (file.dump) return shown_peer(cli, file.path, model, timed).plan;
  FusionPlan plan = plan_from_json(model.graph, file.text, file.path);
  require_valid(model.graph, device(plan.device), plan, file.path);
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

struct DiffArguments {
  std::string a, b;
  std::vector<std::string> fail_on;
  ModelOptions open;
  bool untimed = false;
};

void diff_files(Cli& cli, const DiffArguments& arguments) {
  const std::string &path_a = arguments.a, &path_b = arguments.b;
  const std::vector<std::string>& fail_on = arguments.fail_on;
  if (arguments.untimed && std::ranges::find(fail_on, "slower") != fail_on.end())
    throw Error("--fail-on slower needs times", "leave out --untimed");
  const PlanFile file_a = read_plan(path_a), file_b = read_plan(path_b);
  const Model model = model_of(file_a, file_b, arguments.open);
  const FusionPlan a = plan_in(cli, model, file_a, !arguments.untimed),
                   b = plan_in(cli, model, file_b, !arguments.untimed);
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
  auto a = std::make_shared<DiffArguments>();
  command->add_option("A", a->a, "plan JSON, or a compiler's dump (docs/peers.md)")->required();
  command->add_option("B", a->b, "likewise")->required();
  command
      ->add_option("--fail-on", a->fail_on,
                   "exit with code 3 if B has more-kernels or is slower (comma-separated)")
      ->delimiter(',')
      ->check(CLI::IsMember({"more-kernels", "slower"}));
  add_untimed(*command, a->untimed);
  a->open.add(*command);
  add_common(*command, cli,
             "  stitchwork plan fig7 --planner xla -o a.json && stitchwork plan fig7 -o b.json\n"
             "  stitchwork diff a.json b.json --fail-on more-kernels,slower\n"
             "  stitchwork plan fig7 --device a100-sxm-40 -o ours.json && stitchwork diff dumps/fig7-a100 "
             "ours.json");
  command->callback([&cli, a] { diff_files(cli, *a); });
}

}  // namespace stitchwork
