#include "runtime/run.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/judge/step_times.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/loop_state.h"
#include "analysis/plan/plan_memory.h"
#include "analysis/plan/step_order.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/evaluate/evaluator.h"
#include "core/passes/trip_count.h"
#include "runtime/library_calls.h"
#include "runtime/run_values.h"
#include "runtime/simulator_backend.h"

namespace stitchwork {
namespace {

/// The ops whose values are the graph's results: the root, or the elements of a root tuple.
std::vector<NodeId> results(const Computation& computation) {
  const Node& root = computation.node(computation.root);
  if (root.op == Op::kTuple) return root.operands;
  return {root.id};
}

/// What the runs of a program's computations share.
struct Program {
  struct Part {
    Graph graph;
    const Executable& executable;
    ComputationRun& total;
  };

  Program(const Graph& graph, const Device& device, const Executable& executable, Backend& backend,
          std::vector<ComputationRun>& totals)
      : device(device), backend(backend) {
    totals.resize(executable.computations.size());
    for (std::size_t i = 0; i < executable.computations.size(); ++i) {
      const ComputationId id = executable.plan.computations[i].computation;
      totals[i].kernels.resize(executable.computations[i].kernels.size());
      parts.emplace(id, Part{entered(graph, id), executable.computations[i], totals[i]});
    }
  }

  const Device& device;
  Backend& backend;
  RunLimits limits;
  std::map<ComputationId, Part> parts;
};

/// `times`: launches that each of the run's stands for (of a sample, a loop's trips).
void add_launch(KernelRun& total, const KernelRun& run, std::int64_t times) {
  if (run.launches == 0) return;
  const std::int64_t launches = total.launches + times * run.launches;
  const double time_us = total.time_us + static_cast<double>(times) * run.time_us;
  if (total.launches == 0) total = run;
  total.launches = launches;
  total.time_us = time_us;
}

/// One run of one computation: uploads what steps read, executes them in order, frees buffers after their
/// last use.
class Runner {
 public:
  /// `whole`: of the entry computation, not of a loop or branch. `times`: runs of the computation that this
  /// one stands for.
  Runner(const Graph& graph, const Executable& executable, Program& program, bool whole = false,
         std::int64_t times = 1)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(program.device),
        executable_(executable),
        program_(program),
        backend_(program.backend),
        values_(computation_, backend_),
        whole_(whole),
        times_(times) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// `progress` is told of each step. The outputs are left to `outputs` and `made`.
  RunResult run(std::vector<RunValue> inputs, const RunProgress& progress = {}) {
    const FusionPlan& plan = executable_.plan;
    SW_CHECK(inputs.size() == computation_.parameters.size(), "{} inputs for {} parameters", inputs.size(),
             computation_.parameters.size());
    values_.start(std::move(inputs));
    plan_lifetimes();
    RunResult result;
    result.kernels.resize(plan.kernels.size());
    result.steps.assign(plan.steps.size(), {});
    try {
      run_steps(result, progress);
    } catch (HostReadError& error) {
      result.findings.push_back(std::move(error.finding));
    }
    if (!result.findings.empty()) result.outputs.clear();
    return result;
  }

  /// What a run without findings has made, where it is.
  RunValue made() { return values_.held(computation_.root); }

