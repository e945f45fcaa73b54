// One schedule a fusion (FusionStitching 2018, sections 4.2 and 4.3): every op with as many blocks,
// propagated from the roots to the operands, the sum of the ops' times the least. Fusions grow by producers,
// so what was propagated stays, and ways to cut that a producer cannot follow fall away.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planners/fusionstitching/deep/layers.h"
#include "analysis/planners/fusionstitching/deep/options.h"
#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/fusionstitching/shrinking.h"

namespace stitchwork::fusionstitching::deep {

using Sums = std::array<double, kBlockSizes.size()>;

/// A fusion under one schedule of its roots.
struct Cut {
  Schedule root;  ///< of the seeds
  std::int64_t blocks = 1;
  /// By place in Tuned::ops; none: bypassed, inlined wherever it is read.
  std::vector<std::optional<Schedule>> schedules;
  Sums us{};  ///< over ops that are not trivial, by size of the block
  /// Bytes of shared memory: all, those that cannot shrink, the largest of these.
  std::int64_t requested = 0, required = 0, largest = 0;
};

/// What is known of a unit that may be fused.
struct Tuned {
  std::vector<NodeId> ops;    ///< in the order in which they joined
  std::vector<NodeId> seeds;  ///< outputs of one shape that are cut alike
  std::vector<Cut> cuts;      ///< those that every op can follow, ascending by blocks
  double us = 0;              ///< the least sum of a cut that fits
};

/// A producer in the making of a fusion's.
struct Extension {
  struct Part {
    std::size_t cut = 0;  ///< of the fusion
    std::vector<std::optional<Schedule>> schedules;
    Sums us{};
    std::int64_t requested = 0, required = 0, largest = 0;
  };
  std::vector<NodeId> ops;
  std::vector<Part> parts;
  double us = 0;  ///< of both together
};

/// A schedule for each op, and the threads of a block.
struct Tuning {
  std::int64_t blocks = 1;
  int size = 0;     ///< place in kBlockSizes
  int threads = 1;  ///< that, unless an override says otherwise
  double us = 0;
  Schedule root;
  std::map<NodeId, Schedule> schedules;  ///< bypassed ops are absent
  bool fits_whole = true;                ///< nobody has to share or give up shared memory
};

class Tuner {
 public:
  /// All outlive it.
  Tuner(const Graph& graph, const Device& device, const Contraction& units, const Options& options,
        OpTimes& times);

  /// Of an op alone, or of several of one shape that nothing joins but their schedule.
  Tuned seed(const std::vector<NodeId>& ops);

  /// Section 4.3's "trivial" ops: they are inlined wherever they are read and cost nothing there; as outputs
  /// they have a loop as others do, and its time.
  bool is_trivial(const Node& node, const Schedule& schedule) const;

  /// The least of an op's own kernel.
  double alone_us(NodeId op);

  /// The ops of unit `producer`, of which alone the best takes `producer_us`, beside those of unit `fusion`;
  /// nothing where no schedule resolves. `why` then says so if it is asked for (rules fs18.no-schedule,
  /// fs18.shared-memory, fs18.not-optimized).
  std::optional<Extension> extend(NodeId fusion, const Tuned& tuned, NodeId producer, double producer_us,
                                  Verdict* why);
  void join(Tuned& tuned, Extension extension);

  /// Of a finished fusion's that fit, the one of the least sum; by a library then all sizes of blocks of it,
  /// and of those whose sums are as good as equal (kEqualSums), best first. Ties: fewer waves of threads,
  /// more blocks, larger blocks.
  std::vector<Tuning> choices(const Tuned& tuned);

  /// The fusion with the index maps that its kernel evaluates.
  Fusion fusion_of(const Tuned& tuned) const;
  /// Of the chosen cut, who asked for how much.
  std::vector<Request> requests_of(const Fusion& fusion, const std::map<NodeId, Schedule>& schedules) const;
  SharingRules sharing_rules() const;

  /// Whether Table 1, and intervals for what it bypasses, take `root`, a schedule of all the fusion's seeds,
  /// to all its ops: what the paper counts as satisfiable, whether or not our loops can be dealt so.
  bool is_satisfiable(const Tuned& tuned, const Schedule& root);

 private:
  struct Step {
    NodeId node = kNoNode;
    int operand = 0;
  };
  /// From a reader's operands through index maps to an op.
  struct Path {
    NodeId reader = kNoNode;
    std::vector<Step> steps;
  };
  using InFusion = std::function<bool(NodeId)>;
  /// An op that joins a fusion, whatever the schedule.
  struct Joining {
    NodeId op = kNoNode;
    std::vector<Path> paths;
    bool is_root = false;             ///< read outside, too
    std::optional<RequestClass> cls;  ///< of shared memory that it asks for
  };

  std::vector<Path> paths_to(NodeId op, const InFusion& inside) const;
  /// What a schedule of the path's reader becomes behind it.
  std::optional<Schedule> follow(const Path& path, Schedule schedule);
  std::optional<Schedule> cover(const Step& step, const Schedule& schedule);
  /// Of a dot those that Table 1 passes are all it has.
  bool has_schedule(const Node& node, const Schedule& schedule) const;
  Joining joining(NodeId op, const InFusion& inside) const;
  /// Finds the places at which loops evaluate the op; false if they are too many.
  bool add_places(const Joining& joining);
  /// Adds the op's schedule, time and bytes to `part`; false where it cannot follow.
  bool add_op(const Joining& joining, const Cut& cut, Extension::Part& part);
  void follow_cuts(const std::vector<Joining>& all, const Tuned& tuned, Extension& result);
  Cut total(const Tuned& tuned, const Extension::Part& part) const;
  void find_best(const Tuned& tuned, Extension& result);
  /// Whether the shared memory of `ops` suffices, after shrinking and sharing; `total`: of all of them.
  bool fits(const std::vector<NodeId>& ops, const Cut& total,
            const std::function<std::optional<Schedule>(NodeId)>& schedule_of) const;
  Fusion with_maps(std::vector<NodeId> ops) const;
  std::optional<Schedule> schedule_in(NodeId op, const Cut& cut, const Extension::Part& part) const;
  /// The place in kBlockSizes that an override of an op's block leaves; -1: all.
  int wanted_size(const std::vector<NodeId>& ops) const;
  double least(const Sums& us, int wanted) const;

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const Contraction& units_;
  const Options& options_;
  OpTimes& times_;
  std::vector<std::vector<NodeId>> users_;  ///< Computation::users()
  std::vector<int> place_;                  ///< of an op in its unit's Tuned
  std::vector<int> joining_;                ///< of an op in the extension in the making; -1
  /// Of an op in its fusion, the different indices at which loops evaluate it if all that may shrink does:
  /// each by a number, ascending.
  std::vector<std::vector<std::size_t>> places_;
  /// Who did not follow a schedule last, and whose rule refused it; kNoNode: no rule.
  NodeId refused_ = kNoNode, refuser_ = kNoNode;
  std::map<std::string, int> kinds_;  ///< of ops that bypassing looks at
  std::map<int, double> alone_;       ///< by OpTimes::kind
  std::map<std::tuple<int, int, int, std::int64_t, ScheduleType>, std::optional<Schedule>> covered_;
};

}  // namespace stitchwork::fusionstitching::deep
