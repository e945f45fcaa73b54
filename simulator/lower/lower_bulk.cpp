// mbarriers and bulk copies (PTX ISA 8.7, 9.7.13.15 and 9.7.9.25.4).
#include <algorithm>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/atomics.h"
#include "simulator/machine/bulk_copy.h"

namespace stitchwork::ptx {
namespace {

using sim::MbarrierOp;

/// What an operation on mbarriers is and takes.
struct MbarrierForm {
  std::string_view name;
  MbarrierOp op;
  bool returns;     ///< a state, or whether a phase is complete
  int least, most;  ///< operands behind the address
  bool remote;      ///< may be of another block of the cluster
  bool ordered;     ///< takes .sem and .scope
  std::string_view default_order;
};
constexpr MbarrierForm kMbarrierForms[] = {
    {"init", MbarrierOp::kInit, false, 1, 1, false, false, ""},
    {"inval", MbarrierOp::kInval, false, 0, 0, false, false, ""},
    {"expect_tx", MbarrierOp::kExpectTx, false, 1, 1, true, true, "relaxed"},
    {"complete_tx", MbarrierOp::kCompleteTx, false, 1, 1, true, true, "relaxed"},
    {"arrive", MbarrierOp::kArrive, true, 0, 1, true, true, "release"},
    {"arrive_drop", MbarrierOp::kArriveDrop, true, 0, 1, true, true, "release"},
    {"test_wait", MbarrierOp::kWait, true, 1, 1, false, true, "acquire"},
    {"try_wait", MbarrierOp::kWait, true, 1, 2, false, true, "acquire"},
};

/// Devices that have it: bulk copies and what waits for bytes.
constexpr int kBulkSm = 90, kMbarrierSm = 80;

}  // namespace

/// mbarrier.*
bool Lowering::lower_mbarrier(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base != "mbarrier" || op.modifiers.size() < 2 || op.last() != "b64") return false;
  require_sm(kMbarrierSm, "mbarriers");
  if (op.modifiers[0] == "pending_count") {
    if (op.modifiers.size() != 2) unknown();
    if (s.operands.size() != 2) fail("mbarrier.pending_count takes 2 operands");
    const std::uint32_t state = source(s.operands[1], 'd'), d = destination(s.operands[0], 'r');
    IrInst& i = emit("@mbarrier.pending_count", 1, 2);
    i.o[0] = d;
    i.o[1] = state;
    return true;
  }
  const auto form = std::find_if(std::begin(kMbarrierForms), std::end(kMbarrierForms),
                                 [&](const MbarrierForm& f) { return f.name == op.modifiers[0]; });
  if (form == std::end(kMbarrierForms)) return false;
  const bool waits = form->op == MbarrierOp::kWait;
  const bool arrives = form->op == MbarrierOp::kArrive || form->op == MbarrierOp::kArriveDrop;
  std::uint16_t bits = sim::kMbarrierGeneric | (form->remote ? sim::kMbarrierRemote : 0);
  bool order = false, scope = false, space = false;
  for (std::size_t k = 1; k + 1 < op.modifiers.size(); ++k) {
    const std::string_view m = op.modifiers[k];
    if (arrives && k == 1 && m == "expect_tx") {
      bits |= sim::kMbarrierExpects;
    } else if (arrives && k == 1 && m == "noComplete") {
      bits |= sim::kMbarrierNoComplete;
    } else if (waits && k == 1 && m == "parity") {
      bits |= sim::kMbarrierParity;
    } else if (form->ordered && !order && (m == form->default_order || m == "relaxed")) {
      order = true;
      if (m == "relaxed") bits |= sim::kMbarrierRelaxed;
    } else if (form->ordered && order && !scope && (m == "cta" || m == "cluster")) {
      scope = true;
      if (m == "cta") bits |= sim::kMbarrierOfBlock;
    } else if (!space && (m == "shared" || m == "shared::cta")) {
      space = true;
      bits &= static_cast<std::uint16_t>(~(sim::kMbarrierGeneric | sim::kMbarrierRemote));
    } else if (!space && m == "shared::cluster" && form->remote) {
      space = true;
      bits &= static_cast<std::uint16_t>(~sim::kMbarrierGeneric);
    } else {
      unknown();
    }
  }
  if (order != scope) fail(fmt::format("{}: an order and its scope are given together", s.opcode));
  const bool expects = bits & sim::kMbarrierExpects;
  if (expects || form->op == MbarrierOp::kExpectTx || form->op == MbarrierOp::kCompleteTx ||
      form->name == "try_wait")
    require_sm(kBulkSm, "mbarriers that count bytes, and try_wait");
  const std::size_t first = form->returns ? 1 : 0;
  const std::size_t given = s.operands.size() < first + 1 ? 0 : s.operands.size() - first - 1;
  const int least = expects || (bits & sim::kMbarrierNoComplete) ? 1 : form->least;
  if (s.operands.size() < first + 1 || static_cast<int>(given) < least ||
      static_cast<int>(given) > form->most || s.operands[first].kind != Operand::Kind::kAddress)
    fail(fmt::format("{}: wrong operands", s.opcode));
  const bool by_state = waits && !(bits & sim::kMbarrierParity);
  // A time limit (of try_wait) has nothing to limit: there is no time.
  if (waits && given == 2) source(s.operands[first + 2], 'r');
  const std::uint32_t value = given > 0 ? source(s.operands[first + 1], by_state ? 'd' : 'r') : kNone;
  const bool result = form->returns && s.operands[0].kind != Operand::Kind::kSink;
  if (waits && !result) fail(fmt::format("{}: a predicate is missing", s.opcode));
  const std::uint32_t d = result ? destination(s.operands[0], waits ? 'p' : 'd') : kNone;
  IrInst& i = emit("@mbarrier", result ? 1 : 0, value != kNone ? 2 : 0);
  i.o[0] = d;
  i.o[1] = value;
  i.flags = static_cast<std::uint8_t>(form->op);
  i.aux = bits;
  set_address(i, s.operands[first]);
  return true;
}

