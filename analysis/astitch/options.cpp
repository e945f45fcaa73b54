#include "analysis/astitch/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace stitchwork::astitch {
namespace {

constexpr std::array<std::string_view, 9> kKnobs = {
    "adaptive_mapping",   "data_reuse",          "dominant_merging", "exhaustive_stitching", "mapping",
    "proactive_locality", "register_relaxation", "remote_stitching", "shared_reuse"};

bool read_switch(const std::string& knob, const std::string& value) {
  if (value != "on" && value != "off") {
    throw Error(fmt::format("knob {}: unknown value '{}'", knob, value), "it is on or off");
  }
  return value == "on";
}

}  // namespace

std::span<const std::string_view> knob_names() { return kKnobs; }

Options read_options(const PlanOptions& options) {
  Options result;
  result.record_decisions = options.record_decisions;
  for (const auto& [knob, value] : options.knobs) {
    if (knob == "mapping") {
      if (value != "paper" && value != "tuned")
        throw Error(fmt::format("knob mapping: unknown value '{}'", value), "it is paper or tuned");
      result.tuned = value == "tuned";
    } else if (knob == "adaptive_mapping") {
      result.adaptive_mapping = read_switch(knob, value);
    } else if (knob == "dominant_merging") {
      result.dominant_merging = read_switch(knob, value);
    } else if (knob == "proactive_locality") {
      result.proactive_locality = read_switch(knob, value);
    } else if (knob == "shared_reuse") {
      result.shared_reuse = read_switch(knob, value);
    } else if (knob == "register_relaxation") {
      result.register_relaxation = read_switch(knob, value);
    } else if (knob == "exhaustive_stitching") {
      result.exhaustive_stitching = read_switch(knob, value);
    } else if (knob == "data_reuse") {
      result.data_reuse = read_switch(knob, value);
    } else if (knob == "remote_stitching") {
      result.remote_stitching = read_switch(knob, value);
    } else {
      throw Error(fmt::format("unknown knob '{}' of planner astitch", knob),
                  fmt::format("known: {}", fmt::join(kKnobs, ", ")));
    }
  }
  return result;
}

}  // namespace stitchwork::astitch
