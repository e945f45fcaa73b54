#include <algorithm>
#include <optional>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/facts/operand_index.h"
#include "analysis/schedule/context.h"
#include "analysis/schedule/keep.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/row_results.h"
#include "analysis/schedule/schedule.h"
#include "analysis/schedule/share.h"
#include "analysis/schedule/steps.h"
#include "analysis/schedule/tile_steps.h"
#include "analysis/schedule/use_vectors.h"
#include "analysis/schedule/values.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/index/buffer.h"
#include "core/passes/moved.h"

namespace stitchwork {
namespace {

/// One op to store in one phase.
struct Item {
  NodeId op = kNoNode;
  int phase = 0;
  bool fold = false;  ///< the folded partials of a split reduction that is read outside the kernel
  int stage = 0;
};

class Builder {
 public:
  Builder(const Graph& graph, const KernelPlan& plan) : context_(graph, plan) {}

  Schedule run() {
    Schedule kernel;
    kernel.name = context_.plan.name;
    kernel.groups = context_.plan.groups;
    kernel.launch = context_.plan.launch;
    kernel.launch.block = static_cast<int>(ceil_div(kernel.launch.block, 32) * 32);
    launch_ = kernel.launch;
    collect_items();
    for (int phase = 0; phase < phases_; ++phase) kernel.phases.push_back(phase_of(phase));
    kernel.launch.grid_barriers = phases_ - 1;
    SW_CHECK(kernel.launch.grid_barriers <= context_.plan.launch.grid_barriers,
             "kernel {} needs {} grid barriers, its plan has {}", kernel.name, kernel.launch.grid_barriers,
             context_.plan.launch.grid_barriers);
    kernel.buffers = context_.buffers;
    // All loops have their block ranges, launch.block and register_bound are set.
    share_bodies(context_.graph, kernel);
    add_residents(kernel);
    keep_values(context_.graph, kernel);
    use_vectors(context_.computation, kernel);
    place_workspace(kernel);
    keep_row_results(context_.computation, kernel);
    kernel.wide_indices = needs_wide(kernel);
    // Compilers may widen loads to whole vectors of 16 bytes, up to which shared memory is aligned.
    kernel.launch.shared_bytes = ceil_div(kernel.launch.shared_bytes, 16) * 16;
    return kernel;
  }

 private:
  using StepKey = std::tuple<int, int, bool>;  ///< stage, group, over rows

  const Material& material(NodeId op) const { return context_.materials.at(op); }
  const Group& group_of(NodeId op) const {
    return context_.plan.groups[static_cast<std::size_t>(material(op).group)];
  }

  void collect_items() {
    for (const auto& [op, m] : context_.materials) {
      const bool stored = m.shared >= 0 || m.global >= 0 || m.partials >= 0;
      if (!stored) continue;  // read in registers only
      items_.push_back({op, m.level, false, 0});
      phases_ = std::max(phases_, m.level + 1);
      if (m.partials >= 0 && m.output) {
        items_.push_back({op, m.level + 1, true, 0});
        phases_ = std::max(phases_, m.level + 2);
      }
    }
  }

  /// The places of what the plan keeps across grid barriers.
  void add_residents(Schedule& kernel) const {
    for (const Residence& r : context_.plan.resident) {
      const auto group = std::find_if(kernel.groups.begin(), kernel.groups.end(),
                                      [&](const Group& g) { return g.dominant == r.group; });
      SW_CHECK(group != kernel.groups.end(), "{} is kept by no group", context_.node(r.op).name);
      const auto index = static_cast<std::size_t>(group - kernel.groups.begin());
      kernel.kept.push_back({r.op, context_.node(r.op).shape.dtype,
                             Layout(group->mapping, kernel.launch.block).elements(), group->deal.most_tasks(),
                             r.shared ? r.offset : -1, static_cast<int>(index),
                             context_.placements[index]->at(r.op).map});
    }
  }

  /// What a reduction starts from.
  std::vector<NodeId> initial_of(NodeId reduce) const {
    const NodeId from = initial_value(context_.node(reduce));
    return from == kNoNode ? std::vector<NodeId>() : std::vector{from};
  }

  /// Ops whose shared values the item reads.
  std::set<NodeId> reads_of(const Item& item) const {
    std::vector<NodeId> first = context_.node(item.op).operands;
    if (item.fold) first = initial_of(item.op);
    std::set<NodeId> reads;
    while (!first.empty()) {
      // What folds partials computes the reduction's initial value.
      std::vector<NodeId> initial;
      const auto had = [&](NodeId op) {
        if (is_immediate(context_.computation, op)) return Had::kStored;
        const Reach reach = context_.reach(op, item.phase);
        if (reach == Reach::kPartials)
          for (const NodeId from : initial_of(op)) initial.push_back(from);
        return reach == Reach::kShared    ? Had::kShared
               : reach == Reach::kCompute ? Had::kComputed
                                          : Had::kStored;
      };
      reads.merge(shared_reads(context_.computation, first, had));
      first = std::move(initial);
    }
    return reads;
  }

