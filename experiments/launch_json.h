// What a simulated launch gave, as the documents of `run` and `ptx run` and their messages have it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "simulator/simulator.h"

namespace stitchwork {

/// By name, in documented order.
nlohmann::ordered_json counters_json(const sim::Counters& counters);
/// What each sanitizer looked at: mem and sync always, others if asked for.
nlohmann::ordered_json sanitizers_json(const sim::Sanitizers& asked, const sim::SanitizerCounts& counts);
/// The same as a line of text.
std::string to_text(const sim::Sanitizers& asked, const sim::SanitizerCounts& counts);
/// docs/schema/run.schema.json, finding.
nlohmann::ordered_json finding_json(const sim::Finding& finding);
/// One line: what, in which kernel, PTX and CUDA line, block and thread.
std::string to_text(const sim::Finding& finding);

}  // namespace stitchwork
