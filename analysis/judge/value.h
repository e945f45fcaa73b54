// One value's share of a kernel's time: what computing it takes, counted as the kernels that do are
// (analysis/judge/cost_instructions.cpp), where there is no kernel yet.
#pragma once

#include "core/graph/graph.h"
#include "occupancy_model/timing.h"

namespace stitchwork {

/// The units that compute in this type, of a thread's work; 16-bit floats are computed in f32.
double& arithmetic(ThreadWork& work, DType dtype);

/// What a warp executes to compute an element of an op that does not reduce in each of its lanes. Dividing by
/// a constant power of two is multiplying; index maps take nothing.
ThreadWork work_of_op(const Computation& computation, const Node& node);

/// What a warp executes to load or store an element in each of its lanes; `together`: so many accesses of an
/// array have one address computed.
ThreadWork work_of_access(double together = 1);

/// What so many warps of a kernel that keeps all of a device busy take to execute this, and to load or store
/// so many bytes of memory beside it.
double share_us(const Device& device, const ThreadWork& warp, double warps, double bytes);

}  // namespace stitchwork
