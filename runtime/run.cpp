#include "runtime/run.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "analysis/assemble.h"
#include "analysis/control_flow.h"
#include "analysis/facts.h"
#include "core/error.h"
#include "core/evaluator.h"

namespace stitchwork {
namespace {

/// Simulated device buffers of one run, by the op that owns them, freed after the last step that touches
/// them.
class Buffers {
 public:
  Buffers(const Computation& computation, sim::DeviceMemory& memory)
      : computation_(computation), memory_(memory) {}

  /// The buffer of `op` (aliases resolved); allocated on first use.
  sim::DeviceAddress address(NodeId op) {
    const NodeId owner = buffer_of(computation_, op);
    auto [it, inserted] = addresses_.try_emplace(owner, 0);
    if (inserted) {
      const Node& node = computation_.node(owner);
      it->second = memory_.allocate(
          static_cast<std::size_t>(std::max<std::int64_t>(1, node.shape.byte_size())), node.name);
    }
    return it->second;
  }

  void upload(NodeId op, const Literal& value) { memory_.write(address(op), value.bytes); }

  /// The values of `op` under its own shape (an alias may have another shape than its owner).
  Literal download(NodeId op) {
    Literal literal = Literal::zeros(computation_.node(op).shape);
    memory_.read(address(op), literal.bytes);
    return literal;
  }

  void release(NodeId owner) {
    if (auto it = addresses_.find(owner); it != addresses_.end()) {
      memory_.release(it->second);
      addresses_.erase(it);
    }
  }

 private:
  const Computation& computation_;
  sim::DeviceMemory& memory_;
  std::unordered_map<NodeId, sim::DeviceAddress> addresses_;
};

/// The ops whose buffers a step reads or writes, aliases resolved.
std::vector<NodeId> touched(const Graph& graph, const FusionPlan& plan, const PlanStep& step) {
  const Computation& computation = graph.entry_computation();
  std::vector<NodeId> nodes;
  auto add = [&](NodeId id) {
    nodes.push_back(buffer_of(computation, id));
    for (NodeId owner : values_read(computation, id)) nodes.push_back(owner);  // behind a tuple
  };
  if (step.kind == StepKind::kKernel) {
    const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
    for (NodeId id : kernel_inputs(graph, kernel)) add(id);
    for (NodeId id : kernel.outputs) add(id);
    return nodes;
  }
  for (NodeId id : step.nodes) {
    add(id);
    if (step.kind != StepKind::kMemset)
      for (NodeId operand : computation.node(id).operands) add(operand);
  }
  return nodes;
}

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

  Program(const Graph& graph, const Device& device, const Executable& executable, const RunOptions& options,
          std::vector<ComputationRun>& totals)
      : device(device), options(options) {
    if (options.cache == sim::CacheMode::kWarm) l2 = sim::make_l2_state(device);
    totals.resize(executable.computations.size());
    for (std::size_t i = 0; i < executable.computations.size(); ++i) {
      const ComputationId id = executable.plan.computations[i].computation;
      totals[i].kernels.resize(executable.computations[i].kernels.size());
      parts.emplace(id, Part{entered(graph, id), executable.computations[i], totals[i]});
    }
  }

  const ptx::Module& module(const CompiledKernel& kernel) {
    auto it = modules.find(kernel.source_sha256);
    if (it == modules.end())
      it = modules.emplace(kernel.source_sha256, ptx::parse(kernel.ptx, kernel.entry + ".ptx")).first;
    return it->second;
  }

  const Device& device;
  const RunOptions& options;
  sim::L2StatePtr l2;
  std::map<ComputationId, Part> parts;
  std::map<std::string, ptx::Module> modules;
};

void add_launch(KernelRun& total, const KernelRun& run) {
  if (run.launches == 0) return;
  const std::int64_t launches = total.launches + run.launches;
  const double time_us = total.time_us + run.time_us;
  if (total.launches == 0) total = run;
  total.launches = launches;
  total.time_us = time_us;
}

/// One run of one computation: uploads what steps read, executes them in order, frees buffers after their
/// last use.
class Runner {
 public:
  Runner(const Graph& graph, const Executable& executable, Program& program)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(program.device),
        executable_(executable),
        options_(program.options),
        program_(program),
        memory_(program.options.sanitize.init),
        buffers_(computation_, memory_) {}

