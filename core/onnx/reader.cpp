// From a ModelProto to a graph: inputs, initializers, nodes in order, functions, nested graphs, outputs.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/base/interrupt.h"
#include "core/base/sha256.h"
#include "core/base/suggest.h"
#include "core/hlo/hlo_text.h"
#include "core/onnx/functions.h"
#include "core/onnx/inputs.h"
#include "core/onnx/names.h"
#include "core/onnx/onnx.h"
#include "core/onnx/operators.h"
#include "core/onnx/questions.h"
#include "core/onnx/tensor.h"

namespace stitchwork {
namespace {

using namespace onnx_reader;
namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;  ///< of functions calling functions and graphs in graphs
/// Nodes a model may have once its functions and loops are expanded.
constexpr std::int64_t kMaxVisits = std::int64_t{1} << 20;

using Versions = std::map<std::string, std::int64_t>;

Versions versions_of(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto>& imports) {
  Versions versions;
  for (const auto& import : imports)
    versions[import.domain() == "ai.onnx" ? "" : import.domain()] = import.version();
  return versions;
}

class ModelReader : public SubgraphReader {
 public:
  ModelReader(pb::ModelProto& model, const std::string& file, const OnnxOptions& options, fs::path folder)
      : model_(model), options_(options), folder_(std::move(folder)), builder_(file) {}

  Graph read() {
    try {
      return read_model();
    } catch (const OpenModel& open) {  // a node knows an input by its name alone
      std::vector<OnnxQuestion> questions = open.questions();
      for (OnnxQuestion& question : questions)
        for (const pb::ValueInfoProto& input : model_.graph().input())
          if (question.kind == OnnxQuestion::Kind::kValue && input.name() == question.name)
            question = value_question(input, dims_);
      throw OpenModel(open, questions);
    }
  }

  std::vector<Value> read(const pb::GraphProto& graph, const std::vector<Value>& arguments) override {
    const Deeper deeper(*this);
    if (graph.input_size() != static_cast<int>(arguments.size()))
      throw Error(fmt::format("graph '{}' has {} inputs, {} are given", graph.name(), graph.input_size(),
                              arguments.size()));
    names_.emplace_back();
    for (const pb::TensorProto& tensor : graph.initializer()) bind(tensor.name(), known_tensor(tensor));
    for (int i = 0; i < graph.input_size(); ++i)
      bind(graph.input(i).name(), arguments[static_cast<std::size_t>(i)]);
    read_nodes(graph);
    std::vector<Value> results;
    for (const auto& output : graph.output())
      results.push_back(lookup(output.name(), fmt::format("output of graph '{}'", graph.name())));
    names_.pop_back();
    return results;
  }

  Literal tensor(const pb::TensorProto& tensor) override {
    Literal literal = read_tensor(tensor, folder_);
    if (tensor.data_location() == pb::TensorProto::EXTERNAL) remember(literal);
    return literal;
  }

  /// What else than the file decided the graph: sizes of dimensions, values of inputs, tensors in other
  /// files.
  const std::string& decided_by() const { return decided_by_; }

 private:
  Graph read_model() {
    versions_ = versions_of(model_.opset_import());
    for (const pb::FunctionProto& function : model_.functions())
      functions_[{function.domain() == "ai.onnx" ? "" : function.domain(), function.name()}] = &function;
    pb::GraphProto& graph = *model_.mutable_graph();
    names_.emplace_back();
    read_initializers(graph);
    read_inputs(graph);
    read_nodes(graph);
    std::vector<Value> results;
    for (const auto& output : graph.output()) {
      const Value& value = lookup(output.name(), "output of the graph");
      if (!value.present()) throw Error(fmt::format("output '{}' of the graph is absent", output.name()));
      add_result(value, results);
    }
    if (results.empty()) throw Error("the graph has no outputs");
    const std::string name = hlo_name(graph.name());
    return std::move(builder_).finish(name.empty() ? "onnx_model" : name, results);
  }

  struct Deeper {
    explicit Deeper(ModelReader& owner) : reader(owner) {
      if (++reader.depth_ > kMaxDepth)
        throw Error(fmt::format("functions and graphs are nested more than {} deep", kMaxDepth));
    }
    ~Deeper() { --reader.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ModelReader& reader;
  };

  Value known_tensor(const pb::TensorProto& proto) { return Builder::known(tensor(proto)); }

  void remember(const Literal& literal) {
    decided_by_ += sha256_hex({reinterpret_cast<const char*>(literal.bytes.data()), literal.bytes.size()});
  }

  void read_initializers(pb::GraphProto& graph) {
    if (graph.sparse_initializer_size() > 0)
      throw Error(fmt::format("sparse initializer '{}' is not supported",
                              graph.sparse_initializer(0).values().name()),
                  "store it as a dense tensor");
    for (pb::TensorProto& tensor : *graph.mutable_initializer()) {
      bind(tensor.name(), known_tensor(tensor));
      tensor.clear_raw_data();  // it lives on as a literal
    }
  }

  // --- Inputs and their dimensions.