 private:
  void run_steps(RunResult& result, const RunProgress& progress) {
    const FusionPlan& plan = executable_.plan;
    const int total = static_cast<int>(plan.steps.size());
    for (int done = 0; done < total; ++done) {
      const int i = order_[static_cast<std::size_t>(done)];
      const PlanStep& step = plan.steps[static_cast<std::size_t>(i)];
      if (progress) progress(done, total, step.id);
      done_ = static_cast<std::size_t>(done);
      trip_progress_ = [&](std::int64_t trip) {
        if (progress)
          progress(done, total,
                   fmt::format("{}: trip {}{}", step.id, with_commas(trip),
                               step.trips ? " of " + with_commas(*step.trips) : std::string()));
      };
      if (whole_) backend_.begin_step(static_cast<std::size_t>(i), step.stream, step.waits, step.once);
      perform(step, i, result);
      if (!result.findings.empty()) return;
      for (NodeId owner : dies_after_[static_cast<std::size_t>(done)]) values_.end(owner);
    }
    if (whole_) {
      backend_.settle(result.host_calls.empty());
      for (const auto& [step, timed] : timed_) add_settled(step, timed, result);
      result.repeated = backend_.repeated();
    }
    if (progress) progress(total, total, "done");
    const bool reads = whole_ && backend_.computes_results();
    for (NodeId id : reads ? results(computation_) : std::vector<NodeId>{}) {
      Literal output = values_.value(id);
      if (id == computation_.root && output.shape.is_tuple)
        result.outputs = std::move(output.elements);
      else
        result.outputs.push_back(std::move(output));
    }
    add_total(result);
  }

  /// Steps and the gaps between them; of a plan with several streams the end of its schedule, with the times
  /// of its steps alone as they were simulated, or as a GPU's streams took.
  void add_total(RunResult& result) const {
    const FusionPlan& plan = executable_.plan;
    std::vector<double> us;
    for (const StepRun& step : result.steps) us.push_back(step.time_us);
    if (uses_streams(plan) && result.repeated) {
      result.total_us = result.repeated->stream_us;
      return;
    }
    if (uses_streams(plan) && backend_.method() != Method::kMeasured) {
      const auto kernels =
          with_times(step_kernels(graph_, device_, plan, evaluations(computation_, plan)), us);
      result.total_us = last_end_us(step_spans(device_, plan, kernels));
      return;
    }
    std::array<int, 2> steps{};  // of a run, and done once
    for (std::size_t s = 0; s < us.size(); ++s) {
      const bool once = plan.steps[s].once;
      (once ? result.once_us : result.total_us) += us[s] + (steps[once]++ > 0 ? device_.launch_gap_us : 0);
    }
  }

  /// In which order steps run, what each touches, and after how many a buffer is touched no more; those
  /// behind the results are touched after the last.
  void plan_lifetimes() {
    const FusionPlan& plan = executable_.plan;
    const std::optional<std::uint32_t> shuffle = program_.limits.shuffle;
    order_.resize(plan.steps.size());
    std::iota(order_.begin(), order_.end(), 0);
    if (shuffle) order_ = shuffled_steps(plan, *shuffle);
    traffic_ = traffic_of_steps(graph_, plan);
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      if (plan.steps[s].once)
        for (const NodeId owner : traffic_[s].writes) values_.stays(owner);
    // Of a shuffled run the last position of all steps that the plan has no later than a buffer's last.
    std::vector<std::size_t> done_by(plan.steps.size());
    for (std::size_t at = 0; at < order_.size(); ++at) done_by[static_cast<std::size_t>(order_[at])] = at;
    for (std::size_t s = 1; s < done_by.size(); ++s) done_by[s] = std::max(done_by[s], done_by[s - 1]);
    dies_after_.assign(plan.steps.size(), {});
    for (const BufferLife& buffer : buffer_lives(computation_, plan, traffic_))
      if (buffer.last < plan.steps.size()) dies_after_[done_by[buffer.last]].push_back(buffer.owner);
  }

  /// What fails is told with the kernel or library op and the plan it was to be a step of.
  void perform(const PlanStep& step, int index, RunResult& result) {
    try {
      for (const NodeId owner : traffic_[static_cast<std::size_t>(index)].reads) values_.upload_source(owner);
      execute(step, index, result);
    } catch (const Error& error) {
      if (!error.file().empty() || step.kind == StepKind::kControl) throw;  // which says enough
      const FusionPlan& plan = executable_.plan;
      const std::string what =
          step.kind == StepKind::kKernel
              ? "kernel " + kernel_and_plan(plan, plan.kernels[static_cast<std::size_t>(step.kernel)])
              : fmt::format("{} (planner {} for {})", step.id, plan.planner, plan.device);
      throw Error(fmt::format("{}: {}", what, error.message()), error.hint());
    }
  }

