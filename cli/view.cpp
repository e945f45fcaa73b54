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
  std::string around;                      ///< an op: which part of a large model is shown
  std::string output;
};

void check_arguments(const ViewArguments& a) {
  if (a.plan.model.empty() && a.plan.plan_file.empty()) throw CLI::RequiredError("MODEL");
  if (fs::path(a.output).extension() != ".html")
    throw Error(a.output, 0, 0, "a page is written as .html", "for example -o view.html");
  require_writable(a.output);
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

/// Which of the entry's ops a page is about; null: all of the model.
nlohmann::ordered_json excerpt_json(const Graph& model, const std::optional<gui::OpRange>& range) {
  if (!range) return nullptr;
  const Computation& entry = model.entry_computation();
  return {{"first", entry.node(range->first).name},
          {"last", entry.node(range->last - 1).name},
          {"ops", range->last - range->first},
          {"of_ops", entry.nodes.size()}};
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
  const std::optional<gui::OpRange> range = gui::excerpt_range(model.graph, a.around);
  PlanOptions options = a.plan.options(true);
  require_honoured(viewed.planners, options);
  for (const std::string& name : viewed.planners) {
    cli.progress("planning with " + name);
    PlanOptions own = options_for(planner(name), options);
    // Where a planner rewrites the model other ops stand for these, which are not known before.
    if (range && planner(name).rewrite == nullptr) own.decisions_about = gui::ops_in(model.graph, *range);
    plans.push_back(make_plan(model.graph, *viewed.device, name, own));
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
  const std::string page = gui::plans_page(model, shown, range);
  cli.progress("");
  write_file(a.output, page);
  const nlohmann::ordered_json part = excerpt_json(model.graph, range);
  if (range)
    cli.err << fmt::format(
        "{}: {} ops are more than a page shows; it has what the plans make of {} of them, {} to {}; "
        "--around OP shows others\n",
        a.output, part["of_ops"].get<std::size_t>(), part["ops"].get<std::size_t>(),
        part["first"].get<std::string>(), part["last"].get<std::string>());
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
        {"excerpt", part},
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
  command->add_option(
      "--around", a->around,
      "an op: of a model of more than 10,000 ops a page shows some 4,000, in whose middle it is; "
      "without it the first");
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
