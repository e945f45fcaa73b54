#include "analysis/planners/auto/products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "analysis/facts/once.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/stitching/scope.h"
#include "core/base/disjoint_sets.h"
#include "core/base/sorted.h"
#include "occupancy_model/errors.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::automatic {
namespace {

/// Times its launch, gap and latency that a small product's call takes, at most.
/// A choice: kernels with products of 300 us take 24 to 53 % more than estimated, simulated (multi_interest
/// on a V100: operands are read again from memory), those of up to 15 us what they are estimated.
constexpr double kMostOverheads = 4;

constexpr const char* kProductsStep = "products";

/// What the kernels and calls of one plan make of a part.
struct Side {
  std::vector<KernelPlan> kernels;
  std::vector<std::vector<NodeId>> calls;
  double kernels_us = 0, calls_us = 0;
  double error = 0;  ///< Planned::error

  double us() const { return kernels_us + calls_us; }
};

/// Ops that kernels or calls of some plan tie together.
struct Part {
  std::vector<Side> sides;       ///< by plan
  std::vector<NodeId> products;  ///< and convolutions
  std::size_t best = 0, taken = 0;

  /// By how much the best plan is faster than the first beyond what may be wrong: of kernels what another
  /// form has to gain, of calls the error of their modelled times.
  double gain_us() const {
    const Side &before = sides.front(), &after = sides[best];
    return before.us() - after.us() - kOtherForm * std::max(before.kernels_us, after.kernels_us) -
           kLibraryError * (before.calls_us - std::min(before.calls_us, after.calls_us)) -
           after.error * after.kernels_us;
  }
};

class Parts {
 public:
  Parts(const astitch::Nodes& nodes, const Device& device, const PlanJudge& judge, bool tf32,
        std::vector<Planned> plans)
      : nodes_(nodes), computation_(*nodes.computation), device_(device), tf32_(tf32) {
    for (const Planned& plan : plans) {
      names_.push_back(plan.how);
      for (const KernelPlan& kernel : plan.kernels) join(made_by(kernel));
      for (const std::vector<NodeId>& call : plan.calls) join(call);
    }
    join_maps_read();
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const auto side = [&](NodeId op) -> Side& {
        Part& part = parts_[sets_.find(op)];
        part.sides.resize(plans.size());
        part.sides[p].error = plans[p].error;
        return part.sides[p];
      };
      for (KernelPlan& kernel : plans[p].kernels)
        side(made_by(kernel).front()).kernels.push_back(std::move(kernel));
      for (std::vector<NodeId>& call : plans[p].calls) side(call.front()).calls.push_back(std::move(call));
    }
    for (const Node& node : computation_.nodes)
      if (const auto part = parts_.find(sets_.find(node.id));
          part != parts_.end() && matrix_product(computation_, node))
        part->second.products.push_back(node.id);
    for (auto& [first, part] : parts_) price(part, judge);
  }

  /// Takes of each part what is fastest, the most gainful ones first while kernels can be put in order.
  Planned take() {
    std::vector<Part*> gaining;
    for (auto& [first, part] : parts_)
      if (part.gain_us() > 0) gaining.push_back(&part);
    std::ranges::stable_sort(gaining, std::greater<>(), [](const Part* part) { return part->gain_us(); });
    for (Part* part : gaining) part->taken = part->best;
    if (can_be_ordered()) return taken();
    for (Part* part : gaining) part->taken = 0;
    for (Part* part : gaining) {
      part->taken = part->best;
      if (!can_be_ordered()) part->taken = 0;
    }
    return taken();
  }

  /// Of what was recorded of the plans what is of the parts taken, and why each small product is where it is.
  std::vector<Decision> decisions(std::vector<std::vector<Decision>> of_plans) const {
    std::vector<Decision> result, own;
    for (const auto& [first, part] : parts_) record(part, own);
    std::set<std::string> told;
    for (const Decision& decision : own) told.insert(decision.subject);
    const auto taken_of = [&](const std::string& op) {
      const auto part = parts_.find(sets_.find(computation_.find(op)));
      return part == parts_.end() ? 0 : part->second.taken;
    };
    for (std::size_t p = 0; p < of_plans.size(); ++p)
      std::ranges::copy_if(of_plans[p], std::back_inserter(result), [&](const Decision& decision) {
        if (decision.step == kProductsStep && told.contains(decision.subject)) return false;
        return taken_of(decision.subject) == p && (decision.object.empty() || taken_of(decision.object) == p);
      });
    std::ranges::move(own, std::back_inserter(result));
    return result;
  }

 private:
  void join(const std::vector<NodeId>& ops) {
    for (const NodeId op : ops) sets_.join(ops.front(), op);
  }

  /// What the kernel computes that others do not repeat, and what it stores.
  std::vector<NodeId> made_by(const KernelPlan& kernel) const {
    std::vector<NodeId> result = materialised(kernel);
    std::ranges::copy_if(kernel.ops, std::back_inserter(result),
                         [&](NodeId id) { return nodes_[id].member && !nodes_[id].transparent; });
    sort_unique(result);
    return result;
  }

