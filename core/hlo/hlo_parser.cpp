// The grammar of HLO text: a module of computations of instructions. Names are resolved while reading,
// except those of computations, which may come in any order.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/suggest.h"
#include "core/hlo/hlo_attributes.h"
#include "core/hlo/hlo_lexer.h"
#include "core/hlo/hlo_link.h"
#include "core/hlo/hlo_literal.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace {

/// Sections that newer XLA prints between the module line and the first computation; kept verbatim among the
/// module's attributes.
constexpr std::string_view kSections[] = {"FileNames", "FunctionNames", "FileLocations", "StackFrames"};

/// The computation of an async-start whose text names the op it starts instead (`custom-call-start(...)`).
struct WrappedOp {
  Computation computation;
  ComputationText text;
  std::size_t caller;
  NodeId start;
};

class Parser {
 public:
  Parser(std::string_view text, std::string file) : lexer_(text, std::move(file)) {}

  Graph parse() {
    graph_.source = lexer_.file();
    module_line();
    sections();
    while (lexer_.skip(), !lexer_.at_end()) computation();
    if (entry_ < 0) {
      lexer_.fail(
          lexer_.position(),
          graph_.computations.empty() ? "the module has no computation" : "no computation is marked ENTRY",
          "put ENTRY before the main computation; if the file is truncated, export it again");
    }
    add_wrapped();
    graph_.entry = entry_;
    link_computations(lexer_, computation_ids_, std::move(texts_), graph_);
    return std::move(graph_);
  }

 private:
  void module_line() {
    lexer_.accept("\xEF\xBB\xBF");  // a byte order mark, as some editors write
    lexer_.skip();
    const std::size_t start = lexer_.position();
    const bool alias = lexer_.peek() == '#';  // #loc = loc(unknown)
    const std::string_view keyword = alias ? std::string_view() : lexer_.word();
    if (alias || keyword == "module" || keyword == "func.func" || keyword == "builtin.module") {
      lexer_.fail(start, "this is MLIR, not HLO text",
                  "convert it (convert_stablehlo of python/stitchwork_capture.py, or xla-translate "
                  "--mlir-hlo-to-hlo-text), or export HLO (JAX: lowered.compiler_ir('hlo').as_hlo_text())");
    }
    if (keyword != "HloModule") {
      lexer_.fail(start, "not HLO text: it does not begin with HloModule",
                  "export HLO (JAX: lowered.compiler_ir('hlo').as_hlo_text(); XLA: --xla_dump_hlo_as_text)");
    }
    lexer_.skip_in_line();
    if (lexer_.peek() != '\n') graph_.name = lexer_.name("the module's name");
    while (lexer_.skip_in_line(), lexer_.peek() == ',') {
      lexer_.expect(",", "");
      const std::string_view key = lexer_.word();
      if (key.empty()) lexer_.fail_expected("an attribute of the module");
      lexer_.expect("=", fmt::format("after module attribute {}", key));
      graph_.attributes.emplace_back(key, lexer_.raw_value());
    }
  }

  void sections() {
    for (;;) {
      lexer_.skip();
      const std::size_t start = lexer_.position();
      const std::string_view keyword = lexer_.word();
      if (std::ranges::find(kSections, keyword) == std::end(kSections) || lexer_.peek() == ' ') {
        lexer_.go_to(start);
        return;
      }
      std::string lines;
      for (lexer_.skip(); lexer_.peek() >= '0' && lexer_.peek() <= '9'; lexer_.skip()) {
        if (!lines.empty()) lines += '\n';
        lines += lexer_.rest_of_line();
      }
      graph_.attributes.emplace_back(keyword, std::move(lines));
    }
  }

  void computation() {
    lexer_.skip();
    std::size_t position = lexer_.position();
    std::string_view name = lexer_.name("a computation");
    if (name == "ENTRY") {
      if (entry_ >= 0) {
        lexer_.fail(position,
                    fmt::format("a second ENTRY, '{}' is the first",
                                graph_.computations[static_cast<std::size_t>(entry_)].name),
                    "mark one computation only");
      }
      entry_ = static_cast<ComputationId>(graph_.computations.size());
      lexer_.skip();
      position = lexer_.position();
      name = lexer_.name("the entry computation's name");
    }
    if (!computation_ids_.emplace(name, static_cast<ComputationId>(graph_.computations.size())).second) {
      lexer_.fail(position, fmt::format("a second computation '{}'", name), "rename one of them");
    }
    Computation& computation = graph_.computations.emplace_back();
    computation.name = name;
    ComputationText& text = texts_.emplace_back();
    text.position = position;

    const Signature signature = read_signature();
    lexer_.expect("{", fmt::format("before the instructions of computation '{}'", name));
    node_ids_.clear();
    while (!lexer_.accept("}")) {
      interruption_point();
      if (lexer_.at_end()) {
        lexer_.fail(lexer_.position(), fmt::format("the text ends inside computation '{}'", name),
                    "the file is truncated: export it again");
      }
      instruction(computation, text);
    }
    finish(computation, text, signature);
    while (lexer_.accept(",")) {
      const std::string_view key = lexer_.word();
      if (key.empty()) lexer_.fail_expected("an attribute of the computation");
      lexer_.expect("=", fmt::format("after attribute {}", key));
      computation.attributes.emplace_back(key, lexer_.raw_value());
    }
  }

