// What the renderer's module exports. Program and module are of one build: values pass as they are.
#pragma once

#include <string>

#include "figures/data/document.h"
#include "figures/data/renderer.h"

namespace stitchwork {

/// Why a module cannot do what it was asked for, and what to do about it, if anything is known.
struct ModuleProblem {
  std::string message, hint;
};

/// Fills `bytes`, or `problem`.
using RenderFigure = void(const Figure& figure, FigureFormat format, std::string& bytes,
                          ModuleProblem& problem);
inline constexpr const char* kRenderFigure = "stitchwork_render_figure";
/// Likewise a document, as PDF.
using RenderDocument = void(const Document& document, std::string& bytes, ModuleProblem& problem);
inline constexpr const char* kRenderDocument = "stitchwork_render_document";

}  // namespace stitchwork