  /// `progress` is told of each step.
  RunResult run(std::span<const Literal> inputs,
                const std::function<void(int, int, const std::string&)>& progress = {}) {
    const FusionPlan& plan = executable_.plan;
    SW_CHECK(inputs.size() == computation_.parameters.size(), "{} inputs for {} parameters", inputs.size(),
             computation_.parameters.size());
    inputs_ = inputs;
    plan_lifetimes();
    RunResult result;
    result.kernels.resize(plan.kernels.size());
    result.step_us.assign(plan.steps.size(), 0);
    const int total = static_cast<int>(plan.steps.size());
    for (int i = 0; i < total; ++i) {
      const PlanStep& step = plan.steps[static_cast<std::size_t>(i)];
      if (progress) progress(i, total, step.id);
      materialise_sources(step);
      execute(step, i, result);
      if (!result.findings.empty()) return result;
      for (NodeId owner : dies_after_[static_cast<std::size_t>(i)]) buffers_.release(owner);
    }
    if (progress) progress(total, total, "done");
    for (NodeId id : results(computation_)) {
      Literal output = value(id);
      if (id == computation_.root && output.shape.is_tuple)
        result.outputs = std::move(output.elements);
      else
        result.outputs.push_back(std::move(output));
    }
    for (double us : result.step_us) result.total_us += us;
    if (total > 1) result.total_us += device_.launch_gap_us * (total - 1);
    return result;
  }

 private:
  void plan_lifetimes() {
    const FusionPlan& plan = executable_.plan;
    std::unordered_map<NodeId, int> last;
    for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i)
      for (NodeId owner : touched(graph_, plan, plan.steps[static_cast<std::size_t>(i)])) last[owner] = i;
    for (NodeId id : results(computation_)) last.erase(buffer_of(computation_, id));
    for (NodeId owner : values_read(computation_, computation_.root))
      last.erase(owner);  // behind nested tuples
    dies_after_.assign(plan.steps.size(), {});
    for (auto [owner, step] : last) dies_after_[static_cast<std::size_t>(step)].push_back(owner);
  }

  /// Uploads parameters, constants and elements of tuples the step reads for the first time.
  void materialise_sources(const PlanStep& step) {
    for (NodeId owner : touched(graph_, executable_.plan, step)) upload_source(owner);
  }

  void upload_source(NodeId owner) {
    const Node& node = computation_.node(owner);
    const PlanRole role = plan_role(node);
    if ((role != PlanRole::kSource && role != PlanRole::kAlias) || node.shape.is_tuple || uploaded_[owner])
      return;
    uploaded_[owner] = true;
    buffers_.upload(owner, role == PlanRole::kSource ? source_value(node) : element_value(node));
  }

  /// An alias that owns its buffer is an element of a tuple that is not taken apart by name alone.
  Literal element_value(const Node& node) {
    SW_CHECK(!node.operands.empty(), "{} ({}) has no value", node.name, def(node.op).name);
    Literal from = value(node.operands[0]);
    if (node.op == Op::kGetTupleElement)
      return std::move(from.elements.at(static_cast<std::size_t>(node.attrs.tuple_index)));
    return from;
  }

  /// Tuples live on the host: what made them is a library step of its own, or a tuple of other values.
  Literal tuple_value(const Node& node) {
    if (const auto made = tuples_.find(node.id); made != tuples_.end()) return made->second;
    if (plan_role(node) == PlanRole::kSource) return source_value(node);
    if (node.op != Op::kTuple) return element_value(node);
    Literal tuple;
    tuple.shape = node.shape;
    for (NodeId operand : node.operands) tuple.elements.push_back(value(operand));
    return tuple;
  }

  const Literal& source_value(const Node& node) const {
    if (node.op == Op::kParameter) return inputs_[static_cast<std::size_t>(node.attrs.parameter_number)];
    SW_CHECK(node.attrs.literal != nullptr, "{} is not a parameter or constant", node.name);
    return *node.attrs.literal;
  }

  Literal value(NodeId id) {
    if (computation_.node(id).shape.is_tuple) return tuple_value(computation_.node(id));
    const NodeId owner = buffer_of(computation_, id);
    upload_source(owner);
    return buffers_.download(id);
  }

