// An experiment: which workloads are planned by which variants on which devices, and how they are run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/planners/fusionstitching/library.h"
#include "experiments/trial.h"

namespace stitchwork {

/// How kernels are compiled and run, as `stitchwork run` has it: for a whole experiment, or for a variant.
struct TrialExecution {
  int repeats = 20;                   ///< cuda
  bool tf32 = false;                  ///< PlanOptions::tf32
  std::string convolutions = "auto";  ///< cuda
  bool fast_math = false, dependent_launch = false;
  std::string compiler;  ///< "", "nvrtc" or "clang" (CompileOptions)
};

/// A column of the experiment's tables: a planner with its knobs, or a compiler's dumps.
struct Variant {
  std::string name;  ///< as tables call it
  std::string planner;
  /// In place of a planner: the dumps of this compiler, in ExperimentSpec::dumps (docs/peers.md).
  std::string peer;
  std::map<std::string, std::string> knobs;
  std::vector<Edit> edits;  ///< overrides; for experiments whose workloads all have the ops they name
  DeviceLimits limits;
  TrialExecution execution;
};

struct ExperimentSpec {
  std::string name, title, text;       ///< text: the document, canonical
  std::vector<std::string> workloads;  ///< datasets or files
  std::vector<Variant> variants;
  /// Of variants whose planner takes one; nullptr: none. Trials of the experiment point to it.
  std::shared_ptr<const fusionstitching::PerformanceLibrary> library;
  std::vector<std::string> devices;
  std::vector<std::uint64_t> seeds;
  std::string backend = "sim";  ///< model, sim or cuda
  bool sampled = false;         ///< sim: TrialSpec::sampled
  sim::CacheMode cache = sim::CacheMode::kCold;
  bool check = false;
  double timeout_s = 600;  ///< of a trial
  /// Folder with PEER/DEVICE/WORKLOAD/dump.json for variants that are peers; no part of the document.
  std::string dumps;

  bool has_peers() const;
};

/// Reads a "stitchwork.experiment/1" document. Throws Error with file and place: unknown planners, knobs,
/// devices and keys, two variants of one name.
ExperimentSpec parse_experiment(const std::string& text, const std::string& file);
/// `path` may be of find_experiment.
ExperimentSpec read_experiment(const std::string& path);
/// `path`, or where it is not there the file of data_folder("experiments") (core/base/data.h) that is called
/// so, with or without "experiments/" in front: "astitch/models.json".
std::string find_experiment(const std::string& path);

/// A trial of the experiment, by index into its lists.
struct Cell {
  std::size_t workload = 0, variant = 0, device = 0, seed = 0;
};
/// All of them, workload by workload.
std::vector<Cell> cells(const ExperimentSpec& spec);
TrialSpec trial_of(const ExperimentSpec& spec, const Cell& cell);
/// "softmax, xla, v100-sxm2"; the seed where there are several.
std::string to_text(const ExperimentSpec& spec, const Cell& cell);

}  // namespace stitchwork
