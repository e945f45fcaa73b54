// The few pieces of HTML that reports are made of: escaping, tables whose numbers carry their method, bars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stitchwork::html {

/// Text as it may stand in content and in quoted attributes.
std::string escaped(std::string_view text);

/// A table cell. `html` is markup already; `note` a second, quieter line of plain text.
struct Cell {
  std::string html;
  std::string method;  ///< how a number was obtained ("" for what is no number)
  std::string note;
};

struct Column {
  std::string title;
  std::string tip;  ///< shown on hovering
  bool number = true;
};

struct Row {
  std::vector<Cell> cells;
  std::string below;  ///< markup under the row, across all columns; "" = none
  bool failed = false;
};

/// The method stands in the heading where all numbers of a column share it, else beside each number.
std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                  std::string_view css_class);

struct Bar {
  std::string text;  ///< printed at the bar's end: "12.3 us simulated"
  double value = 0;
};

/// Bars that belong together: one a series, in the order of the chart's series.
struct BarGroup {
  std::string label;
  std::vector<Bar> bars;
};

/// Horizontal bars as inline SVG, all to one scale that begins at zero. The text beside each bar says what
/// it is: colours only repeat it.
std::string bar_chart(std::string_view title, const std::vector<BarGroup>& groups);

/// A small bar for a table cell, `fraction` of its full width.
std::string share_bar(double fraction);

/// A whole page.
std::string page(std::string_view title, std::string_view body);

/// The style sheet of a page: light, or dark where the reader's system is.
std::string_view style_sheet();

}  // namespace stitchwork::html
