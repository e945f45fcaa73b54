// The JSON form of a plan, schema "stitchwork.plan/1" (docs/schema/plan.schema.json). Ops are written by
// name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "analysis/plan/plan.h"
#include "occupancy_model/not_modelled.h"
#include "occupancy_model/timing.h"

namespace stitchwork {

/// [{"rule", "computation", "at"}].
nlohmann::ordered_json rewrites_to_json(const std::vector<rewriting::Rewrite>& steps);
nlohmann::ordered_json decisions_to_json(const std::vector<Decision>& decisions);
nlohmann::ordered_json plan_to_json(const Graph& graph, const FusionPlan& plan);

/// [{"id", "why"}].
nlohmann::ordered_json not_modelled_json(const std::vector<NotModelled>& left_out);
/// What a time by the timing model is made of, in us, and the part that limits it (timing_text.h);
/// `method`: how the counts that it follows from were obtained, "modelled" or "simulated".
nlohmann::ordered_json time_parts_json(const KernelTime& time, std::string_view method);
/// The document that is printed and saved: plan_to_json's, and in each kernel "time_parts" and
/// "not_modelled": what its predicted time is made of, and what it leaves out.
nlohmann::ordered_json plan_document(const Graph& graph, const FusionPlan& plan);

/// Throws Error with the file, the JSON path and what is expected (unknown op names, missing fields, wrong
/// types, steps of rewriting that give another graph). Does not verify; call require_valid.
FusionPlan plan_from_json(const Graph& graph, const std::string& text, const std::string& file);

/// What names the model a plan was made for; enough to load it before the plan itself is read.
struct PlanHeader {
  std::string model_path, model_sha256;
};
PlanHeader read_plan_header(const std::string& text, const std::string& file);

}  // namespace stitchwork
