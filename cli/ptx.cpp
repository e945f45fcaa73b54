// stitchwork ptx run | info | isa: anybody's PTX.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/ptx_program.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/hlo/npy.h"
#include "experiments/launch_json.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/streams.h"
#include "occupancy_model/timing_text.h"
#include "simulator/ptx_run.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct PtxArguments {
  std::string file, kernel, grid = "1", block = "32", cluster, device = "v100-sxm2", sanitize, mode = "exact",
                            cache = "cold", folder;
  std::vector<std::string> arguments, outputs, beside;
  std::int64_t shared = 0;
  int registers = 0;
  bool explain = false, non_portable_cluster = false, lines = false;
};

struct Output {
  std::size_t argument;
  std::string file;
};

/// I:FILE.npy
Output parse_output(const std::string& text, std::size_t arguments) {
  const std::size_t colon = text.find(':');
  std::size_t index = 0;
  const bool number =
      colon != std::string::npos && colon > 0 && text.find_first_not_of("0123456789") == colon;
  if (number) index = static_cast<std::size_t>(std::stoul(text.substr(0, colon)));
  if (!number || colon + 1 == text.size() || index >= arguments)
    throw Error(
        fmt::format("--out {}: expected I:FILE.npy with I the position of a buffer among the {} --arg", text,
                    arguments),
        "for example --arg buf:f32:1024:zero --out 0:result.npy");
  return {index, text.substr(colon + 1)};
}

void print_findings(Cli& cli, const std::string& file, const std::vector<sim::Finding>& findings) {
  for (const sim::Finding& f : findings)
    cli.err << fmt::format("stitchwork: {}:{}: {}: {} (block {},{},{}, thread {},{},{})\n", file, f.ptx_line,
                           sim::name(f.kind), f.message, f.block.x, f.block.y, f.block.z, f.thread.x,
                           f.thread.y, f.thread.z);
}

/// A launch on a stream of its own.
struct StreamLaunch {
  std::string kernel;
  StreamKernel share;
  double end_us = 0;  ///< from when all begin
};

/// The launch that a document of ptx run --json describes.
StreamLaunch read_launch(const std::string& file, const Device& target) {
  const std::string hint = "--beside takes what `stitchwork ptx run ... --json` printed";
  const auto document = nlohmann::json::parse(read_file(file), nullptr, false);
  try {
    if (document.is_discarded() || document.at("schema") != "stitchwork.ptx-run/1")
      throw Error(file, 0, 0, "is no document of ptx run", hint);
    if (!document.at("findings").empty())
      throw Error(file, 0, 0, "the launch ended with a finding: it has no time", hint);
    if (document.at("device") != target.id)
      throw Error(
          file, 0, 0,
          fmt::format("is of {}, this launch of {}", document.at("device").get<std::string>(), target.id),
          "streams share one device");
    const auto& parts = document.at("time_parts");
    const auto part = [&parts](const char* name) {
      const double us = parts.at(name).get<double>();
      return us >= 0 ? us : 0;
    };
    StreamLaunch launch{.kernel = document.at("kernel").get<std::string>(), .share = {}, .end_us = 0};
    KernelTime& t = launch.share.alone;
    t = {.launch_us = part("launch_us"),
         .dram_us = part("dram_us"),
         .l2_us = part("l2_us"),
         .issue_us = part("issue_us"),
         .latency_us = part("latency_us"),
         .tail_us = part("tail_us"),
         .barrier_us = part("barrier_us")};
    t.total_us = std::max(t.launch_us, document.at("time_us").get<double>());
    launch.share.resident_share = document.at("resident_share").get<double>();
    return launch;
  } catch (const nlohmann::json::exception& e) {
    throw Error(file, 0, 0, fmt::format("is no whole document of ptx run: {}", e.what()), hint);
  }
}

