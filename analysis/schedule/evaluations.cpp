#include "analysis/schedule/evaluations.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cstdint>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/tiles.h"
#include "core/base/interrupt.h"
#include "core/base/parallel.h"
#include "core/base/sorted.h"
#include "core/index/index_hash.h"

namespace stitchwork {
namespace {

/// Ops that take instructions: generated code has one that does not no line for each map.
bool counts_maps_of(const Computation& computation, NodeId op) {
  return def(computation.node(op).op).instructions > 0;
}

class Walk {
 public:
  /// `made`: what the kernel materialises.
  Walk(const Computation& computation, const KernelPlan& kernel, const std::vector<NodeId>& made,
       const Group& group, int most_maps = std::numeric_limits<int>::max())
      : computation_(computation), kernel_(kernel), made_(made), group_(group), most_maps_(most_maps) {}

  /// Of an op under more than `most_maps` the number; the walk has ended there. kNoNode: there is none.
  NodeId too_often() const { return too_often_; }

  GroupEvaluations run() {
    result_.placements = propagate(computation_, group_.dominant, group_.mapping, group_.ops);
    for (NodeId root : materialised(group_)) {
      const auto placed = result_.placements->find(root);
      if (placed == result_.placements->end() ||
          (placed->second.coverage == Coverage::kPartial && root != group_.dominant) ||
          (placed->second.coverage == Coverage::kCols) != is_across(group_, root)) {
        result_.unplaced.push_back(root);
        continue;
      }
      const auto level = kernel_.levels.find(root);
      root_ = root;
      level_ = level == kernel_.levels.end() ? 0 : level->second;
      evaluate(open_at(root, placed->second.map, -1));
      while (!open_.empty() && too_often_ == kNoNode) {
        interruption_point();
        Open next = std::move(open_.back());
        open_.pop_back();
        evaluate(std::move(next));
      }
    }
    keep_readings();
    result_.values = EvaluationList(std::move(values_));
    mark_tiles(computation_, kernel_, group_, result_);
    return std::move(result_);
  }

 private:
  bool is_loaded(NodeId op) const {
    if (!contains_sorted(kernel_.ops, op)) return true;
    if (!contains_sorted(made_, op)) return false;
    if (!kernel_.schemes.contains(op)) return false;
    const auto made = kernel_.levels.find(op);
    const bool own_phase = made != kernel_.levels.end() && made->second == level_;
    const Scheme scheme = own_phase ? scheme_in_phase(kernel_, op) : kernel_.schemes.at(op);
    return scheme == Scheme::kRegional || scheme == Scheme::kGlobal ||
           (scheme == Scheme::kResident && !own_phase);
  }

  /// Whether the group's threads have kept it since an earlier phase.
  bool is_resident(NodeId op, const IndexMap& map) const {
    const auto kept = std::find_if(kernel_.resident.begin(), kernel_.resident.end(), [&](const Residence& r) {
      return r.op == op && r.group == group_.dominant && r.level < level_;
    });
    if (kept == kernel_.resident.end()) return false;
    const auto placed = result_.placements->find(op);
    return placed != result_.placements->end() && placed->second.map == map;
  }

  /// A value that has to be looked at.
  struct Open {
    NodeId op = kNoNode;
    IndexMap map;
    std::uint64_t hash = 0;  ///< of the map
    double count = 1;        ///< Evaluation::count
    int by = -1, operand = 0;
  };
  static Open open_at(NodeId op, IndexMap map, int by, std::size_t operand = 0) {
    const std::uint64_t hash = hash_of(map);
    const double count = evaluation_count(map);
    return {op, std::move(map), hash, count, by, static_cast<int>(operand)};
  }

  std::optional<std::size_t> known(NodeId op, const IndexMap& map, std::uint64_t hash) const {
    const auto [first, last] = known_.equal_range(Key{op, level_, hash});
    const auto found =
        std::find_if(first, last, [&](const auto& known) { return values_[known.second].map == map; });
    return found == last ? std::nullopt : std::optional(found->second);
  }

  /// Whether the value is known; notes that it is read.
  bool reads_known(NodeId op, const IndexMap& map, std::uint64_t hash, int by, int operand) {
    const auto value = known(op, map, hash);
    if (value && by >= 0) readings_.push_back({by, operand, static_cast<int>(*value)});
    return value.has_value();
  }

  void keep_readings() {
    if (std::ranges::none_of(values_, [](const Evaluation& e) { return !e.map.constraints.empty(); })) return;
    std::ranges::sort(readings_, {},
                      [](const Reading& r) { return std::tuple(r.reader, r.operand, r.value); });
    result_.readings = std::make_shared<const std::vector<Reading>>(std::move(readings_));
  }

