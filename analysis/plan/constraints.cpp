#include "analysis/plan/constraints.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/sorted.h"
#include "core/base/suggest.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

[[noreturn]] void refuse(const Edit& edit, const std::string& why, const std::string& hint) {
  throw Error(fmt::format("override '{}': {}", to_text(edit), why), hint);
}

/// An op of the edit, which some kernel must be able to compute.
NodeId find_op(const Computation& computation, const Edit& edit, std::size_t i) {
  const std::string& wanted = edit.ops.at(i);
  const NodeId found = computation.find(wanted);
  if (found == kNoNode) {
    std::vector<std::string_view> names;
    for (const Node& node : computation.nodes) names.push_back(node.name);
    refuse(edit, fmt::format("no op is called '{}'", wanted),
           fmt::format("close names: {}", fmt::join(nearest(wanted, names, 5), ", ")));
  }
  const Node& node = computation.node(found);
  if (plan_role(node) != PlanRole::kMemory)
    refuse(edit, fmt::format("{} is a {}, which no generated kernel computes", wanted, def(node.op).name),
           "name an op that `stitchwork plan` lists in a kernel");
  return found;
}

Scheme find_scheme(const Edit& edit) {
  std::vector<std::string_view> names;
  for (const Scheme scheme : {Scheme::kIndependent, Scheme::kLocal, Scheme::kRegional, Scheme::kResident,
                              Scheme::kGlobal, Scheme::kRecomputed}) {
    if (name(scheme) == edit.to) return scheme;
    names.push_back(name(scheme));
  }
  refuse(edit, fmt::format("'{}' is no stitching scheme", edit.to),
         fmt::format("known: {}", fmt::join(names, ", ")));
}

/// Adds a value of `ops` unless another edit wants another.
template <typename Value>
void set_once(std::map<NodeId, Value>& values, NodeId op, Value value, const Edit& edit) {
  const auto [at, added] = values.emplace(op, value);
  if (!added && at->second != value)
    refuse(edit, "another override wants something else of the same op", "keep one of them");
}

int find_threads(const Edit& edit, const Device& device) {
  if (edit.n > device.max_threads_per_block)
    refuse(edit, fmt::format("{} blocks have at most {} threads", device.id, device.max_threads_per_block),
           "ask for fewer");
  if (edit.n < kWarp || edit.n % kWarp != 0)
    refuse(edit, "blocks are made of whole warps", "ask for a multiple of 32");
  return static_cast<int>(edit.n);
}

int find_split(const Computation& computation, const Edit& edit, NodeId op) {
  if (def(computation.node(op).op).cls != OpClass::kReduce)
    refuse(edit, fmt::format("{} is no reduction", edit.ops[0]), "only rows of reductions can be split");
  const std::int64_t cols = reduction_size(computation, op).cols;
  if (edit.n < 1) refuse(edit, "a row takes at least one block", "ask for 1 to keep rows whole");
  if (edit.n > cols)
    refuse(edit, fmt::format("its rows have {} elements", cols), fmt::format("ask for at most {}", cols));
  return static_cast<int>(edit.n);
}

void require_consistent(const Computation& computation, const Constraints& wanted) {
  for (const auto& [a, b] : wanted.together) {
    for (const auto& [x, y] : wanted.apart) {
      if (std::minmax(a, b) != std::minmax(x, y)) continue;
      throw Error(fmt::format("overrides both merge {} and {} and keep them apart", computation.node(a).name,
                              computation.node(b).name),
                  "keep one of them");
    }
  }
}

bool computes(const KernelPlan& kernel, NodeId op) {
  return std::binary_search(kernel.ops.begin(), kernel.ops.end(), op);
}

/// The group that materialises `op`.
const Group* group_of(const KernelPlan& kernel, NodeId op) {
  for (const Group& group : kernel.groups) {
    if (group.dominant == op ||
        std::find(group.sub_dominants.begin(), group.sub_dominants.end(), op) != group.sub_dominants.end())
      return &group;
  }
  return nullptr;
}

/// What keeps `plan` from being what the edit wants; empty if nothing does.
std::string unfulfilled(const Computation& computation, const FusionPlan& plan, const Edit& edit) {
  const NodeId a = computation.find(edit.ops.at(0));
  const NodeId b = edit.ops.size() > 1 ? computation.find(edit.ops[1]) : kNoNode;
  bool together = false;
  for (const KernelPlan& kernel : plan.kernels) {
    if (b != kNoNode && computes(kernel, a) && computes(kernel, b)) together = true;
    if (edit.kind == EditKind::kSplit && computes(kernel, a)) {
      for (const NodeId reader : computing_readers(computation, a))
        if (computes(kernel, reader))
          return fmt::format("{} also computes {}", kernel.name, computation.node(reader).name);
    }
    if (!computes(kernel, a)) continue;
    if (edit.kind == EditKind::kScheme && name(kernel.schemes.at(a)) != edit.to)
      return fmt::format("it is {} in {}", name(kernel.schemes.at(a)), kernel.name);
    if (edit.kind == EditKind::kBlock && kernel.launch.block != edit.n)
      return fmt::format("{} has blocks of {} threads", kernel.name, kernel.launch.block);
    if (edit.kind == EditKind::kResidency && kernel.launch.blocks_per_sm > edit.n)
      return fmt::format("{} has {} an SM", kernel.name, counted(kernel.launch.blocks_per_sm, "block"));
    if (edit.kind == EditKind::kSplitFactor)
      if (const Group* group = group_of(kernel, a); group && segments(group->mapping) != edit.n)
        return fmt::format("{} splits its rows over {} blocks, as {} leads its group", kernel.name,
                           segments(group->mapping), computation.node(group->dominant).name);
  }
  if (edit.kind == EditKind::kMerge && !together) return "no kernel computes both";
  if (edit.kind == EditKind::kForbidMerge && together) return "a kernel computes both";
  return {};
}

}  // namespace

