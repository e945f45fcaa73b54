// What an ONNX value is while a model is read: an array that some node of the graph will compute, an array
// known already, or a sequence of such.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork::onnx_reader {

using Dims = std::vector<std::int64_t>;

struct Recipe;

struct Value {
  enum class Kind : std::uint8_t { kAbsent, kArray, kSequence } kind = Kind::kAbsent;
  Shape shape;  ///< of an array
  /// The value, where it is known at read time: such values need no node until a node that stays uses them.
  std::shared_ptr<const Literal> constant;
  std::shared_ptr<const Recipe> recipe;  ///< how it was computed at read time, if it was
  NodeId node = kNoNode;                 ///< what computes it, in the scope of that number
  int scope = -1;
  /// An input of the model that it depends on, for messages; empty if it is known.
  std::string depends_on;
  std::vector<Value> elements;  ///< of a sequence

  bool present() const { return kind != Kind::kAbsent; }
  bool known() const { return constant != nullptr; }
  const Dims& dims() const { return shape.dims; }
  DType dtype() const { return shape.dtype; }
  int rank() const { return shape.rank(); }
  /// Throws Error where there is no such dimension.
  std::int64_t dim(std::int64_t i) const {
    if (i < 0 || i >= rank()) throw Error(fmt::format("{} has no dimension {}", to_text(shape), i));
    return shape.dims[static_cast<std::size_t>(i)];
  }
};

/// The node that computes a known value: large ones stay in the graph as what computes them (an iota, a
/// mask), not as their elements.
struct Recipe {
  Node node;  ///< without operands
  std::vector<Value> operands;
  int depth = 0;  ///< of the longest chain of recipes
};

}  // namespace stitchwork::onnx_reader
