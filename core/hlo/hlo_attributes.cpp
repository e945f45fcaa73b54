#include "core/hlo/hlo_attributes.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace stitchwork {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::array kComparisons = {
    std::pair{std::string_view("EQ"), Comparison::kEq}, std::pair{std::string_view("NE"), Comparison::kNe},
    std::pair{std::string_view("LT"), Comparison::kLt}, std::pair{std::string_view("LE"), Comparison::kLe},
    std::pair{std::string_view("GT"), Comparison::kGt}, std::pair{std::string_view("GE"), Comparison::kGe}};

// ---- attributes that name computations ----

struct CalleeAttribute {
  std::string_view key;
  int slot;
  bool list;  ///< may be {a, b}
};
constexpr std::array kCalleeAttributes = {
    CalleeAttribute{"to_apply", 0, false},
    CalleeAttribute{"calls", 0, true},
    CalleeAttribute{"called_computation", 0, false},
    CalleeAttribute{"called_computations", 0, true},
    CalleeAttribute{"condition", 0, false},
    CalleeAttribute{"body", 1, false},
    CalleeAttribute{"select", 0, false},
    CalleeAttribute{"scatter", 1, false},
    CalleeAttribute{"branch_computations", 0, true},
    CalleeAttribute{"true_computation", 0, false},
    CalleeAttribute{"false_computation", 1, false},
};

/// What an op's computations are called, and how many it must have.
struct CalleeRule {
  Op op;
  std::array<std::string_view, 3> keys;
  int at_least;
};
constexpr std::array kCalleeRules = {
    CalleeRule{Op::kMap, {"to_apply"}, 1},
    CalleeRule{Op::kReduce, {"to_apply"}, 1},
    CalleeRule{Op::kReduceWindow, {"to_apply"}, 1},
    CalleeRule{Op::kScatter, {"to_apply"}, 1},
    CalleeRule{Op::kSort, {"to_apply"}, 1},
    CalleeRule{Op::kAllReduce, {"to_apply"}, 1},
    CalleeRule{Op::kReduceScatter, {"to_apply"}, 1},
    CalleeRule{Op::kTopK, {"to_apply"}, 0},
    CalleeRule{Op::kCall, {"to_apply"}, 1},
    CalleeRule{Op::kFusion, {"calls"}, 1},
    CalleeRule{Op::kSelectAndScatter, {"select", "scatter"}, 2},
    CalleeRule{Op::kWhile, {"condition", "body"}, 2},
    CalleeRule{Op::kConditional, {"branch_computations", "true_computation", "false_computation"}, 1},
    CalleeRule{Op::kCustomCall, {"called_computations", "to_apply", "calls"}, 0},
    CalleeRule{Op::kScan, {"to_apply"}, 1},
    CalleeRule{Op::kAllReduceStart, {"to_apply"}, 1},
    CalleeRule{Op::kAsyncStart, {"calls", "called_computation"}, 1},
    // Older text repeats it at the other end.
    CalleeRule{Op::kAsyncUpdate, {"calls", "called_computation"}, 0},
    CalleeRule{Op::kAsyncDone, {"calls", "called_computation"}, 0},
};

const CalleeRule* callee_rule(Op op) {
  const auto found = std::ranges::find(kCalleeRules, op, &CalleeRule::op);
  return found == kCalleeRules.end() ? nullptr : &*found;
}

void read_callees(HloLexer& lexer, const CalleeAttribute& attribute, std::vector<CalleeName>& callees) {
  const auto read_one = [&](int slot) {
    lexer.skip();
    const std::size_t position = lexer.position();
    callees.push_back({slot, lexer.name("a computation's name"), position});
  };
  if (!attribute.list || !lexer.accept("{")) return read_one(attribute.slot);
  if (lexer.accept("}")) return;
  int slot = 0;
  do read_one(slot++);
  while (lexer.accept(","));
  lexer.expect("}", "after the computations");
}

