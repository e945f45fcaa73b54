#include "experiments/reproduce_choices.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/reproduce_values.h"
#include "runtime/program/dump.h"

namespace stitchwork {

ExperimentSpec on_tiny_models(ExperimentSpec spec) {
  spec.name += kQuickSuffix;
  std::vector<std::string> workloads;
  for (const std::string& name : spec.workloads)
    for (const Dataset& dataset : datasets())
      if (dataset.name == workload_name(name, true) &&
          std::ranges::find(workloads, dataset.name) == workloads.end())
        workloads.push_back(dataset.name);
  spec.workloads = std::move(workloads);
  if (spec.backend != "model") {
    spec.backend = "sim";
    spec.sampled = false;
    spec.check = true;
  }
  spec.text = fmt::format("{{\"quick\":{}}}", spec.text);
  return spec;
}

void take_exports(const ReproduceOptions& options, const std::set<std::string>& exports,
                  ExperimentSpec& spec) {
  std::vector<std::string> files;
  for (const std::string& name : exports)
    if (std::string file = workload_name(name, false, options.models); file != name)
      files.push_back(std::move(file));
  spec.workloads = std::move(files);
}

void take_dumps(const ReproduceOptions& options, ExperimentSpec& spec, std::vector<std::string>& failures) {
  if (!options.run) return;
  if (options.dumps.empty())
    throw Error(
        fmt::format("{} compares with compilers' own kernels, and no folder of dumps is given", spec.name),
        "scripts/peers/all -o DIR makes one; then --dumps DIR (docs/peers.md)");
  spec.dumps = options.dumps;
  std::set<std::string> there;  // variants
  for (const Cell& cell : cells(spec)) {
    const std::string dump = trial_of(spec, cell).dump;
    if (!dump.empty() && is_dump(dump)) there.insert(spec.variants[cell.variant].name);
  }
  if (there.empty())
    throw Error(options.dumps, 0, 0, "has none of the dumps PEER/DEVICE/WORKLOAD/dump.json",
                "scripts/peers/all -o DIR makes them (docs/peers.md)");
  std::erase_if(spec.variants, [&](const Variant& variant) {
    if (variant.peer.empty() || there.contains(variant.name)) return false;
    failures.push_back(
        fmt::format("{}: {} has no dump of it, so that it is left out", variant.name, options.dumps));
    return true;
  });
}

void choose_workloads(const ReproduceOptions& options, bool some, ExperimentSpec& spec) {
  const std::string known = fmt::format("{}", fmt::join(spec.workloads, ", "));
  std::erase_if(spec.workloads, [&](const std::string& name) {
    return std::ranges::none_of(options.workloads, [&](const std::string& wanted) {
      return name == wanted || name == workload_name(wanted, false, options.models);
    });
  });
  if (some && spec.workloads.empty())
    throw Error(fmt::format("experiment {} has none of the workloads {}", spec.name,
                            fmt::join(options.workloads, ", ")),
                fmt::format("it has: {}", known));
}

void choose_devices(const ReproduceOptions& options, ExperimentSpec& spec) {
  std::vector<std::string> chosen;
  for (const std::string& wanted : options.devices) {
    const std::string& id = device(wanted).id;
    if (std::ranges::find(spec.devices, id) == spec.devices.end())
      throw Error(fmt::format("experiment {} is not of {}", spec.name, id),
                  fmt::format("it is of: {}", fmt::join(spec.devices, ", ")));
    chosen.push_back(id);
  }
  std::erase_if(spec.devices,
                [&](const std::string& id) { return std::ranges::find(chosen, id) == chosen.end(); });
}

std::string reproduce_command(const ReproduceOptions& options, const std::string& paper) {
  std::string text = "stitchwork reproduce " + paper + (options.quick ? " --quick" : "");
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, shell_word(value));
  };
  add("--models", options.models);
  add("--dumps", options.dumps);
  add("--workloads", fmt::format("{}", fmt::join(options.workloads, ",")));
  add("--devices", fmt::format("{}", fmt::join(options.devices, ",")));
  return text;
}

}  // namespace stitchwork
