// Sequences and optional values: lists of arrays that exist while the model is read only, so their lengths
// are known.
#include <algorithm>
#include <array>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Every part of a split is an op; a few bytes of a file could ask for any number of them.
constexpr std::int64_t kMostParts = std::int64_t{1} << 16;

Value sequence_of(Values elements) {
  Value sequence;
  sequence.kind = Value::Kind::kSequence;
  sequence.elements = std::move(elements);
  return sequence;
}

const Values& elements_of(NodeContext& c, int i) {
  const Value& value = c.in_any(i);
  c.check(value.kind == Value::Kind::kSequence, fmt::format("input {} is a tensor, a sequence is needed", i));
  return value.elements;
}

/// Input i as a place among `count` elements, counted from the end if negative.
std::int64_t place(NodeContext& c, int i, std::int64_t count) {
  const std::int64_t at = c.known_integer(i), length = count;
  c.check(at >= -length && at < length, fmt::format("position {} in a sequence of {}", at, length));
  return at < 0 ? at + length : at;
}

Values lower_construct(NodeContext& c) { return {sequence_of(c.all_inputs())}; }

Values lower_empty(NodeContext& c) {
  c.ignore("dtype");
  return {sequence_of({})};
}

Values lower_at(NodeContext& c) {
  const Values& elements = elements_of(c, 0);
  return {elements[static_cast<std::size_t>(place(c, 1, std::ssize(elements)))]};
}

Values lower_insert(NodeContext& c) {
  Values elements = elements_of(c, 0);
  const std::int64_t length = std::ssize(elements);
  std::int64_t at = length;
  if (c.has(2)) {
    at = c.known_integer(2);
    c.check(at >= -length && at <= length, fmt::format("position {} in a sequence of {}", at, length));
    if (at < 0) at += length;
  }
  elements.insert(elements.begin() + at, c.in(1));
  return {sequence_of(std::move(elements))};
}

Values lower_erase(NodeContext& c) {
  Values elements = elements_of(c, 0);
  c.check(!elements.empty(), "the sequence is empty");
  elements.erase(elements.begin() +
                 (c.has(1) ? place(c, 1, std::ssize(elements)) : std::ssize(elements) - 1));
  return {sequence_of(std::move(elements))};
}

Values lower_length(NodeContext& c) { return {Builder::integer(std::ssize(elements_of(c, 0)))}; }

Values lower_split_to_sequence(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", 0), x.rank()), extent = x.dim(axis);
  const bool keep = c.flag("keepdims", true) || c.has(1);
  Dims sizes;
  if (c.has(1) && c.in(1).rank() == 1) {
    sizes = c.known_integers(1);
    c.check_range("split", sizes, 0, extent);
  } else {
    const std::int64_t size = c.has(1) ? c.known_integer(1) : 1;
    c.check_range("split", {size}, 1, std::int64_t{1} << 40);
    const std::int64_t parts = extent / size + (extent % size != 0 ? 1 : 0);
    c.check(parts <= kMostParts, fmt::format("{} parts are more than {}", parts, kMostParts));
    for (std::int64_t at = 0; at < extent; at += size) sizes.push_back(std::min(size, extent - at));
  }
  Values parts;
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    c.check(at + size <= extent, fmt::format("the parts exceed the {} elements", extent));
    Value part = c.b.slice(x, axis, at, at + size);
    if (!keep) {
      Dims dims = part.dims();
      dims.erase(dims.begin() + axis);
      part = c.b.reshape(part, dims);
    }
    parts.push_back(std::move(part));
    at += size;
  }
  c.check(at == extent, fmt::format("the parts cover {} of {} elements", at, extent));
  return {sequence_of(std::move(parts))};
}

Values lower_concat_from_sequence(NodeContext& c) {
  Values elements = elements_of(c, 0);
  c.check(!elements.empty(), "the sequence is empty");
  const bool fresh = c.flag("new_axis", false);
  const int rank = elements[0].rank();
  const std::int64_t axis = c.axis(c.integer("axis"), rank + (fresh ? 1 : 0));
  for (Value& element : elements) {
    if (!fresh) continue;
    Dims dims = element.dims();
    c.check(element.rank() == rank, "the elements differ in rank");
    dims.insert(dims.begin() + axis, 1);
    element = c.b.reshape(element, dims);
  }
  return {c.b.concatenate(elements, axis)};
}

/// The body once for every element; inputs that are no sequences are the same for all.
Values lower_map(NodeContext& c) {
  const Values& elements = elements_of(c, 0);
  std::vector<Values> results(static_cast<std::size_t>(c.outputs()));
  const auto& body = c.graph("body");
  for (std::size_t e = 0; e < elements.size(); ++e) {
    Values arguments;
    for (int i = 0; i < c.inputs(); ++i) {
      const Value& input = c.in_any(i);
      const bool many = input.kind == Value::Kind::kSequence;
      c.check(!many || input.elements.size() == elements.size(), "the sequences differ in length");
      arguments.push_back(many ? input.elements[e] : input);
    }
    const Values outputs = c.run(body, arguments);
    c.check(outputs.size() == results.size(), "the body has another number of outputs than the node");
    for (std::size_t o = 0; o < outputs.size(); ++o) results[o].push_back(outputs[o]);
  }
  for (int i = 0; i < c.inputs(); ++i) c.ignore_input(i);
  Values sequences;
  for (Values& result : results) sequences.push_back(sequence_of(std::move(result)));
  return sequences;
}

// --- Optional values: the value itself, or none.

Values lower_optional(NodeContext& c) {
  c.ignore("type");
  c.check(c.has(0), "an optional value without one is not supported");
  return {c.in_any(0)};
}

Values lower_get_element(NodeContext& c) { return {c.in_any(0)}; }

Values lower_has_element(NodeContext& c) {
  const bool has = c.has(0);
  if (has) c.in_any(0);
  return {Builder::scalar_int(DType::kPred, has ? 1 : 0)};
}

constexpr std::array kSequenceRows = {
    OperatorRow{"ConcatFromSequence", 11, lower_concat_from_sequence},
    OperatorRow{"Optional", 15, lower_optional},
    OperatorRow{"OptionalGetElement", 15, lower_get_element},
    OperatorRow{"OptionalHasElement", 15, lower_has_element},
    OperatorRow{"SequenceAt", 11, lower_at},
    OperatorRow{"SequenceConstruct", 11, lower_construct},
    OperatorRow{"SequenceEmpty", 11, lower_empty},
    OperatorRow{"SequenceErase", 11, lower_erase},
    OperatorRow{"SequenceInsert", 11, lower_insert},
    OperatorRow{"SequenceLength", 11, lower_length},
    OperatorRow{"SequenceMap", 17, lower_map},
    OperatorRow{"SplitToSequence", 11, lower_split_to_sequence},
};

}  // namespace

std::span<const OperatorRow> sequence_operators() { return kSequenceRows; }

}  // namespace stitchwork::onnx_reader
