// Kernel orchestration by a binary program, as Korch does (docs/planners/fission.md): candidates are the
// cones of primitives that TVM makes one function of.
#include "analysis/planners/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "analysis/plan/assemble.h"
#include "analysis/planners/fission/effort.h"
#include "analysis/planners/tvm/functions.h"
#include "analysis/schedule/inlined_kernel.h"
#include "core/base/at.h"
#include "core/base/format.h"
#include "core/base/parallel.h"

namespace stitchwork {
namespace {

using fission::Mask;
using fission::Window;
using fission::WindowProgram;

/// A kernel of TVM's, and what it costs.
struct TvmKernel {
  KernelPlan plan;
  double us = 0;
};

class Orchestrator {
 public:
  Orchestrator(const Graph& graph, const Device& device, const fission::Effort& effort, bool record)
      : graph_(graph),
        device_(device),
        nodes_(astitch::node_facts(graph)),
        prices_(nodes_, device),
        effort_(effort),
        recorder_(record) {
    for (Window& window : fission::windows(nodes_)) programs_.push_back({std::move(window), {}, {}, {}});
    find_places();
    take_tvm();
    parallel_for(programs_.size(), [&](std::size_t w) {
      WindowProgram& of = programs_[w];
      of.candidates = fission::candidates(of.window, prices_, effort_.candidates, of.from_tvm);
      of.selection = fission::select(of.window, of.candidates, effort_.solver);
    });
  }

  const std::vector<WindowProgram>& programs() const { return programs_; }

  FusionPlan plan() {
    std::vector<KernelPlan> kernels;
    for (std::size_t first = 0; first < programs_.size();) {
      std::size_t end = first;
      while (end < programs_.size() && component(end) == component(first)) ++end;
      take_component(first, end, kernels);
      first = end;
    }
    mark_recomputed(kernels);
    FusionPlan plan = assemble(graph_, device_, "korch", std::move(kernels));
    plan.decisions = recorder_.take();
    return plan;
  }

 private:
  struct Place {
    int window = -1, primitive = -1;
  };

  void find_places() {
    std::ranges::stable_sort(programs_, {}, [](const WindowProgram& of) { return of.window.component; });
    places_.resize(nodes_.facts.size());
    for (std::size_t w = 0; w < programs_.size(); ++w)
      for (int i = 0; i < window(w).size(); ++i) places_[at(window(w).ops[at(i)])] = {static_cast<int>(w), i};
  }

  const Window& window(std::size_t w) const { return programs_[w].window; }
  int component(std::size_t w) const { return window(w).component; }

  const Place& place(NodeId op) const { return places_[at(op)]; }

  /// TVM's functions: the cones of the windows they lie in, and kernels of their components.
  void take_tvm() {
    const Computation& computation = graph_.entry_computation();
    Recorder of_tvm(recorder_.enabled());
    const std::vector<tvm::Function> functions = tvm::functions(computation, of_tvm);
    tvm_decisions_ = of_tvm.take();
    for (const tvm::Function& function : functions) {
      TvmKernel kernel{tvm::kernel_of(computation, function), 0};
      kernel.plan.outputs = {function.root};
      const Place& root = place(function.root);
      if (root.window < 0) {
        of_index_maps_.emplace(function.root, std::move(kernel));
        continue;
      }
      fission::Cone cone{root.primitive, 0};
      bool whole = true;
      for (const NodeId op : function.ops) {
        if (!nodes_[op].member) continue;
        whole = whole && place(op).window == root.window;
        cone.ops |= fission::only(place(op).primitive);
      }
      if (whole) programs_[at(root.window)].from_tvm.push_back(cone);
      tvm_[component(at(root.window))].push_back(std::move(kernel));
    }
  }