  struct Signature {
    std::optional<std::vector<Shape>> parameters;
    std::optional<Shape> result;
  };

  /// "(a: f32[2], b: f32[]) -> f32[2]", all of it optional. It says nothing that the instructions do not.
  Signature read_signature() {
    Signature signature;
    if (lexer_.accept("(")) {
      signature.parameters.emplace();
      if (!lexer_.accept(")")) {
        do {
          lexer_.name("a parameter's name");
          lexer_.expect(":", "after a parameter's name");
          signature.parameters->push_back(lexer_.shape());
        } while (lexer_.accept(","));
        lexer_.expect(")", "after the parameters");
      }
    }
    if (lexer_.accept("->")) signature.result = lexer_.shape();
    return signature;
  }

  void instruction(Computation& computation, ComputationText& text) {
    lexer_.skip();
    std::size_t position = lexer_.position();
    Node node;
    node.line = lexer_.line_of(position);
    std::string_view name = lexer_.name("an instruction or '}'");
    const bool is_root = name == "ROOT" && position + 4 == lexer_.position();
    if (is_root) {
      lexer_.skip();
      position = lexer_.position();
      name = lexer_.name("the root's name");
      if (computation.root != kNoNode) {
        lexer_.fail(position,
                    fmt::format("a second ROOT, '{}' is the first", computation.node(computation.root).name));
      }
    }
    node.name = name;
    node.id = computation.size();
    if (const auto [first, fresh] = node_ids_.emplace(name, node.id); !fresh) {
      lexer_.fail(position,
                  fmt::format("a second instruction '{}' in computation '{}'", name, computation.name),
                  fmt::format("the first is on line {}", computation.node(first->second).line));
    }
    lexer_.expect("=", fmt::format("after the name '{}'", name));
    node.shape = lexer_.shape();
    const Opcode opcode = read_opcode();
    node.op = opcode.op;
    NodeText node_text{opcode.position, {}};
    operands(computation, node);
    std::vector<std::string_view> keys;
    while (lexer_.accept(",")) {
      lexer_.skip();
      const std::size_t key_position = lexer_.position();
      const std::string_view key = lexer_.word();
      if (key.empty()) lexer_.fail_expected("an attribute");
      if (std::ranges::find(keys, key) != keys.end())
        lexer_.fail(key_position, fmt::format("a second attribute {}", key), "remove one of them");
      keys.push_back(key);
      lexer_.expect("=", fmt::format("after attribute {}", key));
      read_attribute(lexer_, key, key_position, node, node_text.callees);
    }
    order_other(node.attrs);
    complete(node, node_text);
    if (opcode.starts) wrap(computation, node, node_text);
    if (is_root) computation.root = node.id;
    computation.nodes.push_back(std::move(node));
    text.nodes.push_back(std::move(node_text));
  }

  struct Opcode {
    Op op;
    std::size_t position;  ///< errors of the instruction point there
    bool starts;           ///< the text is `OP-start`: an async-start of that op
  };

  Opcode read_opcode() {
    lexer_.skip();
    const std::size_t position = lexer_.position();
    const std::string_view word = lexer_.word();
    if (word.empty()) lexer_.fail_expected("an op");
    if (const std::optional<Op> op = op_from_name(word)) return {*op, position, false};
    const auto asynchronous = [&](std::string_view suffix) {
      return word.ends_with(suffix) ? op_from_name(word.substr(0, word.size() - suffix.size()))
                                    : std::nullopt;
    };
    if (const std::optional<Op> op = asynchronous("-start")) return {*op, position, true};
    if (asynchronous("-update")) return {Op::kAsyncUpdate, position, false};
    if (asynchronous("-done")) return {Op::kAsyncDone, position, false};
    std::vector<std::string_view> names;
    for (const OpDef& row : op_table()) names.push_back(row.name);
    const std::string_view near = closest(word, names);
    lexer_.fail(position, fmt::format("unknown op '{}'", word),
                near.empty() ? "docs/hlo.md lists the ops" : fmt::format("did you mean {}?", near));
  }

