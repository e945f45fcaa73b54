// The performance library of FusionStitching 2018, section 4.4: the time of one op's kernel by opcode, shape,
// schedule, threads and what is special to the op. What it does not have is modelled by a closed form.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/planners/fusionstitching/library_key.h"
#include "analysis/planners/fusionstitching/schedule.h"
#include "core/graph/graph.h"
#include "occupancy_model/device.h"

namespace stitchwork::fusionstitching {

/// A value: no file, no clock. Whoever reads one from a store (experiments/performance_library.h) hands it to
/// the planner (PlanOptions::library).
struct PerformanceLibrary {
  struct Entry {
    double us = 0;
    std::string method;  ///< "simulated", "measured"
  };
  std::string device;                    ///< id
  std::map<std::string, Entry> entries;  ///< by key text (library_key.h)
  std::string sha256;                    ///< of the file it was read from; "" if of none
};

/// Threads of a block that are tried: of section 4.4's multiples of 32 in [32, 1024] the powers of two.
inline constexpr std::array<int, 6> kBlockSizes = {32, 64, 128, 256, 512, 1024};

/// Microseconds of a kernel of `node` alone, its chunks dealt with by kernel.h chunk_mapping: a KernelWork
/// from counts in closed form, "modelled".
double modelled_us(const Computation& computation, const Device& device, const Node& node,
                   const Chunking& chunks, int threads, int warps);

/// How times are called that no library has.
inline constexpr std::string_view kModelledText = "modelled";

/// Times of one planning, each looked up or modelled once: ops that are alike share them.
class OpTimes {
 public:
  struct Best {
    double us = 0;
    int warps = 1;                            ///< a row
    std::string_view method = kModelledText;  ///< of `us`; the library's text
  };
  /// By place in kBlockSizes.
  using BySize = std::array<Best, kBlockSizes.size()>;

  OpTimes(const Graph& graph, const Computation& computation, const Device& device,
          const PerformanceLibrary* library);

  /// The same number of ops that are alike: of one opcode, of the same shapes.
  int kind(NodeId op);
  /// Of a schedule that is not strided.
  const BySize& best(NodeId op, const Schedule& schedule);
  bool by_library() const { return library_ != nullptr; }
  /// Keys that the library does not have, ascending. Ops without a key (library_key.h) are always modelled.
  const std::set<std::string>& misses() const { return misses_; }

 private:
  std::string kind_of(const Node& node) const;
  const PerformanceLibrary::Entry* find(const KeyOp& op, const Schedule& schedule, int threads, int warps);

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
