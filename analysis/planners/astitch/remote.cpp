#include "analysis/planners/astitch/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "analysis/facts/once.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/judge/beside.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/astitch/step_graph.h"
#include "analysis/stitching/equal_ops.h"
#include "core/base/interrupt.h"
#include "core/base/parallel.h"
#include "occupancy_model/errors.h"

namespace stitchwork::astitch {
namespace {

/// Readers of an input that are tried with each of them, next ones by level; and kernels left open, latest
/// first, that each stitch op is tried with. Both bound the pairs by a multiple of the edges.
/// A choice, not measured: they bound planning time.
constexpr std::size_t kSharingNeighbours = 4, kOpenKernels = 8;
/// Sharing an input this small says nothing: biases and scalars are read everywhere and stay in the caches.
/// A choice, not measured: 4 KB stay in an SM's L1.
constexpr std::int64_t kSharedElements = 1024;
/// Growth of peak memory that is allowed, as a share and at least in bytes: allocators take memory for arrays
/// of more than 1 MiB from the device in segments of 20 MiB (PyTorch's caching allocator, kLargeBuffer).
constexpr double kPeakGrowth = 0.05;
constexpr std::int64_t kPeakGrowthBytes = std::int64_t{20} << 20;

/// A kernel's work as far as pairs need it.
struct Estimate {
  CountedWork counted;
  CodeSize ops, groups;        ///< equal ones counted once
  std::vector<NodeId> inputs;  ///< buffers read, ascending
};

/// A stitch op, after the limits have cut it, that makes one kernel.
struct Part {
  StitchOp op;
  KernelPlan kernel;
  std::vector<Decision> decisions;
  double us = 0;
};

std::vector<NodeId> shared_inputs(const Estimate& a, const Estimate& b) {
  std::vector<NodeId> shared;
  std::set_intersection(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                        std::back_inserter(shared));
  return shared;
}

class Remote {
 public:
  Remote(const Nodes& nodes, std::vector<Part> parts, const Device& device, const Options& options,
         Recorder& recorder)
      : nodes_(nodes),
        device_(device),
        options_(options),
        recorder_(recorder),
        parts_(std::move(parts)),
        graph_(nodes, stitch_ops()),
        part_of_(nodes.facts.size(), -1),
        once_(once_values(*nodes.computation)) {}

  std::vector<KernelPlan> run() {
    const int count = static_cast<int>(parts_.size());
    std::vector<KernelCost> costs(parts_.size());
    parallel_for(costs.size(), [&](std::size_t s) {
      Part& part = parts_[s];
      costs[s] = kernel_cost(*nodes_.graph, device_, part.kernel);
      part.us = options_.judge == &modelled_judge()
                    ? costs[s].predicted_us
                    : options_.judge->kernel(*nodes_.graph, device_, part.kernel).us;
    });
    for (const Part& part : parts_) {
      for (const NodeId id : part.op.members) part_of_[index(id)] = static_cast<int>(estimates_.size());
      estimates_.push_back(estimate(part, costs[estimates_.size()]));
    }
    const std::int64_t peak = graph_.peak_bytes();
    allowed_peak_ = std::max(peak + kPeakGrowthBytes,
                             static_cast<std::int64_t>(static_cast<double>(peak) * (1 + kPeakGrowth)));
    try_sharing();
    try_neighbours();

    std::vector<std::vector<int>> joined;  // stitch ops of each kernel, by the first of them
    std::map<int, std::size_t> kernel_of;
    for (int s = 0; s < count; ++s) {
      const auto kernel = kernel_of.emplace(graph_.find(s), joined.size());
      if (kernel.second) joined.emplace_back();
      joined[kernel.first->second].push_back(s);
    }
    std::vector<Candidate> candidates;
    for (const std::vector<int>& own : joined)
      if (own.size() > 1) candidates.push_back(together(own));
    std::vector<BestKernel> best = best_kernels(nodes_, candidates, device_, options_);
    std::vector<BestKernel> best_of(joined.size());
    for (std::size_t k = 0, c = 0; k < joined.size(); ++k)
      if (joined[k].size() > 1) best_of[k] = std::move(best[c++]);
    std::vector<Emitted> emitted(joined.size(), Emitted{{}, Recorder(recorder_.enabled())});
    parallel_for(joined.size(), [&](std::size_t k) { emit(joined[k], std::move(best_of[k]), emitted[k]); });
    std::vector<KernelPlan> kernels;
    for (Emitted& e : emitted) {
      std::move(e.kernels.begin(), e.kernels.end(), std::back_inserter(kernels));
      recorder_.append(e.recorder.take());
    }
    return kernels;
  }

