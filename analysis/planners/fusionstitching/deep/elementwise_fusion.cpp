#include "analysis/planners/fusionstitching/deep/elementwise_fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/schedule/launch.h"

namespace stitchwork::fusionstitching::deep {
namespace {

/// "a tunable threshold" of the fused memory footprint, which the paper does not give.
/// Derived from its "below 10 us": 16 MiB take about 22 us of a P100's 732 GB/s, so that two such kernels
/// fit.
constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;
/// FusionStitching 2018, section 3.2: kernels of weight accumulation layers take less.
constexpr double kSmallKernelUs = 10;

struct Pack {
  NodeId unit = kNoNode;
  std::set<NodeId> buffers;  ///< inputs and outputs
  std::int64_t bytes = 0;
};

class Packing {
 public:
  Packing(Contraction& units, Tuner& tuner, const Constraints& constraints, Recorder& recorder)
      : units_(units),
        computation_(*units.nodes().computation),
        tuner_(tuner),
        constraints_(constraints),
        recorder_(recorder) {}

  std::vector<NodeId> run(const std::vector<NodeId>& layer) {
    std::vector<NodeId> roots;
    std::map<std::pair<Dims, DType>, std::vector<Pack>> packs;
    for (const NodeId unit : layer) {
      if (!is_candidate(unit)) {
        roots.push_back(unit);
        continue;
      }
      const Shape& shape = computation_.node(unit).shape;
      std::vector<Pack>& open = packs[{shape.dims, shape.dtype}];
      const bool joined = std::any_of(open.begin(), open.end(), [&](Pack& pack) { return join(pack, unit); });
      if (joined) continue;
      roots.push_back(unit);
      open.push_back({unit, {}, 0});
      add(open.back(), unit);
    }
    return roots;
  }

 private:
  /// A single element-wise op of an array, whose kernel alone is short.
  bool is_candidate(NodeId unit) {
    const Node& node = computation_.node(unit);
    if (units_.ops(unit).size() != 1 || !is_elementwise(node.op) || node.shape.elements_count() <= 1)
      return false;
    const double us = tuner_.alone_us(unit);
    if (us < kSmallKernelUs) return true;
    recorder_.add("elementwise", node.name, "", [&] {
      return Verdict::no("fs18.too-large-to-pack",
                         fmt::format("its own kernel takes {:.2f} us, {} at most", us, kSmallKernelUs));
    });
    return false;
  }

  std::int64_t bytes_beside(const Pack& pack, NodeId unit) const {
    std::int64_t bytes = 0;
    std::set<NodeId> seen;
    const auto visit = [&](NodeId id) {
      if (pack.buffers.contains(id) || units_.nodes()[id].immediate || !seen.insert(id).second) return;
      bytes += computation_.node(id).shape.byte_size();
    };
    visit(unit);
    for (const NodeId operand : computation_.node(unit).operands) visit(operand);
    return bytes;
  }

  void add(Pack& pack, NodeId unit) {
    pack.bytes += bytes_beside(pack, unit);
    pack.buffers.insert(unit);
    for (const NodeId operand : computation_.node(unit).operands)
      if (!units_.nodes()[operand].immediate) pack.buffers.insert(operand);
  }

  bool join(Pack& pack, NodeId unit) {
    const std::int64_t bytes = pack.bytes + bytes_beside(pack, unit);
    const std::size_t most = pack.buffers.size() + 1 + computation_.node(unit).operands.size();
    if (bytes > kMostBytes || most > kMostPointerArguments) {
      refuse(unit, pack, "fs18.footprint", [&] {
        return fmt::format("{} bytes of inputs and outputs, at most {}; {} buffers, at most {}", bytes,
                           kMostBytes, most, kMostPointerArguments);
      });
      return false;
    }
    const auto in = [&](NodeId op) { return units_.unit_of(op) == pack.unit; };
    if (const auto apart = constraints_.keeps_apart(in, [&](NodeId op) { return op == unit; })) {
      refuse(unit, pack, "override.forbid_merge",
             [&] { return std::string("an override keeps them apart"); });
      return false;
    }
    if (units_.reaches(pack.unit, unit) || units_.reaches(unit, pack.unit)) {
      refuse(unit, pack, "fs18.cycle",
             [&] { return std::string("a path leads from one to the other through fusions"); });
      return false;
    }
    add(pack, unit);
    recorder_.add("elementwise", computation_.node(unit).name, computation_.node(pack.unit).name, [&] {
      return Verdict::yes("fs18.packed", fmt::format("element-wise of {} in one layer, {} bytes together",
                                                     to_text(computation_.node(unit).shape), pack.bytes));
    });
    units_.merge(pack.unit, unit);
    return true;
  }

  template <typename Why>
  void refuse(NodeId unit, const Pack& pack, const char* rule, Why why) {
    recorder_.add("elementwise", computation_.node(unit).name, computation_.node(pack.unit).name,
                  [&] { return Verdict::no(rule, why()); });
  }

  Contraction& units_;
  const Computation& computation_;
  Tuner& tuner_;
  const Constraints& constraints_;
  Recorder& recorder_;
};

}  // namespace

std::vector<NodeId> pack_elementwise(Contraction& units, const std::vector<NodeId>& layer, Tuner& tuner,
                                     const Constraints& constraints, Recorder& recorder) {
  return Packing(units, tuner, constraints, recorder).run(layer);
}

}  // namespace stitchwork::fusionstitching::deep
