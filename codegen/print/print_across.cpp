#include "codegen/print/print_across.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"

namespace stitchwork {

void declare_across(const TaskLoop& loop, PlaceNames& places, Namer& names, const Computation& computation,
                    Writer& out) {
  for (const AcrossRows& across : loop.across) {
    const Node& node = computation.node(across.op);
    const std::string& name = places.across[across.op] = names.make(node.name, "a", "_rows");
    out.line(fmt::format("{} {}[{}];", value_type(node.shape.dtype), name, across.layout.elements()));
    out.line("#pragma unroll");
    out.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {};", across.layout.elements(), name,
                         neutral_text(across.reducer, node.shape.dtype)));
  }
}

void flush_across(const Schedule& kernel, const TaskLoop& loop, const PlaceNames& places,
                  const std::string& taker, const Computation& computation, Writer& out) {
  bool workspace_busy = false;
  for (const AcrossRows& across : loop.across) {
    const Layout& layout = across.layout;
    const DType dtype = computation.node(across.op).shape.dtype;
    const std::string& name = places.across.at(across.op);
    // Of a staged row each block of a cluster has one part, else a vector in as many as the cluster has.
    const bool part = layout.by_parts;
    const std::int64_t threads = layout.stride / layout.width;
    const std::int64_t rows = layout.task_rows;
    if (rows > 1 && workspace_busy) out.line("__syncthreads();");
    workspace_busy = rows > 1;
    // The thread's elements of a row: vectors of a row's threads lie side by side, and of accumulators, which
    // are wider, take several accesses. What several rows of a task have is combined one by one.
    const std::int64_t vector = layout.width, stride = layout.stride;
    const std::int64_t together =
        rows > 1 ? 1 : std::min<std::int64_t>(vector, kVectorBytes / accumulator_bytes(dtype));
    out.line("#pragma unroll");
    out.open(fmt::format("for (int i = 0; i < {}; {})", across.layout.elements(),
                         together > 1 ? fmt::format("i += {}", together) : "++i"));
    if (rows > 1) {
      if (across.layout.elements() > 1) out.line("if (i > 0) __syncthreads();");
      out.line(fmt::format("{0}[i] = sw_column_reduce<{1}, {2}, {3}>({0}[i], ({4}*)(shared + {5}));", name,
                           reducer_name(across.reducer), threads, rows, value_type(dtype),
                           kernel.workspace_offset));
    }
    if (together > 1) {
      out.line(fmt::format("SwVector<{}, {}> sums;", value_type(dtype), together));
      out.line("#pragma unroll");
      out.line(fmt::format("for (int j = 0; j < {}; ++j) sw_set(sums, j, {}[i + j]);", together, name));
    }
    if (part)
      out.line(fmt::format("const int first_col = rank * {0}, end_col = sw_min(first_col + {0}, {1});",
                           layout.length, layout.cols));
    const std::string lane =
        layout.blocks > 1 && !part ? fmt::format("(rank * {} + thread)", kernel.launch.block) : "thread";
    const std::string first = part ? "first_col + " : "";
    if (vector > 1)
      out.line(fmt::format("const int col = {}{} * {} + i / {} * {} + i % {};", first, lane, vector, vector,
                           stride, vector));
    else
      out.line(fmt::format("const int col = {}{} + i * {};", first, lane, stride));
    const std::string end = part ? "end_col" : fmt::format("{}", layout.cols);
    const std::string guard = threads < kernel.launch.block ? fmt::format("thread < {} && ", threads) : "";
    const std::string place =
        fmt::format("{}[{}{} * {} + col]", places.buffers[static_cast<std::size_t>(across.partials)],
                    kernel.wide_indices ? "(long long)" : "", taker, layout.cols);
    out.line(together > 1 ? fmt::format("if ({}col < {}) sw_store(&{}, sums);", guard, end, place)
                          : fmt::format("if ({}col < {}) {} = {}[i];", guard, end, place, name));
    out.close();
  }
}

}  // namespace stitchwork
