#include "analysis/planners/auto/recompute.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <limits>
#include <map>
#include <set>

#include "core/base/disjoint_sets.h"
#include "core/base/sorted.h"

namespace stitchwork::automatic {
namespace {

using astitch::Nodes;

/// Ops above what a kernel reads that are looked at. A choice, not measured: of the datasets' kernels none
/// needs a tenth of it, and time stays linear in the kernels.
constexpr std::size_t kMostOps = 512;

/// What computing `op` reads, through index maps that every kernel repeats: values of kernels, calls and
/// sources. Ascending.
std::vector<NodeId> values_of(const Nodes& nodes, NodeId op) {
  std::vector<NodeId> open = nodes.node(op).operands, result;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (nodes[id].immediate) continue;
    if (nodes[id].transparent && nodes[id].role != PlanRole::kSource) {
      const auto& operands = nodes.node(id).operands;
      open.insert(open.end(), operands.begin(), operands.end());
    } else {
      insert_sorted(result, id);
    }
  }
  return result;
}

/// A network of capacities in bytes, of which the lightest cut is wanted.
class Network {
 public:
  using Capacity = std::int64_t;
  /// No quantity: more than all bytes of a graph, so that it is never cut.
  static constexpr Capacity kNever = std::numeric_limits<Capacity>::max() / 4;

  int add() { return static_cast<int>(boost::add_vertex(graph_)); }
  void connect(int from, int to, Capacity capacity) {
    const auto there = boost::add_edge(at(from), at(to), graph_).first;
    const auto back = boost::add_edge(at(to), at(from), graph_).first;
    boost::put(boost::edge_capacity, graph_, there, capacity);
    boost::put(boost::edge_capacity, graph_, back, 0);
    boost::put(boost::edge_reverse, graph_, there, back);
    boost::put(boost::edge_reverse, graph_, back, there);
  }
  /// By vertex, whether it is on the source's side of the lightest cut nearest to the source.
  std::vector<bool> cut(int source, int sink) {
    boost::boykov_kolmogorov_max_flow(graph_, at(source), at(sink));
    std::vector<bool> reached(boost::num_vertices(graph_));
    std::vector<std::size_t> open{at(source)};
    reached[at(source)] = true;
    while (!open.empty()) {
      const std::size_t vertex = open.back();
      open.pop_back();
      const auto [begin, end] = boost::out_edges(vertex, graph_);
      for (auto edge = begin; edge != end; ++edge) {
        const std::size_t to = boost::target(*edge, graph_);
        if (reached[to] || boost::get(boost::edge_residual_capacity, graph_, *edge) == 0) continue;
        reached[to] = true;
        open.push_back(to);
      }
    }
    return reached;
  }

 private:
  static std::size_t at(int vertex) { return static_cast<std::size_t>(vertex); }

  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS,
      boost::property<boost::vertex_index_t, long,
                      boost::property<boost::vertex_color_t, boost::default_color_type,
                                      boost::property<boost::vertex_distance_t, long,
                                                      boost::property<boost::vertex_predecessor_t,
                                                                      Traits::edge_descriptor>>>>,
      boost::property<boost::edge_capacity_t, Capacity,
                      boost::property<boost::edge_residual_capacity_t, Capacity,
                                      boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  Graph graph_;
};

class Recomputer {
 public:
  Recomputer(const Nodes& nodes, const std::vector<Candidate>& kernels, const Constraints& constraints)
      : nodes_(nodes),
        kernels_(kernels),
        constraints_(constraints),
        owner_(nodes.facts.size(), -1),
        named_(constraints.named()) {
    for (int k = 0; k < count(); ++k)
      for (const NodeId op : kernels_[at(k)].members) owner_[at(op)] = k;
    for (int k = 0; k < count(); ++k) {
      reads_.push_back(reads_of(kernels_[at(k)].members));
      for (const NodeId value : reads_.back()) ++readers_[value];
    }
  }

  std::vector<Recomputation> run() {
    std::vector<std::vector<NodeId>> again(kernels_.size());
    for (int k = 0; k < count(); ++k) again[at(k)] = computed_again(k);
    return together(again);
  }