std::vector<NodeId> Constraints::named() const {
  std::vector<NodeId> result;
  for (const auto& pairs : {together, apart})
    for (const auto& [a, b] : pairs) result.insert(result.end(), {a, b});
  for (const auto& entry : schemes) result.push_back(entry.first);
  for (const auto& entry : split_factor) result.push_back(entry.first);
  sort_unique(result);
  return result;
}

bool Constraints::are_about(std::span<const NodeId> ops) const {
  const auto in = [&](NodeId op) { return std::ranges::binary_search(ops, op); };
  const auto pair_in = [&](const Pair& pair) { return in(pair.first) || in(pair.second); };
  const auto key_in = [&](const auto& wanted) {
    return std::ranges::any_of(wanted, [&](const auto& entry) { return in(entry.first); });
  };
  return std::ranges::any_of(together, pair_in) || std::ranges::any_of(apart, pair_in) || key_in(schemes) ||
         key_in(block) || key_in(split_factor) || key_in(templates) || key_in(residency);
}

bool Constraints::join(std::span<const NodeId> ops) const {
  const auto in = [&](NodeId op) { return std::ranges::binary_search(ops, op); };
  return std::ranges::any_of(together, [&](const Pair& pair) { return in(pair.first) && in(pair.second); });
}

Constraints constraints(const Graph& graph, const Device& device, const std::vector<Edit>& edits) {
  const Computation& computation = graph.entry_computation();
  Constraints result;
  for (const Edit& edit : edits) {
    if (is_rewriting(edit)) continue;  // done before there is a graph to plan
    const NodeId op = find_op(computation, edit, 0);
    switch (edit.kind) {
      case EditKind::kScheme:
        set_once(result.schemes, op, find_scheme(edit), edit);
        break;
      case EditKind::kMerge:
      case EditKind::kForbidMerge: {
        const NodeId other = find_op(computation, edit, 1);
        if (op == other) refuse(edit, "it names one op twice", "name two ops");
        (edit.kind == EditKind::kMerge ? result.together : result.apart).emplace_back(op, other);
        break;
      }
      case EditKind::kSplit: {
        const std::vector<NodeId> readers = computing_readers(computation, op);
        if (readers.empty())
          refuse(edit, fmt::format("no op that a kernel computes reads {}", edit.ops[0]),
                 "split after an op whose readers are in its kernel");
        for (const NodeId reader : readers) result.apart.emplace_back(op, reader);
        break;
      }
      case EditKind::kBlock:
        set_once(result.block, op, find_threads(edit, device), edit);
        break;
      case EditKind::kSplitFactor:
        set_once(result.split_factor, op, find_split(computation, edit, op), edit);
        break;
      case EditKind::kResidency:
        if (edit.n < 1 || edit.n > device.max_blocks_per_sm)
          refuse(edit, fmt::format("an SM of {} holds 1 to {} blocks", device.id, device.max_blocks_per_sm),
                 "ask for a number in between");
        set_once(result.residency, op, static_cast<int>(edit.n), edit);
        break;
      case EditKind::kTemplate:
        set_once(result.templates, op, edit.to, edit);
        break;
      case EditKind::kRewrite:
      case EditKind::kForbidRewrite:
        break;
    }
  }
  require_consistent(computation, result);
  return result;
}

std::vector<NodeId> computing_readers(const Computation& computation, NodeId op) {
  std::set<NodeId> views{op}, readers;
  for (NodeId id = op + 1; id < computation.size(); ++id) {
    const Node& node = computation.node(id);
    const bool reads = std::any_of(node.operands.begin(), node.operands.end(),
                                   [&](NodeId operand) { return views.contains(operand); });
    if (!reads) continue;
    if (is_index_map(node))
      views.insert(id);
    else if (plan_role(node) == PlanRole::kMemory)
      readers.insert(id);
  }
  return {readers.begin(), readers.end()};
}

void require_honoured(const Graph& graph, const FusionPlan& plan, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    if (is_rewriting(edit)) continue;  // refused where it does not hold
    const std::string why = unfulfilled(graph.entry_computation(), plan, edit);
    if (!why.empty())
      refuse(edit, fmt::format("planner {} cannot do it: {}", plan.planner, why),
             "`stitchwork explain MODEL OP` prints the rules that decide");
  }
}

std::vector<Decision> edit_decisions(const std::vector<Edit>& edits) {
  std::vector<Decision> decisions;
  for (const Edit& edit : edits) {
    decisions.push_back({"override", edit.ops.at(0), edit.ops.size() > 1 ? edit.ops[1] : std::string(),
                         Verdict::yes(fmt::format("override.{}", name(edit.kind)), to_text(edit))});
  }
  return decisions;
}

}  // namespace stitchwork
