#include "codegen/print/print_values.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/facts/facts.h"
#include "core/base/error.h"

namespace stitchwork {

namespace {

/// The assembler's operand class of the first word of a vector of so many bytes.
char operand_class(DType dtype, int bytes) {
  if (bytes == 2) return 'h';
  if (dtype == DType::kF32) return 'f';
  if (dtype == DType::kF64) return 'd';
  return byte_size(dtype) == 8 ? 'l' : 'r';
}

}  // namespace

ValuePrinter::ValuePrinter(const Graph& graph, const Schedule& kernel, const Step& step, const Layout& layout,
                           const PlaceNames& places, Namer names, bool canonical, Writer& out,
                           PartFunctions& parts)
    : computation_(graph.entry_computation()),
      graph_(graph),
      kernel_(kernel),
      step_(step),
      layout_(layout),
      places_(places),
      names_(std::move(names)),
      canonical_(canonical),
      out_(out),
      parts_(parts),
      variables_(step.values.size()),
      branches_(find_branches(computation_, step)),
      values_in_(branches_.all.size() + 1) {
  for (const int v : step_.order)
    values_in_[static_cast<std::size_t>(branches_.of[static_cast<std::size_t>(v)] + 1)].push_back(v);
}

IndexNames ValuePrinter::index_names(std::size_t dims, bool local) const {
  IndexNames names;
  names.wide = kernel_.wide_indices;
  names.dims = {local ? "local_row" : "row", "col"};
  const bool part_of_cols =
      is<mapping::Patch>(step_.mapping) ? layout_.segments > 1 : layout_.in_tile && layout_.by_parts;
  if (local && part_of_cols) names.dims[1] = "(col - first_col)";
  for (std::size_t d = 2; d < dims; ++d) names.dims.push_back(fmt::format("s{}", d - 2));
  const bool by_threads = is<mapping::Elements>(step_.mapping) || as<mapping::OneThread>(step_.mapping);
  // Of a staged task's first vector some elements may be the task's before, so that local_row is negative.
  if (!local && by_threads && !step_.turned && !is_staged(step_.mapping)) names.task_rows = layout_.task_rows;
  return names;
}

IndexNames ValuePrinter::place_names(const Value& value) const {
  IndexNames names = index_names(value.at.map.dims.size(), value.local);
  // The block's part of a value a col, which all tasks have.
  const bool part = step_.turned && layout_.by_parts;
  if (value.local && part &&
      kernel_.buffers[static_cast<std::size_t>(value.buffer)].space != MemorySpace::kShared)
    names.rename(0, "(first_col + local_row)");
  return names;
}

IndexNames ValuePrinter::access_names(const Access& access, bool local) {
  IndexNames names = index_names(access.map.dims.size(), local);
  const char* index = names.wide ? "long long" : "int";
  for (std::size_t i = 0; i < access.runtime.size(); ++i) {
    const Interval& range = access.map.runtime[i].range;
    std::string& variable = clamped_[{access.runtime[i], range, scope_, depth_}];
    if (variable.empty()) {
      variable = names_.make(computation_.node(access.map.runtime[i].op).name, "v", "_at");
      out_.line(fmt::format("const {0} {1} = sw_clamp_index<{0}>({2}, {3}, {4});", index, variable,
                            name(access.runtime[i]), range.lo, range.hi));
    }
    names.runtime.push_back(variable);
  }
  return names;
}

void ValuePrinter::print(int scope, int depth) {
  const int outer_scope = scope_, outer_depth = depth_;
  scope_ = scope;
  depth_ = depth;
  // A loop's body may be printed twice: what the first declared is out of scope.
  std::erase_if(clamped_, [&](const auto& entry) {
    return std::get<2>(entry.first) == scope && std::get<3>(entry.first) == depth;
  });
  std::vector<int> values;
  std::copy_if(values_in_[0].begin(), values_in_[0].end(), std::back_inserter(values), [&](int v) {
    const Value& value = step_.values[static_cast<std::size_t>(v)];
    return value.scope == scope && (scope >= 0 || value.depth == depth);
  });
  print_values(values);
  scope_ = outer_scope;
  depth_ = outer_depth;
}

void ValuePrinter::print_values(const std::vector<int>& values) {
  if (prints_in_parts(values))
    print_in_parts(values);
  else
    for (const int v : values) print_value(v);
}

void ValuePrinter::print_value(int v) {
  const Value& value = step_.values[static_cast<std::size_t>(v)];
  const Node& node = computation_.node(value.op);
  const DType dtype = node.shape.dtype;
  if (value.kind == ValueKind::kConstant) {
    variables_[static_cast<std::size_t>(v)] = literal_text(*node.attrs.literal);
    return;
  }
  if (value.row_result >= 0) {
    variables_[static_cast<std::size_t>(v)] = places_.row_results[static_cast<std::size_t>(value.row_result)];
    return;
  }
  const bool load = value.kind == ValueKind::kLoad;
  if (branches_.of[static_cast<std::size_t>(v)] >= 0 && ahead_.contains(v)) {
    variables_[static_cast<std::size_t>(v)] = load_expression(v);
    return;
  }
  if (value.kind == ValueKind::kSlice) {
    variables_[static_cast<std::size_t>(v)] = names_.make(node.name, "v", "_slice");
    out_.line(fmt::format("const {} {} = {};", kernel_.wide_indices ? "long long" : "int", name(v),
                          index_text(value.at.map.results[0], value.at.map, access_names(value.at))));
    return;
  }
  const std::string variable = names_.make(node.name, "v", load ? "_v" : "");
  variables_[static_cast<std::size_t>(v)] = variable;
  if (value.restored >= 0) {
    const bool shared = kernel_.kept[static_cast<std::size_t>(value.restored)].shared_offset >= 0;
    const std::string place = kept_place(value.restored);
    out_.line(fmt::format("const {} {} = {};", value_type(dtype), variable,
                          shared ? load_text(dtype, place) : place));
    return;
  }
  if (value.kind == ValueKind::kFold && ahead_.contains(v)) {
    const std::string element = fmt::format("sw_get({}, {})", vector(v), value.same ? "0" : "j");
    out_.line(fmt::format("const {} {} = {};", value_type(dtype), variable, rounded_text(dtype, element)));
  } else if (value.kind == ValueKind::kFold)
    print_fold(value, variable);
  else if (value.kind == ValueKind::kInnerReduce)
    print_inner_reduce(v, variable);
  else if (branches_.has(v))
    print_choice(v, variable);
  else {
    const std::string text = expression(v);
    out_.line(fmt::format("const {} {} = {};", value_type(dtype), variable, text));
  }
  if (value.row_place >= 0)
    out_.line(
        fmt::format("{} = {};", places_.row_results[static_cast<std::size_t>(value.row_place)], variable));
  if (value.kept < 0) return;
  const bool shared = kernel_.kept[static_cast<std::size_t>(value.kept)].shared_offset >= 0;
  out_.line(
      fmt::format("{} = {};", kept_place(value.kept), shared ? stored_text(dtype, variable) : variable));
}

std::string ValuePrinter::kept_place(int kept) const {
  const Kept& place = kernel_.kept[static_cast<std::size_t>(kept)];
  std::string index = place.tasks == 1 ? "i" : fmt::format("turn * {} + i", place.elements);
  // Neighbouring threads in neighbouring banks.
  if (place.shared_offset >= 0) index = fmt::format("({}) * {} + thread", index, kernel_.launch.block);
  return fmt::format("{}[{}]", places_.kept[static_cast<std::size_t>(kept)], index);
}

std::string ValuePrinter::place(int buffer, const std::string& index) const {
  const auto b = static_cast<std::size_t>(buffer);
  const bool leads = kernel_.buffers[b].alignment > 1;
  return fmt::format("{}[{}{}]", places_.buffers[b], leads ? "lead + " : "", index);
}

std::string ValuePrinter::loaded_place(const Value& value, const IndexNames& names) const {
  std::string index = index_text(value.offset, value.at.map, value.local ? place_names(value) : names);
  if (value.task_offset > 0) index += fmt::format(" - task * {}", value.task_offset);
  return place(value.buffer, index);
}

std::string ValuePrinter::expression(int v) {
  const Value& value = step_.values[static_cast<std::size_t>(v)];
  switch (value.kind) {
    case ValueKind::kLoad:
      return load_expression(v);
    case ValueKind::kChoose:
      return choose_expression(value);
    case ValueKind::kIndex: {
      const DType dtype = computation_.node(value.op).shape.dtype;
      const std::string index = index_text(value.at.map.results[0], value.at.map, access_names(value.at));
      return rounded_text(dtype, fmt::format("({})({})", value_type(dtype), index));
    }
    default:
      return apply_expression(value);
  }
}

std::string ValuePrinter::apply_expression(const Value& value) const {
  std::vector<std::string> arguments;
  for (int argument : value.arguments) arguments.push_back(name(argument));
  return apply_text(computation_, computation_.node(value.op), arguments);
}

void ValuePrinter::declare_ahead(int unroll) {
  ahead_.clear();
  vectors_.clear();
  ahead_at_ = unroll > 1 ? "[u]" : "";
  share_ahead();
  for (const AheadVector& vector : vectors_)
    out_.line(fmt::format("SwVector<{}, {}> {}{}{};", storage_type(vector.dtype), vector.width, vector.name,
                          unroll > 1 ? fmt::format("[{}]", unroll) : "", vector.conditional ? " = {}" : ""));
}

void ValuePrinter::load_ahead(const std::string& left) { load_branch_ahead(-1, left); }

std::string ValuePrinter::vector(int value) const {
  const auto found = ahead_.find(value);
  return found == ahead_.end() ? "" : vectors_[found->second].name + ahead_at_;
}

void ValuePrinter::hold_ahead(int unroll) {
  // An empty assembler statement that all of them go through; it takes at most 30 operands.
  // GCC's documentation of extended assembler gives the limit, which Clang's shares.
  constexpr std::size_t kMostOperands = 30;
  std::vector<std::string> words;
  for (const AheadVector& vector : vectors_) {
    if (vector.folded) continue;  // whose loads are behind one another
    const int bytes = vector.width * byte_size(vector.dtype);
    if (bytes < 2) continue;  // no operand is so narrow
    for (int u = 0; u < unroll; ++u)
      words.push_back(fmt::format("\"+{}\"({}{}.all{})", operand_class(vector.dtype, bytes), vector.name,
                                  unroll > 1 ? fmt::format("[{}]", u) : "", bytes > 2 ? ".word[0]" : ""));
  }
  if (words.size() > kMostOperands) words.resize(kMostOperands);
  if (words.size() > 1 && !canonical_) out_.line("// No load moves behind this: all of them are in flight.");
  if (words.size() > 1) out_.line(fmt::format("asm volatile(\"\" : {});", fmt::join(words, ", ")));
}

std::string ValuePrinter::load_expression(int v) {
  const Value& value = step_.values[static_cast<std::size_t>(v)];
  const DType dtype = computation_.node(value.op).shape.dtype;
  if (ahead_.contains(v)) {
    const std::string element = fmt::format("sw_get({}, {})", vector(v), value.same ? "0" : "j");
    return ahead_width(value) > 1 ? load_text(dtype, element) : load_alone_text(dtype, element);
  }
  const IndexNames names = access_names(value.at, false);
  const std::string text = loaded_place(value, names);
  const bool accumulator =
      kernel_.buffers[static_cast<std::size_t>(value.buffer)].partials && is_floating(dtype);
  const std::string read = accumulator ? text : load_alone_text(dtype, text);
  const std::string condition = open_condition(value.at.map, names);
  if (condition.empty()) return read;
  return fmt::format("{} ? {} : ({})0", condition, read, value_type(dtype));
}

std::string ValuePrinter::choose_expression(const Value& value) {
  std::string text;
  for (std::size_t i = 0; i < value.arguments.size(); ++i) {
    const std::string& argument = name(value.arguments[i]);
    IndexNames names = access_names(value.guards[i]);
    // What holds for all of a vector's elements or none is asked of its first: compilers then ask once.
    const auto lane = static_cast<std::size_t>(layout_.lane_dim);
    if (in_vectors() && value.scope < 0 && value.depth > static_cast<int>(lane) &&
        layout_.holds(value.guards[i].map))
      names.rename(lane, fmt::format("({} - j)", names.dims[lane]));
    const std::string condition = open_condition(value.guards[i].map, names);
    if (condition.empty() || i + 1 == value.arguments.size()) return text + argument;
    text += fmt::format("{} ? {} : ", condition, argument);
  }
  return text;
}

ValuePrinter::Fold ValuePrinter::fold_of(const Value& value, const IndexNames& names) const {
  const Node& node = computation_.node(value.op);
  const Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(value.buffer)];
  const std::int64_t elements = node.shape.elements_count();
  Fold fold;
  fold.reducer = *reducer_of(graph_, node);
  fold.split = buffer.elements / std::max<std::int64_t>(1, elements);
  fold.initial =
      value.arguments.empty() ? neutral_text(fold.reducer, node.shape.dtype) : name(value.arguments[0]);
  fold.partial = fmt::format("{}[s * {} + ({})]", places_.buffers[static_cast<std::size_t>(value.buffer)],
                             elements, index_text(value.offset, value.at.map, names));
  // Loads in flight; all of them where they are few.
  // As many as kMaxLoadsInFlightAcross of analysis/judge/cost_loads.cpp counts, because it follows this one.
  constexpr std::int64_t kUnrolledPartials = 16;
  // A choice, not measured: of vectors as many as 32 registers hold, half of what 1,024 threads an SM leave.
  constexpr std::int64_t kUnrolledWords = 32;
  const std::int64_t unrolled =
      value.ahead ? std::min(kUnrolledPartials, kUnrolledWords / ahead_width(value)) : kUnrolledPartials;
  const bool few = fold.split <= unrolled || (!buffer.across && !value.ahead);
  fold.unroll = few ? "#pragma unroll" : fmt::format("#pragma unroll {}", unrolled);
  return fold;
}

