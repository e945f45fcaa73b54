// The forms of one stitched kernel, and what they cost by the estimate (analysis/judge/cost.h).
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/forms/alike.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/stitching/options.h"

namespace stitchwork::automatic {

/// Kernels that together compute the ops of one stitched kernel.
struct Form {
  std::string name;  ///< "stitched", "cut after phase 1", "whole rows, blocks of 256", ...
  std::string rule;  ///< "auto.stitched", "auto.cut", "auto.apart", "auto.inlined", "auto.xla"
  std::vector<KernelPlan> kernels;
  double us = 0;        ///< copies beside the kernels, each with its launch gap
  std::string refusal;  ///< why there are no kernels, where that was a choice
};

/// How a form is made from a stitched kernel: what the search tries, and what is remembered for kernels
/// alike.
struct Recipe {
  enum class Cut : std::uint8_t { kNone, kApart, kPhases, kInlined, kXla };
  Cut cut = Cut::kNone;
  std::vector<int> after;   ///< kPhases: a launch ends behind each of these phases
  bool whole_rows = false;  ///< no reduction is split over blocks
  bool again = false;       ///< scalars are computed where they are read
  int block = 0;            ///< threads; 0: the planner's choice

  bool operator==(const Recipe&) const = default;
};
std::string name(const Recipe& recipe);

/// Kernels of parts of stitched kernels, by what a recipe asks for beside its cut.
/// Threads may share it.
class KnownParts {
 public:
  std::optional<std::vector<KernelPlan>> find(const Recipe& recipe, const astitch::Likeness& like);
  void add(const Recipe& recipe, astitch::Likeness like, std::vector<KernelPlan> kernels);

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, bool, bool>, astitch::KnownKernels> known_;
};

/// Everything the forms of one kernel are made from.
struct Stitched {
  const astitch::Nodes* nodes = nullptr;
  const Device* device = nullptr;
  const astitch::Options* options = nullptr;
  const KernelPlan* kernel = nullptr;
  const std::vector<KernelPlan>* xla = nullptr;  ///< XLA's fusions of the same ops
  Candidate op;
  KnownParts* known = nullptr;  ///< of the same nodes, device and options; null: every part is searched for
};

/// The form a recipe gives; no kernels where it gives none (no such phase, XLA's fusions lack a value).
Form make_form(const Stitched& stitched, const Recipe& recipe);

/// Of the form: kernels, memsets and copies, each with its launch gap.
double us_of(const Stitched& stitched, const Form& form);

/// The cheapest form: first of the cuts, then each without split rows, then the best in other blocks. Where
/// overrides of its ops fix a choice, forms that would undo it are left out. The stitched form
/// stays where no other is clearly faster. All forms tried are recorded.
Recipe choose_recipe(const Stitched& stitched, Recorder& recorder);

/// Kernels of equal signature have the same forms: ops, what they reduce by, shapes, how they read each other
/// and what is read outside. Names and constants do not count, but for whether sums begin at zero.
std::string signature(const Stitched& stitched);
/// Likewise of a kernel of these ops, ascending, that stores these.
std::string signature(const Graph& graph, const std::vector<NodeId>& ops, const std::vector<NodeId>& outputs);

}  // namespace stitchwork::automatic