 private:
  struct Emitted {
    std::vector<KernelPlan> kernels;
    Recorder recorder;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const std::string& name(int s) const { return nodes_.name(parts_[index(s)].op.members.back()); }

  std::vector<StitchOp> stitch_ops() const {
    std::vector<StitchOp> ops;
    for (const Part& part : parts_) ops.push_back(part.op);
    return ops;
  }

  /// None for what is no index map: it stays alone.
  std::optional<Estimate> estimate(const Part& part, const KernelCost& cost) {
    if (nodes_[part.op.members.front()].isolated) return std::nullopt;
    Estimate result;
    result.counted = {cost.work, cost.predicted_us, part.kernel.launch.blocks_per_wave};
    for (const Group& group : part.kernel.groups) {
      const auto code = group_codes_.try_emplace(group_code(nodes_, group.ops, group.mapping),
                                                 static_cast<int>(group_codes_.size()));
      result.groups.add(code.first->second);
    }
    for (const NodeId id : part.op.members) result.ops.add(nodes_[id].code);
    result.inputs = kernel_inputs(*nodes_.graph, part.kernel);
    return result;
  }

  /// Pairs of stitch ops that read the same large input, most shared bytes first.
  void try_sharing() {
    std::map<NodeId, std::vector<int>> readers;
    for (int s = 0; s < static_cast<int>(estimates_.size()); ++s) {
      if (!estimates_[index(s)]) continue;
      for (const NodeId input : estimates_[index(s)]->inputs) {
        if (nodes_[input].elements > kSharedElements) readers[input].push_back(s);
      }
    }
    std::map<std::pair<int, int>, std::int64_t> shared;
    for (auto& [input, by] : readers) {
      std::stable_sort(by.begin(), by.end(), [&](int a, int b) { return graph_.level(a) < graph_.level(b); });
      for (std::size_t i = 0; i < by.size(); ++i) {
        for (std::size_t j = i + 1; j < std::min(by.size(), i + 1 + kSharingNeighbours); ++j) {
          shared[std::minmax(by[i], by[j])] += nodes_.bytes(input);
        }
      }
    }
    std::vector<std::pair<std::int64_t, std::pair<int, int>>> pairs;
    for (const auto& [pair, bytes] : shared) pairs.emplace_back(-bytes, pair);
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [bytes, pair] : pairs) try_join(pair.first, pair.second);
  }

  /// By level, each with the kernels opened last.
  void try_neighbours() {
    std::vector<int> order;
    for (int s = 0; s < static_cast<int>(estimates_.size()); ++s) {
      if (estimates_[index(s)] && graph_.find(s) == s) order.push_back(s);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return graph_.level(a) < graph_.level(b); });
    std::deque<int> open;
    for (const int s : order) {
      const bool joined =
          std::any_of(open.begin(), open.end(), [&](int kernel) { return try_join(kernel, s); });
      if (joined) continue;
      open.push_front(s);
      if (open.size() > kOpenKernels) open.pop_back();
    }
  }

  bool try_join(int first, int second) {
    interruption_point();
    const int a = graph_.find(first), b = graph_.find(second);
    if (a == b) return false;
    Estimate together;
    const Verdict verdict = judge(a, b, together);
    recorder_.add("scope", name(first), name(second), [&] { return verdict; });
    if (!verdict) return false;
    estimates_[index(graph_.join(a, b))] = std::move(together);
    return true;
  }