/// The value of an address with its offset added.
std::uint32_t Lowering::whole_address(const Operand& address) {
  std::int64_t offset = 0;
  const std::uint32_t v = address_value(address, &offset);
  const RegisterClass cls = class_of(v);
  if (cls != RegisterClass::k64 && cls != RegisterClass::k32) fail("an address has 32 or 64 bits");
  if (offset == 0) return v;
  const std::uint32_t sum = temporary(cls);
  emit_simple(sim::find_row(cls == RegisterClass::k64 ? "add.u64" : "add.u32"),
              {sum, v, constant(cls, static_cast<std::uint64_t>(offset))});
  return sum;
}

/// From shared memory to that of a block of the cluster.
bool Lowering::lower_bulk_exchange(const Opcode& op, bool reduce) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  bool fits = s.operands.size() == 4;
  for (const std::size_t address : {0, 1, 3})
    fits = fits && s.operands[address].kind == Operand::Kind::kAddress;
  if (!fits) fail(fmt::format("{} takes two addresses, a size, and an mbarrier", s.opcode));
  const std::uint32_t to = whole_address(s.operands[0]), from = whole_address(s.operands[1]);
  const std::uint32_t bytes = source(s.operands[2], 'r'), mbarrier = whole_address(s.operands[3]);
  IrInst& i = emit("@bulk.exchange", 0, 0b1111);
  i.o[0] = to;
  i.o[1] = from;
  i.o[2] = bytes;
  i.o[3] = mbarrier;
  if (class_of(to) == RegisterClass::k32) i.aux |= sim::kBulkNarrowShared;
  if (class_of(from) == RegisterClass::k32) i.aux |= sim::kBulkNarrowSource;
  if (class_of(mbarrier) == RegisterClass::k32) i.aux |= sim::kBulkNarrowMbarrier;
  if (!reduce) return true;
  const auto form = sim::find_atomic(op.modifiers[op.modifiers.size() - 2], op.last());
  SW_CHECK(form, "no atomic is {}", s.opcode);
  i.imm = 1 + static_cast<int>(form->op);
  i.count = static_cast<std::uint8_t>(form->bytes);
  return true;
}

