// Figures as files: SVG as it is drawn here, PDF and PNG by the module that is loaded.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/data.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "figures/data/renderer.h"
#include "figures/draw/text_width.h"
#include "tests/support/golden.h"
#include "tests/support/sample_figures.h"

namespace stitchwork {
namespace TEST_FILE {

/// Formats that this build makes.
std::vector<FigureFormat> formats() {
  return can_render() ? std::vector{FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng}
                      : std::vector{FigureFormat::kSvg};
}

TEST(Renderer, CanBeLoadedWhereItWasBuilt) {
  if (module_file("stitchwork_figures.so").empty()) GTEST_SKIP() << "built without Qt";
  EXPECT_TRUE(can_render()) << why_not_rendered();
}

/// Width and height of a PNG, from its header.
std::pair<int, int> png_size(const std::string& png) {
  const auto word = [&](std::size_t at) {
    int value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png.at(at + i));
    return value;
  };
  return {word(16), word(20)};
}

TEST(FigureRenderGolden, SvgOfEveryKind) {
  for (const Figure& figure : sample_figures())
    expect_golden("figure_" + figure.id + ".svg", render_figure(figure, FigureFormat::kSvg));
}

TEST(FigureRender, EveryFormatIsTheSameBytesAgain) {
  for (const Figure& figure : sample_figures())
    for (const FigureFormat format : formats())
      EXPECT_EQ(render_figure(figure, format), render_figure(figure, format)) << figure.id << name(format);
}

TEST(FigureRender, PdfHasNoDateAndNoRandomIdentifier) {
  if (!can_render()) GTEST_SKIP() << "built without Qt";
  if (!can_render()) GTEST_SKIP() << "built without Qt";
  const std::string pdf = render_figure(sample_bars(), FigureFormat::kPdf);
  EXPECT_EQ(pdf.substr(0, 5), "%PDF-");
  EXPECT_NE(pdf.find("/CreationDate (D:0000"), std::string::npos);
  EXPECT_EQ(pdf.find("uuid"), std::string::npos);
}

TEST(FigureRender, ALongLabelOfTheYAxisIsBrokenIntoLinesBesideThePlot) {
  Figure figure = sample_bars();
  figure.y.label = "speed-up over unfused kernels (simulated + modelled, imported)";
  const std::string svg = render_figure(figure, FigureFormat::kSvg);
  EXPECT_EQ(svg.find(figure.y.label), std::string::npos);
  for (const char* const line :
       {">speed-up over unfused<", ">kernels (simulated +<", ">modelled, imported)<"})
    EXPECT_NE(svg.find(line), std::string::npos) << line;
}

TEST(FigureRender, SvgIsAsWideAsTheColumn) {
  const std::string svg = render_figure(sample_bars(), FigureFormat::kSvg);
  EXPECT_NE(svg.find("viewBox=\"0 0 240 144\""), std::string::npos) << svg.substr(0, 300);
  EXPECT_NE(svg.find("&lt;made up&gt; &amp; more"), std::string::npos) << svg.substr(0, 600);
  EXPECT_NE(svg.find("device: v100-sxm2"), std::string::npos);
}

TEST(FigureRender, PngHasThreeHundredDotsAnInch) {
  if (!can_render()) GTEST_SKIP() << "built without Qt";
  EXPECT_EQ(png_size(render_figure(sample_bars(), FigureFormat::kPng)), std::pair(999, 600));
  EXPECT_EQ(png_size(render_figure(sample_roofline(), FigureFormat::kPng)), std::pair(2100, 780));
}

TEST(FigureRender, EmptyFiguresAreDrawn) {
  for (const FigureKind kind : {FigureKind::kBars, FigureKind::kStackedBars, FigureKind::kPoints,
                                FigureKind::kHeatmap, FigureKind::kCdf})
    for (const bool logarithmic : {false, true}) {
      Figure figure;
      figure.id = "empty";
      figure.kind = kind;
      figure.x.logarithmic = figure.y.logarithmic = logarithmic;
      EXPECT_FALSE(render_figure(figure, FigureFormat::kSvg).empty());
      figure.categories = {"a"};
      figure.series.resize(1);
      figure.series[0].y = {std::nullopt};
      if (kind == FigureKind::kPoints) figure.series[0].x = {0};
      EXPECT_FALSE(render_figure(figure, FigureFormat::kSvg).empty());
    }
}

TEST(FigureRender, ZeroNegativeAndHugeValuesAreDrawn) {
  Figure figure = sample_bars();
  figure.series[0].y = {0.0, -3.0, 1e12, 1e-12, 5.0};
  for (const bool logarithmic : {false, true}) {
    figure.y.logarithmic = logarithmic;
    const std::string svg = render_figure(figure, FigureFormat::kSvg);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST(FigureRender, WritesEveryFileBesideItsData) {
  const std::string folder = std::string(STITCHWORK_BINARY_DIR) + "/figures-of-tests";
  std::filesystem::remove_all(folder);
  for (const Figure& figure : sample_figures()) {
    const auto files = write_figure(figure, folder, formats());
    ASSERT_EQ(files.size(), 2 + formats().size());
    for (const std::string& file : files) EXPECT_GT(std::filesystem::file_size(file), 100u) << file;
    EXPECT_TRUE(nlohmann::json::accept(read_file(folder + "/" + figure.id + ".vl.json")));
  }
}

TEST(TextWidth, IsThatOfTheFont) {
  // Advances in DejaVuSans.ttf, of 2048 an em.
  EXPECT_DOUBLE_EQ(text_width("0", 2048), 1303);
  EXPECT_DOUBLE_EQ(text_width("Wi", 2048), 2025 + 569);
  EXPECT_DOUBLE_EQ(text_width("\u00b5s", 2048), 1303 + 1067);
  EXPECT_DOUBLE_EQ(text_width("\u2265", 2048), 1716);
  EXPECT_DOUBLE_EQ(text_width("", 8), 0);
  EXPECT_DOUBLE_EQ(text_width("~\xff"), text_width("~\xff")) << "what is no UTF-8 has some width";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
