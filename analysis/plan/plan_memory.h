// What a plan takes of the device's memory, and when: the one rule by which runs free buffers, checks ask for
// memory and dumps tell the peak.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/plan/traffic.h"

namespace stitchwork {

/// The traffic of each step of the plan.
std::vector<Traffic> traffic_of_steps(const Graph& graph, const FusionPlan& plan);

/// A buffer, from the first step that touches it to the last, or to the last one that may begin before that
/// has ended, on another stream; of what a step done once has made, to the plan's last.
struct BufferLife {
  NodeId owner = kNoNode;  ///< storage_of
  std::int64_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;         ///< the number of steps: it holds a result, which the caller takes
  std::vector<NodeId> aliases;  ///< other names of its values (plan_memory)
  bool alive_at(std::size_t step) const { return first <= step && step <= last; }
};

/// Of every buffer that a step of the plan touches, by owner; `steps`: the traffic of its steps.
std::vector<BufferLife> buffer_lives(const Computation& computation, const FusionPlan& plan,
                                     std::span<const Traffic> steps);

/// Memory of a plan, modelled: runs allocate a buffer before its first step and free it after its last.
struct PlanMemory {
  struct Step {
    std::int64_t buffers = 0;  ///< bytes of those alive
    /// Scratch of the kernel, or the peak of what the loop or branch runs; of a plan with several streams the
    /// most that the steps of each take, as each has its own.
    std::int64_t beside = 0;
  };
  std::vector<BufferLife> buffers;  ///< by first step, then owner
  std::vector<Step> steps;
  std::int64_t peak_bytes = 0;
  std::size_t peak_step = 0;  ///< the first that has it
};

/// Tuples are no buffers: their elements are. `with_tuples`: they count as well, as the host holds those of
/// calls, loops and branches.
PlanMemory plan_memory(const Graph& graph, const FusionPlan& plan, bool with_tuples = false);

/// "parameter", "constant", "element" of a tuple, "result" or "value".
std::string_view role_of_buffer(const Computation& computation, const PlanMemory& memory,
                                const BufferLife& buffer);

}  // namespace stitchwork
