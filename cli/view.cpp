// stitchwork view MODEL --planners a,b -o view.html
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/explain/compare.h"
#include "cli/cli.h"
#include "cli/peer_plan.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/profile/profile.h"
#include "gui/page/page.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

struct ViewArguments {
  PlanArguments plan;
  std::vector<std::string> planners{"astitch", "xla"};
  const CLI::Option* given = nullptr;   ///< --planners
  const CLI::Option* device = nullptr;  ///< --device
  std::vector<std::string> runs, with;
  bool untimed = false;
  std::string profile;
  std::optional<std::int64_t> iterations;  ///< of the profile
  std::string output;
};

void check_arguments(const ViewArguments& a) {
  if (a.plan.model.empty() && a.plan.plan_file.empty()) throw CLI::RequiredError("MODEL");
  if (fs::path(a.output).extension() != ".html")
    throw Error(a.output, 0, 0, "a page is written as .html", "for example -o view.html");
  for (auto at = a.planners.begin(); at != a.planners.end(); ++at) {
    planner(*at);
    if (std::find(a.planners.begin(), at, *at) != at)
      throw Error(fmt::format("planner {} is given twice", *at), "name each once");
  }
}

/// The model with the plans that are there: saved, or compilers'.
struct Viewed {
  Model model;
  const Device* device = nullptr;
  std::vector<FusionPlan> plans;
  std::vector<std::string> planners;  ///< still to be asked
};

Viewed open_plans(const Cli& cli, const ViewArguments& a, OpTrace& trace) {
  Viewed viewed;
  viewed.planners = a.planners;
  std::vector<std::string> dumps = a.with;
  const std::string first = dump_of(a.plan);
  if (!first.empty()) dumps.insert(dumps.begin(), first);
  if (first.empty() && !a.plan.plan_file.empty()) {
    PlanArguments saved = a.plan;
    saved.set.clear();
    saved.override_file.clear();
    saved.library_file.clear();
    Planned planned = load_planned(saved, false, &trace);
    viewed.model = std::move(planned.model);
    viewed.device = planned.device;
    viewed.plans.push_back(std::move(planned.plan));
  } else if (a.plan.model.empty() || a.plan.model == first) {
    viewed.model = load_model(read_dump(first).model, {}, &trace);
  } else {
    viewed.model = a.plan.open.load(a.plan.model, &trace);
  }
  if (a.given->count() == 0 && (!viewed.plans.empty() || !first.empty())) viewed.planners.clear();
  for (const std::string& dump : dumps) {
    if (a.device->count() > 0) require_card(read_dump(dump), device(a.plan.device));
    viewed.plans.push_back(shown_peer(cli, dump, viewed.model, !a.untimed).plan);
  }
  if (viewed.device == nullptr)
    viewed.device =
        &device(dumps.empty() || a.device->count() > 0 ? a.plan.device : viewed.plans.back().device);
  return viewed;
}

void view(Cli& cli, const ViewArguments& a) {
  check_arguments(a);
  // Before planning: what cannot be read is said at once.
  std::optional<Profile> profile;
  if (!a.profile.empty()) profile = read_profile(a.profile);
  OpTrace trace;
  Viewed viewed = open_plans(cli, a, trace);
  const Model& model = viewed.model;
  std::vector<FusionPlan>& plans = viewed.plans;
  PlanOptions options = a.plan.options(true);
  for (const std::string& name : viewed.planners) {
    cli.progress("planning with " + name);
    plans.push_back(make_plan(model.graph, *viewed.device, name, options_for(planner(name), options)));
  }
  std::vector<gui::PagePlan> shown;
  for (const FusionPlan& plan : plans) {
    const auto alike = [&](const gui::PagePlan& other) { return other.plan->planner == plan.planner; };
    const bool again = std::ranges::any_of(shown, alike);
    shown.push_back({&plan, {}, {}, {}, again ? fmt::format("{} ({})", plan.planner, shown.size() + 1) : ""});
  }
  for (const std::string& run : a.runs) gui::add_run(model, shown, read_file(run), run);
  if (profile) gui::add_profile(model, trace, shown, *profile, a.iterations);
  cli.progress("laying out");
  const std::string page = gui::plans_page(model, shown);
  cli.progress("");
  write_file(a.output, page);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::vector<std::string> names;
  for (const FusionPlan& plan : plans) {
    names.push_back(plan.planner);
    list.push_back(
        {{"planner", plan.planner},
         {"memory_kernels", plan.counts.memory_kernels},
         {"library_calls", plan.counts.library_calls},
         {"predicted_us", times_method(plan).empty() ? nlohmann::ordered_json()
                                                     : nlohmann::ordered_json(plan.predicted_us)}});
  }
  if (cli.json)
    return cli.print(nlohmann::ordered_json{
        {"schema", "stitchwork.view/1"},
        {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
        {"device", viewed.device->id},
        {"plans", list},
        {"file", a.output}});
  cli.print(fmt::format("{} shows {} planned by {}", a.output, model.graph.source, fmt::join(names, ", ")));
}

}  // namespace

void add_view(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("view", "plans of a model as one page: graphs, kernels, and why");
  auto a = std::make_shared<ViewArguments>();
  a->plan.add_model(*command);
  a->device = a->plan.add_device(*command);
  a->given = command->add_option("--planners", a->planners, "comma-separated; the first is shown first")
                 ->delimiter(',')
                 ->capture_default_str();
  command->add_option("--plan", a->plan.plan_file,
                      "a saved plan or a compiler's dump, shown first; without --planners alone");
  command
      ->add_option("--with", a->with,
                   "what compilers made of the model (docs/peers.md), comma-separated: shown before the "
                   "planners' plans")
      ->delimiter(',');
  add_untimed(*command, a->untimed);
  a->plan.add_options(*command);
  command->add_option("--run", a->runs,
                      "what stitchwork run --json printed of one of the plans: its times and counters as "
                      "colours; several times for several plans");
  command->add_option(
      "--profile", a->profile,
      "a profile of the model by Nsight Systems, Nsight Compute, JAX or PyTorch (docs/profiles.md): "
      "imported times beside the modelled ones");
  command->add_option("--iterations", a->iterations, "so many the profile has; without it they are found")
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", a->output, "HTML file, which needs no other")->required();
  add_common(*command, cli,
             "  stitchwork view bert_layer -o view.html\n"
             "  stitchwork view bert_base --planners xla,astitch,auto --device a100-sxm-80 -o view.html\n"
             "  stitchwork view softmax --planners astitch --set mapping=paper -o view.html\n"
             "  stitchwork run softmax_tiny --json > run.json && stitchwork view softmax_tiny --run run.json "
             "-o v.html\n"
             "  stitchwork view fig7 --with dumps/fig7-a100 --planners astitch -o view.html\n"
             "  stitchwork view dumps/fig7-a100/after.hlo --planners imported,astitch --profile jax.json "
             "-o v.html");
  command->callback([&cli, a] { view(cli, *a); });
}

}  // namespace stitchwork