  void evaluate(Open&& open) {
    const NodeId op = open.op;
    if (is_immediate(computation_, op) || reads_known(op, open.map, open.hash, open.by, open.operand)) return;
    const bool as_root = open.by < 0;
    const bool resident = !as_root && is_resident(op, open.map);
    const bool load = resident || (!as_root && is_loaded(op));
    const std::size_t index = values_.size();
    known_.emplace(Key{op, level_, open.hash}, index);
    if (!as_root) readings_.push_back({open.by, open.operand, static_cast<int>(index)});
    values_.push_back({op, std::move(open.map), open.count, root_, load, resident, false, open.by});
    if (load) return;
    count_map(op);
    read_operands(values_.back(), open.hash, static_cast<int>(index));
  }

  void count_map(NodeId op) {
    if (most_maps_ == std::numeric_limits<int>::max() || !counts_maps_of(computation_, op)) return;
    if (++maps_[op] > most_maps_) too_often_ = op;
  }

  /// `hash`: of the reader's map.
  void read_operands(const Evaluation& reader, std::uint64_t hash, int by) {
    const NodeId op = reader.op;
    const IndexMap& map = reader.map;
    const Node& node = computation_.node(op);
    const bool as_root = reader.by < 0;
    const bool over_domain = as_root && reduces_cols(computation_, op, group_);
    const bool over_rows = as_root && is_across(group_, op);
    for (std::size_t i = node.operands.size(); i-- > 0;) {
      const NodeId operand = node.operands[i];
      if (over_domain && static_cast<int>(i) < reduced_operands(node)) {
        open_.push_back(
            open_at(operand, reduced_operand_map(computation_, op, static_cast<int>(i), map), by, i));
      } else if (over_rows && i == 0) {
        open_.push_back(open_at(operand, result_.placements->at(operand).map, by, i));
      } else if (is_elementwise(node.op) && computation_.node(operand).shape.dims == node.shape.dims) {
        if (!reads_known(operand, map, hash, by, static_cast<int>(i)))
          open_.push_back({operand, map, hash, reader.count, by, static_cast<int>(i)});
      } else if (const auto& reads = operand_map(computation_, op, static_cast<int>(i))) {
        open_.push_back(open_at(operand, compose(map, *reads), by, i));
      } else if (!computation_.node(operand).shape.is_tuple) {
        // Not a map (scatter, select-and-scatter): all of the operand, once.
        open_.push_back(open_at(operand, IndexMap::identity(computation_.node(operand).shape.dims), by, i));
      }
    }
  }

  const Computation& computation_;
  const KernelPlan& kernel_;
  const std::vector<NodeId>& made_;
  const Group& group_;
  GroupEvaluations result_;
  std::vector<Evaluation> values_;
  std::vector<Reading> readings_;
  /// Op, level of the root, and hash of the map.
  using Key = std::tuple<NodeId, int, std::uint64_t>;
  std::unordered_multimap<Key, std::size_t, boost::hash<Key>> known_;
  std::vector<Open> open_;
  NodeId root_ = kNoNode;
  int level_ = 0;
  int most_maps_;
  std::unordered_map<NodeId, int> maps_;  ///< of each op, where they are bounded
  NodeId too_often_ = kNoNode;
};

/// What a computation's kernels evaluate, by all that it depends on.
class Evaluated {
 public:
  using Key = std::vector<std::int64_t>;

  /// Of a kernel without residents and tiles.
  static Key key_of(const KernelPlan& kernel) {
    Key key;
    const auto add = [&](const auto& ids) {
      key.push_back(std::ssize(ids));
      key.insert(key.end(), ids.begin(), ids.end());
    };
    const auto add_map = [&](const auto& values) {
      key.push_back(std::ssize(values));
      for (const auto& [id, value] : values) {
        key.push_back(id);
        key.push_back(static_cast<std::int64_t>(value));
      }
    };
    for (const Group& group : kernel.groups) {
      const Extents domain = extents(group.mapping);
      key.insert(key.end(), {group.dominant, domain.rows, domain.cols, is<mapping::Elements>(group.mapping),
                             is<mapping::Patch>(group.mapping), packs_rows(group.mapping)});
      add(group.sub_dominants);
      add(group.across);
      add(group.ops);
    }
    add(kernel.ops);
    add_map(kernel.schemes);
    add_map(kernel.levels);
    add_map(kernel.in_phase);
    return key;
  }

  std::optional<KernelEvaluations> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(key);
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }

  void keep(Key key, const KernelEvaluations& of) {
    std::size_t values = 1;
    for (const GroupEvaluations& group : of) values += group.values.size();
    const std::lock_guard lock(mutex_);
    // A choice, not measured: some hundred MB. Searches ask again for what they asked for lately.
    constexpr std::size_t kMostValues = 500'000;
    if (values_ += values; values_ > kMostValues) {
      kept_.clear();
      values_ = values;
    }
    kept_.emplace(std::move(key), of);
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return boost::hash_range(key.begin(), key.end()); }
  };
  std::mutex mutex_;
  std::unordered_map<Key, KernelEvaluations, Hash> kept_;
  std::size_t values_ = 0;
};

