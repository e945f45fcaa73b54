// What `korch` chooses from, as text: states are counted, programs are those that CBC reads.
#include <coin/Cbc_C_Interface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "analysis/planners/fission/program_text.h"
#include "core/base/file.h"
#include "tests/support/fission_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

fission::Window antichain(int size) {
  fission::Window window;
  for (int i = 0; i < size; ++i) {
    window.ops.push_back(i);
    window.producers.push_back(0);
    window.ancestors.push_back(fission::only(i));
    window.outside.push_back(0);
  }
  return window;
}

TEST(FissionText, StatesOfAChainAreOneMoreThanItsPrimitivesThoseOfOthersAllSubsets) {
  fission::Window chain = antichain(20);
  for (int i = 1; i < chain.size(); ++i)
    chain.ancestors[static_cast<std::size_t>(i)] |= 2 * fission::only(i) - 1;
  EXPECT_EQ(fission::states(chain, 1000), 21);
  EXPECT_EQ(fission::states(antichain(10), 2000), 1024);
  EXPECT_EQ(fission::states(antichain(64), 2000), std::nullopt);
}

TEST(FissionText, TheSoftmaxBetweenProductsHasSixStatesAndItsExponentialTwiceAmongWhatIsChosen) {
  const Graph graph = testing::softmax_between_products();
  const std::vector<fission::WindowProgram> programs = fission::programs(graph, device("v100-sxm2"));
  const Computation& entry = graph.entry_computation();
  const std::string primitives = fission::primitives_text(entry, programs);
  EXPECT_THAT(primitives, HasSubstr("window 0: mx to p, 5 primitives, 6 execution states\n"));
  EXPECT_THAT(primitives, HasSubstr("  p f32[512,512], reads ex sum, needed outside\n"));
  const std::string candidates = fission::candidates_text(entry, programs);
  EXPECT_THAT(candidates, HasSubstr("4 chosen"));
  std::size_t lines = 0, twice = 0;
  for (std::size_t at = 0; at < candidates.size(); at = candidates.find('\n', at) + 1) {
    const std::string line = candidates.substr(at, candidates.find('\n', at) - at);
    lines += line.starts_with("  ") || line.starts_with("* ");
    twice += line.starts_with("* ") && line.substr(0, line.find(';')).find("ex") != std::string::npos;
  }
  EXPECT_EQ(lines, programs.at(0).candidates.size());
  EXPECT_EQ(twice, 2u);
}

/// Random programs with equal rows, factors, and columns that are no binaries.
ilp::BinaryProgram random_program(std::mt19937& random) {
  ilp::BinaryProgram program{random() % 2 == 0, {}, 8, {}};
  for (int c = 0; c < 10; ++c) program.costs.push_back(static_cast<double>(random() % 200) / 8 - 5);
  for (int r = 0; r < 6; ++r) {
    ilp::Row row;
    for (int c = 0; c < 10; ++c)
      if (random() % 2 == 0) row.terms.push_back({c, static_cast<double>(random() % 5) - 2});
    if (random() % 2 == 0) row.least = -1;
    if (random() % 2 == 0) row.most = 2;
    program.rows.push_back(row);
  }
  return program;
}

TEST(FissionText, CbcReadsTheProgramThatItSolves) {
  std::mt19937 random(5);
  const std::string file = ::testing::TempDir() + "fission_text_program.lp";
  std::vector<std::string> names;
  for (int c = 0; c < 10; ++c) names.push_back("x" + std::to_string(c));
  for (int trial = 0; trial < 60; ++trial) {
    const ilp::BinaryProgram program = random_program(random);
    const ilp::Solution solved = ilp::solve(program, 10'000);
    write_file(file, ilp::to_lp(program, names));
    const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
    for (const char* level : {"log", "slog"}) Cbc_setParameter(model.get(), level, "0");
    ASSERT_EQ(Cbc_readLp(model.get(), file.c_str()), 0) << read_file(file);
    Cbc_solve(model.get());
    ASSERT_EQ(solved.optimal, Cbc_isProvenOptimal(model.get()) != 0) << "trial " << trial;
    // The reader turns what is maximised around.
    if (!solved.optimal) continue;
    ASSERT_NEAR(std::abs(Cbc_getObjValue(model.get())), std::abs(solved.bound), 1e-6)
        << "trial " << trial << "\n"
        << read_file(file);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
