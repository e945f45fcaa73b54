#include "experiments/profile/profile_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/format.h"

namespace stitchwork {

std::string cut_to(std::string text, std::size_t most) {
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return printable(std::move(text));
}

const PlanStep& plan_step(const FusionPlan& plan, int body, int step) {
  return body_plan(plan, body).steps[static_cast<std::size_t>(step)];
}

std::string step_title(const FusionPlan& plan, int body, int number) {
  const PlanStep& step = plan_step(plan, body, number);
  if (step.kind != StepKind::kKernel) return step.id;
  return step.id + " " + body_plan(plan, body).kernels[static_cast<std::size_t>(step.kernel)].name;
}

std::vector<std::string> op_names_of(const Graph& graph, const FusionPlan& plan, const NamedOps& named) {
  const Computation& of = body_computation(graph, plan, named.body);
  std::vector<std::string> names;
  for (const NodeId op : named.ops) names.push_back(of.node(op).name);
  return names;
}

std::string profile_summary(const Profile& profile, const ProfileComparison& c) {
  const ProfileIterations& all = c.iterations;
  std::string text =
      fmt::format("{} of {}{}: {} ({}), launches: {}", profile.file, profile.tool,
                  profile.device.empty() ? "" : ", " + profile.device, counted(all.iterations, "iteration"),
                  all.how, with_commas(static_cast<long long>(all.launches.size())));
  if (all.iteration_us) text += fmt::format(", {:.1f} us from first to last", *all.iteration_us);
  text += "; all times are imported\n";
  text += fmt::format("{} of {} launches stand for ops of the model", c.matched, c.matches.size());
  if (c.total_us > 0)
    text += fmt::format(": {:.1f} of {:.1f} us ({})", c.matched_us, c.total_us,
                        percent(c.matched_us / c.total_us));
  text += "\n";
  const auto left_out = [&](std::size_t count, const std::string& what) {
    if (count > 0) text += fmt::format("left out: {} {}\n", with_commas(static_cast<long long>(count)), what);
  };
  left_out(all.left_out, "events outside of iterations");
  left_out(all.transfers, "copies from and to the host or other GPUs");
  for (const auto& [module, count] : c.other_modules) left_out(count, "events of module " + module);
  for (const auto& [number, count] : c.other_devices)
    left_out(count, fmt::format("events of GPU {}", number));
  return text;
}

std::string profile_findings(const ProfileComparison& c, const FusionPlan& plan) {
  std::string text;
  std::vector<std::pair<std::string, std::pair<std::size_t, double>>> unmatched;  // by kernel and reason
  for (std::size_t i = 0; i < c.matches.size(); ++i) {
    if (c.matches[i].rule != ProfileRule::kNone) continue;
    const ProfileLaunch& l = c.iterations.launches[i];
    const std::string line = fmt::format("{}: {}", cut_to(l.kernel, 70), c.matches[i].why);
    auto known = std::ranges::find(unmatched, line, [](const auto& u) { return u.first; });
    if (known == unmatched.end()) known = unmatched.insert(unmatched.end(), {line, {0, 0.0}});
    ++known->second.first;
    known->second.second += l.mean_us;
  }
  std::ranges::stable_sort(unmatched, std::greater<>(), [](const auto& u) { return u.second.second; });
  if (!unmatched.empty()) text += "launches that stand for nothing:\n";
  for (const auto& [line, sum] : unmatched)
    text += fmt::format("  {} x, {:.2f} us  {}\n", sum.first, sum.second, line);
  if (!c.duplicated.empty()) text += "several launches stand for one:\n";
  for (const auto& [what, launches] : c.duplicated)
    text += fmt::format("  {}: launches {}\n", what, fmt::join(launches, ", "));
  if (!c.missing.empty()) text += "steps of the plan that no launch stands for:\n";
  for (const std::size_t s : c.missing)
    text += fmt::format("  {}\n", step_title(plan, c.steps[s].body, c.steps[s].step));
  const auto split =
      std::ranges::count_if(c.matches, [](const ProfileMatch& m) { return m.steps.size() > 1; });
  if (split > 0)
    text += fmt::format(
        "{} launches are of ops that this plan has in several steps: they are no step's time\n", split);
  return text;
}

}  // namespace stitchwork
