// What a real compiler made of a model, as a program of PTX: a folder with dump.json
// ("stitchwork.peer-dump/1", docs/peers.md).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/program/script.h"

namespace stitchwork {

/// Where an array of a parameter or result lies, in the layout of its shape.
struct DumpPlace {
  sim::BufferView at;
  Shape shape;
};

/// A loop of the compiler's module: its trips are steps of the program, one trip after another.
struct DumpLoop {
  std::string instruction;
  std::size_t first = 0, steps = 0;  ///< of the first trip: so many from there on
  std::int64_t trips = 0;
};

struct Dump {
  std::string folder;
  std::string peer;                             ///< "xla"
  std::map<std::string, std::string> versions;  ///< of what made it
  std::vector<std::string> flags;
  std::string target;            ///< as the peer's script calls the card
  std::string device;            ///< id of the device that it is for
  std::string model, optimised;  ///< HLO files: as given to the compiler, and as it was optimised; may be ""
  Script script;                 ///< buffers are uninitialised but for constants
  std::vector<DumpPlace> parameters, results;  ///< arrays by number, those of a tuple in their order
  /// In their order; behind a loop those in its first trip, which its other trips have as well.
  std::vector<DumpLoop> loops;

  /// "xla (jaxlib 0.10.2)".
  std::string title() const;
  /// The same as plans and the store name who planned: "xla jaxlib 0.10.2".
  std::string planner() const;
};

/// Whether `path` is such a folder, or the dump.json of one.
bool is_dump(const std::string& path);

/// Throws Error with file and JSON path: where a file is missing, the document is of another version, ...
Dump read_dump(const std::string& path);

/// Throws Error where the dump's kernels are for cards of another compute capability.
void require_card(const Dump& dump, const Device& device);

/// Puts the model's parameters into the program's buffers. Throws Error where they are not those of the dump.
void set_inputs(Dump& dump, std::span<const Literal> inputs);

/// The arrays of which shapes consist, in order: those of tuples in their place.
std::vector<Shape> arrays_of(std::span<const Shape> shapes);

/// The results out of the buffers at the end.
std::vector<Literal> results_of(const Dump& dump, const sim::ProgramResult& result);

/// How a dump's steps count, as a plan's do.
struct DumpCounts {
  std::int64_t memory_kernels = 0, product_kernels = 0, library_calls = 0, copies = 0, memsets = 0;
};
DumpCounts counts_of(const Script& script);

}  // namespace stitchwork
