// Loops that are equal up to buffers, rows and blocks: a body they share, a table with an entry each.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "codegen/print/print_kernel.h"

namespace stitchwork {

/// What the rows of a step are called in a body that entries share; "" where they are known.
std::string KernelPrinter::rows_name(const TaskLoop& loop, const Step& step) const {
  if (loop.entries.empty()) return "";
  const int field = layout_->rows_field[static_cast<std::size_t>(&step - loop.steps.data())];
  return field < 0 ? "" : field_names_[static_cast<std::size_t>(field)];
}

/// One body for all entries, a function above the kernel; here, the loop over a block's entries.
void KernelPrinter::print_shared_body(const TaskLoop& loop, bool several_tasks, bool shared) {
  layout_ = &table_.loops[next_table_++];
  const std::string& first = computation_.node(loop.steps.front().roots.front().op).name;
  const std::string entry_type = names_.make(first, "E", "_entry");
  const std::string body = names_.make(first, "f", "_body");
  const PlaceNames outside = places_;
  field_names_.clear();
  for (const EntryField& field : layout_->fields) field_names_.push_back(field_name(loop, field));

  std::swap(out_, bodies_);
  print_entry_type(loop, entry_type);
  open_body(loop, entry_type, body, shared);
  open_entry_tasks(loop);
  print_steps(loop, shared && (several_tasks || !layout_->one_a_block));
  if (several_tasks) out_.close();
  out_.close();
  out_.line("");
  std::swap(out_, bodies_);
  places_ = outside;
  call_body(loop, entry_type, body, shared);
}

std::string KernelPrinter::field_name(const TaskLoop& loop, const EntryField& field) {
  using Kind = EntryField::Kind;
  switch (field.kind) {
    case Kind::kPointer:
    case Kind::kSharedOffset: {
      const Buffer& own = buffer(loop.own_buffers[static_cast<std::size_t>(field.index)]);
      return names_.make(computation_.node(own.op).name, "b", suffix(own));
    }
    case Kind::kRows:
      return field.index == 0 ? "rows" : fmt::format("rows_{}", field.index + 1);
    case Kind::kTasks:
      return "tasks";
    case Kind::kBlocks:
      return "blocks";
    case Kind::kFirstBlock:
      return "first_block";
  }
  return "";
}

std::string KernelPrinter::field_type(const TaskLoop& loop, const EntryField& field) const {
  if (field.kind == EntryField::Kind::kPointer)
    return pointer_type(buffer(loop.own_buffers[static_cast<std::size_t>(field.index)]));
  return field.wide ? "long long" : "int";
}

void KernelPrinter::print_entry_type(const TaskLoop& loop, const std::string& type) {
  using Kind = EntryField::Kind;
  if (!canonical_)
    out_.line(fmt::format("// {} groups of {} share a body; what each has of its own:", loop.entries.size(),
                          kernel_.name));
  out_.open(fmt::format("struct {}", type));
  for (std::size_t f = 0; f < layout_->fields.size(); ++f) {
    const EntryField& field = layout_->fields[f];
    std::string note;
    if (field.kind == Kind::kSharedOffset) note = "  // bytes into shared memory";
    if (field.kind == Kind::kFirstBlock)
      note = "  // it has the tasks of blocks [first_block, first_block + blocks)";
    out_.line(fmt::format("{} {};{}", field_type(loop, field), field_names_[f], canonical_ ? "" : note));
  }
  out_.close(";");
}

/// What the body takes beside the entry: the places all entries have in common.
std::vector<std::string> KernelPrinter::common_places(const TaskLoop& loop, bool shared, bool declared) {
  std::vector<std::string> texts;
  if (shared) texts.emplace_back(declared ? "unsigned char* shared" : "shared");
  for (const int b : buffers_named(loop)) {
    const bool input = buffer(b).space == MemorySpace::kGlobalInput;
    const bool argument = input && table_.pointer_of[static_cast<std::size_t>(b)] < 0;
    texts.push_back(
        declared ? (argument ? parameter_text(b) : fmt::format("{} {}", pointer_type(buffer(b)), place(b)))
                 : place(b));
  }
  std::set<int> kept;
  for (const Step& step : loop.steps)
    for (const int v : step.order) {
      const Value& value = step.values[static_cast<std::size_t>(v)];
      if (value.kept >= 0) kept.insert(value.kept);
      if (value.restored >= 0) kept.insert(value.restored);
    }
  for (const int k : kept) {
    const Kept& value = kernel_.kept[static_cast<std::size_t>(k)];
    const std::string& name = places_.kept[static_cast<std::size_t>(k)];
    texts.push_back(declared ? fmt::format("{} (&{})[{}]", value_type(value.dtype), name, value.elements)
                             : name);
  }
  return texts;
}

void KernelPrinter::open_body(const TaskLoop& loop, const std::string& type, const std::string& body,
                              bool shared) {
  using Kind = EntryField::Kind;
  std::string parameters = fmt::format("const {}& entry, int block", type);
  for (const std::string& text : common_places(loop, shared, true)) parameters += ", " + text;
  out_.open(fmt::format("static __device__ __forceinline__ void {}({})", body, parameters));
  out_.line("const int thread = threadIdx.x;");
  for (std::size_t f = 0; f < layout_->fields.size(); ++f) {
    const EntryField& field = layout_->fields[f];
    const std::string& name = field_names_[f];
    if (field.kind == Kind::kPointer || field.kind == Kind::kSharedOffset)
      place(loop.own_buffers[static_cast<std::size_t>(field.index)]) = name;
    if (field.kind == Kind::kSharedOffset) {
      const std::string_view element =
          element_type(buffer(loop.own_buffers[static_cast<std::size_t>(field.index)]));
      out_.line(fmt::format("{0}* const {1} = ({0}*)(shared + entry.{1});", element, name));
    } else if (field.kind == Kind::kPointer || field.kind == Kind::kRows) {
      out_.line(fmt::format("{}{} {} = entry.{};", field.kind == Kind::kRows ? "const " : "",
                            field_type(loop, field) + (field.kind == Kind::kPointer ? " const" : ""), name,
                            name));
    }
  }
}

/// As open_tasks: balanced shares of an entry's tasks.
void KernelPrinter::open_entry_tasks(const TaskLoop& loop) {
  if (loop.most_tasks() == 1) {
    out_.line(fmt::format("const {} task = block;", index_));
    return;
  }
  const bool wide = std::any_of(loop.entries.begin(), loop.entries.end(), [](const LoopEntry& entry) {
    return entry.deal.tasks * entry.deal.takers > std::numeric_limits<std::int32_t>::max();
  });
  const auto share = [&](const char* block) {
    return fmt::format("({})({}{} * entry.tasks / entry.blocks)", index_, wide ? "(long long)" : "", block);
  };
  out_.line(fmt::format("const {0} first_task = {1}, end_task = {2};", index_, share("block"),
                        share("(block + 1)")));
  out_.open(fmt::format("for ({} task = first_task; task < end_task; ++task)", index_));
}

void KernelPrinter::call_body(const TaskLoop& loop, const std::string& type, const std::string& body,
                              bool shared) {
  std::string arguments;
  for (const std::string& text : common_places(loop, shared, false)) arguments += ", " + text;
  out_.block();
  take_pointers(loop);
  out_.line(fmt::format("const {0}* const entries = (const {0}*)(table + {1});", type, layout_->entries));
  const std::string first = fmt::format("((const int*)(table + {}))[blockIdx.x]", layout_->first_entries);
  if (layout_->one_a_block) {
    out_.line(fmt::format("const int e = {};", first));
    out_.open(fmt::format("if (e < {})", loop.entries.size()));
    out_.line(fmt::format("{}(entries[e], (int)blockIdx.x - entries[e].first_block{});", body, arguments));
  } else {
    out_.open(fmt::format("for (int e = {}; e < {}; ++e)", first, loop.entries.size()));
    out_.line("const int block = (int)blockIdx.x - entries[e].first_block;");
    out_.line("if (block < 0 || block >= entries[e].blocks) break;");
    out_.line(fmt::format("{}(entries[e], block{});", body, arguments));
  }
  out_.close();
  out_.close();
}

}  // namespace stitchwork
