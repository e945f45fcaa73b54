#include "analysis/astitch/vectors.h"

#include <algorithm>
#include <set>

#include "analysis/assemble.h"
#include "analysis/evaluations.h"
#include "analysis/vectors.h"

namespace stitchwork::astitch {
namespace {

/// In flight an SM at full bandwidth (docs/planners/astitch.md).
constexpr double kBytesInFlight = 32 * 1024;
constexpr double kMostUnrolled = 4;  ///< twice as many of less than a word
constexpr double kWordBytes = 4;
/// The share of a thread's registers that loads in flight may take.
constexpr int kRegisterShare = 4;
constexpr int kUnboundRegisters = 32;

/// What the elements of a group move, in bytes an element.
struct Moved {
  double vectors = 0, scalars = 0;  ///< by how it could move
  /// Loads of the domain's own elements, each array once, that need no guard (those of a choice, concatenate
  /// or pad, wait for it). What a row has in common with the others comes from L2.
  double loads = 0;
  int widest = 1;  ///< of what could move in vectors, in bytes
};

bool follows_lanes(const IndexMap& map, const ThreadMapping& mapping) {
  const int lane = mapping.kind == MappingKind::kColumn ? 0 : vector_dim(mapping);
  return std::any_of(map.results.begin(), map.results.end(),
                     [lane](const IndexExpr& e) { return e.uses_dim(lane); });
}

/// Another element in each row of a row_pack or row_split domain of several.
bool follows_rows(const IndexMap& map, const ThreadMapping& mapping) {
  if ((mapping.kind != MappingKind::kRowPack && mapping.kind != MappingKind::kRowSplit) || mapping.rows == 1)
    return true;
  return std::any_of(map.results.begin(), map.results.end(),
                     [](const IndexExpr& e) { return e.uses_dim(0); });
}

Moved moved(const Computation& computation, const KernelPlan& kernel, const Group& group,
            const ThreadMapping& mapping) {
  Moved result;
  const GroupEvaluations found = evaluations(computation, kernel, group);
  std::set<NodeId> loaded;
  const auto add = [&](NodeId op, const IndexMap& map, bool load, NodeId root) {
    // What is read from shared memory moves element by element.
    const auto scheme = kernel.schemes.find(op);
    const bool only_shared = scheme != kernel.schemes.end() && scheme->second == Scheme::kRegional;
    if (load ? reads_shared(kernel, op, root) : only_shared) return;
    if (!follows_lanes(map, mapping)) return;
    const Shape& shape = computation.node(op).shape;
    const int bytes = byte_size(shape.dtype);
    if (load && map.constraints.empty() && map.runtime.empty() && follows_rows(map, mapping) &&
        loaded.insert(op).second)
      result.loads += bytes;
    const bool plain = map.constraints.empty() && map.runtime.empty() && map.symbols.empty();
    // A peeled row's last vector reaches into the next row, which the kernel may be writing.
    const bool reaches = is_peeled(mapping) && load && kernel.schemes.contains(op);
    const bool vector = plain && !reaches &&
                        moves_in_vectors(simplify(linearize(map.results, shape.dims), map), map, mapping);
    (vector ? result.vectors : result.scalars) += bytes;
    if (vector) result.widest = std::max(result.widest, bytes);
  };
  for (const Evaluation& e : found.values)
    if (e.load) add(e.op, e.map, true, e.root);
  for (const NodeId op : materialised(KernelPlan{.groups = {group}}))
    if (const auto placed = found.placements.find(op);
        placed != found.placements.end() && placed->second.coverage == Coverage::kFull)
      add(op, placed->second.map, false, op);
  return result;
}

/// The vector an element-wise task of another group's share can have.
int whole_vectors(const Computation& computation, const Group& group) {
  const ThreadMapping& m = group.mapping;
  int vector = kVectorBytes / byte_size(computation.node(group.dominant).shape.dtype);
  while (vector > 1 && (m.rows % vector != 0 || m.rows_per_block % vector != 0)) vector /= 2;
  return std::max(1, vector);
}

}  // namespace

void settle_vectors(const Computation& computation, const Device& device, KernelPlan& kernel) {
  const KernelLaunch& launch = kernel.launch;
  const double resident = std::min<double>(
      device.max_threads_per_sm(), static_cast<double>(launch.block) * std::max(1, launch.blocks_per_sm));
  const int registers = launch.register_bound > 0 ? launch.register_bound : kUnboundRegisters;
  for (Group& group : kernel.groups) {
    ThreadMapping& m = group.mapping;
    if (m.rows * m.cols == 0 || m.kind == MappingKind::kRowSerial || m.staged) {
      m.vector = m.unroll = 1;
      continue;
    }
    if (m.kind == MappingKind::kElementwise && m.vector == 1) m.vector = whole_vectors(computation, group);
    Moved bytes = moved(computation, kernel, group, m);
    // Element by element, the lanes of peeled rows would read what vectors leave apart.
    const bool apart = is_peeled(m) && bytes.scalars > 0;
    if (bytes.scalars > bytes.vectors || bytes.vectors == 0 || apart) m.vector = 1;
    // What takes two instructions a vector takes every other 16 bytes by each.
    m.vector = std::min(m.vector, std::max(1, kVectorBytes / bytes.widest));
    const double in_flight = std::max(1.0, bytes.loads * m.vector);
    const double most = std::min({registers * 4.0 / kRegisterShare / in_flight,
                                  in_flight < kWordBytes ? 2 * kMostUnrolled : kMostUnrolled,
                                  static_cast<double>(unguarded_vectors(m, launch.block))});
    // Vectors at the ends come one by one: what counts is the average of all batches.
    ThreadMapping best = m;
    best.unroll = m.unroll = 1;
    const auto flight = [&](const ThreadMapping& of) {
      return resident * in_flight * vectors_in_flight(of, launch.block);
    };
    while (bytes.loads > 0 && m.unroll + 1 <= most && flight(best) < kBytesInFlight) {
      ++m.unroll;
      if (flight(m) > flight(best)) best = m;
    }
    m.unroll = best.unroll;
  }
}

}  // namespace stitchwork::astitch
