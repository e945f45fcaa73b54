// Another tool's profile in the window: held to each plan, a launch selects its step.
#include <gmock/gmock.h>

#include "core/base/file.h"
#include "gui/model/tables.h"
#include "gui/view/profile_panel.h"
#include "tests/gui/gui_test.h"
#include "tests/support/profile_files.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct ProfileInTheWindow : WindowTest {
  QString cell(int row, int column) {
    return window->profile_panel().table().proxy().index(row, column).data().toString();
  }
  void join(const std::string& text) {
    const QString file = path("trace.json");
    write_file(file.toStdString(), text);
    window->session().join_profile(file);
    settle();
  }
};

TEST_F(ProfileInTheWindow, IsHeldToEachPlanOfTheModel) {
  open("fig7");
  join(testing::jax_trace(
           {{"power_fusion", "power.1", 5}, {"multiply_fusion", "multiply.1", 7}, {"other", "", 3}}, 6,
           "jit_f")
           .dump());
  ASSERT_NE(window->session().profiled(), nullptr);
  ASSERT_EQ(window->profile_panel().table().model().rowCount(), 3);
  EXPECT_EQ(cell(0, 2), us(6));  // 5, 6 and 7 in turn
  EXPECT_EQ(cell(0, 4), "power.1");
  EXPECT_EQ(cell(0, 5), "instruction");
  EXPECT_EQ(cell(0, 6), "k0");
  EXPECT_EQ(cell(1, 6), "k0") << "AStitch has one kernel";
  EXPECT_EQ(cell(2, 6), "");
  EXPECT_THAT(window->profile_panel().said().toStdString(), HasSubstr("JAX"));
  window->session().set_planner("unfused");
  settle();
  ASSERT_EQ(window->profile_panel().table().model().rowCount(), 3);
  EXPECT_NE(cell(0, 6), cell(1, 6));
  EXPECT_FALSE(cell(0, 3).isEmpty());
  window->profile_panel().table().view().selectRow(1);
  const int step = window->selection().current().step;
  ASSERT_GE(step, 0);
  EXPECT_EQ(QString::fromStdString(window->session().planned()->plan_step(step).id), cell(1, 6));
  open("softmax_tiny");
  EXPECT_EQ(window->profile_panel().table().model().rowCount(), 0) << "it was another model's";
}

TEST_F(ProfileInTheWindow, AForeignFileIsAProblemAndChangesNothing) {
  open("fig7");
  join("{\"traceEvents\": [");
  EXPECT_EQ(window->session().profile(), nullptr);
  ASSERT_GE(window->problems().model().rowCount(), 1);
  EXPECT_EQ(window->profile_panel().table().model().rowCount(), 0);
  EXPECT_NE(window->session().planned(), nullptr);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