 private:
  template <typename Id>
  static std::size_t at(Id id) {
    return static_cast<std::size_t>(id);
  }
  int count() const { return static_cast<int>(kernels_.size()); }
  bool computes(int kernel, NodeId op) const { return contains_sorted(kernels_[at(kernel)].members, op); }

  std::vector<NodeId> reads_of(const std::vector<NodeId>& members) const {
    std::vector<NodeId> result;
    for (const NodeId op : members)
      for (const NodeId value : values_of(nodes_, op))
        if (!contains_sorted(members, value)) insert_sorted(result, value);
    return result;
  }

  bool recomputable(NodeId op) const {
    const astitch::NodeFacts& facts = nodes_[op];
    if (owner_[at(op)] < 0 || facts.isolated || facts.reduction || contains_sorted(named_, op)) return false;
    const Node& node = nodes_.node(op);
    const bool maps =
        std::ranges::all_of(facts.edges, [](const astitch::Edge& edge) { return edge.map.has_value(); });
    return maps && node.op != Op::kCopy && (is_elementwise(node.op) || def(node.op).cls == OpClass::kLayout);
  }

  /// Reading a value costs its bytes, unless the kernel reads it anyhow; storing it likewise, shared by its
  /// readers, unless it is stored anyhow.
  Network::Capacity price(int kernel, NodeId value) const {
    const std::int64_t bytes = nodes_.bytes(value);
    const bool own = owner_[at(value)] >= 0;
    if (!own && contains_sorted(reads_[at(kernel)], value)) return 0;
    if (!own || nodes_[value].buffer_needed) return bytes;
    const auto readers = readers_.find(value);
    return readers == readers_.end() ? 2 * bytes : bytes + bytes / readers->second;
  }

  /// What lies above the values a kernel reads: of each op what it reads, nothing where it is read from
  /// memory come what may.
  std::map<NodeId, std::vector<NodeId>> cone(int kernel) const {
    std::map<NodeId, std::vector<NodeId>> above;
    std::set<NodeId> read_often;
    for (const NodeId op : kernels_[at(kernel)].members)
      for (const NodeId value : values_of(nodes_, op))
        if (nodes_[value].elements < nodes_[op].elements) read_often.insert(value);
    std::set<NodeId> open;
    for (const NodeId value : reads_[at(kernel)])
      if (owner_[at(value)] >= 0) open.insert(value);
    while (!open.empty()) {
      const NodeId op = *open.rbegin();  // readers come before what they read
      open.erase(op);
      std::vector<NodeId>& reads = above[op];
      if (read_often.contains(op) || !recomputable(op) || computes(kernel, op) || above.size() > kMostOps)
        continue;
      reads = values_of(nodes_, op);
      for (const NodeId value : reads) {
        if (nodes_[value].elements < nodes_[op].elements) read_often.insert(value);
        open.insert(value);
      }
    }
    return above;
  }

  /// The ops that kernel `kernel` computes again, ascending.
  std::vector<NodeId> computed_again(int kernel) const {
    const bool alone =
        std::ranges::any_of(kernels_[at(kernel)].members, [&](NodeId op) { return nodes_[op].isolated; });
    const auto above = cone(kernel);
    if (alone || above.empty()) return {};
    Network network;
    const int needed = network.add(), memory = network.add();
    std::map<NodeId, int> enters;  // what leaves is the next
    for (const auto& [op, reads] : above) {
      enters[op] = network.add();
      const int leaves = network.add();
      network.connect(enters[op], leaves, computes(kernel, op) ? 0 : price(kernel, op));
      if (reads.empty()) network.connect(leaves, memory, Network::kNever);
    }
    for (const auto& [op, reads] : above)
      for (const NodeId value : reads) network.connect(enters[op] + 1, enters[value], Network::kNever);
    for (const NodeId value : reads_[at(kernel)])
      if (owner_[at(value)] >= 0) network.connect(needed, enters[value], Network::kNever);
    const std::vector<bool> near = network.cut(needed, memory);
    std::vector<NodeId> again;
    for (const auto& [op, entry] : enters)
      if (near[at(entry + 1)]) again.push_back(op);
    const auto in_kernel = [&](NodeId op) { return computes(kernel, op); };
    if (constraints_.keeps_apart(in_kernel, [&](NodeId op) { return contains_sorted(again, op); })) return {};
    return again;
  }

