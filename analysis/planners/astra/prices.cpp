#include "analysis/planners/astra/prices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "occupancy_model/library.h"

namespace stitchwork::astra {
namespace {

double bytes_of(const Computation& computation, NodeId op) {
  return static_cast<double>(computation.node(op).shape.byte_size());
}

void add_once(std::vector<NodeId>& list, NodeId op) {
  if (std::find(list.begin(), list.end(), op) == list.end()) list.push_back(op);
}

}  // namespace

std::vector<NodeId> fused_ops(const Space& space, const PricedCall& call) {
  std::vector<NodeId> result;
  if (call.dots.size() == 1) return result;
  for (const int l : call.ladders) {
    const Ladder& ladder = space.ladders[at(l)];
    std::set<NodeId> rungs;
    for (const int rung : ladder.rungs) rungs.insert(space.products.list[at(rung)].dot);
    if (call.sums) result.push_back(ladder.root);
    std::ranges::copy_if(call.dots, std::back_inserter(result),
                         [&](NodeId dot) { return rungs.contains(dot); });
  }
  return result;
}

double library_us(const Device& device, const MatrixProduct& product, std::string_view variant) {
  for (const LibraryKernel& kernel : library_kernels())
    if (kernel.name == variant) return library_time(device, product, kernel).total_us;
  return library_time(device, product).total_us;
}

CallPrices::CallPrices(const Graph& graph, const Device& device, const Space& space,
                       const TreeOptions& options, bool tf32, double rest_us)
    : computation_(graph.entry_computation()),
      device_(device),
      space_(space),
      options_(options),
      tf32_(tf32),
      rest_us_(rest_us),
      users_(computation_.users()),
      ladder_of_(space.products.list.size(), -1) {
  for (std::size_t l = 0; l < space.ladders.size(); ++l)
    for (const int rung : space.ladders[l].rungs) ladder_of_[at(rung)] = static_cast<int>(l);
  for (std::size_t p = 0; p < space.products.list.size(); ++p) product_of_[space.products.list[p].dot] = p;
  for (const NodeId dot : space.products.dots) dots_[dot] = variants_us(dot, {});
  for (std::size_t s = 0; s < (options.allocations ? space.strategies.list.size() : 1); ++s) {
    for (const StrategyGroup& group : space.strategies.list[s].groups) add_group(s, group);
    if (options.appends) share_appending(s);
  }
}

/// `gemm` with m 0: of the dot as it is.
std::vector<double> CallPrices::variants_us(NodeId dot, const Gemm& gemm) const {
  std::optional<MatrixProduct> product = matrix_product(computation_, computation_.node(dot), tf32_);
  SW_CHECK(product.has_value(), "{} is no product", computation_.node(dot).name);
  if (gemm.c_row > 0) {
    product->m = static_cast<double>(gemm.m);
    product->n = static_cast<double>(gemm.n);
    product->k = static_cast<double>(gemm.k);
    product->bytes = static_cast<double>(byte_size(product->operands)) *
                     (product->m * product->k + product->k * product->n + product->m * product->n);
  }
  std::vector<double> us;
  for (const std::string& variant : options_.variants)
    us.push_back(library_us(device_, *product, variant) + device_.launch_gap_us);
  return us;
}

PricedCall CallPrices::priced(const FusedCall& call, const Gemm& gemm) const {
  PricedCall result;
  result.dots = call.dots;
  for (const NodeId dot : call.dots) {
    const std::size_t p = product_of_.at(dot);
    add_once(result.left, space_.products.list[p].left.matrix.op);
    add_once(result.right, space_.products.list[p].right.matrix.op);
    const int ladder = ladder_of_[p];
    if (std::find(result.ladders.begin(), result.ladders.end(), ladder) == result.ladders.end())
      result.ladders.push_back(ladder);
    else
      result.sums = true;
  }
  result.us = call.dots.size() == 1 ? dots_.at(call.dots[0]) : variants_us(call.dots[0], gemm);
  result.around_us = results_us(result);
  return result;
}

/// Parts of a result that a call, or whoever takes the model's results, wants dense are copied by a kernel;
/// rungs that a call does not sum are read once more by the kernel that does.
double CallPrices::results_us(const PricedCall& call) const {
  double copied = 0, summed = 0;
  for (const int l : call.ladders) {
    const Ladder& ladder = space_.ladders[at(l)];
    const double bytes = bytes_of(computation_, ladder.root);
    if (ladder.rungs.size() > 1 && !call.sums) {
      summed += bytes;
      continue;
    }
    if (call.ladders.size() == 1) continue;
    const auto wants_dense = [&](NodeId user) {
      const PlanRole role = plan_role(computation_.node(user));
      return role == PlanRole::kLibrary || role == PlanRole::kOpaque || role == PlanRole::kAlias;
    };
    const std::vector<NodeId>& users = users_[at(ladder.root)];
    if (space_.products.is_result[at(ladder.root)] || std::any_of(users.begin(), users.end(), wants_dense))
      copied += 2 * bytes;
  }
  const double copy_us = copied == 0 ? 0 : transfer_us(device_, copied) + device_.launch_gap_us;
  return copy_us + (summed == 0 ? 0 : transfer_us(device_, summed) - device_.launch_us);
}

void CallPrices::add_group(std::size_t strategy, const StrategyGroup& group) {
  auto& of_group = calls_[{strategy, group.number}];
  for (const Chunk& chunk : offered_chunks(group.group, device_, options_))
    for (const FusedCall& call : fused_calls(space_.products, space_.ladders, space_.groups[at(group.number)],
                                             space_.strategies.list[strategy], group, chunk))
      of_group[to_text(chunk)].push_back(priced(call, call.gemm));
}

void CallPrices::share_appending(std::size_t strategy) {
  std::map<std::vector<NodeId>, Appending> appended;
  const auto each = [&](auto visit) {
    for (const StrategyGroup& group : space_.strategies.list[strategy].groups)
      for (auto& [chunk, list] : calls_.at({strategy, group.number}))
        for (PricedCall& call : list)
          for (const std::vector<NodeId>* side : {&call.left, &call.right})
            if (side->size() > 1) visit(std::pair(group.number, chunk), call, *side);
  };
  each([&](const std::pair<int, std::string>& where, PricedCall&, const std::vector<NodeId>& side) {
    Appending& of = appended[side];
    if (of.groups.empty()) {
      double bytes = 0;
      for (const NodeId op : side) bytes += 2 * bytes_of(computation_, op);
      of.us = transfer_us(device_, bytes) + device_.launch_gap_us;
    }
    of.groups.insert(where.first);
    ++of.uses[where];
  });
  each([&](const std::pair<int, std::string>& where, PricedCall& call, const std::vector<NodeId>& side) {
    const Appending& of = appended.at(side);
    call.around_us += of.us / static_cast<double>(of.groups.size()) / of.uses.at(where);
  });
}

std::map<std::string, double> CallPrices::measure(const Bindings& bindings) const {
  std::map<std::string, double> us;
  const auto variant = [&](const std::string& name) {
    const auto found = std::find(options_.variants.begin(), options_.variants.end(), bindings.at(name));
    SW_CHECK(found != options_.variants.end(), "{} has no variant {}", name, bindings.at(name));
    return static_cast<std::size_t>(found - options_.variants.begin());
  };
  const std::size_t s = std::stoul(bindings.at("strategy").substr(1));
  double whole = rest_us_;
  std::set<NodeId> grouped;
  for (const StrategyGroup& group : space_.strategies.list.at(s).groups) {
    const std::string name = fmt::format("g{}", group.number), chunk = bindings.at(name);
    double sum = 0;
    const std::vector<PricedCall>& list = calls(s, group.number, chunk);
    for (std::size_t c = 0; c < list.size(); ++c) {
      const std::string call = fmt::format("{}/{}/{}", name, chunk, c);
      us[call] = list[c].us[variant(call)] + list[c].around_us;
      sum += us[call];
      grouped.insert(list[c].dots.begin(), list[c].dots.end());
    }
    us[name] = sum;
    whole += sum;
  }
  for (const auto& [dot, times] : dots_) {
    if (grouped.contains(dot)) continue;
    const std::string name = product_name(computation_, dot);
    us[name] = times[variant(name)];
    whole += us[name];
  }
  us["strategy"] = whole;
  return us;
}

}  // namespace stitchwork::astra
