// Astra's custom-wirer (ASPLOS 2019, sections 4.4 to 4.7): every mini-batch runs one configuration, what is
// tried next follows from the profile index alone, and the fastest is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/exploration_history.h"
#include "experiments/training.h"
#include "experiments/trial.h"
#include "figures/data/figure.h"

namespace stitchwork {

struct ExploreOptions {
  /// Planner (a row of Astra), its options, device, seed, mode, check: as `run` has them. Backend "model": a
  /// mini-batch's times are the plan's estimates; "sim": its kernels are simulated, and so are its matrix
  /// products, by our own tiled kernels, where these make all of them; other library calls are modelled.
  /// "cuda": it is run on a GPU, as a whole, products by its library or by ours; times are the medians of
  /// `repeats` passes. `check` compares each plan's results, and each tiled product, with the host's; of a
  /// training each mini-batch's.
  TrialSpec trial;
  /// Each mini-batch is run, with what the one before has made of these parameters; others are drawn anew.
  /// Nothing: all have the same inputs. Of backends that run.
  std::optional<std::vector<FedBack>> train;
  std::shared_ptr<const cuda::Driver> driver;  ///< null: this machine's
  cuda::CudaLibraries libraries = {cuda::Blas::load, cuda::Dnn::load};
  std::optional<std::size_t> batches;  ///< at most so many now; nullopt: until nothing is left to try
  std::string history;                 ///< file; "": none is kept
  bool resume = false;                 ///< go on with what the history has
  /// (mini-batches run, us of the last and the best, what is happening).
  std::function<void(std::size_t, double, double, const std::string&)> progress;
};

/// What an exploration has come to.
struct Exploration {
  std::string model, model_sha256, device, planner, times;
  std::string method;                ///< of the mini-batches' times
  std::vector<std::string> kernels;  ///< of products, the default first
  std::string why_library;  ///< simulated times: why products are the library's, modelled; "": they are ours
  /// The best mini-batch with the library's products, modelled, where its own are simulated.
  std::optional<double> library_us;
  std::optional<cuda::Gpu> gpu;  ///< that they ran on
  /// Measured: how much longer mini-batches took with an event behind each step than without, of what was run
  /// now, as a part of it; and of trainings what was fed back.
  std::optional<double> points_overhead;
  std::string state;
  std::vector<MiniBatch> minibatches;  ///< all, those of earlier runs first
  std::size_t resumed = 0;             ///< those of earlier runs
  bool done = false;                   ///< nothing is left to try
  std::size_t best = 0;                ///< index of the fastest, the first of equals
  FusionPlan plan;                     ///< of the best
  std::map<std::string, std::size_t> by_dimension;
  double trials = 0;                ///< option by option (Table 7), of what is known of the space
  double log10_configurations = 0;  ///< all bindings there are, likewise
  std::size_t strategies = 0;
};

/// One exploration, mini-batch by mini-batch.
class Explorer {
 public:
  /// `options.batches` is not heeded. Model and options outlive this. Throws Error as explore does.
  Explorer(const Model& model, const ExploreOptions& options);
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  /// Runs the next mini-batch; false where nothing is left to try.
  bool step();
  std::size_t minibatches() const;  ///< run, those of earlier runs included
  Training* training();             ///< null where nothing is fed back
  /// What it has come to; once, the last call.
  Exploration finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws Error for a planner that explores nothing, an unknown backend, a history that does not fit
/// (ExplorationHistory::open), where a mini-batch's results are not the model's, and of measured times where
/// there is no GPU or the host takes part in a mini-batch.
Exploration explore(const Model& model, const ExploreOptions& options);

/// Time of each mini-batch and the best so far.
Figure trajectory(const Exploration& exploration);

/// "stitchwork.exploration/1" (docs/schema/exploration.schema.json).
nlohmann::ordered_json exploration_json(const Exploration& exploration);

}  // namespace stitchwork
