// Random nests of loops, branches and calls, as HLO text that XLA reads too: their state are tuples, in
// tuples too, whose elements are shared between places, swapped, duplicated, constant or left alone.
//
// All arithmetic is exact (sums are halved, sorting and maxima choose), so that every correct execution gives
// the same bits; every loop counts to a small constant, so that every module ends.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/loop_stacks.h"

namespace stitchwork::testing {

struct RandomControlFlowOptions {
  int depth = 3;             ///< of computations below the entry
  int control_ops = 6;       ///< of a module: loops, branches and calls
  bool stacks = false;       ///< loops write slices of arrays of their state
  bool tuple_edges = false;  ///< parameters of the module may be tuples, its results tuples in tuples
};

/// Deterministic in (seed, options).
class RandomControlFlow {
 public:
  explicit RandomControlFlow(std::uint32_t seed, RandomControlFlowOptions options = {})
      : random_(seed), options_(options), left_(options.control_ops) {}

  std::string text() {
    Scope entry;
    const std::size_t parameters = 2 + below(2);
    for (std::size_t p = 0; p < parameters; ++p)
      add_parameter(entry, options_.tuple_edges && below(2) == 0 ? tuple_type(1) : Type{kVector, {}});
    add_parameter(entry, Type{kMatrix, {}});
    while (left_ > 0) grow(entry, options_.depth);
    const std::string root = results(entry);
    return fmt::format("HloModule control_flow\n{}{}ENTRY main {{\n{}  ROOT {}\n}}\n", kHelpers,
                       computations_, entry.lines, root);
  }

 private:
  static constexpr const char* kCounter = "s32[]";
  static constexpr const char* kFlag = "pred[]";
  /// What reductions and sorts name.
  static constexpr const char* kHelpers =
      "larger {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT m = f32[] maximum(a, b)\n}\n"
      "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT l = pred[] compare(a, b), "
      "direction=LT\n}\n";

  /// An array, or a tuple of others.
  struct Type {
    std::string array;
    std::vector<Type> elements;
    bool operator==(const Type&) const = default;
    bool is_tuple() const { return array.empty(); }
    std::string text() const {
      if (!is_tuple()) return array;
      std::vector<std::string> parts;
      for (const Type& element : elements) parts.push_back(element.text());
      return fmt::format("({})", fmt::join(parts, ", "));
    }
  };
  struct Value {
    std::string name;
    Type type;
    bool counts = false;  ///< a small number, from which a loop may start
  };
  /// A computation in the making.
  struct Scope {
    std::string lines;
    std::vector<Value> values;
    std::size_t parameters = 0;
  };
  struct Callee {
    std::string name;
    std::vector<Type> parameters;
    Type result;
  };

  std::size_t below(std::size_t n) { return random_() % n; }

  Type tuple_type(int depth) {
    Type type;
    const std::size_t count = 1 + below(4);
    for (std::size_t i = 0; i < count; ++i) type.elements.push_back(some_type(depth - 1));
    return type;
  }
  Type some_type(int depth) {
    if (depth > 0 && below(4) == 0) return tuple_type(depth);
    static constexpr const char* kArrays[] = {kVector, kVector, kVector, kMatrix, kCounter, kFlag};
    return {kArrays[below(std::size(kArrays))], {}};
  }

  Value add(Scope& scope, const Type& type, const std::string& op, bool counts = false) {
    Value value{fmt::format("v{}", next_++), type, counts};
    scope.lines += fmt::format("  {} = {} {}\n", value.name, type.text(), op);
    scope.values.push_back(value);
    return value;
  }
  Value add_parameter(Scope& scope, const Type& type) {
    return add(scope, type, fmt::format("parameter({})", scope.parameters++));
  }
  /// Element `index` of a tuple; often the same instruction as before.
  Value element(Scope& scope, const Value& tuple, std::size_t index, bool counts = false) {
    return add(scope, tuple.type.elements[index],
               fmt::format("get-tuple-element({}), index={}", tuple.name, index), counts);
  }

  // ---- values of a type

  Value constant(Scope& scope, const std::string& array) {
    static constexpr const char* kFloats[] = {"0", "0.5", "-2", "1.25"};
    if (array == kCounter) return number(scope, static_cast<int>(below(3)));
    if (array == kFlag) return add(scope, {array, {}}, below(2) ? "constant(true)" : "constant(false)");
    const Value scalar = add(scope, {"f32[]", {}}, fmt::format("constant({})", kFloats[below(4)]));
    return add(scope, {array, {}}, fmt::format("broadcast({}), dimensions={{}}", scalar.name));
  }
  Value number(Scope& scope, int n) {
    return add(scope, {kCounter, {}}, fmt::format("constant({})", n), true);
  }

