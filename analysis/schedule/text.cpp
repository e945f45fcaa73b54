#include <fmt/ranges.h>

#include "analysis/schedule/launch.h"
#include "analysis/schedule/schedule.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

std::string_view name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kConstant:
      return "constant";
    case ValueKind::kSlice:
      return "slice";
    case ValueKind::kIndex:
      return "index";
    case ValueKind::kLoad:
      return "load";
    case ValueKind::kFold:
      return "fold";
    case ValueKind::kApply:
      return "apply";
    case ValueKind::kChoose:
      return "choose";
    case ValueKind::kInnerReduce:
      return "inner-reduce";
  }
  return "?";
}

std::string_view name(StoreKind kind) {
  switch (kind) {
    case StoreKind::kElement:
      return "store";
    case StoreKind::kReduce:
      return "reduce";
    case StoreKind::kPartial:
      return "partial";
    case StoreKind::kAtomic:
      return "atomic";
    case StoreKind::kAcross:
      return "accumulate";
    case StoreKind::kGather:
      return "gather";
  }
  return "?";
}

std::string_view name(MemorySpace space) {
  switch (space) {
    case MemorySpace::kGlobalInput:
      return "input";
    case MemorySpace::kGlobalOutput:
      return "output";
    case MemorySpace::kScratch:
      return "scratch";
    case MemorySpace::kShared:
      return "shared";
  }
  return "?";
}

std::string buffer_text(const Computation& computation, const Buffer& buffer) {
  std::string text = fmt::format("{} {}", name(buffer.space), computation.node(buffer.op).name);
  if (buffer.partials) text += " partials";
  return text;
}

/// Partials are accumulators, of float where the op is a 16-bit one.
std::int64_t scratch_bytes(const Buffer& buffer) {
  return buffer.elements *
         (buffer.partials ? accumulator_bytes(buffer.shape.dtype) : byte_size(buffer.shape.dtype));
}

std::string value_text(const Computation& computation, const Schedule& kernel, const Value& value, int id) {
  const Node& node = computation.node(value.op);
  std::string text = fmt::format("%{} = {} {}", id, name(value.kind), node.name);
  if (value.buffer >= 0)
    text += fmt::format(" from {} at {}{}",
                        buffer_text(computation, kernel.buffers[static_cast<std::size_t>(value.buffer)]),
                        to_text(value.offset), value.local ? " in the task" : "");
  else if (value.kind != ValueKind::kConstant)
    text += " " + to_text(value.at.map);
  for (std::size_t i = 0; i < value.arguments.size(); ++i)
    text += fmt::format("{}%{}", i == 0 ? " of " : ", ", value.arguments[i]);
  if (value.scope >= 0) text += fmt::format(" in %{}", value.scope);
  if (value.row_result >= 0) text += fmt::format(", the row's result t{}", value.row_result);
  if (value.kept >= 0) text += fmt::format(", kept as r{}", value.kept);
  if (value.restored >= 0) text += fmt::format(", restored from r{}", value.restored);
  return text;
}

}  // namespace

std::string to_text(const Graph& graph, const Schedule& kernel) {
  const Computation& computation = graph.entry_computation();
  std::string text = fmt::format("kernel {} grid {} block {} shared {} scratch {} barriers {}\n", kernel.name,
                                 kernel.launch.grid, kernel.launch.block, kernel.launch.shared_bytes,
                                 kernel.launch.scratch_bytes, kernel.launch.grid_barriers);
  for (const Kept& kept : kernel.kept)
    text += fmt::format("kept {}: {} elements a thread in {} tasks, {}\n", computation.node(kept.op).name,
                        kept.elements, kept.tasks, kept.shared_offset < 0 ? "registers" : "shared memory");
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.space == MemorySpace::kGlobalInput || buffer.space == MemorySpace::kGlobalOutput) continue;
    const std::int64_t bytes = buffer.space == MemorySpace::kShared ? buffer.bytes() : scratch_bytes(buffer);
    if (bytes > 0)
      text += fmt::format("place {}{} at {}, {} bytes{}\n", buffer_text(computation, buffer),
                          buffer.tile ? " (tile)" : "", buffer.offset, bytes,
                          buffer.stages > 1 ? fmt::format(" for each of {} tasks", buffer.stages) : "");
  }
  for (std::size_t p = 0; p < kernel.phases.size(); ++p) {
    if (p > 0) text += "grid barrier\n";
    text += fmt::format("phase {}\n", p);
    for (const TaskLoop& loop : kernel.phases[p].loops) {
      text += fmt::format(
          "  loop of {}{}\n", to_text(loop.deal),
          loop.stages > 0 ? fmt::format(", tiles of {} asked for{}", loop.stages, loop.bulk ? " in bulk" : "")
                          : "");
      for (const LoopEntry& entry : loop.entries) {
        text += fmt::format("    entry of {}, {} rows", to_text(entry.deal), fmt::join(entry.rows, ", "));
        for (const int b : entry.buffers)
          text += fmt::format(", {}", buffer_text(computation, kernel.buffers[static_cast<std::size_t>(b)]));
        text += "\n";
      }
      int stage = loop.steps.empty() ? 0 : loop.steps.front().stage;
      for (const Step& step : loop.steps) {
        if (step.stage != stage) text += "    barrier\n";
        stage = step.stage;
        text += fmt::format("    step over {} of {}{}\n",
                            step.by_all ? "rows by all their threads"
                            : step.rows ? "rows"
                                        : "elements",
                            to_text(step.mapping, loop.deal),
                            step.filling == Filling::kAhead  ? ", copied ahead"
                            : step.filling == Filling::kOnce ? ", once a block"
                                                             : "");
        for (int v : step.order)
          text += fmt::format("      {}\n",
                              value_text(computation, kernel, step.values[static_cast<std::size_t>(v)], v));
        for (const Root& root : step.roots) {
          text += fmt::format("      {} {}", name(root.store), computation.node(root.op).name);
          if (root.value >= 0) text += fmt::format(" of %{}", root.value);
          if (root.row_result >= 0) text += fmt::format(" as t{}", root.row_result);
          for (const Target& target : root.targets)
            text +=
                fmt::format(" to {} at {}",
                            buffer_text(computation, kernel.buffers[static_cast<std::size_t>(target.buffer)]),
                            to_text(target.offset));
          if (root.slice >= 0) text += fmt::format(" behind %{}", root.slice);
          text += "\n";
        }
      }
    }
  }
  return text;
}

}  // namespace stitchwork
