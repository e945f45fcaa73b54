// Pieces of CUDA C++ text: types, literals, index expressions, identifiers.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork {

/// The type a value has in registers: 16-bit floats are float (rounded after every op), pred is bool.
std::string_view value_type(DType dtype);
/// The type an element has in memory: 16-bit floats are unsigned short, pred is unsigned char.
std::string_view storage_type(DType dtype);
/// Reads and writes an element: `place` is an lvalue of the storage type, `value` an expression.
std::string load_text(DType dtype, const std::string& place);
/// The same of an element that no wider load brought: cheaper for bf16.
std::string load_alone_text(DType dtype, const std::string& place);
std::string stored_text(DType dtype, const std::string& value);
/// The same of a value that `dtype` holds already: no rounding.
std::string exactly_stored_text(DType dtype, const std::string& value);
/// Rounds a float expression to what `dtype` holds (f16, bf16; others unchanged).
std::string rounded_text(DType dtype, const std::string& value);

/// Element 0 of a constant, exactly.
std::string literal_text(const Literal& literal);
std::string float_text(double value, DType dtype);
std::string integer_text(std::int64_t value, DType dtype);

/// The neutral element of `reducer`, and whether `literal` is it.
std::string neutral_text(Op reducer, DType dtype);
bool is_neutral(Op reducer, const Literal& literal);
/// "SwAdd"
std::string_view reducer_name(Op reducer);
/// "a = sw_max(a, b)", "a += b" as a statement without semicolon.
std::string accumulate_text(Op reducer, const std::string& a, const std::string& b);

/// Names of an access's atoms, and the map whose ranges hold where the text stands.
struct IndexNames {
  std::vector<std::string> dims, runtime;
  bool wide = false;
  /// Where it is more than 1, dimension 0 is task * task_rows + local_row, with local_row less than
  /// task_rows: what divides these is taken apart, so that a batch's number is the task's and nothing is
  /// divided for it.
  std::int64_t task_rows = 1;

  /// To the index of another element.
  void rename(std::size_t dim, std::string text) {
    dims.at(dim) = std::move(text);
    if (dim == 0) task_rows = 1;
  }
};
std::string index_text(const IndexExpr& expr, const IndexMap& context, const IndexNames& names);
/// The conjunction of the map's constraints, "" if it has none.
std::string condition_text(const IndexMap& map, const IndexNames& names);

using Identifiers = std::set<std::string, std::less<>>;
/// The identifiers of a C++ text but for members behind a point; comments and literals are not left out.
Identifiers identifiers(std::string_view text);

/// Unique C identifiers made from op names; in canonical form numbers.
class Namer {
 public:
  /// `printed`: what the text around the names uses itself; none of them may be a name.
  explicit Namer(bool canonical, const Identifiers* printed = nullptr)
      : canonical_(canonical), printed_(printed) {}
  /// `prefix` stands alone in canonical form: "v12".
  std::string make(std::string_view op_name, std::string_view prefix, std::string_view suffix = "");

 private:
  bool is_reserved(const std::string& name) const;

  bool canonical_;
  const Identifiers* printed_;
  int next_ = 0;
  Identifiers taken_;
  std::unordered_map<std::string, int> last_;  ///< by name: the last number behind it, all before are taken
};

/// Lines with indentation.
class Writer {
 public:
  void line(std::string_view text);
  /// "text {", indented from there on; nothing at all, nor for its close, where `text` is empty.
  void open(std::string_view text);
  /// A block of its own: "{".
  void block();
  void close(std::string_view after = "");
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::vector<bool> open_;  ///< whether each open scope has braces
  std::size_t depth_ = 0;
};

}  // namespace stitchwork
