// A plan's memory for people and for documents.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/plan/plan_memory.h"

namespace stitchwork {

/// The peak and what is alive there, each step's bytes, each buffer's first and last step.
std::string to_text(const Graph& graph, const FusionPlan& plan, const PlanMemory& memory);

/// The same (docs/schema/dump.schema.json, memory).
nlohmann::ordered_json memory_json(const Graph& graph, const FusionPlan& plan, const PlanMemory& memory);

}  // namespace stitchwork
