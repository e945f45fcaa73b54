// The checks made only when asked for: races and uninitialised memory and registers. docs/simulator.md has
// the rules.
//
// They work on a copy of the kernel's decoded code in which memory instructions, fences and the like go
// through a handler that looks first and then calls the real one: a launch without sanitizers runs none of
// this.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "simulator/check/race_clocks.h"
#include "simulator/check/race_shadow.h"
#include "simulator/isa/isa.h"
#include "simulator/machine/atomics.h"
#include "simulator/machine/block.h"

namespace stitchwork::sim {

/// What a memory instruction does, from its row of the instruction table.
struct MemoryForm {
  enum class Space : std::uint8_t { kNone, kGlobal, kGeneric, kShared, kCluster, kLocal };
  Space space = Space::kNone;
  bool reads = false, writes = false;
  /// cp.async and matrix instructions: what a lane moves is not in registers of its own.
  bool opaque = false;
  bool keeps_memos = false;   ///< Inst::flags are of an AccessMemo
  bool fragment = false;      ///< wmma.load and wmma.store: a lane moves several elements apart
  std::uint8_t address = 4;   ///< operand
  std::uint32_t lanes = ~0u;  ///< that have an address
  std::uint32_t bytes = 0;    ///< each lane touches
  std::uint32_t index = 0;    ///< among the kernel's memory instructions
};

/// What an exchange within a warp is.
struct ExchangeForm {
  const char* name = nullptr;  ///< null: it is none
  Rendezvous kind = Rendezvous::kShuffle;
  int members = 0;  ///< operand
  bool shuffles = false;
};
/// By row of the instruction table.
ExchangeForm exchange_form(std::string_view row);

class WriteUndo;

/// Of one launch.
class Sanitizer final : public LaunchChecks {
 public:
  /// `context` must outlive it; its program is the kernel as decoded.
  Sanitizer(const LaunchContext& context, Sanitizers what);

  std::unique_ptr<BlockChecks> of_block(const BlockRun& block) override;

  /// The code to run instead.
  const ptx::Program& program() const { return program_; }
  const Inst& original(std::uint32_t id) const { return original_->code[id]; }
  const ptx::Program& original_program() const { return *original_; }
  const MemoryForm& form(std::uint32_t id) const { return forms_[id]; }
  const ExchangeForm& exchange(std::uint32_t id) const { return exchanges_[program_.rows[id]]; }
  std::uint32_t memory_instructions() const { return memory_instructions_; }
  const ptx::TrackedInst* tracked(std::uint32_t id) const {
    return tracked_[id] < 0 ? nullptr : &program_.tracked[static_cast<std::size_t>(tracked_[id])];
  }
  bool is_product(std::uint32_t id) const { return program_.rows[id] == product_row_; }
  const ptx::TrackedInst* product_registers(std::uint32_t id) const {
    return products_.empty() || products_[id] < 0
               ? nullptr
               : &program_.products[static_cast<std::size_t>(products_[id])];
  }

  /// Adds it to `events` and returns its number.
  std::uint32_t add_event(AccessEvents& events, const AccessEvent& event) const {
    if (events.size() > Toucher::kMaxEvents) refuse_events();
    if (events.empty()) events.push_back({});  // number 0
    events.push_back(event);
    return static_cast<std::uint32_t>(events.size() - 1);
  }
  RaceShadow& shadow(std::uint64_t window, std::uint64_t bytes);
  /// Whether one wrote to global memory what the other touched.
  bool meets(const Sanitizer& other) const;
  /// "block (1,0,0), thread (5,0,0) wrote at PTX line 12 (a.cu:3)"
  std::string describe(const AccessEvent& event, int lane, bool wrote, std::uint64_t seen_from_block) const;

  const Sanitizers what;
  const LaunchContext& context;
  const bool lockstep;  ///< warps of the target never part: lanes are ordered by their instructions
  SanitizerCounts counts;
  LaunchClocks clocks;
  AccessEvents global_events{true};  ///< of all blocks
  WriteUndo* undo = nullptr;         ///< told of stores to global memory before they are made

