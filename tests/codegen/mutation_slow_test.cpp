// Whether the checks catch what they are for: deliberate faults in generated code, each of which the
// sanitizers or the judge of results must find.
#include <functional>
#include <iostream>
#include <regex>

#include "codegen/compile/compiler.h"
#include "tests/codegen/mutated.h"

namespace stitchwork {
namespace TEST_FILE {

/// What is changed in the CUDA C++ of a subject: the pattern's first match, from the kernel on unless it is
/// only in the code before that, or every match.
struct Fault {
  const char* name;
  const char* subject;
  const char* pattern;
  const char* replacement;
  bool all = false;
};

// Names of values are those of the subject's graph. A fault that leaves results right does not belong here:
// the largest of a softmax's row may be any number.
const Fault kFaults[] = {
    // Bounds.
    {"a guard lets one row more in", "warp rows", "row < 67", "row < 68"},
    {"the last row is left out", "warp rows", "row < 67", "row < 66", true},
    {"a guard lets one column more in", "warp rows", "(v7_acc = 0[^]*?)col < 77", "$1col < 78"},
    {"the last column is left out of a sum", "warp rows", "(v7_acc = 0[^]*?)col < 77", "$1col < 76"},
    {"the last column is left out of a result", "warp rows", "(v5 / v7_row[^]*$)|(// v9\n[^]*?)col < 77",
     "$1$2col < 76"},
    {"lanes begin at one", "warp rows", "thread % 96", "thread % 96 + 1", true},
    {"a task less", "warp rows", "\\* 7 / 4\\);\n(\\s*for)", "* 7 / 4) - 1;\n$1"},
    {"tasks begin at the second", "warp rows", "(first_task = [^;]*);", "$1 + 1;"},
    {"a block computes its neighbour's tasks", "block rows", "first_task; task < end_task",
     "first_task + 1; task < end_task + 1"},
    {"a loop a turn too short", "block rows", "(v12_acc = 0[^]*?)i < 3", "$1i < 2"},
    {"a tail of a vector is dropped", "staged rows", "(sw_store_part\\(&[^;]*) - row\\)", "$1 - 1 - row)"},
    {"a tail of a vector is stored whole", "staged rows", "sw_store_part\\((&[^,]*), ([^,]*),[^;]*;",
     "sw_store($1, $2);"},
    // Indices.
    {"a wrong stride of a tile", "staged rows", "_tile\\[local_row \\* 33", "_tile[local_row * 32"},
    {"a wrong stride of rows", "block rows", "row \\* 2100 \\+ col", "row * 2099 + col"},
    {"a wrong stride of columns", "columns", "col \\* 70", "col * 69"},
    {"columns are skipped", "columns", "col \\+= 32", "col += 33"},
    {"a transpose is none", "transposed", "x\\[[^\\]]*\\]", "x[row]"},
    {"quotient and remainder change places", "transposed", "x\\[sw_quotient([^+]*)\\+ sw_remainder",
     "x[sw_remainder$1+ sw_quotient"},
    {"a broadcast along the wrong dimension", "transposed", "(\\bs_?)\\[sw_quotient", "$1[sw_remainder"},
    {"padding begins a row early", "padded", ">= 3 ", ">= 2 ", true},
    {"padding has another value", "padded", "x_v : 2\\.0f", "x_v : 0.0f"},
    {"a concatenation is off by one", "padded", "- 44", "- 43"},
    {"a label is off by one", "loss", "(\\(v13_?) == v11_", "$1 + 1 == v11_"},
    // Accumulators and reducers.
    {"a sum begins at one", "warp rows", "v7_acc = 0\\.0f", "v7_acc = 1.0f"},
    {"a maximum begins at zero", "largest", "_acc = sw_float\\(0xff800000u\\)", "_acc = 0.0f"},
    {"lanes without a part have another identity", "largest", "_acc, sw_float\\(0xff800000u\\)",
     "_acc, 0.0f"},
    {"a sum is a maximum", "warp rows", "sw_row_reduce<SwAdd", "sw_row_reduce<SwMaximum"},
    {"a sum keeps the last term alone", "block rows", "v12_acc \\+=", "v12_acc ="},
    {"operands change places", "block rows", "\\(v0_v - v5_row\\)", "(v5_row - v0_v)"},
    {"another divisor", "block rows", "/ 2100\\.0f", "/ 2048.0f"},
    {"a sum in 16 bits", "half sums", "(\\w+_acc) \\+= (\\w+);",
     "$1 += $2; asm(\"{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}\" : \"+f\"($1));"},
    {"an accumulator is not set to zero", "sums across", "v46_rows\\[i\\] = 0\\.0f;", ";"},
    // Shuffles and workspace of a reduction.
    {"a shuffle step is missing", "block rows", "mask > 0; mask /= 2", "mask > 1; mask /= 2"},
    {"shuffles begin a step late", "block rows", "mask = kLanes / 2", "mask = kLanes / 4"},
    {"shuffles of half the width", "sums across", "sw_warp_reduce<SwAdd, 32>", "sw_warp_reduce<SwAdd, 16>"},
    {"lanes without a part add their own", "warp rows", "workspace\\[slot\\] : identity",
     "workspace[slot] : v"},
    {"the last warp's part is left out", "block rows", "lane < warps && slot", "lane < warps - 1 && slot"},
    {"warps share a place", "block rows", "workspace\\[warp\\] = v", "workspace[0] = v"},
    {"slots of two reductions overlap", "block rows", "(v12_acc, 0\\.0f, \\(float\\*\\)\\(shared \\+) \\d+",
     "$1 32"},
    {"a slice of the columns is left out", "columns", "slice < kSlices; \\+\\+slice",
     "slice < kSlices - 1; ++slice"},
    // Barriers of a block.
    {"no barrier within a reduction", "block rows", "(workspace\\[warp\\] = v;\\s*)__syncthreads\\(\\);",
     "$1"},
    {"no barrier between slices", "columns", "(workspace\\[threadIdx\\.x\\] = v;\\s*)__syncthreads\\(\\);",
     "$1"},
    {"no barrier behind a tile's loads", "staged rows", "(sw_store\\(&v0_tile[^]*?)__syncthreads\\(\\);",
     "$1"},
    {"no barrier before a tile's stores", "staged rows", "(v9_tile\\[[^]*?)__syncthreads\\(\\);", "$1"},
    {"no barrier between tasks", "bulk rows", "__syncthreads\\(\\);(\\s*\\}\\s*\\}\\s*\\}\\s*)$", "$1"},
    {"no barrier between two sums across", "sums across", "if \\(i > 0\\) __syncthreads\\(\\);", ""},
    // Asynchronous copies.
    {"copies are not waited for", "copied rows", "sw_wait_for_copies<2>\\(\\);", ""},
    {"copies are waited for a group late", "copied rows", "sw_wait_for_copies<2>", "sw_wait_for_copies<3>"},
    {"copies are not committed", "copied rows", "sw_commit_copies\\(\\);", "", true},
    {"no barrier behind copies", "copied rows", "(sw_wait_for_copies<2>\\(\\);\\s*)__syncthreads\\(\\);",
     "$1"},
    {"the stage does not advance", "copied rows", "stage = stage < 2 \\? stage \\+ 1 : 0", "stage = 0"},
    {"copies go to the stage that is read", "copied rows", "stage > 0 \\? stage - 1 : 2", "stage"},
    {"a bulk copy is not waited for", "bulk rows", "sw_wait_for_bulk\\(copied[^;]*;", ""},
    {"the parity stays", "bulk rows", "parity \\^= stage == 2", "parity ^= 0"},
    {"another stage is waited for", "bulk rows", "copied \\+ stage \\* 2320, parity", "copied, parity"},
    {"a bulk copy is short", "bulk rows", "(\\(lead \\+ 519\\) / 4 \\* 4 \\* 4)", "$1 - 16", true},
    {"an mbarrier is not initialised", "bulk rows", "n < 3; \\+\\+n", "n < 2; ++n"},
    // Clusters.
    {"no barrier of the cluster", "cluster rows",
     "sw_cluster_arrive\\(\\);\\s*sw_cluster_wait\\(\\);(\\s*v = identity)", "$1"},
    {"every block says it is the first", "cluster rows", "rank \\* warps", "0 * warps"},
    {"the first block gets nothing", "cluster rows", "lane < kBlocks\\)", "lane < kBlocks && lane > 0)"},
    {"two blocks say they are the same", "cluster rows", "rank = \\(int\\)blockIdx\\.x % 4",
     "rank = (int)blockIdx.x % 4 / 2 * 2"},
    {"a block's part of the row twice", "cluster rows", "lane = rank \\* 256 \\+ thread", "lane = thread"},
    // Several blocks.
    {"no grid barrier", "split rows", "sw_grid_barrier\\(barrier\\);", ""},
    {"no fence before the flag", "sums across",
     "asm volatile\\(\"fence\\.acq_rel\\.gpu;\" : : : \"memory\"\\);", ""},
    {"the flag is set before all have come", "phases", "(sw_grid_barrier\\([^{]*\\{\\s*)__syncthreads\\(\\);",
     "$1"},
    {"threads do not wait for the flag", "split rows",
     "(\"memory\"\\);\\s*\\}\\s*)__syncthreads\\(\\);(\\s*\\})", "$1$2"},
    {"a partial is dropped", "split rows", "(float v7_? = 0\\.0f;[^]*?)s < 5", "$1s < 4"},
    {"partials share a place", "split rows", "v7_partials\\[segment \\* 3 \\+ row\\]", "v7_partials[row]"},
    {"segments overlap", "split rows", "segment \\* 4001", "segment * 4000", true},
    {"a partial of another block", "sums across",
     "v46_partials\\[\\(int\\)blockIdx\\.x \\* 96 \\+ col\\] =", "v46_partials[col] ="},
    {"atomics twice", "atomic columns", "(SwAtomic<SwAdd>::into\\(&v2[^;]*;)", "$1 $1"},
    {"atomics by every lane", "atomic columns", " && lane == 0", ""},
    {"no atomics", "atomic columns", "SwAtomic<SwAdd>::into\\(&(v2\\[row\\]), ([^;]*)\\);", "$1 += $2;"},
    // Results.
    {"a second result is not stored", "loss", "v20\\[row\\] = v20_2;", ""},
    {"a result is stored for the first task alone", "loss", "v10\\[row \\*", "if (task == 0) v10[row *"},
};

/// The place of the kernel's own code behind the prelude.
std::size_t kernel_begins(const std::string& cuda) {
  const std::size_t at = cuda.find("extern \"C\" __global__");
  SW_CHECK(at != std::string::npos, "no kernel in\n{}", cuda);
  return at;
}

std::string changed(const std::string& cuda, const Fault& fault) {
  const std::regex pattern(fault.pattern);
  const auto flags =
      fault.all ? std::regex_constants::format_default : std::regex_constants::format_first_only;
  const std::size_t body = kernel_begins(cuda);
  const std::string kernel = cuda.substr(body), before = cuda.substr(0, body);
  if (std::regex_search(kernel, pattern))
    return before + std::regex_replace(kernel, pattern, fault.replacement, flags);
  return std::regex_replace(before, pattern, fault.replacement, flags) + kernel;
}

class MutationSlow : public ::testing::TestWithParam<std::size_t> {};

TEST_P(MutationSlow, FaultsInGeneratedCodeAreCaught) {
  SKIP_WITHOUT_COMPILER();
  const testing::Subject& subject = testing::mutation_subjects()[GetParam()];
  const testing::Made made = testing::made(subject);
  Judge judge(made.graph, made.inputs);
  ASSERT_EQ(testing::verdict(made, made.executable, judge), "") << "without a fault";

  const PtxCompiler compiler = find_compiler("");
  const auto with_source = [&](const std::string& cuda) {
    Executable executable = made.executable;
    CompiledKernel& kernel = executable.kernels[0];
    kernel.cuda = cuda;
    kernel.ptx = compile_ptx(compiler, cuda, compile_architecture(compiler, made.target));
    std::smatch entry;
    SW_CHECK(std::regex_search(kernel.ptx, entry, std::regex("\\.entry (\\w+)")), "no entry");
    kernel.entry = entry[1];
    return executable;
  };
  const std::string cuda = made.executable.kernels[0].cuda;
  ASSERT_EQ(testing::verdict(made, with_source(cuda), judge), "") << "as printed to be read";
  for (const Fault& fault : kFaults) {
    if (fault.subject != subject.name) continue;
    const std::string faulty = changed(cuda, fault);
    if (faulty == cuda) {
      ADD_FAILURE() << "'" << fault.name << "' does not apply to\n" << cuda.substr(kernel_begins(cuda));
      continue;
    }
    const Executable executable = with_source(faulty);
    EXPECT_NE(executable.kernels[0].ptx, made.executable.kernels[0].ptx) << fault.name;
    const std::string caught = testing::verdict(made, executable, judge);
    EXPECT_NE(caught, "") << "'" << fault.name << "' in " << subject.name << " is not caught";
    std::cout << fmt::format("{}, {}: {}\n", subject.name, fault.name, caught.substr(0, 150));
  }
}

INSTANTIATE_TEST_SUITE_P(Subjects, MutationSlow,
                         ::testing::Range<std::size_t>(0, testing::mutation_subjects().size()),
                         [](const auto& subject) {
                           std::string name = testing::mutation_subjects()[subject.param].name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(Mutation, EverySubjectHasFaultsAndEveryFaultASubject) {
  EXPECT_GE(std::size(kFaults), 30u);
  std::set<std::string> subjects, with_faults;
  for (const testing::Subject& subject : testing::mutation_subjects()) subjects.insert(subject.name);
  for (const Fault& fault : kFaults) with_faults.insert(fault.subject);
  EXPECT_EQ(subjects, with_faults);
}

/// Memory that nothing sets to zero is no fault of a kernel's text.
TEST(Mutation, AccumulatorsThatNothingSetsToZeroAreCaught) {
  SKIP_WITHOUT_COMPILER();
  const auto& subjects = testing::mutation_subjects();
  const testing::Subject& subject = *std::find_if(
      subjects.begin(), subjects.end(), [](const testing::Subject& s) { return s.name == "atomic columns"; });
  testing::Made made = testing::made(subject);
  Judge judge(made.graph, made.inputs);
  const auto is_memset = [](const PlanStep& step) { return step.kind == StepKind::kMemset; };
  ASSERT_EQ(std::erase_if(made.executable.plan.steps, is_memset), 1u);
  EXPECT_NE(testing::verdict(made, made.executable, judge), "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
