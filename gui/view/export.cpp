#include "gui/view/export.h"

#include <fmt/format.h>

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "gui/page/page.h"

namespace stitchwork::gui {
namespace {

std::string dot_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

QByteArray graph_svg(const GraphPicture& picture) {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  const QSizeF size = picture.size();
  generator.setSize(size.toSize());
  generator.setViewBox(QRectF({0, 0}, size));
  generator.setTitle(picture.title().toHtmlEscaped());  // it writes it as it is
  generator.setDescription("Times are modelled from the plan");
  QPainter painter(&generator);
  picture.paint(painter, light_theme());
  painter.end();
  return buffer.data();
}

namespace {

QByteArray pdf(const GraphPicture& picture) {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  QPdfWriter writer(&buffer);
  const QSizeF size = picture.size();
  writer.setResolution(72);
  // PDF readers refuse pages of more than 200 inches: larger graphs are scaled down.
  constexpr double kMostPoints = 14000;
  const double fit = std::min(1.0, kMostPoints / std::max(size.width(), size.height()));
  writer.setPageSize(QPageSize(size * fit, QPageSize::Point, {}, QPageSize::ExactMatch));
  writer.setPageMargins(QMarginsF(0, 0, 0, 0));
  writer.setTitle(picture.title());
  QPainter painter(&writer);
  painter.scale(fit, fit);
  picture.paint(painter, light_theme());
  painter.end();
  return buffer.data();
}

QByteArray png(const GraphPicture& picture) {
  const QSizeF size = picture.size();
  constexpr double kMostPixels = 12000;
  const double fit = std::min(2.0, kMostPixels / std::max(size.width(), size.height()));
  QImage image((size * fit).toSize(), QImage::Format_RGB32);
  if (image.isNull()) throw Error("not enough memory for the picture", "export it as SVG");
  QPainter painter(&image);
  painter.scale(fit, fit);
  picture.paint(painter, light_theme());
  painter.end();
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  image.save(&buffer, "PNG");
  return buffer.data();
}

}  // namespace

namespace {

/// The page of `stitchwork view`, folded as the window is, with its colours.
std::string html_of(const GraphPicture& picture) {
  const PlannedModel& planned = *picture.planned;
  if (planned.steps.empty())
    throw Error("a page shows plans, and this graph was read from a file", "write it as .svg or .pdf");
  PagePlan shown{planned.plan.get(), {}, std::vector<int>()};
  for (const DrawnBox& box : picture.drawn.boxes)
    if (box.expanded) shown.expanded->push_back(box.node);
  if (picture.overlay) {
    const Overlay& overlay = *picture.overlay;
    PageMetric metric{
        overlay.title.toStdString(), "", overlay.least.toStdString(), overlay.most.toStdString(), {}};
    for (const StepRow& row : planned.steps) {
      const auto value = overlay.value(row.step);
      metric.values.push_back(value ? std::optional(std::pair(value->first, value->second.toStdString()))
                                    : std::nullopt);
    }
    shown.metrics.push_back(std::move(metric));
  }
  return plans_page(*planned.model, {shown});
}

}  // namespace

std::string to_dot(const GraphPicture& picture) {
  const PlannedModel& planned = *picture.planned;
  const DrawnGraph& graph = picture.drawn;
  const FoldTree& tree = *planned.folds;
  std::string text =
      fmt::format("digraph {} {{\n  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\"];\n",
                  dot_string(planned.graph().name));
  std::vector<char> drawn(tree.nodes.size()), expanded(tree.nodes.size());
  for (const DrawnBox& box : graph.boxes) {
    drawn[static_cast<std::size_t>(box.node)] = 1;
    expanded[static_cast<std::size_t>(box.node)] = box.expanded;
  }
  const auto print = [&](const auto& self, int node, int depth) -> void {
    for (const int child : tree.node(node).children) {
      if (!drawn[static_cast<std::size_t>(child)]) continue;
      const FoldNode& n = tree.node(child);
      const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
      if (expanded[static_cast<std::size_t>(child)]) {
        std::string title = n.label, style;
        if (picture.overlay && n.kind == FoldKind::kStep)
          if (const auto value = picture.overlay->value(n.step)) {
            title += " " + value->second.toStdString();
            style = fmt::format(" color=\"{}\"; penwidth=3;", viridis(value->first).name().toStdString());
          }
        text += fmt::format("{}subgraph cluster_{} {{\n{}  label={};{}\n", indent, child, indent,
                            dot_string(title), style);
        self(self, child, depth + 1);
        text += indent + "}\n";
        continue;
      }
      QColor fill = library_colour();
      std::string label = n.label;
      if (n.kind == FoldKind::kLayer || n.kind == FoldKind::kBody) fill = QColor("#eef1f5");
      if (n.step >= 0) {
        const StepRow& row = planned.row(n.step);
        std::optional<Scheme> scheme = row.scheme();
        if (const KernelPlan* kernel = planned.kernel(n.step); kernel && n.kind != FoldKind::kStep)
          if (const auto found = kernel->schemes.find(n.op); found != kernel->schemes.end())
            scheme = found->second;
        if (scheme) {
          // With an overlay colours are the overlay's.
          fill = picture.overlay ? QColor(Qt::white) : colour(*scheme);
          label += std::string(" [") + badge(*scheme) + "]";
        }
        if (n.kind == FoldKind::kStep && !picture.overlay)
          label += fmt::format(" {:.2f} us", row.predicted_us);
        if (picture.overlay && n.kind != FoldKind::kOp)
          if (const auto value = picture.overlay->value(n.step)) {
            fill = viridis(value->first);
            label += " " + value->second.toStdString();
          }
      }
      text += fmt::format("{}n{} [label={}, fillcolor=\"{}\", fontcolor=\"{}\"];\n", indent, child,
                          dot_string(label), fill.name().toStdString(), ink_on(fill).name().toStdString());
    }
  };
  print(print, 0, 1);
  // An edge to an expanded box cannot be: its ends are the innermost boxes drawn.
  const auto edge = [&](int from, int to, const std::string& attributes) {
    text += fmt::format("  n{} -> n{} [{}];\n", from, to, attributes);
  };
  for (const DrawnEdge& e : graph.edges)
    edge(e.from, e.to,
         fmt::format("penwidth={:.1f}{}",
                     0.5 + 0.1 * std::log2(static_cast<double>(std::max<std::int64_t>(1, e.bytes))),
                     e.on_chip ? ", style=dotted" : ""));
  for (const DrawnStub& s : graph.stubs) edge(s.from, s.to, "constraint=false, color=\"#bbbbbb\"");
  return text + "}\n";
}

std::string graph_file(const GraphPicture& picture, const QString& file) {
  if (!picture.planned)
    throw Error(file.toStdString(), 0, 0, "there is no graph to write", "open a model first");
  const QString ending = QFileInfo(file).suffix().toLower();
  QByteArray bytes;
  if (ending == "svg")
    bytes = graph_svg(picture);
  else if (ending == "pdf")
    bytes = pdf(picture);
  else if (ending == "png")
    bytes = png(picture);
  else if (ending == "html")
    return html_of(picture);
  else if (ending == "dot")
    bytes = QByteArray::fromStdString(to_dot(picture));
  else
    throw Error(file.toStdString(), 0, 0, "a graph is written as .svg, .pdf, .png, .html or .dot",
                "give the file such an ending");
  return bytes.toStdString();
}

}  // namespace stitchwork::gui
