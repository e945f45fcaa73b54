#include "analysis/forms/vectors.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/judge/cost_access.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/stages.h"
#include "analysis/schedule/tiles.h"
#include "core/base/sorted.h"
#include "core/index/buffer.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {
namespace {

/// In flight an SM at full bandwidth (docs/planners/astitch.md).
constexpr double kBytesInFlight = 32 * 1024;
/// Twice as many of less than a word, and of columns, which want twice as much in flight of fewer threads.
/// A choice, not measured: with more, registers are left to nothing else.
constexpr double kMostVectors = 4;
// No quantity: bytes of an int.
constexpr double kWordBytes = 4;
/// The share of a thread's registers that loads in flight may take.
/// A choice, not measured: three quarters are left for addresses, accumulators and what is kept.
constexpr int kRegisterShare = 4;

/// Values that an unrolled loop over columns computes or loads, at the most: as measured with ptxas 13.0
/// (sm_70 and sm_80, sums of a training step of RNNs at 128 registers a thread), 100 and more values unrolled
/// 8 times spilled 1,000 bytes, 60 values 168, and neither did unrolled 4 times.
constexpr double kMostUnrolledValues = 256;

/// What the elements of a group move, in bytes an element.
struct Moved {
  double vectors = 0, scalars = 0;  ///< by how it could move
  /// Loads of the domain's own elements, each array once, that need no guard (those of a choice, concatenate
  /// or pad, wait for it). What a row has in common with the others comes from L2.
  double loads = 0;
  /// The loads of a step, which are in flight together; those of later ones wait for its results.
  struct Together {
    double elements = 0, vectors = 0;  ///< bytes an element; bytes of what a vector's elements have in common
    double loads = 0;
  };
  std::vector<Together> steps;
  int widest = 1;  ///< of what could move in vectors, in bytes
};

bool follows_lanes(const IndexMap& map, const Layout& layout) {
  return std::any_of(map.results.begin(), map.results.end(),
                     [&](const IndexExpr& e) { return e.uses_dim(layout.lane_dim); });
}

/// Another element in each row of a row_pack or row_split domain of several.
bool follows_rows(const IndexMap& map, const Mapping& mapping) {
  const bool shared = packs_rows(mapping) || is<mapping::Segments>(mapping);
  if (!shared || extents(mapping).rows == 1) return true;
  return std::any_of(map.results.begin(), map.results.end(),
                     [](const IndexExpr& e) { return e.uses_dim(0); });
}

/// The phases and stages of the steps that come first to read a value of the group.
class FirstReaders {
 public:
  using Step = std::pair<int, int>;

  /// `stages`: of the kernel, by phase; those that are asked for come to be.
  FirstReaders(const Computation& computation, const KernelPlan& kernel, const Group& group,
               std::map<int, Stages>& stages) {
    std::map<int, std::vector<NodeId>> made;  // by phase
    for (const NodeId op : materialised(KernelPlan{.groups = {group}}))
      made[kernel.levels.at(op)].push_back(op);
    for (const auto& [level, ops] : made)
      stages_.emplace(level,
                      stages.try_emplace(level, computation, kernel, level).first->second.first_reads(ops));
  }

  Step of(NodeId value, int level) const {
    const auto& stages = stages_.at(level);
    const auto first = stages.find(value);
    return {level, first == stages.end() ? std::numeric_limits<int>::max() : first->second};
  }

