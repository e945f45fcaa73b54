#include "gui/model/session.h"

#include <QUndoCommand>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/json/overrides_json.h"
#include "core/base/file.h"
#include "experiments/store.h"
#include "runtime/program/dump.h"

namespace stitchwork::gui {
namespace {

class ChangeSettings : public QUndoCommand {
 public:
  ChangeSettings(Session& session, PlanSettings before, PlanSettings after, const QString& what)
      : QUndoCommand(what), session_(session), before_(std::move(before)), after_(std::move(after)) {}
  void undo() override { session_.apply(before_); }
  void redo() override { session_.apply(after_); }

 private:
  Session& session_;
  PlanSettings before_, after_;
};

/// A plan with how the names of its model's file became its ops.
struct Opened {
  PlannedPtr planned;
  std::shared_ptr<const OpTrace> trace;
};

}  // namespace

Session::Session(QObject* parent) : QObject(parent), jobs_(this) {
  connect(&jobs_, &Jobs::failed, this, [this](int lane, const Problem& problem) {
    if (lane == Jobs::kPlan) take_back();
    if (problem.questions.empty())
      emit failed(problem);
    else
      emit asked(problem);
  });
  connect(&jobs_, &Jobs::finished, this, [this](int lane) {
    if (lane == Jobs::kExport) write_next();
  });
}

void Session::open(const QString& name, const OnnxOptions& options) {
  for (int lane = 0; lane < Jobs::kExport; ++lane) jobs_.cancel(static_cast<Jobs::Lane>(lane));
  name_ = name;
  emit opening(name);
  PlanSettings settings = settings_;
  settings.edits.clear();
  jobs_.start(
      Jobs::kPlan, doing_open(name),
      [name, options, settings](const JobContext& job) {
        auto trace = std::make_shared<OpTrace>();
        if (name.endsWith(".json") || is_dump(name.toStdString())) {
          PlannedPtr planned =
              load_plan(name, options, trace.get(),
                        [&](double fraction, const QString& what) { job.progress(fraction, what); });
          return Opened{std::move(planned), std::move(trace)};
        }
        job.progress(0, tr("reading"));
        auto model = std::make_shared<Model>(load_model(name.toStdString(), options, trace.get()));
        job.progress(0.3, tr("planning with %1").arg(QString::fromStdString(settings.planner)));
        PlanSettings fitting = settings;
        // A planner kept from the model before may not take this one; the choice is shown, so it is safe to
        // fall back.
        if (!takes(planner(fitting.planner), model->graph)) fitting = {"astitch", settings.device, {}, {}};
        return Opened{plan_model(std::move(model), fitting), std::move(trace)};
      },
      [this](Opened opened) {
        auto& [planned, trace] = opened;
        undo_.clear();
        model_ = planned->model;
        trace_ = std::move(trace);
        profile_.reset();
        settings_ = planned->settings;
        previous_us_.reset();
        emit settings_changed();
        show(std::move(planned), false);
      });
}

void Session::show(PlannedPtr planned, bool same_model) {
  previous_us_ = same_model && planned_ ? std::optional(planned_->plan->predicted_us) : std::nullopt;
  planned_ = std::move(planned);
  jobs_.cancel(Jobs::kRun);
  result_.reset();
  emit planned_changed();
  emit result_changed();
  hold_profile();
}

void Session::join_profile(const QString& file) {
  if (!planned_) return;
  jobs_.start(
      Jobs::kProfile, tr("reading %1").arg(file),
      [path = file.toStdString()](const JobContext&) {
        return std::make_shared<const Profile>(read_profile(path));
      },
      [this](std::shared_ptr<const Profile> profile) {
        profile_ = std::move(profile);
        hold_profile();
      });
}

void Session::hold_profile() {
  profiled_.reset();
  emit profile_changed();
  if (!profile_ || !planned_) return;
  jobs_.start(
      Jobs::kProfile, tr("matching %1").arg(QString::fromStdString(profile_->file)),
      [profile = profile_, planned = planned_, trace = trace_](const JobContext&) {
        return std::make_shared<const ProfileComparison>(
            compare_profile(*profile, *planned->model, *trace, *planned->plan));
      },
      [this](std::shared_ptr<const ProfileComparison> profiled) {
        profiled_ = std::move(profiled);
        emit profile_changed();
      });
}

void Session::set_planner(const QString& name) {
  PlanSettings next = settings_;
  next.planner = name.toStdString();
  // Knobs, overrides and a library that the planner does not heed would be refused: they stay with the plan
  // before, in undo.
  const Planner& row = planner(next.planner);
  std::erase_if(next.knobs, [&](const auto& knob) {
    return std::find(row.knobs.begin(), row.knobs.end(), knob.first) == row.knobs.end();
  });
  std::erase_if(next.edits, [&](const Edit& edit) {
    return std::find(row.edits.begin(), row.edits.end(), edit.kind) == row.edits.end();
  });
  if (!row.takes_library) next.library.clear();
  change(next, tr("planner %1").arg(name));
}

void Session::set_device(const QString& id) {
  PlanSettings next = settings_;
  next.device = id.toStdString();
  change(next, tr("device %1").arg(id));
}

void Session::set_knob(const QString& knob, const QString& value) {
  PlanSettings next = settings_;
  const auto defaults = resolve_knobs(planner(next.planner), {});
  const auto found = defaults.find(knob.toStdString());
  if (found != defaults.end() && found->second == value.toStdString())
    next.knobs.erase(knob.toStdString());
  else
    next.knobs[knob.toStdString()] = value.toStdString();
  change(next, tr("%1 %2").arg(knob, value));
}

void Session::set_library(const QString& file) {
  PlanSettings next = settings_;
  next.library = file.toStdString();
  change(next, file.isEmpty() ? tr("no library") : tr("library %1").arg(file));
}

void Session::add_edit(const Edit& edit) {
  PlanSettings next = settings_;
  next.edits.push_back(edit);
  change(next, QString::fromStdString(to_text(edit)));
}

void Session::remove_edit(int index) {
  if (index < 0 || index >= static_cast<int>(settings_.edits.size())) return;
  PlanSettings next = settings_;
  const QString what = QString::fromStdString(to_text(next.edits[static_cast<std::size_t>(index)]));
  next.edits.erase(next.edits.begin() + index);
  change(next, tr("without %1").arg(what));
}

void Session::set_edits(const std::vector<Edit>& edits, const QString& what) {
  PlanSettings next = settings_;
  next.edits = edits;
  change(next, what);
}

bool Session::honours(EditKind kind) const {
  const auto& edits = planner(settings_.planner).edits;
  return std::find(edits.begin(), edits.end(), kind) != edits.end();
}

void Session::change(const PlanSettings& settings, const QString& what) {
  if (settings == settings_) return;
  if (!model_) {  // nothing to plan yet: how the next model will be
    settings_ = settings;
    emit settings_changed();
    return;
  }
  undo_.push(new ChangeSettings(*this, settings_, settings, what));
}

void Session::apply(const PlanSettings& settings) {
  settings_ = settings;
  emit settings_changed();
  if (applying_) replan();
}

void Session::replan() {
  jobs_.start(
      Jobs::kPlan, tr("planning with %1").arg(QString::fromStdString(settings_.planner)),
      [model = model_, settings = settings_](const JobContext&) { return plan_model(model, settings); },
      [this](PlannedPtr planned) { show(std::move(planned), true); });
}

/// What was asked for is refused: the settings go back to those of the plan that is shown.
void Session::take_back() {
  if (!planned_ || !model_ || planned_->model != model_) return;
  applying_ = false;
  while (undo_.canUndo() && !(settings_ == planned_->settings)) undo_.undo();
  while (undo_.canRedo() && !(settings_ == planned_->settings)) undo_.redo();
  applying_ = true;
}

void Session::cancel() {
  const bool planning = jobs_.busy(Jobs::kPlan);
  for (int lane = 0; lane < Jobs::kExport; ++lane)
    if (lane != Jobs::kExplain) jobs_.cancel(static_cast<Jobs::Lane>(lane));
  if (planning) take_back();
}

void Session::write(const QString& file, std::function<std::string()> make) {
  to_write_.emplace_back(file, std::move(make));
  if (!jobs_.busy(Jobs::kExport)) write_next();
}

void Session::write_next() {
  if (to_write_.empty()) return;
  auto [file, make] = std::move(to_write_.front());
  to_write_.pop_front();
  jobs_.start(
      Jobs::kExport, tr("writing %1").arg(file),
      [file = file, make = std::move(make)](const JobContext&) {
        write_file(file.toStdString(), make());
        return file;
      },
      [this](const QString& done) { emit written(done); });
}

void Session::save_overrides(const QString& file) {
  write(file, [edits = settings_.edits] { return overrides_to_json(edits).dump(2) + "\n"; });
}

void Session::load_overrides(const QString& file) {
  jobs_.start(
      Jobs::kPlan, tr("reading %1").arg(file),
      [path = file.toStdString()](const JobContext&) { return overrides_from_json(read_file(path), path); },
      [this, file](const std::vector<Edit>& edits) { set_edits(edits, tr("overrides of %1").arg(file)); });
}

void Session::save_plan(const QString& file) {
  if (planned_) write(file, [planned = planned_] { return plan_json(*planned); });
}

void Session::run(const RunSettings& settings) {
  if (!planned_) return;
  TrialSpec spec;
  spec.planner = planned_->settings.planner;
  spec.options = planned_->options(false);
  spec.device = planned_->settings.device;
  if (!planned_->plan_file.isEmpty()) spec.plan = *planned_->plan;
  spec.check = settings.check;
  spec.sanitize = {settings.race, settings.init};
  spec.cache = settings.warm ? sim::CacheMode::kWarm : sim::CacheMode::kCold;
  spec.seed = settings.seed;
  spec.lines = true;
  jobs_.start(
      Jobs::kRun, tr("running %1 in the simulator").arg(QString::fromStdString(planned_->graph().source)),
      [planned = planned_, spec, database = settings.database](const JobContext& job) {
        const Model& model = *planned->model;
        auto result = std::make_shared<const TrialResult>(run_trial(
            model, spec,
            [&](double done, const std::string& what) { job.progress(done, QString::fromStdString(what)); }));
        if (!database.isEmpty()) Store::open(database.toStdString()).record("adhoc", model, spec, *result);
        return result;
      },
      [this](std::shared_ptr<const TrialResult> result) { take_result(std::move(result)); });
}

void Session::take_result(std::shared_ptr<const TrialResult> result) {
  result_ = std::move(result);
  emit result_changed();
}

}  // namespace stitchwork::gui
