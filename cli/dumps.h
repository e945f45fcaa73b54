// What the steps of the road print: one list for `plan --dump` and for `compile --all-stages`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"

namespace stitchwork {

/// The kernels asked for: all, or those of these ids or names.
struct WantedKernels {
  std::vector<std::string> kernels;
  bool operator()(const KernelPlan& kernel) const;
};

struct DumpKind {
  std::string_view name, help;
  std::string (*print)(const Planned&, const WantedKernels&);
  nlohmann::ordered_json (*document)(const Planned&) = nullptr;  ///< the same as JSON, of those that have it
};

/// In the order of the road.
std::span<const DumpKind> dump_kinds();
const DumpKind& dump_kind(std::string_view name);  ///< Throws Error naming those there are.

/// Throws Error where the plan lacks a kernel that is asked for.
void require_kernels(const Planned& planned, const WantedKernels& wanted);

}  // namespace stitchwork
