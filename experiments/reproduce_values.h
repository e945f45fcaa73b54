// Numbers of a paper's tables, looked up in the results of its experiments.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/facts/bound.h"
#include "analysis/json/json_cursor.h"
#include "experiments/reproduce.h"
#include "experiments/results.h"

namespace stitchwork {

/// An experiment of the paper: what was asked for and what came of it.
struct PaperExperiment {
  ExperimentSpec spec;
  std::vector<std::string> workloads;  ///< the paper's; `spec` may be of their tiny variants
  ExperimentResults results;
  /// By workload, variant and device.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<KernelResult>> kernels;

  std::map<std::string, KernelBound> bounds;  ///< by workload

  std::string version;  ///< of the results (results_version); "": of a store from before they had one

  /// Keeps, of all that the store has under the experiment's name, the trials that `spec` asks for now, of
  /// one version of results: this program's where there are any, else the one recorded last.
  void select();

  const TrialResults* trial(const std::string& workload, const std::string& variant,
                            const std::string& device) const;
  const std::vector<KernelResult>& kernels_of(const Store& store, const std::string& workload,
                                              const std::string& variant, const std::string& device);
};

/// What rows and columns of a table need to know.
struct ValueContext {
  const Store* store = nullptr;
  PaperExperiment* experiment = nullptr;  ///< none: only barrier kernels and averages
  std::string device;                     ///< id
  bool quick = false;
  std::string models;  ///< ReproduceOptions::models
};

/// What a workload of a paper is called where it is run: in quick reproductions the tiny variant, one for all
/// batch sizes ("scrnn_b8": "scrnn_tiny"); with a folder of exports its file there, if there is one.
std::string workload_name(const std::string& name, bool quick, const std::string& models = "");

/// What a model is called that is unrolled for sequences of a length: "scrnn_b16_t30".
std::string bucket_workload(const std::string& name, std::int64_t length);

/// A column's number (keys: docs/experiments.md, "Papers") of one row. `variant`: of a column that stands for
/// one of each variant; "": the column's own.
ReproducedValue value_of(const JsonCursor& column, const std::string& row, const std::string& workload,
                         const ValueContext& context, const std::string& variant = "");

/// "arithmetic", "geometric" (of those above zero), "least" or "most" of numbers; none of no numbers.
std::optional<double> mean_of(std::vector<double> numbers, const std::string& kind);

/// The mean, least or most of a column over the rows before it; `variant` as above.
ReproducedValue average_of(const JsonCursor& c, const std::vector<ReproducedValue>& before,
                           const std::string& variant = "");

/// `name` and `variant` of the experiment as a command.
std::string rerun_command(const ExperimentSpec& spec, const std::string& workload, const std::string& variant,
                          const std::string& device);

}  // namespace stitchwork
