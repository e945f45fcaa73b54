// Access logs of blocks that are resident together, replayed into the L2 as they ran: side by side.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/cache/l2_cache.h"
#include "simulator/cache/l2_log.h"

namespace stitchwork::sim {

/// What one cluster, or a block that waits for others, did in one go.
struct LogPiece {
  const std::uint64_t* begin;
  const std::uint64_t* end;
  L2Counters* counters;  ///< what it costs is added here
};

/// Takes a few entries of each piece in turn until all have ended. What sets of one partition see depends on
/// the pieces' order and on that partition's entries alone.
void replay_side_by_side(L2State& l2, std::vector<LogPiece>& pieces);

/// Puts parts of a log that ran side by side in that order. `ends`: where each part ends; the first begins at
/// ends.front().
void mix_parts(AccessLog& log, std::span<const std::size_t> ends);

/// Access logs of one host thread's share of a wave, one a partition of the L2, and where its pieces end in
/// them.
class Logs {
 public:
  Logs() : logs(L2State::kPartitions) {}
  ~Logs() {
    for (AccessLog& l : logs) delete[] l.begin;
  }
  Logs(Logs&& o) noexcept : logs(std::move(o.logs)), ends_(std::move(o.ends_)) { o.logs.clear(); }
  Logs(const Logs&) = delete;

  /// What was logged since the last call is a piece.
  void end_piece();
  void add_pieces(std::size_t partition, L2Counters& counters, std::vector<LogPiece>& pieces) const;
  /// Each piece has counters of its own.
  void add_pieces(std::size_t partition, std::span<L2Counters* const> counters,
                  std::vector<LogPiece>& pieces) const;
  std::uint64_t entries() const;
  void clear();

  std::vector<AccessLog> logs;

 private:
  std::vector<std::array<std::size_t, L2State::kPartitions>> ends_;
};

}  // namespace stitchwork::sim
