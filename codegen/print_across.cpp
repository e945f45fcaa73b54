#include "codegen/print_across.h"

#include <fmt/format.h>

namespace stitchwork {

void declare_across(const TaskLoop& loop, PlaceNames& places, Namer& names, const Computation& computation,
                    Writer& out) {
  for (const AcrossRows& across : loop.across) {
    const Node& node = computation.node(across.op);
    const std::string& name = places.across[across.op] = names.make(node.name, "a", "_rows");
    out.line(fmt::format("{} {}[{}];", value_type(node.shape.dtype), name, across.elements));
    out.line("#pragma unroll");
    out.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {};", across.elements, name,
                         neutral_text(across.reducer, node.shape.dtype)));
  }
}

void flush_across(const Kernel& kernel, const TaskLoop& loop, const PlaceNames& places,
                  const std::string& block, const Computation& computation, Writer& out) {
  bool workspace_busy = false;
  for (const AcrossRows& across : loop.across) {
    const ThreadMapping& mapping = across.mapping;
    const DType dtype = computation.node(across.op).shape.dtype;
    const std::string& name = places.across.at(across.op);
    const std::int64_t threads = mapping.threads_per_row, rows = mapping.rows_per_block;
    if (rows > 1 && workspace_busy) out.line("__syncthreads();");
    workspace_busy = rows > 1;
    out.line("#pragma unroll");
    out.open(fmt::format("for (int i = 0; i < {}; ++i)", across.elements));
    if (rows > 1) {
      if (across.elements > 1) out.line("if (i > 0) __syncthreads();");
      out.line(fmt::format("{0}[i] = sw_column_reduce<{1}, {2}, {3}>({0}[i], ({4}*)(shared + {5}));", name,
                           reducer_name(across.reducer), threads, rows, value_type(dtype),
                           kernel.workspace_offset));
    }
    // The thread's i-th element of a row: vectors of a row's threads lie side by side.
    const std::int64_t vector = mapping.vector, stride = threads * vector;
    std::string col = vector > 1
                          ? fmt::format("thread * {} + i / {} * {} + i % {}", vector, vector, stride, vector)
                          : fmt::format("thread + i * {}", stride);
    out.line(fmt::format("const int col = {};", col));
    out.line(fmt::format("if (thread < {} && col < {}) {}[{}{} * {} + col] = {}[i];", threads, mapping.cols,
                         places.buffers[static_cast<std::size_t>(across.partials)],
                         kernel.wide_indices ? "(long long)" : "", block, mapping.cols, name));
    out.close();
  }
}

}  // namespace stitchwork
