// ONNX models that leave something open are asked about, and the answers are remembered.
#include <gmock/gmock.h>

#include <QDialog>
#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include "core/base/file.h"
#include "gui/view/model_questions.h"
#include "tests/gui/gui_test.h"
#include "tests/support/onnx_model.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct OpenModels : WindowTest {
  /// Batch and length open.
  QString sizes() {
    OnnxModel m;
    m.input("x", {"batch", "length", 8}).output("y");
    m.node("Softmax", {"x"}, {"y"}, {{"axis", std::int64_t{-1}}});
    return written("sizes.onnx", m);
  }
  /// A shape that is an input, of a tensor whose first dimension is open.
  QString shape() {
    OnnxModel m;
    m.input("x", {"batch", 6}).input("shape", {2}, onnx::TensorProto::INT64).output("y");
    m.node("Reshape", {"x", "shape"}, {"z"});
    m.node("Tanh", {"z"}, {"y"});
    return written("shape.onnx", m);
  }
  QString written(const char* name, const OnnxModel& model) {
    write_file(path(name).toStdString(), model.bytes());
    return path(name);
  }
  ModelQuestions* dialog() {
    ModelQuestions* shown = nullptr;
    EXPECT_TRUE(wait_until([&] {
      for (auto* each : window->findChildren<ModelQuestions*>())
        if (each->isVisible()) shown = each;
      return shown != nullptr;
    }));
    return shown;
  }
  static QLineEdit* answer(ModelQuestions* dialog, const char* name) {
    return dialog->findChild<QLineEdit*>(QString("answer_") + name);
  }
  static void type(QLineEdit* edit, const QString& text) {
    edit->selectAll();
    QTest::keyClicks(edit, text);
  }
  static QPushButton* button(ModelQuestions* dialog, QDialogButtonBox::StandardButton which) {
    return dialog->findChild<QDialogButtonBox*>()->button(which);
  }
  void press(ModelQuestions* dialog, QDialogButtonBox::StandardButton which) {
    QTest::mouseClick(button(dialog, which), Qt::LeftButton);
    settle();
  }
  std::string parameter(int index) {
    const Computation& entry = window->session().planned()->entry();
    return to_text(entry.node(entry.parameters.at(static_cast<std::size_t>(index))).shape);
  }
};

TEST_F(OpenModels, EveryOpenDimensionIsAskedForWithASizeToBeginWith) {
  open(sizes());
  ModelQuestions* asked = dialog();
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(window->problems().model().rowCount(), 0);
  EXPECT_EQ(answer(asked, "batch")->text(), "1");
  EXPECT_EQ(answer(asked, "length")->text(), "128");
  type(answer(asked, "batch"), "4");
  press(asked, QDialogButtonBox::Open);
  ASSERT_NE(window->session().planned(), nullptr);
  EXPECT_EQ(parameter(0), "f32[4,128,8]");
}

TEST_F(OpenModels, AnswersAreRememberedForTheFile) {
  const QString file = sizes();
  open(file);
  type(answer(dialog(), "batch"), "3");
  press(dialog(), QDialogButtonBox::Open);
  ASSERT_NE(window->session().planned(), nullptr);
  window->close();
  window = std::make_unique<MainWindow>(folder.filePath("settings.ini"));
  window->show();
  open(file);
  EXPECT_EQ(answer(dialog(), "batch")->text(), "3");
  press(dialog(), QDialogButtonBox::Cancel);
  open(shape());  // another file has answers of its own
  EXPECT_EQ(answer(dialog(), "batch")->text(), "1");
}

TEST_F(OpenModels, WhatIsNoSizeCannotBeGiven) {
  open(sizes());
  ModelQuestions* asked = dialog();
  for (const char* wrong : {"many", "-1", "1.5", "99999999999"}) {
    type(answer(asked, "length"), wrong);
    EXPECT_FALSE(button(asked, QDialogButtonBox::Open)->isEnabled()) << wrong;
  }
  type(answer(asked, "length"), "16");
  EXPECT_TRUE(button(asked, QDialogButtonBox::Open)->isEnabled());
}

TEST_F(OpenModels, ValueIsAskedForOnceSizesAreKnownAndAWrongOneIsMendedThere) {
  open(shape());
  EXPECT_EQ(answer(dialog(), "shape"), nullptr);
  type(answer(dialog(), "batch"), "2");
  press(dialog(), QDialogButtonBox::Open);
  ModelQuestions* asked = dialog();
  ASSERT_NE(answer(asked, "shape"), nullptr);
  EXPECT_EQ(answer(asked, "batch")->text(), "2");
  EXPECT_EQ(answer(asked, "shape")->text(), "1,1");
  type(answer(asked, "shape"), "three");
  press(asked, QDialogButtonBox::Open);
  asked = dialog();
  EXPECT_THAT(asked->findChild<QLabel*>("answer_problem")->text().toStdString(),
              HasSubstr("'three' is no number"));
  type(answer(asked, "shape"), "3,4");
  press(asked, QDialogButtonBox::Open);
  ASSERT_NE(window->session().planned(), nullptr);
  EXPECT_EQ(parameter(0), "f32[2,6]");
  EXPECT_EQ(window->session().planned()->entry().parameters.size(), 1U);
}

TEST_F(OpenModels, WhoDoesNotAnswerReadsWhatIsMissing) {
  open(sizes());
  press(dialog(), QDialogButtonBox::Cancel);
  EXPECT_EQ(window->session().planned(), nullptr);
  EXPECT_THAT(child<QLabel>("problem_text")->text().toStdString(),
              HasSubstr("dimension 'batch' of input 'x' has no size; give them: --dim batch=N,length=N"));
  open("fig7");  // the window goes on
  EXPECT_NE(window->session().planned(), nullptr);
}

TEST_F(OpenModels, PlanOfSuchAModelIsOpenedWithTheSizesItWasMadeFor) {
  open(sizes());
  type(answer(dialog(), "batch"), "5");
  press(dialog(), QDialogButtonBox::Open);
  const std::string plan = plan_json(*window->session().planned());
  write_file(path("plan.json").toStdString(), plan);
  open("fig7");
  open(path("plan.json"));
  EXPECT_EQ(answer(dialog(), "batch")->text(), "5");
  press(dialog(), QDialogButtonBox::Open);
  ASSERT_FALSE(window->session().planned()->plan_file.isEmpty());
  EXPECT_EQ(plan_json(*window->session().planned()), plan);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
