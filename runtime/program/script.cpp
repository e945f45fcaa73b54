#include "runtime/program/script.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/base/file.h"
#include "core/base/suggest.h"
#include "core/hlo/npy.h"
#include "simulator/ptx_run.h"
#include "simulator/tensor_map.h"

namespace stitchwork {
namespace {

constexpr std::string_view kProgramSchema = "stitchwork.ptx-program/1";
/// No buffer of a device is larger. A choice, not measured: 64 GiB.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 36;

std::string in_folder(const std::string& folder, const std::string& file) {
  return std::filesystem::path(file).is_absolute() ? file : (std::filesystem::path(folder) / file).string();
}

/// Names that no other spelling of an argument can be taken for.
void require_name(const JsonCursor& at, const std::string& name) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
      !std::ranges::all_of(name, good) || name.ends_with(".npy"))
    at.fail(fmt::format("'{}' is no name of a buffer", name),
            "letters, digits, _ and ., not a digit first, not ending in .npy");
}

std::vector<std::int64_t> read_shape(const JsonCursor& c) {
  std::vector<std::int64_t> dims;
  c.each([&](const JsonCursor& dim) {
    dims.push_back(dim.integer());
    if (dims.back() < 0 || dims.back() > kMostBytes) dim.fail(fmt::format("{} is no extent", dims.back()));
  });
  return dims;
}

void fill(const JsonCursor& c, Literal& value) {
  if (c.is("zero")) return;
  c.only({"seed", "low", "high", "constant", "values"});
  if (const auto constant = c.find("constant")) {
    for (std::int64_t i = 0; i < value.shape.elements_count(); ++i) value.set_double(i, constant->number());
    return;
  }
  if (const auto values = c.find("values")) {
    std::int64_t i = 0;
    values->each([&](const JsonCursor& one) {
      if (i >= value.shape.elements_count())
        values->fail(fmt::format("has more than the buffer's {} elements", value.shape.elements_count()));
      if (is_floating(value.shape.dtype))
        value.set_double(i++, one.number());
      else
        value.set_int(i++, one.integer());
    });
    if (i != value.shape.elements_count())
      values->fail(fmt::format("has {} of the buffer's {} elements", i, value.shape.elements_count()));
    return;
  }
  const std::int64_t seed = c.at("seed").integer();
  if (seed < 0) c.at("seed").fail("a seed is not negative");
  if (!c.find("low") && !c.find("high")) return sim::fill_random(value, static_cast<std::uint64_t>(seed));
  const double low = c.at("low").number(), high = c.at("high").number();
  if (!(low < high)) c.fail(fmt::format("low {} is not below high {}", low, high));
  sim::fill_uniform(value, static_cast<std::uint64_t>(seed), low, high);
}

/// An npy file that the document names at `c`: what is wrong with it is told of that place.
Literal read_array(const JsonCursor& c, const std::string& folder) {
  try {
    return read_npy(in_folder(folder, c.text()));
  } catch (const Error& error) {
    c.fail(fmt::format("{}: {}", error.file(), error.message()), error.hint());
  }
}

/// Room for the maps of a buffer, which may be of buffers that come later in the document.
sim::ProgramBuffer room_of_maps(const std::string& name, const JsonCursor& c, const JsonCursor& maps) {
  for (const char* key : {"type", "shape", "bytes", "npy", "fill"})
    if (c.find(key)) c.fail(fmt::format("has both tensor_maps and {}", key));
  std::int64_t count = 0;
  maps.each([&](const JsonCursor&) { ++count; });
  if (count == 0) maps.fail("there are none");
  return {.name = name,
          .value = Literal::zeros(
              Shape::array(DType::kU8, {count * static_cast<std::int64_t>(sim::TensorMap::kBytes)}))};
}