  /// Makes `node`, an op read where the text says `OP-start`, the root of a computation of its own and leaves
  /// the async-start that calls it.
  void wrap(const Computation& computation, Node& node, NodeText& text) {
    if (!node.shape.is_tuple || node.shape.elements.size() < 2) {
      lexer_.fail(text.position, fmt::format("{}-start gives {}", def(node.op).name, to_text(node.shape)),
                  "it gives a tuple of its operands, its result and what the device needs");
    }
    WrappedOp wrapped{{}, {text.position, {}}, graph_.computations.size() - 1, node.id};
    Node start;
    start.id = node.id;
    start.op = Op::kAsyncStart;
    start.name = node.name;
    start.shape = node.shape;
    start.operands = node.operands;
    start.metadata = node.metadata;
    start.line = node.line;
    std::erase_if(node.attrs.other, [&](const auto& attribute) {
      const bool outer = attribute.first == "async_execution_thread";
      if (outer) start.attrs.other.push_back(attribute);
      return outer;
    });
    for (NodeId& operand : node.operands) {
      Node parameter;
      parameter.id = wrapped.computation.size();
      parameter.name = fmt::format("param_{}", parameter.id);
      parameter.shape = computation.node(operand).shape;
      parameter.attrs.parameter_number = parameter.id;
      parameter.line = node.line;
      operand = parameter.id;
      wrapped.computation.parameters.push_back(parameter.id);
      wrapped.computation.nodes.push_back(std::move(parameter));
      wrapped.text.nodes.push_back({text.position, {}});
    }
    node.id = wrapped.computation.root = wrapped.computation.size();
    node.shape = start.shape.elements[1];
    wrapped.computation.nodes.push_back(std::move(node));
    wrapped.text.nodes.push_back(std::move(text));
    text = {wrapped.text.position, {}};
    node = std::move(start);
    wrapped_.push_back(std::move(wrapped));
  }

  /// Gives the computations of `wrap` names that no other has, now that all are known.
  void add_wrapped() {
    for (WrappedOp& wrapped : wrapped_) {
      std::string name = "async_wrapped";
      for (int n = 1; computation_ids_.contains(name); ++n) name = fmt::format("async_wrapped.{}", n);
      const std::string& kept = wrapped_names_.emplace_back(std::move(name));
      wrapped.computation.name = kept;
      computation_ids_.emplace(kept, static_cast<ComputationId>(graph_.computations.size()));
      NodeText& start = texts_[wrapped.caller].nodes[static_cast<std::size_t>(wrapped.start)];
      start.callees.push_back({0, kept, start.position});
      graph_.computations.push_back(std::move(wrapped.computation));
      texts_.push_back(std::move(wrapped.text));
    }
  }

  void operands(const Computation& computation, Node& node) {
    lexer_.expect("(", fmt::format("after {}", def(node.op).name));
    if (node.op == Op::kParameter) {
      node.attrs.parameter_number = lexer_.integer("the parameter's number");
    } else if (node.op == Op::kConstant && node.shape.elements_count() > 1 && lexer_.accept("{...}")) {
      // XLA leaves the values of large constants out unless asked for them: such a model plans, it does not
      // run.
    } else if (node.op == Op::kConstant) {
      node.attrs.literal = std::make_shared<const Literal>(read_literal(lexer_, node.shape));
    } else if (lexer_.skip(), lexer_.peek() != ')') {
      do operand(computation, node);
      while (lexer_.accept(","));
    }
    lexer_.expect(")", fmt::format("after the operands of {}", def(node.op).name));
  }

  void operand(const Computation& computation, Node& node) {
    lexer_.skip();
    const std::size_t shape_position = lexer_.position();
    std::optional<Shape> stated;
    if (lexer_.shape_follows()) stated = lexer_.shape();
    lexer_.skip();
    const std::size_t position = lexer_.position();
    const std::string_view name = lexer_.name("an operand");
    const auto found = node_ids_.find(name);
    if (found == node_ids_.end() || found->second == node.id) unknown_operand(name, position);
    const Shape& actual = computation.node(found->second).shape;
    if (stated && !stated->compatible(actual)) {
      lexer_.fail(shape_position, fmt::format("operand '{}' is written {}, it is {}", name, to_text(*stated),
                                              to_text(actual)));
    }
    node.operands.push_back(found->second);
  }

