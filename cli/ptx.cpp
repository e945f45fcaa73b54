// stitchwork ptx run | info | isa: anybody's PTX in the simulator.
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/error.h"
#include "core/file.h"
#include "core/format.h"
#include "core/npy.h"
#include "experiments/launch_json.h"
#include "runtime/run.h"
#include "simulator/ptx_run.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct PtxRunArguments {
  std::string file, kernel, grid = "1", block = "1", device = "v100-sxm2";
  std::vector<std::string> arguments, outputs;
  std::uint32_t shared_bytes = 0;
  int registers = 0;
};

/// "2:y.npy": the argument to save, and where.
struct SavedBuffer {
  std::size_t index = 0;
  std::string path;
};

SavedBuffer parse_output(const std::string& text, std::size_t arguments) {
  const std::size_t colon = text.find(':');
  SavedBuffer saved;
  std::size_t used = 0;
  try {
    saved.index = std::stoul(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (colon == std::string::npos || used != colon || colon + 1 == text.size())
    throw Error(fmt::format("--out {}: expected INDEX:FILE.npy", text), "for example --out 1:y.npy");
  if (saved.index >= arguments)
    throw Error(fmt::format("--out {}: there is no argument {}", text, saved.index),
                fmt::format("arguments count from 0; {} are given", arguments));
  saved.path = text.substr(colon + 1);
  return saved;
}

ordered_json dims_json(const sim::Dim3& d) { return {d.x, d.y, d.z}; }

ptx::Module read_ptx(const std::string& file) { return ptx::parse(read_file(file), file); }

void ptx_run(Cli& cli, const PtxRunArguments& a) {
  std::vector<SavedBuffer> saved;
  for (const std::string& text : a.outputs) saved.push_back(parse_output(text, a.arguments.size()));
  const Device& target = device(a.device);
  const ptx::Module module = read_ptx(a.file);
  sim::Launch launch;
  launch.kernel = a.kernel;
  if (launch.kernel.empty() && module.kernels().size() == 1) launch.kernel = module.kernels()[0].name;
  launch.grid = sim::parse_dim3(a.grid);
  launch.block = sim::parse_dim3(a.block);
  launch.dynamic_shared_bytes = a.shared_bytes;
  sim::Options options;
  options.registers_per_thread = a.registers;
  const sim::PtxRun run = sim::run_ptx(module, launch, a.arguments, target, options);
  const bool clean = run.result.findings.empty();
  if (!clean) cli.exit_code = kExitBadInput;
  if (clean)
    for (const SavedBuffer& s : saved) {
      if (!run.buffers[s.index])
        throw Error(fmt::format("--out {}:{}: argument {} is no buffer", s.index, s.path, s.index));
      write_npy(s.path, *run.buffers[s.index]);
    }
  if (cli.json) {
    ordered_json findings = ordered_json::array();
    for (const sim::Finding& f : run.result.findings) findings.push_back(finding_json(f));
    return cli.print(ordered_json{{"schema", "stitchwork.ptx-run/1"},
                                  {"file", a.file},
                                  {"kernel", launch.kernel},
                                  {"device", target.id},
                                  {"grid", dims_json(launch.grid)},
                                  {"block", dims_json(launch.block)},
                                  {"counters", counters_json(run.result.counters)},
                                  {"time_us", run.result.time_us},
                                  {"method", name(Method::kSimulated)},
                                  {"findings", findings}});
  }
  for (const sim::Finding& f : run.result.findings) cli.err << fmt::format("stitchwork: {}\n", to_text(f));
  if (!clean) return;
  Table table({"counter", ">value"});
  for (const auto& [counter, value] : sim::counter_list(run.result.counters))
    table.add({std::string(counter), value == static_cast<double>(static_cast<long long>(value))
                                         ? with_commas(static_cast<long long>(value))
                                         : fmt::format("{:.4f}", value)});
  cli.print(table.text());
  cli.print(fmt::format("{}: {:.2f} us on {} (simulated), no findings", launch.kernel, run.result.time_us,
                        target.id));
}

void ptx_info(Cli& cli, const std::string& file) {
  const ptx::Module module = read_ptx(file);
  ordered_json kernels = ordered_json::array();
  Table table({"kernel", "parameters", ">instructions", ">registers (estimated)", ">shared B", ">local B",
               ">max threads"});
  for (const ptx::KernelInfo& k : module.kernels()) {
    ordered_json parameters = ordered_json::array();
    std::vector<std::string> types;
    for (const ptx::ParameterInfo& p : k.parameters) {
      parameters.push_back({{"name", p.name}, {"type", p.type}, {"bytes", p.bytes}, {"offset", p.offset}});
      types.push_back(p.type);
    }
    kernels.push_back({{"name", k.name},
                       {"line", k.line},
                       {"parameters", parameters},
                       {"instructions", k.instructions},
                       {"virtual_registers", k.virtual_registers},
                       {"estimated_registers", k.estimated_registers},
                       {"static_shared_bytes", k.static_shared_bytes},
                       {"local_bytes", k.local_bytes},
                       {"max_threads", k.max_threads},
                       {"min_blocks_per_sm", k.min_blocks_per_sm}});
    table.add({k.name, fmt::format("{}", fmt::join(types, " ")), fmt::to_string(k.instructions),
               fmt::to_string(k.estimated_registers), fmt::to_string(k.static_shared_bytes),
               fmt::to_string(k.local_bytes), k.max_threads ? fmt::to_string(k.max_threads) : "-"});
  }
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.ptx-info/1"},
                                  {"file", file},
                                  {"version", module.version()},
                                  {"target", module.target()},
                                  {"kernels", kernels}});
  cli.print(fmt::format("{}: PTX {} for {}\n\n{}", file, module.version(), module.target(), table.text()));
}

