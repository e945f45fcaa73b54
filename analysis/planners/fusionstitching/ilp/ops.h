// The ops of a computation as F19 (FusionStitching, arXiv 1911.11576) sees them: what may be fused, of which
// kind it is, and how steps follow each other.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/stitching/nodes.h"
#include "occupancy_model/device.h"

namespace stitchwork::fusionstitching {

/// Kinds that partition (4.2.1) and score (4.3) tell apart.
enum class OpKind : std::uint8_t {
  kNone,  ///< no step of its own: sources, immediates, index maps that kernels repeat
  kName,  ///< orders others, computes nothing: tuples, their elements
  kCall,  ///< never in a kernel with others: library calls that are no dots, control flow, opaque ops
  kElementwise,
  kRowReduction,
  kColumnReduction,
  kScalarReduction,
  kGemm,
  kBatchedGemm,
};
std::string_view name(OpKind kind);  ///< "elementwise", "row reduction", ...
bool is_product(OpKind kind);
bool is_reduction(OpKind kind);

/// A buffer that an op reads, through index maps.
struct BufferRead {
  NodeId buffer = kNoNode;
  double bytes = 0;  ///< distinct ones that are touched, at most the buffer's
};

struct StepFacts {
  OpKind kind = OpKind::kNone;
  bool fusible = false;  ///< may share a kernel with others
  bool large = false;    ///< a gemm whose library call takes kFineGrainedUs or longer
  bool result = false;   ///< its buffer is part of the computation's result, or nothing reads it
  std::vector<NodeId> producers, consumers;  ///< steps, ascending
  std::vector<BufferRead> reads;             ///< ascending by buffer; immediates are none
};

struct Ops {
  const astitch::Nodes* nodes = nullptr;
  const Device* device = nullptr;
  std::vector<StepFacts> facts;            ///< by node
  std::vector<std::vector<NodeId>> users;  ///< by node: what reads it, index maps included

  const StepFacts& operator[](NodeId id) const { return facts[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return facts.size(); }
  const std::string& name(NodeId id) const { return nodes->name(id); }
};

/// "Fine grained (< 10us) operators" (section 1): a gemm that takes so long is left to the library. Batched
/// ones are no large gemms (4.2.1 names both apart): whether a kernel computes one is left to scores.
constexpr double kFineGrainedUs = 10;

/// `nodes` and `device` must outlive the result. `products`: dots that are not large are fusible.
Ops find_ops(const astitch::Nodes& nodes, const Device& device, bool products);

}  // namespace stitchwork::fusionstitching