void fill_maps(const JsonCursor& maps, const ScriptNames& names, sim::ProgramBuffer& buffer) {
  std::size_t at = 0;
  maps.each([&](const JsonCursor& map) {
    const sim::ProgramArgument one = read_tensor_map(map, names);
    std::ranges::copy(one.bytes, buffer.value.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    for (sim::ViewPointer pointer : one.pointers) {
      pointer.at += at;
      buffer.pointers.push_back(pointer);
    }
    at += one.bytes.size();
  });
}

sim::ProgramBuffer read_buffer(const std::string& name, const JsonCursor& c, const std::string& folder) {
  if (const auto maps = c.find("tensor_maps")) return room_of_maps(name, c, *maps);
  sim::ProgramBuffer buffer{.name = name, .value = {}, .initialised = c.find("fill") || c.find("npy")};
  if (const auto npy = c.find("npy")) {
    if (c.find("fill") || c.find("type") || c.find("shape") || c.find("bytes"))
      c.fail("an array from a file has its own type, shape and values",
             "leave out fill, type, shape and bytes");
    buffer.value = read_array(*npy, folder);
    return buffer;
  }
  Shape shape = Shape::array(DType::kU8, {});
  if (const auto bytes = c.find("bytes")) {
    if (c.find("type") || c.find("shape"))
      c.fail("has both bytes and type or shape", "bytes is for raw memory");
    shape.dims = {bytes->integer()};
    if (shape.dims[0] <= 0) bytes->fail("is not positive");
  } else {
    const auto type = sim::buffer_type(c.at("type").text());
    if (!type)
      c.at("type").fail(fmt::format("unknown type '{}'", c.at("type").text()),
                        "known: f32, f64, f16, bf16, i8 to i64, u8 to u64");
    shape = Shape::array(*type, read_shape(c.at("shape")));
  }
  double bytes = byte_size(shape.dtype);
  for (const std::int64_t dim : shape.dims) bytes *= static_cast<double>(dim);
  if (bytes > static_cast<double>(kMostBytes)) c.fail("takes more than 64 GiB");
  buffer.value = Literal::zeros(shape);
  if (const auto values = c.find("fill")) fill(*values, buffer.value);
  return buffer;
}

void read_checks(const JsonCursor& c, std::size_t buffer, const std::string& folder, Script& script) {
  if (const auto save = c.find("save")) {
    if (!save->text().ends_with(".npy")) save->fail(fmt::format("'{}' does not end in .npy", save->text()));
    script.saves.emplace_back(buffer, save->text());
  }
  const auto expect = c.find("expect");
  if (!expect) return;
  expect->only({"npy", "rtol", "atol"});
  Expectation expectation{
      .buffer = buffer, .file = in_folder(folder, expect->at("npy").text()), .rtol = {}, .atol = {}};
  const auto tolerance = [&](const char* key) -> std::optional<double> {
    const auto given = expect->find(key);
    if (!given) return std::nullopt;
    if (!(given->number() >= 0)) given->fail("a tolerance is not negative");
    return given->number();
  };
  expectation.rtol = tolerance("rtol");
  expectation.atol = tolerance("atol");
  const Literal wanted = read_array(expect->at("npy"), folder);
  const Literal& value = script.program.buffers[buffer].value;
  if (wanted.shape.elements_count() != value.shape.elements_count() ||
      is_floating(wanted.shape.dtype) != is_floating(value.shape.dtype))
    expect->fail(
        fmt::format("{} is {}, the buffer {}", expectation.file, to_text(wanted.shape), to_text(value.shape)),
        "expect as many elements, floats for floats and integers for integers");
  script.expected.push_back(std::move(expectation));
}

}  // namespace

std::string_view name(ScriptStepKind kind) {
  switch (kind) {
    case ScriptStepKind::kKernel:
      return "kernel";
    case ScriptStepKind::kMemset:
      return "memset";
    case ScriptStepKind::kCopy:
      return "copy";
    case ScriptStepKind::kCall:
      break;
  }
  return "call";
}