  /// TVM stores index maps that several of its functions read: with those that these read.
  void add_index_maps(std::vector<TvmKernel>& functions) const {
    std::set<NodeId> known;
    for (std::size_t k = 0; k < functions.size(); ++k)  // grows
      for (const NodeId read : kernel_reads(graph_, functions[k].plan))
        if (const auto found = of_index_maps_.find(read);
            found != of_index_maps_.end() && known.insert(read).second)
          functions.push_back(TvmKernel(found->second));
  }

  /// The kernels of the windows of a component, or TVM's where they are cheaper: cut windows may lose
  /// functions of TVM's, others what prices in whole nanoseconds do not tell apart.
  void take_component(std::size_t first, std::size_t end, std::vector<KernelPlan>& kernels) {
    std::vector<TvmKernel>& of_tvm = tvm_[component(first)];
    add_index_maps(of_tvm);
    double tvm_us = 0, own_us = 0;
    for (TvmKernel& kernel : of_tvm) tvm_us += kernel.us = prices_.us(kernel.plan);
    for (std::size_t w = first; w < end; ++w) own_us += programs_[w].selection.us;
    if (end - first > 1 || tvm_us < own_us) {
      recorder_.add("windows", name(window(first).ops.front()), "", [&] {
        const std::string why = fmt::format("its {} take {:.2f} us, TVM's {} functions {:.2f} us",
                                            counted(static_cast<long long>(end - first), "window"), own_us,
                                            of_tvm.size(), tvm_us);
        return own_us <= tvm_us ? Verdict::yes("korch.windows", why) : Verdict::no("korch.windows", why);
      });
      if (tvm_us < own_us) {
        for (TvmKernel& kernel : of_tvm)
          if (taken_.insert(kernel.plan.outputs.front()).second) kernels.push_back(std::move(kernel.plan));
        record_tvm(component(first));
        return;
      }
    }
    for (std::size_t w = first; w < end; ++w) take_window(w, kernels);
  }

  /// What TVM decided about the ops of a component, and about index maps, which are of none.
  void record_tvm(int of_component) {
    for (const Decision& decision : std::exchange(tvm_decisions_, {})) {
      const NodeId op = nodes_.computation->find(decision.subject);
      const bool other =
          op != kNoNode && place(op).window >= 0 && component(at(place(op).window)) != of_component;
      if (other)
        tvm_decisions_.push_back(decision);
      else
        recorder_.add(decision.step, decision.subject, decision.object, [&] { return decision.verdict; });
    }
  }

  void take_window(std::size_t w, std::vector<KernelPlan>& kernels) {
    const WindowProgram& of = programs_[w];
    const Window& window = of.window;
    record_program(of);
    for (const int k : of.selection.chosen) {
      const fission::Candidate& chosen = of.candidates[at(k)];
      const std::vector<NodeId> primitives = fission::primitives_of(window, chosen.ops);
      record_kernel(of, chosen);
      if (prices_.is_copy(primitives)) continue;  // a copy of the device's: it needs no kernel
      kernels.push_back(prices_.kernel(primitives, window.ops[at(chosen.sink)]));
    }
  }

  void record_program(const WindowProgram& of) {
    const Window& window = of.window;
    recorder_.add("windows", name(window.ops.front()), name(window.ops.back()), [&] {
      const std::string why =
          fmt::format("{} primitives, {} candidates, {} kernels of {:.2f} us", window.size(),
                      of.candidates.size(), of.selection.chosen.size(), of.selection.us);
      return of.selection.optimal
                 ? Verdict::yes("korch.program", why + ", the least of these candidates")
                 : Verdict::no("korch.gap",
                               fmt::format("{}; no choice takes less than {:.2f} us, the solver's "
                                           "limit of nodes ended the search",
                                           why, of.selection.bound_us));
    });
  }

