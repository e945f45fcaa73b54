// What changed between two plans of one model, and why.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// A kernel of one of the plans.
struct DiffKernel {
  std::string id, name;
  std::vector<std::string> ops;  ///< those that compute something
};

/// A kernel of A and the kernel of B that computes most of the same ops.
struct KernelChange {
  DiffKernel a, b;
  std::vector<std::string> gained, lost;  ///< ops, from A to B
  std::vector<std::string> schemes;       ///< "power.1: regional -> global"
  std::string launch_a, launch_b;         ///< grid, block, shared memory, barriers
  double us_a = 0, us_b = 0;              ///< modelled
};

/// An op that other kernels compute than before, as the pairing of kernels has it.
struct MovedOp {
  std::string op;
  std::vector<std::string> from, to;  ///< kernels: "k0 reduce_1"
};

/// A matrix product that another kernel makes: one of ours by name, "" the library's choice.
struct ProductChange {
  std::string op, from, to;
};

/// A producer and a consumer that share a kernel in one plan and not in the other.
struct Boundary {
  std::string producer, consumer;
  bool apart_in_b = false;           ///< else apart in A
  std::optional<Decision> apart;     ///< the refusal, where they are apart
  std::optional<Decision> together;  ///< what joined them in the other plan
};

struct PlanTotals {
  int memory_kernels = 0, library_calls = 0, copies = 0, memsets = 0, grid_barriers = 0;
  int product_kernels = 0;  ///< a compiler's own
  std::int64_t dram_bytes = 0;
  double predicted_us = 0;
  std::string method;  ///< of bytes and time: "modelled", "simulated"; "": a compiler's, which was not run
};

struct PlanDiff {
  PlanTotals a, b;
  int same_kernels = 0;  ///< the same ops, schemes and launch
  std::vector<DiffKernel> removed, added;
  std::vector<KernelChange> changed;
  std::vector<MovedOp> moved;
  std::vector<ProductChange> products;
  std::vector<Boundary> boundaries;  ///< one for each pair of kernels that was cut or joined
};

/// Which of the model's ops are looked at: totals and pairs are of the whole plans, changes and reasons those
/// of kernels and pairs with such an op. Empty: all.
using DiffScope = std::function<bool(NodeId)>;

/// Kernels are paired by what they compute: most results in common first, then most ops; ops by name. Throws
/// Error if the plans are of different models.
PlanDiff diff(const Graph& graph, const FusionPlan& a, const FusionPlan& b, const DiffScope& scope = {});
std::string to_text(const PlanDiff& diff);

/// Of documents (docs/schema/diff.schema.json): {"memory_kernels", "library_calls", ..., "predicted_us"}.
nlohmann::ordered_json totals_to_json(const PlanTotals& totals);
/// {"same_kernels", "removed", "added", "changed", "moved", "products", "boundaries"}.
nlohmann::ordered_json changes_to_json(const PlanDiff& diff);

}  // namespace stitchwork
