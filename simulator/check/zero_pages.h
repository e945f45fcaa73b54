// Memory that is zero and takes no room until touched.
#pragma once

#include <cstddef>
#include <memory>

namespace stitchwork::sim {

inline constexpr std::size_t kLargePage = std::size_t{2} << 20;

struct ZeroPagesFree {
  std::size_t bytes = 0;
  void operator()(void* p) const;
};
/// `large`: in pages of 2 MB where the host has them, so that scattered accesses miss its TLB less often.
/// Throws std::bad_alloc.
void* take_zero_pages(std::size_t bytes, bool large);

/// An array of a type that may be all zero.
template <class T>
using ZeroPages = std::unique_ptr<T[], ZeroPagesFree>;
template <class T>
ZeroPages<T> zero_pages(std::size_t count, bool large) {
  const std::size_t bytes = count * sizeof(T);
  return ZeroPages<T>(static_cast<T*>(take_zero_pages(bytes, large)), ZeroPagesFree{bytes});
}

}  // namespace stitchwork::sim