  Verdict judge(int a, int b, Estimate& together) {
    const Estimate &x = *estimates_[index(a)], &y = *estimates_[index(b)];
    if (is_once(a) != is_once(b))
      return Verdict::no("astitch.remote-once", "what depends on weights alone is computed once, by itself");
    if (Verdict wanted = overrides_admit(a, b); !wanted) return wanted;
    if (Verdict limits = within_limits(x, y); !limits) return limits;
    const int distance = std::abs(graph_.level(a) - graph_.level(b));
    if (distance > options_.max_level_distance) {
      return Verdict::no("astitch.remote-levels",
                         fmt::format("{} levels apart, {} allowed", distance, options_.max_level_distance));
    }
    if (graph_.reaches(a, b) || graph_.reaches(b, a)) {
      return Verdict::no("astitch.remote-cycle", "a path leads from one to the other");
    }
    together = estimate(x, y);
    const double apart = x.counted.us + y.counted.us + device_.launch_gap_us;
    if (together.counted.us >= apart * (1 + kFewerKernelsUnplanned)) {
      return Verdict::no("astitch.remote-time", fmt::format("predicted {:.2f} us together, {:.2f} us apart",
                                                            together.counted.us, apart));
    }
    const std::int64_t peak = graph_.peak_bytes_joined(a, b);
    if (peak > allowed_peak_) {
      return Verdict::no("astitch.remote-memory",
                         fmt::format("{} bytes alive at most, {} allowed", peak, allowed_peak_));
    }
    return Verdict::yes("astitch.remote-stitch",
                        fmt::format("predicted {:.2f} us together, {:.2f} us apart; {} inputs shared",
                                    together.counted.us, apart, shared_inputs(x, y).size()));
  }

  /// Of the stitch ops of a cluster, all or none.
  bool is_once(int cluster) const {
    if (once_.empty()) return false;
    const std::vector<NodeId>& members = parts_[index(cluster)].op.members;
    return std::ranges::all_of(members, [&](NodeId id) { return once_[static_cast<std::size_t>(id)]; });
  }

  Verdict overrides_admit(int a, int b) const {
    const auto in = [&](int cluster) {
      return [this, cluster](NodeId op) {
        const int part = part_of_[index(op)];
        return part >= 0 && graph_.find(part) == cluster;
      };
    };
    if (const auto pair = options_.constraints.keeps_apart(in(a), in(b))) {
      return Verdict::no("override.forbid_merge",
                         fmt::format("an override keeps {} and {} apart", nodes_.name(pair->first),
                                     nodes_.name(pair->second)));
    }
    for (const auto* launches : {&options_.constraints.block, &options_.constraints.residency}) {
      for (const auto& [x, wanted] : *launches) {
        for (const auto& [y, other] : *launches) {
          if (wanted != other && in(a)(x) && in(b)(y)) {
            return Verdict::no("override.launch",
                               fmt::format("overrides want {} of the kernel of {} and {} of that of {}",
                                           wanted, nodes_.name(x), other, nodes_.name(y)));
          }
        }
      }
    }
    return Verdict::yes();
  }

  Verdict within_limits(const Estimate& x, const Estimate& y) const {
    const auto check = [](std::string_view what, int has, int allowed) {
      return has <= allowed ? Verdict::yes()
                            : Verdict::no("astitch.kernel-limits",
                                          fmt::format("{} {} together, {} allowed", has, what, allowed));
    };
    if (Verdict ops = check("ops", x.ops.with(y.ops), options_.max_ops); !ops) return ops;
    return check("groups", x.groups.with(y.groups), options_.max_groups);
  }

  Estimate estimate(const Estimate& x, const Estimate& y) const {
    Estimate both;
    both.groups = x.groups;
    both.groups.add(y.groups);
    both.ops = x.ops;
    both.ops.add(y.ops);
    std::set_union(x.inputs.begin(), x.inputs.end(), y.inputs.begin(), y.inputs.end(),
                   std::back_inserter(both.inputs));
    double shared = 0;
    for (const NodeId id : shared_inputs(x, y)) shared += static_cast<double>(nodes_.bytes(id));
    both.counted = beside(device_, x.counted, y.counted, shared, options_.tuned);
    return both;
  }

