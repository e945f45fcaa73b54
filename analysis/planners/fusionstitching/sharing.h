// Shared memory of a fusion's requests, bytes of dead values used again: FusionStitching 2018, section 5.1.3;
// 2019, Algorithm 4, which spells it out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/planners/fusionstitching/requests.h"

namespace stitchwork::fusionstitching {

/// The bytes of one request, from the first byte of the fusion's values.
struct Slot {
  NodeId op = kNoNode;
  std::int64_t offset = 0, bytes = 0;
  NodeId taken_from = kNoNode;  ///< whose bytes they were; kNoNode: nobody's
  bool in_place = false;        ///< each thread puts its element where the one was that it read
};

struct Slots {
  std::vector<Slot> slots;  ///< ascending by op
  std::int64_t bytes = 0;   ///< allocated, of all together
};

/// Whether `op` may be written over `read`, a value that it reads, given what else is in shared memory: every
/// thread reads the one element that it overwrites, and no other thread does. Not in the papers, and needed:
/// as they print it, an exponential would overwrite a row's maximum while others read it.
using IsShared = std::function<bool(NodeId)>;
using InPlace = std::function<bool(NodeId op, NodeId read, const IsShared& is_shared)>;

/// The predicate of ops whose loops take elements one by one: `op` is element-wise and reads `read`, of one
/// shape with it, through element-wise ops of that shape alone, or through others in shared memory. How
/// `read` is made does not matter, as a barrier lies between.
bool is_elementwise_in_place(const Computation& computation, NodeId op, NodeId read,
                             const IsShared& is_shared);

/// One slot a request. The paper's rule: behind an op that all uses of a value lie before or in, the value is
/// dead; the op may take its bytes in place, ops behind it may take them anyway. Beyond the paper, whoever
/// takes them comes a step after the last read of all that were there, as outputs have loops of their own
/// that read values, too. Without `reuse` everyone has new bytes.
Slots share(const Computation& computation, const Fusion& fusion, const std::vector<Request>& requests,
            const InPlace& in_place, bool reuse);

/// What slots take at least: values that are alive at one op have bytes of their own, whatever others take
/// over. Counted without placing any, so that requests may be taken back one by one.
class LeastBytes {
 public:
  LeastBytes(const Computation& computation, const Fusion& fusion, const std::vector<Request>& requests);

  /// Of the requests that are left.
  std::int64_t bytes() const;
  void take_back(const Request& request);

 private:
  std::vector<std::int64_t> alive_;                          ///< bytes, by op of the fusion
  std::unordered_map<NodeId, std::vector<std::size_t>> at_;  ///< where a value is alive
};

std::string to_text(const Computation& computation, const Slots& slots);

}  // namespace stitchwork::fusionstitching
