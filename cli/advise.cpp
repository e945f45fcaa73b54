// stitchwork advise MODEL
#include "analysis/explain/advise.h"

#include <nlohmann/json.hpp>

#include "analysis/json/overrides_json.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Advice& a) {
  return {{"producer", a.producer},
          {"consumer", a.consumer},
          {"from_kernel", a.from_kernel},
          {"to_kernel", a.to_kernel},
          {"bytes", a.bytes},
          {"gain_us", a.gain_us},
          {"rule", a.rule},
          {"why", a.why},
          {"override", overrides_to_json({a.edit})},
          {"before_us", a.before_us},
          {"after_us", a.after_us ? ordered_json(*a.after_us) : ordered_json(nullptr)},
          {"gains", a.gains()},
          {"refusal", a.refusal}};
}

std::string verdict(const Advice& a) {
  if (!a.after_us) return "no override joins them: " + a.refusal;
  if (!a.gains())
    return fmt::format("does not gain: {:.2f} us with it, {:.2f} us without", *a.after_us, a.before_us);
  return fmt::format("gains {:.2f} us: {:.2f} us with it, {:.2f} us without", a.before_us - *a.after_us,
                     *a.after_us, a.before_us);
}

void print_text(const Cli& cli, const std::vector<Advice>& advice) {
  if (advice.empty()) return cli.print("no kernel reads what another writes: nothing to advise");
  int number = 0;
  for (const Advice& a : advice) {
    cli.print(
        fmt::format("{}. {} -> {}: {} through device memory from {} to {}, about {:.2f} us with the launch",
                    ++number, a.producer, a.consumer, human_bytes(static_cast<double>(a.bytes)),
                    a.from_kernel, a.to_kernel, a.gain_us));
    if (!a.rule.empty()) cli.print(fmt::format("   kept apart by {}: {}", a.rule, a.why));
    if (a.after_us) cli.print(fmt::format("   override {}", overrides_to_json({a.edit}).dump()));
    cli.print("   " + verdict(a));
  }
}

}  // namespace

void add_advise(CLI::App& app, Cli& cli) {
  struct AdviseArguments {
    PlanArguments plan;
    std::size_t count = 10;
  };
  CLI::App* command =
      app.add_subcommand("advise", "the costliest values between kernels, and the overrides that save them");
  auto a = std::make_shared<AdviseArguments>();
  a->plan.add_model(*command);
  a->plan.add_planner(*command);
  a->plan.add_device(*command);
  command->add_option("--count", a->count, "of edges, costliest first")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000000}));
  add_common(*command, cli,
             "  stitchwork advise bert_layer --device v100\n"
             "  stitchwork advise fig7 --override edits.json --json");
  command->callback([&cli, a] {
    if (a->plan.model.empty()) throw CLI::RequiredError("MODEL");
    const Model model = a->plan.open.load(a->plan.model);
    const Device& target = device(a->plan.device);
    const std::vector<Advice> advice =
        advise(model.graph, target, a->plan.planner, a->plan.options(), a->count);
    if (!cli.json) {
      print_text(cli, advice);
      return cli.print(fmt::format("{} on {} by {}; all times are modelled from plans", model.graph.source,
                                   target.id, a->plan.planner));
    }
    ordered_json list = ordered_json::array();
    for (const Advice& one : advice) list.push_back(to_json(one));
    cli.print(ordered_json{{"schema", "stitchwork.advise/1"},
                           {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
                           {"device", target.id},
                           {"planner", a->plan.planner},
                           {"method", "modelled"},
                           {"advice", list}});
  });
}

}  // namespace stitchwork
