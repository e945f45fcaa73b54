#include "analysis/plan/step_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/plan/plan_memory.h"

namespace stitchwork {

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
  // By step and stream: the last step there that has ended when it begins.
  std::vector<std::map<int, int>> ended(plan.steps.size());
  std::map<int, int> last;
  std::vector<std::vector<int>> result(plan.steps.size());
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
    for (const int p : dependences[s]) {
      const auto known = ended[s].find(plan.steps[static_cast<std::size_t>(p)].stream);
      if (known == ended[s].end() || known->second < p) result[s].push_back(p);
    }
    last[stream] = static_cast<int>(s);
  }
  return result;
}

}  // namespace stitchwork
