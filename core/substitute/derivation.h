// A graph rewritten step by step, the steps recorded: applied to the model again, they give the same graph.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/substitute/rewritten_graph.h"
#include "core/substitute/rule.h"

namespace stitchwork::rewriting {

class Derivation {
 public:
  explicit Derivation(Graph model) : now_(unchanged(std::move(model))) {}

  const RewrittenGraph& result() const { return now_; }

  /// The rule at the op of that name, a macro as the steps it is made of. False, and nothing changed, where
  /// it does not hold.
  bool apply(const Rule& rule, const std::string& computation, const std::string& op);
  /// The rule at those of the ops at which it holds, in order, as few steps as may be: places that share no
  /// op are written at once. Returns at how many.
  int apply(const Rule& rule, const std::string& computation, std::vector<std::string> ops);
  /// The rule at every op there is now at which it holds; ops it makes are not looked at. Returns at how
  /// many.
  int apply_everywhere(const Rule& rule);
  /// A chosen rule at all of these places, one step. Throws Error where it does not hold at one, or they wait
  /// for each other.
  void apply_at(const Rule& rule, const std::string& computation, std::vector<Place> at) {
    repeat({std::string(rule.name), computation, std::move(at)});
  }
  /// All tidy rules to their fixpoint (tidy.h). Returns at how many places.
  int tidy();
  /// From now on the rule is not taken at the op of that name, nor by macros that it is a step of. Tidy rules
  /// cannot be left out at single ops: a tidy step is recorded as one.
  void forbid(const Rule& rule, const std::string& op) { forbidden_.emplace(rule.name, op); }
  /// A recorded step. Throws Error where it does not fit this graph.
  void repeat(const Rewrite& step);

 private:
  int take(const Rule& rule, const View& view, const std::vector<Match>& matches);
  int take_macro(const Rule& rule, const std::string& computation, const std::vector<Place>& at);
  bool write(const Rule& rule, const View& view, const std::vector<Match>& matches);

  bool forbids(const Rule& rule, const std::string& op) const {
    return !forbidden_.empty() && forbidden_.contains({std::string(rule.name), op});
  }

  RewrittenGraph now_;
  std::set<std::pair<std::string, std::string>> forbidden_;  ///< rule, op
};

/// The model after these steps. Throws Error naming the first that does not fit.
RewrittenGraph replay(const Graph& model, std::span<const Rewrite> steps);

/// A line a place: "dot-chain at dot.31, dot.12".
std::string to_text(std::span<const Rewrite> steps);

}  // namespace stitchwork::rewriting