/// Attributes kept as text that an op cannot do without.
struct RequiredText {
  Op op;
  std::string_view key;
};
constexpr std::array kRequiredTexts = {
    RequiredText{Op::kConvolution, "dim_labels"},
    RequiredText{Op::kScatter, "update_window_dims"},
    RequiredText{Op::kScatter, "inserted_window_dims"},
    RequiredText{Op::kScatter, "scatter_dims_to_operand_dims"},
    RequiredText{Op::kScatter, "index_vector_dim"},
    RequiredText{Op::kBatchNormTraining, "epsilon"},
    RequiredText{Op::kBatchNormTraining, "feature_index"},
    RequiredText{Op::kBatchNormInference, "epsilon"},
    RequiredText{Op::kBatchNormInference, "feature_index"},
    RequiredText{Op::kBatchNormGrad, "epsilon"},
    RequiredText{Op::kBatchNormGrad, "feature_index"},
    RequiredText{Op::kFft, "fft_type"},
    RequiredText{Op::kFft, "fft_length"},
    RequiredText{Op::kRng, "distribution"},
    RequiredText{Op::kRngBitGenerator, "algorithm"},
};

// ---- lists with a spelling of their own ----

std::vector<SliceSpec> read_slice(HloLexer& lexer) {
  std::vector<SliceSpec> out;
  lexer.expect("{", "before slice's ranges");
  if (lexer.accept("}")) return out;
  do {
    lexer.expect("[", "before a range");
    SliceSpec spec;
    spec.start = lexer.integer("a range's start");
    lexer.expect(":", "in a range");
    spec.limit = lexer.integer("a range's limit");
    if (lexer.accept(":")) spec.stride = lexer.integer("a range's stride");
    lexer.expect("]", "after a range");
    out.push_back(spec);
  } while (lexer.accept(","));
  lexer.expect("}", "after slice's ranges");
  return out;
}

/// padding=0_1x2_2_1; of a scalar: padding= and nothing.
std::vector<PadSpec> read_padding(HloLexer& lexer) {
  std::vector<PadSpec> out;
  lexer.skip_in_line();
  if (lexer.peek() == ',' || lexer.peek() == '\n' || lexer.at_end()) return out;
  do {
    PadSpec spec;
    spec.low = lexer.integer("low padding");
    lexer.expect("_", "between low and high padding");
    spec.high = lexer.integer("high padding");
    if (lexer.accept("_")) spec.interior = lexer.integer("interior padding");
    out.push_back(spec);
  } while (lexer.accept("x"));
  return out;
}

void read_metadata(HloLexer& lexer, Metadata& metadata) {
  lexer.expect("{", "before metadata");
  while (!lexer.accept("}")) {
    const std::string_view key = lexer.word();
    if (key.empty()) lexer.fail_expected("a key or '}'", "in metadata");
    lexer.expect("=", "after a metadata key");
    if (key == "op_type") {
      metadata.op_type = lexer.quoted();
    } else if (key == "op_name") {
      metadata.op_name = lexer.quoted();
    } else {
      metadata.other.emplace_back(key, lexer.raw_value());
    }
    lexer.accept(",");
  }
}

template <typename T>
T& emplaced(std::optional<T>& value) {
  if (!value) value.emplace();
  return *value;
}

/// The list of integers that `key` stands for in a node of this op, or nullptr.
Ints* integer_list(std::string_view key, Node& node) {
  Attributes& attrs = node.attrs;
  if (key == "dimensions") return &attrs.dimensions;
  if (node.op == Op::kDynamicSlice && key == "dynamic_slice_sizes") return &attrs.slice_sizes;
  if (node.op == Op::kDot || node.op == Op::kRaggedDot) {
    if (key == "lhs_batch_dims") return &emplaced(attrs.dot).lhs_batch;
    if (key == "rhs_batch_dims") return &emplaced(attrs.dot).rhs_batch;
    if (key == "lhs_contracting_dims") return &emplaced(attrs.dot).lhs_contracting;
    if (key == "rhs_contracting_dims") return &emplaced(attrs.dot).rhs_contracting;
  }
  if (node.op == Op::kGather) {
    if (key == "offset_dims") return &emplaced(attrs.gather).offset_dims;
    if (key == "collapsed_slice_dims") return &emplaced(attrs.gather).collapsed_slice_dims;
    if (key == "start_index_map") return &emplaced(attrs.gather).start_index_map;
    if (key == "operand_batching_dims") return &emplaced(attrs.gather).operand_batching_dims;
    if (key == "start_indices_batching_dims") return &emplaced(attrs.gather).start_indices_batching_dims;
    if (key == "slice_sizes") return &emplaced(attrs.gather).slice_sizes;
  }
  return nullptr;
}

