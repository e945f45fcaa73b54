// stitchwork profile MODEL PROFILE
#include "cli/profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/peer_plan.h"
#include "cli/table.h"
#include "core/base/format.h"
#include "experiments/profile/profile_text.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct ProfileArguments {
  PlanArguments plan;
  const CLI::Option* planner = nullptr;
  std::string file;
  std::optional<std::int64_t> iterations;
  std::size_t rows = 100;
  bool events = false, untimed = false;
};

std::string step_ids(const FusionPlan& plan, const ProfileMatch& m) {
  std::vector<std::string> ids;
  for (const int s : m.steps) ids.push_back(plan_step(plan, m.stands_for.body, s).id);
  return ids.size() > 3 ? fmt::format("{} and {} more", ids[0], ids.size() - 1)
                        : fmt::format("{}", fmt::join(ids, ", "));
}

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}
ordered_json extents_json(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json::parse(text, nullptr, false);
}

ordered_json launches_json(const Planned& planned, const ProfileComparison& c) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < c.matches.size(); ++i) {
    const ProfileLaunch& l = c.iterations.launches[i];
    const ProfileMatch& m = c.matches[i];
    const bool matched = m.rule != ProfileRule::kNone;
    ordered_json steps = ordered_json::array();
    for (const int s : m.steps) steps.push_back(plan_step(planned.plan, m.stands_for.body, s).id);
    list.push_back({{"kind", name(l.kind)},
                    {"kernel", l.kernel},
                    {"stream", l.stream},
                    {"grid", extents_json(l.grid)},
                    {"block", extents_json(l.block)},
                    {"module", or_null(l.module)},
                    {"instruction", or_null(l.instruction)},
                    {"op", or_null(l.op)},
                    {"samples", l.samples},
                    {"mean_us", l.timed ? ordered_json(l.mean_us) : ordered_json(nullptr)},
                    {"least_us", l.timed ? ordered_json(l.least_us) : ordered_json(nullptr)},
                    {"most_us", l.timed ? ordered_json(l.most_us) : ordered_json(nullptr)},
                    {"method", "imported"},
                    {"counters", l.counters},
                    {"rule", or_null(std::string(name(m.rule)))},
                    {"stands_for", or_null(m.stands_for.name)},
                    {"ops", matched ? ordered_json(op_names_of(planned.graph(), planned.plan, m.stands_for))
                                    : ordered_json::array()},
                    {"steps", std::move(steps)},
                    {"why", or_null(m.why)}});
  }
  return list;
}

/// Whether the step has a time of ours.
bool timed(const FusionPlan& plan, const PlanStep& step) {
  return step.kind != StepKind::kKernel || !times_method(plan).empty();
}

ordered_json steps_json(const Planned& planned, const ProfileComparison& c) {
  ordered_json list = ordered_json::array();
  const std::set<std::size_t> missing(c.missing.begin(), c.missing.end());
  for (std::size_t s = 0; s < c.steps.size(); ++s) {
    const ProfiledStep& at = c.steps[s];
    const PlanStep& step = plan_step(planned.plan, at.body, at.step);
    const std::string within =
        at.body < 0 ? "" : body_computation(planned.graph(), planned.plan, at.body).name;
    list.push_back(
        {{"id", step.id},
         {"kind", name(step.kind)},
         {"within", or_null(within)},
         {"predicted_us", timed(planned.plan, step) ? ordered_json(at.predicted_us) : ordered_json()},
         {"imported_us", at.imported_us ? ordered_json(*at.imported_us) : ordered_json(nullptr)},
         {"counters", at.counters},
         {"launches", at.launches},
         {"missing", missing.contains(s)}});
  }
  return list;
}

ordered_json events_json(const Profile& profile) {
  ordered_json list = ordered_json::array();
  for (const ProfileEvent& e : profile.events)
    list.push_back({{"kind", name(e.kind)},
                    {"kernel", e.kernel},
                    {"start_us", profile.clock ? ordered_json(e.start_us) : ordered_json(nullptr)},
                    {"us", e.us ? ordered_json(*e.us) : ordered_json(nullptr)},
                    {"device", e.device},
                    {"stream", e.stream},
                    {"grid", extents_json(e.grid)},
                    {"block", extents_json(e.block)},
                    {"module", or_null(e.module)},
                    {"instruction", or_null(e.instruction)},
                    {"op", or_null(e.op)},
                    {"counters", e.counters}});
  return list;
}

