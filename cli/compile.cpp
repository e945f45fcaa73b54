// stitchwork compile MODEL -o DIR
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/peer_plan.h"
#include "cli/stages.h"
#include "codegen/compile/compiler.h"
#include "codegen/settle.h"
#include "codegen/write.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json kernels_json(const Executable& executable) {
  auto kernels = ordered_json::array();
  for (std::size_t k = 0; k < executable.kernels.size(); ++k) {
    const CompiledKernel& kernel = executable.kernels[k];
    kernels.push_back({{"id", executable.plan.kernels[k].id},
                       {"source_sha256", kernel.source_sha256},
                       {"from_cache", kernel.from_cache},
                       {"compile_ms", kernel.compile_ms}});
  }
  return kernels;
}

struct CompileFlags {
  PlanArguments plan;
  std::string output, compiler;
  bool cubin = false, fast_math = false, all_stages = false, force = false;
};

Executable compiled(Cli& cli, const CompileFlags& flags, const Planned& planned) {
  CompileOptions options;
  options.compiler = flags.compiler;
  options.cubin = flags.cubin;
  options.fast_math = flags.fast_math;
  if (flags.cubin)
    if (const PtxCompiler found = find_compiler(flags.compiler); !compiles_for(found, *planned.device))
      throw Error(fmt::format("{} makes no machine code for {}", found.id, planned.device->id),
                  "leave out --cubin, or use an NVRTC that knows the device's architecture");
  Replan replan;
  if (flags.plan.plan_file.empty())
    replan = [&](const std::vector<Edit>& more) {
      PlanOptions wanted = flags.plan.options();
      wanted.rewrites = as_planned(planned.plan, false).rewrites;
      wanted.edits.insert(wanted.edits.end(), more.begin(), more.end());
      return make_plan(planned.model.graph, *planned.device, flags.plan.planner, wanted);
    };
  Executable executable =
      compile_settled(planned.model.graph, *planned.device, planned.plan, replan, options);
  print_checks(cli, executable);
  return executable;
}

/// The dumps are of the plan that was compiled, which may be another than the first (codegen/settle.h).
void compile_stages(Cli& cli, const CompileFlags& flags) {
  refuse_dump(dump_of(flags.plan), "compiled here");
  require_empty_folder(flags.output, flags.force);
  Graph as_read;
  Planned planned = load_planned(flags.plan, true, nullptr, &as_read);
  std::optional<Executable> executable;
  if (!flags.compiler.empty() || find_nvrtc() || find_clang()) {
    executable = compiled(cli, flags, planned);
    planned.plan = executable->plan;
  }
  const ordered_json index =
      write_stages(planned, as_read, executable ? &*executable : nullptr, flags.output);
  if (cli.json) return cli.print(index);
  std::size_t files = 2;
  for (const ordered_json& stage : index["stages"]) {
    files += stage["files"].size();
    if (stage.contains("missing"))
      cli.print(
          fmt::format("no {}: {}", stage["stage"].get<std::string>(), stage["missing"].get<std::string>()));
  }
  cli.print(fmt::format("{}: {}; index.md lists them", flags.output, counted(files, "file")));
}

void compile_kernels(Cli& cli, const CompileFlags& flags) {
  if (flags.force)
    throw Error("--force is for --all-stages", "kernels of the same names are always replaced");
  refuse_dump(dump_of(flags.plan), "compiled here");
  const Planned planned = load_planned(flags.plan);
  const Executable executable = compiled(cli, flags, planned);
  const std::vector<std::string> files = write_kernels(planned.model.graph, executable, flags.output);
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.compile/1"},
                                  {"compiler", executable.compiler},
                                  {"folder", flags.output},
                                  {"files", files},
                                  {"kernels", kernels_json(executable)}});
  cli.print(fmt::format("{}: {} compiled by {}, {}", flags.output,
                        counted(executable.kernels.size(), "kernel"), executable.compiler,
                        counted(files.size(), "file")));
}

}  // namespace

void add_compile(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("compile", "write the CUDA C++ and PTX of every kernel");
  auto flags = std::make_shared<CompileFlags>();
  flags->plan.add_model(*command);
  flags->plan.add_planning(*command);
  flags->plan.add_device(*command);
  command->add_option("-o,--output", flags->output, "folder for .cu, .ptx, .cubin and launch.json")
      ->required();
  command->add_option("--compiler", flags->compiler,
                      "nvrtc or clang (default: NVRTC where a CUDA toolkit is found)");
  command->add_flag("--cubin", flags->cubin, "machine code too, where NVRTC knows the device's architecture");
  command->add_flag(
      "--all-stages", flags->all_stages,
      "everything on the way, too: HLO as read and after passes, plan, schedule, memory, CUDA, PTX, "
      "machine code as text, with an index; the folder must be new or empty");
  command->add_flag("--force", flags->force, "--all-stages into a folder that has files");
  add_fast_math(*command, flags->fast_math);
  add_common(*command, cli,
             "  stitchwork compile softmax --planner astitch -o out/\n"
             "  stitchwork compile bert_layer --planner xla --compiler clang -o out/\n"
             "  stitchwork compile bert_layer --device h200 --cubin -o out/\n"
             "  stitchwork compile bert_layer --all-stages -o stages/");
  command->callback(
      [&cli, flags] { flags->all_stages ? compile_stages(cli, *flags) : compile_kernels(cli, *flags); });
}

}  // namespace stitchwork
