// mbarriers and bulk copies: what they do is in mbarrier.cpp and bulk_copy.cpp.
#pragma once

#include "simulator/isa/cluster_access.h"
#include "simulator/isa/ops_registry.h"
#include "simulator/machine/async_copy.h"
#include "simulator/machine/bulk_copy.h"
#include "simulator/machine/mbarrier.h"
#include "simulator/machine/tensor_copy.h"

namespace stitchwork::sim {
namespace {

/// fence.proxy: one memory, and nothing to do; sanitizers look.
const Inst* proxy_fence(Strand&, const Inst* i) { return i + 1; }

void add_async_rows() {
  const auto other = Pipe::kOther;
  add_row("@mbarrier", "", other, run_mbarrier, run_mbarrier);
  add_row("@async.arrive", "", other, run_async_arrive, run_async_arrive);
  add_row("@async.store", "", other, store_async, store_async);
  add_row("@mbarrier.pending_count", "", other, run_pending_count, run_pending_count);
  add_row("@bulk.load", "", other, run_bulk_load, run_bulk_load);
  add_row("@bulk.exchange", "", other, run_bulk_exchange, run_bulk_exchange);
  add_row("@bulk.store", "", other, run_bulk_store, run_bulk_store);
  add_row("@tensor.load", "", other, run_tensor_load, run_tensor_load);
  add_row("@tensor.store", "", other, run_tensor_store, run_tensor_store);
  add_row("@tensor.prefetch", "", other, run_tensor_prefetch, run_tensor_prefetch);
  add_row("@tensormap.replace", "", other, run_tensor_map_replace, run_tensor_map_replace);
  add_row("@tensormap.copy", "", other, run_tensor_map_copy, run_tensor_map_copy);
  add_row("@bulk.commit", "", other, commit_bulk_stores, commit_bulk_stores);
  add_row("@bulk.wait", "", other, wait_for_bulk_stores, wait_for_bulk_stores);
  add_row("@proxy_fence", "", other, proxy_fence, proxy_fence);
}

}  // namespace
}  // namespace stitchwork::sim
