// Long runs of element-wise values, printed as functions that are called one after another.
//
// Compilers' time grows faster than a function's length: NVRTC 13.0 takes 1.6 s for 1,000 additions and
// multiplications in one function, 28 s for 4,000, and 7 s for 250 sines, which it inlines. XLA's rules fuse
// any number of element-wise ops into one kernel.
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/print/print_values.h"

namespace stitchwork {
namespace {

/// In instructions as the op table counts them: where one function has all values up to the first number;
/// beyond, each has about the second.
/// A choice, not measured: compilers' time grows faster than a function's length beyond.
constexpr int kMostInstructionsTogether = 1024, kInstructionsOfPart = 256;
/// An op of so many instructions is a function of its own there, which all of its uses call.
/// A choice, not measured: a call takes about as many instructions.
constexpr int kInstructionsOfFunction = 12;

constexpr std::string_view kFunction = "static __device__ __attribute__((noinline))";

}  // namespace

int ValuePrinter::instructions(int v) const {
  const Value& value = step_.values[static_cast<std::size_t>(v)];
  return value.kind == ValueKind::kApply ? def(computation_.node(value.op).op).instructions : 0;
}

bool ValuePrinter::prints_in_parts(const std::vector<int>& values) const {
  int sum = 0;
  for (const int v : values) sum += instructions(v);
  return sum > kMostInstructionsTogether;
}

void ValuePrinter::print_in_parts(const std::vector<int>& values) {
  std::vector<int> part;
  int sum = 0;
  const auto print_part = [&] {
    if (!part.empty()) call_part(part);
    part.clear();
    sum = 0;
  };
  for (const int v : values) {
    const Value& value = step_.values[static_cast<std::size_t>(v)];
    const bool alone = value.kept < 0 && value.restored < 0 && value.row_result < 0 && value.row_place < 0;
    if (value.kind == ValueKind::kApply && alone) {
      part.push_back(v);
      sum += instructions(v);
      if (sum >= kInstructionsOfPart) print_part();
      continue;
    }
    // A load that needs no value of the part may stand before it.
    const bool early = (value.kind == ValueKind::kLoad && value.at.runtime.empty() && alone) ||
                       value.kind == ValueKind::kConstant;
    if (!early) print_part();
    print_value(v);
  }
  print_part();
}

std::vector<int> ValuePrinter::read_outside(const std::vector<int>& part) const {
  std::vector<char> inside(step_.values.size()), read(step_.values.size());
  for (const int v : part) inside[static_cast<std::size_t>(v)] = 1;
  const auto reads = [&](int v) {
    if (v >= 0) read[static_cast<std::size_t>(v)] = 1;
  };
  for (const int v : step_.order) {
    if (inside[static_cast<std::size_t>(v)] != 0) continue;
    const Value& value = step_.values[static_cast<std::size_t>(v)];
    for (const int argument : value.arguments) reads(argument);
    for (const int index : value.at.runtime) reads(index);
    for (const Access& guard : value.guards)
      for (const int index : guard.runtime) reads(index);
  }
  for (const Root& root : step_.roots) {
    reads(root.value);
    reads(root.initial);
    reads(root.slice);
  }
  std::vector<int> result;
  std::copy_if(part.begin(), part.end(), std::back_inserter(result),
               [&](int v) { return read[static_cast<std::size_t>(v)] != 0; });
  return result;
}

std::string ValuePrinter::called_op(const Value& value) {
  const Node& node = computation_.node(value.op);
  if (def(node.op).instructions < kInstructionsOfFunction) return apply_expression(value);
  std::vector<std::string> formals, parameters, arguments;
  for (std::size_t a = 0; a < value.arguments.size(); ++a) {
    formals.push_back(fmt::format("a{}", a));
    parameters.push_back(fmt::format("{} a{}", type_of(value.arguments[a]), a));
    arguments.push_back(name(value.arguments[a]));
  }
  const std::string definition = fmt::format("({}) {{ return {}; }}", fmt::join(parameters, ", "),
                                             apply_text(computation_, node, formals));
  const std::string type(value_type(node.shape.dtype));
  const auto [function, fresh] =
      parts_.ops.try_emplace(type + definition, fmt::format("op_{}", parts_.ops.size()));
  if (fresh) parts_.text.line(fmt::format("{} {} {}{}", kFunction, type, function->second, definition));
  return fmt::format("{}({})", function->second, fmt::join(arguments, ", "));
}

std::string_view ValuePrinter::type_of(int v) const {
  return value_type(computation_.node(step_.values[static_cast<std::size_t>(v)].op).shape.dtype);
}

void ValuePrinter::call_part(const std::vector<int>& part) {
  std::vector<int> given;
  std::vector<std::string> lines;
  std::vector<char> known(step_.values.size());
  for (const int v : part) {
    const Value& value = step_.values[static_cast<std::size_t>(v)];
    for (const int argument : value.arguments) {
      const auto a = static_cast<std::size_t>(argument);
      if (step_.values[a].kind == ValueKind::kConstant || known[a] != 0) continue;
      known[a] = 1;
      given.push_back(argument);
    }
    known[static_cast<std::size_t>(v)] = 1;
    variables_[static_cast<std::size_t>(v)] = names_.make(computation_.node(value.op).name, "v");
    lines.push_back(fmt::format("const {} {} = {};", type_of(v), name(v), called_op(value)));
  }

  const int number = parts_.count++;
  const std::vector<int> results = read_outside(part);
  const bool several = results.size() != 1;
  const std::string type = several ? fmt::format("Results{}", number) : std::string(type_of(results[0]));
  std::vector<std::string> parameters, arguments, returned;
  for (const int v : given) {
    parameters.push_back(fmt::format("{} {}", type_of(v), name(v)));
    arguments.push_back(name(v));
  }
  if (several) {
    parts_.text.open(fmt::format("struct {}", type));
    for (const int v : results) parts_.text.line(fmt::format("{} {};", type_of(v), name(v)));
    parts_.text.close(";");
  }
  for (const int v : results) returned.push_back(name(v));
  parts_.text.open(fmt::format("{} {} part_{}({})", kFunction, type, number, fmt::join(parameters, ", ")));
  for (const std::string& line : lines) parts_.text.line(line);
  parts_.text.line(several ? fmt::format("return {}{{{}}};", type, fmt::join(returned, ", "))
                           : fmt::format("return {};", returned[0]));
  parts_.text.close();

  const std::string call = fmt::format("part_{}({})", number, fmt::join(arguments, ", "));
  if (!several) {
    out_.line(fmt::format("const {} {} = {};", type, returned[0], call));
    return;
  }
  out_.line(fmt::format("const {} results_{} = {};", type, number, call));
  for (const int v : results)
    out_.line(fmt::format("const {} {} = results_{}.{};", type_of(v), name(v), number, name(v)));
}

}  // namespace stitchwork
