// Copy propagation, dead code and slot assignment by liveness.
#include <algorithm>
#include <bit>

#include "simulator/lower/ir.h"

namespace stitchwork::ptx {
namespace {

struct Place {
  int block = -1, index = -1;
};

class DominanceQuery {
 public:
  explicit DominanceQuery(const std::vector<IrBlock>& blocks) : idom_(immediate_dominators(blocks)) {}
  bool operator()(Place a, Place b) const {
    if (a.block == b.block) return a.index < b.index;
    for (int x = idom_[b.block]; x >= 0; x = idom_[x]) {
      if (x == a.block) return true;
    }
    return false;
  }

 private:
  std::vector<int> idom_;
};

template <class F>
void for_uses(IrInst& i, F f) {
  for (int k = 0; k < 6; ++k) {
    if (i.uses >> k & 1) f(i.o[k]);
  }
}

void remove_dead(IrFunction& f) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<bool> used(f.values.size());
    for (IrBlock& b : f.blocks) {
      for (IrInst& i : b.insts) for_uses(i, [&](std::uint32_t v) { used[v] = true; });
    }
    for (IrBlock& b : f.blocks) {
      changed |= std::erase_if(b.insts, [&](const IrInst& i) {
                   return i.pure && !i.guarded && i.defs == 1 && !used[i.o[0]];
                 }) > 0;
    }
  }
}

}  // namespace

void propagate_copies(IrFunction& f) {
  const std::size_t n = f.values.size();
  std::vector<int> defs(n);
  std::vector<Place> def_at(n);
  for (int b = 0; b < static_cast<int>(f.blocks.size()); ++b) {
    for (int k = 0; k < static_cast<int>(f.blocks[b].insts.size()); ++k) {
      const IrInst& i = f.blocks[b].insts[k];
      for (int o = 0; o < 6; ++o) {
        if (!(i.defs >> o & 1)) continue;
        defs[i.o[o]] += i.guarded ? 2 : 1;
        def_at[i.o[o]] = {b, k};
      }
    }
  }
  // A copy d = s of registers defined once stands for s wherever its definition dominates the use: any path
  // on which s changed after the copy passes the copy again. Constants never change, but elsewhere d may not
  // be set at all.
  const DominanceQuery dominates(f.blocks);
  std::vector<std::uint32_t> source(n, kNone);
  for (const IrBlock& b : f.blocks) {
    for (const IrInst& i : b.insts) {
      if (!i.copy || i.guarded || defs[i.o[0]] != 1 || f.values[i.o[0]].cls != f.values[i.o[1]].cls) continue;
      const bool constant = f.values[i.o[1]].kind != Value::Kind::kRegister;
      if (constant || (defs[i.o[1]] == 1 && dominates(def_at[i.o[1]], def_at[i.o[0]])))
        source[i.o[0]] = i.o[1];
    }
  }
  for (int b = 0; b < static_cast<int>(f.blocks.size()); ++b) {
    for (int k = 0; k < static_cast<int>(f.blocks[b].insts.size()); ++k) {
      for_uses(f.blocks[b].insts[k], [&](std::uint32_t& v) {
        while (source[v] != kNone) {
          if (!dominates(def_at[v], {b, k})) return;
          v = source[v];
        }
      });
    }
  }
  remove_dead(f);
}