  void record_kernel(const WindowProgram& of, const fission::Candidate& chosen) {
    if (!recorder_.enabled()) return;
    const Window& window = of.window;
    const std::string& sink = name(window.ops[at(chosen.sink)]);
    for (Mask inner = chosen.ops & ~fission::only(chosen.sink); inner != 0; inner &= inner - 1) {
      const int i = std::countr_zero(inner);
      const auto others = std::ranges::count_if(of.selection.chosen, [&](int k) {
        return &of.candidates[at(k)] != &chosen && fission::has(of.candidates[at(k)].ops, i);
      });
      recorder_.add("program", name(window.ops[at(i)]), sink, [&] {
        return Verdict::yes(others > 0 ? "korch.computed-again" : "korch.kernel",
                            fmt::format("one function of {:.2f} us", chosen.us));
      });
    }
    for (Mask inputs = chosen.inputs; inputs != 0; inputs &= inputs - 1) {
      const int i = std::countr_zero(inputs);
      recorder_.add("program", name(window.ops[at(i)]), sink, [&] { return refusal(window, chosen, i); });
    }
    for (const NodeId op : fission::primitives_of(window, chosen.ops))
      for (const NodeId read : astitch::producers(nodes_, op))
        if (nodes_[read].member && place(read).window != place(op).window)
          recorder_.add("program", name(read), name(op), [&] {
            return Verdict::no("korch.window",
                               fmt::format("components of more than {} primitives are planned "
                                           "in parts, which read each other's values",
                                           fission::kMostPrimitives));
          });
  }

  /// Why a kernel does not compute what it reads of the window.
  Verdict refusal(const Window& window, const fission::Candidate& chosen, int input) {
    const Mask together = chosen.ops | fission::only(input);
    const fission::CandidateLimits& limits = effort_.candidates;
    if (std::popcount(together) > limits.ops)
      return Verdict::no("korch.max-ops", fmt::format("a candidate has at most {} primitives", limits.ops));
    if (limits.convex && !fission::is_convex(window, together))
      return Verdict::no("korch.not-convex",
                         "what lies between them is computed elsewhere: no difference of "
                         "execution states");
    const NodeId sink = window.ops[at(chosen.sink)];
    const std::optional<double> us = prices_.us(fission::primitives_of(window, together), sink);
    if (!us) return Verdict::no("korch.several-functions", "TVM makes several functions of them");
    return Verdict::no("korch.dearer",
                       fmt::format("{:.2f} us if computed inside, {:.2f} us if read: with the "
                                   "other kernels this takes least",
                                   *us, chosen.us));
  }

  const std::string& name(NodeId op) const { return nodes_.name(op); }

  const Graph& graph_;
  const Device& device_;
  astitch::Nodes nodes_;
  fission::Prices prices_;
  std::vector<WindowProgram> programs_;
  std::vector<Place> places_;                  ///< by op
  std::map<int, std::vector<TvmKernel>> tvm_;  ///< by component
  std::map<NodeId, TvmKernel>
      of_index_maps_;       ///< functions of TVM's that no window holds, by what they store
  std::set<NodeId> taken_;  ///< what TVM's functions that are kernels store
  std::vector<Decision> tvm_decisions_;
  fission::Effort effort_;
  Recorder recorder_;
};

/// What `korch` may take, by its knobs; the defaults of those that a plan of another row has not.
fission::Effort orchestration(const std::map<std::string, std::string>& knobs) {
  const auto value = [&](const char* name) {
    const auto set = knobs.find(name);
    return set != knobs.end() ? std::string_view(set->second) : std::string_view();
  };
  fission::Effort result = fission::effort(value("effort"));
  result.candidates.convex = value("candidates") != "recompute";
  return result;
}

}  // namespace

FusionPlan plan_korch(const Graph& graph, const Device& device, const PlanOptions& options) {
  return Orchestrator(graph, device, orchestration(options.knobs), options.record_decisions).plan();
}

std::vector<WindowProgram> fission::programs(const Graph& graph, const Device& device,
                                             const std::map<std::string, std::string>& knobs) {
  return Orchestrator(graph, device, orchestration(knobs), false).programs();
}

}  // namespace stitchwork
