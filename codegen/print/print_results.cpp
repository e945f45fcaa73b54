// What becomes of a step's values: accumulators, reductions, stores.
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/print/print_step.h"
#include "core/base/error.h"

namespace stitchwork {

void StepPrinter::element_body() {
  values_.print(-1, 2);
  for (std::size_t i = 0; i < step_.roots.size(); ++i) {
    const Root& root = step_.roots[i];
    if (root.store == StoreKind::kGather) {
      out_.line(fmt::format("sw_gather({}, {});", places_.gathered[static_cast<std::size_t>(root.gathered)],
                            values_.name(root.value)));
    } else if (reduces(root)) {
      if (root.value >= 0 && passes(root))
        out_.line(accumulate_text(root.reducer, accumulators_[i] + (in_column_vectors() ? "[j]" : ""),
                                  values_.name(root.value)) +
                  ";");
    } else if (root.store == StoreKind::kAcross) {
      out_.line(accumulate_text(root.reducer, places_.across.at(root.op) + "[i]", values_.name(root.value)) +
                ";");
    } else {
      store(root, values_.name(root.value));
    }
  }
}

void StepPrinter::declare_accumulators() {
  for (std::size_t i = 0; i < step_.roots.size(); ++i) {
    const Root& root = step_.roots[i];
    if (!reduces(root)) continue;
    const Node& node = computation_.node(root.op);
    accumulators_[i] = values_.names().make(node.name, "a", "_acc");
    const std::string neutral = neutral_text(root.reducer, node.shape.dtype);
    if (in_column_vectors())
      out_.line(fmt::format(
          "{} {}[{}] = {{{}}};", value_type(node.shape.dtype), accumulators_[i], layout_.width,
          fmt::join(std::vector<std::string>(static_cast<std::size_t>(layout_.width), neutral), ", ")));
    else
      out_.line(fmt::format("{} {} = {};", value_type(node.shape.dtype), accumulators_[i], neutral));
  }
}

void StepPrinter::finish_reduction(const Root& root, std::size_t index, const std::string& writer) {
  const DType dtype = computation_.node(root.op).shape.dtype;
  const std::string& accumulator = accumulators_[index];
  const std::string_view reducer = reducer_name(root.reducer), type = value_type(dtype);
  if (is<mapping::Columns>(step_.mapping)) {
    const std::int64_t rows = layout_.task_rows, slices = layout_.slices;
    if (slices > 1) {
      if (shared_.workspace != SharedState::kFree) out_.line("__syncthreads();");
      shared_.workspace = SharedState::kAllBusy;
      out_.line(fmt::format("{0} = sw_column_reduce<{1}, {2}, {3}>({0}, ({4}*)(shared + {5}));", accumulator,
                            reducer, rows, slices, type, kernel_.workspace_offset));
    }
  } else if (layout_.blocks > 1) {
    reduce_in_cluster(root, accumulator);
  } else {
    const std::int64_t threads = layout_.threads_a_row;
    if (threads > 32) {
      if (shared_.workspace == SharedState::kAllBusy) out_.line("__syncthreads();");
      // All have read one half once all have come to the barrier of a reduction in the other.
      const bool second = shared_.workspace == SharedState::kFirstBusy;
      shared_.workspace = second ? SharedState::kSecondBusy : SharedState::kFirstBusy;
      out_.line(fmt::format("{0} = sw_row_reduce<{1}, {2}, {3}>({0}, {4}, ({5}*)(shared + {6}));",
                            accumulator, reducer, threads, block_, neutral_text(root.reducer, dtype), type,
                            kernel_.workspace_offset + (second ? kernel_.workspace_bytes / 2 : 0)));
    } else if (threads > 1) {
      out_.line(fmt::format("{0} = sw_warp_reduce<{1}, {2}>({0});", accumulator, reducer, threads));
    }
  }
  if (root.row_result >= 0) {
    fold_initial(root, accumulator);
    out_.line(fmt::format("{} = {};", places_.row_results[static_cast<std::size_t>(root.row_result)],
                          rounded_text(dtype, accumulator)));
  }
  if (root.targets.empty()) return;
  out_.open(fmt::format("if ({})", writer));
  if (root.row_result < 0) fold_initial(root, accumulator);
  store_only(root, accumulator);
  out_.close();
}

void StepPrinter::store(const Root& root, const std::string& value) {
  fold_initial(root, value);
  store_only(root, value);
}

/// The initial value is folded in exactly once: by whoever folds the partials, by segment 0 of an atomic
/// combination, else here.
void StepPrinter::fold_initial(const Root& root, const std::string& value) {
  if (root.store != StoreKind::kReduce && root.store != StoreKind::kAtomic) return;
  if (root.initial < 0) return;  // of a product
  const Value& initial = step_.values[static_cast<std::size_t>(root.initial)];
  const bool neutral = initial.kind == ValueKind::kConstant &&
                       is_neutral(root.reducer, *computation_.node(initial.op).attrs.literal);
  if (neutral) return;
  const std::string fold = accumulate_text(root.reducer, value, values_.name(root.initial)) + ";";
  out_.line(root.store == StoreKind::kAtomic ? "if (segment == 0) " + fold : fold);
}

void StepPrinter::store_only(const Root& root, const std::string& value) {
  const DType dtype = computation_.node(root.op).shape.dtype;
  // Values of elements are rounded already, accumulators are not.
  const auto stored = [&] {
    return root.store == StoreKind::kElement ? exactly_stored_text(dtype, value) : stored_text(dtype, value);
  };
  for (const Target& target : root.targets) {
    const Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(target.buffer)];
    if (target.vector) {
      out_.line(fmt::format("sw_set({}, j, ({})({}));", vectors_.at(&target), storage_type(dtype), stored()));
      continue;
    }
    const std::string offset = offset_text(root, target);
    const std::string& place = places_.buffers[static_cast<std::size_t>(target.buffer)];
    if (root.store == StoreKind::kAtomic) {
      const std::string_view reducer = reducer_name(root.reducer);
      if (dtype == DType::kF16 || dtype == DType::kBF16)
        out_.line(fmt::format("sw_atomic_half<{}, {}>(&{}[{}], {});", reducer, dtype == DType::kBF16, place,
                              offset, value));
      else
        out_.line(fmt::format("SwAtomic<{}>::into(&{}[{}], ({}){});", reducer, place, offset,
                              storage_type(dtype), value));
    } else if (buffer.partials) {
      // A segment's rows side by side, so that warps store and fold them in whole sectors.
      out_.line(fmt::format("{}[segment * {} + {}] = {};", place, layout_.rows, offset, value));
    } else {
      out_.line(fmt::format("{}{} = {};", by_one_block(root, buffer), values_.place(target.buffer, offset),
                            stored()));
    }
  }
}

std::string StepPrinter::offset_text(const Root& root, const Target& target) const {
  const MemorySpace space = kernel_.buffers[static_cast<std::size_t>(target.buffer)].space;
  const bool shared = space == MemorySpace::kShared;
  const bool in_slice = root.slice >= 0 && space == MemorySpace::kGlobalOutput;
  IndexMap context;
  context.dims = {layout_.rows, layout_.cols};
  const std::string offset = index_text(target.offset, context, values_.index_names(2, shared));
  return in_slice ? fmt::format("{} + {}", values_.name(root.slice), offset) : offset;
}

}  // namespace stitchwork