  void execute(const PlanStep& step, int index, RunResult& result) {
    StepRun& run = result.steps[static_cast<std::size_t>(index)];
    run = {step.predicted_us, Method::kModelled};
    switch (step.kind) {
      case StepKind::kKernel:
        launch(step, static_cast<std::size_t>(index), result);
        run = {result.kernels[static_cast<std::size_t>(step.kernel)].time_us,
               result.kernels[static_cast<std::size_t>(step.kernel)].method};
        return;
      case StepKind::kLibrary:
        if (const std::optional<Timed> timed = call_library(step, result)) {
          timed_.emplace_back(static_cast<std::size_t>(index), *timed);
          run = {timed->us, timed->sampled ? Method::kSampled : backend_.method()};
          result.sanitized += timed->sanitized;
        }
        return;
      case StepKind::kControl:
        run = {control(step, computation_.node(step.nodes.at(0)), result), backend_.method()};
        return;
      case StepKind::kCopy:
        for (NodeId id : step.nodes) copy(id);
        return;
      case StepKind::kMemset:
        for (NodeId id : step.nodes) {
          const Shape& shape = computation_.node(buffer_of(computation_, id)).shape;
          backend_.clear(values_.address(id), static_cast<std::size_t>(shape.byte_size()));
        }
        return;
    }
  }

  void copy(NodeId id) {
    const Node& node = computation_.node(id);
    const NodeId from = node.operands[0];
    if (node.shape.is_tuple || computation_.node(from).shape.is_tuple)
      return values_.keep(node, values_.held(from));
    const auto bytes = static_cast<std::size_t>(node.shape.byte_size());
    if (bytes > 0) backend_.copy(values_.address(id), values_.address(from), bytes);
  }

  /// Of a call of one op, or of a product or convolution with its epilogue. Its time, where the backend made
  /// the call; else the CPU reference has computed it.
  std::optional<Timed> call_library(const PlanStep& step, RunResult& result) {
    const std::vector<NodeId>& call = step.nodes;
    const Node &node = computation_.node(call.back()), &named = computation_.node(call.front());
    if (!backend_.computes_results() && !backend_.times_calls() && step.variant.empty()) {
      if (node.shape.is_tuple) values_.keep(node, RunValue::of(Literal::zeros(node.shape)));
      return std::nullopt;
    }
    if (auto timed = made_call(computation_, step, values_, backend_)) {
      result.library_calls.try_emplace(named.name, timed->by);
      return timed;
    }
    if (!backend_.computes_results()) return std::nullopt;
    values_.keep(node, RunValue::of(computed_call(graph_, call, values_)));
    result.host_calls.push_back(named.name);
    return std::nullopt;
  }

  /// The time of a launch or call as the backend knows it when all have run.
  void add_settled(std::size_t step, const Timed& timed, RunResult& result) {
    const PlanStep& planned = executable_.plan.steps[step];
    const double more = backend_.time_us(timed) - timed.us;
    result.steps[step].time_us += more;
    if (planned.kind == StepKind::kKernel)
      result.kernels[static_cast<std::size_t>(planned.kernel)].time_us += more;
  }

