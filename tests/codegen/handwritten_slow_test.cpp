// Generated kernels against what a person wrote for the same shape (tests/handwritten/), both in the
// simulator.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/compile/ptxas.h"
#include "tests/codegen/judged.h"

namespace stitchwork::testing {
namespace TEST_FILE {

struct Case {
  const char* workload;
  WorkloadSize size;
  /// Launch of the hand-written kernel.
  std::int64_t grid = 1;
  std::int64_t block_rows = 8;    ///< BLOCK_ROWS
  std::int64_t partial_rows = 0;  ///< of its scratch, if it takes any
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.workload << " " << c.size.rows << "x" << c.size.cols << " " << c.size.dtype;
}

std::string text_of(const std::string& name) {
  std::ifstream in(std::string(STITCHWORK_SOURCE_DIR) + "/tests/handwritten/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Handwritten {
  sim::LaunchResult launched;
  Literal output;
};

Handwritten run(const Case& c, const Graph& graph, const Device& target) {
  const PtxCompiler compiler = *find_nvrtc();
  const int architecture = compile_architecture(compiler, target);
  const std::string source =
      fmt::format("{}#define ROWS {}\n#define COLS {}\n#define BLOCK_ROWS {}\n{}{}",
                  c.size.dtype == "bf16" ? "#define BF16\n" : "", c.size.rows, c.size.cols, c.block_rows,
                  text_of("common.cuh"), text_of(std::string(c.workload) + ".cu"));
  const std::string ptx = compile_ptx(compiler, source, architecture);
  sim::DeviceMemory memory;
  sim::Launch launch;
  launch.kernel = "kernel";
  launch.grid.x = static_cast<std::uint32_t>(c.grid);
  launch.block.x = 256;
  for (Literal& input : fillers(graph))
    launch.arguments.push_back(sim::Argument::pointer(memory.adopt(std::move(input.bytes), "input")));
  const Computation& entry = graph.entry_computation();
  const Node& root = entry.node(entry.root);
  Handwritten result;
  result.output = Literal::zeros(entry.node(root.op == Op::kTuple ? root.operands[0] : root.id).shape);
  const sim::DeviceAddress y = memory.adopt(std::move(result.output.bytes), "y");
  launch.arguments.push_back(sim::Argument::pointer(y));
  if (c.partial_rows > 0) {
    for (const std::int64_t words : {c.partial_rows * c.size.cols, c.size.cols}) {
      const auto bytes = static_cast<std::size_t>(words) * 4;
      const sim::DeviceAddress scratch = memory.allocate(bytes, "scratch");
      memory.fill(scratch, bytes, std::byte{0});
      launch.arguments.push_back(sim::Argument::pointer(scratch));
    }
  }
  sim::Options options;
  if (const auto use = run_ptxas(find_ptxas(), ptx, architecture)) {
    EXPECT_EQ(use->spill_bytes, 0);
    options.registers_per_thread = use->registers;
  }
  result.launched = sim::run(ptx::parse(ptx, "handwritten.ptx"), launch, memory, target, options);
  result.output.bytes = memory.take(y);
  return result;
}

class GeneratedAgainstHandwritten : public ::testing::TestWithParam<Case> {};

TEST_P(GeneratedAgainstHandwritten, KernelsNeedHardlyFewerInstructionsAndSectors) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed: it knows CUDA's functions without headers";
  const Case& c = GetParam();
  const Device& target = device("h200");
  const Graph graph = graph_of(workload(c.workload).hlo(c.size));
  const Handwritten theirs = run(c, graph, target);
  ASSERT_TRUE(theirs.launched.findings.empty()) << theirs.launched.findings[0].message;
  const Judged ours = judge(graph, target);
  ASSERT_FALSE(ours.outputs.empty());
  std::vector<Literal> outputs = ours.outputs;
  outputs[0] = theirs.output;
  const CheckResult same = Judge(graph, fillers(graph)).check(outputs);
  EXPECT_TRUE(same.ok) << same.message;
  const sim::Counters& t = theirs.launched.counters;
  const double instructions = ours.instructions / static_cast<double>(t.inst_executed);
  const double sectors =
      ours.dram_sectors / static_cast<double>(t.dram_read_transactions + t.dram_write_transactions);
  const double requested =
      (ours.load_sectors + ours.store_sectors) / static_cast<double>(t.gld_transactions + t.gst_transactions);
  fmt::print(
      "{} {}x{} {}: instructions {:.3f} (theirs {:.2f} an element), DRAM sectors {:.3f}, requested {:.3f}, "
      "time "
      "{:.2f} against {:.2f} us\n",
      c.workload, c.size.rows, c.size.cols, c.size.dtype, instructions,
      static_cast<double>(t.inst_executed) * 32 / static_cast<double>(c.size.rows * c.size.cols), sectors,
      requested, ours.time_us, theirs.launched.time_us);
  EXPECT_LE(instructions, 1.2);
  EXPECT_LE(ours.time_us, 1.05 * theirs.launched.time_us);
  EXPECT_LE(sectors, 1.05);
  EXPECT_LE(requested, 1.05);
}

INSTANTIATE_TEST_SUITE_P(Kernels, GeneratedAgainstHandwritten,
                         ::testing::Values(Case{"softmax", {4096, 1024, "f32"}, 512},
                                           Case{"softmax", {4096, 1024, "bf16"}, 512},
                                           Case{"layer_norm", {16384, 768, "f32"}, 2048},
                                           Case{"layer_norm", {16384, 768, "bf16"}, 2048},
                                           Case{"residual_norm", {16384, 768, "f32"}, 2048},
                                           Case{"residual_norm", {16384, 768, "bf16"}, 2048},
                                           Case{"column_sum", {16384, 768, "f32"}, 6 * 128, 128, 128},
                                           Case{"column_sum", {16384, 768, "bf16"}, 3 * 128, 128, 128}),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.workload, info.param.size.dtype);
                         });

}  // namespace TEST_FILE
}  // namespace stitchwork::testing