  /// The stitch op of joined parts.
  Candidate together(const std::vector<int>& parts) const {
    std::vector<NodeId> members;
    for (const int s : parts) {
      const auto& own = parts_[index(s)].op.members;
      members.insert(members.end(), own.begin(), own.end());
    }
    std::sort(members.begin(), members.end());
    return stitch_op(nodes_, std::move(members));
  }

  /// The kernels of joined parts: one if its plan, of several parts `best`, keeps what the estimate promised.
  void emit(const std::vector<int>& parts, BestKernel best, Emitted& emitted) {
    if (parts.size() == 1) {
      Part& part = parts_[index(parts.front())];
      emitted.kernels.push_back(std::move(part.kernel));
      emitted.recorder.append(std::move(part.decisions));
      return;
    }
    double apart = -device_.launch_gap_us;
    for (const int s : parts) apart += parts_[index(s)].us + device_.launch_gap_us;
    if (best.kernels.size() == 1) {
      const double us = options_.judge->kernel(*nodes_.graph, device_, best.kernels.front()).us;
      if (us < apart * (1 + kFewerKernels)) {
        emitted.kernels.push_back(std::move(best.kernels.front()));
        emitted.recorder.append(std::move(best.decisions));
        return;
      }
      emitted.recorder.add("scope", name(parts.front()), name(parts.back()), [&] {
        return Verdict::no("astitch.remote-time",
                           fmt::format("planned, {} stitch ops take {:.2f} us together, "
                                       "{:.2f} us apart: they are halved",
                                       parts.size(), us, apart));
      });
    } else {
      emitted.recorder.add("scope", name(parts.front()), name(parts.back()), [&] {
        return Verdict::no("astitch.kernel-limits",
                           fmt::format("planned, {} stitch ops are {} kernels together: they are halved",
                                       parts.size(), best.kernels.size()));
      });
    }
    const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
    for (const std::vector<int>& half :
         {std::vector(parts.begin(), middle), std::vector(middle, parts.end())})
      emit(half, half.size() > 1 ? best_kernel(nodes_, together(half), device_, options_) : BestKernel(),
           emitted);
  }

  const Nodes& nodes_;
  const Device& device_;
  const Options& options_;
  Recorder& recorder_;
  std::vector<Part> parts_;
  StepGraph graph_;
  std::map<GroupCode, int> group_codes_;
  std::vector<int> part_of_;                        ///< of each node, -1: none
  std::vector<bool> once_;                          ///< once_values
  std::vector<std::optional<Estimate>> estimates_;  ///< by stitch op; of what has become part of it too
  std::int64_t allowed_peak_ = 0;
};

/// The parts of a stitch op planned for itself: where the limits cut it, each of its kernels is one, and
/// decisions are the stitch op's.
void add_parts(const Nodes& nodes, const StitchOp& op, BestKernel best, std::vector<Part>& parts,
               Recorder& recorder) {
  if (best.kernels.size() == 1) {
    parts.push_back({op, std::move(best.kernels.front()), std::move(best.decisions), 0});
    return;
  }
  recorder.append(std::move(best.decisions));
  for (KernelPlan& kernel : best.kernels) {
    StitchOp part = stitch_op(nodes, members_of(nodes, kernel));
    parts.push_back({std::move(part), std::move(kernel), {}, 0});
  }
}

}  // namespace

std::vector<KernelPlan> plan_scope(const Nodes& nodes, const Scope& scope, const Device& device,
                                   const Options& options, Recorder& recorder) {
  std::vector<BestKernel> best = best_kernels(nodes, scope.stitch_ops, device, options);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < best.size(); ++i)
    add_parts(nodes, scope.stitch_ops[i], std::move(best[i]), parts, recorder);
  if (options.remote_stitching && parts.size() > 1) {
    return Remote(nodes, std::move(parts), device, options, recorder).run();
  }
  std::vector<KernelPlan> kernels;
  for (Part& part : parts) {
    kernels.push_back(std::move(part.kernel));
    recorder.append(std::move(part.decisions));
  }
  return kernels;
}

}  // namespace stitchwork::astitch
