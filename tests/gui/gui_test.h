// What tests of the workbench share: a window on a scratch settings file, and waiting for its jobs.
#pragma once

#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "gui/main_window.h"

namespace stitchwork::gui {

inline bool wait_until(const std::function<bool()>& done, int ms = 60000) {
  return QTest::qWaitFor(done, ms);
}

/// A window, shown; `open` waits until the plan or the problem is there.
class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(folder.isValid());
    window = std::make_unique<MainWindow>(folder.filePath("settings.ini"));
    window->show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(window.get()));
  }
  void settle() {
    ASSERT_TRUE(wait_until([&] { return !window->session().jobs().any_busy(); }));
  }
  void open(const QString& name) {
    window->open(name);
    settle();
  }
  template <typename Widget>
  Widget* child(const char* name) {
    auto* found = window->findChild<Widget*>(name);
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  void click(const char* name) {
    auto* button = child<QAbstractButton>(name);
    ASSERT_TRUE(button->isEnabled()) << name;
    QTest::mouseClick(button, Qt::LeftButton);
  }
  /// Chooses an entry of a combo box as a person does: with the keyboard.
  void choose(const char* name, const QString& entry) {
    auto* box = child<QComboBox>(name);
    ASSERT_GE(box->findText(entry), 0) << entry.toStdString();
    box->setCurrentIndex(box->findText(entry));
    emit box->textActivated(entry);
    emit box->activated(box->currentIndex());
  }
  QString path(const QString& name) const { return folder.filePath(name); }

  QTemporaryDir folder;
  std::unique_ptr<MainWindow> window;
};

}  // namespace stitchwork::gui
