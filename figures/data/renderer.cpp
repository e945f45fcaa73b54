#include "figures/data/renderer.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "figures/data/forms.h"
#include "figures/data/module.h"

namespace stitchwork {
namespace {
namespace fs = std::filesystem;

std::string module_path() {
  if (const char* given = std::getenv("STITCHWORK_FIGURES"); given && *given) return given;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = program.parent_path() / "stitchwork_figures.so";
  return fs::exists(beside, ignored) ? beside.string() : STITCHWORK_FIGURES_MODULE;
}

RenderFigure* load() {
  static RenderFigure* const found = [] {
    // Its toolkit stays loaded: it is not made to be unloaded.
    void* const module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    return module ? reinterpret_cast<RenderFigure*>(::dlsym(module, kRenderFigure)) : nullptr;
  }();
  return found;
}

}  // namespace

std::string_view name(FigureFormat format) {
  return format == FigureFormat::kSvg ? "svg" : format == FigureFormat::kPdf ? "pdf" : "png";
}

bool can_render() { return load() != nullptr; }

std::string render_figure(const Figure& figure, FigureFormat format) {
  check(figure);
  RenderFigure* const render = load();
  if (render == nullptr)
    throw Error("figures are drawn by a build with Qt, which this is not",
                "CSV and Vega-Lite are written without; for SVG, PDF and PNG configure with "
                "-DSTITCHWORK_GUI=ON");
  std::string bytes, problem;
  render(figure, format, bytes, problem);
  if (!problem.empty()) throw Error(problem, "install the Debian package fonts-dejavu-core");
  return bytes;
}

std::string inline_svg(const Figure& figure) {
  const std::string svg = render_figure(figure, FigureFormat::kSvg);
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
