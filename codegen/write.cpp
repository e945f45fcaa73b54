#include "codegen/write.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace fs = std::filesystem;
namespace {

/// Where the table's addresses go: the buffer of an op, or scratch from a byte on.
nlohmann::ordered_json pointer_json(const Computation& computation, const KernelTable::Pointer& pointer) {
  nlohmann::ordered_json json{{"at", pointer.at}};
  if (pointer.kind == KernelArgument::Kind::kScratch)
    json["scratch"] = pointer.offset;
  else
    json["op"] = computation.node(pointer.op).name;
  return json;
}

nlohmann::ordered_json argument_json(const Computation& computation, const CompiledKernel& kernel,
                                     const KernelArgument& argument, const std::string& table_file) {
  using Kind = KernelArgument::Kind;
  nlohmann::ordered_json json;
  switch (argument.kind) {
    case Kind::kInput:
    case Kind::kOutput: {
      const Node& node = computation.node(argument.op);
      json["kind"] = argument.kind == Kind::kInput ? "input" : "output";
      json["op"] = node.name;
      json["shape"] = to_text(node.shape);
      json["bytes"] = node.shape.byte_size();
      break;
    }
    case Kind::kScratch:
      json["kind"] = "scratch";
      break;
    case Kind::kBarrier:
      json["kind"] = "barrier";
      json["bytes"] = 8;
      break;
    case Kind::kTable:
      json["kind"] = "table";
      json["bytes"] = kernel.table.bytes.size();
      json["file"] = table_file;
      json["pointers"] = nlohmann::ordered_json::array();
      for (const KernelTable::Pointer& pointer : kernel.table.pointers)
        json["pointers"].push_back(pointer_json(computation, pointer));
      break;
  }
  return json;
}

/// The kernels' files that an earlier launch.json in the folder names.
std::vector<std::string> files_of_before(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code none;
  const fs::path launch = folder / "launch.json";
  if (!fs::exists(launch, none)) return files;
  const auto document = nlohmann::json::parse(read_file(launch.string()), nullptr, false);
  if (!document.is_object() || document.value("schema", "") != "stitchwork.launch/1") return files;
  const auto add = [&](const nlohmann::json& names, const char* key) {
    if (!names.is_object() || !names.contains(key) || !names[key].is_string()) return;
    const std::string name = names[key];
    if (fs::path(name).filename() == name) files.push_back(name);  // nothing outside the folder
  };
  for (const auto& kernel : document.value("kernels", nlohmann::json::array())) {
    for (const char* key : {"cuda", "ptx", "cubin"}) add(kernel, key);
    if (!kernel.is_object()) continue;
    for (const auto& argument : kernel.value("arguments", nlohmann::json::array())) add(argument, "file");
  }
  return files;
}

}  // namespace

std::vector<std::string> write_kernels(const Graph& model, const Executable& executable,
                                       const std::string& folder) {
  const Graph& graph = planned_graph(model, executable.plan);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(folder, 0, 0, fmt::format("cannot be created: {}", error.message()),
                "name a writable folder");

  const std::vector<std::string> before = files_of_before(folder);
  std::vector<std::string> files;
  nlohmann::ordered_json document;
  document["schema"] = "stitchwork.launch/1";
  document["compiler"] = executable.compiler;
  document["architecture"] = fmt::format("sm_{}", executable.architecture);
  document["kernels"] = nlohmann::ordered_json::array();
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file((fs::path(folder) / name).string(), text);
    files.push_back(name);
  };
  for (std::size_t k = 0; k < executable.kernels.size(); ++k) {
    const CompiledKernel& kernel = executable.kernels[k];
    const KernelPlan& plan = executable.plan.kernels[k];
    const std::string stem = plan.id + "_" + plan.name;
    write(stem + ".cu", kernel.cuda);
    write(stem + ".ptx", kernel.ptx);
    nlohmann::ordered_json json;
    json["id"] = plan.id;
    json["name"] = plan.name;
    json["cuda"] = stem + ".cu";
    json["ptx"] = stem + ".ptx";
    if (!kernel.cubin.empty()) {
      write(stem + ".cubin", kernel.cubin);
      json["cubin"] = stem + ".cubin";
    }
    json["entry"] = kernel.entry;
    json["grid"] = kernel.launch.grid;
    json["block"] = kernel.launch.block;
    json["dynamic_shared_bytes"] = kernel.launch.shared_bytes;
    json["scratch_bytes"] = kernel.launch.scratch_bytes;
    json["grid_barriers"] = kernel.launch.grid_barriers;
    if (kernel.launch.cluster > 1) json["cluster"] = kernel.launch.cluster;
    if (kernel.registers > 0) json["registers"] = kernel.registers;
    if (kernel.spill_bytes) json["spill_bytes"] = *kernel.spill_bytes;
    json["source_sha256"] = kernel.source_sha256;
    json["arguments"] = nlohmann::ordered_json::array();
    const std::vector<std::byte>& table = kernel.table.bytes;
    if (!table.empty())
      write(stem + ".table", std::string(reinterpret_cast<const char*>(table.data()), table.size()));
    for (const KernelArgument& argument : kernel.arguments)
      json["arguments"].push_back(
          argument_json(graph.entry_computation(), kernel, argument, stem + ".table"));
    document["kernels"].push_back(std::move(json));
  }
  write("launch.json", document.dump(2) + "\n");
  for (const std::string& file : before)
    if (std::ranges::find(files, file) == files.end()) fs::remove(fs::path(folder) / file, error);
  return files;
}

}  // namespace stitchwork