 private:
  std::map<int, std::unordered_map<NodeId, int>> stages_;  ///< by phase and value
};

/// `found`: what the group evaluates; `stages`: FirstReaders.
Moved moved(const Computation& computation, const KernelPlan& kernel, const Group& group,
            const Mapping& mapping, const GroupEvaluations& found, std::map<int, Stages>& stages) {
  Moved result;
  const Layout layout(mapping, kernel.launch.block);
  const FirstReaders readers(computation, kernel, group, stages);
  std::map<FirstReaders::Step, Moved::Together> steps;
  std::set<NodeId> loaded;
  const auto add = [&](NodeId op, const IndexMap& map, bool load, NodeId root) {
    // What is read from shared memory moves element by element.
    const auto scheme = kernel.schemes.find(op);
    const bool only_shared = scheme != kernel.schemes.end() && scheme->second == Scheme::kRegional;
    if (load ? reads_shared(kernel, op, root) : only_shared) return;
    if (!follows_lanes(map, layout)) return;
    const Node& node = computation.node(op);
    const int bytes = byte_size(node.shape.dtype);
    const IndexExpr offset = simplify(buffer_offset(node, map.results), map);
    const Movement movement = layout.movement(offset, map);
    if (load && movement == Movement::kOneForAll) {  // loaded once for a vector
      Moved::Together& step = steps[readers.of(op, kernel.levels.at(root))];
      step.vectors += kWordBytes;
      ++step.loads;
      return;
    }
    if (load && map.runtime.empty() && layout.holds(map) && follows_rows(map, mapping) &&
        loaded.insert(op).second) {
      result.loads += bytes;
      Moved::Together& step = steps[readers.of(op, kernel.levels.at(root))];
      step.elements += bytes;
      ++step.loads;
    }
    // A peeled row's last vector reaches into the next row, which the kernel may be writing.
    const bool reaches = layout.peeled && load && kernel.schemes.contains(op);
    const bool vector = movement == Movement::kVector && !reaches;
    (vector ? result.vectors : result.scalars) += bytes;
    if (vector) result.widest = std::max(result.widest, bytes);
  };
  for (const Evaluation& e : found.values)
    if (e.load) add(e.op, e.map, true, e.root);
  for (const NodeId op : materialised(KernelPlan{.groups = {group}}))
    if (const auto placed = found.placements->find(op);
        placed != found.placements->end() && placed->second.coverage == Coverage::kFull)
      add(op, placed->second.map, false, op);
  for (const auto& [at, step] : steps) result.steps.push_back(step);
  return result;
}

/// Bytes that a thread has in flight with vectors of so many elements, on the average of its loads.
double in_flight_together(const Moved& moved, int vector) {
  double bytes = 0, loads = 0;
  for (const Moved::Together& step : moved.steps) {
    bytes += step.loads * (step.elements * vector + step.vectors);
    loads += step.loads;
  }
  return loads > 0 ? bytes / loads : 0;
}

/// Of an element that the group computes from its operands: of a reduction's operand.
int computed_bytes(const Computation& computation, const Group& group) {
  const Node& dominant = computation.node(group.dominant);
  const bool reduces = def(dominant.op).cls == OpClass::kReduce;
  return byte_size(computation.node(reduces ? dominant.operands[0] : group.dominant).shape.dtype);
}

/// The vector an element-wise task of another group's share can have.
int whole_vectors(const Computation& computation, const Group& group, int vector_bytes) {
  const std::int64_t rows = extents(group.mapping).rows, of_task = task_rows(group.mapping);
  int vector = vector_bytes / byte_size(computation.node(group.dominant).shape.dtype);
  while (vector > 1 && (rows % vector != 0 || of_task % vector != 0)) vector /= 2;
  return std::max(1, vector);
}

}  // namespace

