// The performance library of FusionStitching 2018, section 4.4: the time of one op's kernel by opcode, shape,
// schedule, threads and what is special to the op. What it does not have is modelled by a closed form.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/planners/fusionstitching/schedule.h"
#include "core/graph/graph.h"
#include "occupancy_model/device.h"

namespace stitchwork::fusionstitching {

/// A value: no file, no clock. Whoever reads one from a store hands it to the planner
/// (PlanOptions::library).
struct PerformanceLibrary {
  struct Entry {
    double us = 0;
    std::string method;  ///< "simulated", "measured"
  };
  std::string device;                    ///< id
  std::map<std::string, Entry> entries;  ///< by key text
};

/// Threads of a block that are tried: "a multiple of 32 in [32, 1024]", the powers of two of them.
inline constexpr std::array<int, 6> kBlockSizes = {32, 64, 128, 256, 512, 1024};

/// "reduce.add f32[16,64,64]{2} row 0/16 t256 w4": of a reduce the operand's shape and the reduced dims, w
/// the warps that share a row; of other ops the result's shape.
std::string key_text(const Graph& graph, const Computation& computation, const Node& node,
                     const Schedule& schedule, int threads, int warps);

/// Microseconds of a kernel of `node` alone, its chunks dealt with by kernel.h chunk_mapping: a KernelWork
/// from counts in closed form, "modelled".
double modelled_us(const Computation& computation, const Device& device, const Node& node,
                   const Chunking& chunks, int threads, int warps);

/// Times of one planning, each looked up or modelled once: ops that are alike share them.
class OpTimes {
 public:
  struct Best {
    double us = 0;
    int warps = 1;  ///< a row
  };
  /// By place in kBlockSizes.
  using BySize = std::array<Best, kBlockSizes.size()>;

  OpTimes(const Graph& graph, const Computation& computation, const Device& device,
          const PerformanceLibrary* library);

  /// The same number of ops that are alike: of one opcode, of the same shapes.
  int kind(NodeId op);
  /// Of a schedule that is not strided.
  const BySize& best(NodeId op, const Schedule& schedule);
  /// Keys that the library does not have, ascending.
  const std::set<std::string>& misses() const { return misses_; }

 private:
  std::string kind_of(const Node& node) const;

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const PerformanceLibrary* library_;
  std::unordered_map<std::string, int> kinds_;  ///< of ops that are alike
  std::vector<int> kind_;                       ///< by op; -1: not looked at yet
  std::map<std::tuple<int, int, std::int64_t, ScheduleType>, BySize> known_;
  std::set<std::string> misses_;
};

}  // namespace stitchwork::fusionstitching
