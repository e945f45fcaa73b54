// Graphs written as DOT, by us and by others.
#include "gui/model/dot.h"

#include <gmock/gmock.h>

#include <QLabel>
#include <QLineEdit>
#include <QTabBar>

#include "core/base/error.h"
#include "core/base/file.h"
#include "gui/view/export.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct Dot : WindowTest {
  QString written(const QString& name, const std::string& text) {
    write_file(path(name).toStdString(), text);
    return path(name);
  }
  std::string refusal(const std::string& text) {
    try {
      read_dot(written("bad.dot", text));
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
};

TEST_F(Dot, ClustersFoldAndNodesFollowTheEdgesThatReachThem) {
  const PlannedPtr graph = read_dot(written("g.gv", R"(digraph "a graph" {
  c [label="third\nof three"];
  b -> c;
  subgraph cluster_x { label="the first two"; a [label=<<b>bold</b>&lt;x>]; b; subgraph { d } }
  a -> b; a -> b; a -> a;
  c -> a;
})"));
  const FoldTree& tree = *graph->folds;
  EXPECT_EQ(tree.node(0).label, "a graph");
  std::map<std::string, const FoldNode*> by_label;
  for (const FoldNode& node : tree.nodes) by_label[node.label] = &node;
  ASSERT_TRUE(by_label.contains("the first two"));
  ASSERT_TRUE(by_label.contains("third of three"));
  EXPECT_EQ(by_label["the first two"]->ops, 3);
  EXPECT_EQ(by_label["b"]->parent, by_label["d"]->parent);
  EXPECT_EQ(tree.edges.size(), 3U);  // repeated once, and none to itself
  EXPECT_EQ(tree.node(0).ops, 4);
}

TEST_F(Dot, OrderOfTheFileDoesNotTurnEdgesRound) {
  const PlannedPtr graph = read_dot(written("chain.dot", "digraph { d; c; b; a; a -> b -> c -> d }"));
  std::string order;
  for (const FoldNode& node : graph->folds->nodes)
    if (node.kind == FoldKind::kOp) order += node.label;
  EXPECT_EQ(order, "abcd");
}

TEST_F(Dot, WhatIsNoDotIsALineWithFileAndLine) {
  EXPECT_THAT(refusal("digraph {\n a -> b\n a -> -> c\n}\n"), HasSubstr("bad.dot:3: syntax error near"));
  EXPECT_THAT(refusal(""), HasSubstr("bad.dot: no graph is in it"));
  EXPECT_THAT(refusal("HloModule m\n"), HasSubstr("bad.dot:1: syntax error near"));
  EXPECT_EQ(refusal("graph { a -- b }"), "");  // and the next one is read
  for (const char* text : {"digraph {\n a -> -> c\n}\n", "HloModule m"})
    EXPECT_EQ(refusal(text).find('\n'), std::string::npos);
}

TEST_F(Dot, OurOwnExportIsOpenedAsATabToLookAt) {
  open("bert_layer");
  const GraphPicture picture = window->graph().picture();
  write_file(path("own.dot").toStdString(), to_dot(picture));
  const PlannedPtr plan = window->session().planned();
  window->open(path("own.dot"));
  settle();
  EXPECT_EQ(window->session().planned(), plan);  // it stays open
  EXPECT_EQ(window->tabs().currentWidget(), &window->dot());
  EXPECT_EQ(window->tabs().tabBar()->tabText(window->tabs().currentIndex()), "own.dot");
  std::size_t leaves = 0, drawn = 0;
  for (const DrawnBox& box : picture.drawn.boxes) leaves += !box.expanded;
  for (const DrawnBox& box : window->dot().drawn().boxes) drawn += !box.expanded;
  EXPECT_EQ(drawn, leaves);
  EXPECT_FALSE(window->dot().grab().isNull());
  const DrawnBox box = window->dot().drawn().boxes.back();
  QTest::mouseClick(&window->dot(), Qt::LeftButton, {},
                    window->dot().to_screen(box.rect.x + 5, box.rect.y + 5).toPoint());
  EXPECT_EQ(window->dot().selected(), box.node);
}

TEST_F(Dot, ColoursAndDashesAreTakenOver) {
  const PlannedPtr graph = read_dot(written("c.dot", R"(digraph {
  node [style=filled, fillcolor="#88ccee", fontcolor=navy];
  a; b [fillcolor="0.5 1.0 1.0"]; c [style="dashed", color="red:blue"]; d [fillcolor="/ylgn9/3"];
  subgraph cluster_x { bgcolor=lightyellow; pencolor="#11223344"; a }
})"));
  std::map<std::string, NodeLook> by_label;
  for (std::size_t i = 0; i < graph->looks.size(); ++i)
    by_label[graph->folds->nodes[i].label] = graph->looks[i];
  EXPECT_EQ(by_label["a"].fill, QColor("#88ccee"));
  EXPECT_EQ(by_label["a"].text, QColor("navy"));
  EXPECT_EQ(by_label["b"].fill.name(), "#00ffff");
  EXPECT_FALSE(by_label["c"].fill.isValid());
  EXPECT_EQ(by_label["c"].line, QColor("red"));
  EXPECT_TRUE(by_label["c"].dashed);
  EXPECT_FALSE(by_label["d"].fill.isValid());  // a colour scheme's number: drawn as usual
  EXPECT_EQ(by_label["cluster_x"].fill, QColor("lightyellow"));
  EXPECT_EQ(by_label["cluster_x"].line, QColor("#112233"));
}

TEST_F(Dot, LooksAreDrawn) {
  window->open(written("plain.dot", "digraph { a -> b }"));
  settle();
  const QImage plain = window->dot().grab().toImage();
  window->open(written("red.dot", R"(digraph { a [style=filled, fillcolor="#ff0000"]; a -> b })"));
  settle();
  const QImage red = window->dot().grab().toImage();
  const auto has_red = [](const QImage& image) {
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x)
        if (image.pixelColor(x, y) == QColor("#ff0000")) return true;
    return false;
  };
  EXPECT_FALSE(has_red(plain));
  EXPECT_TRUE(has_red(red));
}

TEST_F(Dot, SearchLooksInTheGraphThatIsShown) {
  auto* search = child<QLineEdit>("search");
  auto* count = child<QLabel>("search_count");
  const auto hits = [&](const QString& text) {
    search->clear();
    QTest::keyClicks(search, text);
    return count->text();
  };
  open("bert_layer");
  const QString in_plan = hits("b");
  open(written("g.dot", "digraph { apple -> pear -> apricot; subgraph cluster_c { plum } }"));
  EXPECT_NE(count->text(), in_plan);
  EXPECT_EQ(hits("ap"), "2 hits");
  EXPECT_EQ(hits("/^p/"), "2 hits");
  EXPECT_EQ(hits("op:reduce"), "0 hits");
  EXPECT_EQ(hits("plum"), "1 hit");
  QTest::keyClick(search, Qt::Key_Return);
  EXPECT_EQ(window->dot().planned()->folds->node(window->dot().selected()).label, "plum");
  window->tabs().setCurrentIndex(1);
  EXPECT_NE(hits("reduce"), "0 hits");
}

TEST_F(Dot, BrokenFileIsSaidOnTheWelcomePage) {
  open(written("bad.dot", "digraph { a -> -> b }"));
  EXPECT_EQ(window->problems().model().rowCount(), 1);
  EXPECT_THAT(window->problems().model().index(0, 2).data().toString().toStdString(),
              HasSubstr("syntax error"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
