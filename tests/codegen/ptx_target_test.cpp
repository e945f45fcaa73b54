// PTX that asks for more than its compiler knows is that of the first architecture which has it all.
#include "codegen/compile/ptx_target.h"

#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

std::string written(const std::string& version, const std::string& target, const std::string& directives,
                    const std::string& body) {
  return ".version " + version + "\n.target " + target + "\n.visible .entry k()\n" + directives +
         ".maxntid 256, 1, 1\n{\n" + body + "}\n";
}
const std::string kCopy = "cp.async.cg.shared.global [%r1], [%rd1], 16;\n";

TEST(PtxTarget, ThatOfClustersIsSm90) {
  const std::string ptx = with_target(written("6.3", "sm_75", "", ""), "void SW_CLUSTER(4) k()");
  EXPECT_EQ(ptx, written("7.8", "sm_90", ".explicitcluster\n.reqnctapercluster 4, 1, 1\n", ""));
  EXPECT_EQ(least_architecture(ptx), 90);
}

TEST(PtxTarget, ThatOfAsynchronousCopiesIsSm80) {
  const std::string ptx = with_target(written("6.3", "sm_75", "", kCopy), "void k()");
  EXPECT_EQ(ptx, written("7.0", "sm_80", "", kCopy));
  EXPECT_EQ(least_architecture(ptx), 80);
}

TEST(PtxTarget, ThatOfBulkCopiesIsSm90) {
  const std::string bulk =
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];\n";
  const std::string ptx = with_target(written("6.3", "sm_75", "", bulk + kCopy), "void k()");
  EXPECT_EQ(ptx, written("8.0", "sm_90", "", bulk + kCopy));
  EXPECT_EQ(least_architecture(ptx), 90);
}

TEST(PtxTarget, ThatOfBothHasBoth) {
  EXPECT_EQ(with_target(written("6.3", "sm_75", "", kCopy), "void SW_CLUSTER(2) k()"),
            written("7.8", "sm_90", ".explicitcluster\n.reqnctapercluster 2, 1, 1\n", kCopy));
}

TEST(PtxTarget, OthersStayAsTheyAre) {
  const std::string ptx = written("6.3", "sm_75", "", "ret;\n");
  EXPECT_EQ(with_target(ptx, "void k()"), ptx);
  EXPECT_EQ(least_architecture(ptx), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