  /// Runs computation `which` of a loop or branch, `times` (of a sample) as often. Its result; adds its time
  /// to `us`.
  RunValue run_part(const Node& node, std::size_t which, RunValue argument, RunResult& result, double& us,
                    std::int64_t times = 1) {
    const auto found = program_.parts.find(node.attrs.computations.at(which));
    if (found == program_.parts.end()) {  // a plan from a file may lack it
      const Literal given = values_.literal(argument);
      const Literal* borrowed = &given;
      return RunValue::of(evaluate_computation(graph_, node.attrs.computations[which], {&borrowed, 1}));
    }
    Program::Part& part = found->second;
    Runner runner(part.graph, part.executable, program_, false, times * times_);
    std::vector<RunValue> inputs;
    inputs.push_back(std::move(argument));
    RunResult done = runner.run(std::move(inputs));
    us += static_cast<double>(times) * done.total_us;
    part.total.runs += times * times_;
    result.host_calls.insert(result.host_calls.end(), done.host_calls.begin(), done.host_calls.end());
    result.library_calls.merge(done.library_calls);
    for (std::size_t k = 0; k < done.kernels.size(); ++k)
      add_launch(part.total.kernels[k], done.kernels[k], times * times_);
    result.sanitized += done.sanitized;
    for (sim::Finding& finding : done.findings) result.findings.push_back(std::move(finding));
    if (!result.findings.empty() || !backend_.computes_results()) return {};
    return runner.made();
  }

  /// Runs a loop or branch. Returns the time of all it ran, in us.
  double control(const PlanStep& step, const Node& node, RunResult& result) {
    if (!backend_.computes_results()) return sampled_control(step, node, result);
    result.host_calls.push_back(node.name);  // the host decides how it goes on
    double us = 0;
    if (node.op == Op::kWhile) {
      RunValue state = values_.start_of_loop(graph_, node, dies_after_[done_]);
      us += copied_state_us(graph_, device_, executable_.plan, step);
      const std::optional<std::int64_t> trips = counted_trips(node);
      const auto goes_on = [&](std::int64_t trip) {
        if (trips) return trip <= *trips;  // nobody has to compute the condition
        const RunValue more = run_part(node, 0, state, result, us);
        return result.findings.empty() && values_.literal(more).get_int(0) != 0;
      };
      for (std::int64_t trip = 1; goes_on(trip); ++trip) {
        if (trip > program_.limits.max_trips)
          throw Error(graph_.source, node.line, 0,
                      fmt::format("loop {} goes on after {} trips", node.name,
                                  with_commas(program_.limits.max_trips)),
                      "does it end? run --max-trips N lets it go on");
        trip_progress_(trip);
        if (!trips || trip > 1) us += device_.launch_gap_us;
        state = run_part(node, 1, std::move(state), result, us);
        if (!trips) us += device_.launch_gap_us;
        if (!result.findings.empty()) return us;
      }
      if (result.findings.empty()) values_.keep(node, std::move(state));
      return us;
    }
    const std::size_t branch = taken_branch(node, values_.value(node.operands[0]));
    RunValue taken = run_part(node, branch, values_.held(node.operands[branch + 1]), result, us);
    if (result.findings.empty()) values_.keep(node, std::move(taken));
    return us;
  }

  /// Of a loop that runs without its condition.
  std::optional<std::int64_t> counted_trips(const Node& loop) const {
    const std::optional<std::int64_t> trips = trip_count(graph_, computation_, loop);
    return is_counted(loop, trips) ? trips : std::nullopt;
  }

  /// Of a sample, which computes no values: a loop's body and condition run once, on the state that it starts
  /// with, and stand for all its trips; of branches, the one that is estimated to take longest.
  double sampled_control(const PlanStep& step, const Node& node, RunResult& result) {
    double us = 0;
    if (node.op == Op::kWhile) {
      if (!step.trips)
        throw Error(graph_.source, node.line, 0,
                    fmt::format("{} runs until a value says so, which a sample of blocks does not compute",
                                node.name),
                    "run all blocks: --mode exact");
      const RunValue state = values_.held(node.operands[0]);
      if (!counted_trips(node)) run_part(node, 0, state, result, us, *step.trips + 1);
      if (*step.trips > 0) run_part(node, 1, state, result, us, *step.trips);
      us += control_gaps_us(device_, node, step.trips) +
            copied_state_us(graph_, device_, executable_.plan, step);
    } else {
      const std::size_t branch = costliest_branch(node);
      run_part(node, branch, values_.held(node.operands[branch + 1]), result, us);
    }
    values_.keep(node, RunValue::of(Literal::zeros(node.shape)));
    return us;
  }

