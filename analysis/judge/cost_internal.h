// Counts what the groups of a kernel do, phase by phase, from the plan (analysis/judge/cost.h). Its parts are
// sources of their own: instructions, loads and stores, DRAM, and the time of it all.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/judge/cost_access.h"
#include "analysis/judge/cost_choices.h"
#include "analysis/plan/plan.h"
#include "analysis/schedule/evaluations.h"

namespace stitchwork::costs {

class KernelCounter {
 public:
  KernelCounter(const Graph& graph, const Device& device, const KernelPlan& kernel);

  KernelCost run(const KernelEvaluations& found) { return *run(found, kNoLimit); }
  /// nullopt: it takes more than `most_us`.
  std::optional<KernelCost> run(const KernelEvaluations& found, double most_us);

 private:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  /// A thread's requests.
  struct ThreadLoads {
    double together = 0;  ///< of one element or row: loads_of_expressions()
    double vector = 0;    ///< of all arrays for one element or vector, those behind a guard left out
    double staged = 0;    ///< of a range, all of which are in flight together
    double accesses = 0;  ///< of all warps
    /// Of `accesses` those that are asynchronous copies; requests of a warp for all these, of all tasks that
    /// it has asked for.
    double copies = 0, copied = 0;
    /// Of `accesses` those of partials that are folded; requests of a warp for these, over all accesses.
    double folds = 0, folded = 0;
    /// Loads behind one condition, in a block of code of their own: accesses of all warps, and a thread's
    /// requests.
    struct Block {
      double accesses = 0, requests = 0;
    };
    std::map<std::tuple<int, std::vector<Constraint>, bool>, Block> blocks;
    double guarded = 0;  ///< of `accesses` those in these
  };

  /// What is done between two grid barriers.
  struct Phase {
    /// Of each loop in turn, by the blocks it runs on; without a deal what all blocks do alike.
    std::vector<std::pair<std::optional<Deal>, ThreadWork>> work;
    double dram_bytes = 0;
    double same_address_atomics = 0;  ///< Stretch's
    /// Of rows that registers do not hold: what is loaded of them behind the first step or group, and what of
    /// them the blocks that are resident at a time go through.
    double bytes_again = 0, resident_bytes = 0;
    /// Loops over tasks of blocks [first, first + number), alike ones under one key.
    std::map<std::tuple<int, std::int64_t, int, std::size_t>, std::set<std::pair<std::int64_t, std::int64_t>>>
        loops;
  };
  /// What the loop being counted does in the phase that is.
  ThreadWork& now();
  int level_of(NodeId op) const;
  int blocks_per_sm() const;
  Layout layout_of(const Group& group) const { return Layout(group.mapping, kernel_.launch.block); }
  void count_group(const Group& group, const GroupEvaluations& found);

  // analysis/judge/cost_instructions.cpp
  /// Warps that run through a group's tasks: all of the block, also those that have nothing to do.
  double warp_tasks(const Deal& deal) const;
  /// Of a warp in a task that goes over its elements so many times, averaged over those that have nothing to
  /// do and come to the guards alone.
  double task_instructions(const Group& group, double passes) const;
  /// Value `v` of the group; `steps`: so many compute it.
  void count_value(const Group& group, const GroupEvaluations& found, int v, const Choices& choices,
                   int steps);
  /// Of a value that is computed, in a branch or not.
  void count_op(const Group& group, const GroupEvaluations& found, int v, const Choices& choices, int steps);
  /// Instructions of the units that compute in this type; 16-bit floats are computed in f32.
  double& arithmetic(DType dtype);
  /// Of accumulating one element.
  double combining_instructions(const Node& reduce) const;
  /// The threads of a row add up what each of them has.
  void count_combining(const Group& group, const Node& reduce);
  /// The same of columns in vectors (analysis/schedule/layout.h, ColumnVectors), with what their guards take.
  void count_column_vectors(const Group& group, const Node& reduce);
  /// And, in a cluster, the blocks.
  void count_exchange(const Deal& deal, double warps);
  /// Behind its tasks every block adds up, an accumulator a thread at a time, what the rows of its last task
  /// have, and writes the partials; where the result is an output, they are folded in the next phase.
  void count_across(const Group& group, const Node& reduce);
  /// By tiles of columns, on as many blocks.
  void count_fold_across(const Group& group, const Node& reduce);
  /// Elements gathered for a later reduction in the pass of an earlier one, in place of what it is made of
  /// and of adding that up.
  void count_gathering(NodeId reduce, double elements);
  double warps_per_block() const;
  /// The group's steps in a loop over tasks of the phase.
  void count_step(const Group& group);
  /// What every warp of the launch executes before its first task, and to choose its loops over tasks.
  void count_blocks();