void ptx_isa(Cli& cli) {
  const std::vector<std::string> forms = ptx::supported_instructions();
  if (cli.json) return cli.print(ordered_json{{"schema", "stitchwork.ptx-isa/1"}, {"instructions", forms}});
  cli.print(fmt::format("{}", fmt::join(forms, "\n")));
}

void add_ptx_run(CLI::App& ptx, Cli& cli) {
  CLI::App* command = ptx.add_subcommand("run", "run one kernel of a PTX file: counters, time, findings");
  auto a = std::make_shared<PtxRunArguments>();
  command->add_option("FILE", a->file, "PTX")->required();
  command->add_option("--kernel,-k", a->kernel, "entry name (default: the only one)");
  command->add_option("--grid,-g", a->grid, "blocks: x, x,y or x,y,z")->capture_default_str();
  command->add_option("--block,-b", a->block, "threads a block: x, x,y or x,y,z")->capture_default_str();
  command
      ->add_option(
          "--arg,-a", a->arguments,
          "an argument, in order: i32:5, f32:1.5, buf:f32:1048576:seed=1, buf:f32:1048576:zero, FILE.npy")
      ->allow_extra_args(false);
  command->add_option("--out", a->outputs, "INDEX:FILE.npy: saves a buffer after the run; repeatable")
      ->allow_extra_args(false);
  command->add_option("--smem,-s", a->shared_bytes, "bytes of dynamic shared memory a block")
      ->capture_default_str();
  command
      ->add_option("--regs,-r", a->registers,
                   "registers a thread, for residency (default: estimated from the PTX)")
      ->check(CLI::Range(1, 255));
  command->add_option("--device,-d", a->device, "device id or alias")->capture_default_str();
  add_common(
      *command, cli,
      "  stitchwork compile softmax -o out && stitchwork ptx info out/k0_divide.ptx\n"
      "  stitchwork ptx run axpy.ptx --kernel axpy --grid 1024 --block 256 --arg i32:262144 --arg f32:2 \\\n"
      "      --arg buf:f32:262144:seed=1 --arg buf:f32:262144:zero --out 3:y.npy");
  command->callback([&cli, a] { ptx_run(cli, *a); });
}

}  // namespace

void add_ptx(CLI::App& app, Cli& cli) {
  CLI::App* ptx = app.add_subcommand("ptx", "run anybody's PTX in the simulator");
  ptx->require_subcommand(1);
  add_ptx_run(*ptx, cli);
  CLI::App* info = ptx->add_subcommand("info", "the kernels of a PTX file");
  auto file = std::make_shared<std::string>();
  info->add_option("FILE", *file, "PTX")->required();
  add_common(*info, cli, "  stitchwork ptx info kernel.ptx");
  info->callback([&cli, file] { ptx_info(cli, *file); });
  CLI::App* isa = ptx->add_subcommand("isa", "the instruction forms the simulator executes");
  add_common(*isa, cli, "  stitchwork ptx isa");
  isa->callback([&cli] { ptx_isa(cli); });
}

}  // namespace stitchwork
