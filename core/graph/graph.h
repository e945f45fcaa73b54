// The program: a module of named computations, as in HLO. Immutable after building; nodes are referred to by
// NodeId within their computation. The text form *is* HLO text (core/hlo/hlo_text.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/derived.h"
#include "core/graph/literal.h"
#include "core/graph/op.h"
#include "core/graph/shape.h"

namespace stitchwork {

using NodeId = std::int32_t;         ///< index into Computation::nodes
using ComputationId = std::int32_t;  ///< index into Graph::computations
inline constexpr NodeId kNoNode = -1;

enum class Comparison : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

struct SliceSpec {
  std::int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceSpec&) const = default;
};

struct PadSpec {
  std::int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PadSpec&) const = default;
};

struct DotDims {
  std::vector<std::int64_t> lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  bool operator==(const DotDims&) const = default;
};

struct GatherDims {
  std::vector<std::int64_t> offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims, slice_sizes;
  std::int64_t index_vector_dim = 0;
  bool operator==(const GatherDims&) const = default;
};

/// An array of which update-in-place writes a slice (core/passes/in_place.h).
struct UpdatedArray {
  NodeId op = kNoNode;  ///< it lies in this op's buffer
  Shape shape;
};

/// Where an array lies that shares its memory with others (core/passes/lay_beside.h): a block of a matrix.
struct PlacedArray {
  NodeId owner = kNoNode;   ///< the op whose buffer the matrix is
  Shape matrix;             ///< all of it, row by row
  std::int64_t offset = 0;  ///< of the array's first element, in elements of the matrix
  std::int64_t cols = 1;    ///< the array's, so many elements of a row of the matrix
  /// Of the array's dimensions, as linearize has it: those of the array, but for the one by which the rest of
  /// a row of the matrix is stepped over.
  std::vector<std::int64_t> extents;
  /// It was made for its place: another op of the same value lies elsewhere, and is not merged with it.
  bool own = false;
};

/// Typed attributes of an op; which ones are set is the op's business (docs/hlo.md). Attributes nobody here
/// interprets (sharding, backend_config, window, dim_labels, ...) are kept verbatim in `other`, in order.
struct Attributes {
  std::vector<std::int64_t>
      dimensions;  ///< broadcast, reduce, transpose, reverse, concatenate, iota (iota_dimension)
  std::vector<SliceSpec> slice;
  std::vector<PadSpec> padding;
  std::vector<std::int64_t> slice_sizes;  ///< dynamic-slice
  std::optional<Comparison> comparison;
  std::optional<DotDims> dot;
  std::optional<GatherDims> gather;
  std::int64_t parameter_number = -1;
  /// Of a parameter: every run is given the same values. No part of the text form (analysis/facts/once.h).
  bool weight = false;
  std::int64_t tuple_index = -1;
  std::shared_ptr<const Literal> literal;       ///< constant; shared between copies of a graph, never mutated
  std::shared_ptr<const UpdatedArray> updated;  ///< update-in-place; no part of the text form
  std::shared_ptr<const PlacedArray> placed;    ///< of any op; no part of the text form
  std::vector<ComputationId>
      computations;  ///< to_apply, calls, condition+body, branch computations: in that order
  std::vector<std::pair<std::string, std::string>> other;
};

/// metadata={op_type=... op_name=...}; op_name's slashes are the scopes that layers fold by.
struct Metadata {
  std::string op_type, op_name;
  std::vector<std::pair<std::string, std::string>> other;  ///< source_file, source_line, ...
};

struct Node {
  NodeId id = kNoNode;
  Op op = Op::kParameter;
  std::string name;  ///< unique in its computation; without the leading %
  Shape shape;
  std::vector<NodeId> operands;
  Attributes attrs;
  Metadata metadata;
  int line = 0;  ///< in the file it was read from; 0 if made by a pass
};

/// What one instruction of an already compiled module held before it was inlined (core/passes/passes.h
/// inline_calls): the ops of a fusion.
struct ImportedKernel {
  std::string name;           ///< of the fusion instruction
  std::string kind;           ///< "kLoop", "kInput", "kOutput", "kCustom"
  std::vector<NodeId> ops;    ///< ascending
  std::vector<NodeId> roots;  ///< those whose values it gives, ascending
  bool operator==(const ImportedKernel&) const = default;
};

/// Nodes are in topological order: operands precede users.
struct Computation {
  std::string name;
  /// Behind its closing brace, verbatim, in order: execution_thread.
  std::vector<std::pair<std::string, std::string>> attributes;
  /// What passes made of its fusions, in their order. No part of the text form.
  std::vector<ImportedKernel> imported;
  std::vector<Node> nodes;
  NodeId root = kNoNode;
  std::vector<NodeId> parameters;  ///< by parameter number
  Derived derived;                 ///< what analyses found; no part of the value

  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  int size() const { return static_cast<int>(nodes.size()); }
  NodeId find(std::string_view node_name) const;  ///< kNoNode if absent
  /// Users of every node, each listed once, ascending.
  std::vector<std::vector<NodeId>> users() const;
};

class Graph {
 public:
  std::string name;                       ///< HloModule name
  std::vector<Computation> computations;  ///< callees precede callers
  ComputationId entry = 0;
  /// Module attributes kept verbatim, in order: entry_computation_layout, input_output_alias, ...
  std::vector<std::pair<std::string, std::string>> attributes;
  /// Patterns of parameters that are declared as weights; whether they are planned as such is asked for
  /// (analysis/facts/once.h).
  std::vector<std::string> weights;
  std::string source;         ///< path it was read from, for messages
  std::string source_sha256;  ///< of the file's (decompressed) text

  const Computation& entry_computation() const { return computations[static_cast<std::size_t>(entry)]; }
  const Computation& computation(ComputationId id) const {
    return computations[static_cast<std::size_t>(id)];
  }
};

/// If `reducer` is one commutative binary op of its two parameters (add, multiply, maximum, minimum, and, or,
/// xor), that op. Anything else cannot be reduced by generated code.
std::optional<Op> simple_reducer(const Graph& graph, ComputationId reducer);

/// The computation the op applies (reduce, map, call, fusion): attrs.computations[0].
ComputationId applied(const Node& node);

/// Checks every invariant above (topological order, unique names, parameter numbers, operand counts, shapes
/// equal to infer_shape). Throws Error naming the node and its line.
void validate(const Graph& graph);

/// The same for one node: operands exist and precede it, their number fits, infer_shape agrees with its
/// shape. Throws Error without a position.
void check_node(const Graph& graph, const Computation& computation, const Node& node);

/// Same module, names, metadata and attributes included; constants by value. Where it was read from (source,
/// lines) does not count.
bool equal(const Graph& a, const Graph& b);

/// Builds a computation node by node, for passes and tests.
class ComputationBuilder {
 public:
  explicit ComputationBuilder(std::string name) { computation_.name = std::move(name); }
  /// Appends; fills id; makes the name unique by a numeric suffix if taken or empty.
  NodeId add(Node node);
  /// Keeps a name for a node that add_reserved will add under it: add gives it to no other.
  void reserve(const std::string& name);
  NodeId add_reserved(Node node);
  Computation finish(NodeId root) &&;
  const Computation& peek() const { return computation_; }

 private:
  NodeId append(Node node);

  Computation computation_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> suffixes_;  ///< last number tried after a base name
};

}  // namespace stitchwork
