#include "codegen/prelude/prelude.h"

namespace stitchwork {

std::string_view prelude_bulk() {
  return R"cuda(// Bulk copies (sm_90 and later; codegen/compile/ptx_target.h). One thread asks for a range of global memory in shared memory;
// both begin at multiples of 16 bytes and have such sizes. An mbarrier counts what was asked for and what has come; a
// phase of it ends when all the arrivals it was initialised for, one a copy, and all their bytes have been counted.
SW_FN void sw_init_mbarrier(unsigned mbarrier, int copies) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(mbarrier), "r"(copies) : "memory");
}
// By the thread that has initialised mbarriers, for its copies; other threads see them behind a barrier after that.
SW_FN void sw_fence_mbarriers() { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }
// Behind a barrier after the last wait: from here on the bytes are memory like any other.
SW_FN void sw_end_mbarrier(unsigned mbarrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" : : "r"(mbarrier) : "memory");
}
// Counts as one arrival, where there are no bytes to copy, too.
SW_FN void sw_copy_bulk(unsigned to, const void* from, int bytes, unsigned mbarrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(mbarrier), "r"(bytes) : "memory");
  if (bytes > 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(to), "l"(from), "r"(bytes), "r"(mbarrier) : "memory");
}
// Until the phase of that parity (of the first one: 0) has ended; then the thread sees what was copied.
SW_FN void sw_wait_for_bulk(unsigned mbarrier, int parity) {
  asm volatile("{\n\t.reg .pred come;\nWAIT:\n\t"
               "mbarrier.try_wait.parity.shared::cta.b64 come, [%0], %1;\n\t@!come bra WAIT;\n}"
               : : "r"(mbarrier), "r"(parity) : "memory");
}
// The other way: bytes that are waited for before they are overwritten, and before the block ends.
SW_FN void sw_store_bulk(void* to, unsigned from, int bytes) {
  if (bytes > 0)
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 : : "l"(to), "r"(from), "r"(bytes) : "memory");
}
SW_FN void sw_commit_stores() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
// For those of this thread: until all are read, or until what they wrote is there, too.
SW_FN void sw_wait_for_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory"); }
SW_FN void sw_wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;" : : : "memory"); }
// What the thread has stored, bulk copies that come later read and overwrite.
SW_FN void sw_fence_for_bulk() { asm volatile("fence.proxy.async;" : : : "memory"); }
)cuda";
}

}  // namespace stitchwork
