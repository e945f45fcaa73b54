// Which launches of a profile stand for which ops of a model, by which rule, and which for none; imported
// times beside a plan's modelled ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/profile/iterations.h"
#include "experiments/profile/model_names.h"
#include "experiments/profile/profile.h"

namespace stitchwork {

/// In the order in which they are tried.
enum class ProfileRule : std::uint8_t {
  kNone,
  kInstruction,     ///< the profile names an HLO instruction of the model
  kOwnKernel,       ///< the kernel is called as the plan's, with its launch
  kKernelName,      ///< the kernel is called as XLA calls that of an instruction
  kOpName,          ///< the profile names the framework's op, of which the model's metadata knows
  kLaunchOrder,     ///< kernels of stitchwork run: their launches are the plan's, in its order
  kInductorNumber,  ///< Inductor's kernels, of a dump's plan: kinds and numbers are the dump's, each of them
  kProductOrder,    ///< as many kernels of libraries as products: the n-th is the n-th's
  kRenumbered,      ///< as many of one name as the model has, all with other numbers: the n-th is the n-th
};
/// "instruction", "own kernel", "kernel name", "op name", "launch order", "inductor number", "product order",
/// "renumbered"
std::string_view name(ProfileRule rule);

struct ProfileMatch {
  ProfileRule rule = ProfileRule::kNone;
  NamedOps stands_for;     ///< where there is a rule
  std::vector<int> steps;  ///< of the plan of that computation, which evaluate its ops; one: that step's time
  std::string why;         ///< where there is none
};

/// A step of the plan with what the profile says of it.
struct ProfiledStep {
  int body = -1, step = 0;                 ///< as NamedOps has them
  double predicted_us = 0;                 ///< of one run, modelled
  std::optional<double> imported_us;       ///< of one run: of the launches whose ops are all this step's
  std::vector<std::size_t> launches;       ///< these
  std::map<std::string, double> counters;  ///< sums of those that all of them have, of one run
};

struct ProfileComparison {
  ProfileIterations iterations;
  std::vector<ProfileMatch> matches;  ///< by launch
  std::vector<ProfiledStep> steps;    ///< of the entry, then of what loops and branches run
  std::string module;                 ///< HLO module that was taken; "": the profile names none
  std::map<std::string, std::size_t> other_modules;  ///< events left out
  std::map<int, std::size_t> other_devices;          ///< likewise
  /// What several launches of one iteration stand for, with these; in loops, where launches differ.
  std::vector<std::pair<std::string, std::vector<std::size_t>>> duplicated;
  std::vector<std::size_t> missing;  ///< steps that launch something and have no launch

  /// Of one iteration, imported: of all launches, of those with a rule.
  double total_us = 0, matched_us = 0;
  std::size_t matched = 0;  ///< launches with a rule
};

/// `plan` is of `model`; `trace` as load_model gave it. `iterations`: so many the profile has. Throws Error
/// naming the profile's file where `iterations` does not fit.
ProfileComparison compare_profile(const Profile& profile, const Model& model, const OpTrace& trace,
                                  const FusionPlan& plan, std::optional<std::int64_t> iterations = {});

}  // namespace stitchwork
