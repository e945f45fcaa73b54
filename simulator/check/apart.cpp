#include "simulator/check/apart.h"

#include <algorithm>
#include <cstring>

namespace stitchwork::sim {

WriteUndo::Kept::Kept(std::uint64_t bytes)
    : pages((bytes + kPageBytes - 1) >> kPageLog2),
      is_kept(std::make_unique<std::atomic<bool>[]>(pages)),
      bytes(zero_pages<std::byte>(std::max<std::uint64_t>(pages, 1) * kPageBytes,
                                  pages * kPageBytes >= kLargePage)),
      written(zero_pages<std::uint64_t>(std::max<std::uint64_t>(pages, 1) * kPageWords, false)) {}

WriteUndo::WriteUndo(DeviceMemory::Impl& memory) : memory_(memory), kept_(memory.allocations.size()) {}

WriteUndo::~WriteUndo() {
  for (const std::atomic<Kept*>& kept : kept_) delete kept.load();
}

void WriteUndo::keep(std::uint64_t window, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t index = window - kFirstAllocation;
  const Kept* const kept = kept_[index].load(std::memory_order_acquire);
  for (std::uint64_t page = offset >> kPageLog2; page <= (offset + bytes - 1) >> kPageLog2; ++page)
    if (kept == nullptr || !kept->is_kept[page].load(std::memory_order_acquire)) keep_page(index, page);
}

void WriteUndo::keep_page(std::uint64_t index, std::uint64_t page) {
  const std::lock_guard lock(mutex_);
  const Allocation& a = memory_.allocations[index];
  Kept* kept = kept_[index].load(std::memory_order_relaxed);
  if (kept == nullptr) {
    kept = new Kept(a.bytes.size());
    kept_[index].store(kept, std::memory_order_release);
  }
  if (kept->is_kept[page].load(std::memory_order_relaxed)) return;
  const std::uint64_t begin = page * kPageBytes;
  std::memcpy(&kept->bytes[begin], &a.bytes[begin],
              std::min<std::uint64_t>(kPageBytes, a.bytes.size() - begin));
  if (!a.written.empty())
    a.written.copy_words(page * kPageWords, kPageWords, &kept->written[page * kPageWords]);
  kept->is_kept[page].store(true, std::memory_order_release);
}

void WriteUndo::undo() {
  for (std::size_t index = 0; index < kept_.size(); ++index) {
    const Kept* const kept = kept_[index].load();
    if (kept == nullptr) continue;
    Allocation& a = memory_.allocations[index];
    for (std::uint64_t page = 0; page < kept->pages; ++page) {
      if (!kept->is_kept[page].load()) continue;
      const std::uint64_t begin = page * kPageBytes;
      std::memcpy(&a.bytes[begin], &kept->bytes[begin],
                  std::min<std::uint64_t>(kPageBytes, a.bytes.size() - begin));
      if (!a.written.empty())
        a.written.set_words(page * kPageWords, kPageWords, &kept->written[page * kPageWords]);
    }
  }
}

ApartChecks::ApartChecks(const LaunchContext& context, const Sanitizer& in_order, int threads)
    : memory_(context.memory->impl()), undo_(memory_) {
  for (int t = 0; t < threads; ++t) {
    Thread& thread = threads_.emplace_back(Thread{context, nullptr});
    thread.context.program = &in_order.original_program();
    thread.sanitizer = std::make_unique<Sanitizer>(thread.context, in_order.what);
    thread.sanitizer->undo = &undo_;
    use_sanitizer(thread.context, *thread.sanitizer);
  }
  for (Allocation& a : memory_.allocations) a.written.share(true);
}

ApartChecks::~ApartChecks() {
  for (Allocation& a : memory_.allocations) a.written.share(false);
}

std::vector<const LaunchContext*> ApartChecks::contexts() const {
  std::vector<const LaunchContext*> contexts;
  for (const Thread& thread : threads_) contexts.push_back(&thread.context);
  return contexts;
}

bool ApartChecks::nothing_left() const {
  std::size_t events = 0;
  for (const Thread& thread : threads_) events += thread.sanitizer->global_events.size();
  if (events > Toucher::kMaxEvents) return false;  // then so many cannot be told apart in order, either
  for (std::size_t a = 0; a < threads_.size(); ++a)
    for (std::size_t b = a + 1; b < threads_.size(); ++b)
      if (threads_[a].sanitizer->meets(*threads_[b].sanitizer)) return false;
  return true;
}

SanitizerCounts ApartChecks::counts() const {
  SanitizerCounts sum;
  for (const Thread& thread : threads_) sum += thread.sanitizer->counts;
  return sum;
}

}  // namespace stitchwork::sim
