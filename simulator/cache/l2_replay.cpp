#include "simulator/cache/l2_replay.h"

#include <algorithm>

namespace stitchwork::sim {
namespace {

/// Entries of a piece before the next one's turn. Four of each of four partitions are 2 KB where accesses are
/// coalesced: what a block of 128 threads asks for with one load of 16 bytes each.
constexpr std::ptrdiff_t kTurn = 4;
/// Entries put in order before they are replayed: the L2 prefetches among them.
constexpr std::size_t kBuffer = 4096;

}  // namespace

void grow_log(AccessLog& log) {
  const std::size_t size = static_cast<std::size_t>(log.end - log.begin);
  const std::size_t capacity = std::max<std::size_t>(size * 2, 4096);
  auto* bigger = new std::uint64_t[capacity];
  std::copy(log.begin, log.end, bigger);
  delete[] log.begin;
  log.begin = bigger;
  log.end = bigger + size;
  log.capacity = bigger + capacity;
}

void replay_side_by_side(L2State& l2, std::vector<LogPiece>& pieces) {
  std::array<std::uint64_t, kBuffer> buffer;
  std::size_t filled = 0;
  L2Counters* counters = nullptr;
  const auto flush = [&] {
    if (filled > 0) l2.replay(buffer.data(), buffer.data() + filled, *counters);
    filled = 0;
  };
  while (!pieces.empty()) {
    std::size_t left = 0;
    for (LogPiece& piece : pieces) {
      const std::ptrdiff_t now = std::min(kTurn, piece.end - piece.begin);
      if (piece.counters != counters || filled + kTurn > kBuffer) flush();
      counters = piece.counters;
      std::copy(piece.begin, piece.begin + now, buffer.begin() + static_cast<std::ptrdiff_t>(filled));
      filled += static_cast<std::size_t>(now);
      piece.begin += now;
      __builtin_prefetch(piece.begin +
                         kTurn);  // for the turn after the next: so many streams no host foresees
      if (piece.begin != piece.end) pieces[left++] = piece;
    }
    pieces.resize(left);
  }
  flush();
}

void mix_parts(AccessLog& log, std::span<const std::size_t> ends) {
  thread_local std::vector<std::uint64_t> mixed;
  thread_local std::vector<std::pair<const std::uint64_t*, const std::uint64_t*>> parts;
  parts.clear();
  for (std::size_t k = 1; k < ends.size(); ++k)
    if (ends[k - 1] != ends[k]) parts.emplace_back(log.begin + ends[k - 1], log.begin + ends[k]);
  if (parts.size() < 2) return;
  mixed.clear();
  while (!parts.empty()) {
    std::size_t left = 0;
    for (auto& [begin, end] : parts) {
      const std::ptrdiff_t now = std::min(kTurn, end - begin);
      mixed.insert(mixed.end(), begin, begin + now);
      begin += now;
      if (begin != end) parts[left++] = {begin, end};
    }
    parts.resize(left);
  }
  std::copy(mixed.begin(), mixed.end(), log.begin + ends.front());
}

void Logs::end_piece() {
  auto& end = ends_.emplace_back();
  for (std::size_t p = 0; p < logs.size(); ++p)
    end[p] = static_cast<std::size_t>(logs[p].end - logs[p].begin);
}

void Logs::add_pieces(std::size_t partition, std::span<L2Counters* const> counters,
                      std::vector<LogPiece>& pieces) const {
  const std::uint64_t* const log = logs[partition].begin;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < ends_.size(); ++k) {
    const std::size_t end = ends_[k][partition];
    if (begin != end) pieces.push_back({log + begin, log + end, counters[counters.size() == 1 ? 0 : k]});
    begin = end;
  }
}

void Logs::add_pieces(std::size_t partition, L2Counters& counters, std::vector<LogPiece>& pieces) const {
  L2Counters* const of_all = &counters;
  add_pieces(partition, std::span(&of_all, 1), pieces);
}

std::uint64_t Logs::entries() const {
  std::uint64_t n = 0;
  for (const AccessLog& l : logs) n += static_cast<std::uint64_t>(l.end - l.begin);
  return n;
}

void Logs::clear() {
  for (AccessLog& l : logs) l.end = l.begin;
  ends_.clear();
}

}  // namespace stitchwork::sim