void ValuePrinter::print_fold(const Value& value, const std::string& variable) {
  const DType dtype = computation_.node(value.op).shape.dtype;
  const IndexNames names = access_names(value.at);
  const std::string condition = open_condition(value.at.map, names);
  const Fold fold = fold_of(value, names);
  out_.line(fmt::format("{} {} = {};", value_type(dtype), variable, fold.initial));
  out_.line(fold.unroll);
  out_.line(fmt::format("for (int s = 0; {}s < {}; ++s) {};", condition.empty() ? "" : condition + " && ",
                        fold.split, accumulate_text(fold.reducer, variable, fold.partial)));
  if (const std::string rounded = rounded_text(dtype, variable); rounded != variable)
    out_.line(fmt::format("{} = {};", variable, rounded));
}

/// The fold of a vector's rows: what each accumulates lies in the vector.
void ValuePrinter::fold_ahead(int v) {
  const Value& value = step_.values[static_cast<std::size_t>(v)];
  const AheadVector& folded = vectors_[ahead_.at(v)];
  const Fold fold = fold_of(value, index_names(value.at.map.dims.size()));
  const std::string op = computation_.node(value.op).name;
  const std::string part = names_.make(op, "v", "_part"), sum = names_.make(op, "v", "_sum");
  const std::string lanes = fmt::format("for (int j = 0; j < {}; ++j)", folded.width);
  out_.line("#pragma unroll");
  out_.line(fmt::format("{} sw_set({}, j, {});", lanes, vector(v), fold.initial));
  out_.line(fold.unroll);
  out_.open(fmt::format("for (int s = 0; s < {}; ++s)", fold.split));
  out_.line(fmt::format("SwVector<{}, {}> {};", storage_type(folded.dtype), folded.width, part));
  out_.line(fmt::format("sw_load({}, &{});", part, fold.partial));
  out_.line("#pragma unroll");
  out_.open(lanes);
  out_.line(fmt::format("{} {} = sw_get({}, j);", value_type(folded.dtype), sum, vector(v)));
  out_.line(fmt::format("{};", accumulate_text(fold.reducer, sum, fmt::format("sw_get({}, j)", part))));
  out_.line(fmt::format("sw_set({}, j, {});", vector(v), sum));
  out_.close();
  out_.close();
}

