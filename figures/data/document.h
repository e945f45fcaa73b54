// A report as a value: headings, text, tables and figures in order. HTML and PDF are made of the same one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "figures/data/figure.h"

namespace stitchwork {

struct DocumentTable {
  std::vector<std::string> heads;
  std::vector<bool> right;  ///< columns of numbers
  std::vector<std::vector<std::string>> rows;
};

struct DocumentBlock {
  enum class Kind : std::uint8_t { kTitle, kHeading, kParagraph, kItem, kLink, kCode, kTable, kFigure };
  Kind kind = Kind::kParagraph;
  std::string text;  ///< of a figure its caption; of a table what folds it away in HTML, if anything
  DocumentTable table;
  Figure figure;
  std::string target;  ///< of a link, relative to the document
};

struct Document {
  std::string title;
  std::vector<DocumentBlock> blocks;

  void add(DocumentBlock::Kind kind, std::string text) {
    blocks.push_back({kind, std::move(text), {}, {}, {}});
  }
  void add_link(std::string text, std::string target) {
    blocks.push_back({DocumentBlock::Kind::kLink, std::move(text), {}, {}, std::move(target)});
  }
  void add(DocumentTable table, std::string fold = "") {
    blocks.push_back({DocumentBlock::Kind::kTable, std::move(fold), std::move(table), {}, {}});
  }
  void add(Figure figure, std::string caption) {
    blocks.push_back({DocumentBlock::Kind::kFigure, std::move(caption), {}, std::move(figure), {}});
  }
};

}  // namespace stitchwork