  /// Sizes of symbolic dimensions from --value arrays, then --dim.
  void bind_dims(const std::vector<const pb::ValueInfoProto*>& inputs) {
    std::vector<std::string_view> known;
    std::set<std::string> asked;
    for (const pb::ValueInfoProto* input : inputs)
      for (int i = 0; i < tensor_type(*input).shape().dim_size(); ++i)
        if (!has_size(tensor_type(*input).shape().dim(i))) asked.insert(dimension_name(*input, i));
    known.assign(asked.begin(), asked.end());
    for (const auto& [name, size] : options_.dims) {
      if (!asked.contains(name)) {
        const std::string_view near = closest(name, known);
        throw Error(fmt::format("--dim {}={}: the model has no such dimension", name, size),
                    known.empty()   ? "all its dimensions are fixed"
                    : !near.empty() ? fmt::format("did you mean {}?", near)
                                    : fmt::format("it has {}", fmt::join(known, ", ")));
      }
      if (size < 0) throw Error(fmt::format("--dim {}={}: a dimension cannot be negative", name, size));
      dims_[name] = size;
      decided_by_ += fmt::format("{}={};", name, size);
    }
  }

  /// Throws OpenModel with every dimension of the graph's parameters that has no size.
  void require_dims(const std::vector<const pb::ValueInfoProto*>& inputs) const {
    std::vector<const pb::ValueInfoProto*> parameters;
    for (const pb::ValueInfoProto* input : inputs)
      if (!options_.values.contains(input->name())) parameters.push_back(input);
    const std::vector<OnnxQuestion> open = open_dimensions(parameters, dims_);
    if (open.empty()) return;
    std::vector<std::string> given;
    for (const OnnxQuestion& question : open) given.push_back(question.name + "=N");
    throw OpenModel(
        Error(fmt::format("dimension '{}' of input '{}' has no size", open[0].name,
                          open[0].of.substr(0, open[0].of.find('['))),
              fmt::format("give {}: --dim {}", open.size() > 1 ? "them" : "it", fmt::join(given, ","))),
        open);
  }

  Value fixed_input(const pb::ValueInfoProto& input, const std::variant<std::string, Literal>& given) {
    Literal literal = given_value(input, given, dims_);
    decided_by_ += input.name();
    remember(literal);
    return Builder::known(std::move(literal));
  }

  void read_inputs(const pb::GraphProto& graph) {
    std::vector<const pb::ValueInfoProto*> inputs;
    for (const auto& input : graph.input())
      if (!names_.back().contains(input.name())) inputs.push_back(&input);  // an initializer is its default
    bind_dims(inputs);
    for (const auto& given : options_.values)
      if (std::ranges::none_of(inputs, [&](const auto* input) { return input->name() == given.first; }))
        throw Error(fmt::format("--value {}: the model has no such input", given.first));
    for (const pb::ValueInfoProto* input : inputs)
      if (const auto given = options_.values.find(input->name()); given != options_.values.end())
        bind(input->name(), fixed_input(*input, given->second));
    require_dims(inputs);
    for (const pb::ValueInfoProto* input : inputs) {
      if (options_.values.contains(input->name())) continue;
      Value value = builder_.parameter(hlo_name(input->name()), shape_of(*input, dims_));
      value.depends_on = input->name();
      bind(input->name(), std::move(value));
    }
  }

  // --- Nodes.

  void bind(const std::string& name, Value value) {
    if (name.empty()) return;
    if (!names_.back().emplace(name, std::move(value)).second)
      throw Error(fmt::format("two values are called '{}'", name));
  }

  const Value& lookup(const std::string& name, const std::string& user) const {
    for (std::size_t i = names_.size(); i-- > first_visible_;)
      if (const auto found = names_[i].find(name); found != names_[i].end()) return found->second;
    throw Error(fmt::format("'{}' ({}) is given by no input, initializer or node before it", name, user),
                "nodes must be in topological order");
  }

  template <typename G>
  void read_nodes(const G& graph) {
    for (const pb::NodeProto& node : graph.node()) {
      interruption_point();
      try {
        read_node(node);
      } catch (const OpenModel& open) {
        throw OpenModel(Error(fmt::format("{}: {}", title(node), open.message()), open.hint()),
                        open.questions());
      } catch (const Error& error) {
        throw Error(fmt::format("{}: {}", title(node), error.message()), error.hint());
      }
    }
  }

  void read_node(const pb::NodeProto& node) {
    if (--visits_left_ < 0) throw Error("functions and loops expand to too many nodes");
    std::vector<Value> inputs;
    for (const std::string& name : node.input())
      inputs.push_back(name.empty() ? Value{} : lookup(name, "input"));
    const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    const auto function = functions_.find({domain, node.op_type()});
    const std::vector<Value> outputs = function != functions_.end()
                                           ? call(*function->second, node, std::move(inputs))
                                           : lower(node, domain, std::move(inputs));
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      const auto at = static_cast<std::size_t>(i);
      if (at >= outputs.size())
        throw Error(fmt::format("output {} ('{}') is not supported", i, node.output(i)));
      bind(node.output(i), outputs[at]);
    }
  }

