// Traces of JAX and PyTorch: Chrome's Trace Event Format, of which the two fill in the arguments differently.
#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "experiments/profile/profile.h"

namespace stitchwork {
namespace {

/// What is kept of one event until all names of processes and threads are known: they may come last.
struct RawEvent {
  std::string name, phase, category;
  std::string process, thread;  ///< numbers, or PyTorch's own words
  double start_us = 0, us = 0;
  bool has_us = false;
  std::map<std::string, std::string> arguments;  ///< those of kArguments; lists as "[1,2,3]"
};

/// Arguments that are looked at.
constexpr auto kArguments = std::to_array<std::string_view>(
    {"hlo_module", "hlo_op", "tf_op", "name", "kernel_details", "memcpy_details", "memset_details",
     "External id", "external id", "stream", "device", "grid", "block", "registers per thread"});

/// Fills RawEvents from the parser's calls, so that no tree of a large trace is built.
class TraceHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<RawEvent> events;
  std::map<std::string, std::string> processes;                        ///< names by number
  std::map<std::pair<std::string, std::string>, std::string> threads;  ///< by process and thread
  std::unordered_map<std::string, std::string> host_ops;               ///< PyTorch's, by external id
  std::string gpu;                                                     ///< name of PyTorch's first device
  std::size_t seen = 0, host = 0;
  bool is_trace = false, ours = false;
  std::size_t error_at = 0;  ///< byte

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t v) override {
    return number(static_cast<double>(v), std::to_string(v));
  }
  bool number_unsigned(number_unsigned_t v) override {
    return number(static_cast<double>(v), std::to_string(v));
  }
  bool number_float(number_float_t v, const string_t& text) override { return number(v, text); }
  bool string(string_t& text) override {
    switch (top()) {
      case Place::kEvent:
        event_text(text);
        break;
      case Place::kArguments:
        argument(text);
        break;
      case Place::kGpu:
        if (key_ == "name" && gpu.empty()) gpu = text;
        break;
      default:
        break;
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& text) override {
    key_ = text;
    if (top() == Place::kOurs && key_ == "total_us") ours = true;
    return true;
  }
  bool start_object(std::size_t) override {
    Place next = Place::kOther;
    if (stack_.empty())
      next = Place::kRoot;
    else if (top() == Place::kEvents)
      next = Place::kEvent, event_ = {};
    else if (top() == Place::kEvent && key_ == "args")
      next = Place::kArguments;
    else if (top() == Place::kGpus)
      next = Place::kGpu;
    else if (top() == Place::kRoot && key_ == "otherData")
      next = Place::kOurs;
    stack_.push_back(next);
    return true;
  }
  bool end_object() override {
    if (top() == Place::kEvent) keep();
    stack_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    Place next = Place::kOther;
    if (stack_.empty() || (top() == Place::kRoot && key_ == "traceEvents"))
      next = Place::kEvents, is_trace = true;
    else if (top() == Place::kRoot && key_ == "deviceProperties")
      next = Place::kGpus;
    else if (top() == Place::kArguments && (key_ == "grid" || key_ == "block"))
      next = Place::kList, list_.clear();
    stack_.push_back(next);
    return true;
  }
  bool end_array() override {
    const bool list = top() == Place::kList;
    stack_.pop_back();
    if (list) argument("[" + list_ + "]");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_at = position;
    return false;
  }

 private:
  enum class Place : std::uint8_t { kRoot, kEvents, kEvent, kArguments, kList, kGpus, kGpu, kOurs, kOther };
  Place top() const { return stack_.empty() ? Place::kOther : stack_.back(); }

  bool number(double value, const std::string& text) {
    switch (top()) {
      case Place::kEvent:
        if (key_ == "ts") event_.start_us = value;
        if (key_ == "dur") event_.us = value, event_.has_us = true;
        event_text(text);
        break;
      case Place::kArguments:
        argument(text);
        break;
      case Place::kList:
        list_ += (list_.empty() ? "" : ",") + text;
        break;
      default:
        break;
    }
    return true;
  }
  void event_text(const std::string& text) {
    if (key_ == "name") event_.name = text;
    if (key_ == "ph") event_.phase = text;
    if (key_ == "cat") event_.category = text;
    if (key_ == "pid") event_.process = text;
    if (key_ == "tid") event_.thread = text;
  }
  void argument(const std::string& text) {
    if (std::ranges::find(kArguments, key_) != kArguments.end()) event_.arguments[key_] = text;
  }

  /// What a GPU may have done, and what names things.
  void keep() {
    ++seen;
    const auto external = [&] {
      const auto found = event_.arguments.find("External id");
      return found == event_.arguments.end() ? std::string() : found->second;
    };
    if (event_.phase == "M") {
      if (event_.name == "process_name") processes[event_.process] = event_.arguments["name"];
      if (event_.name == "thread_name") threads[{event_.process, event_.thread}] = event_.arguments["name"];
      return;
    }
    if (event_.phase != "X") return;
    if (event_.category == "cpu_op" || event_.category == "Operator") {
      if (const std::string id = external(); !id.empty()) host_ops.try_emplace(id, event_.name);
      ++host;
      return;
    }
    constexpr auto kOfGpus = std::to_array<std::string_view>(
        {"", "kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset", "gpu_user_annotation"});
    const auto process = processes.find(event_.process);
    if (std::ranges::find(kOfGpus, event_.category) == kOfGpus.end() ||
        (process != processes.end() && process->second.starts_with("/host:"))) {
      ++host;
      return;
    }
    events.push_back(std::move(event_));
  }

  std::vector<Place> stack_;
  std::string key_, list_;
  RawEvent event_;
};

const std::string& argument_of(const RawEvent& event, const std::string& name) {
  static const std::string none;
  const auto found = event.arguments.find(name);
  return found == event.arguments.end() ? none : found->second;
}

std::int64_t number_in(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  std::int64_t value = 0;
  if (digit != std::string_view::npos) std::from_chars(text.data() + digit, text.data() + text.size(), value);
  return value;
}

/// "regs:16 static_shared:0 dynamic_shared:0 grid:80,1,1 block:256,1,1 occ_pct:100": the value of one word.
std::string detail(const std::string& details, const std::string& word) {
  std::size_t at = details.starts_with(word + ":") ? 0 : details.find(" " + word + ":");
  if (at == std::string::npos) return "";
  at = details.find(':', at) + 1;
  return details.substr(at, details.find(' ', at) - at);
}

ProfileKind kind_of(const RawEvent& event) {
  std::string name = event.name;
  std::erase(name, ' ');
  if (name.starts_with("Memset") || name.starts_with("memset") || event.category.ends_with("emset"))
    return ProfileKind::kMemset;
  if (event.category == "kernel" || event.category == "Kernel") return ProfileKind::kKernel;
  const bool copy =
      name.starts_with("Memcpy") || name.starts_with("memcpy") || event.category.ends_with("emcpy");
  if (!copy) return ProfileKind::kKernel;
  return name.find("D2D") != std::string::npos || name.find("DtoD") != std::string::npos
             ? ProfileKind::kCopy
             : ProfileKind::kTransfer;
}

/// The framework's name: XLA's op_name, which either argument may hold.
std::string framework_op(const RawEvent& event) {
  const std::string& type = argument_of(event, "tf_op");
  const std::string path = type.substr(0, type.find(':'));
  if (path.find('/') != std::string::npos) return path;
  const std::string& name = argument_of(event, "name");
  return name.find('/') == std::string::npos ? "" : name;
}

ProfileEvent jax_event(const RawEvent& raw, const std::string& thread, int device) {
  ProfileEvent event{kind_of(raw), raw.name, raw.start_us, raw.us, device, number_in(thread)};
  const std::string& module = argument_of(raw, "hlo_module");
  event.module = module.substr(0, module.find('('));  // newer ones add the program's number
  event.instruction = argument_of(raw, "hlo_op");
  event.op = framework_op(raw);
  const std::string& details = argument_of(raw, "kernel_details");
  for (auto [word, to] : {std::pair("grid", &event.grid), std::pair("block", &event.block)})
    if (const std::string extents = detail(details, word); !extents.empty()) *to = "[" + extents + "]";
  if (const std::string registers = detail(details, "regs"); !registers.empty())
    event.counters["registers"] = static_cast<double>(number_in(registers));
  return event;
}

ProfileEvent torch_event(const RawEvent& raw, const TraceHandler& trace) {
  ProfileEvent event{kind_of(raw), raw.name, raw.start_us, raw.us};
  event.device = static_cast<int>(number_in(argument_of(raw, "device")));
  const std::string& stream = argument_of(raw, "stream");
  event.stream = number_in(stream.empty() ? raw.thread : stream);
  event.grid = argument_of(raw, "grid");
  event.block = argument_of(raw, "block");
  if (const std::string& registers = argument_of(raw, "registers per thread"); !registers.empty())
    event.counters["registers"] = static_cast<double>(number_in(registers));
  const std::string& id = argument_of(raw, "External id");
  if (const auto op = trace.host_ops.find(id.empty() ? argument_of(raw, "external id") : id);
      op != trace.host_ops.end())
    event.op = op->second;
  return event;
}

/// Processes of GPUs by number, and whether their threads are called streams: lines that XProf derives from
/// those ("XLA Ops", "Framework Ops") hold the same time once more.
struct JaxDevices {
  std::map<std::string, int> number;
  std::set<std::string> with_streams;
};

JaxDevices jax_devices(const TraceHandler& trace) {
  JaxDevices found;
  for (const auto& [process, name] : trace.processes)
    if (const std::size_t at = name.find("/device:GPU:"); at != std::string::npos)
      found.number[process] = static_cast<int>(number_in(std::string_view(name).substr(at)));
  for (const auto& [of, name] : trace.threads)
    if (name.starts_with("Stream")) found.with_streams.insert(of.first);
  return found;
}

[[noreturn]] void no_events(const TraceHandler& trace, const std::string& file) {
  if (trace.ours)
    throw Error(file, 0, 0, "is a trace of stitchwork run --trace, no other tool's",
                "its numbers are those of run --json, which view takes as --run");
  throw Error(
      file, 0, 0, fmt::format("holds nothing that a GPU did, among {} events", trace.seen),
      "record it while the model runs on a GPU: PyTorch with ProfilerActivity.CUDA, JAX with its CUDA "
      "plugin");
}

[[noreturn]] void broken(const std::string& text, const std::string& file, std::size_t byte) {
  const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  if (end >= text.find_last_not_of(" \t\r\n"))
    throw Error(file, static_cast<int>(line) + 1, 0, "ends within the trace",
                "the file is cut off: copy it again, or record it again and let the program end");
  throw Error(file, static_cast<int>(line) + 1, 0, "not JSON",
              "give the trace as the profiler wrote it (.json or .json.gz)");
}

}  // namespace

