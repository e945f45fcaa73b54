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

#include "core/error.h"
#include "experiments/html.h"
#include "gui/model/tables.h"

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

QString title(const GraphPicture& picture) {
  const PlannedModel& p = *picture.planned;
  return QString("%1 by %2 on %3")
      .arg(QString::fromStdString(p.graph().source), QString::fromStdString(p.plan->planner),
           QString::fromStdString(p.plan->device));
}

QByteArray svg(const GraphPicture& picture) {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  const QSizeF size = picture.size();
  generator.setSize(size.toSize());
  generator.setViewBox(QRectF({0, 0}, size));
  generator.setTitle(title(picture));
  generator.setDescription("Times are modelled from the plan");
  QPainter painter(&generator);
  picture.paint(painter, light_theme());
  painter.end();
  return buffer.data();
}

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
  writer.setTitle(title(picture));
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

/// One file: the graph as inline SVG, and the kernels by time.
std::string page(const GraphPicture& picture) {
  const PlannedModel& p = *picture.planned;
  std::vector<StepRow> steps = p.steps;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const StepRow& a, const StepRow& b) { return a.predicted_us > b.predicted_us; });
  std::vector<html::Row> rows;
  for (const StepRow& step : steps) {
    std::string schemes;
    for (std::size_t s = 0; s < step.schemes.size(); ++s)
      if (step.schemes[s] > 0) schemes += badge(static_cast<Scheme>(s));
    const auto cell = [](std::string text) { return html::Cell{std::move(text)}; };
    rows.push_back({{cell(html::escaped(step.id)),
                     cell(html::escaped(step.name)),
                     {fmt::format("{:.2f}", step.predicted_us), "modelled"},
                     cell(html::share_bar(step.share)),
                     cell(schemes),
                     cell(fmt::to_string(step.ops)),
                     cell(fmt::to_string(step.grid)),
                     cell(fmt::to_string(step.block)),
                     cell(fmt::to_string(step.barriers))}});
  }
  std::string drawing = svg(picture).toStdString();
  if (const std::size_t begin = drawing.find("<svg"); begin != std::string::npos) drawing.erase(0, begin);
  const std::string heading = html::escaped(title(picture).toStdString());
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
      "charset=\"utf-8\"><title>{0}</title><style>{1}</style></head>"
      "<body><main><h1>{0}</h1><div style=\"overflow:auto\">{2}</div>{3}</main></body></html>\n",
      heading, html::style_sheet(), drawing,
      html::table({{"kernel", "", false},
                   {"name", "", false},
                   {"us"},
                   {"share", "", false},
                   {"schemes", "", false},
                   {"ops"},
                   {"grid"},
                   {"block"},
                   {"grid barriers"}},
                  rows, "kernels"));
}

}  // namespace

std::string to_dot(const PlannedModel& planned, const DrawnGraph& graph) {
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
        text += fmt::format("{}subgraph cluster_{} {{\n{}  label={};\n", indent, child, indent,
                            dot_string(n.label));
        self(self, child, depth + 1);
        text += indent + "}\n";
        continue;
      }
      QColor fill = library_colour();
      std::string label = n.label;
      if (n.kind == FoldKind::kLayer) fill = QColor("#eef1f5");
      if (n.step >= 0) {
        const StepRow& row = planned.steps[static_cast<std::size_t>(n.step)];
        std::optional<Scheme> scheme = row.scheme();
        if (n.kind != FoldKind::kStep && row.kernel >= 0) {
          const auto& schemes = planned.plan->kernels[static_cast<std::size_t>(row.kernel)].schemes;
          if (const auto found = schemes.find(n.op); found != schemes.end()) scheme = found->second;
        }
        if (scheme) {
          fill = colour(*scheme);
          label += std::string(" [") + badge(*scheme) + "]";
        }
        if (n.kind == FoldKind::kStep) label += fmt::format(" {:.2f} us", row.predicted_us);
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
    bytes = svg(picture);
  else if (ending == "pdf")
    bytes = pdf(picture);
  else if (ending == "png")
    bytes = png(picture);
  else if (ending == "html")
    return page(picture);
  else if (ending == "dot")
    bytes = QByteArray::fromStdString(to_dot(*picture.planned, picture.drawn));
  else
    throw Error(file.toStdString(), 0, 0, "a graph is written as .svg, .pdf, .png, .html or .dot",
                "give the file such an ending");
  return bytes.toStdString();
}

}  // namespace stitchwork::gui
