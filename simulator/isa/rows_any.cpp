// Rows that gain little from wide vectors, for any x86-64 processor.
#include "simulator/isa/ops_async.h"
#include "simulator/isa/ops_cluster.h"
#include "simulator/isa/ops_sparse.h"
#include "simulator/isa/ops_tensor.h"
#include "simulator/isa/ops_wgmma.h"

namespace stitchwork::sim {

std::span<const IsaRow> isa_rows_any() {
  if (g_row_count == 0) {
    add_rare_rows();
    add_rare_convert_rows();
    add_convert_half_rows();
    add_special_rows();
    add_tensor_rows();
    add_cluster_rows();
    add_async_rows();
    add_wgmma_rows();
    add_sparse_rows();
  }
  return {g_rows, static_cast<std::size_t>(g_row_count)};
}

}  // namespace stitchwork::sim