  std::size_t costliest_branch(const Node& node) const {
    std::size_t most = 0;
    double most_us = -1;
    for (std::size_t i = 0; i < node.attrs.computations.size(); ++i) {
      const auto part = program_.parts.find(node.attrs.computations[i]);
      const double us = part == program_.parts.end() ? 0 : part->second.executable.plan.predicted_us;
      if (us > most_us) most_us = us, most = i;
    }
    return most;
  }

  void launch(const PlanStep& step, std::size_t index, RunResult& result) {
    const CompiledKernel& kernel = executable_.kernels[static_cast<std::size_t>(step.kernel)];
    LaunchMemory memory = lay_out(backend_, kernel, [this](NodeId op) { return values_.address(op); });
    Launched launched = backend_.launch(kernel, memory.arguments);
    timed_.emplace_back(index, launched.time);
    if (backend_.keeps_sources())
      for (DeviceBuffer& buffer : memory.written) kept_.push_back(std::move(buffer));
    KernelRun& run = result.kernels[static_cast<std::size_t>(step.kernel)];
    run.launches = 1;
    run.counters = launched.counters;
    run.registers = launched.registers;
    run.spill_bytes = launched.spill_bytes;
    run.time_us = launched.time.us;
    run.parts = launched.parts;
    run.not_modelled = std::move(launched.not_modelled);
    run.bytes_in_flight = launched.bytes_in_flight;
    run.lines = std::move(launched.lines);
    run.method = launched.sampled ? Method::kSampled : backend_.method();
    result.sanitized += launched.sanitized;
    for (sim::Finding& finding : launched.findings) result.findings.push_back(std::move(finding));
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const Executable& executable_;
  Program& program_;
  Backend& backend_;
  RunValues values_;
  bool whole_;
  std::int64_t times_;
  std::size_t done_ = 0;                              ///< steps before the one that runs
  std::vector<std::pair<std::size_t, Timed>> timed_;  ///< launches and calls, by step
  std::vector<DeviceBuffer> kept_;                    ///< tables and barriers, until the run ends
  std::function<void(std::int64_t)> trip_progress_;
  std::vector<Traffic> traffic_;                 ///< by step
  std::vector<int> order_;                       ///< of the steps, as they run
  std::vector<std::vector<NodeId>> dies_after_;  ///< owners of buffers, by place in that order
};

}  // namespace

RunResult run_on(Backend& backend, const Graph& model, const Device& device, const Executable& executable,
                 std::span<const Literal> inputs, const RunProgress& progress, const RunLimits& limits) {
  const Graph& graph = planned_graph(model, executable.plan);
  require_runnable(graph);
  if (limits.shuffle && backend.method() == Method::kMeasured)
    throw Error("steps are shuffled in simulated runs alone: a GPU's streams have an order of their own",
                "leave out --shuffle, or use --backend sim");
  backend.begin_program();
  std::vector<ComputationRun> computations;
  Program program(graph, device, executable, backend, computations);
  program.limits = limits;
  std::vector<RunValue> given;
  for (const Literal& input : inputs) given.push_back(RunValue::borrowed(input));
  RunResult result = Runner(graph, executable, program, true).run(std::move(given), progress);
  result.computations = std::move(computations);
  return result;
}

RunResult run_simulated(const Graph& graph, const Device& device, const Executable& executable,
                        std::span<const Literal> inputs, const RunOptions& options) {
  SimulatorBackend backend(device, options.cache, options.sanitize, options.host_threads, options.sampled,
                           options.lines);
  backend.make_products_by(options.products, options.compile);
  return run_on(backend, graph, device, executable, inputs, options.progress, options.limits);
}

}  // namespace stitchwork