  Phase phase_of(int phase) {
    std::vector<Item> items;
    for (const Item& item : items_)
      if (item.phase == phase) items.push_back(item);

    TaskSteps steps;
    for (Item& item : items) {  // ascending by op: operands first
      steps.add(item.op, material(item.op).group, reads_of(item));
      item.stage = steps.at(item.op).step;
    }
    std::map<int, std::vector<Item>> loops, folds;
    for (const Item& item : items) {
      if (item.fold && is_across(group_of(item.op), item.op))
        folds[material(item.op).group].push_back(item);
      else
        loops[steps.loop(material(item.op).group)].push_back(item);
    }
    Phase result;
    for (auto& [first_group, members] : loops) result.loops.push_back(loop_of(phase, members));
    for (auto& [group, members] : folds) result.loops.push_back(fold_of(phase, group, members));
    return result;
  }

  /// The partials of a group's reductions across its rows, column by column.
  TaskLoop fold_of(int phase, int group_index, const std::vector<Item>& items) {
    const Group& group = context_.plan.groups[static_cast<std::size_t>(group_index)];
    Step step;
    step.group = group_index;
    const Dealt fold = fold_mapping(group.mapping, group.deal, launch_.block);
    step.set(fold.mapping, launch_.block);
    ValueBuilder builder(context_, step, phase);
    for (const Item& item : items) {
      const Material& m = material(item.op);
      const Node& node = context_.node(item.op);
      const IndexMap map = builder.fold_map(item.op);
      Root root;
      root.op = item.op;
      root.store = StoreKind::kReduce;
      root.reducer = reducer(node);
      if (step.layout.cols > 0) root.value = builder.partial(item.op);
      root.initial = builder.initial(node, map);
      root.targets = {{m.global, context_.offset_in(m.global, item.op, map)}};
      step.roots.push_back(std::move(root));
    }
    TaskLoop loop;
    loop.deal = fold.deal;
    loop.deal.first_block = group.deal.first_block;
    loop.steps.push_back(std::move(step));
    return loop;
  }

  Op reducer(const Node& node) const {
    const auto found = reducer_of(context_.graph, node);
    SW_CHECK(found.has_value(), "{} reduces by more than one operation", node.name);
    return *found;
  }

  TaskLoop loop_of(int phase, const std::vector<Item>& items) {
    TaskLoop loop;
    loop.deal = group_of(items.front().op).deal;

    // Steps by (stage, group, elements before rows).
    std::map<StepKey, std::vector<Item>> steps;
    for (const Item& item : items)
      steps[{item.stage, material(item.op).group, over_rows(item)}].push_back(item);
    const std::map<StepKey, std::vector<NodeId>> gathers = one_pass_gathers(steps);
    for (const auto& [key, members] : steps) {
      Step step;
      step.stage = std::get<0>(key);
      step.group = std::get<1>(key);
      step.rows = std::get<2>(key);
      step.set(context_.plan.groups[static_cast<std::size_t>(step.group)].mapping, launch_.block);
      ValueBuilder builder(context_, step, phase);
      if (const auto found = gathers.find(key); found != gathers.end())
        for (const NodeId op : found->second) step.roots.push_back(gather_root(op, builder, loop));
      for (const Item& item : members) {
        step.roots.push_back(is_one_pass(item.op) ? gathered_root(item, loop, builder)
                                                  : root_of(item, step, builder));
        if (step.roots.back().store == StoreKind::kAcross)
          loop.across.push_back(
              {item.op, step.roots.back().reducer, step.layout, material(item.op).partials});
      }
      loop.steps.push_back(std::move(step));
    }
    std::set<int> groups;
    for (const Item& item : items) groups.insert(material(item.op).group);
    TileSteps(context_, launch_, phase).add(groups, loop);
    for (const Step& step : loop.steps)
      if (step.filling == Filling::kAhead) {
        const Mapping& of_group = context_.plan.groups[static_cast<std::size_t>(step.group)].mapping;
        loop.stages = copy_depth(of_group);
        loop.bulk = copies_in_bulk(of_group);
      }
    for (Step& step : loop.steps) {
      if (loop.stages == 0) step.filling = Filling::kInTask;
      step.in_bulk &= loop.bulk;
    }
    return loop;
  }

