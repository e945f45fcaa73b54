// The planner of FusionStitching 2018 (docs/planners/fusionstitching-2018.md): fusions by layers, one
// schedule each, shared memory, a kernel each.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/alone.h"
#include "analysis/planners/fusionstitching/deep/subgraph_fusion.h"
#include "analysis/planners/fusionstitching/ilp/alike.h"
#include "analysis/planners/fusionstitching/kernel.h"
#include "analysis/schedule/inlined_kernel.h"
#include "core/base/parallel.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace fusionstitching::deep {
namespace {

/// From fusions to kernels.
class Kernels {
 public:
  Kernels(const Graph& graph, const astitch::Nodes& nodes, const Device& device, const Options& options,
          Tuner& tuner, OpTimes& times, const Layers& layers, Recorder& recorder)
      : graph_(graph),
        nodes_(nodes),
        computation_(graph.entry_computation()),
        device_(device),
        options_(options),
        tuner_(tuner),
        times_(times),
        layers_(layers),
        recorder_(recorder) {}

  /// One of each fusion. Those that are alike have kernels that are alike.
  std::vector<KernelPlan> of(const std::vector<const Tuned*>& fusions) {
    const bool shares = !recorder_.enabled() && options_.constraints.block.empty();
    std::vector<Part> parts;
    std::vector<std::size_t> first, distinct;  // by fusion: the first that is alike
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t k = 0; k < fusions.size(); ++k) {
      Part& part = parts.emplace_back(Part{fusions[k], tuner_.fusion_of(*fusions[k]), {}});
      part.choices = tuner_.choices(*part.tuned);
      first.push_back(shares ? known.emplace(key_of(part.fusion, part.choices), k).first->second : k);
      if (first[k] == k)
        distinct.push_back(k);
      else
        part.choices.clear();
    }
    std::vector<Made> made(fusions.size());
    parallel_for(distinct.size(), [&](std::size_t d) { made[distinct[d]] = best_of(parts[distinct[d]]); });
    for (const std::size_t k : distinct) record(parts[k], made[k]);
    std::vector<KernelPlan> kernels;
    for (std::size_t k = 0; k < fusions.size(); ++k)
      kernels.push_back(first[k] == k ? std::move(made[k].kernel)
                                      : renamed(computation_, kernels[first[k]], parts[first[k]].fusion.ops,
                                                parts[k].fusion.ops));
    return kernels;
  }

 private:
  struct Part {
    const Tuned* tuned;
    Fusion fusion;
    std::vector<Tuning> choices;
  };

  /// A kernel, and who asked for shared memory and gave up for it.
  struct Made {
    std::size_t choice = 0;
    KernelPlan kernel;
    Slots slots;
    std::vector<Request> asked, shrunk;
    std::optional<KernelCost> cost;  ///< where choices are compared, or what shrank is recorded
  };

  /// Equal where best_kernel is but for the ops' names. Who gives up shared memory first follows from spans.
  std::string key_of(const Fusion& fusion, const std::vector<Tuning>& choices) const {
    std::string key = pattern_key(nodes_, fusion.ops, fusion.roots);
    if (!std::ranges::all_of(choices, &Tuning::fits_whole))
      for (const NodeId op : fusion.ops) key += fmt::format(" {}", layers_.of(op));
    for (const Tuning& choice : choices) {
      key += fmt::format(";{} {}", choice.blocks, choice.size);
      for (const NodeId op : fusion.ops)
        if (const auto at = choice.schedules.find(op); at != choice.schedules.end())
          key += fmt::format(" {},{},{}", at->second.split_dim, at->second.sword,
                             static_cast<int>(at->second.type));
        else
          key += " -";
    }
    return key;
  }

  /// Sums of ops choose the schedule; they say little of the size of a block, as an op's own kernel waits for
  /// memory where the fused one reads shared memory, and as instructions of idle warps hide there and add up
  /// here. So of several choices the one whose kernel the estimate has as the fastest.
  Made best_of(const Part& part) {
    Made best = made_by(part, 0);
    for (std::size_t c = 1; c < part.choices.size(); ++c)
      if (Made other = made_by(part, c); other.cost->predicted_us < best.cost->predicted_us)
        best = std::move(other);
    return best;
  }

  Made made_by(const Part& part, std::size_t choice) {
    SharingRules rules = tuner_.sharing_rules();
    Made made;
    KernelEvaluations found = make(part, choice, rules, made);
    if (!is_sound(graph_, made.kernel)) {
      // The schedule of steps tells values in one place apart by less than the predicate does.
      rules.in_place = [](NodeId, NodeId, const IsShared&) { return false; };
      made = {};
      found = make(part, choice, rules, made);
    }
    if (part.choices.size() > 1 || (recorder_.enabled() && !made.shrunk.empty()))
      made.cost = kernel_cost(graph_, device_, made.kernel, found);
    return made;
  }

