// Which kernel did my op end up in, and why?
#pragma once

#include <string>
#include <vector>

#include "analysis/plan.h"

namespace stitchwork {

/// Where one kernel computes the op.
struct OpPlacement {
  std::string kernel_id, kernel_name;
  std::string role;      ///< "dominant", "sub-dominant", "inlined"
  std::string dominant;  ///< of its group ("" if inlined into several groups)
  Scheme scheme = Scheme::kLocal;
  int level = 0;
  std::string mapping;                            ///< the group's thread mapping, as text
  bool output = false;                            ///< stored to device memory for others
  std::vector<std::string> producers, consumers;  ///< of the op, within this kernel
};

struct Explanation {
  std::string op, opcode, shape;
  std::string step;  ///< for ops outside kernels: "library call lib:dot.5", "parameter", "alias of ..."
  std::vector<OpPlacement> placements;  ///< several: the op is recomputed
  std::vector<Decision> decisions;      ///< those that name the op, in order
};

/// `plan` must have been made with record_decisions for `decisions` to be filled. Throws Error naming close
/// op names if there is no such op.
Explanation explain(const Graph& graph, const FusionPlan& plan, const std::string& op);
std::string to_text(const Explanation& explanation);

}  // namespace stitchwork