  // ---- reductions gathered in the pass of an earlier one

  bool is_one_pass(NodeId op) const { return contains_sorted(group_of(op).one_pass, op); }

  OnePassForm form_of(NodeId op) const {
    const auto form = one_pass_form(context_.graph, op);
    SW_CHECK(form.has_value(), "{} cannot be gathered in another pass", context_.node(op).name);
    return *form;
  }

  /// The first step of the group that passes over its rows, for each op that is gathered there.
  std::map<StepKey, std::vector<NodeId>> one_pass_gathers(
      const std::map<StepKey, std::vector<Item>>& steps) const {
    std::map<StepKey, std::vector<NodeId>> result;
    for (const auto& [key, members] : steps)
      for (const Item& item : members) {
        if (!is_one_pass(item.op)) continue;
        const auto host =
            std::find_if(steps.begin(), steps.end(), [&, group = std::get<1>(key)](const auto& s) {
              return std::get<1>(s.first) == group &&
                     std::any_of(s.second.begin(), s.second.end(),
                                 [&](const Item& i) { return reduces(i.op) && !is_one_pass(i.op); });
            });
        SW_CHECK(host != steps.end() && std::get<0>(host->first) < std::get<0>(key),
                 "{} has no pass to be gathered in", context_.node(item.op).name);
        result[host->first].push_back(item.op);
      }
    return result;
  }

  Root gather_root(NodeId op, ValueBuilder& builder, TaskLoop& loop) {
    const OnePassForm form = form_of(op);
    const IndexMap map =
        reduced_operand_map(context_.computation, context_.node(op), 0, material(op).placement.map);
    Root root;
    root.op = op;
    root.store = StoreKind::kGather;
    root.value = builder.value(form.x, map);
    root.gathered = static_cast<int>(loop.gathered.size());
    loop.gathered.push_back({op, form.kind, context_.node(op).shape.dtype});
    return root;
  }

  Root gathered_root(const Item& item, const TaskLoop& loop, ValueBuilder& builder) {
    const Node& node = context_.node(item.op);
    const Material& m = material(item.op);
    const auto gathered = std::find_if(loop.gathered.begin(), loop.gathered.end(),
                                       [&](const Gathered& g) { return g.op == item.op; });
    const Node& of_row = context_.node(form_of(item.op).c);
    const IndexMap& map = m.placement.map;
    const IndexMap over_domain = reduced_operand_map(context_.computation, node, 0, map);
    Root root;
    root.op = item.op;
    root.store = StoreKind::kReduce;
    root.reducer = reducer(node);
    root.gathered = static_cast<int>(gathered - loop.gathered.begin());
    root.value = builder.value(of_row.operands[0], read_map(context_.computation, of_row, 0, over_domain));
    root.initial = builder.initial(node, map);
    if (m.shared >= 0) root.targets.push_back({m.shared, IndexExpr::dim(0)});
    if (m.global >= 0) root.targets.push_back({m.global, context_.offset_in(m.global, item.op, map)});
    return root;
  }

  /// Reduced here by the group's threads together.
  bool reduces(NodeId op) const { return reduces_cols(context_.computation, op, group_of(op)); }

  bool over_rows(const Item& item) const {
    const Material& m = material(item.op);
    return m.placement.coverage == Coverage::kRows && (item.fold || !reduces(item.op));
  }

  Root root_of(const Item& item, Step& step, ValueBuilder& builder) {
    const Material& m = material(item.op);
    const Node& node = context_.node(item.op);
    Root result;
    result.op = item.op;
    const bool rows = m.placement.coverage == Coverage::kRows;
    if (!item.fold && is_across(group_of(item.op), item.op)) {
      result.store = StoreKind::kAcross;
      result.reducer = reducer(node);
      result.value = builder.value(node.operands[0], m.across);
      return result;
    }
    IndexMap map = m.placement.map;
    if (item.fold) {
      result.value = builder.value(item.op, map);
      result.targets.push_back({m.global, context_.offset_in(m.global, item.op, map)});
      return result;
    }
    const IndexExpr place =
        rows ? IndexExpr::dim(0) : IndexExpr::dim(0) * step.layout.cols + IndexExpr::dim(1);
    const bool one_a_row = rows || step.layout.cols == 1;
    if (m.shared >= 0)
      result.targets.push_back({m.shared, one_a_row
                                              ? IndexExpr::dim(0)
                                              : IndexExpr::dim(0) * step.layout.cols + IndexExpr::dim(1)});
    if (const int tile = context_.tile(item.op, step.group, item.phase); tile >= 0)
      result.targets.push_back({tile, context_.tile_offset(item.op, step.group, false)});
    else if (m.partials < 0 && m.global >= 0)
      result.targets.push_back({m.global, context_.offset_in(m.global, item.op, map)});
    if (node.attrs.updated != nullptr && m.output) result.slice = builder.slice(node, map);
    if (!reduces(item.op)) {
      result.value = builder.root_value(item.op, map);
      return result;
    }
    result.reducer = reducer(node);
    result.store = StoreKind::kReduce;
    if (step.layout.segments > 1) {
      const bool atomic = combines_atomically(step.mapping);
      result.store = atomic ? StoreKind::kAtomic : StoreKind::kPartial;
      if (!atomic) result.targets = {{m.partials, IndexExpr::dim(0)}};
      SW_CHECK(
          !atomic || result.reducer == Op::kAdd || result.reducer == Op::kOr || result.reducer == Op::kXor,
          "{} by atomics would start from zero, which is not neutral", node.name);
    }
    if (step.layout.cols > 0) result.value = builder.reduced_value(node, map);
    result.initial = builder.initial(node, map);
    return result;
  }

