#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analysis/plan_json.h"
#include "core/error.h"

namespace stitchwork {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "stitchwork.plan/1";

/// A value and where it is: every complaint names file and JSON path.
class Cursor {
 public:
  Cursor(const Json& json, std::string path, const std::string& file)
      : json_(&json), path_(std::move(path)), file_(&file) {}

  [[noreturn]] void fail(const std::string& what,
                         std::string hint = "see docs/schema/plan.schema.json") const {
    throw Error(*file_, 0, 0, fmt::format("{}: {}", path_.empty() ? "the document" : path_, what),
                std::move(hint));
  }

  Cursor at(const std::string& key) const {
    require(json_->is_object(), "an object");
    const auto found = json_->find(key);
    if (found == json_->end()) fail(fmt::format("'{}' is missing", key));
    return Cursor(*found, path_.empty() ? key : path_ + "." + key, *file_);
  }
  std::optional<Cursor> find(const std::string& key) const {
    require(json_->is_object(), "an object");
    if (!json_->contains(key)) return std::nullopt;
    return at(key);
  }

  std::string text() const {
    require(json_->is_string(), "a string");
    return json_->get<std::string>();
  }
  double number() const {
    require(json_->is_number(), "a number");
    return json_->get<double>();
  }
  bool boolean() const {
    require(json_->is_boolean(), "true or false");
    return json_->get<bool>();
  }
  std::int64_t integer() const {
    require(json_->is_number_integer(), "an integer");
    if (json_->is_number_unsigned() &&
        json_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail("the integer is too large");
    return json_->get<std::int64_t>();
  }
  int small() const {
    const std::int64_t value = integer();
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      fail(fmt::format("{} does not fit 32 bits", value));
    return static_cast<int>(value);
  }
  bool is_null() const { return json_->is_null(); }

  template <typename Visit>
  void each(Visit visit) const {
    require(json_->is_array(), "an array");
    for (std::size_t i = 0; i < json_->size(); ++i)
      visit(Cursor((*json_)[i], fmt::format("{}[{}]", path_, i), *file_));
  }
  template <typename Visit>
  void each_member(Visit visit) const {
    require(json_->is_object(), "an object");
    for (const auto& [key, value] : json_->items()) visit(key, Cursor(value, path_ + "." + key, *file_));
  }

  /// The enumerator whose name() is the text.
  template <typename Enum, std::size_t N>
  Enum one_of(const std::array<Enum, N>& values) const {
    const std::string given = text();
    std::string known;
    for (Enum value : values) {
      if (name(value) == given) return value;
      known += (known.empty() ? "" : ", ") + std::string(name(value));
    }
    fail(fmt::format("'{}' is none of {}", given, known));
  }

 private:
  void require(bool ok, std::string_view wanted) const {
    if (!ok) fail(fmt::format("expected {}, found {}", wanted, json_->type_name()));
  }

  const Json* json_;
  std::string path_;
  const std::string* file_;
};

class Reader {
 public:
  explicit Reader(const Graph& graph) : computation_(graph.entry_computation()), graph_(graph) {
    for (const Node& node : computation_.nodes) ids_.emplace(node.name, node.id);
  }

  FusionPlan plan(const Cursor& c) {
    FusionPlan plan;
    plan.model_path = c.at("model").at("path").text();
    plan.model_sha256 = c.at("model").at("sha256").text();
    plan.device = c.at("device").text();
    plan.planner = c.at("planner").text();
    c.at("options").each_member(
        [&](const std::string& knob, const Cursor& v) { plan.options[knob] = v.text(); });
    c.at("kernels").each([&](const Cursor& k) { kernel(k, plan); });
    c.at("steps").each([&](const Cursor& s) { plan.steps.push_back(step(s)); });
    const Cursor counts = c.at("counts");
    plan.counts.memory_kernels = counts.at("memory_kernels").small();
    plan.counts.library_calls = counts.at("library_calls").small();
    plan.counts.copies = counts.at("copies").small();
    plan.counts.memsets = counts.at("memsets").small();
    plan.counts.dynamic_memory_kernels = counts.at("dynamic_memory_kernels").integer();
    plan.predicted_us = c.at("predicted_us").number();
    if (const auto decisions = c.find("decisions"))
      decisions->each([&](const Cursor& d) {
        plan.decisions.push_back({d.at("step").text(), d.at("subject").text(), d.at("object").text(),
                                  Verdict{d.at("ok").boolean(), d.at("rule").text(), d.at("why").text()}});
      });
    return plan;
  }

 private:
  NodeId op(const Cursor& c, const std::string& op_name) const {
    const auto found = ids_.find(op_name);
    if (found == ids_.end())
      c.fail(fmt::format("'{}' is no op of {}", op_name, graph_.name), "ops are written by their HLO names");
    return found->second;
  }
  NodeId op(const Cursor& c) const { return op(c, c.text()); }

  std::vector<NodeId> ops(const Cursor& c) const {
    std::vector<NodeId> list;
    c.each([&](const Cursor& item) { list.push_back(op(item)); });
    return list;
  }