/// This launch and those beside it, each with its end.
std::vector<StreamLaunch> side_by_side(const std::string& kernel, const sim::LaunchResult& result,
                                       const std::vector<std::string>& beside, const Device& target) {
  std::vector<StreamLaunch> launches = {
      {.kernel = kernel, .share = {result.time, result.resident_share}, .end_us = 0}};
  for (const std::string& file : beside) launches.push_back(read_launch(file, target));
  std::vector<std::vector<StreamKernel>> streams;
  for (const StreamLaunch& launch : launches) streams.push_back({launch.share});
  const auto spans = share_device(target, streams);
  for (std::size_t s = 0; s < launches.size(); ++s) launches[s].end_us = spans[s][0].end_us;
  return launches;
}

/// Blocks done and thread instructions a second, every tenth of a second.
std::function<void(const sim::Progress&)> progress_of(Cli& cli) {
  using Clock = std::chrono::steady_clock;
  return [&cli, begin = Clock::now(), last = Clock::now()](const sim::Progress& p) mutable {
    constexpr std::chrono::milliseconds kBetween{100};
    const auto now = Clock::now();
    if (now - last < kBetween) return;
    last = now;
    const double seconds = std::chrono::duration<double>(now - begin).count();
    cli.progress(fmt::format("{} of {} blocks, {:.2f} G thread-instructions/s",
                             with_commas(static_cast<long long>(p.blocks_done)),
                             with_commas(static_cast<long long>(p.blocks)),
                             kWarp * 1e-9 * static_cast<double>(p.warp_instructions) / seconds));
  };
}

ordered_json lines_json(const std::vector<sim::LineCounters>& lines) {
  ordered_json list = ordered_json::array();
  for (const sim::LineCounters& l : lines) {
    list.push_back({{"line", l.line},
                    {"inst_executed", l.inst_executed},
                    {"thread_inst_executed", l.thread_inst_executed},
                    {"issue_slots", l.issue_slots},
                    {"inst_ldst", l.inst_ldst},
                    {"gld_transactions", l.gld_transactions},
                    {"gst_transactions", l.gst_transactions},
                    {"l2_atomic_sectors", l.l2_atomic_sectors},
                    {"shared_wavefronts", l.shared_wavefronts},
                    {"shared_bank_conflicts", l.shared_bank_conflicts}});
    if (l.source_line == 0) continue;
    list.back()["source_file"] = l.source_file;
    list.back()["source_line"] = l.source_line;
  }
  return list;
}

/// A row a line, as the file has them: what it did, its share of all issue slots, and its text.
std::string lines_text(const std::vector<sim::LineCounters>& lines, const std::string& ptx) {
  std::vector<std::string_view> texts;
  for (std::size_t at = 0; at < ptx.size();) {
    const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
    texts.push_back(std::string_view(ptx).substr(at, end - at));
    at = end + 1;
  }
  double all = 0;
  for (const sim::LineCounters& l : lines) all += static_cast<double>(l.issue_slots);
  const bool named = std::ranges::any_of(lines, [](const auto& l) { return l.source_line != 0; });
  const auto number = [](std::uint64_t n) { return with_commas(static_cast<long long>(n)); };
  std::vector<std::string> heads = {">line",    ">warp inst", ">thread inst", ">slots",
                                    ">% slots", ">sectors",   ">conflicts"};
  if (named) heads.emplace_back("source");
  heads.emplace_back("PTX");
  Table table(heads);
  for (const sim::LineCounters& l : lines) {
    std::vector<std::string> row = {
        fmt::to_string(l.line),
        number(l.inst_executed),
        number(l.thread_inst_executed),
        number(l.issue_slots),
        fmt::format("{:.1f}", all > 0 ? 100 * static_cast<double>(l.issue_slots) / all : 0),
        l.inst_ldst == 0 ? "" : number(l.gld_transactions + l.gst_transactions + l.l2_atomic_sectors),
        l.inst_ldst == 0 ? "" : number(l.shared_bank_conflicts)};
    if (named) row.push_back(l.source_line == 0 ? "" : fmt::format("{}:{}", l.source_file, l.source_line));
    std::string_view text = texts.at(static_cast<std::size_t>(l.line - 1));
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    row.emplace_back(text);
    std::ranges::replace(row.back(), '\t', ' ');
    table.add(std::move(row));
  }
  return table.text();
}