  /// Index maps are stored where a call reads them: where the product is in a kernel nobody needs to.
  void join_maps_read() {
    for (const Node& node : computation_.nodes) {
      if (!is_product(node) || nodes_[node.id].role != PlanRole::kMemory) continue;
      for (const NodeId read : library_inputs(computation_, node))
        if (nodes_[read].transparent) sets_.join(node.id, read);
    }
  }

  void price(Part& part, const PlanJudge& judge) const {
    for (Side& side : part.sides) {
      side.kernels_us = judge.worth(*nodes_.graph, device_, side.kernels).us;
      std::vector<NodeId> computed;
      for (const KernelPlan& kernel : side.kernels)
        computed.insert(computed.end(), kernel.ops.begin(), kernel.ops.end());
      for (const std::vector<NodeId>& call : side.calls) {
        computed.push_back(call.front());
        side.calls_us += call_us(call);
      }
      sort_unique(computed);
      for (const NodeId product : part.products)
        if (!contains_sorted(computed, product)) side.calls_us += call_us({&product, 1});
    }
    const auto least =
        std::ranges::min_element(part.sides, std::less<>(), [](const Side& side) { return side.us(); });
    part.best = static_cast<std::size_t>(least - part.sides.begin());
  }

  /// With the gap before it.
  double call_us(std::span<const NodeId> call) const {
    return library_time(device_, *matrix_product(computation_, call, tf32_)).total_us + device_.launch_gap_us;
  }

  Planned taken() const {
    Planned plan;
    for (const auto& [first, part] : parts_) {
      const Side& side = part.sides[part.taken];
      plan.kernels.insert(plan.kernels.end(), side.kernels.begin(), side.kernels.end());
      plan.calls.insert(plan.calls.end(), side.calls.begin(), side.calls.end());
    }
    return plan;
  }

  bool can_be_ordered() const {
    Planned plan = taken();
    return stitchwork::can_be_ordered(*nodes_.graph, std::move(plan.kernels), std::move(plan.calls));
  }

  void record(const Part& part, std::vector<Decision>& decisions) const {
    std::vector<std::string> ways;
    for (std::size_t p = 0; p < part.sides.size(); ++p)
      ways.push_back(fmt::format("{:.2f} us {}", part.sides[p].us(), names_[p]));
    const std::string why =
        fmt::format("what it is tied to takes {}{}", fmt::join(ways, ", "),
                    part.taken == part.best ? ""
                    : part.gain_us() > 0    ? ": with others taken it would wait for itself"
                                            : ": it gains no more than the times may be wrong");
    for (const NodeId product : part.products)
      if (nodes_[product].role == PlanRole::kMemory)
        decisions.push_back(
            {kProductsStep, nodes_.name(product), "",
             part.taken > 0 ? Verdict::yes("auto.product", why) : Verdict::no("auto.product", why)});
  }

  const astitch::Nodes& nodes_;
  const Computation& computation_;
  const Device& device_;
  bool tf32_;
  DisjointSets<NodeId> sets_;
  std::map<NodeId, Part> parts_;         ///< by the least of their ops
  std::vector<std::string_view> names_;  ///< of the plans
};

}  // namespace

Planned cheaper_parts(const astitch::Nodes& nodes, const Device& device, const PlanJudge& judge, bool tf32,
                      std::vector<Planned> plans) {
  std::vector<std::vector<Decision>> decisions;
  for (Planned& plan : plans) decisions.push_back(std::move(plan.decisions));
  Parts parts(nodes, device, judge, tf32, std::move(plans));
  Planned result = parts.take();
  if (std::ranges::any_of(decisions, [](const auto& of_plan) { return !of_plan.empty(); }))
    result.decisions = parts.decisions(std::move(decisions));
  return result;
}

namespace {

/// Those in which the loads of generated code take no longer than the call, and that `is`.
template <typename Is>
std::vector<NodeId> products_for_kernels(const Graph& graph, const Device& device, Is is) {
  const Computation& computation = graph.entry_computation();
  std::vector<NodeId> result;
  const std::vector<bool> once = once_values(computation);
  for (const Node& node : computation.nodes) {
    if (!is_product(node) || (!once.empty() && once[static_cast<std::size_t>(node.id)])) continue;
    const auto product = matrix_product(computation, node);
    const double multiplications = product->batch * product->m * product->n * product->k;
    if (multiplications == 0) continue;
    const LibraryTime call = library_time(device, *product);
    const double loads_us = 2 * multiplications / kWarp / device.sms / (device.clock_ghz * 1e3);
    if (loads_us <= call.total_us && is(*product, call)) result.push_back(node.id);
  }
  return result;
}

}  // namespace

std::vector<NodeId> small_products(const Graph& graph, const Device& device) {
  return products_for_kernels(graph, device, [&](const auto&, const LibraryTime& call) {
    return call.total_us <= kMostOverheads * (call.launch_us + call.latency_us + device.launch_gap_us);
  });
}

std::vector<NodeId> streamed_products(const Graph& graph, const Device& device) {
  return products_for_kernels(graph, device, [&](const auto& product, const LibraryTime& call) {
    // A block has the rows of a batch in shared memory, and loops over what is contracted.
    return product.batch > 1 && product.k <= kSerialProduct &&
           call.total_us > kMostOverheads * (call.launch_us + call.latency_us + device.launch_gap_us);
  });
}

}  // namespace stitchwork::automatic
