// Programs of PTX as documents: modules, buffers and steps ("stitchwork.ptx-program/1",
// docs/ptx_programs.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/json/json_cursor.h"
#include "core/graph/graph.h"
#include "occupancy_model/device.h"
#include "simulator/ptx_program.h"

namespace stitchwork {

enum class ScriptStepKind : std::uint8_t { kKernel, kMemset, kCopy, kCall };
std::string_view name(ScriptStepKind kind);

/// What a script says of a step beside what it does.
struct ScriptStep {
  ScriptStepKind kind = ScriptStepKind::kKernel;
  std::string module;            ///< of a kernel: its file, as the script names it
  std::string call;              ///< of a call: the library's name for it
  std::int64_t bytes = 0;        ///< that a memset, copy or call moves
  std::string instruction;       ///< of a compiler's module that the step carries out; "" unknown
  std::vector<std::string> ops;  ///< of the model that it stands for, by their metadata
  bool product = false;          ///< a kernel that holds a matrix product: not memory-intensive
  /// What a call computes: from its operands as parameters its results as the root. Null: nobody knows.
  std::shared_ptr<const Graph> computes;
};

/// A buffer's contents at the end, as they are to be. Without a tolerance that of docs/inputs.md for the
/// type.
struct Expectation {
  std::size_t buffer = 0;
  std::string file;
  std::optional<double> rtol, atol;
};

struct Script {
  std::string file;
  std::string device, cache, sanitize;  ///< "" where it says none
  sim::PtxProgram program;
  std::vector<ScriptStep> steps;                           ///< by step of the program
  std::vector<std::pair<std::size_t, std::string>> saves;  ///< buffer, file
  std::vector<Expectation> expected;
};

/// Reads a document. Files that it names are relative to its folder, those of `saves` as it has them. Throws
/// Error with file and JSON path.
Script read_script(const std::string& file);

/// The parts of a script (modules, buffers, steps) out of a document that has more; `folder`: what its files
/// are relative to.
Script script_of(const JsonCursor& document, const std::string& folder);

/// What the readers of a script share.
struct ScriptNames {
  /// "x" or "x+256": a place in a buffer, and the bytes from there to its end. Throws Error by the cursor.
  sim::BufferView view(const JsonCursor& text) const;
  std::uint64_t room(const sim::BufferView& view) const;

  std::string folder;
  std::vector<std::string> modules;  ///< files, by module
  sim::PtxProgram* program = nullptr;
};

/// A tensor map as an argument, whose bytes hold the tensor's address. Throws Error by the cursor.
sim::ProgramArgument read_tensor_map(const JsonCursor& map, const ScriptNames& names);

/// Appends one step to the script's.
void read_step(const JsonCursor& step, const ScriptNames& names, Script& script);

}  // namespace stitchwork