  /// One that is there, or nothing.
  const Value* find(const Scope& scope, const Type& type) {
    std::vector<const Value*> found;
    for (const Value& value : scope.values)
      if (value.type == type) found.push_back(&value);
    return found.empty() ? nullptr : found[below(found.size())];
  }

  Value of_type(Scope& scope, const Type& type) {
    const Value* known = find(scope, type);
    if (type.is_tuple()) {
      if (known != nullptr && below(2) == 0) return *known;
      std::vector<std::string> names;
      for (const Type& part : type.elements) names.push_back(of_type(scope, part).name);
      return add(scope, type, fmt::format("tuple({})", fmt::join(names, ", ")));
    }
    if (below(8) == 0) return constant(scope, type.array);
    if (known == nullptr) return take_out(scope, type);
    return below(2) ? Value(*known) : computed(scope, Value(*known));
  }

  /// An array that only a tuple may hold.
  Value take_out(Scope& scope, const Type& type) {
    for (std::size_t v = scope.values.size(); v-- > 0;) {
      const Value from = scope.values[v];
      for (std::size_t i = 0; i < from.type.elements.size(); ++i)
        if (from.type.elements[i] == type) return element(scope, from, i);
    }
    return constant(scope, type.array);
  }

  // ---- operations

  /// Another value of the same type.
  Value computed(Scope& scope, const Value& a) {
    const Type& type = a.type;
    const Value b = *find(scope, type);
    if (type.array == kFlag) return add(scope, type, fmt::format("xor({}, {})", a.name, b.name));
    if (type.array == kCounter) return add(scope, type, fmt::format("subtract({}, {})", a.name, b.name));
    switch (below(7)) {
      case 0:
        return add(scope, type, fmt::format("negate({})", a.name));
      case 1:
        return add(scope, type, fmt::format("maximum({}, {})", a.name, b.name));
      case 2:
        return add(scope, type,
                   fmt::format("sort({}), dimensions={{0}}, to_apply=less", a.name));  // the host's
      case 3: {
        const Value largest = add(scope, {"f32[]", {}}, greatest(scope, a));
        return add(scope, type, fmt::format("broadcast({}), dimensions={{}}", largest.name));
      }
      case 4:
        return add(scope, type, fmt::format("copy({})", a.name));
      default: {
        const Value sum =
            add(scope, type, fmt::format("{}({}, {})", below(2) ? "add" : "subtract", a.name, b.name));
        const Value half = add(scope, {"f32[]", {}}, "constant(0.5)");
        const Value halves = add(scope, type, fmt::format("broadcast({}), dimensions={{}}", half.name));
        return add(scope, type, fmt::format("multiply({}, {})", sum.name, halves.name));
      }
    }
  }
  std::string greatest(Scope& scope, const Value& a) {
    const Value least = add(scope, {"f32[]", {}}, "constant(-1e30)");
    static constexpr const char* kAll[] = {"0", "0,1", "0,1,2"};
    return fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply=larger", a.name, least.name,
                       kAll[std::ranges::count(a.type.array, ',')]);
  }

  Value flag(Scope& scope) {
    const Value* count = find(scope, {kCounter, {}});
    switch (below(4)) {
      case 0:
        return of_type(scope, {kFlag, {}});
      case 1: {
        const Value vector = of_type(scope, {kVector, {}});
        const Value largest = add(scope, {"f32[]", {}}, greatest(scope, vector));
        const Value limit = add(scope, {"f32[]", {}}, "constant(1)");
        return add(scope, {kFlag, {}},
                   fmt::format("compare({}, {}), direction=GT", largest.name, limit.name));
      }
      default: {
        const Value a = count == nullptr ? number(scope, 1) : Value(*count);
        const Value b = number(scope, static_cast<int>(below(3)));
        return add(scope, {kFlag, {}}, fmt::format("compare({}, {}), direction=GE", a.name, b.name));
      }
    }
  }

  /// One step: something computed, taken out of a tuple, put into one, or a loop, branch or call.
  void grow(Scope& scope, int depth) {
    const Value from = scope.values[below(scope.values.size())];
    const bool control = depth > 0 && left_ > 0;
    switch (below(control ? 8 : 4)) {
      case 0:
        of_type(scope, tuple_type(2));
        return;
      case 1:
      case 2:
        if (from.type.is_tuple())
          element(scope, from, below(from.type.elements.size()), false);
        else if (from.type.array != "f32[]")
          computed(scope, from);
        return;
      case 3:
        computed(scope, of_type(scope, {kVector, {}}));
        return;
      case 4:
      case 5:
        --left_;
        return loop(scope, depth - 1);
      case 6:
        --left_;
        return branch(scope, depth - 1);
      default:
        --left_;
        return call(scope, depth - 1);
    }
  }