  /// A plan may leave the reduction workspace to us: it then lies behind the values.
  void place_workspace(Schedule& kernel) const {
    const std::int64_t needed = reduction_workspace_bytes(context_.computation, context_.plan);
    if (needed == 0) return;
    kernel.workspace_bytes = needed;
    for (const MemorySlot& slot : context_.plan.shared)
      if (slot.op == kNoNode && slot.bytes >= needed) {
        kernel.workspace_offset = slot.offset;
        return;
      }
    kernel.workspace_offset = ceil_div(kernel.launch.shared_bytes, 16) * 16;
    kernel.launch.shared_bytes = kernel.workspace_offset + needed;
  }

  static bool needs_wide(const Schedule& kernel) {
    // So that sums of two indices stay within 32 bits.
    constexpr std::int64_t kLimit = std::int64_t{1} << 30;  // room for the products of index expressions
    const auto big = [](std::int64_t n) { return n >= kLimit; };
    for (const Buffer& buffer : kernel.buffers)
      if (big(buffer.elements)) return true;
    for (const Group& group : kernel.groups) {
      const auto [rows, cols] = extents(group.mapping);
      if (big(rows * std::max<std::int64_t>(1, cols)) || big(group.deal.tasks)) return true;
    }
    return false;
  }

  BuildContext context_;
  KernelLaunch launch_;
  std::vector<Item> items_;  ///< ascending by op
  int phases_ = 1;
};

/// Throws Error naming the op where the planner may fuse what no kernel can compute.
void require_generated(const Graph& graph, const Node& node) {
  const auto refuse = [&](const std::string& why) {
    throw Error(graph.source, node.line, 0,
                fmt::format("{} ({}) cannot be executed: {}", node.name, def(node.op).name, why),
                "it can be planned and explained; remove it or replace it to run the model");
  };
  if (!is_executable(node.shape.dtype) && !is_moved(node))
    refuse(fmt::format("{} has no generated code", name(node.shape.dtype)));
  for (NodeId id : node.operands)
    if (const Node& operand = graph.entry_computation().node(id);
        !operand.shape.is_tuple && !is_executable(operand.shape.dtype) && !moves(node, operand))
      refuse(fmt::format("{} has no generated code", name(operand.shape.dtype)));
  if ((node.op == Op::kReduce || node.op == Op::kReduceWindow) && !simple_reducer(graph, applied(node)))
    refuse(fmt::format("'{}' is not one commutative operation", graph.computation(applied(node)).name));
}

}  // namespace

Schedule build_schedule(const Graph& graph, const KernelPlan& plan) {
  for (const NodeId op : plan.ops) require_generated(graph, graph.entry_computation().node(op));
  return Builder(graph, plan).run();
}

std::int64_t TaskLoop::most_tasks() const {
  std::int64_t most = deal.most_tasks();
  for (const LoopEntry& entry : entries) most = std::max(most, entry.deal.most_tasks());
  return most;
}

bool keeps_over_tasks(const Schedule& kernel, const TaskLoop& loop) {
  const auto over_tasks = [&](int kept) {
    return kept >= 0 && kernel.kept[static_cast<std::size_t>(kept)].group >= 0;
  };
  return std::any_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
    return std::any_of(step.order.begin(), step.order.end(), [&](int v) {
      const Value& value = step.values[static_cast<std::size_t>(v)];
      return over_tasks(value.kept) || over_tasks(value.restored);
    });
  });
}

}  // namespace stitchwork