namespace {

/// Calls `live(v, b, at_end)` once for every value and block at whose beginning or end it is live: value by
/// value, from the blocks that read it before they set it, backwards to those that set it. Nearly all values
/// of a long kernel live in one block, so that this takes less than sets of all values would.
template <class F>
void for_live(const IrFunction& f, const F& live) {
  const std::size_t values = f.values.size(), blocks = f.blocks.size();
  std::vector<std::vector<int>> predecessors(blocks), readers(values), setters(values);
  for (std::size_t block = 0; block < blocks; ++block) {
    const int b = static_cast<int>(block);
    for (const int s : f.blocks[block].successors) predecessors[s].push_back(b);
    const auto in_this = [b](const std::vector<int>& list) { return !list.empty() && list.back() == b; };
    const auto reads = [&](std::uint32_t v) {
      if (!in_this(setters[v]) && !in_this(readers[v])) readers[v].push_back(b);
    };
    for (const IrInst& i : f.blocks[block].insts) {
      for (int k = 0; k < 6; ++k)
        if ((i.uses >> k & 1) && f.values[i.o[k]].kind == Value::Kind::kRegister) reads(i.o[k]);
      for (int k = 0; k < 6; ++k) {
        if (!(i.defs >> k & 1)) continue;
        // A guarded write keeps the old value in some lanes: not a full definition.
        if (i.guarded) reads(i.o[k]);
        if (!in_this(setters[i.o[k]])) setters[i.o[k]].push_back(b);
      }
    }
  }
  // By block, the last value found to be set in it, live at its beginning, and at its end.
  std::vector<std::uint32_t> set(blocks, kNone), begins(blocks, kNone), ends(blocks, kNone);
  for (std::uint32_t v = 0; v < values; ++v) {
    for (const int b : setters[v]) set[b] = v;
    for (const int b : readers[v]) begins[b] = v;
    std::vector<int> open = readers[v];
    while (!open.empty()) {
      const int b = open.back();
      open.pop_back();
      live(v, b, false);
      for (const int p : predecessors[b]) {
        if (ends[p] == v) continue;
        ends[p] = v;
        live(v, p, true);
        if (set[p] == v || begins[p] == v) continue;
        begins[p] = v;
        open.push_back(p);
      }
    }
  }
}

/// From the first to the last position at which a value is set, used or live; none where end < begin.
struct LiveInterval {
  int begin = INT32_MAX, end = -1;
  void cover(int p) {
    begin = std::min(begin, p);
    end = std::max(end, p);
  }
};

struct Lives {
  std::vector<LiveInterval> interval;  // of registers
  std::vector<bool> constant_used;     // of what is no register
  std::vector<bool> live_at_start;
};

Lives lives_of(const IrFunction& f) {
  const std::size_t n = f.values.size();
  Lives lives{std::vector<LiveInterval>(n), std::vector<bool>(n), std::vector<bool>(n)};
  std::vector<int> begin_of;  // by block, its first position
  int position = 0;
  for (const IrBlock& b : f.blocks) {
    begin_of.push_back(position);
    for (const IrInst& i : b.insts) {
      position += 2;
      for (int k = 0; k < 6; ++k) {
        if (i.uses >> k & 1) {
          if (f.values[i.o[k]].kind == Value::Kind::kRegister)
            lives.interval[i.o[k]].cover(position);
          else
            lives.constant_used[i.o[k]] = true;
        }
        if (i.defs >> k & 1) lives.interval[i.o[k]].cover(position + 1);
      }
    }
    position += 2;
  }
  begin_of.push_back(position);
  for_live(f, [&](std::uint32_t v, int b, bool at_end) {
    lives.interval[v].cover(at_end ? begin_of[b + 1] : begin_of[b]);
    if (b == 0 && !at_end) lives.live_at_start[v] = true;
  });
  return lives;
}

}  // namespace

SlotAssignment assign_slots(const IrFunction& f) {
  const std::size_t n = f.values.size();
  Lives lives = lives_of(f);
  const std::vector<LiveInterval>& interval = lives.interval;

  // Linear scan over the intervals, one pool a register class. 16-bit registers live in 32-bit slots.
  SlotAssignment result;
  result.unset = std::move(lives.live_at_start);
  result.passes_unset = find_unset(f, result.unset);
  result.offset.assign(n, kNone);
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < n; ++v) {
    if (f.values[v].kind == Value::Kind::kRegister && interval[v].end >= 0) order.push_back(v);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return interval[a].begin < interval[b].begin; });
  auto pool = [&](std::uint32_t v) {
    const RegisterClass c = f.values[v].cls;
    return c == RegisterClass::kPred ? 2 : c == RegisterClass::k64 ? 1 : 0;
  };
  std::vector<std::uint32_t> free[3], slot(n);
  std::uint32_t used[3] = {};
  std::vector<std::uint32_t> active;
  for (std::uint32_t v : order) {
    std::erase_if(active, [&](std::uint32_t a) {
      if (interval[a].end >= interval[v].begin) return false;
      free[pool(a)].push_back(slot[a]);
      return true;
    });
    auto& pool_free = free[pool(v)];
    if (pool_free.empty()) {
      slot[v] = used[pool(v)]++;
    } else {
      slot[v] = pool_free.back();
      pool_free.pop_back();
    }
    active.push_back(v);
    int pressure = 0;
    for (std::uint32_t a : active) pressure += pool(a) == 1 ? 2 : pool(a) == 0 ? 1 : 0;
    result.pressure = std::max(result.pressure, pressure);
  }
  for (std::uint32_t v = 0; v < n; ++v) {
    if (f.values[v].kind == Value::Kind::kRegister || !lives.constant_used[v]) continue;
    slot[v] = used[pool(v)]++;
    order.push_back(v);
  }
  const std::uint32_t base64 = used[0] * sim::kSlot32Bytes;
  const std::uint32_t base_pred = base64 + used[1] * sim::kSlot64Bytes;
  for (std::uint32_t v : order) {
    result.offset[v] = pool(v) == 0   ? slot[v] * sim::kSlot32Bytes
                       : pool(v) == 1 ? base64 + slot[v] * sim::kSlot64Bytes
                                      : base_pred + slot[v] * sim::kSlotPredBytes;
  }
  result.register_bytes = base_pred + used[2] * sim::kSlotPredBytes;
  return result;
}

}  // namespace stitchwork::ptx