 private:
  [[noreturn]] void refuse_events() const;

  const ptx::Program* original_;
  ptx::Program program_;
  std::vector<MemoryForm> forms_;        ///< by Inst::id
  std::vector<ExchangeForm> exchanges_;  ///< by row
  std::vector<std::int32_t> tracked_;    ///< by Inst::id: index into Program::tracked, or -1
  const std::span<const IsaRow> rows_ = isa_rows();
  const int product_row_ = find_row("@wgmma");
  std::vector<std::int32_t> products_;  ///< likewise into Program::products; empty: nobody asks
  std::uint32_t memory_instructions_ = 0;
  std::vector<RaceShadow> shadows_;  ///< by window - kFirstAllocation
};

/// Blocks of this context run under the sanitizer.
void use_sanitizer(LaunchContext& context, Sanitizer& sanitizer);

/// What lanes touch one after another, or one thing that several touch.
struct Piece {
  std::uint64_t offset;
  std::uint32_t bytes;
  std::int32_t first_lane;  ///< Toucher::kSeveral: several
};

/// What the threads of a block did with global memory, or with their shared memory.
class BlockAccesses {
 public:
  /// `all` also holds the accesses of other blocks, for global memory.
  explicit BlockAccesses(AccessEvents& all) : all_(&all) {}

  /// For a block that begins. `places`: warps x memory instructions.
  void start(std::size_t places);
  const AccessEvent& operator[](std::uint32_t event) const { return (*all_)[event]; }
  /// The event of a warp's memory instruction whose clocks are `event.time`; a new one if they moved since.
  std::uint32_t event_of(const Sanitizer& launch, std::size_t place, const AccessEvent& event) {
    const std::uint32_t known = latest_[place];
    if (known != 0 && (*all_)[known].time == event.time) return known;
    const std::uint32_t added = latest_[place] = launch.add_event(*all_, event);
    if (added != own_end_) own_first_ = added;
    own_end_ = added + 1;
    return added;
  }
  /// All that the block did is ordered before all it will do: each of its warps passes one barrier.
  void settle();
  /// Such an access; false tells nothing.
  bool settled(std::uint32_t event) const { return event - settled_first_ < settled_count_; }

 private:
  AccessEvents* all_;
  std::vector<std::uint32_t> latest_;          ///< by (warp, memory instruction); 0: none
  std::uint32_t own_first_ = 1, own_end_ = 1;  ///< the latest events between which no other block has any
  std::uint32_t settled_first_ = 1, settled_count_ = 0;
};

/// Where the lanes of a warp access memory, as generic addresses.
struct LaneAddresses {
  /// Of the two half warps.
  enum class Shape : std::uint8_t { kUneven, kSame, kRuns };
  const std::byte* registers;  ///< of 4 or 8 bytes
  bool narrow;
  std::int64_t offset;  ///< added to each
  Shape shape;          ///< of all 32 lanes
  std::uint64_t operator[](int lane) const {
    std::uint32_t low = 0;
    std::uint64_t all = 0;
    const std::byte* at = registers + static_cast<std::ptrdiff_t>(lane) * (narrow ? 4 : 8);
    if (narrow) {
      std::memcpy(&low, at, sizeof low);
      return low + static_cast<std::uint32_t>(offset);
    }
    std::memcpy(&all, at, sizeof all);
    return all + static_cast<std::uint64_t>(offset);
  }
};
/// Shapes of so many warps' addresses, whose registers follow each other; `width`: each lane touches, a power
/// of two.
void read_shapes(const std::byte* registers, bool narrow, std::uint32_t width, int warps,
                 LaneAddresses::Shape* shapes);

/// Of one block.
class BlockSanitizer final : public BlockChecks {
 public:
  BlockSanitizer(Sanitizer& launch, const BlockRun& block);
  /// All checks are sanitizers.
  static BlockSanitizer& of(BlockChecks& checks) { return static_cast<BlockSanitizer&>(checks); }
  void start() override;

  /// Looks at an instruction that is about to run; throws FindingError.
  void look(Strand& s, const Inst* i);
  const Inst& original(const Inst* i) const { return launch_.original(i->id); }
  const ExchangeForm& exchange(const Inst* i) const { return launch_.exchange(i->id); }