sim::Launch launch_of(const PtxArguments& a, const ptx::Module& module) {
  sim::Launch launch;
  launch.kernel = a.kernel.empty() && module.kernels().size() == 1 ? module.kernels()[0].name : a.kernel;
  launch.grid = sim::parse_dim3(a.grid);
  launch.block = sim::parse_dim3(a.block);
  if (!a.cluster.empty()) launch.cluster = sim::parse_dim3(a.cluster);
  launch.non_portable_cluster = a.non_portable_cluster;
  launch.dynamic_shared_bytes = static_cast<std::uint32_t>(a.shared);
  return launch;
}

/// Counters, time and what else was asked for of a launch without a finding.
void print_launch(Cli& cli, const PtxArguments& a, const std::string& text, const sim::Launch& launch,
                  const sim::LaunchResult& result, const std::vector<StreamLaunch>& streams) {
  const Device& target = device(a.device);
  Table table({"counter", ">value"});
  for (const auto& [counter, value] : sim::counter_list(result.counters))
    table.add({std::string(counter), value == static_cast<double>(static_cast<long long>(value))
                                         ? with_commas(static_cast<long long>(value))
                                         : fmt::format("{:.4f}", value)});
  cli.print(table.text());
  cli.print(fmt::format("{:.2f} us on {} ({})", result.time_us, target.id,
                        result.sampled
                            ? fmt::format("sampled: {} of {} blocks simulated",
                                          with_commas(static_cast<long long>(result.blocks_simulated)),
                                          with_commas(static_cast<long long>(launch.grid.count())))
                            : "simulated"));
  if (a.lines) cli.print(lines_text(result.lines, text));
  if (a.explain) cli.print(to_text(result.time) + to_text(not_modelled(target, result.timed)));
  if (!streams.empty()) {
    Table together({"stream", "kernel", ">alone us", ">ends us"});
    for (std::size_t s = 0; s < streams.size(); ++s)
      together.add({fmt::to_string(s), streams[s].kernel,
                    fmt::format("{:.2f}", streams[s].share.alone.total_us),
                    fmt::format("{:.2f}", streams[s].end_us)});
    cli.print(together.text());
  }
}

void ptx_run(Cli& cli, const PtxArguments& a) {
  if (a.cache != "cold" || !a.folder.empty())
    throw Error("--cache warm and --outputs are of a program; this is one launch",
                "see docs/ptx_programs.md, or save a buffer by --out I:FILE.npy");
  std::vector<Output> outputs;
  for (const std::string& output : a.outputs) outputs.push_back(parse_output(output, a.arguments.size()));
  const std::string text = read_file(a.file);
  const ptx::Module module = ptx::parse(text, a.file);
  const Device& target = device(a.device);
  const sim::Launch launch = launch_of(a, module);
  sim::Options options;
  options.registers_per_thread = a.registers;
  if (!a.sanitize.empty()) options.sanitize = sim::parse_sanitizers(a.sanitize);
  options.sampled = a.mode == "sampled";
  options.lines = a.lines;
  if (options.sampled && !outputs.empty())
    throw Error("--mode sampled runs some of the blocks: outputs would be incomplete",
                "leave out --out, or use --mode exact");
  options.progress = progress_of(cli);
  const sim::PtxRun run = sim::run_ptx(module, launch, a.arguments, target, options);
  cli.progress("");
  if (run.result.findings.empty())
    for (const Output& output : outputs) {
      const auto& buffer = run.buffers[output.argument];
      if (!buffer)
        throw Error(fmt::format("--out {}:{}: argument {} is a scalar, not a buffer", output.argument,
                                output.file, output.argument));
      write_npy(output.file, *buffer);
    }
  cli.err << run.result.printed;
  if (!run.result.findings.empty()) cli.exit_code = kExitBadInput;
  std::vector<StreamLaunch> streams;
  if (!a.beside.empty() && run.result.findings.empty())
    streams = side_by_side(launch.kernel, run.result, a.beside, target);
  if (cli.json) {
    ordered_json findings = ordered_json::array();
    for (const sim::Finding& f : run.result.findings) findings.push_back(finding_json(f));
    ordered_json document{{"schema", "stitchwork.ptx-run/1"},
                          {"file", a.file},
                          {"kernel", launch.kernel},
                          {"device", target.id},
                          {"findings", findings},
                          {"sanitizers", sanitizers_json(options.sanitize, run.result.sanitized)}};
    add_launch_json(document, launch, run.result, target);
    if (a.lines) document["lines"] = lines_json(run.result.lines);
    for (const StreamLaunch& s : streams)
      document["streams"].push_back(
          {{"kernel", s.kernel}, {"alone_us", s.share.alone.total_us}, {"end_us", s.end_us}});
    return cli.print(document);
  }
  if (!run.result.findings.empty()) {  // it ended there: what was counted until then is of no use
    print_findings(cli, a.file, run.result.findings);
    return;
  }
  print_launch(cli, a, text, launch, run.result, streams);
  if (!a.sanitize.empty()) cli.print(to_text(options.sanitize, run.result.sanitized) + "; no findings");
}

