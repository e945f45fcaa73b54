// The steps of a program of PTX.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/evaluate/evaluator.h"
#include "core/hlo/hlo_text.h"
#include "runtime/program/script.h"
#include "simulator/ptx_run.h"
#include "simulator/tensor_map.h"

namespace stitchwork {
namespace {

/// "grid": 4 or [4, 2, 1].
sim::Dim3 read_size(const JsonCursor& c) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](const JsonCursor& size) {
    sizes.push_back(size.integer());
    if (sizes.back() < 1 || sizes.back() > std::numeric_limits<std::int32_t>::max())
      size.fail(fmt::format("{} is no size", sizes.back()));
  };
  if (c.is_array())
    c.each(add);
  else
    add(c);
  if (sizes.empty() || sizes.size() > 3)
    c.fail("a size has one to three numbers", "write 160 or [160, 1, 1]");
  sizes.resize(3, 1);
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(sizes[i]); };
  return {at(0), at(1), at(2)};
}

void align(std::vector<std::byte>& bytes, std::size_t to) { bytes.resize((bytes.size() + to - 1) / to * to); }

class ArgumentReader {
 public:
  ArgumentReader(const ScriptNames& names, Script& script) : names_(names), script_(script) {}

  sim::ProgramArgument read(const JsonCursor& c) {
    if (c.is_object() && c.find("tensor_map")) {
      c.only({"tensor_map"});
      return read_tensor_map(c.at("tensor_map"), names_);
    }
    if (c.is_object()) return structure(c);
    const std::string text = c.text();
    const bool file = text.ends_with(".npy");
    if (!file && text.find(':') == std::string::npos) return sim::ProgramArgument::pointer(names_.view(c));
    sim::ArgumentSpec spec;
    try {
      const bool relative = file && std::filesystem::path(text).is_relative();
      spec = sim::parse_argument(relative ? (std::filesystem::path(names_.folder) / text).string() : text);
    } catch (const Error& error) {
      c.fail(
          error.file().empty() ? error.message() : fmt::format("{}: {}", error.file(), error.message()),
          "an argument is a place in a buffer (x, x+256), a scalar (i32:5), buf:f32:1024:zero or FILE.npy");
    }
    if (!spec.buffer) return sim::ProgramArgument::scalar(spec.scalar);
    script_.program.buffers.push_back({text, std::move(*spec.buffer)});
    return sim::ProgramArgument::pointer({script_.program.buffers.size() - 1, 0});
  }

 private:
  /// A struct by value, its members where C puts them.
  sim::ProgramArgument structure(const JsonCursor& c) {
    c.only({"struct", "bytes"});
    sim::ProgramArgument whole;
    std::size_t alignment = 1;
    c.at("struct").each([&](const JsonCursor& member) {
      sim::ProgramArgument one = read(member);
      if (one.bytes.empty()) return;
      // Scalars and pointers are as large as they are aligned; a struct within is aligned to 8 bytes at most,
      // a tensor map to 64.
      const bool map = member.is_object() && member.find("tensor_map");
      const std::size_t to = std::min<std::size_t>(map ? sim::TensorMap::kAlignment : 8,
                                                   one.bytes.size() & (~one.bytes.size() + 1));
      alignment = std::max(alignment, to);
      align(whole.bytes, to);
      for (sim::ProgramArgument::Pointer pointer : one.pointers) {
        pointer.at += whole.bytes.size();
        whole.pointers.push_back(pointer);
      }
      whole.bytes.insert(whole.bytes.end(), one.bytes.begin(), one.bytes.end());
    });
    align(whole.bytes, alignment);
    const auto bytes = c.find("bytes");
    if (!bytes) return whole;
    constexpr std::int64_t kMostParameters = 32764;  // of a kernel, in bytes: PTX ISA, .param space
    if (bytes->integer() < static_cast<std::int64_t>(whole.bytes.size()) ||
        bytes->integer() > kMostParameters)
      bytes->fail(fmt::format("the members take {} bytes", whole.bytes.size()));
    whole.bytes.resize(static_cast<std::size_t>(bytes->integer()));
    return whole;
  }

  const ScriptNames& names_;
  Script& script_;
};

