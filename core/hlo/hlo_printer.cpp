#include <fmt/format.h>

#include "core/hlo/hlo_attributes.h"
#include "core/hlo/hlo_literal.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace {

void print_operands(std::string& out, const Computation& computation, const Node& node) {
  if (node.op == Op::kParameter) {
    fmt::format_to(std::back_inserter(out), "{}", node.attrs.parameter_number);
    return;
  }
  if (node.op == Op::kConstant) {
    out += node.attrs.literal ? to_text(*node.attrs.literal) : "{...}";
    return;
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (i > 0) out += ", ";
    out += spelled_name(computation.node(node.operands[i]).name);
  }
}

void print_node(std::string& out, const Graph& graph, const Computation& computation, const Node& node,
                bool with_layout) {
  fmt::format_to(std::back_inserter(out), "{} = {} {}(", spelled_name(node.name),
                 to_text(node.shape, with_layout), def(node.op).name);
  print_operands(out, computation, node);
  out += ')';
  out += attributes_text(graph, computation, node);
}

/// The sections of newer XLA are module attributes whose text has lines of its own.
bool is_section(std::string_view key) {
  return key == "FileNames" || key == "FunctionNames" || key == "FileLocations" || key == "StackFrames";
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string out = "HloModule " + graph.name;
  for (const auto& [key, value] : graph.attributes) {
    if (!is_section(key)) fmt::format_to(std::back_inserter(out), ", {}={}", key, value);
  }
  out += '\n';
  for (const auto& [key, value] : graph.attributes) {
    if (is_section(key)) fmt::format_to(std::back_inserter(out), "\n{}\n{}\n", key, value);
  }
  for (std::size_t c = 0; c < graph.computations.size(); ++c) {
    const Computation& computation = graph.computations[c];
    out += '\n';
    if (static_cast<ComputationId>(c) == graph.entry) out += "ENTRY ";
    out += spelled_name(computation.name) + " {\n";
    for (const Node& node : computation.nodes) {
      out += node.id == computation.root ? "  ROOT " : "  ";
      print_node(out, graph, computation, node, true);
      out += '\n';
    }
    out += '}';
    for (const auto& [key, value] : computation.attributes)
      fmt::format_to(std::back_inserter(out), ", {}={}", key, value);
    out += '\n';
  }
  return out;
}

std::string to_text(const Graph& graph, const Computation& computation, const Node& node) {
  std::string out;
  print_node(out, graph, computation, node, false);
  return out;
}

}  // namespace stitchwork
