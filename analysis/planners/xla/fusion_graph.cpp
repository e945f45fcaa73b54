#include "analysis/planners/xla/fusion_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planners/xla/rules.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::xla {
namespace {

template <typename T>
std::vector<T> united(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

template <typename T>
std::vector<T> without(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

/// XLA's limits of one kernel: bytes of shared memory its reductions may ask for, and parameters.
constexpr std::int64_t kMaxSharedBytes = 40000;
constexpr std::int64_t kMaxParameters = 64;

}  // namespace

FusionGraph::FusionGraph(const Graph& graph, Constraints constraints, const std::vector<int>& regions)
    : computation_(graph.entry_computation()),
      constraints_(std::move(constraints)),
      provider_(static_cast<std::size_t>(computation_.size()), -1),
      readers_(static_cast<std::size_t>(computation_.size())) {
  for (const Node& node : computation_.nodes) {
    if (is_scalar_constant(node)) continue;
    const int i = size();
    const int region = regions.empty() ? 0 : regions[static_cast<std::size_t>(node.id)];
    instructions_.push_back({.region = region, .ops = {node.id}, .roots = {node.id}});
    provider_[static_cast<std::size_t>(node.id)] = i;
    std::vector<NodeId> reads = node.operands;
    std::erase_if(reads, [&](NodeId id) { return is_scalar_constant(computation_.node(id)); });
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    set_reads(i, std::move(reads));
  }
  instructions_.push_back({});
  members_.resize(instructions_.size());
  if (!is_scalar_constant(computation_.node(computation_.root))) set_reads(result(), {computation_.root});
  // What nobody reads is no instruction (parameters excepted, which have no code).
  for (int i = result() - 1; i >= 0; --i) collect(i);
}

std::vector<int> FusionGraph::users(int i) const {
  std::vector<int> result;
  for (NodeId root : (*this)[i].roots) result = united(result, readers(root));
  return result;
}

bool FusionGraph::has_several_users(int i) const {
  int first = -1;
  for (const NodeId root : (*this)[i].roots)
    for (const int reader : readers(root)) {
      if (first >= 0 && reader != first) return true;
      first = reader;
    }
  return false;
}

NodeId FusionGraph::reduction_root(int i) const {
  for (NodeId root : (*this)[i].roots)
    if (tiled_reduction(computation_, computation_.node(root))) return root;
  return kNoNode;
}

bool FusionGraph::contains(int i, NodeId op) const {
  const std::vector<NodeId>& ops = (*this)[i].ops;
  return ops.size() == 1 ? ops[0] == op : members_[static_cast<std::size_t>(i)].contains(op);
}

std::vector<NodeId> FusionGraph::sorted_ops(int i) const {
  std::vector<NodeId> ops = (*this)[i].ops;
  std::sort(ops.begin(), ops.end());
  return ops;
}

bool FusionGraph::regions_allow(int a, int b, bool join) const {
  const int from = (*this)[a].region, into = (*this)[b].region;
  return from == into || (from == kAnyRegion && !join);
}

std::optional<Constraints::Pair> FusionGraph::keeps_apart(int a, int b) const {
  return constraints_.keeps_apart([&](NodeId op) { return contains(a, op); },
                                  [&](NodeId op) { return contains(b, op); });
}

void FusionGraph::set_reads(int i, std::vector<NodeId> reads) {
  Instruction& instruction = instructions_[static_cast<std::size_t>(i)];
  const auto note = [&](NodeId value) {
    if (changes_) changes_->emplace_back(value, i);
  };
  for (NodeId value : without(instruction.reads, reads)) {
    erase_sorted(readers_[static_cast<std::size_t>(value)], i);
    note(value);
  }
  for (NodeId value : without(reads, instruction.reads)) {
    insert_sorted(readers_[static_cast<std::size_t>(value)], i);
    note(value);
  }
  instruction.reads = std::move(reads);
}

/// `last`: the other goes away.
void FusionGraph::absorb(int into, int other, bool last) {
  Instruction& target = instructions_[static_cast<std::size_t>(into)];
  Instruction& source = instructions_[static_cast<std::size_t>(other)];
  const bool input = reduction_root(into) != kNoNode || reduction_root(other) != kNoNode;
  std::unordered_set<NodeId>& members = members_[static_cast<std::size_t>(into)];
  if (last && source.ops.size() > std::max<std::size_t>(1, target.ops.size())) {  // the fewer are copied
    std::swap(target.ops, source.ops);
    std::swap(members, members_[static_cast<std::size_t>(other)]);
  }
  if (members.empty()) members.insert(target.ops.begin(), target.ops.end());  // of one op there were none
  for (const NodeId op : source.ops)
    if (members.insert(op).second) target.ops.push_back(op);
  std::vector<NodeId> reads = united(target.reads, source.reads);
  std::erase_if(reads, [&](NodeId value) { return members.contains(value); });
  set_reads(into, std::move(reads));
  if (target.kind != InstructionKind::kTiles)
    target.kind = input ? InstructionKind::kInput : InstructionKind::kLoop;
}

/// Removes `i` if nobody reads it, and then what it alone read.
void FusionGraph::collect(int i) {
  std::vector<int> open{i};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    Instruction& instruction = instructions_[static_cast<std::size_t>(at)];
    if (!instruction.alive || at == result()) continue;
    // Roots nobody reads are not provided any more.
    if (instruction.roots.size() > 1) {
      std::vector<NodeId> live;
      for (NodeId root : instruction.roots)
        if (!readers(root).empty()) live.push_back(root);
      if (!live.empty() && live.size() < instruction.roots.size()) {
        for (NodeId root : without(instruction.roots, live)) provider_[static_cast<std::size_t>(root)] = -1;
        instruction.roots = std::move(live);
      }
    }
    const bool read = std::any_of(instruction.roots.begin(), instruction.roots.end(),
                                  [&](NodeId root) { return !readers(root).empty(); });
    if (read || computation_.node(instruction.ops[0]).op == Op::kParameter) continue;
    instruction.alive = false;
    members_[static_cast<std::size_t>(at)].clear();
    for (NodeId value : instruction.reads)
      if (provider(value) >= 0) open.push_back(provider(value));
    for (NodeId root : instruction.roots) provider_[static_cast<std::size_t>(root)] = -1;
    set_reads(at, {});
  }
}

void FusionGraph::fuse(int producer, int consumer) {
  const bool last = !has_several_users(producer);
  absorb(consumer, producer, last);
  collect(producer);
}

void FusionGraph::make_call(const std::vector<NodeId>& call) {
  const int i = provider(call.back());
  std::unordered_set<NodeId>& members = members_[static_cast<std::size_t>(i)];
  members.insert(call.begin(), call.end());
  std::vector<NodeId> reads;
  for (const NodeId op : call) reads = united(reads, (*this)[provider(op)].reads);
  std::erase_if(reads, [&](NodeId value) { return members.contains(value); });
  std::vector<int> others;
  for (const NodeId op : call)
    if (provider(op) != i) others.push_back(provider(op));
  instructions_[static_cast<std::size_t>(i)].ops = call;
  set_reads(i, std::move(reads));
  for (const int other : others) collect(other);
}

void FusionGraph::join(int into, int other) {
  const std::vector<NodeId> roots = (*this)[other].roots;
  absorb(into, other, true);
  Instruction& source = instructions_[static_cast<std::size_t>(other)];
  source.alive = false;
  set_reads(other, {});
  Instruction& target = instructions_[static_cast<std::size_t>(into)];
  target.roots = united(target.roots, roots);
  for (NodeId root : roots) provider_[static_cast<std::size_t>(root)] = into;
  collect(into);
}

std::vector<int> FusionGraph::post_order() const {
  std::vector<int> order;
  std::vector<char> seen(instructions_.size(), 0);
  struct Frame {
    int at;
    std::size_t next;
  };
  std::vector<Frame> path{{result(), 0}};
  seen.back() = 1;
  while (!path.empty()) {
    Frame& top = path.back();
    const Instruction& instruction = (*this)[top.at];
    if (top.next == instruction.reads.size()) {
      order.push_back(top.at);
      path.pop_back();
      continue;
    }
    const int operand = provider(instruction.reads[top.next++]);
    if (operand < 0 || seen[static_cast<std::size_t>(operand)]) continue;
    seen[static_cast<std::size_t>(operand)] = 1;
    path.push_back({operand, 0});
  }
  return order;
}

Ruling fits_one_kernel(const FusionGraph& graph, int a, int b, bool keeps_roots_of_a) {
  const Computation& computation = graph.computation();
  if (!graph.regions_allow(a, b, keeps_roots_of_a)) return {"xla.region", "they are planned apart"};
  if (graph.keeps_apart(a, b)) return {"override.forbid_merge", "an override keeps ops of theirs apart"};
  std::int64_t shared = 0;
  for (int i : {a, b})
    for (NodeId root : graph[i].roots) shared += tile_shared_bytes(computation, computation.node(root));
  if (shared > kMaxSharedBytes)
    return {"xla.shared-memory", "their reductions need {} bytes of shared memory, {} allowed", shared,
            kMaxSharedBytes};
  std::vector<NodeId> reads = united(graph[a].reads, graph[b].reads);
  std::erase_if(reads, [&](NodeId value) { return graph.contains(a, value) || graph.contains(b, value); });
  const std::int64_t outputs =
      static_cast<std::int64_t>(graph[b].roots.size() + (keeps_roots_of_a ? graph[a].roots.size() : 0));
  const std::int64_t parameters = static_cast<std::int64_t>(reads.size()) + outputs;
  const bool grows = reads.size() > std::max(graph[a].reads.size(), graph[b].reads.size());
  if (parameters > kMaxParameters && grows)
    return {"xla.too-many-parameters", "the kernel would have {} parameters, {} allowed", parameters,
            kMaxParameters};
  return kAllowed;
}

void Recorder::record(std::string_view step, NodeId subject, NodeId object, const Ruling& ruling,
                      std::string_view taken) {
  if (!on_) return;
  const std::string_view rule = ruling ? taken : ruling.rule;
  const auto [seen, first] =
      seen_.try_emplace(fmt::format("{} {} {} {}", step, subject, object, rule), decisions_.size());
  if (!first) {
    decisions_[seen->second].step.clear();
    seen->second = decisions_.size();
  }
  Verdict verdict =
      ruling ? Verdict::yes(std::string(taken))
             : Verdict::no(std::string(rule), fmt::format(fmt::runtime(ruling.why), ruling.a, ruling.b));
  decisions_.push_back({std::string(step), computation_.node(subject).name,
                        object == kNoNode ? std::string() : computation_.node(object).name,
                        std::move(verdict)});
}

std::vector<Decision> Recorder::take() {
  std::erase_if(decisions_, [](const Decision& d) { return d.step.empty(); });
  return std::move(decisions_);
}

}  // namespace stitchwork::xla