bool read_typed(HloLexer& lexer, std::string_view key, Node& node) {
  Attributes& attrs = node.attrs;
  if (Ints* list = integer_list(key, node)) {
    *list = lexer.integers(key);
  } else if (node.op == Op::kIota && key == "iota_dimension") {
    attrs.dimensions = {lexer.integer("iota_dimension")};
  } else if (node.op == Op::kGather && key == "index_vector_dim") {
    emplaced(attrs.gather).index_vector_dim = lexer.integer("index_vector_dim");
  } else if (node.op == Op::kSlice && key == "slice") {
    attrs.slice = read_slice(lexer);
  } else if (node.op == Op::kPad && key == "padding") {
    attrs.padding = read_padding(lexer);
  } else if (node.op == Op::kGetTupleElement && key == "index") {
    attrs.tuple_index = lexer.integer("index");
  } else if (node.op == Op::kCompare && key == "direction") {
    lexer.skip();
    const std::size_t position = lexer.position();
    const std::string_view text = lexer.word();
    const auto found = std::ranges::find(kComparisons, text, [](const auto& pair) { return pair.first; });
    if (found == kComparisons.end()) {
      lexer.fail(position, fmt::format("unknown direction '{}'", text), "EQ, NE, LT, LE, GT or GE");
    }
    attrs.comparison = found->second;
  } else if (key == "metadata") {
    read_metadata(lexer, node.metadata);
  } else {
    return false;
  }
  return true;
}

// ---- printing ----

/// HLO prints these after an op's own attributes and computations.
int late_rank(std::string_view key) {
  constexpr std::array<std::string_view, 6> kLate = {
      "sharding", "frontend_attributes", "control-predecessors", "statistics", "origin", "backend_config"};
  const auto found = std::ranges::find(kLate, key);
  return found == kLate.end() ? 0 : 1 + static_cast<int>(found - kLate.begin());
}
constexpr std::string_view kAfterMetadata = "backend_config";

void add_list(std::string& out, std::string_view key, const Ints& values) {
  fmt::format_to(std::back_inserter(out), ", {}={{{}}}", key, fmt::join(values, ","));
}

void add_slice(std::string& out, const std::vector<SliceSpec>& slice) {
  const bool strided = std::ranges::any_of(slice, [](const SliceSpec& s) { return s.stride != 1; });
  out += ", slice={";
  for (std::size_t i = 0; i < slice.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}[{}:{}", i > 0 ? ", " : "", slice[i].start, slice[i].limit);
    if (strided) fmt::format_to(std::back_inserter(out), ":{}", slice[i].stride);
    out += ']';
  }
  out += '}';
}

void add_padding(std::string& out, const std::vector<PadSpec>& padding) {
  const bool interior = std::ranges::any_of(padding, [](const PadSpec& p) { return p.interior != 0; });
  out += ", padding=";
  for (std::size_t i = 0; i < padding.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}_{}", i > 0 ? "x" : "", padding[i].low, padding[i].high);
    if (interior) fmt::format_to(std::back_inserter(out), "_{}", padding[i].interior);
  }
}

void add_dot(std::string& out, const DotDims& dot) {
  if (!dot.lhs_batch.empty()) add_list(out, "lhs_batch_dims", dot.lhs_batch);
  add_list(out, "lhs_contracting_dims", dot.lhs_contracting);
  if (!dot.rhs_batch.empty()) add_list(out, "rhs_batch_dims", dot.rhs_batch);
  add_list(out, "rhs_contracting_dims", dot.rhs_contracting);
}

