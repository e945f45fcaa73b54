// If, Loop and Scan: decided while reading where that is possible, else conditionals and loops of the graph.
#include <algorithm>
#include <array>

#include "core/onnx/common.h"
#include "core/onnx/operators.h"
#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Iterations of loops whose end only the values computed while reading show.
constexpr std::int64_t kLongestKnownLoop = 4096;

void check_arrays(NodeContext& c, const Values& values, const char* what) {
  for (const Value& value : values)
    c.check(value.kind == Value::Kind::kArray,
            fmt::format("{} is a sequence or absent, which a decision at run time cannot give", what));
}

Value truth(NodeContext& c, const Value& value, const char* what) {
  c.check(value.dtype() == DType::kPred && product(value.dims()) == 1,
          fmt::format("{} must be one bool", what));
  return c.b.reshape(value, {});
}

Values lower_if(NodeContext& c) {
  const Value condition = truth(c, c.in(0), "the condition");
  const auto branch = [&](const char* name) {
    Values results = c.run(c.graph(name), {});
    if (!condition.known()) check_arrays(c, results, name);
    return results;
  };
  c.ignore("then_branch");
  c.ignore("else_branch");
  if (condition.known()) return branch(condition.constant->get_int(0) != 0 ? "then_branch" : "else_branch");
  return c.b.conditional(
      condition, [&] { return branch("then_branch"); }, [&] { return branch("else_branch"); });
}

struct Loop {
  Value limit, condition;  ///< absent: none
  Values carried;
  std::int64_t scans = 0;  ///< outputs that collect an element an iteration
};

Values loop_body(NodeContext& c, const Loop& loop, const Value& iteration, const Value& condition,
                 const Values& carried) {
  Values arguments{iteration, condition};
  arguments.insert(arguments.end(), carried.begin(), carried.end());
  Values results = c.run(c.graph("body"), arguments);
  c.check(static_cast<std::int64_t>(results.size()) ==
              1 + static_cast<std::int64_t>(loop.carried.size()) + loop.scans,
          fmt::format("the body gives {} values, {} are needed", results.size(),
                      1 + loop.carried.size() + static_cast<std::size_t>(loop.scans)));
  return results;
}

/// The loop iteration by iteration; nothing if its end is not known, or too far.
std::optional<Values> unrolled(NodeContext& c, const Loop& loop, std::int64_t most) {
  Values carried = loop.carried;
  std::vector<Values> scanned(static_cast<std::size_t>(loop.scans));
  Value condition = loop.condition.present() ? loop.condition : Builder::scalar_int(DType::kPred, 1);
  for (std::int64_t i = 0;; ++i) {
    if (loop.limit.present() && i >= loop.limit.constant->get_int(0)) break;
    if (!condition.known()) return std::nullopt;
    if (condition.constant->get_int(0) == 0) break;
    if (i >= most) return std::nullopt;
    Values results = loop_body(c, loop, Builder::integer(i), condition, carried);
    condition = truth(c, results[0], "the body's condition");
    const auto split = results.begin() + 1 + static_cast<std::ptrdiff_t>(carried.size());
    for (std::size_t s = 0; s < scanned.size(); ++s)
      scanned[s].push_back(*(split + static_cast<std::ptrdiff_t>(s)));
    carried.assign(results.begin() + 1, split);
  }
  for (const Values& parts : scanned) {
    c.check(!parts.empty(), "no iteration says what the scan outputs are");
    check_arrays(c, parts, "a scan output");
    carried.push_back(stack(c.b, parts, 0));
  }
  return carried;
}

/// A known number of iterations, each collecting its scan outputs.
Values counted_loop(NodeContext& c, const Loop& loop, std::int64_t count) {
  const Value always = Builder::scalar_int(DType::kPred, 1);
  const Step step = [&](const Values& state, const Values& elements) -> Recurrence {
    const Values results = loop_body(c, loop, elements[0], always, state);
    c.check(results[0].known() && results[0].constant->get_int(0) != 0,
            "the number of its scan outputs' elements is known only at run time");
    check_arrays(c, results, "a result of the body");
    const auto split = results.begin() + 1 + static_cast<std::ptrdiff_t>(state.size());
    return {{results.begin() + 1, split}, {split, results.end()}};
  };
  Recurrence result = recur(c.b, count, loop.carried, {c.b.iota(DType::kS64, {count}, 0)}, step);
  result.state.insert(result.state.end(), result.outputs.begin(), result.outputs.end());
  return result.state;
}

