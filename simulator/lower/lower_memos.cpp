// Accesses to shared memory through one register: what they have in common is found out once (AccessMemo).
#include "simulator/lower/lower.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {
namespace {

/// Of a memo in a basic block: the accesses that a following one may take it from.
struct Open {
  std::uint32_t address = kNone;  ///< value
  int bytes = 0;                  ///< of a lane's access
  IrInst* leader = nullptr;
  int last_use = 0;
};

/// Bytes a lane moves by an access to shared memory of which a memo may be kept, else 0. The mask of guarded
/// ones is their own; those that wait for others leave the block to them.
int bytes_of(const IrInst& i, std::string_view row) {
  if (!row.starts_with("@ld.shared") && !row.starts_with("@st.shared")) return 0;
  const int element = row.back() - '0';
  if (element < 4 || i.guarded || i.polls || !(i.aux & sim::kAddress32)) return 0;
  return element * i.count;
}

}  // namespace

/// All instructions of a basic block but guarded ones run with the same lanes, and lanes that have parted do
/// not come back within it.
void Lowering::mark_memos() {
  const auto rows = sim::isa_rows();
  for (IrBlock& block : f_.blocks) {
    Open open[sim::kMemos];
    int now = 0;
    for (IrInst& i : block.insts) {
      ++now;
      if (const int bytes = bytes_of(i, rows[i.row].spelling); bytes > 0) {
        Open* oldest = &open[0];
        Open* known = nullptr;
        for (Open& o : open) {
          if (o.address == i.o[4] && o.bytes == bytes) known = &o;
          if (o.last_use < oldest->last_use) oldest = &o;
        }
        if (known != nullptr) {
          const auto number = static_cast<std::uint8_t>(known - open);
          known->leader->flags = static_cast<std::uint8_t>(sim::kMemoLeads | number);
          i.flags = static_cast<std::uint8_t>(sim::kMemoFollows | number);
          known->last_use = now;
        } else {
          *oldest = {.address = i.o[4], .bytes = bytes, .leader = &i, .last_use = now};
        }
      }
      for (int k = 0; k < 6; ++k) {
        if (!(i.defs >> k & 1)) continue;
        for (Open& o : open)
          if (o.address == i.o[k]) o = {};
      }
    }
  }
}

}  // namespace stitchwork::ptx
