// The module that `stitchwork view` loads.
#include <QFont>
#include <QGuiApplication>

#include "core/base/error.h"
#include "experiments/view_module.h"
#include "figures/paint/render.h"
#include "gui/view/plans_page.h"

extern "C" __attribute__((visibility("default"))) void stitchwork_render_view(
    const stitchwork::Model& model, const std::vector<stitchwork::FusionPlan>& plans, std::string& page,
    stitchwork::ModuleProblem& problem) {
  using namespace stitchwork;
  try {
    start_painting();
    QGuiApplication::setFont(QFont("DejaVu Sans"));
    const auto shared = std::make_shared<const Model>(model);
    std::vector<gui::GraphPicture> pictures;
    for (const FusionPlan& plan : plans)
      pictures.push_back(gui::opening_picture(gui::take_plan(shared, plan, {})));
    page = gui::plans_page(pictures);
  } catch (const FontMissing& error) {
    problem = {error.what(), error.kHint};
  } catch (const Error& error) {
    problem = {error.message(), error.hint()};
  } catch (const std::exception& error) {
    problem = {error.what(), {}};
  }
}
