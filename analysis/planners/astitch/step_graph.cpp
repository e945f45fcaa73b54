#include "analysis/planners/astitch/step_graph.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

#include "core/base/error.h"

namespace stitchwork::astitch {
namespace {

template <typename T>
void sort_unique(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

template <typename T>
void unite(std::vector<T>& into, const std::vector<T>& added) {
  std::vector<T> both;
  std::set_union(into.begin(), into.end(), added.begin(), added.end(), std::back_inserter(both));
  into = std::move(both);
}

}  // namespace

StepGraph::StepGraph(const Nodes& nodes, const std::vector<StitchOp>& stitch_ops)
    : steps_(stitch_ops.size()), values_(nodes.facts.size()), place_of_(nodes.facts.size(), -1) {
  std::vector<int> step_of(nodes.facts.size(), -1);
  for (std::size_t s = 0; s < stitch_ops.size(); ++s) {
    for (const NodeId id : stitch_ops[s].members) {
      SW_CHECK(step_of[index(id)] < 0, "{} is in two stitch ops", nodes.name(id));
      step_of[index(id)] = static_cast<int>(s);
    }
    steps_[s].makes = stitch_ops[s].outputs;
  }
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.facts.size()); ++id) {
    if (step_of[index(id)] >= 0 || !is_step(nodes[id])) continue;
    step_of[index(id)] = static_cast<int>(steps_.size());
    steps_.emplace_back();
    // Tuples and their elements are names of buffers that others made.
    if (nodes[id].role != PlanRole::kAlias) steps_.back().makes.push_back(id);
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s].parent = static_cast<int>(s);
  mark_.assign(steps_.size(), 0);
  connect(nodes, step_of);
  sort();
}

void StepGraph::connect(const Nodes& nodes, const std::vector<int>& step_of) {
  for (const Step& step : steps_) {
    for (const NodeId id : step.makes) values_[index(id)].bytes = nodes.bytes(id);
  }
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.facts.size()); ++id) {
    const int reader = step_of[index(id)];
    if (reader < 0) continue;
    for (const NodeId producer : producers(nodes, id)) {
      const int maker = step_of[index(producer)];
      if (maker == reader) continue;
      steps_[index(reader)].in.push_back(maker);
      steps_[index(maker)].out.push_back(reader);
      steps_[index(reader)].reads.push_back(producer);
    }
  }
  for (Step& step : steps_) {
    sort_unique(step.in);
    sort_unique(step.out);
    sort_unique(step.reads);
  }
}

/// Among the steps that are ready, the one with the smallest last value goes first, as in the plan.
void StepGraph::sort() {
  using Entry = std::pair<NodeId, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::size_t> missing(steps_.size());
  const auto key = [&](int s) {
    const Step& step = steps_[index(s)];
    return step.makes.empty() ? static_cast<NodeId>(values_.size()) : step.makes.back();
  };
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    missing[index(s)] = steps_[index(s)].in.size();
    if (missing[index(s)] == 0) ready.emplace(key(s), s);
  }
  while (!ready.empty()) {
    const int s = ready.top().second;
    ready.pop();
    steps_[index(s)].position = static_cast<int>(order_.size());
    order_.push_back(s);
    for (const int next : steps_[index(s)].out) {
      steps_[index(next)].level = std::max(steps_[index(next)].level, steps_[index(s)].level + 1);
      if (--missing[index(next)] == 0) ready.emplace(key(next), next);
    }
  }
  SW_CHECK(order_.size() == steps_.size(), "the stitch ops depend on each other in a cycle");
  if (order_.empty()) return;

  for (const Step& step : steps_) {
    for (const NodeId id : step.reads) {
      values_[index(id)].last_read = std::max(values_[index(id)].last_read, step.position);
    }
  }
  peak_.resize(order_.size());
  after_.resize(order_.size());
  Span whole;
  whole.last = static_cast<int>(order_.size()) - 1;
  for (const int s : order_) whole.places.push_back({s});
  measure(whole);
  commit(whole);
}

int StepGraph::find(int step) const {
  while (steps_[index(step)].parent != step) step = steps_[index(step)].parent;
  return step;
}

bool StepGraph::reaches(int from, int to) const {
  ++epoch_;
  std::vector<int> stack{from};
  while (!stack.empty()) {
    const int s = stack.back();
    stack.pop_back();
    for (const int out : steps_[index(s)].out) {
      const int next = find(out);
      if (next == to) return true;
      if (mark_[index(next)] == epoch_ || level(next) >= level(to)) continue;
      mark_[index(next)] = epoch_;
      stack.push_back(next);
    }
  }
  return false;
}

