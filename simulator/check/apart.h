// Sanitizers of blocks that run beside each other: each host thread has its own, which knows nothing of the
// others' blocks. Where blocks do not wait for each other, that finds all there is to find within blocks and
// among those of one thread; what is left is whether one thread's blocks touched what another's wrote. Such a
// launch, and one with a finding, is undone and run again in order, so that what is reported is the same
// however many threads there are.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "simulator/check/sanitizer.h"
#include "simulator/check/zero_pages.h"
#include "simulator/machine/block.h"

namespace stitchwork::sim {

/// What global memory was before a launch, where that writes: by pages, each kept before its first store.
class WriteUndo {
 public:
  explicit WriteUndo(DeviceMemory::Impl& memory);
  ~WriteUndo();
  /// Called before a store into that allocation, by any thread.
  void keep(std::uint64_t window, std::uint64_t offset, std::uint64_t bytes);
  /// All as it was, also what counts as written.
  void undo();

 private:
  static constexpr int kPageLog2 = 12;
  static constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageLog2;
  static constexpr std::uint64_t kPageWords = kPageBytes / ByteFlags::kWordBytes;
  struct Kept {
    explicit Kept(std::uint64_t bytes);
    std::uint64_t pages;
    std::unique_ptr<std::atomic<bool>[]> is_kept;
    ZeroPages<std::byte> bytes;
    ZeroPages<std::uint64_t> written;
  };
  void keep_page(std::uint64_t index, std::uint64_t page);

  DeviceMemory::Impl& memory_;
  std::mutex mutex_;
  std::deque<std::atomic<Kept*>> kept_;  ///< by allocation; null: nothing of it
};

/// Of one launch.
class ApartChecks {
 public:
  /// For so many threads. `in_order`: the sanitizer that would look at all blocks in order.
  ApartChecks(const LaunchContext& context, const Sanitizer& in_order, int threads);
  ~ApartChecks();

  /// What each thread runs its blocks with.
  std::vector<const LaunchContext*> contexts() const;
  /// Whether looking at all blocks in order would have found the same: nothing.
  bool nothing_left() const;
  /// What was checked, over all threads.
  SanitizerCounts counts() const;
  void undo() { undo_.undo(); }

 private:
  struct Thread {
    LaunchContext context;
    std::unique_ptr<Sanitizer> sanitizer;
  };
  DeviceMemory::Impl& memory_;
  WriteUndo undo_;
  std::deque<Thread> threads_;
};

}  // namespace stitchwork::sim
