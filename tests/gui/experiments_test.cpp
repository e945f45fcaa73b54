// The stores page: trials, two of them compared, the report.
#include <gmock/gmock.h>

#include <QFileInfo>
#include <set>

#include "core/base/file.h"
#include "experiments/report.h"
#include "experiments/report_data.h"
#include "experiments/store.h"
#include "figures/data/forms.h"
#include "figures/data/renderer.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct Experiments : WindowTest {
  void record_two_trials() {
    Store store = Store::open(path("runs.db").toStdString());
    const Model model = load_model("softmax_tiny");
    for (const char* planner : {"xla", "astitch"}) {
      TrialSpec spec;
      spec.planner = planner;
      spec.backend = "model";
      store.record("adhoc", model, spec, run_trial(model, spec));
    }
  }
};

TEST_F(Experiments, TwoTrialsOfAStoreAreCompared) {
  record_two_trials();
  window->open(path("runs.db"));
  settle();
  auto& trials = window->experiments().trials();
  ASSERT_EQ(trials.model().rowCount(), 2) << window->experiments().message().toStdString();
  const ReportData data = read_report(Store::open(path("runs.db").toStdString()), "");
  for (int row = 0; row < 2; ++row) {
    const ReportValue* time = data.sections.at(0).trials.at(static_cast<std::size_t>(row)).sample("total_us");
    ASSERT_NE(time, nullptr);
    EXPECT_EQ(trials.model().index(row, 5).data().toString(), us(time->value));
    EXPECT_EQ(trials.model().index(row, 6).data().toString(), "modelled");
  }
  trials.view().selectAll();
  EXPECT_GT(window->experiments().comparison().model().rowCount(), 0);
}

TEST_F(Experiments, TrialsThatDifferInOneSettingHaveARowEach) {
  std::vector<TrialSpec> specs(7);
  specs[1].seed = 1;
  specs[2].options.knobs["mapping"] = "paper";
  specs[3].results = "0123456789ab";
  specs[4].device = "t4";
  specs[5].backend = "sim";
  specs[6].limits["threads_per_block"] = 256;
  {
    Store store = Store::open(path("runs.db").toStdString());
    const Model model = load_model("softmax_tiny");
    for (TrialSpec& spec : specs) {
      if (&spec != &specs[5]) spec.backend = "model";
      store.record("adhoc", model, spec, run_trial(model, spec));
    }
  }
  window->open(path("runs.db"));
  settle();
  const QAbstractItemModel& trials = window->experiments().trials().model();
  ASSERT_EQ(trials.rowCount(), static_cast<int>(specs.size()));
  std::set<QString> rows;
  for (int row = 0; row < trials.rowCount(); ++row)
    rows.insert(trials.index(row, 1).data().toString() + " " + trials.index(row, 2).data().toString());
  EXPECT_EQ(rows.size(), specs.size()) << "each says what tells it from the others";
}

TEST_F(Experiments, FiguresOfTheModelAreDrawnAndWritten) {
  record_two_trials();
  FigurePane& figures = window->experiments().figures();
  EXPECT_EQ(figures.shown(), nullptr);
  EXPECT_FALSE(child<QAbstractButton>("save_figure")->isEnabled());
  window->open(path("runs.db"));
  settle();
  EXPECT_TRUE(figures.drawn());
  ASSERT_NE(figures.shown(), nullptr);
  EXPECT_THAT(figures.shown()->title, HasSubstr("Kernels and library calls, softmax_tiny on"));
  EXPECT_EQ(figures.shown()->categories, (std::vector<std::string>{"xla", "astitch"}));
  window->tabs().setCurrentWidget(&window->experiments());
  window->experiments().below().setCurrentIndex(1);
  const QImage kernels = figures.grab().toImage();
  choose("figure_choice", q("Time, softmax_tiny on v100-sxm2"));
  settle();
  EXPECT_EQ(figures.shown()->title, "Time, softmax_tiny on v100-sxm2");
  EXPECT_NE(figures.grab().toImage(), kernels);
  // Another trial of the same model: what was chosen stays.
  window->experiments().trials().view().selectRow(1);
  settle();
  EXPECT_EQ(figures.shown()->title, "Time, softmax_tiny on v100-sxm2");
  QSignalSpy written(&window->session(), &Session::written);
  for (const char* file : {"figure.svg", "figure.pdf", "figure.png", "figure.csv", "figure.json"})
    figures.write(path(file));
  ASSERT_TRUE(wait_until([&] { return written.count() == 5; }));
  EXPECT_EQ(read_file(path("figure.svg").toStdString()), render_figure(*figures.shown(), FigureFormat::kSvg));
  EXPECT_EQ(read_file(path("figure.csv").toStdString()), figure_csv(*figures.shown()));
  EXPECT_FALSE(QImage(path("figure.png")).isNull());
  figures.write(path("figure.docx"));
  settle();
  ASSERT_EQ(window->problems().model().rowCount(), 1);
  EXPECT_THAT(window->problems().model().index(0, 2).data().toString().toStdString(), HasSubstr(".svg"));
}

TEST_F(Experiments, StoreThatIsNoneIsNamed) {
  write_file(path("bad.db").toStdString(), "this is no database");
  window->open(path("bad.db"));
  settle();
  EXPECT_TRUE(window->experiments().message().contains("bad.db"));
  window->open(path("absent.db"));
  settle();
  EXPECT_TRUE(window->experiments().message().contains("no such store"));
  EXPECT_FALSE(QFileInfo::exists(path("absent.db")));
}

TEST_F(Experiments, ReportOfTheStoreIsTheCommandLines) {
  record_two_trials();
  EXPECT_FALSE(child<QAbstractButton>("store_report")->isEnabled());
  window->open(path("runs.db"));
  settle();
  EXPECT_TRUE(child<QAbstractButton>("store_report")->isEnabled());
  QSignalSpy written(&window->session(), &Session::written);
  for (const char* file : {"report.html", "report.pdf", "report.md"})
    window->experiments().write_report(path(file));
  ASSERT_TRUE(wait_until([&] { return written.count() == 3; }));
  const Store store = Store::open(path("runs.db").toStdString());
  for (const char* file : {"report.html", "report.pdf", "report.md"})
    EXPECT_EQ(read_file(path(file).toStdString()), report_bytes(store, {}, file)) << file;
  EXPECT_EQ(read_file(path("report.pdf").toStdString()).substr(0, 5), "%PDF-");
  window->experiments().write_report(path("report.docx"));
  settle();
  ASSERT_EQ(window->problems().model().rowCount(), 1);
  EXPECT_THAT(window->problems().model().index(0, 2).data().toString().toStdString(), HasSubstr(".docx"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
