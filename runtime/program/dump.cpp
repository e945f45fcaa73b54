#include "runtime/program/dump.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/file.h"

namespace stitchwork {
namespace {

constexpr std::string_view kDumpSchema = "stitchwork.peer-dump/1";
constexpr const char* kDumpFile = "dump.json";

std::vector<DumpPlace> read_places(const JsonCursor& c, const ScriptNames& names) {
  std::vector<DumpPlace> places;
  c.each([&](const JsonCursor& one) {
    one.only({"at", "type", "shape"});
    DumpPlace place{.at = names.view(one.at("at")), .shape = {}};
    const auto type = dtype_from_name(one.at("type").text());
    if (!type || !is_executable(*type))
      one.at("type").fail(fmt::format("values of type '{}' are not computed", one.at("type").text()));
    place.shape = Shape::array(*type, {});
    one.at("shape").each([&](const JsonCursor& dim) { place.shape.dims.push_back(dim.integer()); });
    const auto bytes = static_cast<std::uint64_t>(place.shape.byte_size());
    if (bytes > names.room(place.at))
      one.fail(fmt::format("{} takes {} bytes: there are {} from there on", to_text(place.shape), bytes,
                           names.room(place.at)));
    places.push_back(std::move(place));
  });
  return places;
}

}  // namespace

std::string Dump::title() const {
  // The package whose version tells compilers of a peer apart.
  const auto version = versions.find(peer == "xla" ? "jaxlib" : peer);
  if (version == versions.end()) return peer;
  return version->first == peer ? fmt::format("{} {}", peer, version->second)
                                : fmt::format("{} ({} {})", peer, version->first, version->second);
}

std::string Dump::planner() const {
  std::string name = title();
  std::erase_if(name, [](char c) { return c == '(' || c == ')'; });
  return name;
}

bool is_dump(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return std::filesystem::exists(std::filesystem::path(path) / kDumpFile, ignored);
  return std::filesystem::path(path).filename() == kDumpFile && std::filesystem::exists(path, ignored);
}

Dump read_dump(const std::string& path) {
  std::filesystem::path file = path;
  if (file.filename() != kDumpFile) file /= kDumpFile;
  const JsonDocument document(read_file(file.string()), file.string(), kDumpSchema,
                              "a compiler's dump, as scripts/peers make them: see docs/peers.md",
                              "docs/schema/peer-dump.schema.json");
  const JsonCursor root = document.root();
  root.only({"schema", "peer", "versions", "flags", "target", "device", "compute_capability", "model",
             "optimised", "parameters", "results", "program"});
  Dump dump;
  dump.folder = file.parent_path().empty() ? "." : file.parent_path().string();
  const auto in_dump = [&](const JsonCursor& name) {
    std::string known = (std::filesystem::path(dump.folder) / name.text()).string();
    if (!std::filesystem::exists(known)) name.fail(fmt::format("{} is missing", known), "make the dump anew");
    return known;
  };
  dump.peer = root.at("peer").text();
  root.at("versions").each_member([&](const std::string& what, const JsonCursor& version) {
    dump.versions[what] = version.text();
  });
  root.at("flags").each([&](const JsonCursor& flag) { dump.flags.push_back(flag.text()); });
  dump.target = root.at("target").text();
  dump.device = root.at("device").text();
  dump.model = in_dump(root.at("model"));
  if (const auto optimised = root.find("optimised")) dump.optimised = in_dump(*optimised);
  const JsonCursor program = root.at("program");
  program.only({"modules", "buffers", "steps"});
  dump.script = script_of(program, dump.folder);
  dump.script.file = file.string();
  const ScriptNames names{.folder = dump.folder, .modules = {}, .program = &dump.script.program};
  dump.parameters = read_places(root.at("parameters"), names);
  dump.results = read_places(root.at("results"), names);
  return dump;
}

void require_card(const Dump& dump, const Device& target) {
  for (const auto& module : dump.script.program.modules) {
    const std::string cc = fmt::format("sm_{}{}", target.cc_major, target.cc_minor);
    const std::string& built = module->target();
    const std::string digits = built.substr(0, built.find_first_not_of("0123456789", 3));
    if (digits == cc) continue;
    std::vector<std::string> fitting;
    for (const Device& d : devices())
      if (fmt::format("sm_{}{}", d.cc_major, d.cc_minor) == digits) fitting.push_back(d.id);
    throw Error(dump.script.file, 0, 0,
                fmt::format("was compiled for {} ({}); {} is {}", digits, dump.target, target.id, cc),
                fmt::format("make a dump for it, or take {}", fmt::join(fitting, ", ")));
  }
}

void set_inputs(Dump& dump, std::span<const Literal> inputs) {
  const auto refuse = [&](const std::string& what) {
    throw Error(dump.script.file, 0, 0, fmt::format("is no dump of the model: {}", what),
                "make the dump anew");
  };
  if (inputs.size() != dump.parameters.size())
    refuse(fmt::format("it has {} parameters, the model {}", dump.parameters.size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DumpPlace& place = dump.parameters[i];
    if (!place.shape.compatible(inputs[i].shape))
      refuse(fmt::format("parameter {} is {}, in the model {}", i, to_text(place.shape),
                         to_text(inputs[i].shape)));
    sim::ProgramBuffer& buffer = dump.script.program.buffers.at(place.at.buffer);
    buffer.initialised = true;
    std::memcpy(buffer.value.bytes.data() + place.at.offset, inputs[i].bytes.data(), inputs[i].bytes.size());
  }
}

std::vector<Literal> results_of(const Dump& dump, const sim::ProgramResult& result) {
  std::vector<Literal> literals;
  for (const DumpPlace& place : dump.results) {
    Literal& literal = literals.emplace_back(Literal::zeros(place.shape));
    const std::vector<std::byte>& bytes = result.buffers.at(place.at.buffer).bytes;
    std::memcpy(literal.bytes.data(), bytes.data() + place.at.offset, literal.bytes.size());
  }
  return literals;
}

DumpCounts counts_of(const Script& script) {
  DumpCounts counts;
  for (const ScriptStep& step : script.steps) {
    counts.memory_kernels += step.kind == ScriptStepKind::kKernel && !step.product;
    counts.product_kernels += step.kind == ScriptStepKind::kKernel && step.product;
    counts.library_calls += step.kind == ScriptStepKind::kCall;
    counts.copies += step.kind == ScriptStepKind::kCopy;
    counts.memsets += step.kind == ScriptStepKind::kMemset;
  }
  return counts;
}

}  // namespace stitchwork
