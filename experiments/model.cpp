#include "experiments/model.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/data.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/suggest.h"
#include "core/hlo/hlo_text.h"
#include "core/onnx/onnx.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

/// Keys keep the file's order.
ordered_json read_json(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return ordered_json::parse(text);
  } catch (const json::exception& e) {
    throw Error(path, 0, 0, std::string("not JSON: ") + e.what());
  }
}

/// `field` of an object, or `otherwise`; throws Error if it is there with another type.
template <typename T>
T field(const ordered_json& object, const std::string& name, T otherwise, const std::string& file) {
  try {
    return object.value(name, otherwise);
  } catch (const json::exception& e) {
    throw Error(file, 0, 0, fmt::format("\"{}\": {}", name, e.what()));
  }
}

Distribution parse_distribution(const ordered_json& entry, const std::string& file, const std::string& key) {
  Distribution d;
  const auto kind = field<std::string>(entry, "distribution", "", file);
  if (kind == "normal")
    d.kind = Distribution::Kind::kNormal;
  else if (kind == "uniform")
    d.kind = Distribution::Kind::kUniform;
  else if (kind == "index")
    d.kind = Distribution::Kind::kIndex;
  else if (kind == "constant")
    d.kind = Distribution::Kind::kConstant;
  else
    throw Error(file, 0, 0, fmt::format("inputs.{}: unknown distribution \"{}\"", key, kind),
                "known: normal, uniform, index, constant");
  d.mean = field(entry, "mean", d.mean, file);
  d.stddev = field(entry, "stddev", d.stddev, file);
  d.low = field(entry, "low", d.low, file);
  d.high = field(entry, "high", d.high, file);
  d.value = field(entry, "value", d.value, file);
  return d;
}

/// Keys are parameter names, numbers or shell patterns ("params.*.LayerNorm.scale"); the first match in file
/// order of the most specific kind wins: an exact key beats a pattern.
InputOverrides read_overrides(const Graph& graph, const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  const ordered_json document = read_json(file);
  InputOverrides overrides;
  if (!document.contains("inputs")) return overrides;
  if (!document["inputs"].is_object())
    throw Error(file, 0, 0, "\"inputs\": expected an object",
                "one key a parameter: {\"x\": {\"distribution\": ...}}");
  const Computation& entry = graph.entry_computation();
  for (const auto& [key, value] : document["inputs"].items()) {
    const Distribution distribution = parse_distribution(value, file, key);
    const bool pattern = key.find_first_of("*?[") != std::string::npos;
    bool used = false;
    for (NodeId id : entry.parameters) {
      const Node& node = entry.node(id);
      if (pattern && fnmatch(key.c_str(), node.name.c_str(), 0) == 0) {
        overrides.try_emplace(node.name, distribution);
        used = true;
      } else if (!pattern && (key == node.name || key == std::to_string(node.attrs.parameter_number))) {
        overrides[node.name] = distribution;
        used = true;
      }
    }
    if (!used) throw Error(file, 0, 0, fmt::format("inputs.{} names no parameter of the model", key));
  }
  return overrides;
}

/// Patterns of the parameters that the model's file declares as weights.
std::vector<std::string> read_weights(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  return field(read_json(file), "weights", std::vector<std::string>{}, file);
}

void check_no_options(const OnnxOptions& options) {
  if (!options.empty())
    throw Error("--dim and --value are for ONNX models", "the shapes of HLO text are written in it");
}

}  // namespace

std::vector<Dataset> datasets() {
  std::vector<Dataset> found;
  std::error_code error;
  const fs::path folder = data_folder("datasets");
  fs::directory_iterator entries(folder, error);
  if (error)
    throw Error(folder.string(), 0, 0, fmt::format("cannot be listed: {}", error.message()),
                "STITCHWORK_DATASETS names the folder of the datasets");
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".json") continue;
    Dataset d;
    d.name = entry.path().stem().string();
    d.json_path = entry.path().string();
    const ordered_json document = read_json(d.json_path);
    const auto text = [&](const char* key, const std::string& otherwise) {
      return field(document, key, otherwise, d.json_path);
    };
    d.title = text("title", d.name);
    d.description = text("description", "");
    d.source = text("source", "");
    d.dtype = text("dtype", "");
    d.licence = text("licence", "");
    d.kind = text("kind", "");
    d.paper = text("paper", "");
    d.substitution = text("substitution", "");
    d.framework = text("framework", "");
    d.configuration = field(document, "configuration", ordered_json::object(), d.json_path).dump();
    d.ops = field(document, "ops", 0, d.json_path);
    d.parameter_bytes = field(document, "parameter_bytes", std::int64_t{0}, d.json_path);
    d.large = text("size", "") == "large";
    for (const char* extension : {".hlo", ".hlo.gz"})
      if (fs::path path = entry.path().parent_path() / (d.name + extension); fs::exists(path))
        d.path = path.string();
    if (d.path.empty()) throw Error(d.json_path, 0, 0, fmt::format("no {}.hlo beside it", d.name));
    found.push_back(std::move(d));
  }
  std::sort(found.begin(), found.end(), [](const Dataset& a, const Dataset& b) { return a.name < b.name; });
  return found;
}