  // What the machine tells (BlockChecks).
  void end_of_block() override;
  void barrier_arrive(const Strand& s, int id) override;
  void barrier_complete(const std::vector<Strand>& strands, int id, const Strand* last) override;
  void warp_barrier(const Strand& s) override;
  void cluster_arrive(const Strand& s, bool relaxed) override;
  void cluster_wait(const Strand& s) override;
  void cluster_complete() override;
  void mbarrier_init(const Strand& s, int warp, std::uint64_t offset) override;
  void mbarrier_inval(std::uint64_t offset) override { mbarriers_.erase(offset); }
  void mbarrier_use(Strand& s, const Inst* i, int warp, int lane, BlockChecks& owner,
                    std::uint64_t offset) override;
  void mbarrier_arrive(const Strand& s, int warp, BlockChecks& owner, std::uint64_t offset,
                       SyncOrder order) override;
  void mbarrier_complete(std::uint64_t offset) override;
  void mbarrier_wait(const Strand& s, int warp, std::uint64_t offset, SyncOrder order) override;
  void async_issued(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to) override;
  void async_write(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to) override;
  void bulk_load_source(Strand& s, const Inst* i, int warp, int lane, BlockChecks& owner,
                        std::span<const GlobalRange> from) override;
  void bulk_exchange_source(Strand& s, const Inst* i, int warp, int lane, std::uint64_t from,
                            std::uint32_t bytes) override;
  void bulk_load_target(Strand& s, const Inst* i, int warp, int lane, BlockChecks& owner,
                        const BulkCopies::Load& copy) override;
  void bulk_landed(const BulkCopies::Load& copy) override;
  std::uint32_t bulk_store(Strand& s, const Inst* i, int warp, int lane, std::uint64_t from,
                           std::uint32_t bytes, std::span<const GlobalRange> to) override;
  void bulk_store_waited(const BulkCopies::Store& copy, bool read) override;
  void tensor_map_written(std::uint64_t address) override;
  void product_reads(Strand& s, const Inst* i, int warp, std::vector<std::uint64_t>& chunks,
                     WarpProducts& products) override;
  void products_waited(int warp, std::uint32_t completed) override;

  // What its own handlers tell.
  void fence(const Strand& s, const Inst* i);
  void proxy_fence(const Strand& s, const Inst* i);
  /// An exchange whose lanes are all there: the masks they name, and what shuffles read.
  void look_at_members(Strand& s, const Inst* i, const ExchangeForm& form);
  void look_at_product(Strand& s, const Inst* i);
  void product_fence(const Strand& s);

