// Figures as files. SVG is drawn here (figures/draw/); PDF and PNG are made of it by a module with Qt
// (figures/paint/), which is loaded when the first is asked for: what asks for none needs no Qt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "figures/data/document.h"

namespace stitchwork {

enum class FigureFormat : std::uint8_t { kSvg, kPdf, kPng };
std::string_view name(FigureFormat format);  ///< "svg", "pdf", "png"

/// Whether there is the module: installed, or at $STITCHWORK_FIGURES. SVG can always be drawn.
bool can_render();
bool can_render(FigureFormat format);
/// "stitchwork_figures.so is not installed"; empty where there is one.
std::string why_not_rendered();

/// The bytes of the figure's file. Throws Error where PDF or PNG is asked for and there is no module, or it
/// finds no font.
std::string render_figure(const Figure& figure, FigureFormat format);

/// The document as pages of A4, as PDF. Throws Error likewise.
std::string render_document(const Document& document);

/// An SVG as a part of an HTML page: its title for readers of screens, as wide as the column at most.
std::string inline_svg(const Figure& figure);

/// Writes ID.<format> for each, and ID.csv and ID.vl.json, into `folder`, which is made. Returns the files.
std::vector<std::string> write_figure(const Figure& figure, const std::string& folder,
                                      const std::vector<FigureFormat>& formats);

}  // namespace stitchwork