namespace {

const Dataset* find(const std::vector<Dataset>& known, const std::string& name) {
  const auto found = std::ranges::find(known, name, &Dataset::name);
  return found == known.end() ? nullptr : &*found;
}

[[noreturn]] void throw_unknown(const std::vector<Dataset>& known, const std::string& name,
                                const std::string& what, std::string hint) {
  std::vector<std::string_view> names;
  for (const Dataset& d : known) names.push_back(d.name);
  if (const std::string_view near = closest(name, names); !near.empty())
    hint = fmt::format("did you mean {}?", near);
  throw Error(fmt::format("{}: {}", name, what), hint);
}

}  // namespace

Dataset find_dataset(const std::string& name) {
  const std::vector<Dataset> known = datasets();
  if (const Dataset* d = find(known, name)) return *d;
  throw_unknown(known, name, "no such dataset", "`stitchwork datasets` lists them");
}

namespace {

/// Of a pipe, which can be read once and has no ending to tell by: HLO text is printable from its first word
/// on, ONNX's protobuf begins with a tag.
Model read_stream(const std::string& path, const std::string& name, const OnnxOptions& options,
                  OpTrace* trace, Graph* as_read) {
  const std::string bytes = read_decompressed(path, "HLO text or ONNX");
  if (bytes.empty()) throw Error(name, 0, 0, "nothing came", "pipe HLO text or an ONNX model into it");
  const std::size_t first = bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const bool text = first != std::string::npos && std::isprint(static_cast<unsigned char>(bytes[first])) != 0;
  if (text) check_no_options(options);
  Graph read = text ? parse_hlo(bytes, name) : parse_onnx(bytes, name, options);
  if (text) read.source_sha256 = sha256_hex(bytes);
  Model model;
  model.left_out = left_out_effects(read);
  model.graph = canonicalize(read, trace);
  if (as_read != nullptr) *as_read = std::move(read);
  return model;
}

}  // namespace

std::string model_of_plan(const std::string& model, const std::string& plan_file) {
  std::error_code error;
  if (fs::exists(model, error)) return model;
  const fs::path beside = fs::path(plan_file).parent_path() / model;  // `model` alone where it is absolute
  if (fs::is_regular_file(beside, error)) return beside.string();
  const std::vector<Dataset> known = datasets();
  if (find(known, model) != nullptr) return model;
  throw Error(plan_file, 0, 0, fmt::format("its model {} is not there", model),
              "say where it is now: MODEL beside --plan, where the command takes both; or plan it again");
}

Model load_model(const std::string& name, const OnnxOptions& options, OpTrace* trace, Graph* as_read) {
  std::error_code error;
  Model model;
  const fs::file_type type = fs::status(name == "-" ? "/dev/stdin" : name, error).type();
  if (name == "-" || type == fs::file_type::fifo || type == fs::file_type::character)
    return read_stream(name == "-" ? "/dev/stdin" : name, name == "-" ? "stdin" : name, options, trace,
                       as_read);
  if (fs::is_regular_file(name, error)) {
    if (!is_onnx_path(name)) check_no_options(options);
    Graph read = is_onnx_path(name) ? read_onnx(name, options) : read_graph(name);
    model.left_out = left_out_effects(read);
    model.graph = canonicalize(read, trace);
    if (as_read != nullptr) *as_read = std::move(read);
    fs::path json_path = name;
    if (json_path.extension() == ".gz") json_path.replace_extension();
    model.inputs = read_overrides(model.graph, json_path.replace_extension(".json").string());
    model.graph.weights = read_weights(json_path.string());
    return model;
  }
  const std::vector<Dataset> known = datasets();
  if (const Dataset* d = find(known, name)) {
    check_no_options(options);
    Graph read = read_graph(d->path);
    model.graph = canonicalize(read, trace);
    model.graph.source = d->name;
    if (as_read != nullptr) *as_read = std::move(read);
    model.inputs = read_overrides(model.graph, d->json_path);
    model.graph.weights = read_weights(d->json_path);
    return model;
  }
  if (type == fs::file_type::directory)
    throw Error(name, 0, 0, "is a folder", "give the path of a file in it: HLO text or an ONNX model");
  throw_unknown(
      known, name, "no such file or dataset",
      "give a path to HLO text or an ONNX model, or a dataset's name (`stitchwork datasets` lists them)");
}

}  // namespace stitchwork
