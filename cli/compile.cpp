// stitchwork compile MODEL -o DIR
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "codegen/compile/compiler.h"
#include "codegen/settle.h"
#include "codegen/write.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

nlohmann::ordered_json kernels_json(const Executable& executable) {
  auto kernels = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < executable.kernels.size(); ++k) {
    const CompiledKernel& kernel = executable.kernels[k];
    kernels.push_back({{"id", executable.plan.kernels[k].id},
                       {"source_sha256", kernel.source_sha256},
                       {"from_cache", kernel.from_cache},
                       {"compile_ms", kernel.compile_ms}});
  }
  return kernels;
}

}  // namespace

void add_compile(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("compile", "write the CUDA C++ and PTX of every kernel");
  auto arguments = std::make_shared<PlanArguments>();
  auto output = std::make_shared<std::string>();
  auto compiler = std::make_shared<std::string>();
  auto cubin = std::make_shared<bool>(false), fast_math = std::make_shared<bool>(false);
  arguments->add_model(*command);
  arguments->add_planning(*command);
  arguments->add_device(*command);
  command->add_option("-o,--output", *output, "folder for .cu, .ptx, .cubin and launch.json")->required();
  command->add_option("--compiler", *compiler,
                      "nvrtc or clang (default: NVRTC where a CUDA toolkit is found)");
  command->add_flag("--cubin", *cubin, "machine code too, where NVRTC knows the device's architecture");
  add_fast_math(*command, *fast_math);
  add_common(*command, cli,
             "  stitchwork compile softmax --planner astitch -o out/\n"
             "  stitchwork compile bert_layer --planner xla --compiler clang -o out/\n"
             "  stitchwork compile bert_layer --device h200 --cubin -o out/");
  command->callback([&cli, arguments, output, compiler, cubin, fast_math] {
    const Planned planned = load_planned(*arguments);
    CompileOptions options;
    options.compiler = *compiler;
    options.cubin = *cubin;
    options.fast_math = *fast_math;
    if (*cubin)
      if (const PtxCompiler found = find_compiler(*compiler); !compiles_for(found, *planned.device))
        throw Error(fmt::format("{} makes no machine code for {}", found.id, planned.device->id),
                    "leave out --cubin, or use an NVRTC that knows the device's architecture");
    Replan replan;
    if (arguments->plan_file.empty())
      replan = [&](const std::vector<Edit>& more) {
        PlanOptions wanted = arguments->options();
        wanted.edits.insert(wanted.edits.end(), more.begin(), more.end());
        return make_plan(planned.model.graph, *planned.device, arguments->planner, wanted);
      };
    const Executable executable =
        compile_settled(planned.model.graph, *planned.device, planned.plan, replan, options);
    print_checks(cli, executable);
    const std::vector<std::string> files = write_kernels(planned.model.graph, executable, *output);
    if (cli.json) {
      nlohmann::ordered_json document{{"schema", "stitchwork.compile/1"},
                                      {"compiler", executable.compiler},
                                      {"folder", *output},
                                      {"files", files},
                                      {"kernels", kernels_json(executable)}};
      return cli.print(document);
    }
    cli.print(fmt::format("{}: {} compiled by {}, {}", *output, counted(executable.kernels.size(), "kernel"),
                          executable.compiler, counted(files.size(), "file")));
  });
}

}  // namespace stitchwork
