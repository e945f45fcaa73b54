#include "analysis/forms/alike.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/stitching/row_work.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_attributes.h"

namespace stitchwork {
namespace {

class Renaming {
 public:
  Renaming(std::span<const NodeId> from, std::span<const NodeId> to) {
    SW_CHECK(from.size() == to.size(), "{} and {} ops are not alike", from.size(), to.size());
    for (std::size_t i = 0; i < from.size(); ++i) to_.emplace(from[i], to[i]);
  }

  void rename(NodeId& id) const {
    if (const auto at = to_.find(id); at != to_.end()) id = at->second;
  }
  void rename(std::vector<NodeId>& ids) const {
    for (NodeId& id : ids) rename(id);
    std::sort(ids.begin(), ids.end());
  }
  template <typename Value>
  void rename(std::map<NodeId, Value>& values) const {
    std::map<NodeId, Value> result;
    for (auto& [id, value] : values) {
      NodeId other = id;
      rename(other);
      result.emplace(other, std::move(value));
    }
    values = std::move(result);
  }

 private:
  std::unordered_map<NodeId, NodeId> to_;
};

}  // namespace

KernelPlan renamed(const KernelPlan& kernel, std::span<const NodeId> from, std::span<const NodeId> to) {
  const Renaming as(from, to);
  KernelPlan result = kernel;
  as.rename(result.ops);
  as.rename(result.outputs);
  for (Group& group : result.groups) {
    as.rename(group.dominant);
    for (auto* ids : {&group.sub_dominants, &group.across, &group.one_pass, &group.ops}) as.rename(*ids);
  }
  as.rename(result.schemes);
  as.rename(result.levels);
  as.rename(result.in_phase);
  for (auto* slots : {&result.shared, &result.scratch})
    for (MemorySlot& slot : *slots) as.rename(slot.op);
  for (Residence& residence : result.resident) {
    as.rename(residence.op);
    as.rename(residence.group);
  }
  std::stable_sort(result.resident.begin(), result.resident.end(),
                   [](const Residence& a, const Residence& b) { return a.op < b.op; });
  for (Tile& tile : result.tiles) {
    as.rename(tile.op);
    as.rename(tile.group);
  }
  as.rename(result.shrunk);
  return result;
}

namespace astitch {
namespace {

/// Index maps around a stitch op, for each of its members, up to which it is compared with others.
/// A choice, not measured: it bounds the walk where thousands of slices read one array.
constexpr std::size_t kMostMaps = 8;

/// The members with the index maps that they read through, and that read them, whoever these are of: mappings
/// are chosen by them (row_work.h). Ascending; empty: too many.
std::vector<NodeId> with_maps(const Nodes& nodes, const std::vector<NodeId>& members) {
  std::set<NodeId> found(members.begin(), members.end());
  std::vector<NodeId> open(members);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const std::vector<NodeId>* next : {&nodes.node(id).operands, &nodes[id].users})
      for (const NodeId other : *next)
        if (nodes[other].transparent && !nodes[other].immediate && found.insert(other).second)
          open.push_back(other);
    if (found.size() > (1 + kMostMaps) * members.size()) return {};
  }
  return {found.begin(), found.end()};
}

class Description {
 public:
  Description(const Nodes& nodes, const StitchOp& op)
      : nodes_(nodes), op_(op), computation_(*nodes.computation) {}

  std::optional<Likeness> run() {
    inside_ = with_maps(nodes_, op_.members);
    if (inside_.empty()) return std::nullopt;
    all_ = inside_;
    for (const NodeId id : inside_)
      for (const NodeId operand : nodes_.node(id).operands) {
        all_.push_back(operand);
        all_.push_back(buffer_of(computation_, operand));
      }
    sort_unique(all_);
    add(static_cast<std::int64_t>(inside_.size()));
    for (const NodeId id : all_) {
      add(to_text(nodes_.node(id).shape));
      if (contains_sorted(inside_, id))
        add_inside(id);
      else
        add_outside(id);
    }
    return Likeness{std::move(key_), std::move(all_)};
  }

