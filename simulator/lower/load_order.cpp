// Which loads machine code has in flight at once: those of a basic block of it, which is longer than one of
// the PTX where ptxas gives predicates to what a short branch jumps over.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "simulator/lower/ir.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {
namespace {

using Name = std::string_view;

/// ptxas moves loads ahead of the arithmetic between them while registers last. Measured with ptxas 13.0 for
/// sm_80 (scripts/bench/load_order): of 176 kernels of XLA and Inductor 98 have loads to move; it issues all
/// of them together up to 16, of more 9 to 23.
constexpr int kMostHoisted = 16;

/// Instructions of a side of a branch, without moves, that ptxas runs under predicates. Measured with
/// ptxas 13.0 for sm_80 (scripts/bench/load_order, 444 kernels of ours and XLA's): of 4, 6, 8, 10, 12, 16 and
/// 24 the first with most kernels alike (343; without any 325).
constexpr std::size_t kMostPredicated = 16;

Name row_of(const IrInst& i) { return sim::isa_rows()[i.row].spelling; }

bool is_load(Name row) {
  return row.starts_with("@ld.global") || row.starts_with("@ld.generic") || row.starts_with("@ld.cluster");
}

/// 128-byte requests of a warp: 4 for a 16-byte load a thread (occupancy_model/timing.h).
int requests(const IrInst& load) {
  const int bytes = row_of(load).back() - '0';  // "@ld.global.4"
  return std::max(1, bytes * load.count / 4);
}

/// Whether loads behind it stay behind it: of ordinary loads also what may write what they read.
bool holds_all(const IrInst& i, Name row) {
  return row.starts_with("@barrier") || row == "@fence" || row.starts_with("@atom.") ||
         (is_load(row) && (i.aux & sim::kStrong));
}
bool holds_coherent(Name row) {
  return row.starts_with("@st.global") || row.starts_with("@st.generic") || row.starts_with("@st.cluster");
}

/// Loads that no chain of results and no order of memory keeps apart, by how many loads and stores each
/// follows: those of one place in that order are issued together.
class Hoisted {
 public:
  void take(const IrInst& i, bool branch) {
    const Name row = row_of(i);
    int follows = guard_;
    for (int k = 0; k < 6; ++k)
      if (i.uses >> k & 1) follows = std::max(follows, behind(i.o[k]));
    if (row == "@guard") guard_ = follows;
    if (row == "@unguard") guard_ = branch_;
    if (is_load(row)) {
      follows = std::max({follows, floor_, i.aux & sim::kNonCoherent ? 0 : stored_});
      last_ = std::max(last_, follows + 1);
      requests_[follows] += requests(i);
      ++follows;
    }
    for (int k = 0; k < 6; ++k)
      if (i.defs >> k & 1) {
        int& place = behind_[i.o[k]];
        place = i.guarded || branch ? std::max(place, follows) : follows;
      }
    if (holds_coherent(row)) stored_ = std::max(stored_, last_);
    if (holds_all(i, row)) floor_ = last_;
  }
  /// Until the next call what is taken runs where `condition` says so; null: always.
  void branch_by(const IrInst* condition) {
    branch_ = 0;
    for (int k = 0; condition != nullptr && k < 6; ++k)
      if (condition->uses >> k & 1) branch_ = std::max(branch_, behind(condition->o[k]));
    guard_ = branch_;
  }
  int most() const {
    int most = 0;
    for (const auto& [place, requests] : requests_) most = std::max(most, requests);
    return most;
  }

 private:
  int behind(std::uint32_t value) const {
    const auto found = behind_.find(value);
    return found == behind_.end() ? 0 : found->second;
  }

  std::unordered_map<std::uint32_t, int> behind_;  ///< by value: loads that it follows
  std::map<int, int> requests_;                    ///< by the loads that these follow
  int branch_ = 0, guard_ = 0, floor_ = 0, stored_ = 0, last_ = 0;
};

/// In the order of the PTX: the longest run of loads before one of their results is needed.
class InOrder {
 public:
  void take(const IrInst& i) {
    for (int k = 0; k < 6; ++k)
      if ((i.uses >> k & 1) && pending_.contains(i.o[k])) {
        pending_.clear();
        run_ = 0;
      }
    if (!is_load(row_of(i))) return;
    run_ += requests(i);
    most_ = std::max(most_, run_);
    for (int k = 0; k < i.count; ++k) pending_.insert(i.o[k]);
  }
  int most() const { return most_; }

