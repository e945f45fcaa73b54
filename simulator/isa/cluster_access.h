// Accesses to shared memory of any block of the cluster.
#pragma once

#include <cstdint>

#include "simulator/machine/block_run.h"

namespace stitchwork::sim {

/// Loads or stores of `element_bytes` each, of shared memory of any block of the cluster. `addresses`: in the
/// window of shared memory, of 32 lanes.
void access_cluster(Strand& s, const Inst* i, int warp, std::uint32_t mask, const std::uint64_t* addresses,
                    unsigned element_bytes, bool is_store);
/// Counts what these lanes access of other blocks' shared memory; returns those that access their own
/// block's.
std::uint32_t count_remote(BlockRun& b, std::uint32_t mask, const std::uint64_t* addresses);

/// st.async and red.async. o: up to four elements; o[4], o[5]: addresses of shared memory and of the
/// mbarrier; imm: 1 + AtomicOp, 0: a store; aux: as of bulk copies (async_store.cpp).
const Inst* store_async(Strand& s, const Inst* i);

}  // namespace stitchwork::sim
