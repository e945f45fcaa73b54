#include "simulator/ptx_program.h"

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "simulator/machine/device_memory.h"

namespace stitchwork::sim {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>  // which Clang before 17 does not deduce by itself for an aggregate
Overloaded(Visitors...)->Overloaded<Visitors...>;

/// One run of a program.
class ProgramRunner {
 public:
  ProgramRunner(PtxProgram& program, const Device& device, const Options& options)
      : program_(program), device_(device), options_(options), memory_(options.sanitize.init) {
    if (options_.cache == CacheMode::kWarm) {
      l2_ = make_l2_state(device);
      options_.l2 = l2_.get();
    }
    for (ProgramBuffer& buffer : program_.buffers)
      addresses_.push_back(buffer.initialised
                               ? memory_.adopt(std::move(buffer.value.bytes), buffer.name)
                               : memory_.allocate(std::exchange(buffer.value.bytes, {}).size(), buffer.name));
    for (std::size_t b = 0; b < addresses_.size(); ++b) {
      for (const ViewPointer& pointer : program_.buffers[b].pointers) {
        const DeviceAddress to = address(pointer.view);
        memory_.write(addresses_[b] + pointer.at, std::as_bytes(std::span(&to, 1)));
      }
    }
  }

  ProgramResult run(const ProgramProgress& progress) {
    ProgramResult result;
    for (std::size_t s = 0; s < program_.steps.size() && result.findings.empty(); ++s) {
      const ProgramStep& step = program_.steps[s];
      if (progress) progress(s, step.name);
      StepResult& done = result.steps.emplace_back();
      done.time_us = step.modelled_us;
      perform(step, done);
      result.findings = done.launch.findings;
      result.total_us += done.time_us + (s > 0 ? device_.launch_gap_us : 0);
    }
    for (std::size_t b = 0; b < addresses_.size(); ++b) {
      Literal& buffer = result.buffers.emplace_back(Literal{program_.buffers[b].value.shape, {}, {}});
      buffer.bytes = memory_.take(addresses_[b]);
    }
    return result;
  }

 private:
  void perform(const ProgramStep& step, StepResult& done) {
    const auto visit =
        Overloaded{[&](const KernelStep& kernel) { launch(kernel, done); },
                   [&](const MemsetStep& set) {
                     memory_.fill(address(set.to), static_cast<std::size_t>(set.bytes), set.value);
                   },
                   [&](const CopyStep& copy) {
                     const auto values = read({copy.from, copy.bytes}, step.name, done);
                     if (values) memory_.write(address(copy.to), *values);
                   },
                   [&](const CallStep& call) { this->call(call, step.name, done); }};
    try {
      std::visit(visit, step.what);
    } catch (const Error& error) {
      if (program_.steps.size() == 1) throw;  // a launch alone, which needs no name
      throw Error(error.file(), error.line(), error.column(),
                  fmt::format("{}: {}", step.name, error.message()), error.hint());
    }
  }

  DeviceAddress address(const BufferView& view) const { return addresses_.at(view.buffer) + view.offset; }

  void launch(const KernelStep& step, StepResult& done) {
    Launch launch = step.launch;
    launch.arguments.clear();
    for (const ProgramArgument& argument : step.arguments) {
      Argument& given = launch.arguments.emplace_back(Argument{argument.bytes});
      for (const ProgramArgument::Pointer& pointer : argument.pointers) {
        const DeviceAddress to = address(pointer.view);
        std::memcpy(given.bytes.data() + pointer.at, &to, sizeof to);
      }
    }
    Options options = options_;
    options.registers_per_thread = step.registers;
    try {
      done.launch = sim::run(*step.module, launch, memory_, device_, options);
    } catch (const CannotSample&) {
      if (program_.steps.size() == 1) throw;
      options.sampled = false;  // this one is run whole
      done.launch = sim::run(*step.module, launch, memory_, device_, options);
    }
    done.time_us = done.launch.time_us;
  }

  /// The bytes of a range, or nothing and a finding where some were never written.
  std::optional<std::vector<std::byte>> read(const CallStep::Range& range, const std::string& step,
                                             StepResult& done) {
    const auto bytes = static_cast<std::size_t>(range.bytes);
    if (const auto wrong = unwritten(memory_, address(range.view), bytes)) {
      Finding& finding = done.launch.findings.emplace_back();
      finding.kind = FindingKind::kUninitialisedRead;
      finding.kernel = step;
      finding.message = *wrong;
      return std::nullopt;
    }
    std::vector<std::byte> values(bytes);
    memory_.read(address(range.view), values);
    return values;
  }

  void call(const CallStep& step, const std::string& name, StepResult& done) {
    if (options_.sampled) return;  // there are no values
    std::vector<std::vector<std::byte>> operands;
    for (const CallStep::Range& operand : step.operands) {
      auto values = read(operand, name, done);
      if (!values) return;
      operands.push_back(std::move(*values));
    }
    const auto results = step.compute(std::move(operands));
    SW_CHECK(results.size() == step.results.size(), "{} gives {} results of {}", name, results.size(),
             step.results.size());
    for (std::size_t r = 0; r < results.size(); ++r) memory_.write(address(step.results[r].view), results[r]);
  }

  PtxProgram& program_;
  const Device& device_;
  Options options_;
  L2StatePtr l2_;
  DeviceMemory memory_;
  std::vector<DeviceAddress> addresses_;  ///< by buffer
};

}  // namespace

ProgramResult run_program(PtxProgram& program, const Device& device, const Options& options,
                          const ProgramProgress& progress) {
  return ProgramRunner(program, device, options).run(progress);
}

}  // namespace stitchwork::sim
