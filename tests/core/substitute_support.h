// What the tests of substitutions share: inputs, comparisons, and a graph with all floats made f64.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/hlo/hlo_text.h"
#include "core/substitute/rewritten_graph.h"

namespace stitchwork::testing {

inline std::string entry_of(const std::string& module) { return module.substr(module.find("ENTRY")); }

template <typename Number>
std::vector<Literal> inputs_by(const Graph& graph, std::uint32_t seed, Number number) {
  std::mt19937 random(seed);
  std::vector<Literal> inputs;
  const Computation& entry = graph.entry_computation();
  for (const NodeId id : entry.parameters) {
    Literal literal = Literal::zeros(entry.node(id).shape);
    for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) literal.set_double(i, number(random));
    inputs.push_back(std::move(literal));
  }
  return inputs;
}
/// -3 ... 3.
inline std::vector<Literal> whole_inputs(const Graph& graph, std::uint32_t seed) {
  return inputs_by(graph, seed, [](std::mt19937& random) { return static_cast<double>(random() % 7) - 3; });
}
/// NaN, infinities, both zeros and others.
inline std::vector<Literal> special_inputs(const Graph& graph, std::uint32_t seed) {
  return inputs_by(graph, seed, [](std::mt19937& random) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kSpecial[] = {0.0, -0.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                                   1e-6};
    const auto n = random();
    return n % 4 == 0 ? kSpecial[n / 4 % std::size(kSpecial)] : static_cast<double>(n % 1000) / 100 - 5;
  });
}
/// [0.5, 1.5], and as many below zero if `both_signs`: no zero to divide by, no overflow.
inline std::vector<Literal> tame_inputs(const Graph& graph, std::uint32_t seed, bool both_signs = true) {
  return inputs_by(graph, seed, [&](std::mt19937& random) {
    const auto n = random();
    return (n % 2 == 0 && both_signs ? -1 : 1) * (0.5 + static_cast<double>(n / 2 % 1024) / 1024);
  });
}

/// The first element that is not the same bits, NaN apart; "" if there is none.
inline std::string difference(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  if (a.size() != b.size()) return "numbers of results";
  for (std::size_t r = 0; r < a.size(); ++r) {
    if (!a[r].shape.compatible(b[r].shape)) return fmt::format("shape of result {}", r);
    const auto size = static_cast<std::size_t>(byte_size(a[r].shape.dtype));
    for (std::int64_t i = 0; i < a[r].shape.elements_count(); ++i) {
      const double x = a[r].get_double(i), y = b[r].get_double(i);
      const std::size_t at = static_cast<std::size_t>(i) * size;
      if (std::memcmp(a[r].bytes.data() + at, b[r].bytes.data() + at, size) != 0 &&
          !(std::isnan(x) && std::isnan(y)))
        return fmt::format("result {}, element {}: {} is not {}", r, i, x, y);
    }
  }
  return "";
}

/// max |a - b| / (|b| + rms(b)) over all results; infinity where one is finite alone.
inline double largest_error(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double largest = a.size() == b.size() ? 0 : kInfinity;
  for (std::size_t r = 0; r < std::min(a.size(), b.size()); ++r) {
    const std::int64_t count = b[r].shape.elements_count();
    double squares = 0;
    for (std::int64_t i = 0; i < count; ++i)
      if (const double y = b[r].get_double(i); std::isfinite(y))
        squares += y * y / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = a[r].get_double(i), y = b[r].get_double(i);
      if (std::isfinite(x) != std::isfinite(y)) return kInfinity;
      if (std::isfinite(x) && x != y)
        largest = std::max(largest, std::abs(x - y) / (std::abs(y) + std::sqrt(squares)));
    }
  }
  return largest;
}

inline void widen(Shape& shape) {
  if (shape.dtype == DType::kF16 || shape.dtype == DType::kBF16 || shape.dtype == DType::kF32)
    shape.dtype = DType::kF64;
  for (Shape& element : shape.elements) widen(element);
}
/// The same graph in f64: what rounding hides stands out.
inline Graph with_wide_floats(Graph graph) {
  for (Computation& computation : graph.computations)
    for (Node& node : computation.nodes) {
      const DType was = node.shape.dtype;
      widen(node.shape);
      if (!node.attrs.literal || node.shape.dtype == was) continue;
      Literal literal = Literal::zeros(node.shape);
      for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i)
        literal.set_double(i, node.attrs.literal->get_double(i));
      node.attrs.literal = std::make_shared<const Literal>(std::move(literal));
    }
  return graph;
}

/// `origins` and `now` agree with the names: what is untouched stands for itself, every result has a giver.
inline void expect_consistent(const rewriting::RewrittenGraph& graph) {
  const Computation& entry = graph.graph.entry_computation();
  const Computation* model = graph.model_computation(entry.name);
  ASSERT_NE(model, nullptr);
  const rewriting::Origins& origins = graph.origins[static_cast<std::size_t>(graph.graph.entry)];
  ASSERT_EQ(origins.of.size(), entry.nodes.size());
  ASSERT_EQ(origins.now.size(), model->nodes.size());
  EXPECT_EQ(entry.node(entry.root).shape, model->node(model->root).shape);
  EXPECT_EQ(origins.now[static_cast<std::size_t>(model->root)], entry.root);
  for (const Node& node : entry.nodes) {
    const std::vector<NodeId>& of = origins.of[static_cast<std::size_t>(node.id)];
    EXPECT_FALSE(of.empty()) << node.name;
    EXPECT_TRUE(std::ranges::is_sorted(of));
    if (const NodeId id = model->find(node.name); id != kNoNode) {
      EXPECT_EQ(of, std::vector<NodeId>{id}) << node.name;
    }
  }
  for (const Node& node : model->nodes) {
    const NodeId now = origins.now[static_cast<std::size_t>(node.id)], same = entry.find(node.name);
    if (same != kNoNode) {
      EXPECT_EQ(now, same) << node.name;
    }
    if (now != kNoNode) {
      EXPECT_TRUE(entry.node(now).shape.compatible(node.shape)) << node.name;
    }
  }
}

}  // namespace stitchwork::testing