 private:
  void add(std::int64_t number) { key_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void add(const std::string& text) {
    add(static_cast<std::int64_t>(text.size()));
    key_ += text;
  }
  /// A node of all_, by its place there.
  void add_place(NodeId id) { add(std::lower_bound(all_.begin(), all_.end(), id) - all_.begin()); }

  void add_inside(NodeId id) {
    const Node& node = nodes_.node(id);
    const NodeFacts& facts = nodes_[id];
    add(static_cast<std::int64_t>(node.op));
    add(plain_attributes_text(node));
    add_callees(node);
    const bool member = contains_sorted(op_.members, id);
    const bool read = facts.buffer_needed || std::ranges::any_of(facts.users, [&](NodeId user) {
                        return !nodes_[user].transparent && !contains_sorted(op_.members, user);
                      });
    add(member | contains_sorted(op_.outputs, id) << 1 | read << 2 | facts.member << 3 | facts.isolated << 4 |
        facts.transparent << 5);
    add(facts.code < 0 ? -1 : codes_.try_emplace(facts.code, std::ssize(codes_)).first->second);
    if (member && facts.reduction) add_domain(domain_of(nodes_, id));
    for (const NodeId operand : node.operands) add_place(operand);
  }

  /// What a mapping is chosen by follows its operands beyond the stitch op.
  void add_domain(const GroupDomain& domain) {
    add(static_cast<std::int64_t>(domain.kind));
    add(domain.element_bytes);
    add(domain.widest_bytes);
  }

  void add_callees(const Node& node) {
    if (def(node.op).cls == OpClass::kReduce)
      if (const auto reducer = reducer_of(*nodes_.graph, node))
        return add(static_cast<std::int64_t>(*reducer));
    for (const ComputationId callee : node.attrs.computations) add(callee);
  }

  void add_outside(NodeId id) {
    const NodeFacts& facts = nodes_[id];
    add(static_cast<std::int64_t>(facts.role));
    add(facts.immediate | facts.member << 1 | facts.isolated << 2 | facts.transparent << 3);
    add_place_or_none(buffer_of(computation_, id));
    const Node* node = &nodes_.node(id);
    while (facts.immediate && node->op != Op::kConstant) {
      add(static_cast<std::int64_t>(node->op));
      node = &nodes_.node(node->operands[0]);
    }
    if (facts.immediate && node->attrs.literal != nullptr)
      for (const auto byte : node->attrs.literal->bytes) key_.push_back(static_cast<char>(byte));
  }
  void add_place_or_none(NodeId id) {
    if (contains_sorted(all_, id))
      add_place(id);
    else
      add(-1);
  }

  const Nodes& nodes_;
  const StitchOp& op_;
  const Computation& computation_;
  std::vector<NodeId> inside_, all_;
  std::map<int, std::int64_t> codes_;  ///< as they are met
  std::string key_;
};

}  // namespace

std::optional<Likeness> likeness(const Nodes& nodes, const StitchOp& op, const Constraints& constraints) {
  std::optional<Likeness> result = Description(nodes, op).run();
  if (result && constraints.are_about(result->ops)) return std::nullopt;
  return result;
}

std::optional<std::vector<KernelPlan>> KnownKernels::find(const Likeness& like) const {
  const auto found = known_.find(like.key);
  if (found == known_.end()) return std::nullopt;
  std::vector<KernelPlan> kernels;
  for (const KernelPlan& kernel : found->second.kernels)
    kernels.push_back(renamed(kernel, found->second.ops, like.ops));
  return kernels;
}

void KnownKernels::add(Likeness like, std::vector<KernelPlan> kernels) {
  known_.emplace(std::move(like.key), Known{std::move(like.ops), std::move(kernels)});
}

}  // namespace astitch
}  // namespace stitchwork
