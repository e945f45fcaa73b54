#include "analysis/plan/overrides.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {

std::string_view name(EditKind kind) {
  switch (kind) {
    case EditKind::kScheme:
      return "scheme";
    case EditKind::kMerge:
      return "merge";
    case EditKind::kForbidMerge:
      return "forbid_merge";
    case EditKind::kSplit:
      return "split";
    case EditKind::kBlock:
      return "block";
    case EditKind::kSplitFactor:
      return "split_factor";
    case EditKind::kResidency:
      return "residency";
    case EditKind::kTemplate:
      return "template";
    case EditKind::kRewrite:
      return "rewrite";
    case EditKind::kForbidRewrite:
      return "forbid_rewrite";
  }
  SW_CHECK(false, "edit kind number {}", static_cast<int>(kind));
}

std::string to_text(const Edit& edit) {
  switch (edit.kind) {
    case EditKind::kScheme:
      return fmt::format("scheme of {} {}", edit.ops.at(0), edit.to);
    case EditKind::kMerge:
      return fmt::format("merge {} and {}", edit.ops.at(0), edit.ops.at(1));
    case EditKind::kForbidMerge:
      return fmt::format("keep {} and {} apart", edit.ops.at(0), edit.ops.at(1));
    case EditKind::kSplit:
      return fmt::format("split after {}", edit.ops.at(0));
    case EditKind::kBlock:
      return fmt::format("kernel of {} in blocks of {} threads", edit.ops.at(0), edit.n);
    case EditKind::kSplitFactor:
      return fmt::format("rows of {} split over {} blocks", edit.ops.at(0), edit.n);
    case EditKind::kResidency:
      return fmt::format("at most {} an SM of the kernel of {}", counted(edit.n, "block"), edit.ops.at(0));
    case EditKind::kTemplate:
      return fmt::format("kernel of {} by a template", edit.ops.at(0));
    case EditKind::kRewrite:
      return fmt::format("rewrite {} by {}", edit.ops.at(0), edit.to);
    case EditKind::kForbidRewrite:
      return fmt::format("no {} at {}", edit.to, edit.ops.at(0));
  }
  SW_CHECK(false, "edit kind number {}", static_cast<int>(edit.kind));
}

}  // namespace stitchwork
