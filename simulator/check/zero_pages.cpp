#include "simulator/check/zero_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace stitchwork::sim {

void* take_zero_pages(std::size_t bytes, bool large) {
  // Only memory that begins at a multiple of a large page is given one: what lies before is handed back.
  const std::size_t before = large ? kLargePage : 0;
  void* const mapped = mmap(nullptr, bytes + before, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  if (!large) return mapped;
  auto* const first = static_cast<std::byte*>(mapped);
  const std::size_t skip = (kLargePage - reinterpret_cast<std::uintptr_t>(first) % kLargePage) % kLargePage;
  if (skip > 0) munmap(first, skip);
  if (const std::size_t behind = (before - skip) / 4096 * 4096; behind > 0)
    munmap(first + skip + (bytes + 4095) / 4096 * 4096, behind);
  madvise(first + skip, bytes, MADV_HUGEPAGE);  // a wish: refused, pages are small
  return first + skip;
}

void ZeroPagesFree::operator()(void* p) const { munmap(p, bytes); }

}  // namespace stitchwork::sim
