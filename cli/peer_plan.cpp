#include "cli/peer_plan.h"

#include <utility>

#include "core/base/error.h"

namespace stitchwork {

std::string dump_of(const PlanArguments& arguments) {
  if (!arguments.plan_file.empty()) return is_dump(arguments.plan_file) ? arguments.plan_file : "";
  return is_dump(arguments.model) ? arguments.model : "";
}

void refuse_dump(const std::string& dump, std::string_view what) {
  if (is_dump(dump))
    throw Error(dump, 0, 0, fmt::format("is a compiler's plan with its own kernels: it cannot be {}", what),
                "see docs/peers.md for what takes a dump");
}

Planned load_planned_dump(const PlanArguments& arguments, const std::string& dump, OpTrace* trace,
                          Graph* as_read) {
  for (const auto& [given, option] :
       {std::pair{!arguments.set.empty(), "--set"}, std::pair{!arguments.override_file.empty(), "--override"},
        std::pair{!arguments.library_file.empty(), "--library"}, std::pair{arguments.tf32, "--tf32"},
        std::pair{!arguments.weights.empty(), "--weights"}})
    if (given)
      throw Error(fmt::format("{} is no option of a dump: {} has its own plan and kernels", option, dump),
                  "see docs/peers.md");
  Dump read = read_dump(dump);
  Planned planned;
  planned.model = arguments.model.empty() || arguments.model == dump
                      ? load_model(read.model, {}, trace, as_read)
                      : arguments.open.load(arguments.model, trace, as_read);
  planned.plan = peer_of(std::move(read), planned.model).plan;
  planned.device = &device(planned.plan.device);
  return planned;
}

Peer shown_peer(const Cli& cli, const std::string& dump, const Model& model, bool timed) {
  Peer peer = load_peer(dump, model);
  if (!timed) return peer;
  const std::size_t steps = peer.dump.script.steps.size();
  time_peer(peer, model, [&](std::size_t step, const std::string& name) {
    cli.progress(fmt::format("{}: [{} of {}] {}", dump, step + 1, steps, name));
  });
  cli.progress("");
  return peer;
}

void add_untimed(CLI::App& command, bool& untimed) {
  command.add_flag("--untimed", untimed,
                   "do not run compilers' dumps in the simulator: their kernels have no times");
}

}  // namespace stitchwork
