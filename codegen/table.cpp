#include "codegen/table.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "analysis/schedule/launch.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

/// Parts of the table start on these boundaries.
/// Derived from the widest load, of 16 bytes.
constexpr std::int64_t kAlignment = 16;

bool in_global_memory(const Buffer& buffer) {
  return buffer.space == MemorySpace::kGlobalInput || buffer.space == MemorySpace::kGlobalOutput;
}

class TableBuilder {
 public:
  explicit TableBuilder(const Schedule& kernel) : kernel_(kernel) {}

  KernelTable run() {
    table_.holds.assign(kernel_.buffers.size(), false);
    table_.pointer_of.assign(kernel_.buffers.size(), -1);
    for (const Phase& phase : kernel_.phases)
      for (const TaskLoop& loop : phase.loops)
        if (!loop.entries.empty()) add(loop);
    hold_buffers_of_entries();
    hold_arguments();
    return std::move(table_);
  }

 private:
  const Buffer& buffer(int b) const { return kernel_.buffers[static_cast<std::size_t>(b)]; }

  void add(const TaskLoop& loop) {
    LoopTable layout = fields(loop);
    layout.first_entries = append(kernel_.launch.grid * static_cast<std::int64_t>(sizeof(std::int32_t)));
    const auto entries = static_cast<std::int32_t>(loop.entries.size());
    for (std::int64_t block = 0; block < kernel_.launch.grid; ++block)
      write(layout.first_entries + block * 4, entries);
    // Of one first block the widest comes first: it stands for all of them.
    for (std::int32_t e = entries - 1; e >= 0; --e) {
      const LoopEntry& entry = loop.entries[static_cast<std::size_t>(e)];
      for (std::int64_t block = 0; block < entry.deal.blocks(); ++block)
        write(layout.first_entries + (entry.deal.first_block + block) * 4, e);
    }
    layout.entries = append(layout.entry_bytes * entries);
    std::int64_t at = layout.entries, end = 0;
    layout.one_a_block = true;
    for (const LoopEntry& entry : loop.entries) {
      for (const EntryField& field : layout.fields) write(at + field.offset, entry, field);
      at += layout.entry_bytes;
      layout.one_a_block = layout.one_a_block && entry.deal.first_block >= end;
      end = std::max(end, entry.deal.end_block());
    }
    table_.loops.push_back(std::move(layout));
  }

  /// Pointers first, then what else has 8 bytes, then the rest.
  LoopTable fields(const TaskLoop& loop) const {
    using Kind = EntryField::Kind;
    LoopTable layout;
    std::vector<EntryField> fields;
    for (std::size_t b = 0; b < loop.own_buffers.size(); ++b) {
      const bool in_shared = buffer(loop.own_buffers[b]).space == MemorySpace::kShared;
      fields.push_back({in_shared ? Kind::kSharedOffset : Kind::kPointer, static_cast<int>(b), !in_shared});
    }
    std::vector<std::size_t> rows;  // steps with rows of their own
    for (std::size_t s = 0; s < loop.steps.size(); ++s) {
      layout.rows_field.push_back(-1);
      if (!has_partial_task(loop, s)) continue;
      const auto same = std::find_if(rows.begin(), rows.end(), [&](std::size_t other) {
        return std::all_of(loop.entries.begin(), loop.entries.end(),
                           [&](const LoopEntry& entry) { return entry.rows[s] == entry.rows[other]; });
      });
      layout.rows_field.back() = static_cast<int>(same == rows.end() ? s : *same);
      if (same != rows.end()) continue;
      rows.push_back(s);
      fields.push_back({Kind::kRows, static_cast<int>(s), kernel_.wide_indices});
    }
    if (std::any_of(loop.entries.begin(), loop.entries.end(),
                    [](const LoopEntry& entry) { return entry.deal.most_tasks() > 1; }))
      fields.push_back({Kind::kTasks, 0, kernel_.wide_indices});
    fields.push_back({Kind::kBlocks, 0, false});
    fields.push_back({Kind::kFirstBlock, 0, false});
    std::stable_partition(fields.begin(), fields.end(), [](const EntryField& field) { return field.wide; });
    for (EntryField& field : fields) {
      field.offset = layout.entry_bytes;
      layout.entry_bytes += field.wide ? 8 : 4;
    }
    if (fields.front().wide) layout.entry_bytes = (layout.entry_bytes + 7) / 8 * 8;
    layout.fields = std::move(fields);
    // A step's rows are a field's, by its place among the fields.
    for (int& step : layout.rows_field) {
      if (step < 0) continue;
      const auto found = std::find_if(
          layout.fields.begin(), layout.fields.end(),
          [&](const EntryField& field) { return field.kind == Kind::kRows && field.index == step; });
      step = static_cast<int>(found - layout.fields.begin());
    }
    return layout;
  }

