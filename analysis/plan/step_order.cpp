#include "analysis/plan/step_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "analysis/plan/plan_memory.h"

namespace stitchwork {
namespace {

/// By step and stream: the last step there that has ended when it begins.
std::vector<std::map<int, int>> ended_before(const FusionPlan& plan) {
  std::vector<std::map<int, int>> ended(plan.steps.size());
  std::map<int, int> last;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto learn = [&](int of) {
      if (of < 0 || of >= static_cast<int>(s)) return;
      const auto raise = [&](int stream, int step) {
        int& known = ended[s].try_emplace(stream, step).first->second;
        known = std::max(known, step);
      };
      raise(plan.steps[static_cast<std::size_t>(of)].stream, of);
      for (const auto& [stream, step] : ended[static_cast<std::size_t>(of)]) raise(stream, step);
    };
    const int stream = plan.steps[s].stream;
    if (const auto before = last.find(stream); before != last.end()) learn(before->second);
    for (const int wait : plan.steps[s].waits) learn(wait);
    last[stream] = static_cast<int>(s);
  }
  return ended;
}

}  // namespace

bool uses_streams(const FusionPlan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const PlanStep& s) { return s.stream > 0; });
}

std::vector<std::vector<int>> step_dependences(const Graph& graph, const FusionPlan& plan) {
  const std::vector<Traffic> traffic = traffic_of_steps(graph, plan);
  std::vector<std::vector<int>> before(traffic.size());
  std::map<NodeId, int> writer;
  std::map<NodeId, std::vector<int>> readers;
  for (std::size_t s = 0; s < traffic.size(); ++s) {
    std::set<int> found;
    const auto add_writer = [&](NodeId buffer) {
      if (const auto w = writer.find(buffer); w != writer.end()) found.insert(w->second);
    };
    for (const NodeId buffer : traffic[s].reads) add_writer(buffer);
    for (const NodeId buffer : traffic[s].writes) {
      add_writer(buffer);
      found.insert(readers[buffer].begin(), readers[buffer].end());
    }
    found.erase(static_cast<int>(s));
    before[s].assign(found.begin(), found.end());
    for (const NodeId buffer : traffic[s].reads) readers[buffer].push_back(static_cast<int>(s));
    for (const NodeId buffer : traffic[s].writes) {
      writer[buffer] = static_cast<int>(s);
      readers[buffer].clear();
    }
  }
  return before;
}

std::vector<std::vector<int>> unordered_dependences(const FusionPlan& plan,
                                                    const std::vector<std::vector<int>>& dependences) {
  const std::vector<std::map<int, int>> ended = ended_before(plan);
  std::vector<std::vector<int>> result(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for (const int p : dependences[s]) {
      const auto known = ended[s].find(plan.steps[static_cast<std::size_t>(p)].stream);
      if (known == ended[s].end() || known->second < p) result[s].push_back(p);
    }
  return result;
}

std::vector<std::size_t> last_steps_beside(const FusionPlan& plan) {
  std::vector<std::size_t> last(plan.steps.size());
  std::iota(last.begin(), last.end(), std::size_t{0});
  if (!uses_streams(plan)) return last;
  const std::vector<std::map<int, int>> ended = ended_before(plan);
  std::map<int, std::vector<std::size_t>> streams;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) streams[plan.steps[s].stream].push_back(s);
  for (const auto& [stream, steps] : streams) {
    // By n the last step that begins behind the first n of this stream and no more: what comes behind those n
    // may still run then.
    std::vector<std::size_t> unaware(steps.size() + 1, 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const auto known = ended[s].find(stream);
      const auto through = known == ended[s].end()
                               ? steps.begin()
                               : std::ranges::upper_bound(steps, static_cast<std::size_t>(known->second));
      unaware[static_cast<std::size_t>(through - steps.begin())] = s;
    }
    std::size_t most = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      most = std::max(most, unaware[i]);
      last[steps[i]] = std::max(most, steps[i]);
    }
  }
  return last;
}

std::vector<int> shuffled_steps(const FusionPlan& plan, std::uint32_t seed) {
  const std::size_t count = plan.steps.size();
  std::vector<std::vector<std::size_t>> behind(count);
  std::vector<int> open(count, 0);  // steps that have to end before it
  std::map<int, std::size_t> last;
  for (std::size_t s = 0; s < count; ++s) {
    const auto order = [&](std::size_t before) {
      behind[before].push_back(s);
      ++open[s];
    };
    if (const auto at = last.find(plan.steps[s].stream); at != last.end()) order(at->second);
    for (const int wait : plan.steps[s].waits) order(static_cast<std::size_t>(wait));
    last[plan.steps[s].stream] = s;
  }
  std::vector<std::size_t> ready;
  for (std::size_t s = 0; s < count; ++s)
    if (open[s] == 0) ready.push_back(s);
  std::mt19937 random(seed);
  std::vector<int> order;
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t next = ready.back();
    ready.pop_back();
    order.push_back(static_cast<int>(next));
    for (const std::size_t s : behind[next])
      if (--open[s] == 0) ready.push_back(s);
  }
  return order;
}

}  // namespace stitchwork
