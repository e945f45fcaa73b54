// A plan op by op: where each is computed, and the decisions that name it.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/plan/plan.h"
#include "core/base/derived.h"

namespace stitchwork {

/// A plan seen op by op: which kernels compute it, and what was decided about it.
class PlanView {
 public:
  /// Decisions are the plan's own if it has them; else those of planning again with its planner, knobs and
  /// edits, if that gives the same kernels; else none (a plan somebody edited). Both must outlive the view.
  /// `about`: an op of the planned graph whose decisions are enough; "": those of all are wanted.
  PlanView(const Graph& graph, const FusionPlan& plan, const std::string& about = "");

  const Graph& graph() const { return graph_; }
  const Computation& computation() const { return computation_; }
  const std::string& name(NodeId op) const { return computation_.node(op).name; }
  /// But those about forms, each once: the last of equal ones. Of the entry computation's ops alone.
  const std::vector<Decision>& decisions() const { return decisions_; }
  /// The ops that decision `d` names; kNoNode: none, or no op of the computation.
  std::pair<NodeId, NodeId> about(std::size_t d) const { return about_[d]; }
  /// The decisions that name `op` first, ascending; those that name first an op whose value is that of `op`.
  std::span<const std::size_t> decisions_of(NodeId op) const;
  std::span<const std::size_t> decisions_of_value(NodeId op) const;
  /// Of kernel `k`, in the order in which they were tried.
  std::vector<Decision> forms(std::size_t k) const;

  std::size_t kernels() const { return ops_.size(); }
  const KernelPlan& kernel(std::size_t k) const { return plan_.kernels[k]; }
  /// What kernel `k` computes, names and inlined constants left out.
  const std::set<NodeId>& ops(std::size_t k) const { return ops_[k]; }
  const std::map<NodeId, std::vector<std::size_t>>& homes() const { return homes_; }
  /// The kernels that compute `op`, ascending; several if it is recomputed.
  const std::vector<std::size_t>& kernels_of(NodeId op) const;
  /// Every kernel that computes `consumer` computes `producer` too.
  bool shares_kernel(NodeId producer, NodeId consumer) const;

  bool share_a_kernel(NodeId a, NodeId b) const;

  Derived derived;  ///< what was found out about the plan; no part of the value

 private:
  const Graph& graph_;
  const Computation& computation_;
  const FusionPlan& plan_;
  std::vector<Decision> decisions_, forms_;
  std::vector<std::pair<NodeId, NodeId>> about_;  ///< subject and object of each decision
  std::unordered_map<NodeId, std::vector<std::size_t>> of_, of_value_;  ///< decisions, by op
  std::unordered_map<NodeId, std::vector<std::size_t>> forms_of_;       ///< by op: those it is the subject of
  std::vector<std::set<NodeId>> ops_;
  std::map<NodeId, std::vector<std::size_t>> homes_;
};

/// The decisions about the entry: the plan's own, else those of planning again, as PlanView has them.
/// `about`: ops of the planned graph whose decisions are enough; empty: those of all are wanted.
std::vector<Decision> decisions_behind(const Graph& model, const FusionPlan& plan,
                                       const std::vector<std::string>& about);

/// The ops that compute something and whose values `op` reads, through names, broadcasts and slices; library
/// calls count, parameters and immediates do not.
std::vector<NodeId> computing_operands(const Computation& computation, NodeId op);

}  // namespace stitchwork
