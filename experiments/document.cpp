#include "experiments/document.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "core/base/error.h"
#include "experiments/html.h"
#include "figures/data/renderer.h"

namespace stitchwork {
namespace {

using html::escaped;
using Kind = DocumentBlock::Kind;

std::string table_html(const DocumentBlock& block) {
  const DocumentTable& t = block.table;
  std::vector<html::Column> columns;
  for (std::size_t c = 0; c < t.heads.size(); ++c) columns.push_back({t.heads[c], "", t.right[c]});
  std::vector<html::Row> rows;
  for (const auto& cells : t.rows) {
    html::Row& row = rows.emplace_back();
    for (const std::string& cell : cells) row.cells.push_back({escaped(cell)});
  }
  const std::string table = html::table(columns, rows, "plain");
  return block.text.empty()
             ? table
             : fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(block.text), table);
}

std::string block_html(const DocumentBlock& block) {
  switch (block.kind) {
    case Kind::kTitle:
      return fmt::format("<h1>{}</h1>\n", escaped(block.text));
    case Kind::kHeading:
      return fmt::format("<h2>{}</h2>\n", escaped(block.text));
    case Kind::kParagraph:
      return fmt::format("<p>{}</p>\n", escaped(block.text));
    case Kind::kItem:
      return fmt::format("<ul><li>{}</li></ul>\n", escaped(block.text));
    case Kind::kLink:
      return fmt::format("<ul><li><a href=\"{}\">{}</a></li></ul>\n", escaped(block.target),
                         escaped(block.text));
    case Kind::kCode:
      return fmt::format("<p><code>{}</code></p>\n", escaped(block.text));
    case Kind::kTable:
      return table_html(block);
    case Kind::kFigure:
      return figure_html(block.figure, block.text);
  }
  SW_CHECK(false);
}

}  // namespace

std::string figure_html(const Figure& figure, const std::string& caption) {
  return fmt::format("<figure class=\"drawn{}\" id=\"{}\">{}<figcaption>{}</figcaption></figure>\n",
                     figure.width == FigureWidth::kPage ? " wide" : "", escaped(figure.id),
                     inline_svg(figure), escaped(caption));
}

std::string document_html(const Document& document) {
  std::string body, links;
  int sections = 0;
  for (const DocumentBlock& block : document.blocks) {
    if (block.kind == Kind::kHeading) {
      const std::string id = fmt::format("s{}", ++sections);
      links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id, escaped(block.text));
      body += fmt::format("<h2 id=\"{}\">{}</h2>\n", id, escaped(block.text));
      continue;
    }
    body += block_html(block);
    if (block.kind == Kind::kTitle) body += "<!--contents-->";
  }
  const std::string mark = "<!--contents-->";
  if (const std::size_t at = body.find(mark); at != std::string::npos)
    body.replace(at, mark.size(), fmt::format("<nav><ul>\n{}</ul></nav>\n", links));
  return html::page(document.title, body);
}

std::string document_markdown(const Document& document) {
  std::string text;
  const auto cell = [](std::string raw) {
    for (std::size_t at = 0; (at = raw.find('|', at)) != std::string::npos; at += 2) raw.insert(at, "\\");
    return raw;
  };
  for (const DocumentBlock& block : document.blocks) {
    switch (block.kind) {
      case Kind::kTitle:
        text += "# " + block.text + "\n\n";
        break;
      case Kind::kHeading:
        text += "## " + block.text + "\n\n";
        break;
      case Kind::kParagraph:
        text += block.text + "\n\n";
        break;
      case Kind::kItem:
        text += "- " + block.text + "\n\n";
        break;
      case Kind::kLink:
        text += fmt::format("- [{}]({})\n\n", block.text, block.target);
        break;
      case Kind::kCode:
        text += "    " + block.text + "\n\n";
        break;
      case Kind::kFigure:
        text += fmt::format("({}: {})\n\n", block.figure.id, block.text);
        break;
      case Kind::kTable: {
        const DocumentTable& t = block.table;
        if (!block.text.empty()) text += block.text + ":\n\n";
        std::string rule = "|";
        for (const bool right : t.right) rule += right ? "--:|" : "---|";
        text += fmt::format("| {} |\n{}\n", fmt::join(t.heads, " | "), rule);
        for (const auto& row : t.rows) {
          text += "|";
          for (const std::string& one : row) text += " " + cell(one) + " |";
          text += "\n";
        }
        text += "\n";
        break;
      }
    }
  }
  return text;
}

void require_document_form(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension != ".html" && extension != ".md" && extension != ".pdf")
    throw Error(file, 0, 0, fmt::format("'{}' is no form of report", extension), "known: .html, .pdf, .md");
}

std::string document_bytes(const Document& document, const std::string& file) {
  require_document_form(file);
  const std::string extension = std::filesystem::path(file).extension().string();
  return extension == ".pdf"  ? render_document(document)
         : extension == ".md" ? document_markdown(document)
                              : document_html(document);
}

}  // namespace stitchwork
