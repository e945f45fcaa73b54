#include "simulator/cost/issue_slots.h"

#include "simulator/machine/program.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

TEST(IssueSlots, EveryRowNamesFormsOfTheInstructionTable) {
  for (const IssueRow& row : issue_rows()) {
    for (const std::string& form : expand_spelling(row.spelling)) EXPECT_GE(find_row(form), 0) << form;
    EXPECT_LE(row.slots.fp32 + row.slots.special, row.slots.all) << row.spelling;
  }
}

double slots_of_file(const std::string& file) {
  const ptx::Module module = fixture(file);
  double slots = 0;
  for (const ptx::Program& p : module.impl().programs)
    for (const ptx::BlockWeights& w : p.weights) slots += w.issue;
  return slots;
}

TEST(IssueSlots, FilesWithoutUnrolledLoopsHaveAboutTheMachineInstructionsOfPtxas) {
  // Instructions that nvdisasm shows of ptxas 13.0's code for sm_75, padding left out.
  const std::pair<const char*, int> kMachine[] = {
      {"vecadd.ptx", 15}, {"reduce.ptx", 75}, {"half.ptx", 70}, {"gather.ptx", 67}, {"math.ptx", 760}};
  for (const auto& [file, instructions] : kMachine) {
    EXPECT_GT(slots_of_file(file), 0.8 * instructions) << file;
    EXPECT_LT(slots_of_file(file), 1.2 * instructions) << file;
  }
}

TEST(IssueSlots, ADivisionTakesTimeButCountsAsOneInstruction) {
  const auto counters = [](const std::string& opcode) {
    const ptx::Module module = ptx::parse(wrap_ptx("ld.param.u64 %d1, [out]; mov.f32 %f1, 0f40400000; " +
                                                   opcode + " %f2, %f1, %f1; st.global.f32 [%d1], %f2; ret;"),
                                          "div.ptx");
    DeviceMemory memory;
    const DeviceAddress out = memory.allocate(4, "out");
    Launch launch{.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
    launch.arguments = {Argument::pointer(out), Argument::pointer(out)};
    return run(module, launch, memory, device("v100"), {}).counters;
  };
  const Counters multiplied = counters("mul.f32"), divided = counters("div.rn.f32");
  EXPECT_EQ(multiplied.inst_executed, 5u);
  EXPECT_EQ(divided.inst_executed, 5u);
  EXPECT_EQ(divided.inst_fp_32, 32u);
  EXPECT_EQ(multiplied.issue_slots, 3u);  // the product, the store and the end: copies take none
  EXPECT_EQ(divided.issue_slots, 13u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
