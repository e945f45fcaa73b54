// Overrides: what a person wants otherwise than the planner. An edit addresses ops, never kernels by index,
// so that it survives replanning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork {

enum class EditKind : std::uint8_t {
  kScheme,       ///< ops[0] gets stitching scheme `to`
  kMerge,        ///< ops share a kernel
  kForbidMerge,  ///< ops share no kernel
  kSplit,        ///< the kernel ends behind ops[0]: what reads it starts another
  kBlock,        ///< the kernel of ops[0] has blocks of `n` threads
  kSplitFactor,  ///< each row of the reduction ops[0] is split over `n` blocks
  kResidency,    ///< an SM holds at most `n` blocks of the kernel of ops[0]: the fewer, the more registers a
                 ///< thread
  kTemplate,     ///< the kernel of ops[0] is dealt to blocks, warps and threads as the template `to` says
  kRewrite,      ///< before kernels are chosen the graph is rewritten by the rule `to` at ops[0]
  kForbidRewrite,  ///< the rule `to` is not taken at ops[0]
};
std::string_view name(EditKind kind);  ///< "scheme", "merge", "forbid_merge", "split", "block", ...

struct Edit {
  EditKind kind = EditKind::kScheme;
  std::vector<std::string> ops;  ///< names of graph nodes
  std::string to;                ///< kScheme: "local", "regional", "global", ... (analysis/plan/plan.h);
                                 ///< kTemplate: its text (docs/planners/fusionstitching.md); kRewrite,
                                 ///< kForbidRewrite: a rule's name (core/substitute)
  std::int64_t n = 0;            ///< kBlock, kSplitFactor, kResidency

  bool operator==(const Edit&) const = default;
};

/// Whether it asks for another graph, not for other kernels: its op is one of the graph before the rewriting.
inline bool is_rewriting(const Edit& edit) {
  return edit.kind == EditKind::kRewrite || edit.kind == EditKind::kForbidRewrite;
}

/// In words: "scheme of power.1 regional", "merge add.1 and reduce.2", "kernel of add.1 in blocks of 256
/// threads".
std::string to_text(const Edit& edit);

}  // namespace stitchwork