  void loop(Scope& scope, int depth) {
    Type state = tuple_type(2);
    const std::size_t at = below(state.elements.size() + 1);
    state.elements.insert(state.elements.begin() + static_cast<std::ptrdiff_t>(at), Type{kCounter, {}});
    for (std::size_t n = options_.stacks ? 1 + below(3) : 0; n > 0; --n)
      state.elements.push_back(Type{kStacks[below(std::size(kStacks))].array, {}});
    std::vector<std::string> start;
    for (std::size_t i = 0; i < state.elements.size(); ++i)
      start.push_back((i == at ? first_count(scope) : of_type(scope, state.elements[i])).name);
    const std::string body = loop_body(state, at, depth), condition = loop_condition(state, at);
    const Value init = add(scope, state, fmt::format("tuple({})", fmt::join(start, ", ")));
    const Value done =
        add(scope, state, fmt::format("while({}), condition={}, body={}", init.name, condition, body));
    take_apart(scope, done);
  }
  Value first_count(Scope& scope) {
    std::vector<Value> counts;
    for (const Value& value : scope.values)
      if (value.counts) counts.push_back(value);
    return counts.empty() || below(3) == 0 ? number(scope, 0) : counts[below(counts.size())];
  }
  std::string loop_body(const Type& state, std::size_t at, int depth) {
    Scope scope;
    const Value parameter = add_parameter(scope, state);
    // Which elements the body takes out, and in which order, is left to chance.
    const Value count = element(scope, parameter, at, true);
    for (std::size_t i = 0; i < state.elements.size(); ++i)
      if (below(4) != 0) element(scope, parameter, i, i == at);
    work(scope, depth);
    const Value one = number(scope, 1);
    // Not one that counts: in a loop within this one it would start from beyond the end.
    const Value next = add(scope, {kCounter, {}}, fmt::format("add({}, {})", count.name, one.name));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < state.elements.size(); ++i) {
      const Stack* stack = below(6) == 0 ? nullptr : stack_of(state.elements[i].array);
      names.push_back(i == at            ? next.name
                      : stack == nullptr ? of_type(scope, state.elements[i]).name
                                         : pushed(scope, *stack, parameter, i, count).name);
    }
    return finish(scope, fmt::format("{} tuple({})", state.text(), fmt::join(names, ", ")));
  }
  /// The stack with a slice more: mostly of the element itself, which mostly nothing else reads.
  Value pushed(Scope& scope, const Stack& stack, const Value& parameter, std::size_t index,
               const Value& count) {
    const Type type{stack.array, {}};
    const Value array = below(8) == 0 ? of_type(scope, type) : element(scope, parameter, index);
    const Value from = of_type(scope, {stack.from, {}});
    const Value slice = add(scope, {stack.slice, {}},
                            *stack.stretch == '\0'
                                ? fmt::format("reshape({})", from.name)
                                : fmt::format("broadcast({}), dimensions={{{}}}", from.name, stack.stretch));
    const Value zero = number(scope, 0);
    const Value start = below(4) == 0 ? number(scope, static_cast<int>(below(9))) : count;
    std::string starts;
    for (int d = 0; d <= std::ranges::count(type.array, ','); ++d)
      starts += fmt::format(", {}", (d == stack.along ? start : zero).name);
    const Value next =
        add(scope, type, fmt::format("dynamic-update-slice({}, {}{})", array.name, slice.name, starts));
    if (below(6) == 0) computed(scope, next);
    return next;
  }
  std::string loop_condition(const Type& state, std::size_t at) {
    Scope scope;
    const Value parameter = add_parameter(scope, state);
    const Value count = element(scope, parameter, at, true);
    const Value end = number(scope, static_cast<int>(below(4)));
    const std::string less = fmt::format("compare({}, {}), direction=LT", count.name, end.name);
    if (below(4) != 0) return finish(scope, "pred[] " + less);
    const Value more = add(scope, {kFlag, {}}, less);
    const Value also = of_type(scope, {kFlag, {}});
    return finish(scope, fmt::format("pred[] and({}, {})", more.name, also.name));
  }

  void branch(Scope& scope, int depth) {
    const bool by_number = below(3) == 0;
    const std::size_t branches = by_number ? 1 + below(3) : 2;
    const Type result = below(2) ? tuple_type(2) : Type{kVector, {}};
    const Value selector = by_number ? of_type(scope, {kCounter, {}}) : flag(scope);
    const bool shared = below(2) == 0;
    Value operand = of_type(scope, tuple_type(2));
    std::vector<std::string> operands, bodies;
    for (std::size_t b = 0; b < branches; ++b) {
      if (b > 0 && !shared) operand = of_type(scope, some_type(2));
      operands.push_back(operand.name);
      bodies.push_back(callee({operand.type}, result, depth).name);
    }
    const std::string named =
        by_number ? fmt::format("branch_computations={{{}}}", fmt::join(bodies, ", "))
                  : fmt::format("true_computation={}, false_computation={}", bodies[0], bodies[1]);
    take_apart(scope,
               add(scope, result,
                   fmt::format("conditional({}, {}), {}", selector.name, fmt::join(operands, ", "), named)));
  }

  void call(Scope& scope, int depth) {
    const std::size_t count = 1 + below(2);
    std::vector<std::string> arguments;
    std::vector<Type> types;
    for (std::size_t i = 0; i < count; ++i) {
      const Value argument = of_type(scope, some_type(2));
      arguments.push_back(argument.name);
      types.push_back(argument.type);
    }
    const Type result = some_type(2);
    const Callee to = callee(types, result, depth);
    take_apart(scope,
               add(scope, result, fmt::format("call({}), to_apply={}", fmt::join(arguments, ", "), to.name)));
  }

  /// A computation that takes and gives these; one that is there already, now and then.
  Callee callee(const std::vector<Type>& parameters, const Type& result, int depth) {
    for (const Callee& known : callees_)
      if (known.parameters == parameters && known.result == result && below(2) == 0) return known;
    Scope scope;
    for (const Type& type : parameters) {
      const Value parameter = add_parameter(scope, type);
      for (std::size_t i = 0; i < type.elements.size(); ++i)
        if (below(4) != 0) element(scope, parameter, i);
    }
    work(scope, depth);
    const Value given = of_type(scope, result);
    // The root has a line of its own.
    const std::string root =
        result.is_tuple() ? again(scope, given) : fmt::format("{} copy({})", result.text(), given.name);
    callees_.push_back({finish(scope, root), parameters, result});
    return callees_.back();
  }
  /// The same tuple put together anew.
  std::string again(Scope& scope, const Value& tuple) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tuple.type.elements.size(); ++i)
      names.push_back(element(scope, tuple, i).name);
    return fmt::format("{} tuple({})", tuple.type.text(), fmt::join(names, ", "));
  }

  void work(Scope& scope, int depth) {
    for (std::size_t n = 1 + below(4); n > 0; --n) grow(scope, depth);
  }
  std::string finish(const Scope& scope, const std::string& root) {
    const std::string name = fmt::format("c{}", next_++);
    computations_ += fmt::format("{} {{\n{}  ROOT v{} = {}\n}}\n", name, scope.lines, next_++, root);
    return name;
  }

  void take_apart(Scope& scope, const Value& made) {
    for (std::size_t i = 0; i < made.type.elements.size(); ++i)
      if (below(4) != 0) element(scope, made, i);
  }

  /// Every array that the entry has at its end and that tells of what ran, and some of the rest.
  std::string results(Scope& entry) {
    std::vector<Value> taken;
    for (std::size_t v = 0; v < entry.values.size(); ++v) {
      const Value value = entry.values[v];
      if (!value.type.is_tuple()) {
        if (value.type.array != "f32[]" && below(3) == 0) taken.push_back(value);
      } else if (options_.tuple_edges && below(3) == 0) {
        taken.push_back(value);
      } else {
        for (std::size_t i = 0; i < value.type.elements.size() && v < 200; ++i)
          if (below(3) != 0) {
            const Value part = element(entry, value, i);
            if (!part.type.is_tuple()) taken.push_back(part);
          }
      }
    }
    if (taken.empty()) taken.push_back(of_type(entry, {kVector, {}}));
    Type type;
    std::vector<std::string> names;
    for (const Value& value : taken) {
      type.elements.push_back(value.type);
      names.push_back(value.name);
    }
    return fmt::format("results = {} tuple({})", type.text(), fmt::join(names, ", "));
  }

  std::mt19937 random_;
  RandomControlFlowOptions options_;
  int left_;      ///< loops, branches and calls that may still be made
  int next_ = 0;  ///< the number of the next name
  std::string computations_;
  std::vector<Callee> callees_;
};

/// With the seed's own options. Every fourth has parameters and results that are tuples, unless `flat`: a
/// program that runs the text elsewhere may take arrays only.
inline std::string random_control_flow(std::uint32_t seed, bool flat = false, bool stacks = false) {
  RandomControlFlowOptions options;
  options.stacks = stacks;
  options.control_ops = 1 + static_cast<int>(seed % 6);
  options.tuple_edges = !flat && seed % 4 == 3;
  return RandomControlFlow(seed, options).text();
}

}  // namespace stitchwork::testing