/// The op of which a group computes the first map beyond `most_maps`; kNoNode: there is none.
NodeId beyond_maps(const Computation& computation, const KernelEvaluations& of, int most_maps) {
  for (const GroupEvaluations& group : of) {
    if (group.values.size() <= static_cast<std::size_t>(most_maps)) continue;
    std::unordered_map<NodeId, int> maps;
    for (const Evaluation& e : group.values)
      if (!e.load && counts_maps_of(computation, e.op) && ++maps[e.op] > most_maps) return e.op;
  }
  return kNoNode;
}

/// The same op where groups are walked anew and where they are known.
std::variant<KernelEvaluations, NodeId> evaluations_within(const Computation& computation,
                                                           const KernelPlan& kernel, int most_maps) {
  // What is kept over barriers and what goes through tiles depends on the bytes that are free.
  const bool may_be_known = kernel.resident.empty() && kernel.tiles.empty();
  auto& known = computation.derived.get<Evaluated>();
  Evaluated::Key key;
  if (may_be_known) {
    key = Evaluated::key_of(kernel);
    if (auto found = known.find(key)) {
      const NodeId too_often = most_maps == std::numeric_limits<int>::max()
                                   ? kNoNode
                                   : beyond_maps(computation, *found, most_maps);
      if (too_often != kNoNode) return too_often;
      return *std::move(found);
    }
  }
  const std::vector<NodeId> made = materialised(kernel);
  KernelEvaluations result;
  for (const Group& group : kernel.groups) {
    Walk walk(computation, kernel, made, group, most_maps);
    result.push_back(walk.run());
    if (walk.too_often() != kNoNode) return walk.too_often();
  }
  if (may_be_known) known.keep(std::move(key), result);
  return result;
}

}  // namespace

void mark_tiles(const Computation& computation, const KernelPlan& kernel, const Group& group,
                GroupEvaluations& found) {
  if (kernel.tiles.empty()) return;
  std::vector<Evaluation> values = found.values;
  for (Evaluation& e : values) {
    const auto level = kernel.levels.find(e.root);
    if (!e.load || e.resident || partials_of(computation, kernel, e.op) > 0 ||
        find_tile(kernel, e.op, group.dominant, level == kernel.levels.end() ? 0 : level->second) == nullptr)
      continue;
    if (is_staged(group.mapping)) {
      e.tile = staged_part(computation.node(e.op).shape, e.map, group.mapping).has_value();
      continue;
    }
    const auto placed = found.placements->find(e.op);
    e.tile = placed != found.placements->end() && placed->second.map == e.map;
  }
  found.values = EvaluationList(std::move(values));
}

GroupEvaluations evaluations(const Computation& computation, const KernelPlan& kernel, const Group& group) {
  return Walk(computation, kernel, materialised(kernel), group).run();
}

KernelEvaluations evaluations(const Computation& computation, const KernelPlan& kernel) {
  return std::get<KernelEvaluations>(
      evaluations_within(computation, kernel, std::numeric_limits<int>::max()));
}

std::variant<KernelEvaluations, NodeId> evaluations_within_maps(const Computation& computation,
                                                                const KernelPlan& kernel) {
  return evaluations_within(computation, kernel, kMostMaps);
}

int most_maps(const Computation& computation, const KernelEvaluations& evaluations) {
  int most = 0;
  for (const GroupEvaluations& group : evaluations) {
    std::unordered_map<NodeId, int> maps;
    for (const Evaluation& e : group.values)
      if (!e.load && counts_maps_of(computation, e.op)) most = std::max(most, ++maps[e.op]);
  }
  return most;
}

PlanEvaluations evaluations(const Computation& computation, const FusionPlan& plan) {
  PlanEvaluations result(plan.kernels.size());
  parallel_for(result.size(), [&](std::size_t k) { result[k] = evaluations(computation, plan.kernels[k]); });
  return result;
}

bool depends_on(const IndexMap& map, int dim) {
  const auto in = [dim](const IndexExpr& e) { return e.uses_dim(dim); };
  return std::any_of(map.results.begin(), map.results.end(), in) ||
         std::any_of(map.constraints.begin(), map.constraints.end(),
                     [&](const Constraint& c) { return in(c.expr); }) ||
         std::any_of(map.runtime.begin(), map.runtime.end(), [&](const RuntimeVariable& v) {
           return std::any_of(v.index.begin(), v.index.end(), in);
         });
}

double evaluation_count(const IndexMap& map) {
  double count = 1;
  for (std::size_t d = 0; d < map.dims.size(); ++d)
    if (depends_on(map, static_cast<int>(d))) count *= static_cast<double>(map.dims[d]);
  for (std::int64_t symbol : map.symbols) count *= static_cast<double>(symbol);
  return count * admitted_share(map);
}

double admitted_share(const IndexMap& map) {
  double share = 1;
  for (const Constraint& c : map.constraints) {
    const Interval all = range_without(c, map);
    const Interval inside{std::max(all.lo, c.range.lo), std::min(all.hi, c.range.hi)};
    if (!all.empty()) share *= static_cast<double>(inside.size()) / static_cast<double>(all.size());
  }
  return share;
}

}  // namespace stitchwork
