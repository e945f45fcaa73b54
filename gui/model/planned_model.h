// A model with its plan, as every pane shows it.
#pragma once

#include <QColor>
#include <QString>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/planner.h"
#include "experiments/model.h"
#include "gui/layout/fold_tree.h"
#include "gui/model/steps.h"

namespace stitchwork::gui {

/// What a person chooses. Every change is one step of undo.
struct PlanSettings {
  std::string planner = "astitch", device = "v100-sxm2";
  std::map<std::string, std::string> knobs;
  std::vector<Edit> edits;
  std::string library = {};  ///< file of a performance library (docs/cli.md#library); empty: none
  bool operator==(const PlanSettings&) const = default;
};

/// How a graph that was read from a file wants a node drawn; invalid colours: as usual.
struct NodeLook {
  QColor fill, line, text;
  bool dashed = false;
};

/// A model and its plan, made on a worker thread and never changed afterwards.
struct PlannedModel {
  std::shared_ptr<const Model> model;
  const Device* device = nullptr;
  std::shared_ptr<const FusionPlan> plan;  ///< with its decisions, where it was planned and not loaded
  std::vector<StepRow> steps;              ///< of the plan, then of its bodies: as first_step numbers them
  std::shared_ptr<const FoldTree> folds;
  /// What loops and branches run, by FusionPlan::computations: each a model whose entry it is, with its plan,
  /// whose steps are numbered from 0 here. They have no folds and no bodies.
  std::vector<std::shared_ptr<const PlannedModel>> bodies;
  std::vector<NodeLook> looks;  ///< by node of the folds; empty but for graphs read from files
  PlanSettings settings;
  std::shared_ptr<const fusionstitching::PerformanceLibrary> library;  ///< of the settings, as planned by
  QString plan_file;  ///< it was loaded from there; empty: planned
  double plan_ms = 0;

  /// The planned one: the model's, or what the planner rewrote it to.
  const Graph& graph() const { return planned_graph(model->graph, *plan); }
  const Computation& entry() const { return graph().entry_computation(); }
  const StepRow& row(int step) const { return steps[static_cast<std::size_t>(step)]; }
  /// As `library` and the knobs and edits of the settings have it.
  PlanOptions options(bool record_decisions) const {
    PlanOptions result{settings.knobs, settings.edits, record_decisions};
    result.library = library.get();
    return result;
  }
  bool has_step(int step) const { return step >= 0 && step < static_cast<int>(steps.size()); }
  /// Whose step it is: itself, or one of its bodies; of no step itself.
  const PlannedModel& part(int step) const {
    return !has_step(step) || row(step).body < 0 ? *this : *bodies[static_cast<std::size_t>(row(step).body)];
  }
  /// Its index in the plan of its part.
  int index(int step) const { return step - first_step(*plan, row(step).body); }
  const PlanStep& plan_step(int step) const {
    return part(step).plan->steps[static_cast<std::size_t>(index(step))];
  }
  const KernelPlan* kernel(int step) const {  ///< null: no kernel of ours
    return !has_step(step) || row(step).kernel < 0
               ? nullptr
               : &part(step).plan->kernels[static_cast<std::size_t>(row(step).kernel)];
  }
  /// The computation of the entry's steps, or of a body's.
  const Computation& computation(int step) const { return part(step).entry(); }
};
using PlannedPtr = std::shared_ptr<const PlannedModel>;

/// `fraction` within [0, 1]; ends the work by throwing.
using LoadProgress = std::function<void(double fraction, const QString& what)>;
/// Plans (or takes `plan`), with rows and folds. Throws Error.
PlannedPtr plan_model(std::shared_ptr<const Model> model, const PlanSettings& settings);
PlannedPtr take_plan(std::shared_ptr<const Model> model, FusionPlan plan, const QString& file);
/// A saved plan with the model it names, or a compiler's dump (docs/peers.md) with its own, which is run in
/// the simulator, step by step with `progress`; read with `options`; `trace` as load_model has it. Throws
/// Error, also where the model has changed since.
PlannedPtr load_plan(const QString& file, const OnnxOptions& options = {}, OpTrace* trace = nullptr,
                     const LoadProgress& progress = {});

/// The plan as `stitchwork plan -o` writes it, byte for byte.
std::string plan_json(const PlannedModel& planned);

}  // namespace stitchwork::gui
