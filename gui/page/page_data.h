// What a page shows, as one document (docs/schema/page.schema.json): of each plan the document that
// `stitchwork plan --json` prints, and beside it what is only looked at: ops, decisions, boundaries, folds
// with their positions, CUDA, memory.
#pragma once

#include <nlohmann/json.hpp>

#include "gui/layout/fold_tree.h"
#include "gui/page/excerpt.h"
#include "gui/page/page.h"

namespace stitchwork::gui {

/// `graph`: what is entered is the computation that `plan` is of; `closed`: kernels shown without their ops.
nlohmann::ordered_json page_part(const Graph& graph, const FusionPlan& plan, const PartExcerpt& excerpt,
                                 const std::set<std::string>& closed);

/// Folds, values between them, and how the children of each container lie while none is expanded.
nlohmann::ordered_json page_graph(const Graph& graph, const PlanExcerpt& excerpt,
                                  const std::optional<std::vector<int>>& expanded);

/// CUDA of kernels, alike ones once: `texts` have the names of ops replaced by numbers into a kernel's list.
class SharedSources {
 public:
  /// Of the kernel: {"text": its number, "names": [...]}, or {"problem": why there is none}.
  nlohmann::ordered_json add(const Graph& graph, const KernelPlan& kernel);
  /// The PTX of a compiler's kernel, of the module in its dump: the same, and "language": "ptx".
  nlohmann::ordered_json add(const PeerPlan& peer, const KernelCode& code);
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, std::size_t> known_;
};

nlohmann::ordered_json page_document(const Model& model, const std::vector<PagePlan>& plans,
                                     const std::optional<OpRange>& range);

}  // namespace stitchwork::gui