std::int64_t StepGraph::peak_bytes() const {
  return peak_.empty() ? 0 : *std::max_element(peak_.begin(), peak_.end());
}

/// Fills in what lives where; the span's places hold all steps of its positions.
void StepGraph::measure(Span& span) {
  for (std::size_t p = 0; p < span.places.size(); ++p) {
    for (const int s : span.places[p]) {
      for (const NodeId id : steps_[index(s)].reads) {
        const int last = values_[index(id)].last_read;
        if (last < 0 || last > span.last) continue;
        if (place_of_[index(id)] < 0) span.last_reads.emplace_back(id, -1);
        place_of_[index(id)] = static_cast<int>(p);
      }
    }
  }
  std::vector<std::int64_t> freed(span.places.size(), 0);
  for (auto& [id, place] : span.last_reads) {
    place = std::exchange(place_of_[index(id)], -1);
    freed[index(place)] += values_[index(id)].bytes;
  }
  std::int64_t alive = span.first == 0 ? 0 : after_[index(span.first - 1)];
  for (std::size_t p = 0; p < span.places.size(); ++p) {
    for (const int s : span.places[p]) {
      for (const NodeId id : steps_[index(s)].makes) alive += values_[index(id)].bytes;
    }
    span.peak.push_back(alive);
    alive -= freed[p];
    span.after.push_back(alive);
  }
}

StepGraph::Span StepGraph::joined(int a, int b) {
  if (steps_[index(a)].position > steps_[index(b)].position) std::swap(a, b);
  Span span;
  span.first = steps_[index(a)].position;
  span.last = steps_[index(b)].position;
  ++epoch_;
  std::vector<int> stack{a};
  while (!stack.empty()) {
    const int s = stack.back();
    stack.pop_back();
    for (const int out : steps_[index(s)].out) {
      const int next = find(out);
      if (mark_[index(next)] == epoch_ || steps_[index(next)].position >= span.last) continue;
      mark_[index(next)] = epoch_;
      stack.push_back(next);
    }
  }
  std::vector<int> reached;
  for (int p = span.first + 1; p < span.last; ++p) {
    const int s = order_[index(p)];
    if (s < 0) continue;
    if (mark_[index(s)] == epoch_) {
      reached.push_back(s);
    } else {
      span.places.push_back({s});
    }
  }
  span.places.push_back({a, b});
  for (const int s : reached) span.places.push_back({s});
  measure(span);
  return span;
}

std::int64_t StepGraph::peak_bytes_joined(int a, int b) {
  const Span span = joined(a, b);
  std::int64_t peak = *std::max_element(span.peak.begin(), span.peak.end());
  for (std::size_t p = 0; p < peak_.size(); ++p) {
    if (static_cast<int>(p) < span.first || static_cast<int>(p) > span.last) peak = std::max(peak, peak_[p]);
  }
  return peak;
}

void StepGraph::commit(const Span& span) {
  const auto position = [&](int place) { return index(span.first + place); };
  for (int p = 0; p < static_cast<int>(span.places.size()); ++p) {
    order_[position(p)] = span.places[index(p)].front();
    steps_[index(order_[position(p)])].position = static_cast<int>(position(p));
    peak_[position(p)] = span.peak[index(p)];
    after_[position(p)] = span.after[index(p)];
  }
  for (auto p = position(static_cast<int>(span.places.size())); p <= index(span.last); ++p) {
    order_[p] = -1;
    peak_[p] = after_[p] = span.after.back();
  }
  for (const auto& [id, place] : span.last_reads) {
    values_[index(id)].last_read = static_cast<int>(position(place));
  }
}

int StepGraph::join(int a, int b) {
  commit(joined(a, b));
  if (steps_[index(a)].position > steps_[index(b)].position) std::swap(a, b);
  Step& into = steps_[index(a)];
  Step& gone = steps_[index(b)];
  gone.parent = a;
  into.level = std::max(into.level, gone.level);
  unite(into.in, gone.in);
  unite(into.out, gone.out);
  unite(into.reads, gone.reads);
  unite(into.makes, gone.makes);
  into.position = std::min(into.position, gone.position);
  gone = Step{.parent = a, .level = 0, .position = 0, .in = {}, .out = {}, .reads = {}, .makes = {}};
  raise(a);
  return a;
}

/// Steps behind it lie deeper than it.
void StepGraph::raise(int step) {
  std::vector<int> stack{step};
  while (!stack.empty()) {
    const int s = stack.back();
    stack.pop_back();
    for (const int out : steps_[index(s)].out) {
      Step& next = steps_[index(find(out))];
      if (next.level > level(s)) continue;
      next.level = level(s) + 1;
      stack.push_back(find(out));
    }
  }
}

}  // namespace stitchwork::astitch
