// An ONNX node as its lowering sees it: inputs, attributes, operator-set version, and the builder.
//
// What a lowering does not look at is refused: after it has run, an attribute or input that was given and
// never asked for is an error naming it. So a lowering asks for everything it knows, and says `ignore` where
// a given attribute does not change the result.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/onnx/builder.h"
#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {

/// What lowerings of control flow need of the reader.
class SubgraphReader {
 public:
  virtual ~SubgraphReader() = default;
  /// Reads a nested graph in the builder's current computation; its inputs stand for `arguments`, names of
  /// the enclosing graphs are visible. Gives its outputs.
  virtual std::vector<Value> read(const pb::GraphProto& graph, const std::vector<Value>& arguments) = 0;
  virtual Literal tensor(const pb::TensorProto& tensor) = 0;
};

class NodeContext {
 public:
  NodeContext(Builder& builder, SubgraphReader& subgraphs, const pb::NodeProto& node, std::int64_t version,
              std::vector<Value> inputs);

  Builder& b;
  const std::int64_t version;  ///< of the operator set the node's domain is read by
  std::string_view op() const { return node_.op_type(); }

  // --- Inputs.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const;
  /// Throws Error if input i is absent or no array.
  const Value& in(int i);
  const Value& in_any(int i);  ///< a sequence too
  Value in_or(int i, const Value& otherwise) { return has(i) ? in(i) : otherwise; }
  /// All inputs; none may be absent.
  std::vector<Value> all_inputs();
  /// The elements of a known input, as integers or numbers. Throws Error saying how to make it known.
  Dims known_integers(int i);
  std::int64_t known_integer(int i);  ///< of one element
  std::vector<double> known_numbers(int i);
  const Literal& known(int i);
  void ignore_input(int i);

  // --- Outputs.
  int outputs() const { return node_.output_size(); }
  bool wants(int i) const { return i < outputs() && !node_.output(i).empty(); }

  // --- Attributes.
  bool given(std::string_view name) const;
  /// Refused beyond +-2^40, no axis, count or extent being larger: sums and products of such do not overflow.
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  std::int64_t integer(std::string_view name);
  /// One that is data, or a bound to be clamped: any value.
  std::int64_t any_integer(std::string_view name, std::int64_t otherwise);
  bool flag(std::string_view name, bool otherwise) { return integer(name, otherwise ? 1 : 0) != 0; }
  double number(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise = {});
  Dims integers(std::string_view name, Dims otherwise = {});
  std::vector<double> numbers(std::string_view name, std::vector<double> otherwise = {});
  Value tensor(std::string_view name);
  DType dtype(std::string_view name, DType otherwise);
  const pb::GraphProto& graph(std::string_view name);
  void ignore(std::string_view name) { used_attributes_.insert(std::string(name)); }
  /// The names of attributes given, in the node's order.
  std::vector<std::string> given_attributes() const;

  // --- Checks.
  /// An axis of `rank` dimensions, counted from the end if negative.
  std::int64_t axis(std::int64_t value, int rank, std::string_view name = "axis") const;
  Dims axes(const Dims& values, int rank, std::string_view name = "axes") const;
  /// Every value in [low, high]; keeps products and sums of attributes from overflowing.
  void check_range(std::string_view name, const Dims& values, std::int64_t low,
                   std::int64_t high = std::int64_t{1} << 31) const;
  void check(bool holds, const std::string& message) const {
    if (!holds) refuse(message);
  }
  [[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) const;
  void check_all_used() const;

  std::vector<Value> run(const pb::GraphProto& graph, const std::vector<Value>& arguments) {
    return subgraphs_.read(graph, arguments);
  }

 private:
  const pb::AttributeProto* find(std::string_view name, pb::AttributeProto::AttributeType type);

  SubgraphReader& subgraphs_;
  const pb::NodeProto& node_;
  std::vector<Value> inputs_;
  std::vector<bool> used_inputs_;
  std::set<std::string, std::less<>> used_attributes_;
};

}  // namespace stitchwork::onnx_reader
