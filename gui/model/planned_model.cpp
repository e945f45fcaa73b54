#include "gui/model/planned_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/plan/control_flow.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/peer_trial.h"
#include "experiments/performance_library.h"

namespace stitchwork::gui {
namespace {

PlannedPtr finish(std::shared_ptr<PlannedModel> planned) {
  planned->steps = step_rows(planned->graph(), *planned->device, *planned->plan);
  planned->folds = std::make_shared<FoldTree>(fold_tree(planned->graph(), *planned->plan));
  for (const ComputationPlan& part : planned->plan->computations) {
    auto body = std::make_shared<PlannedModel>();
    body->model =
        std::make_shared<Model>(Model{entered(planned->graph(), part.computation), planned->model->inputs});
    body->device = planned->device;
    body->plan = std::shared_ptr<const FusionPlan>(planned->plan, &part.plan);
    body->steps = step_rows(body->graph(), *body->device, *body->plan);
    body->settings = planned->settings;
    planned->bodies.push_back(std::move(body));
  }
  return planned;
}

}  // namespace

PlannedPtr plan_model(std::shared_ptr<const Model> model, const PlanSettings& settings) {
  auto planned = std::make_shared<PlannedModel>();
  planned->model = std::move(model);
  planned->device = &device(settings.device);
  planned->settings = settings;
  if (!settings.library.empty())
    planned->library = std::make_shared<const fusionstitching::PerformanceLibrary>(
        performance_library(read_library(settings.library), settings.library, false));
  const auto begin = std::chrono::steady_clock::now();
  planned->plan = std::make_shared<FusionPlan>(
      make_plan(planned->model->graph, *planned->device, settings.planner, planned->options(true)));
  planned->plan_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return finish(std::move(planned));
}

PlannedPtr take_plan(std::shared_ptr<const Model> model, FusionPlan plan, const QString& file) {
  auto planned = std::make_shared<PlannedModel>();
  planned->model = std::move(model);
  planned->device = &device(plan.device);
  planned->settings = {plan.planner, plan.device, plan.options, plan.edits};
  planned->plan = std::make_shared<FusionPlan>(std::move(plan));
  planned->plan_file = file;
  return finish(std::move(planned));
}

/// A compiler's plan with its own model, and the times of its kernels in the simulator.
static PlannedPtr load_dump(const std::string& path, OpTrace* trace, const LoadProgress& progress) {
  Dump dump = read_dump(path);
  auto model = std::make_shared<Model>(load_model(dump.model, {}, trace));
  Peer peer = peer_of(std::move(dump), *model);
  const auto steps = static_cast<double>(std::max<std::size_t>(1, peer.dump.script.steps.size()));
  time_peer(peer, *model, [&](std::size_t step, const std::string& what) {
    if (progress) progress(static_cast<double>(step) / steps, QString::fromStdString(what));
  });
  return take_plan(std::move(model), std::move(peer.plan), QString::fromStdString(path));
}

PlannedPtr load_plan(const QString& name, const OnnxOptions& options, OpTrace* trace,
                     const LoadProgress& progress) {
  const std::string file = name.toStdString();
  if (is_dump(file)) return load_dump(file, trace, progress);
  const std::string text = read_file(file);
  const PlanHeader header = read_plan_header(text, file);
  auto model = std::make_shared<Model>(load_model(model_of_plan(header.model_path, file), options, trace));
  if (model->graph.source_sha256 != header.model_sha256)
    throw Error(file, 0, 0,
                fmt::format("made for another version of {} (sha256 {}, the file's is {})", header.model_path,
                            header.model_sha256, model->graph.source_sha256),
                "plan the model again");
  FusionPlan plan = plan_from_json(model->graph, text, file);
  require_valid(model->graph, device(plan.device), plan, file);
  return take_plan(std::move(model), std::move(plan), name);
}

std::string plan_json(const PlannedModel& planned) {
  FusionPlan plan = *planned.plan;
  plan.decisions.clear();  // the command line records none
  return plan_document(planned.graph(), plan).dump(2) + "\n";
}

}  // namespace stitchwork::gui
