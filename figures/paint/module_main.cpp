// The module that the command line loads.
#include "figures/data/module.h"
#include "figures/paint/render.h"

extern "C" __attribute__((visibility("default"))) void stitchwork_render_figure(
    const stitchwork::Figure& figure, stitchwork::FigureFormat format, std::string& bytes,
    stitchwork::ModuleProblem& problem) {
  try {
    bytes = stitchwork::render(figure, format);
  } catch (const stitchwork::FontMissing& error) {
    problem = {error.what(), error.kHint};
  } catch (const std::exception& error) {
    problem = {error.what(), {}};
  }
}

extern "C" __attribute__((visibility("default"))) void stitchwork_render_document(
    const stitchwork::Document& document, std::string& bytes, stitchwork::ModuleProblem& problem) {
  try {
    bytes = stitchwork::render(document);
  } catch (const stitchwork::FontMissing& error) {
    problem = {error.what(), error.kHint};
  } catch (const std::exception& error) {
    problem = {error.what(), {}};
  }
}