  // analysis/judge/cost_loads.cpp
  /// Requests of a warp for a value whose tiles are filled by asynchronous copies, those of so many tasks at
  /// a time; 0 where it moves otherwise.
  double copied_in_flight(const Group& group, const Shape& shape, bool through_tile) const;
  /// An output left in partials is folded in the phase behind the one that leaves them.
  void count_fold(const Node& reduce, std::int64_t partials);
  /// What a group's warps load of a value.
  struct WarpLoads {
    double accesses = 0, times = 1;  ///< of one element each, of a step; steps that load from memory
    double executed = 0;             ///< loads of warps, whatever part of their lanes has an element
    int at_once = 1;                 ///< elements of a load
    double copied = 0;               ///< copied_in_flight()
  };
  /// Value `v`; `again`: in so many steps more.
  void count_load(const Group& group, const Evaluation& e, int v, const Choices& choices, int again,
                  ThreadLoads& loads);
  /// A value a col, which a block has in a tile: filled in every task, or before the first.
  void count_staged_cols(const Group& group, const Evaluation& e, double accesses);
  bool kept_in_shared(const Group& group, NodeId op) const;
  /// Into the tile, `moved` elements at once (0: copied there, which takes no instruction more), and out of
  /// it: no two lanes share a bank.
  void count_through_tile(double accesses, int times, int moved, int vector, int bytes);
  /// Loads and stores of global memory, by warps, and the sectors they touch.
  void count_in_l1(double requests, double sectors);
  /// Stores or loads of kept elements in shared memory: a lane a bank.
  void count_kept(double accesses);
  /// Those of one element or row that the code has in flight together: ptxas moves loads ahead of the
  /// arithmetic between them (docs/simulator.md, "Loads in flight"), but not ahead of a branch or of their
  /// own index.
  double loads_of_expressions(const Group& group, const GroupEvaluations& found, const Choices& choices,
                              int level) const;
  void count_load_instructions(const Group& group, const Evaluation& e, int v, const Choices& choices,
                               const WarpLoads& of);
  void count_load_sectors(const Group& group, const Evaluation& e, const WarpLoads& of);
  /// What a thread has in flight together with the loads of other arrays.
  void count_together(const Group& group, const Evaluation& e, const WarpLoads& of, ThreadLoads& loads) const;
  /// A load behind a condition: those behind one are in flight together, and with no others.
  void count_in_block(const Choices& choices, int v, double accesses, double requests, ThreadLoads& loads);
  /// Of `touched` sectors of all warps those that the L1 does not have: the first of each in a block.
  double beyond_l1(const Group& group, const Evaluation& e, double touched) const;
  /// What a group loads of one array under several maps, or in windows that overlap, comes from the L2 once a
  /// task where the L1 holds it.
  void note_reads(const Group& group, const Evaluation& e, double sectors);
  void count_reads_once(const Group& group);
  /// How many of a group's loads a thread has in flight before the first use.
  void count_in_flight(const Group& group, const ThreadLoads& loads);
  /// What is at one place of an array: the address is a constant.
  static constexpr double kNoAddress = std::numeric_limits<double>::infinity();
  /// `together`: so many of an array have one address computed.
  void count_accesses(double accesses, double together = 1);
  /// Accesses of an array that follow each other.
  double accesses_together(const Group& group) const;
  /// Stores of one warp each. A value of the row is stored by one lane of those that reduced it, or by as
  /// many lanes as a task has rows.
  double store_accesses(const Group& group, NodeId op, const Placement& placed) const;
  void count_store(const Group& group, NodeId op, const Placement& placed);

