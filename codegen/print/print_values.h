// Statements that compute the values of one step.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/schedule/branches.h"
#include "codegen/kernel.h"
#include "codegen/print/print_text.h"

namespace stitchwork {

/// What names a kernel's places have.
struct PlaceNames {
  std::vector<std::string> buffers;      ///< by Schedule::buffers
  std::vector<std::string> kept;         ///< by Schedule::kept
  std::map<NodeId, std::string> across;  ///< accumulators of reductions across rows
  std::vector<std::string> row_results;  ///< by TaskLoop::row_results of the loop at hand
  std::vector<std::string> gathered;     ///< by TaskLoop::gathered of the loop at hand
  std::string mbarrier;                  ///< of the bulk copies that are being asked for
};

/// Functions that stand above a kernel: parts of its longest runs of values (print_parts.cpp).
struct PartFunctions {
  Writer text;
  int count = 0;                           ///< of parts
  std::map<std::string, std::string> ops;  ///< names of functions of one op, by their definition
};

class ValuePrinter {
 public:
  ValuePrinter(const Graph& graph, const Schedule& kernel, const Step& step, const Layout& layout,
               const PlaceNames& places, Namer names, bool canonical, Writer& out, PartFunctions& parts);

  /// Statements of the values of `scope` (-1: outside inner reductions) with this depth (any inside one).
  void print(int scope, int depth);
  bool goes_ahead() const { return !ahead_.empty(); }
  /// Declares vectors for `unroll` loads of each value that is loaded ahead, and loads those numbered `u`
  /// (there is no `u` where `unroll` is 1).
  void declare_ahead(int unroll);
  /// `left`: of the array from the vector on so many elements exist, or those from the first to before the
  /// second number; "" if all do.
  void load_ahead(const std::string& left);
  /// The vector at hand of a value that is loaded ahead, or of one element that all of it have; "" of others.
  std::string vector(int value) const;
  /// Keeps the compiler from moving these loads down to where their values are used.
  void hold_ahead(int unroll);
  /// The variable a printed value has.
  const std::string& name(int value) const { return variables_.at(static_cast<std::size_t>(value)); }
  /// "row", "col" or, in the task, "local_row".
  IndexNames index_names(std::size_t dims, bool local = false) const;
  Namer& names() { return names_; }
  /// "x[lead + index]": an element of a buffer, which of a tile may begin behind a lead (Buffer::alignment).
  std::string place(int buffer, const std::string& index) const;
  /// What a load reads.
  std::string loaded_place(const Value& value, const IndexNames& names) const;

 private:
  /// A vector that loads go to ahead, `width` elements each; loads in branches of which a thread takes one
  /// share it.
  struct AheadVector {
    std::string name;
    DType dtype = DType::kF32;
    int width = 1;
    bool conditional = false;  ///< what its conditions keep from being loaded is zero
    bool folded = false;       ///< of partials, in the type in which they lie
  };

  void print_value(int v);
  void print_values(const std::vector<int>& values);
  /// Elements of a value's load ahead.
  int ahead_width(const Value& value) const { return value.same ? 1 : layout_.width; }
  /// Whether a loop over the elements j of vectors stands around what is printed: a row has one value.
  bool in_vectors() const { return layout_.width > 1 && !step_.rows; }
  /// The place of the element at hand in registers or shared memory.
  std::string kept_place(int kept) const;
  /// What the loop over a row's partials says.
  struct Fold {
    Op reducer = Op::kAdd;
    std::int64_t split = 1;
    std::string initial, partial, unroll;
  };
  Fold fold_of(const Value& value, const IndexNames& names) const;
  void print_fold(const Value& value, const std::string& variable);
  void fold_ahead(int v);
  void print_inner_reduce(int v, const std::string& variable);
  // ---- runs of values too long for one function (print_parts.cpp)

  int instructions(int v) const;
  bool prints_in_parts(const std::vector<int>& values) const;
  void print_in_parts(const std::vector<int>& values);
  /// Of the values of a part those that others or the step's roots read.
  std::vector<int> read_outside(const std::vector<int>& part) const;
  /// Prints the function and its call.
  void call_part(const std::vector<int>& part);
  /// The op's expression, or the call of its function where it has one.
  std::string called_op(const Value& value);
  std::string_view type_of(int v) const;

  std::string expression(int v);
  std::string apply_expression(const Value& value) const;
  std::string load_expression(int v);
  std::string choose_expression(const Value& value);
  // ---- choices whose arguments are computed in branches (print_branches.cpp)

  /// Of the conditions that hold where the text stands, those of `map` are left out.
  std::string open_condition(const IndexMap& map, const IndexNames& names) const;
  bool is_known(const Constraint& constraint) const;
  bool holds_here(const IndexMap& map) const;
  void print_choice(int v, const std::string& variable);
  /// What all arguments of the choice are, where none needs a statement: elements of one vector.
  std::optional<std::string> one_expression(int v);
  /// Statements that find the branch, and in it what `print_branch` prints, where `has` has the branch.
  /// `first_lane`: from an element's index to that of its vector's first.
  void print_branches(int v, const std::string& first_lane, const std::function<bool(int)>& has,
                      const std::function<void(int)>& print_branch);
  /// Gives every load ahead its vector.
  void share_ahead();
  bool loads_ahead_in(int branch) const;
  void load_branch_ahead(int branch, const std::string& left);
  /// Declares clamped runtime indices where not yet declared in this block; dims and their names.
  IndexNames access_names(const Access& access, bool local = false);
  /// Dims of the place that a value is loaded from.
  IndexNames place_names(const Value& value) const;

  const Computation& computation_;
  const Graph& graph_;
  const Schedule& kernel_;
  const Step& step_;
  const Layout& layout_;
  const PlaceNames& places_;
  Namer names_;
  bool canonical_;
  Writer& out_;
  PartFunctions& parts_;
  std::vector<std::string> variables_;
  Branches branches_;
  std::vector<std::vector<int>> values_in_;  ///< by branch, from -1 (none) on: in the step's order
  std::vector<Constraint> known_;            ///< they hold where the text stands
  std::vector<AheadVector> vectors_;
  std::map<int, std::size_t> ahead_;  ///< the vectors of values loaded ahead
  const char* ahead_at_ = "";         ///< "[u]" where there are several of each
  std::map<std::tuple<int, Interval, int, int>, std::string> clamped_;
  int scope_ = -1, depth_ = 0;
};

/// The CUDA expression of an element-wise op.
std::string apply_text(const Computation& computation, const Node& node,
                       const std::vector<std::string>& arguments);

}  // namespace stitchwork
