// stitchwork inputs MODEL -o DIR: what `run` fills the parameters with, for other programs to read.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/usage.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory.h"
#include "core/hlo/npy.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

/// A folder and its new files, all of which go again unless all are kept.
class WholeFolder {
 public:
  explicit WholeFolder(const std::string& path) : path_(path) {
    std::error_code error;
    made_ = fs::create_directories(path_, error);
    if (error) throw Error(path_.string(), 0, 0, fmt::format("cannot be made: {}", error.message()));
  }
  ~WholeFolder() {
    if (kept_) return;
    std::error_code ignored;
    for (const fs::path& file : files_) fs::remove(file, ignored);
    if (made_) fs::remove(path_, ignored);
  }
  WholeFolder(const WholeFolder&) = delete;
  WholeFolder& operator=(const WholeFolder&) = delete;

  void add(const std::string& file, const Literal& array) {
    write_npy((path_ / file).string(), array);
    files_.push_back(path_ / file);
  }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  std::vector<fs::path> files_;
  bool made_ = false, kept_ = false;
};

void write_inputs(const Cli& cli, const Model& model, const std::string& folder, std::uint64_t seed) {
  const Computation& entry = model.graph.entry_computation();
  for (NodeId id : entry.parameters)
    if (const Node& parameter = entry.node(id); parameter.shape.is_tuple)
      throw Error(model.graph.source, 0, 0,
                  fmt::format("parameter {} is a tuple, {}", parameter.name, to_text(parameter.shape)),
                  "an .npy file holds one array: give the parts as parameters");
  const InputGenerator generate(model.graph, seed, model.inputs);
  for (const NodeId id : entry.parameters)  // one at a time
    require_memory(static_cast<double>(entry.node(id).shape.byte_size()),
                   fmt::format("parameter {}", entry.node(id).name), "export a smaller model");
  WholeFolder written(folder);
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    const Node& parameter = entry.node(entry.parameters[i]);
    const std::string file = fmt::format("{}.npy", parameter.attrs.parameter_number);
    written.add(file, generate(i));
    parameters.push_back({{"number", parameter.attrs.parameter_number},
                          {"name", parameter.name},
                          {"shape", to_text(parameter.shape)},
                          {"file", file}});
  }
  written.keep();
  if (cli.json)
    return cli.print(nlohmann::ordered_json{{"schema", "stitchwork.inputs/1"},
                                            {"model", model.graph.source},
                                            {"seed", seed},
                                            {"folder", folder},
                                            {"parameters", parameters},
                                            {"result", to_text(entry.node(entry.root).shape)}});
  cli.print(
      fmt::format("{}: {}, from seed {}", folder, counted(std::ssize(entry.parameters), "array"), seed));
}

}  // namespace

void add_inputs(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("inputs", "write what run fills the parameters with, as .npy files");
  auto name = std::make_shared<std::string>();
  auto open = std::make_shared<ModelOptions>();
  auto folder = std::make_shared<std::string>();
  auto seed = std::make_shared<std::uint64_t>(0);
  command->add_option("MODEL", *name, kModelHelp)->required();
  open->add(*command);
  command->add_option("-o,--output", *folder, "folder for 0.npy, 1.npy, ...")->required();
  add_seed(*command, *seed, "of the values");
  add_common(*command, cli,
             "  stitchwork inputs softmax -o in/\n"
             "  stitchwork inputs bert_layer --seed 7 -o in/ --json");
  command->callback(
      [&cli, name, open, folder, seed] { write_inputs(cli, open->load(*name), *folder, *seed); });
}

}  // namespace stitchwork