Values lower_loop(NodeContext& c) {
  Builder& b = c.b;
  Loop loop;
  if (c.has(0)) {
    c.check(product(c.in(0).dims()) == 1, "the trip count must be one number");
    loop.limit = b.reshape(c.in(0), {});
  }
  if (c.has(1)) loop.condition = truth(c, c.in(1), "the condition");
  for (int i = 2; i < c.inputs(); ++i) loop.carried.push_back(c.in_any(i));
  loop.scans = c.graph("body").output_size() - 1 - static_cast<std::int64_t>(loop.carried.size());
  c.check(loop.scans >= 0, "the body gives fewer values than the loop carries");
  const bool limit_known = !loop.limit.present() || loop.limit.known();
  const std::int64_t limit = loop.limit.known() ? loop.limit.constant->get_int(0) : -1;
  const bool all_known = std::ranges::all_of(loop.carried, [](const Value& v) { return v.known(); });
  if (limit_known && (all_known || limit <= kUnrolled))
    if (std::optional<Values> results = unrolled(c, loop, all_known ? kLongestKnownLoop : kUnrolled))
      return *results;
  check_arrays(c, loop.carried, "a carried value");
  if (loop.scans > 0) {
    if (!limit_known) c.known(0);  // how many elements the outputs have: it is asked for
    const bool starts =
        !loop.condition.present() || (loop.condition.known() && loop.condition.constant->get_int(0) != 0);
    c.check(limit > 0 && starts, "the number of its scan outputs' elements is known only at run time");
    return counted_loop(c, loop, limit);
  }
  Values state{Builder::integer(0),
               loop.condition.present() ? loop.condition : Builder::scalar_int(DType::kPred, 1)};
  state.insert(state.end(), loop.carried.begin(), loop.carried.end());
  Values last = b.while_loop(
      state,
      [&](const Values& p) {
        return loop.limit.present() ? b.binary(Op::kAnd, p[1], b.compare(Comparison::kLt, p[0], loop.limit))
                                    : p[1];
      },
      [&](const Values& p) {
        Value iteration = p[0];  // known of a loop that is unrolled, as it is if the limit is given
        iteration.depends_on = loop.limit.depends_on;
        Values results = loop_body(c, loop, iteration, p[1], {p.begin() + 2, p.end()});
        check_arrays(c, results, "a result of the body");
        results[0] = truth(c, results[0], "the body's condition");
        results.insert(results.begin(), b.add(p[0], Builder::integer(1)));
        return results;
      });
  return {last.begin() + 2, last.end()};
}

/// Dimension `axis` in front, or from there back to its place.
Value with_axis_first(Builder& b, const Value& x, std::int64_t axis) {
  Dims permutation{axis};
  for (std::int64_t d = 0; d < x.rank(); ++d)
    if (d != axis) permutation.push_back(d);
  return b.transpose(x, permutation);
}
Value with_first_at(Builder& b, const Value& x, std::int64_t axis) {
  Dims permutation = counted(1, x.rank() - 1);
  permutation.insert(permutation.begin() + axis, 0);
  return b.transpose(x, permutation);
}

Values lower_scan(NodeContext& c) {
  Builder& b = c.b;
  c.check(c.version >= 9, "Scan of operator set 8 is not supported");
  const std::int64_t scanned = c.integer("num_scan_inputs"), states = c.inputs() - scanned;
  c.check(scanned >= 1 && states >= 0, fmt::format("num_scan_inputs={} of {} inputs", scanned, c.inputs()));
  const auto lists = [&](const char* name, std::size_t size) {
    const Dims list = c.integers(name, Dims(size, 0));
    c.check(list.size() == size, fmt::format("{} has {} values, {} are needed", name, list.size(), size));
    return list;
  };
  const Values inputs = c.all_inputs();
  const Dims axes = lists("scan_input_axes", static_cast<std::size_t>(scanned)),
             directions = lists("scan_input_directions", static_cast<std::size_t>(scanned));
  Values sequences;
  for (std::int64_t i = 0; i < scanned; ++i) {
    const Value& x = inputs[static_cast<std::size_t>(states + i)];
    const Value first =
        with_axis_first(b, x, c.axis(axes[static_cast<std::size_t>(i)], x.rank(), "scan_input_axes"));
    sequences.push_back(directions[static_cast<std::size_t>(i)] != 0 ? b.reverse(first, {0}) : first);
    c.check(sequences[0].dim(0) == first.dim(0), "scan inputs differ in length");
  }
  const std::int64_t count = sequences[0].dim(0);
  c.check(count >= 1, "the scan inputs are empty");
  const pb::GraphProto& body = c.graph("body");
  const auto outputs = static_cast<std::size_t>(std::max<std::int64_t>(body.output_size() - states, 0));
  const Step step = [&](const Values& state, const Values& elements) -> Recurrence {
    Values arguments = state;
    arguments.insert(arguments.end(), elements.begin(), elements.end());
    const Values results = c.run(body, arguments);
    check_arrays(c, results, "a result of the body");
    c.check(results.size() == state.size() + outputs, "the body gives fewer values than the scan has states");
    const auto split = results.begin() + static_cast<std::ptrdiff_t>(state.size());
    return {{results.begin(), split}, {split, results.end()}};
  };
  Recurrence result = recur(b, count, {inputs.begin(), inputs.begin() + states}, sequences, step);
  const Dims out_axes = lists("scan_output_axes", outputs),
             out_directions = lists("scan_output_directions", outputs);
  for (std::size_t i = 0; i < outputs; ++i) {
    Value y = result.outputs[i];
    if (out_directions[i] != 0) y = b.reverse(y, {0});
    result.state.push_back(with_first_at(b, y, c.axis(out_axes[i], y.rank(), "scan_output_axes")));
  }
  return result.state;
}

constexpr std::array kControlRows = {
    OperatorRow{"If", 7, lower_if},
    OperatorRow{"Loop", 7, lower_loop},
    OperatorRow{"Scan", 8, lower_scan},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return kControlRows; }

}  // namespace stitchwork::onnx_reader
