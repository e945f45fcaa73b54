// The contracted graph of a plan in the making: stitch ops, library calls and whatever else orders them are
// steps. It keeps, under joins of independent steps, what remote stitching asks for: who reaches whom, how
// deep a step lies, and how many bytes live at once.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/stitching/scope.h"

namespace stitchwork::astitch {

class StepGraph {
 public:
  /// Step i is stitch op i; the others follow.
  StepGraph(const Nodes& nodes, const std::vector<StitchOp>& stitch_ops);

  /// The step that `step` has become part of.
  int find(int step) const;
  /// Steps on the longest path to it.
  int level(int step) const { return steps_[index(step)].level; }
  /// Whether a path of any length leads from one to the other. Levels grow along edges, so only steps of the
  /// levels between the two are visited; no table of reachability is kept.
  bool reaches(int from, int to) const;

  /// Most bytes that steps in order keep alive: a value lives from the step that makes it to the last one
  /// that reads it, results to the end. Parameters and constants are not counted.
  std::int64_t peak_bytes() const;
  /// The same if the two, which must not reach each other, were one step.
  std::int64_t peak_bytes_joined(int a, int b);
  /// Makes them one step; returns it. Levels and order are repaired around it: first the steps between the
  /// two that the earlier does not reach, then both, then the rest (Pearce and Kelly, 2006).
  int join(int a, int b);

 private:
  struct Step {
    int parent = 0, level = 0, position = 0;
    std::vector<int> in, out;          ///< steps, ascending; may name steps that have become part of others
    std::vector<NodeId> reads, makes;  ///< values, ascending
  };
  struct Value {
    std::int64_t bytes = 0;
    int last_read = -1;  ///< position; -1: a result, never freed
  };
  /// A part of the order as it would be, with the bytes that live at and after each place.
  struct Span {
    int first = 0, last = 0;                         ///< positions
    std::vector<std::vector<int>> places;            ///< steps, two where they are joined
    std::vector<std::int64_t> peak, after;           ///< by place
    std::vector<std::pair<NodeId, int>> last_reads;  ///< value -> place
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  void connect(const Nodes& nodes, const std::vector<int>& step_of);
  void sort();
  Span joined(int a, int b);
  void measure(Span& span);
  void commit(const Span& span);
  void raise(int step);

  std::vector<Step> steps_;
  std::vector<Value> values_;               ///< by node
  std::vector<int> order_;                  ///< step at each position, -1 where one has gone
  std::vector<std::int64_t> peak_, after_;  ///< bytes alive at and after each position
  std::vector<int> place_of_;  ///< scratch of measure(): place of a value's last read in the span
  mutable std::vector<int> mark_;
  mutable int epoch_ = 0;
};

}  // namespace stitchwork::astitch