void add_gather(std::string& out, const GatherDims& gather) {
  add_list(out, "offset_dims", gather.offset_dims);
  add_list(out, "collapsed_slice_dims", gather.collapsed_slice_dims);
  add_list(out, "start_index_map", gather.start_index_map);
  if (!gather.operand_batching_dims.empty()) {
    add_list(out, "operand_batching_dims", gather.operand_batching_dims);
    add_list(out, "start_indices_batching_dims", gather.start_indices_batching_dims);
  }
  fmt::format_to(std::back_inserter(out), ", index_vector_dim={}", gather.index_vector_dim);
  add_list(out, "slice_sizes", gather.slice_sizes);
}

/// Ops whose dimensions are printed even if there are none.
bool always_has_dimensions(Op op) {
  return op == Op::kBroadcast || op == Op::kReduce || op == Op::kTranspose || op == Op::kReverse ||
         op == Op::kMap;
}

void add_typed(std::string& out, const Node& node) {
  const Attributes& attrs = node.attrs;
  if (node.op == Op::kIota) {
    if (!attrs.dimensions.empty()) {
      fmt::format_to(std::back_inserter(out), ", iota_dimension={}", attrs.dimensions[0]);
    }
  } else if (!attrs.dimensions.empty() || always_has_dimensions(node.op)) {
    add_list(out, "dimensions", attrs.dimensions);
  }
  if (node.op == Op::kSlice) add_slice(out, attrs.slice);
  if (node.op == Op::kPad) add_padding(out, attrs.padding);
  if (node.op == Op::kDynamicSlice) add_list(out, "dynamic_slice_sizes", attrs.slice_sizes);
  if (attrs.comparison) fmt::format_to(std::back_inserter(out), ", direction={}", name(*attrs.comparison));
  if (attrs.dot) add_dot(out, *attrs.dot);
  if (attrs.gather) add_gather(out, *attrs.gather);
  if (attrs.tuple_index >= 0) fmt::format_to(std::back_inserter(out), ", index={}", attrs.tuple_index);
}

void add_other(std::string& out, const Attributes& attrs, auto&& wanted) {
  for (const auto& [key, value] : attrs.other) {
    if (wanted(std::string_view(key))) fmt::format_to(std::back_inserter(out), ", {}={}", key, value);
  }
}

void add_callees(std::string& out, const Graph& graph, const Computation& computation, const Node& node) {
  const auto& ids = node.attrs.computations;
  if (ids.empty()) return;
  const auto spelled = [&](std::size_t i) { return spelled_name(graph.computation(ids[i]).name); };
  const auto add = [&](std::string_view key, const std::string& value) {
    fmt::format_to(std::back_inserter(out), ", {}={}", key, value);
  };
  const CalleeRule* rule = callee_rule(node.op);
  const bool by_predicate = node.op == Op::kConditional && ids.size() == 2 &&
                            computation.node(node.operands.at(0)).shape.dtype == DType::kPred;
  if (by_predicate) {
    add("true_computation", spelled(0));
    add("false_computation", spelled(1));
  } else if (rule == nullptr || rule->op == Op::kConditional || rule->op == Op::kCustomCall) {
    std::string list;
    for (std::size_t i = 0; i < ids.size(); ++i) list += (i > 0 ? ", " : "") + spelled(i);
    add(rule == nullptr ? "called_computations" : rule->keys[0], "{" + list + "}");
  } else {
    for (std::size_t i = 0; i < ids.size(); ++i) add(rule->keys.at(i), spelled(i));
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
      case '\'':
      case '\\':
        out += '\\';
        out += c;
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
          fmt::format_to(std::back_inserter(out), "\\{:03o}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out;
}

void add_metadata(std::string& out, const Metadata& metadata) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : " ", key, value);
  };
  if (!metadata.op_type.empty()) add("op_type", "\"" + escaped(metadata.op_type) + "\"");
  if (!metadata.op_name.empty()) add("op_name", "\"" + escaped(metadata.op_name) + "\"");
  for (const auto& [key, value] : metadata.other) add(key, value);
  if (!text.empty()) out += ", metadata={" + text + "}";
}

}  // namespace

