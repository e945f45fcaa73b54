// Plain-text tables for terminals.
#pragma once

#include <string>
#include <vector>

namespace stitchwork {

/// Columns as wide as their widest cell; a heading that begins with '>' right-aligns its column.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> row);
  std::string text() const;
  std::string markdown() const;
  std::string csv() const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace stitchwork