  void execute(const PlanStep& step, int index, RunResult& result) {
    const std::size_t i = static_cast<std::size_t>(index);
    switch (step.kind) {
      case StepKind::kKernel:
        launch(step, result);
        result.step_us[i] = result.kernels[static_cast<std::size_t>(step.kernel)].time_us;
        return;
      case StepKind::kLibrary:
        for (NodeId id : step.nodes) call_library(id);
        break;
      case StepKind::kControl:
        result.step_us[i] = control(computation_.node(step.nodes.at(0)), result);
        return;
      case StepKind::kCopy:
        for (NodeId id : step.nodes) {
          Literal copied = value(computation_.node(id).operands[0]);
          buffers_.upload(id, copied);
        }
        break;
      case StepKind::kMemset:
        for (NodeId id : step.nodes)
          memory_.fill(
              buffers_.address(id),
              static_cast<std::size_t>(computation_.node(buffer_of(computation_, id)).shape.byte_size()),
              std::byte{0});
        break;
    }
    result.step_us[i] = step.predicted_us;
  }

  void call_library(NodeId id) {
    const Node& node = computation_.node(id);
    std::vector<Literal> values;
    std::vector<const Literal*> operands;
    values.reserve(node.operands.size());
    for (NodeId operand : node.operands) operands.push_back(&values.emplace_back(value(operand)));
    keep(node, evaluate_node(graph_, computation_, node, operands));
  }

  void keep(const Node& node, Literal result) {
    if (node.shape.is_tuple)
      tuples_.emplace(node.id, std::move(result));
    else
      buffers_.upload(node.id, result);
  }

  /// Runs a loop or branch. Returns the time of all it ran, in us.
  double control(const Node& node, RunResult& result) {
    double us = 0;
    int runs = 0;
    const auto run_part = [&](std::size_t which, const Literal& argument) {
      const auto found = program_.parts.find(node.attrs.computations.at(which));
      if (found == program_.parts.end()) {  // a plan from a file may lack it
        const Literal* borrowed = &argument;
        return evaluate_computation(graph_, node.attrs.computations[which], {&borrowed, 1});
      }
      Program::Part& part = found->second;
      RunResult done = Runner(part.graph, part.executable, program_).run({&argument, 1});
      us += done.total_us + (runs++ > 0 ? device_.launch_gap_us : 0);
      ++part.total.runs;
      for (std::size_t k = 0; k < done.kernels.size(); ++k)
        add_launch(part.total.kernels[k], done.kernels[k]);
      result.sanitized += done.sanitized;
      for (sim::Finding& finding : done.findings) result.findings.push_back(std::move(finding));
      const Shape& shape = part.graph.entry_computation().node(part.graph.entry_computation().root).shape;
      if (!result.findings.empty()) return Literal::zeros(shape);
      if (!shape.is_tuple) return std::move(done.outputs.at(0));
      Literal tuple;
      tuple.shape = shape;
      tuple.elements = std::move(done.outputs);
      return tuple;
    };
    if (node.op == Op::kWhile) {
      Literal state = value(node.operands[0]);
      while (run_part(0, state).get_int(0) != 0 && result.findings.empty()) {
        state = run_part(1, state);
        if (!result.findings.empty()) return us;
      }
      if (result.findings.empty()) keep(node, std::move(state));
      return us;
    }
    const std::size_t branch = taken_branch(node, value(node.operands[0]));
    Literal taken = run_part(branch, value(node.operands[branch + 1]));
    if (result.findings.empty()) keep(node, std::move(taken));
    return us;
  }

  /// The kernel's table, with the addresses its buffers have in this run.
  sim::DeviceAddress write_table(const CompiledKernel& kernel, sim::DeviceAddress scratch) {
    std::vector<std::byte> bytes = kernel.table.bytes;
    for (const KernelTable::Pointer& pointer : kernel.table.pointers) {
      const bool in_scratch = pointer.kind == KernelArgument::Kind::kScratch;
      const sim::DeviceAddress to =
          (in_scratch ? scratch : buffers_.address(pointer.op)) + static_cast<std::uint64_t>(pointer.offset);
      std::memcpy(bytes.data() + pointer.at, &to, sizeof to);
    }
    const sim::DeviceAddress address = memory_.allocate(bytes.size(), kernel.entry + ".table");
    memory_.write(address, bytes);
    return address;
  }

