#include "analysis/planners/fusionstitching/library_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>

#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_attributes.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::fusionstitching {
namespace {

/// Threads of a block: section 4.4, multiples of 32 in [32, 1024].
constexpr int kMostThreads = 1024;
/// Elements of an array that a key may name: what is beyond is no array of any device.
/// A choice, not measured: 2^40 elements, of which no product overflows 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
/// Blocks of a launch: CUDA Programming Guide, "grid of thread blocks", 2^31 - 1.
constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

bool is_reduce(Op op) { return def(op).cls == OpClass::kReduce; }

bool is_array(const Shape& shape) {
  return !shape.is_tuple && is_executable(shape.dtype) && shape.has_default_layout() &&
         shape.elements_count() > 0;
}

/// Whether the key names the result and every operand's shape in full.
bool has_key(const Node& node) {
  if (node.op == Op::kReduce || node.op == Op::kTranspose || node.op == Op::kDot) return true;
  return is_elementwise(node.op) && def(node.op).execution == Execution::kGenerated &&
         node.op != Op::kReducePrecision;
}

/// From the text of a key, word by word.
class KeyReader {
 public:
  explicit KeyReader(std::string_view text) : text_(text), rest_(text) {}

  LibraryKey run() {
    LibraryKey key;
    std::string_view name = word();
    const std::size_t dot = name.find('.');
    if (dot != std::string_view::npos) key.op.kind = std::string(name.substr(dot + 1));
    const auto op = op_from_name(name.substr(0, dot));
    if (!op) fail(fmt::format("there is no op '{}'", name.substr(0, dot)));
    key.op.op = *op;
    key.op.shape = shape(word(), &key.op);
    while (!rest_.empty() && !next_is("row ") && !next_is("column "))
      key.op.operands.push_back(shape(word(), nullptr));
    key.schedule.type = word() == "row" ? ScheduleType::kRow : ScheduleType::kColumn;
    const std::string_view split = word();
    const std::size_t slash = split.find('/');
    if (slash == std::string_view::npos) fail("a schedule is split_dim/sword");
    key.schedule.split_dim = static_cast<int>(number(split.substr(0, slash)));
    key.schedule.sword = number(split.substr(slash + 1));
    key.threads = static_cast<int>(number(after('t', word())));
    if (!rest_.empty()) key.warps = static_cast<int>(number(after('w', word())));
    if (!rest_.empty()) fail(fmt::format("'{}' is left over", rest_));
    check(key);
    return key;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("'{}' is no key of a performance library: {}", text_, why));
  }
  bool next_is(std::string_view words) const { return rest_.starts_with(words); }

  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    if (found.empty()) fail("it ends early");
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return found;
  }

  std::string_view after(char letter, std::string_view text) const {
    if (!text.starts_with(letter)) fail(fmt::format("'{}' does not begin with {}", text, letter));
    return text.substr(1);
  }

  std::int64_t number(std::string_view text) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostElements)
      fail(fmt::format("'{}' is no number of a key", text));
    return value;
  }

  std::vector<std::int64_t> numbers(std::string_view text) const {
    std::vector<std::int64_t> values;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      values.push_back(number(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return values;
  }

  /// "f32[16,64]", of the op itself with "{...}" behind it.
  Shape shape(std::string_view text, KeyOp* own) const {
    const std::size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      fail(fmt::format("'{}' is no shape", text));
    const auto type = dtype_from_name(text.substr(0, open));
    if (!type || !is_executable(*type)) fail(fmt::format("there are no kernels of '{}'", text));
    const Shape shape = Shape::array(*type, numbers(text.substr(open + 1, close - open - 1)));
    double elements = 1;
    for (const std::int64_t dim : shape.dims) elements *= static_cast<double>(dim);
    if (elements < 1 || elements > static_cast<double>(kMostElements))
      fail(fmt::format("no kernel has the elements of '{}'", text));
    const std::string_view braces = text.substr(close + 1);
    if (braces.empty()) return shape;
    if (own == nullptr || braces.front() != '{' || braces.back() != '}')
      fail(fmt::format("'{}' is no shape", text));
    read_dims(braces.substr(1, braces.size() - 2), *own);
    return shape;
  }

  void read_dims(std::string_view text, KeyOp& op) const {
    if (op.op != Op::kDot) {
      op.dims = numbers(text);
      return;
    }
    for (std::vector<std::int64_t>* dims :
         {&op.dot.lhs_batch, &op.dot.rhs_batch, &op.dot.lhs_contracting, &op.dot.rhs_contracting}) {
      const std::size_t end = std::min(text.find('|'), text.size());
      *dims = numbers(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void check(const LibraryKey& key) const {
    const KeyOp& op = key.op;
    if (is_reduce(op.op))
      for (const std::int64_t dim : op.dims)
        if (dim >= op.shape.rank()) fail(fmt::format("there is no dim {} to reduce", dim));
    const Dims dims = result_dims(op);
    const bool scalar = dims.empty() && key.schedule.split_dim == 0 && key.schedule.sword == 1;
    const bool legal =
        scalar || (key.schedule.split_dim < static_cast<int>(dims.size()) && key.schedule.sword > 0 &&
                   dims[static_cast<std::size_t>(key.schedule.split_dim)] % key.schedule.sword == 0);
    if (!legal || key_schedule(dims, key.schedule) != key.schedule)
      fail(fmt::format("{} cuts no array of its shape", to_text(key.schedule)));
    if (key.threads % kWarp != 0 || key.threads < kWarp || key.threads > kMostThreads)
      fail(fmt::format("a block has no {} threads", key.threads));
    if (key.warps < 1 || key.warps * kWarp > key.threads || !std::has_single_bit(unsigned(key.warps)))
      fail(fmt::format("a row has no {} warps of {} threads", key.warps, key.threads));
  }

  std::string_view text_, rest_;
};

}  // namespace

Dims result_dims(const KeyOp& op) {
  if (!is_reduce(op.op)) return op.shape.dims;
  Dims kept;
  for (int d = 0; d < op.shape.rank(); ++d)
    if (std::find(op.dims.begin(), op.dims.end(), d) == op.dims.end())
      kept.push_back(op.shape.dims[static_cast<std::size_t>(d)]);
  return kept;
}

std::optional<KeyOp> key_op(const Graph& graph, const Computation& computation, const Node& node) {
  if (!has_key(node) || !is_array(node.shape)) return std::nullopt;
  KeyOp result{node.op, "", node.shape, {}, {}, {}};
  for (const NodeId operand : node.operands)
    if (!is_array(computation.node(operand).shape)) return std::nullopt;
  if (node.op == Op::kReduce) {
    const auto reducer = simple_reducer(graph, applied(node));
    if (!reducer || node.operands.size() != 2) return std::nullopt;
    result.kind = def(*reducer).name;
    result.shape = computation.node(node.operands[0]).shape;
    if (result.shape.dtype != node.shape.dtype) return std::nullopt;
    result.dims = node.attrs.dimensions;
    std::sort(result.dims.begin(), result.dims.end());
    return result;
  }
  if (node.op == Op::kTranspose) {
    result.dims = node.attrs.dimensions;
    return result;
  }
  if (node.attrs.comparison) result.kind = name(*node.attrs.comparison);
  if (node.attrs.dot) result.dot = *node.attrs.dot;
  if (std::any_of(node.operands.begin(), node.operands.end(),
                  [&](NodeId operand) { return !computation.node(operand).shape.compatible(node.shape); }))
    for (const NodeId operand : node.operands) {
      const Shape& shape = computation.node(operand).shape;
      result.operands.push_back(Shape::array(shape.dtype, shape.dims));
    }
  return result;
}

std::optional<Schedule> key_schedule(const Dims& dims, const Schedule& schedule) {
  const auto chunks = chunking(schedule, dims);
  if (!chunks || !chunks->one_range() || chunks->blocks > kMostBlocks) return std::nullopt;
  return row_schedule(dims, chunks->blocks);
}

std::string to_text(const KeyOp& op) {
  std::string text(def(op.op).name);
  if (!op.kind.empty()) text += "." + op.kind;
  text += " " + to_text(Shape::array(op.shape.dtype, op.shape.dims));
  if (op.op == Op::kDot)
    text += fmt::format("{{{}|{}|{}|{}}}", fmt::join(op.dot.lhs_batch, ","), fmt::join(op.dot.rhs_batch, ","),
                        fmt::join(op.dot.lhs_contracting, ","), fmt::join(op.dot.rhs_contracting, ","));
  else if (op.op == Op::kReduce || op.op == Op::kTranspose)
    text += fmt::format("{{{}}}", fmt::join(op.dims, ","));
  for (const Shape& operand : op.operands) text += " " + to_text(operand);
  return text;
}

std::string to_text(const LibraryKey& key) {
  std::string text = fmt::format("{} {} {}/{} t{}", to_text(key.op),
                                 key.schedule.type == ScheduleType::kRow ? "row" : "column",
                                 key.schedule.split_dim, key.schedule.sword, key.threads);
  return key.warps > 1 || is_reduce(key.op.op) ? fmt::format("{} w{}", text, key.warps) : text;
}

LibraryKey parse_library_key(std::string_view text) { return KeyReader(text).run(); }

}  // namespace stitchwork::fusionstitching
