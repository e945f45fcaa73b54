#include "gui/layout/folded_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/planners/planner.h"
#include "experiments/model.h"

namespace stitchwork::gui {
namespace TEST_FILE {

LayoutSize fixed_size(const FoldNode&) { return {160, 44}; }

struct Folded {
  Model model;
  FusionPlan plan;
  std::shared_ptr<const FoldTree> tree;
};

Folded folded(const std::string& name, const std::string& planner = "astitch") {
  Folded f{load_model(name), {}, nullptr};
  f.plan = make_plan(f.model.graph, device("v100"), planner);
  f.tree = std::make_shared<FoldTree>(fold_tree(f.model.graph, f.plan));
  return f;
}

bool inside(const Rect& inner, const Rect& outer) {
  constexpr double kSlack = 1e-6;
  return inner.x >= outer.x - kSlack && inner.y >= outer.y - kSlack &&
         inner.right() <= outer.right() + kSlack && inner.bottom() <= outer.bottom() + kSlack;
}

bool overlap(const Rect& a, const Rect& b) {
  return a.x < b.right() - 1e-6 && b.x < a.right() - 1e-6 && a.y < b.bottom() - 1e-6 &&
         b.y < a.bottom() - 1e-6;
}

TEST(Scopes, JaxWrappersAndTheOpAreLeftOut) {
  EXPECT_EQ(scopes("jit(f)/jit(main)/Bert/layer/0/attention/add"),
            (std::vector<std::string>{"Bert", "layer", "0", "attention"}));
  EXPECT_EQ(scopes("jit(f)/Bert/pjit[a/b=(c/d)]"), (std::vector<std::string>{"Bert"}));
  EXPECT_TRUE(scopes("").empty());
  EXPECT_TRUE(scopes("add").empty());
}

TEST(FoldTree, EveryStepGroupAndOpOfThePlanIsThere) {
  const Folded f = folded("bert_base");
  std::set<int> steps;
  std::size_t groups = 0, ops = 0, expected_groups = 0, expected_ops = 0;
  for (const FoldNode& n : f.tree->nodes) {
    if (n.kind == FoldKind::kStep) steps.insert(n.step);
    groups += n.kind == FoldKind::kGroup;
    ops += n.kind == FoldKind::kOp;
  }
  for (const KernelPlan& kernel : f.plan.kernels) {
    expected_groups += kernel.groups.size();
    for (const Group& group : kernel.groups) expected_ops += group.ops.size();
  }
  for (const PlanStep& step : f.plan.steps)
    if (step.kind != StepKind::kKernel) expected_ops += step.nodes.size();
  EXPECT_EQ(steps.size(), f.plan.steps.size());
  EXPECT_EQ(groups, expected_groups);
  EXPECT_EQ(ops, expected_ops);
}

TEST(FoldTree, BertHasItsTwelveLayers) {
  const Folded f = folded("bert_base");
  int layers = 0;
  for (const FoldNode& n : f.tree->nodes)
    if (n.kind == FoldKind::kLayer && n.label.starts_with("layer/")) {
      EXPECT_GT(n.steps, 8) << n.label;
      ++layers;
    }
  EXPECT_EQ(layers, 12) << to_text(*f.tree).substr(0, 3000);
}

TEST(FoldedLayout, LayersThatAreAlikeStandInOneLine) {
  const Folded f = folded("bert_base");
  const DrawnGraph graph = FoldedLayout(f.tree, fixed_size).draw(folding_at_opening(f.tree));
  std::vector<double> tops;
  for (const DrawnBox& box : graph.boxes)
    if (f.tree->node(box.node).label.starts_with("layer/")) tops.push_back(box.rect.y);
  ASSERT_EQ(tops.size(), 12U);
  const auto [least, most] = std::minmax_element(tops.begin(), tops.end());
  EXPECT_LT(*most - *least, 12);  // a quarter of a box: 12 steps of that would climb over a layer
}

TEST(FoldTree, EdgesFollowThePlansOrder) {
  const Folded f = folded("bert_layer", "xla");
  ASSERT_FALSE(f.tree->edges.empty());
  for (const FoldEdge& e : f.tree->edges) EXPECT_LE(f.tree->node(e.from).step, f.tree->node(e.to).step);
}

TEST(FoldTree, ValuesWithinAGroupStayOnChip) {
  const Folded f = folded("fig7");
  for (const FoldEdge& e : f.tree->edges) {
    if (f.tree->node(e.from).parent == f.tree->node(e.to).parent) {
      EXPECT_TRUE(e.on_chip);
    }
    if (f.tree->node(e.from).step != f.tree->node(e.to).step) {
      EXPECT_FALSE(e.on_chip);
    }
  }
}

TEST(Folding, OpensWithAtMostFiveHundredBoxes) {
  const Folded f = folded("gpt2_decoder_10k");
  const Folding folding = folding_at_opening(f.tree);
  EXPECT_LE(folding.boxes(), kBoxesAtOpening);
  EXPECT_GT(folding.boxes(), 10);
}

TEST(Folding, RevealDrawsTheOp) {
  const Folded f = folded("bert_base");
  Folding folding = folding_at_opening(f.tree);
  const int op = f.tree->find_op(f.plan.kernels[5].groups[0].dominant);
  EXPECT_NE(folding.drawn(op), op);
  folding.reveal(op);
  EXPECT_EQ(folding.drawn(op), op);
}

TEST(FoldedLayout, BoxesLieInTheirContainersAndApartFromEachOther) {
  const Folded f = folded("bert_layer");
  Folding folding = folding_at_opening(f.tree);
  folding.expand_all(FoldKind::kOp, 100000);
  FoldedLayout layout(f.tree, fixed_size);
  const DrawnGraph g = layout.draw(folding);
  ASSERT_EQ(static_cast<int>(g.boxes.size()), folding.boxes());
  for (const DrawnBox& box : g.boxes) {
    const int parent = f.tree->node(box.node).parent;
    if (parent > 0) {
      EXPECT_TRUE(inside(box.rect, g.box_of(parent)->rect)) << f.tree->node(box.node).label;
    }
    EXPECT_TRUE(inside(box.rect, {0, 0, g.width, g.height}));
    for (const DrawnBox& other : g.boxes)
      if (other.node > box.node && f.tree->node(other.node).parent == parent) {
        EXPECT_FALSE(overlap(box.rect, other.rect))
            << f.tree->node(box.node).label << " and " << f.tree->node(other.node).label;
      }
  }
}

TEST(FoldedLayout, EdgesPassTheBoxesOfTheContainersTheyEnter) {
  for (const char* name : {"bert_layer", "layer_norm_grad", "moe_layer", "gpt2_step"}) {
    const Folded f = folded(name);
    Folding folding = folding_at_opening(f.tree);
    folding.expand_all(FoldKind::kOp, 3000);
    const DrawnGraph graph = FoldedLayout(f.tree, fixed_size).draw(folding);
    int straight = 0;
    for (const DrawnEdge& edge : graph.edges)
      for (std::size_t i = 1; i < edge.points.size(); ++i) {
        const Point &p = edge.points[i - 1], &q = edge.points[i];
        if (p.x != q.x && p.y != q.y) continue;
        ++straight;
        for (const DrawnBox& box : graph.boxes) {
          if (box.expanded || box.node == edge.from || box.node == edge.to) continue;
          const bool crosses = std::max(p.x, q.x) > box.rect.x && std::min(p.x, q.x) < box.rect.right() &&
                               std::max(p.y, q.y) > box.rect.y && std::min(p.y, q.y) < box.rect.bottom();
          EXPECT_FALSE(crosses) << name << ": " << f.tree->node(edge.from).label << " -> "
                                << f.tree->node(edge.to).label << " through " << f.tree->node(box.node).label;
        }
      }
    EXPECT_GT(straight, 20) << name;
  }
}

TEST(FoldedLayout, EveryValueBetweenBoxesIsDrawnOrAStub) {
  const Folded f = folded("bert_base");
  const Folding folding = folding_at_opening(f.tree);
  FoldedLayout layout(f.tree, fixed_size);
  const DrawnGraph g = layout.draw(folding);
  std::set<std::pair<int, int>> expected, drawn;
  for (const FoldEdge& e : f.tree->edges)
    if (folding.drawn(e.from) != folding.drawn(e.to))
      expected.insert({folding.drawn(e.from), folding.drawn(e.to)});
  for (const DrawnEdge& e : g.edges) drawn.insert({e.from, e.to});
  for (const DrawnStub& s : g.stubs) drawn.insert({s.from, s.to});
  EXPECT_EQ(drawn, expected);
}

TEST(FoldedLayout, ExpandingKeepsTheOrderOfWhatIsAround) {
  const Folded f = folded("bert_base");
  Folding folding = folding_at_opening(f.tree);
  FoldedLayout layout(f.tree, fixed_size);
  const DrawnGraph before = layout.draw(folding);
  const int kernel = f.tree->find_step(40);
  ASSERT_NE(before.box_of(kernel), nullptr);
  folding.expand(kernel);
  const DrawnGraph after = layout.draw(folding);
  const int parent = f.tree->node(kernel).parent;
  const auto& siblings = f.tree->node(parent).children;
  for (int a : siblings)
    for (int b : siblings) {
      const Rect &a0 = before.box_of(a)->rect, &b0 = before.box_of(b)->rect;
      const Rect &a1 = after.box_of(a)->rect, &b1 = after.box_of(b)->rect;
      if (a0.bottom() <= b0.y) {
        EXPECT_LE(a1.bottom(), b1.y + 1e-6);
      }
    }
}

TEST(FoldedLayout, CollapsingAgainGivesTheSamePicture) {
  const Folded f = folded("bert_layer");
  Folding folding = folding_at_opening(f.tree);
  FoldedLayout layout(f.tree, fixed_size);
  const DrawnGraph before = layout.draw(folding);
  const int kernel = f.tree->find_step(0);
  folding.expand(kernel);
  layout.draw(folding);
  folding.expand(kernel, false);
  const DrawnGraph after = layout.draw(folding);
  ASSERT_EQ(before.boxes.size(), after.boxes.size());
  for (std::size_t i = 0; i < before.boxes.size(); ++i) {
    EXPECT_EQ(before.boxes[i].node, after.boxes[i].node);
    EXPECT_EQ(before.boxes[i].rect.x, after.boxes[i].rect.x);
    EXPECT_EQ(before.boxes[i].rect.y, after.boxes[i].rect.y);
  }
}

TEST(FoldedLayout, EveryPlannerOfEverySmallModelIsDrawn) {
  int drawn = 0;
  for (const Dataset& d : datasets()) {
    if (d.name.find("_tiny") == std::string::npos) continue;
    const Model model = load_model(d.name);
    for (const std::string planner : {"astitch", "xla", "unfused"}) {
      const FusionPlan plan = make_plan(model.graph, device("v100"), planner);
      auto tree = std::make_shared<FoldTree>(fold_tree(model.graph, plan));
      Folding folding(tree);
      folding.expand_all(FoldKind::kOp, 3000);
      FoldedLayout layout(tree, fixed_size);
      const DrawnGraph g = layout.draw(folding);
      EXPECT_EQ(static_cast<int>(g.boxes.size()), folding.boxes()) << d.name << " " << planner;
      for (const DrawnEdge& e : g.edges) EXPECT_GE(e.points.size(), 2U);
      ++drawn;
    }
  }
  EXPECT_GT(drawn, 60);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
