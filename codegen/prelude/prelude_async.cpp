#include "codegen/prelude/prelude.h"

namespace stitchwork {

std::string_view prelude_async() {
  return R"cuda(// Asynchronous copies (sm_80 and later; codegen/compile/ptx_target.h). kBytes (16, 8 or 4) of global memory go to shared
// memory past the thread's registers. They are there when the thread has waited for the group they were committed
// with; other threads see them behind a barrier after that. `to` is a place in shared memory (sw_shared_place).
SW_FN unsigned sw_shared_place(const void* p) {
  unsigned long long place;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(place) : "l"(p));
  return (unsigned)place;
}
template <int kBytes> SW_FN void sw_copy_async(unsigned to, const void* from) {
  if (kBytes == 16)  // past L1, too
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 : : "r"(to), "l"(from), "n"(kBytes) : "memory");
}
// At the end of an array only `left` bytes exist; zeros take the place of the others.
template <int kBytes> SW_FN void sw_copy_async_part(unsigned to, const void* from, int left) {
  const int bytes = left < kBytes ? left : kBytes;
  if (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"(to), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 : : "r"(to), "l"(from), "n"(kBytes), "r"(bytes) : "memory");
}
// Closes the thread's group of copies, which may be empty; waits until no more than its kOpen latest ones are under way.
SW_FN void sw_commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int kOpen> SW_FN void sw_wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kOpen) : "memory");
}
)cuda";
}

}  // namespace stitchwork