  void launch(const PlanStep& step, RunResult& result) {
    const CompiledKernel& kernel = executable_.kernels[static_cast<std::size_t>(step.kernel)];
    sim::Launch launch;
    launch.kernel = kernel.entry;
    launch.grid = {static_cast<std::uint32_t>(kernel.launch.grid), 1, 1};
    launch.block = {static_cast<std::uint32_t>(kernel.launch.block), 1, 1};
    launch.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.launch.shared_bytes);
    std::vector<sim::DeviceAddress> temporaries;
    sim::DeviceAddress scratch = 0;
    for (const CompiledKernel::Argument& argument : kernel.arguments) {
      using Kind = CompiledKernel::Argument::Kind;
      sim::DeviceAddress address = 0;
      if (argument.kind == Kind::kInput || argument.kind == Kind::kOutput) {
        address = buffers_.address(argument.op);
      } else if (argument.kind == Kind::kScratch) {
        address = memory_.allocate(static_cast<std::size_t>(kernel.launch.scratch_bytes),
                                   kernel.entry + ".scratch");
        temporaries.push_back(scratch = address);
      } else if (argument.kind == Kind::kTable) {
        address = write_table(kernel, scratch);
        temporaries.push_back(address);
      } else {
        address = memory_.allocate(8, kernel.entry + ".grid_barrier");
        memory_.fill(address, 8, std::byte{0});
        temporaries.push_back(address);
      }
      launch.arguments.push_back(sim::Argument::pointer(address));
    }
    sim::Options options;
    options.cache = options_.cache;
    options.l2 = program_.l2.get();
    options.host_threads = options_.host_threads;
    options.registers_per_thread = kernel.registers;
    options.sanitize = options_.sanitize;
    sim::LaunchResult launched = sim::run(program_.module(kernel), launch, memory_, device_, options);
    for (sim::DeviceAddress address : temporaries) memory_.release(address);
    KernelRun& run = result.kernels[static_cast<std::size_t>(step.kernel)];
    run.launches = 1;
    run.counters = launched.counters;
    run.registers = kernel.registers > 0 ? kernel.registers : launched.counters.registers;
    run.spill_bytes = kernel.spill_bytes;
    run.time_us = launched.time_us;
    run.bytes_in_flight = launched.bytes_in_flight;
    run.method = Method::kSimulated;
    result.sanitized += launched.sanitized;
    for (sim::Finding& finding : launched.findings) result.findings.push_back(std::move(finding));
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const Executable& executable_;
  const RunOptions& options_;
  Program& program_;
  sim::DeviceMemory memory_;
  Buffers buffers_;
  std::span<const Literal> inputs_;
  std::unordered_map<NodeId, bool> uploaded_;
  std::unordered_map<NodeId, Literal> tuples_;  ///< by the op that made them, until the run ends
  std::vector<std::vector<NodeId>> dies_after_;
};

}  // namespace

std::string_view name(Method method) {
  switch (method) {
    case Method::kModelled:
      return "modelled";
    case Method::kSimulated:
      return "simulated";
    case Method::kMeasured:
      return "measured";
    case Method::kImported:
      return "imported";
  }
  fail_check(__FILE__, __LINE__, "known Method", "");
}

void require_runnable(const Graph& graph) {
  // Called computations too: a loop's body is run by the evaluator.
  for (const Computation& computation : graph.computations)
    for (const Node& node : computation.nodes) {
      const std::string what = fmt::format("{} ({})", node.name, def(node.op).name);
      const char* hint = "it can be planned and explained; remove it or replace it to run the model";
      if (def(node.op).execution == Execution::kOpaque)
        throw Error(graph.source, node.line, 0, what + " cannot be executed", hint);
      if (node.op == Op::kConstant && node.attrs.literal == nullptr)
        throw Error(graph.source, node.line, 0,
                    fmt::format("{} cannot be executed: its values were left out of the file", what),
                    kLeftOutHint);
      if (!node.shape.is_tuple && node.shape.dtype != DType::kToken && !is_executable(node.shape.dtype))
        throw Error(graph.source, node.line, 0,
                    fmt::format("{} cannot be executed: values of type {} are not computed", what,
                                name(node.shape.dtype)),
                    hint);
    }
}

RunResult run_simulated(const Graph& graph, const Device& device, const Executable& executable,
                        std::span<const Literal> inputs, const RunOptions& options) {
  require_runnable(graph);
  std::vector<ComputationRun> computations;
  Program program(graph, device, executable, options, computations);
  RunResult result = Runner(graph, executable, program).run(inputs, options.progress);
  result.computations = std::move(computations);
  return result;
}

}  // namespace stitchwork
