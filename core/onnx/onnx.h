// ONNX models, read into graphs of our op table (docs/onnx.md).
//
// The road of a model: bytes -> pb::ModelProto (proto.h) -> every node in turn, through the table of
// operators (operators.h), becomes primitives made by the builder (builder.h) -> Graph. Whatever is known at
// read time (initializers, shapes, and what is computed from them) is computed at once by the reference
// evaluator, so chains of Shape, Gather, Concat and Reshape leave nothing behind.
//
// How to add an operator:
//  1. Find the family it belongs to, ops_FAMILY.cpp, or make a new one: a file with lowerings in an anonymous
//     namespace and one function `std::span<const OperatorRow> FAMILY_operators()` at its end that lists
//     them; declare that function in operators.h and put it into the list of families in operators.cpp.
//  2. Write `std::vector<Value> lower_NAME(NodeContext& c)`: take inputs with c.in(i), attributes with
//     c.integer("axis", default) and the like, build with c.b (builder.h), return the outputs in order;
//     optional outputs that c.wants(i) denies may be left out at the end or be Value{}. c.version is the
//     operator-set version: one lowering reads all versions of its operator. Take what ONNX's text says
//     (docs/Operators.md and docs/Changelog.md of the ONNX project), not what a runtime does.
//  3. What decides a shape must be known: c.known_integers(i). What is not supported is refused by
//     c.refuse("...") or c.check(holds, "..."); the reader puts file, node and operator in front.
//     Attributes and inputs that a lowering never asks for are refused by name; c.ignore("name") where one
//     changes no result.
//  4. Attributes may hold any number: c.check_range before adding or multiplying them.
//  5. Run the conformance table: test_core_unit --gtest_filter='OnnxConformance.*' and add the row to
//     docs/onnx.md (a test holds the page to the table).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork {

/// What a model leaves open.
struct OnnxOptions {
  /// Sizes of symbolic dimensions by name; one without a name is called INPUT[AXIS].
  std::map<std::string, std::int64_t> dims;
  /// Inputs whose value is fixed at read time: an array, or text (the path of a .npy file, or numbers as in
  /// "2,3"). They are no parameters of the graph.
  std::map<std::string, std::variant<std::string, Literal>> values;

  bool empty() const { return dims.empty() && values.empty(); }
};

/// From the command line's lists of NAME=SIZE and NAME=VALUE. Throws Error where one is not of that form.
OnnxOptions onnx_options(const std::vector<std::string>& dims, const std::vector<std::string>& values);

/// Whether a path names an ONNX file: .onnx, .onnx.gz.
bool is_onnx_path(std::string_view path);

/// Reads a .onnx or .onnx.gz file (source_sha256 is of its bytes, and of what else decided the graph), and
/// the files beside it that hold its tensors. Parameters are the graph's inputs in order, initializers are
/// constants, the root is the output or the tuple of the outputs. Throws Error naming the node, operator and
/// reason where anything is not supported, OpenModel (open_model.h) where options leave shapes open.
Graph read_onnx(const std::string& path, const OnnxOptions& options = {});

/// The same from memory; tensors in other files are looked for in `folder`, refused if it is empty.
Graph parse_onnx(std::string_view bytes, const std::string& file, const OnnxOptions& options = {},
                 const std::string& folder = {});

}  // namespace stitchwork
