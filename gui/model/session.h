// The document of a window: a model, how it is to be planned (with undo), the plan, and what a run of it
// gave.
#pragma once

#include <QObject>
#include <QString>
#include <QUndoStack>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/passes/op_trace.h"
#include "experiments/profile/match.h"
#include "experiments/trial.h"
#include "gui/model/jobs.h"
#include "gui/model/planned_model.h"

namespace stitchwork::gui {

/// How to run in the simulator.
struct RunSettings {
  bool check = true;
  bool race = false, init = false;
  bool warm = false;
  std::uint64_t seed = 0;
  QString database;  ///< record it there; empty: do not
};

class Session : public QObject {
  Q_OBJECT
 public:
  explicit Session(QObject* parent = nullptr);

  Jobs& jobs() { return jobs_; }
  QUndoStack& undo() { return undo_; }

  /// A model by path or dataset name, or a plan (.json); `options` are for what an ONNX model leaves open.
  /// Overrides of the model before are dropped.
  void open(const QString& name, const OnnxOptions& options = {});
  /// What Problem::doing of a failed open() is.
  static QString doing_open(const QString& name) { return tr("opening %1").arg(name); }
  QString name() const { return name_; }  ///< what was opened last, whether or not it could be
  const PlannedPtr& planned() const { return planned_; }
  const std::shared_ptr<const Model>& model() const { return model_; }

  const PlanSettings& settings() const { return settings_; }
  void set_planner(const QString& planner);
  void set_device(const QString& device);
  void set_knob(const QString& knob, const QString& value);
  /// A performance library's file, for planners that take one; empty: none.
  void set_library(const QString& file);
  void add_edit(const Edit& edit);
  void remove_edit(int index);
  void set_edits(const std::vector<Edit>& edits, const QString& what);
  /// Whether the planner chosen honours edits of that kind.
  bool honours(EditKind kind) const;

  /// Writes what `make` gives, on a worker thread, one file after the other; then `written` or `failed`.
  void write(const QString& file, std::function<std::string()> make);
  /// The override file of the edits, as `stitchwork plan --override` reads it.
  void save_overrides(const QString& file);
  void load_overrides(const QString& file);
  void save_plan(const QString& file);

  /// Predicted time of the plan shown before this one, of the same model; to show what an edit changed.
  std::optional<double> previous_us() const { return previous_us_; }

  void run(const RunSettings& settings);
  const std::shared_ptr<const TrialResult>& result() const { return result_; }
  /// Shows what a run of the plan gave.
  void take_result(std::shared_ptr<const TrialResult> result);

  /// Holds what another tool recorded of the model (docs/profiles.md) to the plan, and to every later one of
  /// this model.
  void join_profile(const QString& file);
  const std::shared_ptr<const Profile>& profile() const { return profile_; }
  /// The profile held to the plan shown; none before it is.
  const std::shared_ptr<const ProfileComparison>& profiled() const { return profiled_; }

  /// Ends opening, planning and what else a person waits for; settings go back to those of the plan shown.
  void cancel();

  /// Used by the undo commands.
  void apply(const PlanSettings& settings);

 signals:
  void opening(const QString& name);
  void planned_changed();  ///< a new plan, or none
  void settings_changed();
  void result_changed();  ///< of a run; dropped when the plan changes
  void profile_changed();
  void written(const QString& file);
  void failed(const stitchwork::gui::Problem& problem);
  /// Instead of `failed`: the model opened leaves something open that open() can be told.
  void asked(const stitchwork::gui::Problem& problem);

 private:
  void change(const PlanSettings& settings, const QString& what);
  void replan();
  void show(PlannedPtr planned, bool same_model);
  void hold_profile();
  void take_back();
  void write_next();

  Jobs jobs_;
  QUndoStack undo_;
  QString name_;
  PlanSettings settings_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const OpTrace> trace_;  ///< of the model's reading
  PlannedPtr planned_;
  std::optional<double> previous_us_;
  std::shared_ptr<const TrialResult> result_;
  std::shared_ptr<const Profile> profile_;
  std::shared_ptr<const ProfileComparison> profiled_;
  std::deque<std::pair<QString, std::function<std::string()>>> to_write_;
  bool applying_ = true;  ///< undo commands plan again when they are done or undone
};

}  // namespace stitchwork::gui
