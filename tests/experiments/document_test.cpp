#include "experiments/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "figures/data/renderer.h"
#include "tests/support/sample_figures.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = DocumentBlock::Kind;

Document sample() {
  Document document;
  document.title = "A & B";
  document.add(Kind::kTitle, "A & B");
  document.add(Kind::kParagraph, "text <script>");
  document.add(Kind::kHeading, "First");
  document.add(sample_bars(), "caption");
  document.add({{"row", "n"}, {false, true}, {{"a|b", "1"}, {"<c>", "2"}}});
  document.add(Kind::kHeading, "Second");
  document.add({{"command"}, {false}, {{"stitchwork plan"}}}, "Folded");
  return document;
}

TEST(ReportDocument, HtmlIsOneFileWithContentsAndEscapedText) {
  const std::string page = document_html(sample());
  EXPECT_THAT(page, HasSubstr("<title>A &amp; B</title>"));
  EXPECT_THAT(page, HasSubstr("text &lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("<li><a href=\"#s2\">Second</a></li>"));
  EXPECT_THAT(page, HasSubstr("<h2 id=\"s2\">Second</h2>"));
  EXPECT_THAT(page, HasSubstr("<details><summary>Folded</summary>"));
  EXPECT_THAT(page, HasSubstr("id=\"bars\"><svg"));
  for (const char* outside : {"http://fonts", "https://cdn", "src=", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

/// Drawn figures say the colour and size of their texts in attributes, which any rule of the page would
/// override.
TEST(ReportDocument, NoRuleOfThePageReachesTheTextOfDrawnFigures) {
  const std::string page = document_html(sample());
  const std::string sheet = page.substr(page.find("<style>"), page.find("</style>") - page.find("<style>"));
  const std::regex rule(R"(([^{}]*\btext\b[^{}]*)\{[^}]*(fill|font-size)[^}]*\})");
  int rules = 0;
  for (std::sregex_iterator at(sheet.begin(), sheet.end(), rule), end; at != end; ++at, ++rules)
    EXPECT_THAT((*at)[1].str(), HasSubstr(":not(.drawn)"));
  EXPECT_EQ(rules, 1);
}

TEST(ReportDocument, MarkdownKeepsTablesWhole) {
  const std::string text = document_markdown(sample());
  EXPECT_THAT(text, HasSubstr("| row | n |\n|---|--:|\n| a\\|b | 1 |"));
  EXPECT_THAT(text, HasSubstr("(bars: caption)"));
}

TEST(ReportDocument, PdfBreaksLongTablesOverPages) {
  if (!can_render()) GTEST_SKIP() << "built without Qt";
  Document document = sample();
  DocumentTable table{{"n", "text"}, {true, false}, {}};
  for (int i = 0; i < 200; ++i) table.rows.push_back({std::to_string(i), std::string(300, 'x') + " end"});
  document.add(table);
  const std::string pdf = render_document(document);
  EXPECT_EQ(pdf.substr(0, 5), "%PDF-");
  std::size_t pages = 0;
  for (std::size_t at = 0; (at = pdf.find("/Type /Page\n", at)) != std::string::npos; ++at) ++pages;
  EXPECT_GE(pages, 8u);
  EXPECT_EQ(pdf, render_document(document));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