  [[noreturn]] void unknown_operand(std::string_view name, std::size_t position) {
    std::vector<std::string_view> names;
    for (const auto& [known, id] : node_ids_) names.push_back(known);
    std::ranges::sort(names);
    const std::string_view near = closest(name, names);
    lexer_.fail(position, fmt::format("unknown operand '{}'", name),
                near.empty() || near == name ? "an instruction must come before those that use it"
                                             : fmt::format("did you mean {}?", near));
  }

  /// What does not depend on other computations.
  void complete(Node& node, NodeText& text) {
    std::ranges::stable_sort(text.callees, {}, &CalleeName::slot);
    if (const std::string_view missing = missing_attribute(node, text.callees); !missing.empty()) {
      lexer_.fail(text.position, fmt::format("{} lacks {}=", def(node.op).name, missing));
    }
    if (node.op == Op::kDot && !node.attrs.dot) node.attrs.dot.emplace();
  }

  void finish(Computation& computation, const ComputationText& text, const Signature& signature) {
    if (computation.nodes.empty())
      lexer_.fail(text.position, fmt::format("computation '{}' is empty", computation.name));
    // As in XLA, the last instruction is the root where none is marked.
    if (computation.root == kNoNode) computation.root = computation.size() - 1;
    for (const Node& node : computation.nodes) {
      if (node.op == Op::kParameter)
        place_parameter(computation, node, text.nodes[static_cast<std::size_t>(node.id)].position);
    }
    for (std::size_t i = 0; i < computation.parameters.size(); ++i) {
      if (computation.parameters[i] == kNoNode) {
        lexer_.fail(text.position, fmt::format("computation '{}' has no parameter({})", computation.name, i),
                    "parameters are numbered from 0 without gaps");
      }
    }
    check_signature(computation, text, signature);
  }

  void check_signature(const Computation& computation, const ComputationText& text,
                       const Signature& signature) {
    const Shape& root = computation.node(computation.root).shape;
    if (signature.result && !signature.result->compatible(root)) {
      lexer_.fail(text.position, fmt::format("computation '{}' is written to give {}, its root gives {}",
                                             computation.name, to_text(*signature.result), to_text(root)));
    }
    if (!signature.parameters) return;
    if (signature.parameters->size() != computation.parameters.size()) {
      lexer_.fail(text.position,
                  fmt::format("computation '{}' is written with {} parameters, it has {}", computation.name,
                              signature.parameters->size(), computation.parameters.size()));
    }
    for (std::size_t i = 0; i < computation.parameters.size(); ++i) {
      const Shape& stated = (*signature.parameters)[i];
      const Node& parameter = computation.node(computation.parameters[i]);
      if (!stated.compatible(parameter.shape)) {
        lexer_.fail(text.nodes[static_cast<std::size_t>(parameter.id)].position,
                    fmt::format("parameter({}) is {}, computation '{}' is written to take {}", i,
                                to_text(parameter.shape), computation.name, to_text(stated)));
      }
    }
  }

  void place_parameter(Computation& computation, const Node& node, std::size_t position) {
    const std::int64_t number = node.attrs.parameter_number;
    if (number < 0 || number >= computation.size()) {
      lexer_.fail(
          position,
          fmt::format("parameter({}) in a computation of {} instructions", number, computation.size()),
          "parameters are numbered from 0 without gaps");
    }
    auto& parameters = computation.parameters;
    parameters.resize(std::max(parameters.size(), static_cast<std::size_t>(number) + 1), kNoNode);
    NodeId& place = parameters[static_cast<std::size_t>(number)];
    if (place != kNoNode) {
      lexer_.fail(position, fmt::format("parameter({}) is both '{}' and '{}'", number,
                                        computation.node(place).name, node.name));
    }
    place = node.id;
  }

  HloLexer lexer_;
  Graph graph_;
  ComputationId entry_ = -1;
  std::vector<ComputationText> texts_;  ///< parallel to graph_.computations
  ComputationIds computation_ids_;
  std::unordered_map<std::string_view, NodeId> node_ids_;  ///< of the computation being read
  std::vector<WrappedOp> wrapped_;
  std::deque<std::string> wrapped_names_;  ///< what computation_ids_ refers to
};

}  // namespace

Graph parse_hlo(std::string_view text, std::string file) { return Parser(text, std::move(file)).parse(); }

}  // namespace stitchwork