/// The module that has the entry, by the script's name of it where there are several.
std::size_t module_of(const JsonCursor& step, const std::string& entry, const ScriptNames& names,
                      const Script& script) {
  const auto named = step.find("module");
  std::vector<std::size_t> found;
  std::vector<std::string> entries;
  for (std::size_t m = 0; m < names.modules.size(); ++m) {
    if (named && names.modules[m] != named->text()) continue;
    if (script.program.modules[m]->kernel(entry) != nullptr) found.push_back(m);
    for (const ptx::KernelInfo& kernel : script.program.modules[m]->kernels()) entries.push_back(kernel.name);
  }
  if (named && std::ranges::find(names.modules, named->text()) == names.modules.end())
    named->fail(fmt::format("'{}' is none of the modules", named->text()),
                fmt::format("modules: {}", fmt::join(names.modules, ", ")));
  if (found.empty())
    step.at("kernel").fail(fmt::format("no module has a kernel '{}'", entry),
                           entries.empty() ? "list the PTX files under 'modules'"
                                           : fmt::format("there are {}", fmt::join(entries, ", ")));
  if (found.size() > 1)
    step.at("kernel").fail(
        fmt::format("'{}' is in {} and {}", entry, names.modules[found[0]], names.modules[found[1]]),
        "say which by 'module'");
  return found[0];
}

void require_arguments(const JsonCursor& step, const ptx::KernelInfo& kernel,
                       const std::vector<sim::ProgramArgument>& arguments) {
  if (arguments.size() != kernel.parameters.size())
    step.fail(fmt::format("kernel {} takes {} arguments, {} are given", kernel.name, kernel.parameters.size(),
                          arguments.size()),
              "see stitchwork ptx info FILE");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].bytes.size() != kernel.parameters[i].bytes)
      step.fail(fmt::format("argument {} has {} bytes, {} of {} takes {}", i, arguments[i].bytes.size(),
                            kernel.parameters[i].name, kernel.name, kernel.parameters[i].bytes),
                "see stitchwork ptx info FILE");
}

sim::KernelStep read_kernel(const JsonCursor& c, const ScriptNames& names, Script& script, ScriptStep& step) {
  c.only({"kernel", "module", "grid", "block", "cluster", "non_portable_cluster", "shared_bytes", "registers",
          "arguments", "name", "instruction", "ops", "product"});
  sim::KernelStep kernel;
  kernel.launch.kernel = c.at("kernel").text();
  const std::size_t module = module_of(c, kernel.launch.kernel, names, script);
  kernel.module = script.program.modules[module].get();
  step.module = names.modules[module];
  if (const auto product = c.find("product")) step.product = product->boolean();
  kernel.launch.grid = read_size(c.at("grid"));
  kernel.launch.block = read_size(c.at("block"));
  if (const auto cluster = c.find("cluster")) kernel.launch.cluster = read_size(*cluster);
  if (const auto large = c.find("non_portable_cluster"))
    kernel.launch.non_portable_cluster = large->boolean();
  const auto at_most = [&](const char* key, std::int64_t most) -> std::int64_t {
    const auto given = c.find(key);
    if (!given) return 0;
    if (given->integer() < 0 || given->integer() > most)
      given->fail(fmt::format("is not between 0 and {}", most));
    return given->integer();
  };
  constexpr std::int64_t kMostShared = 1 << 20, kMostRegisters = 255;  // as the options of ptx run
  kernel.launch.dynamic_shared_bytes = static_cast<std::uint32_t>(at_most("shared_bytes", kMostShared));
  kernel.registers = static_cast<int>(at_most("registers", kMostRegisters));
  ArgumentReader reader(names, script);
  c.at("arguments").each([&](const JsonCursor& argument) {
    kernel.arguments.push_back(reader.read(argument));
  });
  require_arguments(c, *kernel.module->kernel(kernel.launch.kernel), kernel.arguments);
  return kernel;
}

/// "bytes" of a memset or copy: all that is left of the smaller buffer, if it is not said.
std::uint64_t read_bytes(const JsonCursor& c, std::uint64_t room) {
  const auto bytes = c.find("bytes");
  if (!bytes) return room;
  if (bytes->integer() < 0 || static_cast<std::uint64_t>(bytes->integer()) > room)
    bytes->fail(fmt::format("{} bytes do not fit: there are {} from there on", bytes->integer(), room));
  return static_cast<std::uint64_t>(bytes->integer());
}

sim::MemsetStep read_memset(const JsonCursor& c, const ScriptNames& names) {
  c.only({"memset", "bytes", "value", "name", "instruction", "ops"});
  sim::MemsetStep set;
  set.to = names.view(c.at("memset"));
  set.bytes = read_bytes(c, names.room(set.to));
  if (const auto value = c.find("value")) {
    if (value->integer() < 0 || value->integer() > 255) value->fail("a memset's value is a byte, 0 to 255");
    set.value = static_cast<std::byte>(value->integer());
  }
  return set;
}