  // analysis/judge/cost_dram.cpp
  /// Groups of a lane that go through the same rows in the same tasks read together; others come by at
  /// another time.
  std::size_t pass_of(const Group& group);
  /// The group reads so many bytes of the value that `e` loads, in the level of its root; all together
  /// `most`. What another group of the pass has read before comes again where neither registers, nor the L1,
  /// nor the L2 hold it.
  void touch(const Group& group, const Evaluation& e, double bytes, double most);
  /// Whether what a group of mapping `before` read is still in registers, or in the L1 whatever there is.
  bool kept_from(const Mapping& before, const Group& group, DType dtype) const;
  void write(std::int64_t bytes);
  /// Of the rows those that resident blocks have at a time.
  double resident_share(const Group& group) const;
  /// Every input byte comes from DRAM once; again in a later phase, and for groups that read it at another
  /// time, if what the kernel touches exceeds the L2.
  /// Scratch is written to DRAM in the end; it is read from the L2 unless it, with the inputs, does not fit.
  /// Rows that registers do not hold are read again from L2 as far as those of the resident blocks leave room
  /// there for what is written.
  void count_dram();
  /// By the phases that make what is in it.
  void write_scratch();
  /// Addresses that do not fit the arguments come from memory once, and each block reads those of a group.
  void count_table();

  // analysis/judge/cost_time.cpp
  /// A phase of which all blocks are resident: groups may run on few of them (lanes), and blocks are dealt to
  /// SMs in turn.
  Stretch at_once(const Phase& phase, const ThreadWork& all) const;
  /// One of which they are not: what one wave leaves idle the next fills, but a block that has more to do
  /// than others, as that of a loop of one task, may end behind them.
  std::vector<Stretch> in_waves(const Phase& phase, const ThreadWork& all, double dram_sectors) const;
  /// Of columns alone, one task an SM: what a block of a whole tile does over the average, which the last
  /// tile lowers.
  double fullest_tile() const;
  /// What issuing all that has been counted takes if it is dealt evenly, which the kernel's time is never
  /// less than.
  double least_us() const;
  void finish();
  /// What the time is made of and what tells what it leaves out.
  void describe(const KernelTime& time);
  /// Adds a phase to the kernel's totals and to what is timed; returns its instructions, were all SMs as busy
  /// as the busiest.
  double add_phase(Phase& phase, LaunchWork& timed);

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const KernelPlan& kernel_;
  std::unordered_set<NodeId> inside_, outputs_;
  bool multiplies_ = false;  ///< whether a product is among the kernel's ops
  std::map<NodeId, double> evaluated_;
  using Pass = std::tuple<int, std::int64_t, std::int64_t, std::int64_t>;  ///< lane, tasks, blocks, elements
  std::vector<Pass> passes_;
  struct Touched {
    double bytes = 0;
    const Group* by = nullptr;  ///< the group that read it last
    bool again = false;         ///< of what it has in bytes_again
  };
  std::map<NodeId, std::map<std::pair<int, std::size_t>, Touched>> touched_;  ///< buffer -> level, pass
  struct Reads {
    double sectors = 0;    ///< of all maps
    bool again = false;    ///< some of them for the second time
    Interval places = {};  ///< between which a task reads
  };
  std::map<std::pair<int, NodeId>, Reads> reads_;  ///< of the group being counted, by level and array
  std::map<int, Phase> phases_;
  int level_ = 0;                                ///< being counted
  std::optional<Deal> deal_;                     ///< of what is being counted
  bool rows_in_l1_ = false;                      ///< of the group being counted: what is loaded again
  double loads_made_ = 0, loads_in_flight_ = 0;  ///< accesses, and times those in flight at once
  KernelWork work_;
  KernelCost cost_;
};

}  // namespace stitchwork::costs
