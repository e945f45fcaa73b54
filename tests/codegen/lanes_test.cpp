// Kernels whose groups run on block ranges of their own, or in turn on the same blocks, compute what the
// graph says and race nowhere.
#include <fmt/format.h>

#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

/// Independent normalisations over rows and columns, a split reduction and element-wise ops: lanes with
/// shared memory, with grid barriers, and with neither.
std::string independent() {
  return R"(HloModule independent
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[37,100] parameter(0)
  y = f32[90,33] parameter(1)
  z = f32[2,20000] parameter(2)
  v = f32[5000] parameter(3)
  zero = f32[] constant(0)
  ex = f32[37,100] exponential(x)
  sx = f32[37] reduce(ex, zero), dimensions={1}, to_apply=sum
  wx = f32[37,100] broadcast(sx), dimensions={0}
  nx = f32[37,100] divide(ex, wx)
  ey = f32[90,33] exponential(y)
  sy = f32[90] reduce(ey, zero), dimensions={1}, to_apply=sum
  wy = f32[90,33] broadcast(sy), dimensions={0}
  ny = f32[90,33] divide(ey, wy)
  cy = f32[33] reduce(y, zero), dimensions={0}, to_apply=sum
  sz = f32[2] reduce(z, zero), dimensions={1}, to_apply=sum
  wz = f32[2,20000] broadcast(sz), dimensions={0}
  nz = f32[2,20000] subtract(z, wz)
  nv = f32[5000] negate(v)
  ROOT t = (f32[37,100], f32[90,33], f32[33], f32[2,20000], f32[5000]) tuple(nx, ny, cy, nz, nv)
}
)";
}

TEST(Lanes, IndependentGroupsOfOneKernelAreRight) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(independent());
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  ASSERT_EQ(plan.kernels.size(), 1u);
  int lanes = 0;
  for (const Group& group : plan.kernels[0].groups) lanes = std::max(lanes, group.lane + 1);
  EXPECT_GE(lanes, 4);
  EXPECT_EQ(plan.kernels[0].launch.grid_barriers, 1);
  testing::expect_correct(graph, plan);
}

TEST(Lanes, GroupsInTurnOnTheSameBlocksAreRight) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(independent());
  // All from block 0: shared memory is then of every group of a phase.
  FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  KernelPlan& kernel = plan.kernels.at(0);
  kernel.launch.grid = 1;
  for (Group& group : kernel.groups) {
    group.lane = 0;
    group.deal.first_block = 0;
    kernel.launch.grid = std::max(kernel.launch.grid, group.deal.blocks());
  }
  std::int64_t offset = 0;
  for (MemorySlot& slot : kernel.shared) {
    slot.offset = offset;
    offset += (slot.bytes + 15) / 16 * 16;
  }
  kernel.launch.shared_bytes = offset;
  const std::vector<Verdict> problems = verify(graph, device("v100"), plan);
  ASSERT_TRUE(problems.empty()) << problems[0].why;
  testing::expect_correct(graph, plan);
}

TEST(Lanes, LoopsAreGuardedByTheirBlocksAndBarriersAreNot) {
  const Graph graph = testing::graph_of(independent());
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  const std::string source = to_cuda(graph, build_schedule(graph, plan.kernels.at(0)), false);
  EXPECT_NE(source.find("if (((int)blockIdx.x - "), std::string::npos) << source;
  EXPECT_NE(source.find("\n  sw_grid_barrier(barrier);"), std::string::npos) << source;
}

/// An optimiser's update of tensors of all sizes.
TEST(Lanes, AnOptimiserUpdateIsRight) {
  SKIP_WITHOUT_COMPILER();
  const std::vector<std::int64_t> sizes{1, 7, 64, 1000, 5000, 2048, 33};
  std::string entry =
      "HloModule adam\nENTRY main {\n rate = f32[] parameter(0)\n decay = f32[] constant(0.9)\n"
      " small = f32[] constant(1e-3)\n";
  std::string types, names;
  int parameter = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string type = fmt::format("f32[{}]", sizes[i]);
    for (const char* name : {"p", "g", "m", "v"})
      entry += fmt::format(" {}{} = {} parameter({})\n", name, i, type, parameter++);
    for (const char* name : {"rate", "decay", "small"})
      entry += fmt::format(" {0}{1} = {2} broadcast({0}), dimensions={{}}\n", name, i, type);
    entry += fmt::format(
        " md{0} = {1} multiply(m{0}, decay{0})\n mn{0} = {1} add(md{0}, g{0})\n gg{0} = {1} multiply(g{0}, "
        "g{0})\n"
        " vd{0} = {1} multiply(v{0}, decay{0})\n va{0} = {1} abs(vd{0})\n vn{0} = {1} add(va{0}, gg{0})\n"
        " sq{0} = {1} sqrt(vn{0})\n de{0} = {1} add(sq{0}, small{0})\n up{0} = {1} divide(mn{0}, de{0})\n"
        " st{0} = {1} multiply(up{0}, rate{0})\n pn{0} = {1} subtract(p{0}, st{0})\n",
        i, type);
    types += fmt::format("{0}{1}, {1}, {1}", i ? ", " : "", type);
    names += fmt::format("{0}pn{1}, mn{1}, vn{1}", i ? ", " : "", i);
  }
  const Graph graph = testing::graph_of(entry + fmt::format(" ROOT t = ({}) tuple({})\n}}\n", types, names));
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  EXPECT_EQ(plan.kernels.size(), 1u);
  testing::expect_correct(graph, plan);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