/// cp.async.bulk, cp.reduce.async.bulk: between global and shared memory, or two shared memories.
bool Lowering::lower_bulk(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const bool reduce = !op.modifiers.empty() && op.modifiers[0] == "reduce";
  const std::size_t first = reduce ? 1 : 0;
  if (op.base != "cp" || op.modifiers.size() < first + 3 || op.modifiers[first] != "async" ||
      op.modifiers[first + 1] != "bulk")
    return false;
  require_sm(kBulkSm, "bulk copies");
  const std::vector<std::string_view> rest(op.modifiers.begin() + static_cast<std::ptrdiff_t>(first) + 2,
                                           op.modifiers.end());
  if (rest[0] == "commit_group") {
    if (rest.size() != 1 || reduce) unknown();
    if (!s.operands.empty()) fail(fmt::format("{} takes no operands", s.opcode));
    emit("@bulk.commit");
    return true;
  }
  if (rest[0] == "wait_group") {
    const bool read = rest.size() == 2 && rest[1] == "read";
    if ((rest.size() > 1 && !read) || reduce) unknown();
    if (s.operands.size() != 1 || s.operands[0].kind != Operand::Kind::kInteger)
      fail("cp.async.bulk.wait_group takes a constant");
    IrInst& i = emit("@bulk.wait");
    i.imm = static_cast<std::int64_t>(s.operands[0].bits & 0xffffffff);
    i.flags = read;
    return true;
  }
  if (bulk_form(s.opcode).empty()) unknown();
  if (op.has("shared::cluster") && op.has("shared::cta")) return lower_bulk_exchange(op, reduce);
  const bool hint = op.has("L2::cache_hint"), multicast = op.has("multicast::cluster");
  if (rest[0] == "prefetch") return true;  // what is in L2 is not asked for
  const bool load = rest[0] != "global";
  const std::size_t addresses[] = {0, 1, 3};
  bool fits = s.operands.size() == (load ? 4u : 3u) + multicast + hint;
  for (std::size_t k = 0; fits && k < (load ? 3u : 2u); ++k)
    fits = s.operands[addresses[k]].kind == Operand::Kind::kAddress;
  if (!fits)
    fail(fmt::format("{} takes two addresses and a size{}{}{}", s.opcode, load ? ", and an mbarrier" : "",
                     multicast ? ", and a mask of blocks" : "", hint ? ", and a cache policy" : ""));
  if (hint) source(s.operands.back(), 'd');
  const std::uint32_t to = whole_address(s.operands[0]), from = whole_address(s.operands[1]);
  const std::uint32_t bytes = source(s.operands[2], 'r');
  const std::uint32_t mbarrier = load ? whole_address(s.operands[3]) : kNone;
  if (class_of(load ? from : to) != RegisterClass::k64) fail("a global address has 64 bits");
  const std::uint32_t ranks = multicast ? source(s.operands[4], 'h') : kNone;
  IrInst& i = emit(load ? "@bulk.load" : "@bulk.store", 0, load ? (multicast ? 0b11111 : 0b1111) : 0b111);
  i.o[0] = to;
  i.o[1] = from;
  i.o[2] = bytes;
  i.o[3] = mbarrier;
  if (class_of(load ? to : from) == RegisterClass::k32) i.aux |= sim::kBulkNarrowShared;
  if (load && class_of(mbarrier) == RegisterClass::k32) i.aux |= sim::kBulkNarrowMbarrier;
  if (rest[0] == "shared::cluster") i.flags = sim::kBulkRemote;
  i.o[4] = ranks;
  if (multicast) i.flags |= sim::kBulkMulticast;
  if (reduce) set_reduction(i, op);
  return true;
}

/// Of a bulk copy: flags are the operation from 1 on, count is the bytes of an element.
void Lowering::set_reduction(IrInst& i, const Opcode& op) {
  const std::size_t last = op.modifiers.size() - 1;
  const auto form = sim::find_atomic(op.modifiers[op.has("noftz") ? last - 2 : last - 1], op.last());
  SW_CHECK(form, "no atomic is {}", op.last());
  const sim::AtomicOp atomic = form->op == sim::AtomicOp::kAddF32 ? sim::AtomicOp::kAddF32Flush : form->op;
  i.flags = static_cast<std::uint8_t>(1 + static_cast<int>(atomic));
  i.count = static_cast<std::uint8_t>(form->bytes);
  i.aux |= sim::kStrong;
  program_.has_global_atomics = true;  // blocks run in order
}

/// The kernel needs a device of that compute capability for `what`.
void Lowering::require_sm(int sm, std::string_view what) {
  if (sm <= program_.info.needs_sm) return;
  program_.info.needs_sm = sm;
  program_.info.needs_sm_for = what;
}

}  // namespace stitchwork::ptx
