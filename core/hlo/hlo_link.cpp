#include "core/hlo/hlo_link.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/suggest.h"

namespace stitchwork {
namespace {

class Linker {
 public:
  Linker(HloLexer& lexer, const ComputationIds& ids, std::vector<ComputationText>& texts, Graph& graph)
      : lexer_(lexer), ids_(ids), texts_(texts), graph_(graph) {}

  void link() {
    const std::size_t count = graph_.computations.size();
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t n = 0; n < texts_[c].nodes.size(); ++n) {
        for (const CalleeName& callee : texts_[c].nodes[n].callees) {
          graph_.computations[c].nodes[n].attrs.computations.push_back(resolve(callee));
        }
      }
    }
    std::vector<ComputationId> order;
    std::vector<int> state(count);
    for (std::size_t c = 0; c < count; ++c) visit(static_cast<ComputationId>(c), state, order);

    std::vector<ComputationId> place(count);
    for (std::size_t i = 0; i < count; ++i)
      place[static_cast<std::size_t>(order[i])] = static_cast<ComputationId>(i);
    std::vector<Computation> sorted;
    std::vector<ComputationText> sorted_texts;
    for (const ComputationId id : order) {
      sorted.push_back(std::move(graph_.computations[static_cast<std::size_t>(id)]));
      sorted_texts.push_back(std::move(texts_[static_cast<std::size_t>(id)]));
      for (Node& node : sorted.back().nodes) {
        for (ComputationId& callee : node.attrs.computations)
          callee = place[static_cast<std::size_t>(callee)];
      }
    }
    graph_.computations = std::move(sorted);
    texts_ = std::move(sorted_texts);
    graph_.entry = place[static_cast<std::size_t>(graph_.entry)];
  }

  void check_shapes() {
    for (std::size_t c = 0; c < graph_.computations.size(); ++c) {
      for (const Node& node : graph_.computations[c].nodes) {
        try {
          check_node(graph_, graph_.computations[c], node);
        } catch (const Error& error) {
          // The check knows what is wrong, the reader where.
          lexer_.fail(texts_[c].nodes[static_cast<std::size_t>(node.id)].position, error.message(),
                      error.hint());
        }
      }
    }
  }

 private:
  ComputationId resolve(const CalleeName& callee) {
    if (const auto found = ids_.find(callee.name); found != ids_.end()) return found->second;
    std::vector<std::string_view> names;
    for (const auto& [known, id] : ids_) names.push_back(known);
    std::ranges::sort(names);
    const std::string_view near = closest(callee.name, names);
    lexer_.fail(callee.position, fmt::format("unknown computation '{}'", callee.name),
                near.empty() ? std::string() : fmt::format("did you mean {}?", near));
  }

  void visit(ComputationId id, std::vector<int>& state, std::vector<ComputationId>& order, int depth = 0) {
    constexpr int kOpen = 1, kDone = 2, kMaxDepth = 1000;
    int& mine = state[static_cast<std::size_t>(id)];
    if (mine == kDone) return;
    if (depth == kMaxDepth) {
      lexer_.fail(texts_[static_cast<std::size_t>(id)].position,
                  fmt::format("calls nest deeper than {}", kMaxDepth));
    }
    if (mine == kOpen) {
      lexer_.fail(texts_[static_cast<std::size_t>(id)].position,
                  fmt::format("computation '{}' calls itself", graph_.computation(id).name),
                  "HLO has no recursion");
    }
    mine = kOpen;
    for (const Node& node : graph_.computation(id).nodes) {
      for (const ComputationId callee : node.attrs.computations) visit(callee, state, order, depth + 1);
    }
    state[static_cast<std::size_t>(id)] = kDone;
    order.push_back(id);
  }

  HloLexer& lexer_;
  const ComputationIds& ids_;
  std::vector<ComputationText>& texts_;
  Graph& graph_;
};

}  // namespace

void link_computations(HloLexer& lexer, const ComputationIds& ids, std::vector<ComputationText> texts,
                       Graph& graph) {
  Linker linker(lexer, ids, texts, graph);
  linker.link();
  linker.check_shapes();
}

}  // namespace stitchwork
