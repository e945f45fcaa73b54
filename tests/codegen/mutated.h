// Subjects of deliberate faults, compiled as they are, and what the checks of a run say of a change.
#pragma once

#include <string>
#include <vector>

#include "tests/codegen/harness.h"
#include "tests/codegen/mutation_subjects.h"

namespace stitchwork::testing {

/// A subject, compiled as it is; of one kernel.
struct Made {
  Graph graph;
  Device target;
  Executable executable;
  std::vector<Literal> inputs;
};

inline CompileOptions fault_options() {
  CompileOptions options;
  options.ptxas = false;
  return options;
}

inline Made made(const Subject& subject) {
  const Device target = share_of(subject.device, subject.sms);
  Made result{canonicalize(parse_hlo(subject.hlo, subject.name)), target, {}, {}};
  result.executable = compile(result.graph, target, plan_of(subject, result.graph, target), fault_options());
  result.inputs = generate_inputs(result.graph, 0);
  SW_CHECK(result.executable.kernels.size() == 1, "{} has {} kernels", subject.name,
           result.executable.kernels.size());
  return result;
}

/// What the sanitizers and the judge say of a run, "" if nothing.
inline std::string verdict(const Made& made, const Executable& executable, Judge& judge) {
  RunOptions options;
  options.sanitize = {.race = true, .init = true};
  try {
    const RunResult run = run_simulated(made.graph, made.target, executable, made.inputs, options);
    if (!run.findings.empty())
      return fmt::format("{}: {}", name(run.findings[0].kind), run.findings[0].message);
    const CheckResult check = judge.check(run.outputs);
    return check.ok ? "" : "wrong: " + check.message;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace stitchwork::testing