 private:
  friend class WarpLook;
  /// One lane's access, before it is made.
  struct Access {
    Strand& s;
    const Inst* i;
    const MemoryForm& form;
    int warp, lane;         ///< of the strand's gang
    std::uint64_t address;  ///< generic
    std::uint64_t offset;   ///< in the allocation or the shared memory of the block at hand
    BlockAccesses& accesses;
    BlockSanitizer* owner = nullptr;  ///< of the shared memory; null: other memory
    bool strong() const { return i->aux & kStrong; }
  };
  void look_at_memory(Strand& s, const Inst* i, const MemoryForm& form);
  void look_at_async_copy(Strand& s, const Inst* i, const MemoryForm& form);
  void look_at_fragment(Strand& s, const Inst* i, const MemoryForm& form);
  void look_at_lane(const Access& a);
  /// mbarriers may lie in the block's shared memory, and bulk copies write or read it.
  bool has_async_objects() const {
    return block_.has_mbarriers || copies_under_way_ > 0 || block_.bulk->reads_under_way > 0;
  }
  /// Of a cp.async that will write some of these bytes of the block's shared memory.
  int line_of_copy(std::uint64_t offset, std::uint64_t bytes) const;
  bool touches_async_object(std::uint64_t offset, std::uint64_t bytes) const;
  /// Reports an ordinary access to one.
  void check_async_objects(const Access& a);
  /// Looks whether what others did with a range is ordered before a bulk copy at hand that `a` issues, and
  /// visible to it.
  void check_range(const Access& a, RaceShadow& shadow, std::uint64_t bytes);
  /// The same of an asynchronous store, which sees what is ordered before it.
  void check_store(const Access& a, std::uint64_t bytes);
  /// From now on the range counts as touched by a bulk copy.
  void mark_range(const BlockAccesses& accesses, RaceShadow& shadow, std::uint64_t offset,
                  std::uint64_t bytes, std::uint32_t event, bool writes, int issuing_warp);
  std::uint32_t bulk_event(AccessEvents& events, const Inst* i, int actor, BlockClocks::Time time,
                           bool strong = false) const;
  /// Reports a bulk load that is still writing some of what a bulk copy or a matrix product reads.
  void check_not_being_written(const Access& a, const char* reader, std::uint64_t bytes);
  /// Reports one that is still to read some of the shared memory of `a.owner` that is about to be written.
  void check_not_being_read(const Access& a, const char* writer, std::uint64_t bytes);
  void check_range_initialised(const Access& a, const ByteFlags& written, std::uint64_t bytes);
  /// Looks at the accesses of a warp's lanes together. False where that is not possible or one of them has to
  /// be reported: then each lane has to be looked at by itself, which changes nothing that this has done
  /// already.
  bool look_at_warp(Strand& s, const Inst* i, const MemoryForm& form, int warp, std::uint32_t lanes,
                    const LaneAddresses& addresses);
  /// Looks at what has been deferred, and defers no more before the next barrier of all warps.
  void look_at_deferred();
  /// All warps have passed one barrier, or none has done anything yet.
  void settle();
  /// The time of an access at hand.
  BlockClocks::Time now(int warp) const { return replayed_ != nullptr ? *replayed_ : clocks_.now(warp); }
  void look_at_registers(Strand& s, const Inst* i, const ptx::TrackedInst& t);
  /// The lanes of a warp for which all bits of what an instruction on bits makes are set; keeps those that
  /// are, of others.
  std::uint32_t look_at_bits(const Strand& s, const Inst* i, const ptx::TrackedInst& t, int warp,
                             std::uint32_t lanes);
  std::uint32_t lanes_without_element(const Strand& s, const Inst* i, const ptx::TrackedInst& t, int warp);
  std::size_t tracked_register(const ptx::TrackedInst& t, int operand, int block_warp) const;
  /// Of a register of one lane.
  struct SomeBits {
    std::uint64_t set = 0;
    bool as_stored = false;  ///< a word in memory as it is: a structure may have padding
  };
  SomeBits bits_set(std::size_t tracked, int lane) const;
  void keep_bits(std::size_t tracked, int lane, SomeBits bits);
  void keep_unset_elements(const Access& a, ByteFlags& written);
  /// What an instruction defines is set from now on.
  void set_registers(const Strand& s, const ptx::TrackedInst& t);
  void look_at_product_registers(Strand& s, const Inst* i, const ptx::TrackedInst& t);
  /// Of a register that wgmma uses, in one warp: the products (from 1) that set and read it last, the last of
  /// them, and when something else changed it last.
  struct ProductRegister {
    std::uint32_t set_by = 0, read_by = 0, inst = 0;
    std::uint64_t changed = 0;
  };
  ProductRegister& product_register(int number, int warp);
  std::uint32_t completed_products(int warp) const;
  [[noreturn]] void raise_product_register(Strand& s, const Inst* i, int warp, int number, const char* verb,
                                           const ProductRegister& r, bool reads);
  /// The block of the cluster whose shared memory an address names, or null; `base`: where that begins in the
  /// window.
  BlockSanitizer* owner_of(std::uint64_t address, std::uint64_t* base);
  /// Of the block of rank 0 in the cluster.
  BlockSanitizer& of_cluster();
  /// Of this block, to the shared memory of `owner`.
  BlockAccesses& accesses_to(BlockSanitizer& owner);
  /// Looks whether the other block runs for certain, and has the end of it remember the access.
  void check_lifetime(const Access& a);
  void synchronise(const Access& a);
  void check_initialised(const Access& a, ByteFlags& written, const std::string& where);
  bool leaves_to_use(const Access& a, const ByteFlags& written);
  void check_races(const Access& a, RaceShadow& shadow, const std::byte* memory);
  bool in_scopes(const Access& a, const AccessEvent& e) const;
  bool ordered(const Access& a, std::uint32_t event, int lane) const;
  bool ordered(const Access& a, Toucher earlier) const { return ordered(a, earlier.event(), earlier.lane()); }
  bool changes_nothing(const Access& a, std::uint64_t byte, std::uint64_t bytes, const std::byte* memory,
                       Toucher earlier) const;
  std::uint32_t event_of(const Access& a);
  int block_warp(const Strand& s, int warp) const { return s.gang * kGangWarps + warp; }
  std::string what_is_at(const Access& a) const;

