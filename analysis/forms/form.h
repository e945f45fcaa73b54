// One form of a stitch op's kernel, completed: the passes in order, until nothing is left to amend.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analysis/forms/launches.h"
#include "analysis/stitching/memory.h"
#include "analysis/stitching/options.h"

namespace stitchwork::astitch {

/// What is chosen of a stitch op's kernel before its passes run; candidate, device and options given, all
/// else follows from it.
struct Form {
  std::set<NodeId> across;    ///< reductions left in partials wherever they cross a group's rows (across.h)
  WideForms mappings;         ///< what its mappings may use
  int max_blocks_per_sm = 0;  ///< 0: as many as fit, or an override says

  bool operator==(const Form&) const = default;
};
/// "512 threads, a quarter of an SM's blocks, across reduce.1, no tiles": what is not left to the rules.
std::string to_text(const Nodes& nodes, const Form& form);

/// Which of its choices a form's kernel turned out not to fit.
enum class Misfit : std::uint8_t {
  kNone,
  kBarrier,         ///< it has grid barriers, and its launch is not one of blocks that wait
  kClusterBarrier,  ///< the same: something of a row would have to go from block to block of a cluster
  kClusterRoom,     ///< no room for what the blocks of a cluster keep
  kSingleRows,      ///< rows one by one in tiles of shared memory
  kStaging,         ///< rows in tiles of shared memory
  kColumnVectors,   ///< accumulators of sums of columns that move in vectors
};

struct Searched;

/// A form that was completed, or refused: then nothing but the first four is filled in.
struct Attempt {
  Form form;
  Misfit misfit = Misfit::kNone;
  Verdict fits;                     ///< why it was refused
  std::vector<Decision> decisions;  ///< of its passes; of a refused form the refusal
  std::vector<KernelPlan> kernels;  ///< one; several where a kernel's limits cut the stitch op
  std::vector<Searched> parts;      ///< then, what was searched for these, parts alike (Options::known) once
};

/// The form and no other: what does not fit is refused, never replaced.
Attempt complete(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
                 const Form& form);

}  // namespace stitchwork::astitch