sim::BufferView ScriptNames::view(const JsonCursor& c) const {
  const std::string text = c.text();
  const std::size_t plus = text.find('+');
  const std::string name = text.substr(0, plus);
  const auto found = std::ranges::find(program->buffers, name, &sim::ProgramBuffer::name);
  if (found == program->buffers.end()) {
    std::vector<std::string_view> known;
    for (const sim::ProgramBuffer& buffer : program->buffers) known.push_back(buffer.name);
    const std::string_view near = closest(name, known);
    c.fail(fmt::format("there is no buffer '{}'", name),
           near.empty() ? "a place is the name of one of 'buffers', or name+BYTES"
                        : fmt::format("did you mean {}?", near));
  }
  sim::BufferView view{static_cast<std::size_t>(found - program->buffers.begin()), 0};
  if (plus == std::string::npos) return view;
  const std::string digits = text.substr(plus + 1);
  constexpr std::size_t kMostDigits = 18;
  if (digits.empty() || digits.size() > kMostDigits ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    c.fail(fmt::format("'{}' is no place in a buffer", text), "write name or name+BYTES, as in x+256");
  view.offset = std::stoull(digits);
  if (view.offset > found->value.bytes.size())
    c.fail(fmt::format("{} lies past the {} bytes of {}", text, found->value.bytes.size(), name));
  return view;
}

std::uint64_t ScriptNames::room(const sim::BufferView& view) const {
  return program->buffers.at(view.buffer).value.bytes.size() - view.offset;
}

Script script_of(const JsonCursor& c, const std::string& folder) {
  Script script;
  ScriptNames names{.folder = folder, .modules = {}, .program = &script.program};
  std::vector<ptx::Source> sources;
  c.at("modules").each([&](const JsonCursor& module) {
    names.modules.push_back(module.text());
    const std::string path = in_folder(folder, module.text());
    try {
      sources.push_back({read_file(path), path});
    } catch (const Error& error) {
      module.fail(fmt::format("{}: {}", path, error.message()), error.hint());
    }
  });
  for (ptx::Module& module : ptx::parse_program(sources))
    script.program.modules.push_back(std::make_unique<const ptx::Module>(std::move(module)));
  c.at("buffers").each_member([&](const std::string& name, const JsonCursor& buffer) {
    require_name(buffer, name);
    buffer.only({"type", "shape", "bytes", "npy", "fill", "tensor_maps", "save", "expect"});
    script.program.buffers.push_back(read_buffer(name, buffer, folder));
    read_checks(buffer, script.program.buffers.size() - 1, folder, script);
  });
  std::size_t number = 0;
  c.at("buffers").each_member([&](const std::string&, const JsonCursor& buffer) {
    sim::ProgramBuffer& to = script.program.buffers[number++];
    if (const auto maps = buffer.find("tensor_maps")) fill_maps(*maps, names, to);
  });
  c.at("steps").each([&](const JsonCursor& step) { read_step(step, names, script); });
  if (script.program.steps.empty()) c.at("steps").fail("there are none");
  return script;
}

Script read_script(const std::string& file) {
  const JsonDocument document(read_file(file), file, kProgramSchema,
                              "a program of PTX: see docs/ptx_programs.md",
                              "docs/schema/ptx-program.schema.json");
  const JsonCursor root = document.root();
  root.only({"schema", "title", "device", "cache", "sanitize", "modules", "buffers", "steps"});
  std::string folder = std::filesystem::path(file).parent_path().string();
  if (folder.empty()) folder = ".";
  Script script = script_of(root, folder);
  script.file = file;
  if (const auto title = root.find("title")) title->text();
  if (const auto device = root.find("device")) script.device = device->text();
  if (const auto cache = root.find("cache")) {
    script.cache = cache->text();
    if (script.cache != "cold" && script.cache != "warm")
      cache->fail(fmt::format("'{}' is no state of the cache", script.cache), "known: cold, warm");
  }
  if (const auto sanitize = root.find("sanitize")) {
    script.sanitize = sanitize->text();
    try {
      sim::parse_sanitizers(script.sanitize);
    } catch (const Error& error) {
      sanitize->fail(error.message(), error.hint());
    }
  }
  return script;
}

}  // namespace stitchwork
