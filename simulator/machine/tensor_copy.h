// cp.async.bulk.tensor: copies of boxes between tensors in global memory and shared memory (PTX ISA 8.7,
// 9.7.9.27). When they move is as of bulk copies (bulk_copy.h).
#pragma once

#include <string_view>

#include "simulator/machine/atomics.h"
#include "simulator/machine/block_run.h"

namespace stitchwork::sim {

/// Inst::flags of tensor copies: the dimensions, and what else the operands hold. Of rows: four rows of a
/// tensor of two dimensions, by a column and four numbers.
inline constexpr std::uint8_t kTensorRankMask = 7, kTensorMulticast = 8, kTensorRemote = 16,
                              kTensorIm2col = 32, kTensorRows = 64;

// Operands are wide (Lowering::emit_wide): shared memory, the map's address, coordinates (the innermost
// first), of im2col behind them the offsets unless it stores; a load has its mbarrier behind the map, and
// under multicast the mask of ranks last. aux: as of bulk copies.
const Inst* run_tensor_load(Strand& s, const Inst* i);
/// imm: 1 + AtomicOp's name in Lowering's list of reductions (tensor_reductions), 0: a plain store.
const Inst* run_tensor_store(Strand& s, const Inst* i);
/// Looks at the map alone: what is in L2 is not asked for.
const Inst* run_tensor_prefetch(Strand& s, const Inst* i);

/// tensormap.replace. o: the map's address, the value; imm: dimension; count: TensorMapField; aux: as of bulk
/// copies; flags 1: generic, 2: global, 3: shared.
const Inst* run_tensor_map_replace(Strand& s, const Inst* i);
/// tensormap.cp_fenceproxy. o: global address, address in shared memory.
const Inst* run_tensor_map_copy(Strand& s, const Inst* i);

/// "add", "min" ... as imm of a store numbers them from 1.
inline constexpr std::string_view kTensorReductions[] = {"add", "min", "max", "inc",
                                                         "dec", "and", "or",  "xor"};

}  // namespace stitchwork::sim
