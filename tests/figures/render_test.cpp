// The renderer as the command line uses it: loaded as a module.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/data.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "figures/data/renderer.h"
#include "tests/support/golden.h"
#include "tests/support/sample_figures.h"

namespace stitchwork {
namespace TEST_FILE {

class FigureRender : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_render()) GTEST_SKIP() << "built without Qt";
  }
};
using FigureRenderGolden = FigureRender;

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

TEST_F(FigureRenderGolden, SvgOfEveryKind) {
  for (const Figure& figure : sample_figures())
    expect_golden("figure_" + figure.id + ".svg", render_figure(figure, FigureFormat::kSvg));
}

TEST_F(FigureRender, EveryFormatIsTheSameBytesAgain) {
  for (const Figure& figure : sample_figures())
    for (const FigureFormat format : {FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng})
      EXPECT_EQ(render_figure(figure, format), render_figure(figure, format)) << figure.id << name(format);
}

TEST_F(FigureRender, PdfHasNoDateAndNoRandomIdentifier) {
  const std::string pdf = render_figure(sample_bars(), FigureFormat::kPdf);
  EXPECT_EQ(pdf.substr(0, 5), "%PDF-");
  EXPECT_NE(pdf.find("/CreationDate (D:0000"), std::string::npos);
  EXPECT_EQ(pdf.find("uuid"), std::string::npos);
}

TEST_F(FigureRender, ALongLabelOfTheYAxisIsBrokenIntoLinesBesideThePlot) {
  Figure figure = sample_bars();
  figure.y.label = "speed-up over unfused kernels (simulated + modelled, imported)";
  const std::string svg = render_figure(figure, FigureFormat::kSvg);
  EXPECT_EQ(svg.find(figure.y.label), std::string::npos);
  for (const char* const line :
       {">speed-up over unfused<", ">kernels (simulated +<", ">modelled, imported)<"})
    EXPECT_NE(svg.find(line), std::string::npos) << line;
}

TEST_F(FigureRender, SvgIsAsWideAsTheColumn) {
  const std::string svg = render_figure(sample_bars(), FigureFormat::kSvg);
  EXPECT_NE(svg.find("viewBox=\"0 0 240 144\""), std::string::npos) << svg.substr(0, 300);
  EXPECT_NE(svg.find("&lt;made up&gt; &amp; more"), std::string::npos) << svg.substr(0, 600);
  EXPECT_NE(svg.find("device: v100-sxm2"), std::string::npos);
}

TEST_F(FigureRender, PngHasThreeHundredDotsAnInch) {
  EXPECT_EQ(png_size(render_figure(sample_bars(), FigureFormat::kPng)), std::pair(999, 600));
  EXPECT_EQ(png_size(render_figure(sample_roofline(), FigureFormat::kPng)), std::pair(2100, 780));
}

TEST_F(FigureRender, EmptyFiguresAreDrawn) {
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

TEST_F(FigureRender, ZeroNegativeAndHugeValuesAreDrawn) {
  Figure figure = sample_bars();
  figure.series[0].y = {0.0, -3.0, 1e12, 1e-12, 5.0};
  for (const bool logarithmic : {false, true}) {
    figure.y.logarithmic = logarithmic;
    const std::string svg = render_figure(figure, FigureFormat::kSvg);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST_F(FigureRender, WritesEveryFileBesideItsData) {
  const std::string folder = std::string(STITCHWORK_BINARY_DIR) + "/figures-of-tests";
  std::filesystem::remove_all(folder);
  for (const Figure& figure : sample_figures()) {
    const auto files =
        write_figure(figure, folder, {FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng});
    ASSERT_EQ(files.size(), 5u);
    for (const std::string& file : files) EXPECT_GT(std::filesystem::file_size(file), 100u) << file;
    EXPECT_TRUE(nlohmann::json::accept(read_file(folder + "/" + figure.id + ".vl.json")));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
