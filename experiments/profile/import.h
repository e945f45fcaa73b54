// Profiles of other tools (experiments/profile), into the store.
#pragma once

#include <string>
#include <vector>

#include "experiments/profile/match.h"
#include "experiments/store.h"

namespace stitchwork {

struct ImportOptions {
  std::string experiment, workload, variant = "imported";
  std::string device;        ///< ours, that it was measured on
  std::string model_sha256;  ///< of the model's file; "": the profile was held to no model
};

/// The launches of one iteration and what each stands for.
struct ImportedIteration {
  ProfileIterations iterations;
  std::vector<std::vector<std::string>> ops;  ///< by launch: names of the model's ops, topological
  std::vector<char> library;                  ///< by launch: it is a matrix product or convolution

  std::int64_t kernels() const;  ///< launches that are
};
/// Held to no model: iterations as they repeat (`given`: so many), products by the kernels' names.
ImportedIteration unmatched_iteration(const Profile& profile, std::optional<std::int64_t> given = {});
ImportedIteration matched_iteration(const ProfileComparison& comparison, const Model& model,
                                    const FusionPlan& plan);

/// Records one iteration as one ok attempt with method "imported": its launches as kernels, with the means of
/// their times and counters. The same file for the same trial is not recorded twice: returns whether it was
/// new.
bool import_profile(Store& store, const Profile& profile, const ImportedIteration& iteration,
                    const ImportOptions& options, const std::string& sha256);

}  // namespace stitchwork
