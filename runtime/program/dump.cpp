#include "runtime/program/dump.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

#include "core/base/file.h"

namespace stitchwork {
namespace {

constexpr std::string_view kDumpSchema = "stitchwork.peer-dump/1";
constexpr const char* kDumpFile = "dump.json";

std::vector<DumpPlace> read_places(const JsonCursor& c, const ScriptNames& names) {
  std::vector<DumpPlace> places;
  c.each([&](const JsonCursor& one) {
    one.only({"at", "type", "shape", "layout"});
    DumpPlace place{.at = names.view(one.at("at")), .shape = {}};
    const auto type = dtype_from_name(one.at("type").text());
    if (!type || !is_executable(*type))
      one.at("type").fail(fmt::format("values of type '{}' are not computed", one.at("type").text()));
    place.shape = Shape::array(*type, {});
    one.at("shape").each([&](const JsonCursor& dim) { place.shape.dims.push_back(dim.integer()); });
    if (const auto layout = one.find("layout")) {
      layout->each([&](const JsonCursor& dim) { place.shape.minor_to_major.push_back(dim.integer()); });
      std::vector<std::int64_t> dims = place.shape.minor_to_major;
      std::ranges::sort(dims);
      std::vector<std::int64_t> all(place.shape.dims.size());
      std::iota(all.begin(), all.end(), 0);
      if (dims != all)
        layout->fail(fmt::format("a layout has the {} dimensions once each, minor to major", all.size()));
    }
    const auto bytes = static_cast<std::uint64_t>(place.shape.byte_size());
    if (bytes > names.room(place.at))
      one.fail(fmt::format("{} takes {} bytes: there are {} from there on", to_text(place.shape), bytes,
                           names.room(place.at)));
    places.push_back(std::move(place));
  });
  return places;
}

void add_arrays(const Literal& value, std::vector<const Literal*>& arrays) {
  if (!value.shape.is_tuple) arrays.push_back(&value);
  for (const Literal& element : value.elements) add_arrays(element, arrays);
}

/// Calls visit(where it is row-major, where in the shape's layout, how many bytes), of ever so many elements
/// that lie together in both.
template <typename Visit>
void for_each_element(const Shape& shape, Visit visit) {
  const std::vector<std::int64_t> order = physical_order(shape);
  const auto all = static_cast<std::size_t>(shape.byte_size());
  if (std::ranges::is_sorted(order)) return visit(std::size_t{0}, std::size_t{0}, all);
  const std::size_t rank = shape.dims.size();
  const std::size_t size = all / static_cast<std::size_t>(std::max<std::int64_t>(1, shape.elements_count()));
  std::vector<std::size_t> strides(rank);  // in memory
  std::size_t stride = size;
  for (std::size_t i = rank; i-- > 0;) {
    strides[static_cast<std::size_t>(order[i])] = stride;
    stride *= static_cast<std::size_t>(shape.dims[static_cast<std::size_t>(order[i])]);
  }
  std::vector<std::int64_t> index(rank, 0);
  for (std::size_t row_major = 0; row_major < all; row_major += size) {
    std::size_t physical = 0;
    for (std::size_t d = 0; d < rank; ++d) physical += strides[d] * static_cast<std::size_t>(index[d]);
    visit(row_major, physical, size);
    for (std::size_t d = rank; d-- > 0 && ++index[d] == shape.dims[d];) index[d] = 0;
  }
}

std::vector<DumpLoop> read_loops(const JsonCursor& c, std::size_t steps) {
  std::vector<DumpLoop> loops;
  std::vector<std::size_t> ends;  // of the trips that the next may be in, of the innermost last
  c.each([&](const JsonCursor& one) {
    one.only({"instruction", "first", "steps", "trips"});
    const std::int64_t first = one.at("first").integer(), length = one.at("steps").integer(),
                       trips = one.at("trips").integer();
    const auto all = static_cast<std::int64_t>(steps);
    if (first < 0 || length < 1 || trips < 1 || first > all || length > (all - first) / trips)
      one.fail(
          fmt::format("{} trips of {} steps from step {} on: the program has {}", trips, length, first, all));
    const DumpLoop& loop =
        loops.emplace_back(DumpLoop{one.at("instruction").text(), static_cast<std::size_t>(first),
                                    static_cast<std::size_t>(length), trips});
    const std::size_t end = loop.first + loop.steps * static_cast<std::size_t>(trips);
    if (loops.size() > 1 && loop.first < loops[loops.size() - 2].first)
      one.fail("loops are in the order of their steps");
    while (!ends.empty() && ends.back() <= loop.first) ends.pop_back();
    if (!ends.empty() && end > ends.back())
      one.fail(
          fmt::format("its trips end behind those of a loop around it, which end at step {}", ends.back()));
    ends.push_back(loop.first + loop.steps);
  });
  return loops;
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
             "optimised", "parameters", "results", "program", "loops"});
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
  if (const auto loops = root.find("loops")) dump.loops = read_loops(*loops, dump.script.steps.size());
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

std::vector<Shape> arrays_of(std::span<const Shape> shapes) {
  std::vector<Shape> arrays;
  for (const Shape& shape : shapes) {
    if (!shape.is_tuple) {
      arrays.push_back(shape);
      continue;
    }
    const std::vector<Shape> inner = arrays_of(shape.elements);
    arrays.insert(arrays.end(), inner.begin(), inner.end());
  }
  return arrays;
}

void set_inputs(Dump& dump, std::span<const Literal> inputs) {
  const auto refuse = [&](const std::string& what) {
    throw Error(dump.script.file, 0, 0, fmt::format("is no dump of the model: {}", what),
                "make the dump anew");
  };
  std::vector<const Literal*> arrays;
  for (const Literal& input : inputs) add_arrays(input, arrays);
  if (arrays.size() != dump.parameters.size())
    refuse(fmt::format("it has {} parameters, the model {}", dump.parameters.size(), arrays.size()));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const DumpPlace& place = dump.parameters[i];
    if (!place.shape.compatible(arrays[i]->shape))
      refuse(fmt::format("parameter {} is {}, in the model {}", i, to_text(place.shape),
                         to_text(arrays[i]->shape)));
    sim::ProgramBuffer& buffer = dump.script.program.buffers.at(place.at.buffer);
    buffer.initialised = true;
    for_each_element(place.shape, [&](std::size_t row_major, std::size_t physical, std::size_t bytes) {
      std::memcpy(buffer.value.bytes.data() + place.at.offset + physical, arrays[i]->bytes.data() + row_major,
                  bytes);
    });
  }
}

std::vector<Literal> results_of(const Dump& dump, const sim::ProgramResult& result) {
  std::vector<Literal> literals;
  for (const DumpPlace& place : dump.results) {
    Literal& literal =
        literals.emplace_back(Literal::zeros(Shape::array(place.shape.dtype, place.shape.dims)));
    const std::vector<std::byte>& bytes = result.buffers.at(place.at.buffer).bytes;
    for_each_element(place.shape, [&](std::size_t row_major, std::size_t physical, std::size_t size) {
      std::memcpy(literal.bytes.data() + row_major, bytes.data() + place.at.offset + physical, size);
    });
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
