// Which loads of a basic block machine code has in flight at once.
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
  explicit Hoisted(const IrBlock& block) {
    for (const IrInst& i : block.insts) take(i);
  }
  int most() const {
    int most = 0;
    for (const auto& [place, requests] : requests_) most = std::max(most, requests);
    return most;
  }

 private:
  void take(const IrInst& i) {
    const Name row = row_of(i);
    int follows = guard_;
    for (int k = 0; k < 6; ++k)
      if (i.uses >> k & 1) follows = std::max(follows, behind(i.o[k]));
    if (row == "@guard") guard_ = follows;
    if (row == "@unguard") guard_ = 0;
    if (is_load(row)) {
      follows = std::max({follows, floor_, i.aux & sim::kNonCoherent ? 0 : stored_});
      last_ = std::max(last_, follows + 1);
      requests_[follows] += requests(i);
      ++follows;
    }
    for (int k = 0; k < 6; ++k)
      if (i.defs >> k & 1) {
        int& place = behind_[i.o[k]];
        place = i.guarded ? std::max(place, follows) : follows;
      }
    if (holds_coherent(row)) stored_ = std::max(stored_, last_);
    if (holds_all(i, row)) floor_ = last_;
  }
  int behind(std::uint32_t value) const {
    const auto found = behind_.find(value);
    return found == behind_.end() ? 0 : found->second;
  }

  std::unordered_map<std::uint32_t, int> behind_;  ///< by value: loads that it follows
  std::map<int, int> requests_;                    ///< by the loads that these follow
  int guard_ = 0, floor_ = 0, stored_ = 0, last_ = 0;
};

/// In the order of the PTX: the longest run of loads before one of their results is needed.
int loads_in_order(const IrBlock& block) {
  std::set<std::uint32_t> pending;
  int best = 0, run = 0;
  for (const IrInst& i : block.insts) {
    for (int k = 0; k < 6; ++k) {
      if ((i.uses >> k & 1) && pending.contains(i.o[k])) {
        pending.clear();
        run = 0;
      }
    }
    if (!is_load(row_of(i))) continue;
    run += requests(i);
    best = std::max(best, run);
    for (int k = 0; k < i.count; ++k) pending.insert(i.o[k]);
  }
  return best;
}

}  // namespace

int loads_in_flight(const IrBlock& block) {
  return std::max(loads_in_order(block), std::min(Hoisted(block).most(), kMostHoisted));
}

}  // namespace stitchwork::ptx