  /// Returns what the kernel evaluates.
  KernelEvaluations make(const Part& part, std::size_t choice, const SharingRules& rules, Made& made) {
    const Tuning& tuning = part.choices[choice];
    Stitched stitched{part.fusion, {}, {}, {}, tuning.threads};
    made.choice = choice;
    made.asked = tuner_.requests_of(stitched.fusion, tuning.schedules);
    const auto span = [&](NodeId op) { return layers_.of(op); };
    SharedPlan shared = plan_shared(computation_, stitched.fusion, made.asked, span, rules);
    made.slots = stitched.slots = std::move(shared.slots);
    made.shrunk = std::move(shared.shrunk);
    for (const Request& request : made.shrunk) stitched.shrunk.push_back(request.op);
    std::sort(stitched.shrunk.begin(), stitched.shrunk.end());
    add_loops(tuning, stitched);
    auto [kernel, found] = evaluated_kernel(computation_, stitched);
    made.kernel = std::move(kernel);
    if (!options_.tuned) return found;
    if (auto tuned_kernel = with_vectors(graph_, device_, made.kernel, found))
      made.kernel = std::move(*tuned_kernel);
    return found;
  }

  /// A loop each of the outputs and of what has shared memory.
  void add_loops(const Tuning& tuning, Stitched& stitched) {
    const std::lock_guard lock(times_mutex_);
    std::vector<NodeId> looped = stitched.fusion.roots;
    for (const Slot& slot : stitched.slots.slots) looped.push_back(slot.op);
    std::sort(looped.begin(), looped.end());
    looped.erase(std::unique(looped.begin(), looped.end()), looped.end());
    for (const NodeId op : looped) {
      const Node& node = computation_.node(op);
      const Schedule& schedule = tuning.schedules.at(op);
      const int warps = times_.best(op, schedule)[static_cast<std::size_t>(tuning.size)].warps;
      const std::int64_t chunk = chunking(schedule, node.shape.dims)->elements();
      stitched.loops.push_back({op, {}, chunk_mapping(computation_, node, chunk, tuning.threads, warps), 0});
    }
  }

  const std::string& name(NodeId op) const { return computation_.node(op).name; }

  void record(const Part& part, const Made& made) {
    if (!recorder_.enabled()) return;
    record_schedule(*part.tuned, part.choices[made.choice], part.choices.size());
    record_memory(made);
  }

  void record_schedule(const Tuned& tuned, const Tuning& tuning, std::size_t choices) {
    const Dims& dims = computation_.node(tuned.seeds.front()).shape.dims;
    const std::vector<Schedule> all = candidates(dims);
    std::vector<Schedule> satisfiable;
    for (const Schedule& schedule : all)
      if (tuner_.is_satisfiable(tuned, schedule)) satisfiable.push_back(schedule);
    const Cut* second = nullptr;
    for (const Cut& cut : tuned.cuts)
      if (cut.root != tuning.root && (second == nullptr || least(cut) < least(*second))) second = &cut;
    const std::vector<NodeId> roots = tuner_.fusion_of(tuned).roots;
    for (const NodeId op : tuned.ops) {
      const auto own = tuning.schedules.find(op);
      recorder_.add("schedule", name(op), name(tuned.seeds.front()), [&] {
        if (own == tuning.schedules.end())
          return Verdict::yes("fs18.bypassed", "inlined wherever it is read, under any schedule");
        std::string why = fmt::format("{} of {} blocks", to_text(own->second), tuning.blocks);
        if (const OpTimes::Best* time = time_of(op, roots, own->second, tuning))
          why += fmt::format(", {:.2f} us {}", time->us, time->method);
        if (op == tuned.seeds.front()) {
          why += fmt::format(
              ", {} threads: {:.2f} us, the sum over its ops ({}); {} candidates, {} satisfiable",
              tuning.threads, tuning.us, methods(tuned, roots, tuning), all.size(), satisfiable.size());
          if (second != nullptr)
            why += fmt::format("; next {} with {:.2f} us", to_text(second->root), least(*second));
          if (choices > 1)
            why += fmt::format(
                "; the fastest by estimate of {} sizes of blocks and schedules of nearly equal sums",
                choices);
        }
        return Verdict::yes("fs18.schedule", why);
      });
    }
    for (const Schedule& schedule : satisfiable)
      if (is_strided(schedule, dims))
        recorder_.add("schedule", name(tuned.seeds.front()), "", [&] {
          return Verdict::no("fs18.strided-column",
                             fmt::format("{}: no loop of ours deals with such columns", to_text(schedule)));
        });
  }