void settle_vectors(const Computation& computation, const Device& device, KernelPlan& kernel,
                    int vector_bytes) {
  const KernelLaunch& launch = kernel.launch;
  const double resident = std::min<double>(
      device.max_threads_per_sm(), static_cast<double>(launch.block) * std::max(1, launch.blocks_per_sm));
  const int registers = launch.register_bound > 0 ? launch.register_bound : kUnboundRegisters;
  // Vectors change neither what groups evaluate nor who waits for whom.
  const KernelEvaluations found = evaluations(computation, kernel);
  std::map<int, Stages> stages;
  for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
    Group& group = kernel.groups[g];
    Mapping& m = group.mapping;
    mapping::Vectors of = vectors(m);
    if (stages_a_row(m)) {
      // The mapping is that of the kernel's largest reduction; of rows made of constants nothing moves.
      if (const Moved bytes = moved(computation, kernel, group, m, found[g], stages);
          bytes.vectors + bytes.scalars == 0)
        of.width = std::min(of.width, kVectorBytes / computed_bytes(computation, group));
      set_vectors(m, of);
      of.unroll = static_cast<int>(
          std::clamp<std::int64_t>(Layout(m, launch.block).unguarded, 1, std::max(1, of.unroll)));
      set_vectors(m, of);
      continue;
    }
    if (extents(m).elements() == 0 || is<mapping::OneThread>(m) || is_staged(m)) {
      set_vectors(m, {});
      continue;
    }
    const bool columns = is<mapping::Columns>(m);
    if (is<mapping::Elements>(m) && of.width == 1) of.width = whole_vectors(computation, group, vector_bytes);
    set_vectors(m, of);
    Moved bytes = moved(computation, kernel, group, m, found[g], stages);
    // Element by element, the lanes of peeled rows and of columns would read what vectors leave apart.
    const bool apart = (Layout(m, launch.block).peeled || columns) && bytes.scalars > 0;
    if (bytes.scalars > bytes.vectors || bytes.vectors == 0 || apart) of.width = 1;
    // What takes two instructions a vector takes every other part by each.
    of.width = std::min(of.width, std::max(1, vector_bytes / bytes.widest));
    set_vectors(m, of);
    const double in_flight = std::max(1.0, in_flight_together(bytes, of.width));
    const double most = std::min(
        {registers * 4.0 / kRegisterShare / in_flight,
         in_flight < kWordBytes || columns ? 2 * kMostVectors : kMostVectors,
         static_cast<double>(Layout(m, launch.block).unguarded),
         columns ? kMostUnrolledValues / static_cast<double>(found[g].values.size()) : 2 * kMostVectors});
    // Vectors at the ends come one by one: what counts is the average of all batches.
    const auto flight = [&](int unroll) {
      set_vectors(m, {of.width, unroll});
      return resident * in_flight * Layout(m, launch.block).in_flight();
    };
    // Sums of columns end in one of partials, of single elements.
    const double wanted = columns ? 2 * kBytesInFlight : kBytesInFlight;
    of.unroll = 1;
    for (int unroll = 2; bytes.loads > 0 && unroll <= most && flight(of.unroll) < wanted; ++unroll)
      if (flight(unroll) > flight(of.unroll)) of.unroll = unroll;
    set_vectors(m, of);
  }
}

void part_diverging_vectors(const Graph& graph, const Device& device, KernelPlan& kernel) {
  const KernelEvaluations of = evaluations(graph.entry_computation(), kernel);
  std::optional<double> so_far;  // of the kernel as it is, once it has been asked for
  for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
    Group& group = kernel.groups[g];
    if (vectors(group.mapping).width == 1 || is_staged(group.mapping)) continue;
    Mapping single = group.mapping;
    set_vectors(single, {});
    const Layout with(group.mapping, kernel.launch.block), without(single, kernel.launch.block);
    const EvaluationList& found = of[g].values;
    const bool diverges = std::any_of(found.begin(), found.end(), [&](const Evaluation& e) {
      return !e.load && costs::divergence(e.map, with) > costs::divergence(e.map, without);
    });
    if (!diverges) continue;
    if (!so_far) so_far = kernel_cost(graph, device, kernel, of).predicted_us;
    std::swap(group.mapping, single);
    const double parted = kernel_cost(graph, device, kernel, of).predicted_us;
    if (parted < *so_far)
      so_far = parted;
    else
      std::swap(group.mapping, single);
  }
}

}  // namespace stitchwork::astitch
