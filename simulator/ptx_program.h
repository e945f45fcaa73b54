// A sequence of launches over named buffers: what a compiler's dump, a test or a sample program is. A single
// launch (ptx_run.h) is one of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/literal.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {

/// Bytes of a buffer from `offset` on.
struct BufferView {
  std::size_t buffer = 0;
  std::uint64_t offset = 0;
};

/// The address of a view among bytes that are made before addresses are known.
struct ViewPointer {
  std::size_t at = 0;  ///< of these bytes
  BufferView view;
};

/// Device memory of a program, allocated before its first step.
struct ProgramBuffer {
  std::string name;  ///< appears in findings
  Literal value;     ///< shape and contents at the start
  bool initialised =
      true;  ///< whether these contents are the program's; else poisoned, and nothing has written them
  std::vector<ViewPointer> pointers{};  ///< addresses that these contents hold
};

/// An argument of a kernel: bytes, with the addresses of views put in at places of theirs.
struct ProgramArgument {
  using Pointer = ViewPointer;
  std::vector<std::byte> bytes;
  std::vector<Pointer> pointers;

  static ProgramArgument scalar(const Argument& argument) { return {argument.bytes, {}}; }
  static ProgramArgument pointer(BufferView view) {
    return {std::vector<std::byte>(sizeof(DeviceAddress)), {{0, view}}};
  }
};

struct KernelStep {
  const ptx::Module* module = nullptr;
  Launch launch;  ///< its arguments are left to `arguments`
  std::vector<ProgramArgument> arguments;
  int registers = 0;  ///< Options::registers_per_thread
};

struct MemsetStep {
  BufferView to;
  std::uint64_t bytes = 0;
  std::byte value{0};
};

struct CopyStep {
  BufferView to, from;
  std::uint64_t bytes = 0;
};

/// What the host computes in place of a library: from the bytes of operands those of results.
struct CallStep {
  struct Range {
    BufferView view;
    std::uint64_t bytes = 0;
  };
  std::vector<Range> operands, results;
  std::function<std::vector<std::vector<std::byte>>(std::vector<std::vector<std::byte>>)> compute;
};

struct ProgramStep {
  std::string name;
  std::variant<KernelStep, MemsetStep, CopyStep, CallStep> what;
  double modelled_us = 0;  ///< of a step that is no kernel
};

struct PtxProgram {
  std::vector<std::unique_ptr<const ptx::Module>> modules;  ///< those of its steps that it owns
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramStep> steps;
};

struct StepResult {
  LaunchResult launch;  ///< of a kernel
  double time_us = 0;   ///< simulated of a kernel, else modelled
};

struct ProgramResult {
  std::vector<StepResult> steps;  ///< of those that ran: none after one with findings
  std::vector<Literal> buffers;   ///< their contents at the end
  std::vector<Finding> findings;  ///< of the last step that ran; empty: clean
  double total_us = 0;            ///< steps and the gaps between them
};

/// Called before each step: (number, name).
using ProgramProgress = std::function<void(std::size_t, const std::string&)>;

/// Runs the steps in order. Module variables keep their values from step to step. Under CacheMode::kWarm the
/// contents of L2 go from kernel to kernel, of the program alone (Options::l2 is not used). Throws Error that
/// names the step. The contents of its buffers are moved out of the program.
ProgramResult run_program(PtxProgram& program, const Device& device, const Options& options,
                          const ProgramProgress& progress = {});

}  // namespace stitchwork::sim