/// Of a program: what is said on the command line goes before what the script says.
ProgramArguments program_arguments(const CLI::App& command, const PtxArguments& a) {
  for (const char* option : {"--kernel", "--grid", "--block", "--cluster", "--non-portable-cluster", "--arg",
                             "--out", "--smem", "--regs", "--explain", "--lines", "--beside"})
    if (command.count(option) > 0)
      throw Error(fmt::format("{} is of one launch; {} is a program, which says it itself", option, a.file),
                  "see docs/ptx_programs.md");
  const auto given = [&](const char* option, const std::string& value) {
    return command.count(option) > 0 ? value : std::string();
  };
  return {.file = a.file,
          .device = given("--device", a.device),
          .sanitize = a.sanitize,
          .cache = given("--cache", a.cache),
          .mode = a.mode,
          .outputs = a.folder};
}

void ptx_info(Cli& cli, const std::string& file) {
  const ptx::Module module = ptx::parse(read_file(file), file);
  if (cli.json) {
    ordered_json kernels = ordered_json::array();
    for (const ptx::KernelInfo& k : module.kernels()) {
      ordered_json parameters = ordered_json::array();
      for (const ptx::ParameterInfo& p : k.parameters)
        parameters.push_back({{"name", p.name}, {"type", p.type}, {"bytes", p.bytes}, {"offset", p.offset}});
      kernels.push_back({{"name", k.name},
                         {"line", k.line},
                         {"instructions", k.instructions},
                         {"estimated_registers", k.estimated_registers},
                         {"loads_in_flight", k.loads_in_flight},
                         {"static_shared_bytes", k.static_shared_bytes},
                         {"local_bytes", k.local_bytes},
                         {"max_threads", k.max_threads},
                         {"min_blocks_per_sm", k.min_blocks_per_sm},
                         {"parameters", parameters}});
    }
    return cli.print(ordered_json{{"schema", "stitchwork.ptx-info/1"},
                                  {"file", file},
                                  {"version", module.version()},
                                  {"target", module.target()},
                                  {"kernels", kernels}});
  }
  std::string text = fmt::format("{}: PTX {}, {}\n", file, module.version(), module.target());
  Table table({"kernel", "parameters", ">instructions", ">registers (estimated)", ">shared B", ">local B",
               ">max threads"});
  for (const ptx::KernelInfo& k : module.kernels()) {
    std::vector<std::string> types;
    for (const ptx::ParameterInfo& p : k.parameters) types.push_back(p.type);
    table.add({k.name, fmt::format("{}", fmt::join(types, " ")), fmt::to_string(k.instructions),
               fmt::to_string(k.estimated_registers), fmt::to_string(k.static_shared_bytes),
               fmt::to_string(k.local_bytes), k.max_threads ? fmt::to_string(k.max_threads) : "-"});
  }
  cli.print(text + table.text());
}