std::string_view name(Comparison comparison) {
  return std::ranges::find(kComparisons, comparison, [](const auto& pair) { return pair.second; })->first;
}

void read_attribute(HloLexer& lexer, std::string_view key, std::size_t key_position, Node& node,
                    std::vector<CalleeName>& callees) {
  const auto callee = std::ranges::find(kCalleeAttributes, key, &CalleeAttribute::key);
  if (callee != kCalleeAttributes.end()) {
    const CalleeRule* rule = callee_rule(node.op);
    if (rule == nullptr || std::ranges::find(rule->keys, key) == rule->keys.end()) {
      lexer.fail(
          key_position, fmt::format("{} has no attribute {}", def(node.op).name, key),
          rule == nullptr ? std::string("it names no computation") : fmt::format("it has {}", rule->keys[0]));
    }
    return read_callees(lexer, *callee, callees);
  }
  if (read_typed(lexer, key, node)) return;
  node.attrs.other.emplace_back(key, lexer.raw_value());
}

std::string_view missing_attribute(const Node& node, const std::vector<CalleeName>& callees) {
  if (const CalleeRule* rule = callee_rule(node.op)) {
    if (static_cast<int>(callees.size()) < rule->at_least) {
      for (const std::string_view key : rule->keys) {
        const auto slot = std::ranges::find(kCalleeAttributes, key, &CalleeAttribute::key)->slot;
        if (std::ranges::find(callees, slot, &CalleeName::slot) == callees.end()) return key;
      }
    }
  }
  const Attributes& attrs = node.attrs;
  if (node.op == Op::kCompare && !attrs.comparison) return "direction";
  if (node.op == Op::kGetTupleElement && attrs.tuple_index < 0) return "index";
  if (node.op == Op::kIota && attrs.dimensions.empty()) return "iota_dimension";
  const bool one_dimension = node.op == Op::kConcatenate || node.op == Op::kConcatInPlace ||
                             node.op == Op::kSort || node.op == Op::kGetDimensionSize ||
                             node.op == Op::kSetDimensionSize;
  if (one_dimension && attrs.dimensions.empty()) return "dimensions";
  if (node.op == Op::kGather && !attrs.gather) return "offset_dims";
  for (const RequiredText& text : kRequiredTexts)
    if (text.op == node.op &&
        std::ranges::find(attrs.other, text.key, &std::pair<std::string, std::string>::first) ==
            attrs.other.end())
      return text.key;
  return {};
}

void order_other(Attributes& attrs) {
  std::ranges::stable_sort(attrs.other, {}, [](const auto& pair) { return late_rank(pair.first); });
}

std::string attributes_text(const Graph& graph, const Computation& computation, const Node& node) {
  std::string out;
  add_typed(out, node);
  add_other(out, node.attrs, [](std::string_view key) { return late_rank(key) == 0; });
  add_callees(out, graph, computation, node);
  add_other(out, node.attrs,
            [](std::string_view key) { return late_rank(key) > 0 && key != kAfterMetadata; });
  add_metadata(out, node.metadata);
  add_other(out, node.attrs, [](std::string_view key) { return key == kAfterMetadata; });
  return out;
}

std::string plain_attributes_text(const Node& node) {
  std::string out;
  add_typed(out, node);
  add_other(out, node.attrs, [](std::string_view) { return true; });
  return out;
}

std::string spelled_name(std::string_view name) {
  const bool digit = !name.empty() && name[0] >= '0' && name[0] <= '9';
  const bool misread = digit || name == "ROOT" || name == "ENTRY";
  return (misread ? "%" : "") + std::string(name);
}

}  // namespace stitchwork
