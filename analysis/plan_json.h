// The JSON form of a plan, schema "stitchwork.plan/1" (docs/schema/plan.schema.json). Ops are written by
// name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/plan.h"
#include "occupancy_model/not_modelled.h"

namespace stitchwork {

nlohmann::ordered_json decisions_to_json(const std::vector<Decision>& decisions);
nlohmann::ordered_json plan_to_json(const Graph& graph, const FusionPlan& plan);

/// [{"id", "why"}].
nlohmann::ordered_json not_modelled_json(const std::vector<NotModelled>& left_out);
/// The document that is printed and saved: plan_to_json's, and in each kernel "not_modelled": what its
/// predicted time leaves out.
nlohmann::ordered_json plan_document(const Graph& graph, const FusionPlan& plan);

/// Throws Error with the file, the JSON path and what is expected (unknown op names, missing fields, wrong
/// types). Does not verify; call require_valid.
FusionPlan plan_from_json(const Graph& graph, const std::string& text, const std::string& file);

/// What names the model a plan was made for; enough to load it before the plan itself is read.
struct PlanHeader {
  std::string model_path, model_sha256;
};
PlanHeader read_plan_header(const std::string& text, const std::string& file);

}  // namespace stitchwork