void ValuePrinter::print_inner_reduce(int v, const std::string& variable) {
  const Value& value = step_.values[static_cast<std::size_t>(v)];
  const Node& node = computation_.node(value.op);
  const DType dtype = node.shape.dtype;
  const auto reducer = reducer_of(graph_, node);
  SW_CHECK(reducer.has_value(), "{} reduces by more than one operation", node.name);
  out_.line(
      fmt::format("{} {} = {};", value_type(dtype), variable,
                  value.arguments.size() < 2 ? neutral_text(*reducer, dtype) : name(value.arguments[1])));
  const IndexNames dims = index_names(value.at.map.dims.size() + value.extents.size());
  const char* index = kernel_.wide_indices ? "long long" : "int";
  // A loop of one turn needs its index only for what is computed in it.
  const bool bare = value.guards[0].map.constraints.empty() &&
                    std::none_of(step_.order.begin(), step_.order.end(), [&](int other) {
                      return step_.values[static_cast<std::size_t>(other)].scope == v;
                    });
  for (std::size_t i = 0; i < value.extents.size(); ++i) {
    const std::string& s = dims.dims[value.at.map.dims.size() + i];
    if (value.extents[i] != 1) {
      out_.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", index, s, value.extents[i]));
    } else if (bare) {
      out_.open("");
    } else {
      out_.block();
      out_.line(fmt::format("const {} {} = 0;", index, s));
    }
  }
  if (value.extents.empty()) out_.open("");
  print(v, 0);
  const int outer = scope_;
  scope_ = v;
  const std::string condition = open_condition(value.guards[0].map, access_names(value.guards[0]));
  scope_ = outer;
  out_.line(fmt::format("{}{};", condition.empty() ? "" : fmt::format("if ({}) ", condition),
                        accumulate_text(*reducer, variable, name(value.arguments[0]))));
  for (std::size_t i = 0; i < std::max<std::size_t>(1, value.extents.size()); ++i) out_.close();
  if (const std::string rounded = rounded_text(dtype, variable); rounded != variable)
    out_.line(fmt::format("{} = {};", variable, rounded));
}

}  // namespace stitchwork