  Sanitizer& launch_;
  const BlockRun& block_;
  BlockClocks clocks_;
  RaceShadow shared_shadow_;
  ByteFlags shared_written_, local_written_;
  /// Bytes of shared memory that copies (cp.async) which nobody has waited for will write, and how many
  /// copies.
  ByteFlags under_way_;
  std::uint64_t copies_under_way_ = 0;
  AccessEvents shared_events_{false};
  BlockAccesses global_accesses_, shared_accesses_;
  /// By rank: what this block did with the shared memory of others.
  std::vector<std::unique_ptr<BlockAccesses>> remote_accesses_;
  /// Of the block of rank 0, for the cluster: what the threads did that have arrived at the open barrier, and
  /// at the last complete one.
  Horizon cluster_arriving_, cluster_arrived_;
  /// The latest access to this block's shared memory by each warp of others: (block, warp, whether it was
  /// strong).
  struct RemoteAccess {
    AccessEvent event;
    int lane = 0;
    bool writes = false;
    std::uint32_t bytes = 0;
    std::uint64_t offset = 0;
  };
  std::map<std::tuple<std::uint32_t, int, bool>, RemoteAccess> touched_by_;
  /// Of an mbarrier of this block.
  struct MbarrierOrder {
    int init_warp = 0;
    BlockClocks::Time init;
    BlockClocks::AtMbarrier arriving, arrived;  ///< at all phases; at those that are complete
  };
  std::map<std::uint64_t, MbarrierOrder> mbarriers_;
  bool copies_in_bulk_ = false;  ///< or has: what they write, no barrier of all warps orders
  /// Reads of the block's shared memory since a barrier of all warps, as long as nothing has been written:
  /// what they read came before that barrier. If nothing is till the next one, all that comes is ordered
  /// after them, and they need not be looked at.
  struct DeferredRead {
    const Inst* inst;
    int warp;  ///< of the block
    BlockClocks::Time time;
    std::size_t first_piece, end_piece;
  };
  std::vector<DeferredRead> deferred_;
  std::vector<Piece> deferred_pieces_;  ///< with room behind the last read's
  bool deferring_ = false;
  const BlockClocks::Time* replayed_ = nullptr;  ///< of a read that is looked at late
  std::vector<std::uint32_t> registers_set_;     ///< lanes, by (tracked register, warp)
  /// Bits that are set of registers that are not as a whole, by (tracked register, warp, lane).
  std::unordered_map<std::size_t, SomeBits> bits_set_;
  std::vector<ProductRegister> product_registers_;  ///< by (register, warp); empty: none was touched
  std::vector<std::uint64_t> product_fences_;       ///< by warp, when the last wgmma.fence was
  std::uint64_t product_clock_ = 0;                 ///< of both
  /// Of the store at hand: lanes that store what was never set, by warp and element; empty if none does.
  std::vector<std::array<std::uint32_t, 4>> unset_elements_;
  /// By warp, of the first part of a vector that two instructions store: that, and the lanes that have set no
  /// element of it.
  struct UnsetPart {
    std::uint32_t first = ~0u, lanes = 0;
  };
  std::array<UnsetPart, kGangWarps> unset_parts_;
};

}  // namespace stitchwork::sim