  PlanStep step(const Cursor& c) const {
    PlanStep step;
    step.kind = c.at("kind").one_of(
        std::array{StepKind::kKernel, StepKind::kLibrary, StepKind::kCopy, StepKind::kMemset});
    step.id = c.at("id").text();
    if (step.kind == StepKind::kKernel) {
      const auto found = kernels_.find(step.id);
      if (found == kernels_.end()) c.at("id").fail(fmt::format("there is no kernel '{}'", step.id));
      step.kernel = found->second;
    } else {
      step.nodes = ops(c.at("ops"));
    }
    step.stream = c.at("stream").small();
    if (const auto waits = c.find("waits"))
      waits->each([&](const Cursor& w) { step.waits.push_back(w.small()); });
    step.predicted_us = c.at("predicted_us").number();
    return step;
  }

  static ThreadMapping mapping(const Cursor& c) {
    ThreadMapping m;
    m.kind = c.at("kind").one_of(std::array{MappingKind::kElementwise, MappingKind::kRowPack,
                                            MappingKind::kRowSplit, MappingKind::kColumn,
                                            MappingKind::kRowSerial});
    m.rows = c.at("rows").integer();
    m.cols = c.at("cols").integer();
    m.vector = c.at("vector").small();
    m.unroll = c.at("unroll").small();
    m.threads_per_row = c.at("threads_per_row").small();
    m.rows_per_block = c.at("rows_per_block").integer();
    m.tasks = c.at("tasks").integer();
    m.tasks_per_block = c.at("tasks_per_block").integer();
    m.split = c.at("split").small();
    m.combine = c.at("combine").one_of(std::array{Combine::kNone, Combine::kPartials, Combine::kAtomic});
    m.blocks = c.at("blocks").integer();
    return m;
  }

  Group group(const Cursor& c) const {
    Group group;
    group.dominant = op(c.at("dominant"));
    group.sub_dominants = ops(c.at("sub_dominants"));
    group.ops = ops(c.at("ops"));
    group.mapping = mapping(c.at("mapping"));
    group.lane = c.at("lane").small();
    group.first_block = c.at("first_block").integer();
    return group;
  }

  std::vector<MemorySlot> slots(const Cursor& c) const {
    std::vector<MemorySlot> list;
    c.each([&](const Cursor& item) {
      const Cursor of = item.at("op");
      list.push_back(
          {of.is_null() ? kNoNode : op(of), item.at("offset").integer(), item.at("bytes").integer()});
    });
    return list;
  }

  void kernel(const Cursor& c, FusionPlan& plan) {
    KernelPlan kernel;
    kernel.id = c.at("id").text();
    if (!kernels_.emplace(kernel.id, static_cast<int>(plan.kernels.size())).second)
      c.at("id").fail(fmt::format("there are two kernels '{}'", kernel.id));
    kernel.name = c.at("name").text();
    kernel.ops = ops(c.at("ops"));
    kernel.outputs = ops(c.at("outputs"));
    c.at("groups").each([&](const Cursor& g) { kernel.groups.push_back(group(g)); });
    c.at("schemes").each_member([&](const std::string& key, const Cursor& value) {
      kernel.schemes[op(value, key)] = value.one_of(std::array{
          Scheme::kIndependent, Scheme::kLocal, Scheme::kRegional, Scheme::kGlobal, Scheme::kRecomputed});
    });
    c.at("levels").each_member(
        [&](const std::string& key, const Cursor& value) { kernel.levels[op(value, key)] = value.small(); });
    kernel.shared = slots(c.at("shared"));
    kernel.scratch = slots(c.at("scratch"));
    KernelLaunch& launch = kernel.launch;
    launch.grid = c.at("grid").integer();
    launch.block = c.at("block").small();
    launch.shared_bytes = c.at("shared_bytes").integer();
    launch.scratch_bytes = c.at("scratch_bytes").integer();
    launch.register_bound = c.at("register_bound").small();
    launch.blocks_per_sm = c.at("blocks_per_sm").small();
    launch.blocks_per_wave = c.at("blocks_per_wave").integer();
    launch.grid_barriers = c.at("grid_barriers").small();
    kernel.predicted_us = c.at("predicted_us").number();
    plan.kernels.push_back(std::move(kernel));
  }

  const Computation& computation_;
  const Graph& graph_;
  std::unordered_map<std::string, NodeId> ids_;
  std::unordered_map<std::string, int> kernels_;
};

Json parse(const std::string& text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    // The position counts bytes from 1.
    const std::size_t end = std::min(e.byte == 0 ? 0 : e.byte - 1, text.size());
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    const std::size_t start = text.rfind('\n', end == 0 ? 0 : end - 1);
    const std::size_t column = line == 0 || start == std::string::npos ? end + 1 : end - start;
    throw Error(file, static_cast<int>(line) + 1, static_cast<int>(column), "not JSON",
                "a plan is what `stitchwork plan -o` writes");
  }
}

Cursor open(const Json& json, const std::string& file) {
  Cursor cursor(json, "", file);
  const std::string schema = cursor.at("schema").text();
  if (schema != kSchema)
    cursor.at("schema").fail(fmt::format("'{}' is not {}", schema, kSchema),
                             "a plan is what `stitchwork plan -o` writes");
  return cursor;
}

}  // namespace

FusionPlan plan_from_json(const Graph& graph, const std::string& text, const std::string& file) {
  const Json json = parse(text, file);
  return Reader(graph).plan(open(json, file));
}

PlanHeader read_plan_header(const std::string& text, const std::string& file) {
  const Json json = parse(text, file);
  const Cursor model = open(json, file).at("model");
  return {model.at("path").text(), model.at("sha256").text()};
}

}  // namespace stitchwork