Profile parse_chrome_trace(const std::string& text, const std::string& file) {
  TraceHandler trace;
  if (!nlohmann::json::sax_parse(text, &trace)) broken(text, file, trace.error_at);
  if (!trace.is_trace)
    throw Error(file, 0, 0, "is JSON without traceEvents", "give the trace of JAX's or PyTorch's profiler");
  Profile profile{.tool = "PyTorch", .file = file, .device = trace.gpu, .host_events = trace.host};
  if (trace.ours) no_events(trace, file);
  const JaxDevices jax = jax_devices(trace);
  if (!jax.number.empty()) profile.tool = "JAX";
  for (const RawEvent& raw : trace.events) {
    if (raw.category == "gpu_user_annotation") {
      if (raw.name.starts_with("ProfilerStep#"))
        profile.steps.emplace_back(raw.start_us, raw.start_us + raw.us);
      continue;
    }
    if (!raw.has_us) continue;
    if (!raw.category.empty()) {
      profile.events.push_back(torch_event(raw, trace));
      continue;
    }
    const auto device = jax.number.find(raw.process);
    const auto thread = trace.threads.find({raw.process, raw.thread});
    const std::string line = thread == trace.threads.end() ? raw.thread : thread->second;
    if (device == jax.number.end() ||
        (jax.with_streams.contains(raw.process) && !line.starts_with("Stream"))) {
      ++profile.host_events;
      continue;
    }
    profile.events.push_back(jax_event(raw, line, device->second));
  }
  if (profile.events.empty()) no_events(trace, file);
  const auto start = [](const ProfileEvent& e) { return e.start_us; };
  std::ranges::stable_sort(profile.events, {}, start);
  std::ranges::sort(profile.steps);
  return profile;
}

}  // namespace stitchwork