void ptx_isa(Cli& cli) {
  const std::vector<std::string> forms = ptx::supported_instructions();
  if (cli.json) return cli.print(ordered_json{{"schema", "stitchwork.ptx-isa/1"}, {"instructions", forms}});
  cli.print(fmt::format("{}", fmt::join(forms, "\n")));
}

}  // namespace

void add_ptx(CLI::App& app, Cli& cli) {
  CLI::App* ptx = app.add_subcommand("ptx", "run or inspect any PTX file of the supported subset");
  ptx->require_subcommand(1);
  auto a = std::make_shared<PtxArguments>();

  CLI::App* run =
      ptx->add_subcommand("run", "run one kernel, or a program of many, in the simulator; counters and time");
  run->add_option("FILE", a->file, "PTX file, or a program of launches (.json, docs/ptx_programs.md)")
      ->required();
  run->add_option("--kernel,-k", a->kernel, "entry name (may be left out if there is only one)");
  run->add_option("--grid,-g", a->grid, "blocks: x[,y[,z]]")->capture_default_str();
  run->add_option("--block,-b", a->block, "threads: x[,y[,z]]")->capture_default_str();
  run->add_option("--cluster", a->cluster,
                  "blocks of a thread block cluster: x[,y[,z]] (default: the kernel's own, or none)");
  run->add_flag("--non-portable-cluster", a->non_portable_cluster,
                "allow clusters of more than 8 blocks where the device has them");
  run->add_option("--arg", a->arguments,
                  "in order: i32:5, f32:1.5, buf:f32:1048576:seed=1, buf:f32:1048576:zero, in.npy")
      ->take_all();
  run->add_option("--out", a->outputs, "I:FILE.npy saves the buffer of argument I (from 0)")->take_all();
  run->add_option("--smem", a->shared, "dynamic shared memory, bytes")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  run->add_option("--regs", a->registers, "registers a thread (default: estimated)")
      ->check(CLI::Range(0, 255));
  add_sanitize(*run, a->sanitize);
  run->add_option("--mode", a->mode,
                  "exact: every block; sampled: a few waves stand for all, counters and time only")
      ->capture_default_str()
      ->check(CLI::IsMember({"exact", "sampled"}));
  run->add_flag("--explain", a->explain, "what the time is made of, and what limits it");
  run->add_flag("--lines", a->lines, "what the instructions of each line did");
  run->add_option(
         "--beside", a->beside,
         "FILE.json that ptx run --json printed: a launch on another stream, begun together with this")
      ->take_all();
  run->add_option("--device,-d", a->device, "device id or alias")->capture_default_str();
  run->add_option("--cache", a->cache,
                  "of a program: L2 between kernels: cold (empty at each kernel) or warm")
      ->capture_default_str()
      ->check(CLI::IsMember({"cold", "warm"}));
  run->add_option("--outputs", a->folder, "of a program: folder for what it saves (default: its own)");
  add_common(*run, cli,
             "  stitchwork ptx run vecadd.ptx --kernel vecadd --grid 4096 --block 256 \\\n"
             "      --arg buf:f32:1048576:seed=1 --arg buf:f32:1048576:seed=2 --arg buf:f32:1048576:zero \\\n"
             "      --arg i32:1048576 --out 2:sum.npy\n"
             "  stitchwork ptx run program.json --device a100 --sanitize mem,race,sync,init");
  run->callback([&cli, a, run] {
    if (a->file.ends_with(".json"))
      ptx_run_program(cli, program_arguments(*run, *a));
    else
      ptx_run(cli, *a);
  });

  CLI::App* info = ptx->add_subcommand("info", "kernels, parameters and sizes of a PTX file");
  info->add_option("FILE", a->file, "PTX file")->required();
  add_common(*info, cli, "  stitchwork ptx info vecadd.ptx --json");
  info->callback([&cli, a] { ptx_info(cli, a->file); });

  CLI::App* isa = ptx->add_subcommand("isa", "list the supported instructions");
  add_common(*isa, cli, "  stitchwork ptx isa");
  isa->callback([&cli] { ptx_isa(cli); });
}

}  // namespace stitchwork
