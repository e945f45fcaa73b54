// The module that the command line loads.
#include "figures/data/module.h"
#include "figures/paint/render.h"

extern "C" __attribute__((visibility("default"))) void stitchwork_render_figure(
    const stitchwork::Figure& figure, stitchwork::FigureFormat format, std::string& bytes,
    std::string& problem) {
  try {
    bytes = stitchwork::render(figure, format);
  } catch (const std::exception& error) {
    problem = error.what();
  }
}
