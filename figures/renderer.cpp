#include "figures/data/renderer.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "figures/data/forms.h"
#include "figures/data/load.h"
#include "figures/data/module.h"
#include "figures/draw/draw.h"

namespace stitchwork {
namespace {
namespace fs = std::filesystem;

const std::string& renderer_file() {
  const char* given = std::getenv("STITCHWORK_FIGURES");
  static const std::string file = given && *given ? given : "stitchwork_figures.so";
  return file;
}

/// Calls render(bytes, problem) of the module's function of that name.
template <typename Function, typename Call>
std::string rendered(const char* name, Call call) {
  auto* const render =
      reinterpret_cast<Function*>(module_function(renderer_file(), name, "PDF and PNG are made"));
  std::string bytes;
  ModuleProblem problem;
  call(*render, bytes, problem);
  if (!problem.message.empty()) throw Error(problem.message, problem.hint);
  return bytes;
}

}  // namespace

std::string_view name(FigureFormat format) {
  return format == FigureFormat::kSvg ? "svg" : format == FigureFormat::kPdf ? "pdf" : "png";
}

bool can_render(FigureFormat format) { return format == FigureFormat::kSvg || can_render(); }

bool can_render() { return load_module(renderer_file()).handle != nullptr; }

std::string why_not_rendered() {
  const Module& module = load_module(renderer_file());
  return module.handle != nullptr ? std::string() : fmt::format("{} {}", renderer_file(), module.problem);
}

std::string render_figure(const Figure& figure, FigureFormat format) {
  check(figure);
  if (format == FigureFormat::kSvg) return figure_svg(figure);
  return rendered<RenderFigure>(kRenderFigure,
                                [&](RenderFigure& render, std::string& bytes, ModuleProblem& problem) {
                                  render(figure, format, bytes, problem);
                                });
}

std::string render_document(const Document& document) {
  for (const DocumentBlock& block : document.blocks)
    if (block.kind == DocumentBlock::Kind::kFigure) check(block.figure);
  return rendered<RenderDocument>(kRenderDocument,
                                  [&](RenderDocument& render, std::string& bytes, ModuleProblem& problem) {
                                    render(document, bytes, problem);
                                  });
}

std::string inline_svg(const Figure& figure) {
  check(figure);
  const std::string svg = figure_svg(figure);
  const std::size_t begin = svg.find("<svg");
  SW_CHECK(begin != std::string::npos);
  return svg.substr(begin);
}

std::vector<std::string> write_figure(const Figure& figure, const std::string& folder,
                                      const std::vector<FigureFormat>& formats) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder, 0, 0, fmt::format("cannot be made: {}", error.message()));
  std::vector<std::string> files;
  const auto write = [&](const std::string& extension, const std::string& bytes) {
    files.push_back((fs::path(folder) / (figure.id + "." + extension)).string());
    write_file(files.back(), bytes);
  };
  write("csv", figure_csv(figure));
  write("vl.json", vega_lite(figure).dump(1) + "\n");
  for (const FigureFormat format : formats) write(std::string(name(format)), render_figure(figure, format));
  return files;
}

}  // namespace stitchwork