ordered_json profile_json(const Planned& planned, const Profile& profile, const ProfileComparison& c,
                          bool events) {
  ordered_json duplicated = ordered_json::array(), modules = ordered_json::object(),
               devices = ordered_json::object();
  for (const auto& [what, launches] : c.duplicated)
    duplicated.push_back({{"stands_for", what}, {"launches", launches}});
  for (const auto& [module, count] : c.other_modules) modules[module] = count;
  for (const auto& [number, count] : c.other_devices) devices[std::to_string(number)] = count;
  const Graph& model = planned.model.graph;
  ordered_json document{{"schema", "stitchwork.profile/1"},
                        {"model", {{"path", model.source}, {"sha256", model.source_sha256}}},
                        {"planner", planned.plan.planner},
                        {"device", planned.device->id},
                        {"profile",
                         {{"file", profile.file},
                          {"tool", profile.tool},
                          {"device", or_null(profile.device)},
                          {"module", or_null(c.module)},
                          {"events", profile.events.size()},
                          {"host_events", profile.host_events}}},
                        {"iterations", c.iterations.iterations},
                        {"how", c.iterations.how},
                        {"iteration_us", c.iterations.iteration_us ? ordered_json(*c.iterations.iteration_us)
                                                                   : ordered_json(nullptr)},
                        {"total_us", c.total_us},
                        {"matched_us", c.matched_us},
                        {"method", "imported"},
                        {"left_out",
                         {{"outside_iterations", c.iterations.left_out},
                          {"transfers", c.iterations.transfers},
                          {"modules", std::move(modules)},
                          {"devices", std::move(devices)}}},
                        {"launches", launches_json(planned, c)},
                        {"steps", steps_json(planned, c)},
                        {"duplicated", std::move(duplicated)}};
  if (events) document["events"] = events_json(profile);
  return document;
}

std::string launches_text(const Planned& planned, const ProfileComparison& c, std::size_t rows) {
  std::vector<std::size_t> shown(c.matches.size());
  for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = i;
  if (rows != 0 && shown.size() > rows) {
    std::ranges::stable_sort(shown, std::greater<>(),
                             [&](std::size_t i) { return c.iterations.launches[i].mean_us; });
    shown.resize(rows);
    std::ranges::sort(shown);
  }
  Table table(
      {">launch", "kernel", ">grid", ">block", ">times", ">us (imported)", "stands for", "by", "step"});
  for (const std::size_t i : shown) {
    const ProfileLaunch& l = c.iterations.launches[i];
    const ProfileMatch& m = c.matches[i];
    constexpr std::size_t kCell = 44;
    table.add({std::to_string(i),
               cut_to(l.kind == ProfileKind::kKernel ? l.kernel : std::string(name(l.kind)), kCell), l.grid,
               l.block, with_commas(l.samples), l.timed ? fmt::format("{:.2f}", l.mean_us) : "",
               m.rule == ProfileRule::kNone ? "-" : cut_to(m.stands_for.name, kCell),
               std::string(name(m.rule)), step_ids(planned.plan, m)});
  }
  std::string text = table.text();
  if (shown.size() < c.matches.size())
    text += fmt::format("the {} longest of {} launches (--rows 0: all)\n", shown.size(), c.matches.size());
  return text;
}

std::string steps_text(const Planned& planned, const ProfileComparison& c, std::size_t rows) {
  std::vector<const ProfiledStep*> shown;
  for (const ProfiledStep& step : c.steps)
    if (step.imported_us) shown.push_back(&step);
  const std::size_t all = shown.size();
  if (rows != 0 && all > rows) {
    std::ranges::stable_sort(shown, std::greater<>(), [](const ProfiledStep* s) { return *s->imported_us; });
    shown.resize(rows);
  }
  if (shown.empty()) return "";
  // Of a compiler's plan that was run, kernels are simulated and library calls modelled.
  const std::string ours = times_method(planned.plan) == "simulated" ? "simulated" : "modelled";
  Table table({"step", ">launches", ">us (imported)", fmt::format(">us ({})", ours),
               fmt::format(">imported / {}", ours)});
  for (const ProfiledStep* s : shown) {
    const PlanStep& step = plan_step(planned.plan, s->body, s->step);
    const bool has_time = timed(planned.plan, step);
    const bool other = ours == "simulated" && step.kind != StepKind::kKernel;
    table.add(
        {cut_to(step_title(planned.plan, s->body, s->step), 44), std::to_string(s->launches.size()),
         fmt::format("{:.2f}", *s->imported_us),
         has_time ? fmt::format("{:.2f}{}", s->predicted_us, other ? " modelled" : "") : "",
         has_time && s->predicted_us > 0 ? fmt::format("{:.2f}", *s->imported_us / s->predicted_us) : ""});
  }
  std::string text = table.text();
  if (shown.size() < all)
    text += fmt::format("the {} longest of {} steps (--rows 0: all)\n", shown.size(), all);
  return text;
}

