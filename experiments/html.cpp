#include "experiments/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/error.h"

namespace stitchwork::html {
namespace {

/// The method all cells with one share; "" if they differ or none has one.
std::string common_method(const std::vector<Row>& rows, std::size_t column) {
  std::set<std::string> methods;
  for (const Row& row : rows)
    if (const std::string& method = row.cells[column].method; !method.empty()) methods.insert(method);
  return methods.size() == 1 ? *methods.begin() : "";
}

// Geometry of bar charts, in CSS pixels.
constexpr int kChartWidth = 430, kBarHeight = 14, kBarGap = 3, kLabelHeight = 17, kGroupGap = 9;
constexpr double kTextPixels = 7;        ///< a character of the 12-pixel text, generously
constexpr std::size_t kLabelChars = 56;  ///< of the bold labels that fit the width

/// Lines of at most kLabelChars, broken at spaces.
std::vector<std::string> wrapped(const std::string& text) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > kLabelChars) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                  std::string_view css_class) {
  std::string head, body;
  std::vector<bool> in_heading;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string method = common_method(rows, i);
    in_heading.push_back(!method.empty());
    head += fmt::format("<th{}{}>{}<small>{}</small></th>", columns[i].number ? " class=\"n\"" : "",
                        columns[i].tip.empty() ? "" : fmt::format(" title=\"{}\"", escaped(columns[i].tip)),
                        escaped(columns[i].title), escaped(method));
  }
  for (const Row& row : rows) {
    SW_CHECK(row.cells.size() == columns.size());
    body += fmt::format("<tbody{}>\n<tr>", row.failed ? " class=\"failed\"" : "");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Cell& cell = row.cells[i];
      const bool label = !in_heading[i] && !cell.method.empty();
      body += fmt::format("<td{}>{}", columns[i].number ? " class=\"n\"" : "", cell.html);
      if (label) body += fmt::format("<small>{}</small>", escaped(cell.method));
      if (!cell.note.empty()) body += fmt::format("<small>{}</small>", escaped(cell.note));
      body += "</td>";
    }
    body += "</tr>\n";
    if (!row.below.empty())
      body += fmt::format("<tr class=\"below\"><td colspan=\"{}\">{}</td></tr>\n", columns.size(), row.below);
    body += "</tbody>\n";
  }
  return fmt::format(
      "<div class=\"scroll\"><table class=\"{}\">\n<thead><tr>{}</tr></thead>\n{}</table></div>\n", css_class,
      head, body);
}

std::string bar_chart(std::string_view title, const std::vector<BarGroup>& groups) {
  double largest = 0;
  std::size_t longest = 0;
  for (const BarGroup& group : groups)
    for (const Bar& bar : group.bars) {
      largest = std::max(largest, bar.value);
      longest = std::max(longest, bar.text.size());
    }
  const double room = std::max(80.0, kChartWidth - 8 - kTextPixels * static_cast<double>(longest));
  std::string marks;
  int y = 0;
  for (const BarGroup& group : groups) {
    for (const std::string& line : wrapped(group.label)) {
      marks += fmt::format("<text class=\"group\" x=\"0\" y=\"{}\">{}</text>\n", y + 12, escaped(line));
      y += kLabelHeight;
    }
    for (std::size_t i = 0; i < group.bars.size(); ++i) {
      const Bar& bar = group.bars[i];
      const double width = largest > 0 ? room * bar.value / largest : 0;
      marks += fmt::format(
          "<rect class=\"s{}\" x=\"0\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/><text x=\"{:.1f}\" y=\"{}\">"
          "{}</text>\n",
          i, y, std::max(width, 1.0), kBarHeight, width + 6, y + kBarHeight - 3, escaped(bar.text));
      y += kBarHeight + kBarGap;
    }
    y += kGroupGap;
  }
  return fmt::format(
      "<figure><figcaption>{0}</figcaption>\n<svg role=\"img\" aria-label=\"{0}\" width=\"{1}\" "
      "height=\"{2}\" "
      "viewBox=\"0 0 {1} {2}\">\n{3}</svg></figure>\n",
      escaped(title), kChartWidth, std::max(y - kGroupGap, 1), marks);
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      escaped(title), style_sheet(), body);
}

std::string share_bar(double fraction) {
  return fmt::format(
      "<svg class=\"share\" width=\"72\" height=\"10\" aria-hidden=\"true\"><rect class=\"all\" width=\"72\" "
      "height=\"10\"/><rect class=\"s0\" width=\"{:.1f}\" height=\"10\"/></svg>",
      72 * std::clamp(fraction, 0.0, 1.0));
}

}  // namespace stitchwork::html
