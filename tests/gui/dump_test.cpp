// Dumps of today's compilers in the workbench: opening one runs its kernels in the simulator.
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

struct Dumps : WindowTest {
  /// Calls `then` with what the plan's job says.
  template <typename Then>
  void on_progress(Then then) {
    QObject::connect(&window->session().jobs(), &Jobs::progressed, window.get(),
                     [then](int lane, double fraction, const QString& what) {
                       if (lane == Jobs::kPlan) then(fraction, what);
                     });
  }
  const QString dump = STITCHWORK_SOURCE_DIR "/tests/data/dumps/bert_layer-a100";
};

TEST_F(Dumps, TellEveryStepThatRuns) {
  std::vector<double> fractions;
  QStringList said;
  on_progress([&](double fraction, const QString& what) {
    fractions.push_back(fraction);
    said.push_back(what);
  });
  open(dump);
  const PlannedPtr planned = window->session().planned();
  ASSERT_NE(planned, nullptr);
  EXPECT_GT(planned->plan->predicted_us, 0);
  ASSERT_FALSE(fractions.empty());
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_GE(fractions.front(), 0);
  EXPECT_LT(fractions.back(), 1);
  EXPECT_FALSE(said.contains(""));
}

TEST_F(Dumps, StopInTheMiddle) {
  bool stopped = false;
  on_progress([&](double, const QString&) {
    if (!std::exchange(stopped, true)) window->session().cancel();
  });
  open(dump);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(wait_until([&] { return window->session().jobs().threads() == 0; }));
  EXPECT_EQ(window->session().planned(), nullptr);
  EXPECT_EQ(window->problems().model().rowCount(), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