std::string events_text(const Profile& profile) {
  Table table({">start us", ">us", "kind", ">stream", "kernel", "instruction", "op"});
  for (const ProfileEvent& e : profile.events)
    table.add({profile.clock ? fmt::format("{:.2f}", e.start_us - profile.events.front().start_us) : "",
               e.us ? fmt::format("{:.2f}", *e.us) : "", std::string(name(e.kind)), std::to_string(e.stream),
               cut_to(e.kernel, 60), cut_to(e.instruction, 40), cut_to(e.op, 60)});
  return table.text();
}

void show_profile(Cli& cli, const ProfileArguments& a) {
  if (a.plan.model.empty() && a.plan.plan_file.empty()) throw CLI::RequiredError("MODEL");
  if (a.file.empty()) throw CLI::RequiredError("PROFILE");
  cli.progress("reading " + a.file);
  const Profile profile = read_profile(a.file);
  cli.progress("planning");
  OpTrace trace;
  Planned planned = planned_for_profile(a.plan, a.planner->count() > 0, trace);
  if (const std::string dump = dump_of(a.plan); !dump.empty() && !a.untimed)
    planned.plan = shown_peer(cli, dump, planned.model, true).plan;
  const ProfileComparison c = compare_profile(profile, planned.model, trace, planned.plan, a.iterations);
  cli.progress("");
  if (cli.json) return cli.print(profile_json(planned, profile, c, a.events));
  if (a.events) cli.print(events_text(profile) + "\n");
  cli.print(launches_text(planned, c, a.rows));
  if (const std::string steps = steps_text(planned, c, a.rows); !steps.empty()) cli.print("\n" + steps);
  cli.print("\n" + profile_summary(profile, c) + profile_findings(c, planned.plan));
}

}  // namespace

Planned planned_for_profile(PlanArguments arguments, bool asked, OpTrace& trace) {
  if (asked || !arguments.plan_file.empty()) return load_planned(arguments, false, &trace);
  Planned planned;
  planned.model = arguments.open.load(arguments.model, &trace);
  planned.device = &device(arguments.device);
  const bool fused = !planned.model.graph.entry_computation().imported.empty();
  if (fused) arguments.planner = "imported";
  planned.plan = make_plan(planned.model.graph, *planned.device, arguments.planner, arguments.options(false));
  return planned;
}

void add_profile(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "profile",
      "a profile of your own held to a model: which launch is which op, imported beside modelled times");
  auto a = std::make_shared<ProfileArguments>();
  a->plan.add_model(*command);
  command->add_option(
      "PROFILE", a->file,
      "nsys export --type sqlite, ncu --csv (--page raw or details), or the Chrome trace of JAX "
      "or PyTorch (.json, .json.gz)");
  a->plan.add_planning(*command);
  a->planner = command->get_option("--planner");
  a->plan.add_device(*command);
  command->add_option("--iterations", a->iterations, "so many the profile has; without it they are found")
      ->check(CLI::PositiveNumber);
  command->add_option("--rows", a->rows, "so many of the longest launches and steps; 0: all")
      ->capture_default_str();
  add_untimed(*command, a->untimed);
  command->add_flag("--events", a->events, "all events of the GPU as they were read, too");
  add_common(*command, cli,
             "  stitchwork profile dumps/fig7-a100/after.hlo jax.json\n"
             "  stitchwork profile fig7 nsys.sqlite -p xla --device a100-sxm-80 --json\n"
             "  stitchwork profile my_model.hlo ncu.csv --iterations 1\n"
             "  stitchwork profile --plan dumps/fig7-inductor-a100 torch.json");
  command->callback([&cli, a] {
    // A saved plan names its model: with it the one name given is the profile's.
    if (a->file.empty() && !a->plan.plan_file.empty()) a->file.swap(a->plan.model);
    show_profile(cli, *a);
  });
}

}  // namespace stitchwork