  std::vector<Value> lower(const pb::NodeProto& node, const std::string& domain, std::vector<Value> inputs) {
    const OperatorRow* row = find_operator(domain, node.op_type());
    if (row == nullptr) throw Error("this operator is not supported" + why_not(domain, node.op_type()));
    const auto imported = versions_.find(domain);
    if (imported == versions_.end())
      throw Error(fmt::format("the model imports no operator set of domain '{}'", domain));
    const std::int64_t version = imported->second;
    if (domain.empty() && (version < kOldestVersion || version > kNewestVersion))
      throw Error(
          fmt::format("operator set {} is not read, {} to {} are", version, kOldestVersion, kNewestVersion),
          "convert the model with ONNX's version converter");
    if (version < row->since)
      throw Error(fmt::format("operator set {} has no such operator, it came with {}", version, row->since));
    const std::string name = node.name().empty() ? first_output(node) : node.name();
    builder_.set_origin(hlo_name(name), {node.op_type(), scope_name(name), {}});
    NodeContext context(builder_, *this, node, version, std::move(inputs));
    std::vector<Value> outputs = row->lower(context);
    context.check_all_used();
    builder_.set_origin(hlo_name(name), {node.op_type(), scope_name(name), {}});
    if (!outputs.empty()) builder_.name_result(outputs[0]);
    return outputs;
  }

  /// A model-local function: its body in place of the call; only its inputs are visible in it.
  std::vector<Value> call(const pb::FunctionProto& function, const pb::NodeProto& node,
                          std::vector<Value> inputs) {
    const Deeper deeper(*this);
    if (static_cast<int>(inputs.size()) > function.input_size())
      throw Error(fmt::format("function '{}' has {} inputs, {} are given", function.name(),
                              function.input_size(), inputs.size()));
    inputs.resize(static_cast<std::size_t>(function.input_size()));
    AttributeMap given;
    for (pb::AttributeProto& attribute : defaults_of(function)) {
      std::string name = attribute.name();
      given[std::move(name)] = std::move(attribute);
    }
    for (const pb::AttributeProto& attribute : node.attribute()) given[attribute.name()] = attribute;
    const std::size_t visible = std::exchange(first_visible_, names_.size());
    Versions versions = std::exchange(versions_, versions_of(function.opset_import()));
    names_.emplace_back();
    for (int i = 0; i < function.input_size(); ++i)
      bind(function.input(i), std::move(inputs[static_cast<std::size_t>(i)]));
    pb::FunctionProto body = function;
    for (pb::NodeProto& inner : *body.mutable_node()) {
      bind_attributes(inner, given);
      if (!node.name().empty())
        inner.set_name(node.name() + "/" + (inner.name().empty() ? inner.op_type() : inner.name()));
    }
    read_nodes(body);
    std::vector<Value> results;
    for (const std::string& output : function.output())
      results.push_back(lookup(output, fmt::format("output of function '{}'", function.name())));
    names_.pop_back();
    versions_ = std::move(versions);
    first_visible_ = visible;
    return results;
  }

  /// A sequence gives its elements.
  static void add_result(const Value& value, std::vector<Value>& results) {
    if (value.kind == Value::Kind::kArray) results.push_back(value);
    for (const Value& element : value.elements) add_result(element, results);
  }

  pb::ModelProto& model_;
  const OnnxOptions& options_;
  const fs::path folder_;
  Builder builder_;
  Versions versions_;
  std::map<std::pair<std::string, std::string>, const pb::FunctionProto*> functions_;
  Sizes dims_;
  std::vector<std::unordered_map<std::string, Value>> names_;  ///< innermost graph last
  std::size_t first_visible_ = 0;                              ///< a function's body sees no names outside it
  std::string decided_by_;
  int depth_ = 0;
  std::int64_t visits_left_ = kMaxVisits;
};

}  // namespace

bool is_onnx_path(std::string_view path) { return path.ends_with(".onnx") || path.ends_with(".onnx.gz"); }

Graph parse_onnx(std::string_view bytes, const std::string& file, const OnnxOptions& options,
                 const std::string& folder) {
  pb::ModelProto model;
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph())
    throw Error(file, 0, 0, "not an ONNX model",
                "export it again; a file of 2 GB and more must keep its tensors beside it");
  try {
    ModelReader reader(model, file, options, folder);
    Graph graph = reader.read();
    validate(graph);
    graph.source_sha256 = sha256_hex(bytes);
    if (!reader.decided_by().empty())
      graph.source_sha256 = sha256_hex(graph.source_sha256 + reader.decided_by());
    return graph;
  } catch (const OpenModel& open) {
    throw OpenModel(Error(file, 0, 0, printable(open.message()), printable(open.hint())), open.questions());
  } catch (const Error& error) {
    throw Error(file, 0, 0, printable(error.message()), printable(error.hint()));
  }
}

Graph read_onnx(const std::string& path, const OnnxOptions& options) {
  const std::string bytes = read_decompressed(path, ".onnx or .onnx.gz");
  const fs::path folder = fs::path(path).parent_path();
  return parse_onnx(bytes, path, options, folder.empty() ? "." : folder.string());
}

}  // namespace stitchwork
