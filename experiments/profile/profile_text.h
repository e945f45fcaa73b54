// A profile held to a model, as text.
#pragma once

#include <string>

#include "experiments/profile/match.h"

namespace stitchwork {

/// Names of functions with all their template arguments, cut to `most` characters.
std::string cut_to(std::string text, std::size_t most);

/// `step` of the plan of that `body` (NamedOps).
const PlanStep& plan_step(const FusionPlan& plan, int body, int step);
/// "k3 multiply_1"; "lib:dot.5".
std::string step_title(const FusionPlan& plan, int body, int step);
/// Names of the ops.
std::vector<std::string> op_names_of(const Graph& graph, const FusionPlan& plan, const NamedOps& named);

/// "prof.json of PyTorch, NVIDIA A100: 10 iterations (the same 118 kernels in the same order), ...", how many
/// launches stand for ops, and what was left out: a line each.
std::string profile_summary(const Profile& profile, const ProfileComparison& comparison);
/// What stands for nothing, is there several times, or is missing; "" where there is nothing to say.
std::string profile_findings(const ProfileComparison& comparison, const FusionPlan& plan);

}  // namespace stitchwork