 private:
  std::set<std::uint32_t> pending_;
  int most_ = 0, run_ = 0;
};

/// Blocks that are one of machine code, in their order.
class Straightened {
 public:
  explicit Straightened(const std::vector<IrBlock>& blocks)
      : blocks_(blocks), entries_(blocks.size(), 0), taken_(blocks.size(), false) {
    for (const IrBlock& block : blocks)
      for (const int to : block.successors) ++entries_[at(to)];
  }

  struct Part {
    int block = -1;
    const IrInst* condition = nullptr;  ///< the branch around it; null: it always runs
  };
  /// From block `first` on; none where it is in an earlier one's.
  std::vector<Part> from(int first) {
    std::vector<Part> parts;
    if (taken_[at(first)]) return parts;
    for (int block = first; block >= 0;) {
      parts.push_back({block, nullptr});
      taken_[at(block)] = true;
      block = next(block, parts);
    }
    return parts;
  }

 private:
  /// What one side of a branch runs before it comes to a block that is entered from elsewhere, too.
  struct Side {
    std::vector<int> blocks;
    int end = -1;
    bool is_short = true;
  };

  static std::size_t at(int block) { return static_cast<std::size_t>(block); }

  /// The block that goes on behind `block`, with what runs in between under predicates; -1: there is none.
  int next(int block, std::vector<Part>& parts) {
    const IrBlock& from = blocks_[at(block)];
    if (from.successors.size() == 1) {
      const int only = from.successors[0];
      return entries_[at(only)] == 1 && !taken_[at(only)] ? only : -1;
    }
    if (from.successors.size() != 2 || from.insts.empty()) return -1;
    const Side left = side(from.successors[0]), right = side(from.successors[1]);
    const int join = left.end;
    if (join < 0 || right.end != join || entries_[at(join)] != 2 || taken_[at(join)]) return -1;
    if (!left.is_short || !right.is_short) return -1;
    for (const Side* one : {&left, &right})
      for (const int inner : one->blocks) {
        parts.push_back({inner, &from.insts.back()});
        taken_[at(inner)] = true;
      }
    return join;
  }

  Side side(int block) const {
    Side result;
    std::size_t instructions = 0;
    while (entries_[at(block)] == 1 && !taken_[at(block)] && blocks_[at(block)].successors.size() == 1) {
      for (const IrInst& i : blocks_[at(block)].insts) {
        const Name row = row_of(i);
        if (row == "@bra" || i.copy) continue;
        ++instructions;
        if (holds_all(i, row) || row.starts_with("@st.") || row == "@exit") result.is_short = false;
      }
      result.blocks.push_back(block);
      block = blocks_[at(block)].successors[0];
    }
    result.end = block;
    result.is_short = result.is_short && instructions <= kMostPredicated;
    return result;
  }

  const std::vector<IrBlock>& blocks_;
  std::vector<int> entries_;
  std::vector<bool> taken_;
};

}  // namespace

std::vector<int> loads_in_flight(const std::vector<IrBlock>& blocks) {
  std::vector<int> result(blocks.size(), 0);
  Straightened straightened(blocks);
  for (int first = 0; first < static_cast<int>(blocks.size()); ++first) {
    const auto parts = straightened.from(first);
    Hoisted hoisted;
    InOrder in_order;
    for (const auto& [block, condition] : parts) {
      hoisted.branch_by(condition);
      for (const IrInst& i : blocks[static_cast<std::size_t>(block)].insts) {
        hoisted.take(i, condition != nullptr);
        in_order.take(i);
      }
    }
    const int most = std::max(in_order.most(), std::min(hoisted.most(), kMostHoisted));
    for (const auto& part : parts) {
      const auto& insts = blocks[static_cast<std::size_t>(part.block)].insts;
      if (std::ranges::any_of(insts, [](const IrInst& i) { return is_load(row_of(i)); }))
        result[static_cast<std::size_t>(part.block)] = most;
    }
  }
  return result;
}

}  // namespace stitchwork::ptx
