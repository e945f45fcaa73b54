#include "analysis/stitching/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::astitch {
namespace {

/// The knobs that are on or off.
struct Switch {
  std::string_view name;
  bool Options::*value;
};
constexpr std::array kSwitches = {
    Switch{"across_rows", &Options::across_rows},
    Switch{"adaptive_mapping", &Options::adaptive_mapping},
    Switch{"clusters", &Options::clusters},
    Switch{"data_reuse", &Options::data_reuse},
    Switch{"dominant_merging", &Options::dominant_merging},
    Switch{"exhaustive_stitching", &Options::exhaustive_stitching},
    Switch{"one_pass", &Options::one_pass},
    Switch{"proactive_locality", &Options::proactive_locality},
    Switch{"recompute", &Options::recompute},
    Switch{"epilogues", &Options::epilogues},
    Switch{"products", &Options::products},
    Switch{"register_relaxation", &Options::register_relaxation},
    Switch{"remote_stitching", &Options::remote_stitching},
    Switch{"residence", &Options::residence},
    Switch{"shared_reuse", &Options::shared_reuse},
    Switch{"tiles", &Options::tiles},
    Switch{"wide_vectors", &Options::wide_vectors},
};

auto switch_names() {
  return std::views::transform(kSwitches, [](const Switch& s) { return s.name; });
}

bool read_choice(const std::string& knob, const std::string& value, std::string_view yes,
                 std::string_view no) {
  if (value != yes && value != no)
    throw Error(fmt::format("knob {}: unknown value '{}'", knob, value),
                fmt::format("it is {} or {}", yes, no));
  return value == yes;
}

}  // namespace

Options read_options(const PlanOptions& options) {
  Options result;
  result.record_decisions = options.record_decisions;
  if (options.judge != nullptr) result.judge = options.judge;
  for (const auto& [knob, value] : options.knobs) {
    if (knob == "weights") continue;  // the graph says which they are
    if (knob == "mapping") {
      result.tuned = read_choice(knob, value, "tuned", "paper");
      continue;
    }
    if (knob == "async_copies") {
      result.async_copies = value != "off";
      result.bulk_copies = value != "cp_async" && read_choice(knob, value, "on", "off");
      continue;
    }
    const auto found = std::find_if(kSwitches.begin(), kSwitches.end(),
                                    [&name = knob](const Switch& s) { return s.name == name; });
    if (found == kSwitches.end())
      throw Error(fmt::format("unknown knob '{}' of planner astitch", knob),
                  fmt::format("known: async_copies, mapping, {}", fmt::join(switch_names(), ", ")));
    result.*found->value = read_choice(knob, value, "on", "off");
  }
  return result;
}

Options read_options(const Graph& graph, const Device& device, const PlanOptions& options) {
  Options result = read_options(options);
  result.constraints = constraints(graph, device, options.edits);
  if (!options.decisions_about) return result;
  std::vector<NodeId>& about = result.decisions_about.emplace();
  for (const std::string& op : *options.decisions_about)
    if (const NodeId id = graph.entry_computation().find(op); id != kNoNode) about.push_back(id);
  sort_unique(about);
  return result;
}

bool records_all(const Options& options) { return options.record_decisions && !options.decisions_about; }

bool records(const Options& options, std::span<const NodeId> ops) {
  if (!options.record_decisions || !options.decisions_about) return options.record_decisions;
  // Each of the fewer is looked for among the others: pages ask about thousands of ops, explain about one.
  const std::span<const NodeId> about = *options.decisions_about;
  const auto [few, many] = about.size() < ops.size() ? std::pair(about, ops) : std::pair(ops, about);
  return std::ranges::any_of(few, [&, in = many](NodeId op) { return std::ranges::binary_search(in, op); });
}

Options silent(const Options& options) {
  Options result = options;
  result.record_decisions = false;
  return result;
}

}  // namespace stitchwork::astitch