  /// The members that some output needs.
  std::vector<NodeId> needed(const Candidate& kernel) const {
    std::vector<NodeId> open = kernel.outputs, result;
    while (!open.empty()) {
      const NodeId op = open.back();
      open.pop_back();
      if (!contains_sorted(kernel.members, op) || contains_sorted(result, op)) continue;
      insert_sorted(result, op);
      const std::vector<NodeId> reads = values_of(nodes_, op);
      open.insert(open.end(), reads.begin(), reads.end());
    }
    return result;
  }

  /// What kernels store and compute once some compute more: only what something still reads.
  void settle(std::vector<Candidate>& after, std::vector<std::vector<NodeId>>& reads) const {
    for (bool settled = false; !settled;) {
      settled = true;
      std::set<NodeId> read;
      for (const auto& of : reads) read.insert(of.begin(), of.end());
      for (int k = 0; k < count(); ++k) {
        std::erase_if(after[at(k)].outputs,
                      [&](NodeId op) { return !nodes_[op].buffer_needed && !read.contains(op); });
        for (const NodeId op : kernels_[at(k)].members)
          if (read.contains(op)) insert_sorted(after[at(k)].outputs, op);
        std::vector<NodeId> members = needed(after[at(k)]);
        if (members == after[at(k)].members) continue;
        after[at(k)].members = std::move(members);
        reads[at(k)] = reads_of(after[at(k)].members);
        settled = false;
      }
    }
  }

  /// Kernels that change because of each other.
  std::vector<Recomputation> together(const std::vector<std::vector<NodeId>>& again) const {
    std::vector<Candidate> after = kernels_;
    std::vector<std::vector<NodeId>> reads = reads_;
    for (int k = 0; k < count(); ++k) {
      if (again[at(k)].empty()) continue;
      for (const NodeId op : again[at(k)]) insert_sorted(after[at(k)].members, op);
      reads[at(k)] = reads_of(after[at(k)].members);
    }
    settle(after, reads);
    const auto changes = [&](int k) {
      return k >= 0 && (after[at(k)].members != kernels_[at(k)].members ||
                        after[at(k)].outputs != kernels_[at(k)].outputs);
    };
    DisjointSets<int> sets;
    for (int k = 0; k < count(); ++k) {
      const auto join = [&](NodeId value) {
        if (const int owner = owner_[at(value)]; changes(owner)) sets.join(k, owner);
      };
      if (!changes(k)) continue;
      std::ranges::for_each(reads[at(k)], join);
      std::ranges::for_each(reads_[at(k)], join);
    }
    std::map<int, Recomputation> parts;
    for (int k = 0; k < count(); ++k)
      if (changes(k)) add(parts[sets.find(k)], k, after[at(k)], again[at(k)]);
    std::vector<Recomputation> result;
    for (auto& entry : parts) result.push_back(std::move(entry.second));
    return result;
  }

  void add(Recomputation& part, int kernel, const Candidate& after, const std::vector<NodeId>& again) const {
    part.kernels.push_back(kernel);
    part.after.push_back(after);
    for (const NodeId op : again) {
      if (!contains_sorted(after.members, op)) continue;
      if (contains_sorted(reads_[at(kernel)], op)) insert_sorted(part.again, op);
      for (const NodeId value : values_of(nodes_, op))
        if (owner_[at(value)] >= 0 && !contains_sorted(after.members, value) &&
            !contains_sorted(reads_[at(kernel)], value))
          part.new_reads.push_back({value, op});
    }
  }

  const Nodes& nodes_;
  const std::vector<Candidate>& kernels_;
  const Constraints& constraints_;
  std::vector<int> owner_;                  ///< by node: its kernel; -1: none
  std::vector<std::vector<NodeId>> reads_;  ///< by kernel, ascending
  std::map<NodeId, std::int64_t> readers_;  ///< kernels that read a value
  std::vector<NodeId> named_;               ///< by overrides; ascending
};

}  // namespace

std::vector<Recomputation> recomputations(const Nodes& nodes, const std::vector<Candidate>& kernels,
                                          const Constraints& constraints) {
  return Recomputer(nodes, kernels, constraints).run();
}

}  // namespace stitchwork::automatic