sim::CopyStep read_copy(const JsonCursor& c, const ScriptNames& names) {
  c.only({"copy", "from", "bytes", "name", "instruction", "ops"});
  sim::CopyStep copy;
  copy.to = names.view(c.at("copy"));
  copy.from = names.view(c.at("from"));
  copy.bytes = read_bytes(c, std::min(names.room(copy.to), names.room(copy.from)));
  if (copy.to.buffer == copy.from.buffer && copy.to.offset < copy.from.offset + copy.bytes &&
      copy.from.offset < copy.to.offset + copy.bytes && copy.bytes > 0)
    c.fail("source and destination overlap");
  return copy;
}

/// The parameters of a module by number, as operands have them; its results.
std::pair<std::vector<Shape>, std::vector<Shape>> shapes_of(const Graph& graph) {
  const Computation& entry = graph.entry_computation();
  std::vector<Shape> parameters;
  for (const NodeId id : entry.parameters) parameters.push_back(entry.node(id).shape);
  const Shape& root = entry.node(entry.root).shape;
  return {parameters, root.is_tuple ? root.elements : std::vector<Shape>{root}};
}

std::vector<sim::CallStep::Range> read_ranges(const JsonCursor& c, const ScriptNames& names,
                                              const std::vector<Shape>& shapes) {
  std::vector<sim::CallStep::Range> ranges;
  c.each([&](const JsonCursor& place) {
    if (ranges.size() == shapes.size())
      c.fail(fmt::format("has more places than the call's {}", shapes.size()));
    const sim::BufferView view = names.view(place);
    const auto bytes = static_cast<std::uint64_t>(shapes[ranges.size()].byte_size());
    if (bytes > names.room(view))
      place.fail(fmt::format("{} takes {} bytes: there are {} from there on", to_text(shapes[ranges.size()]),
                             bytes, names.room(view)));
    ranges.push_back({view, bytes});
  });
  if (ranges.size() != shapes.size())
    c.fail(fmt::format("has {} of the call's {} places", ranges.size(), shapes.size()));
  return ranges;
}

sim::CallStep read_call(const JsonCursor& c, const ScriptNames& names, ScriptStep& step) {
  c.only({"call", "computes", "operands", "results", "name", "instruction", "ops"});
  step.call = c.at("call").text();
  const auto text = c.find("computes");
  if (!text)
    c.fail(fmt::format("nobody here knows what {} computes", step.call),
           "say it as HLO text under 'computes': operands are its parameters, results its root");
  try {
    step.computes = std::make_shared<const Graph>(parse_hlo(text->text(), "computes"));
  } catch (const Error& error) {
    text->fail(fmt::format("line {}: {}", error.line(), error.message()), error.hint());
  }
  const auto [parameters, results] = shapes_of(*step.computes);
  sim::CallStep call;
  call.operands = read_ranges(c.at("operands"), names, parameters);
  call.results = read_ranges(c.at("results"), names, results);
  for (const auto* ranges : {&call.operands, &call.results})
    for (const sim::CallStep::Range& range : *ranges) step.bytes += static_cast<std::int64_t>(range.bytes);
  call.compute = [graph = step.computes,
                  parameters = parameters](std::vector<std::vector<std::byte>> operands) {
    std::vector<Literal> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i)
      inputs.push_back({parameters[i], std::move(operands[i]), {}});
    std::vector<std::vector<std::byte>> bytes;
    for (Literal& result : evaluate(*graph, inputs)) bytes.push_back(std::move(result.bytes));
    return bytes;
  };
  return call;
}

}  // namespace

void read_step(const JsonCursor& c, const ScriptNames& names, Script& script) {
  ScriptStep step;
  sim::ProgramStep program;
  if (c.find("kernel")) {
    sim::KernelStep kernel = read_kernel(c, names, script, step);
    program.name = kernel.launch.kernel;
    program.what = std::move(kernel);
  } else if (c.find("memset")) {
    step.kind = ScriptStepKind::kMemset;
    const sim::MemsetStep set = read_memset(c, names);
    step.bytes = static_cast<std::int64_t>(set.bytes);
    program.name = "memset";
    program.what = set;
  } else if (c.find("copy")) {
    step.kind = ScriptStepKind::kCopy;
    const sim::CopyStep copy = read_copy(c, names);
    step.bytes = 2 * static_cast<std::int64_t>(copy.bytes);
    program.name = "copy";
    program.what = copy;
  } else if (c.find("call")) {
    step.kind = ScriptStepKind::kCall;
    program.what = read_call(c, names, step);
    program.name = step.call;
  } else {
    c.fail("is no step", "a step has one of kernel, memset, copy and call");
  }
  if (const auto given = c.find("name")) program.name = given->text();
  if (const auto instruction = c.find("instruction")) step.instruction = instruction->text();
  if (const auto ops = c.find("ops")) ops->each([&](const JsonCursor& op) { step.ops.push_back(op.text()); });
  script.program.steps.push_back(std::move(program));
  script.steps.push_back(std::move(step));
}

}  // namespace stitchwork