  std::int64_t append(std::int64_t bytes) {
    const std::int64_t size = static_cast<std::int64_t>(table_.bytes.size());
    const std::int64_t start = (size + kAlignment - 1) / kAlignment * kAlignment;
    table_.bytes.resize(static_cast<std::size_t>(start + bytes));
    return start;
  }

  template <typename T>
  void write(std::int64_t at, T value) {
    std::memcpy(table_.bytes.data() + at, &value, sizeof value);
  }

  void write(std::int64_t at, const LoopEntry& entry, const EntryField& field) {
    if (field.kind == EntryField::Kind::kPointer)
      return point(at, buffer(entry.buffers[static_cast<std::size_t>(field.index)]));
    const std::int64_t value = field_value(kernel_, entry, field);
    if (field.wide) return write(at, value);
    SW_CHECK(value <= std::numeric_limits<std::int32_t>::max(), "{} does not fit 32 bits", value);
    write(at, static_cast<std::int32_t>(value));
  }

  void point(std::int64_t at, const Buffer& to) {
    using Kind = KernelArgument::Kind;
    const Kind kind = to.space == MemorySpace::kGlobalInput    ? Kind::kInput
                      : to.space == MemorySpace::kGlobalOutput ? Kind::kOutput
                                                               : Kind::kScratch;
    table_.pointers.push_back({at, kind, kind == Kind::kScratch ? kNoNode : to.op, to.offset});
  }

  /// What only entries name is no argument.
  void hold_buffers_of_entries() {
    std::vector<bool> own(kernel_.buffers.size(), false), named(kernel_.buffers.size(), false);
    const auto mark = [](std::vector<bool>& set, int b) { set[static_cast<std::size_t>(b)] = true; };
    for (const Phase& phase : kernel_.phases)
      for (const TaskLoop& loop : phase.loops) {
        for (const LoopEntry& entry : loop.entries)
          for (const int b : entry.buffers) mark(own, b);
        for (const int b : buffers_named(loop)) mark(named, b);
      }
    for (std::size_t b = 0; b < own.size(); ++b) table_.holds[b] = own[b] && !named[b];
  }

  void hold_arguments() {
    std::vector<int> arguments;
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b)
      if (in_global_memory(kernel_.buffers[b]) && !table_.holds[b]) arguments.push_back(static_cast<int>(b));
    if (arguments.size() <= kMostPointerArguments) return;
    // A pointer has 8 bytes (PTX ISA, .address_size 64).
    constexpr std::int64_t kPointer = 8;
    table_.first_pointer = append(kPointer * static_cast<std::int64_t>(arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto b = static_cast<std::size_t>(arguments[i]);
      point(table_.first_pointer + kPointer * static_cast<std::int64_t>(i), kernel_.buffers[b]);
      table_.pointer_of[b] = static_cast<int>(i);
      table_.holds[b] = true;
    }
  }

  const Schedule& kernel_;
  KernelTable table_;
};

}  // namespace

std::vector<int> buffers_named(const TaskLoop& loop) {
  std::vector<int> named;
  for (const Step& step : loop.steps) {
    for (const Value& value : step.values)
      if (value.buffer >= 0) named.push_back(value.buffer);
    for (const Root& root : step.roots)
      for (const Target& target : root.targets) named.push_back(target.buffer);
  }
  for (const AcrossRows& across : loop.across) named.push_back(across.partials);
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  std::erase_if(named, [&](int b) {
    return std::find(loop.own_buffers.begin(), loop.own_buffers.end(), b) != loop.own_buffers.end();
  });
  return named;
}

bool has_partial_task(const TaskLoop& loop, std::size_t step) {
  const Layout& layout = loop.steps[step].layout;
  const std::int64_t rows = layout.task_rows;
  if (loop.entries.empty()) return layout.rows % rows != 0;
  return std::any_of(loop.entries.begin(), loop.entries.end(),
                     [&](const LoopEntry& entry) { return entry.rows[step] % rows != 0; });
}

std::int64_t field_value(const Schedule& kernel, const LoopEntry& entry, const EntryField& field) {
  using Kind = EntryField::Kind;
  const auto index = static_cast<std::size_t>(field.index);
  switch (field.kind) {
    case Kind::kSharedOffset:
      return kernel.buffers[static_cast<std::size_t>(entry.buffers[index])].offset;
    case Kind::kRows:
      return entry.rows[index];
    case Kind::kTasks:
      return entry.deal.tasks;
    case Kind::kBlocks:
      return entry.deal.blocks();
    case Kind::kFirstBlock:
      return entry.deal.first_block;
    case Kind::kPointer:
      break;
  }
  fail_check(__FILE__, __LINE__, "a field with a value", "");
}

KernelTable kernel_table(const Schedule& kernel) { return TableBuilder(kernel).run(); }

}  // namespace stitchwork