  /// Of the op's own kernel; nullptr of what costs nothing as it is inlined.
  const OpTimes::Best* time_of(NodeId op, const std::vector<NodeId>& roots, const Schedule& schedule,
                               const Tuning& tuning) {
    if (!contains_sorted(roots, op) && tuner_.is_trivial(computation_.node(op), schedule)) return nullptr;
    return &times_.best(op, schedule)[static_cast<std::size_t>(tuning.size)];
  }

  /// "simulated"; where several kinds of times are summed, how many ops have which: "3 modelled, 1
  /// simulated".
  std::string methods(const Tuned& tuned, const std::vector<NodeId>& roots, const Tuning& tuning) {
    std::map<std::string_view, int> ops;
    for (const NodeId op : tuned.ops)
      if (const auto own = tuning.schedules.find(op); own != tuning.schedules.end())
        if (const OpTimes::Best* time = time_of(op, roots, own->second, tuning)) ++ops[time->method];
    if (ops.size() == 1) return std::string(ops.begin()->first);
    std::string text;
    for (const auto& [method, count] : ops)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, method);
    return text;
  }

  static double least(const Cut& cut) { return *std::min_element(cut.us.begin(), cut.us.end()); }

  void record_memory(const Made& made) {
    for (const Request& request : made.asked)
      recorder_.add("memory", name(request.op), "", [&] {
        return Verdict::yes("fs.request", fmt::format("{} bytes a block: {}", request.bytes,
                                                      fusionstitching::name(request.cls)));
      });
    for (const Slot& slot : made.slots.slots)
      recorder_.add("memory", name(slot.op), slot.taken_from == kNoNode ? "" : name(slot.taken_from), [&] {
        const char* how = slot.taken_from == kNoNode ? "of its own"
                          : slot.in_place            ? "in the place of what it reads"
                                                     : "that were another's, dead by then";
        return Verdict::yes("fs.shared", fmt::format("{} bytes at {} {}", slot.bytes, slot.offset, how));
      });
    for (const Request& request : made.shrunk)
      recorder_.add("memory", name(request.op), "", [&] {
        return Verdict::no(
            "fs.shrunk", fmt::format("{}, {} bytes: its readers compute it; the kernel computes {} elements "
                                     "again, {:.2f} us modelled",
                                     fusionstitching::name(request.cls), request.bytes,
                                     made.cost->recomputed_elements, made.cost->predicted_us));
      });
  }

  const Graph& graph_;
  const astitch::Nodes& nodes_;
  const Computation& computation_;
  const Device& device_;
  const Options& options_;
  Tuner& tuner_;
  OpTimes& times_;
  const Layers& layers_;
  Recorder& recorder_;
  std::mutex times_mutex_;  ///< OpTimes finds them when they are asked for
};

/// What fuses with nothing stays a call, or a copy of a buffer.
bool is_no_kernel(const Contraction& units, const Node& node) {
  if (node.op == Op::kDot) return true;
  if (node.op != Op::kCopy) return false;
  const Computation& computation = *units.nodes().computation;
  const NodeId read = buffer_of(computation, node.operands[0]);
  return units.unit_of(read) != kNoNode || plan_role(computation.node(read)) == PlanRole::kSource;
}

}  // namespace
}  // namespace fusionstitching::deep

FusionPlan plan_fusionstitching_2018(const Graph& graph, const Device& device, const PlanOptions& options) {
  using namespace fusionstitching;
  const Computation& computation = graph.entry_computation();
  const deep::Options knobs = deep::read_options(graph, device, options);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  Recorder recorder(options.record_decisions);
  deep::Contraction units(nodes, knobs.products);
  const deep::Layers layers = deep::find_layers(units);
  OpTimes times(graph, computation, device, options.library);
  deep::Tuner tuner(graph, device, units, knobs, times);
  const std::map<NodeId, deep::Tuned> fusions = deep::fuse(units, tuner, knobs, recorder);

  deep::Kernels builder(graph, nodes, device, knobs, tuner, times, layers, recorder);
  std::vector<const deep::Tuned*> parts;
  for (const auto& [unit, tuned] : fusions)
    if (tuned.ops.size() > 1 || !deep::is_no_kernel(units, computation.node(unit))) parts.push_back(&tuned);
  std::vector<KernelPlan> kernels = builder.of(parts);
  for (const Node& node : computation.nodes)
    if (nodes[node.id].member &&
        (nodes[node.id].isolated || (astitch::is_step(nodes[node.id]) && is_empty(nodes, node.id))))
      kernels.push_back(kernel_alone(nodes, device, node.id));
  mark_recomputed(kernels);
  FusionPlan plan = assemble(graph, device, "fusionstitching-2018", std::move(kernels));
  plan.decisions = recorder.take();
  plan.library_misses.assign(times.misses().begin(), times.misses().end());
  return plan;
}

}  // namespace stitchwork
