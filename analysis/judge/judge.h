// Who says what kernels and plans are worth: the estimate, the simulator, a GPU, a paper's own rule. Planners
// and searches take one (PlanOptions::judge) and ask nobody else which of several forms is better.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "analysis/judge/order.h"
#include "analysis/plan/plan.h"

namespace stitchwork {

/// What one kernel takes: its launch included, gaps and memsets not. Sectors as Worth has them.
struct KernelWorth {
  double us = 0, dram_sectors = 0, l2_sectors = 0;
};

/// Its answers depend on nothing but what it is asked, and may be had from several threads at a time.
class PlanJudge {
 public:
  virtual ~PlanJudge() = default;

  virtual Evidence evidence() const = 0;
  /// Of the order of forms: by how much two of its times have to differ to count as different.
  virtual double resolution() const = 0;
  /// Throws Error where it cannot tell (what it would have to compile is refused).
  virtual KernelWorth kernel(const Graph& graph, const Device& device, const KernelPlan& kernel) const = 0;

  /// Of kernels that together do the work, a launch gap before each and the memsets of atomics included.
  Worth worth(const Graph& graph, const Device& device, std::span<const KernelPlan> kernels) const;
  /// Of a whole plan: the gaps between its steps, library calls, copies and memsets (which are modelled,
  /// whoever judges), and what its loops and branches run.
  double plan_us(const Graph& graph, const Device& device, const FusionPlan& plan) const;

  /// Which of some forms of the same work is taken, by index: `worths` are its own of each. `forms` is not
  /// empty.
  using Kernels = std::span<const KernelPlan>;
  virtual std::size_t best(const Graph& graph, const Device& device, std::span<const Worth> worths,
                           std::span<const Kernels> forms) const;
};

/// By the estimate from the plan (analysis/judge/cost.h): what is asked where no judge is given.
const PlanJudge& modelled_judge();

/// Of forms, `first` tells which come into question: those in the bucket of its best or the next one, `top`
/// of them at most, the best ones by its order. Among these `then` decides. Everything else is `first`'s. It
/// owns neither.
std::unique_ptr<PlanJudge> in_two_stages(const PlanJudge& first, const PlanJudge& then, int top);

/// What a judge has said, kept by `key`: worths of kernels that are equal but for their names are asked for
/// once. It belongs to whoever hands in a judge; what is answered does not depend on it.
class WorthCache {
 public:
  /// `make` is called where the key is new, by two threads perhaps at the same time.
  template <typename Make>
  KernelWorth get(const std::string& key, const Make& make) {
    {
      const std::scoped_lock lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    const KernelWorth made = make();
    const std::scoped_lock lock(mutex_);
    return known_.emplace(key, made).first->second;
  }
  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return known_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, KernelWorth> known_;
};

}  // namespace stitchwork
