// The budgets of docs/gui.md on a model of 10,000 ops, on the offscreen platform. Each benchmark fails where
// it exceeds its budget; STITCHWORK_GUI_BUDGET=2 doubles them on a slow or busy machine.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QImage>
#include <QPainter>
#include <QTimer>

#include "gui/main_window.h"

namespace stitchwork::gui {
namespace {

constexpr const char* kModel = "gpt2_decoder_10k";

double budget(double ms) {
  const double factor = qEnvironmentVariable("STITCHWORK_GUI_BUDGET", "1").toDouble();
  return ms * factor;
}

void within(benchmark::State& state, double ms, double most) {
  state.counters["budget_ms"] = budget(most);
  if (ms > budget(most))
    state.SkipWithError(fmt::format("{:.0f} ms, budget {:.0f} ms", ms, budget(most)).c_str());
}

PlannedPtr the_plan() {
  static const PlannedPtr plan = plan_model(std::make_shared<Model>(load_model(kModel)), {});
  return plan;
}

void wait_for_plan(MainWindow& window) {
  QEventLoop loop;
  QObject::connect(&window.session(), &Session::planned_changed, &loop, &QEventLoop::quit);
  loop.exec();
}

/// Open to first frame: reading, planning, the list and the graph drawn once.
void BM_OpenToFirstFrame(benchmark::State& state) {
  double worst = 0;
  for (auto _ : state) {
    QElapsedTimer timer;
    timer.start();
    MainWindow window(QDir::temp().filePath("stitchwork-gui-bench.ini"));
    window.show();
    window.open(kModel);
    wait_for_plan(window);
    window.tabs().setCurrentIndex(1);
    window.grab();
    worst = std::max(worst, static_cast<double>(timer.elapsed()));
  }
  within(state, worst, 1500);
}

/// The longest the event loop stands still while a model is opened.
void BM_LongestStallWhileOpening(benchmark::State& state) {
  double worst = 0;
  for (auto _ : state) {
    MainWindow window(QDir::temp().filePath("stitchwork-gui-bench.ini"));
    window.show();
    QApplication::processEvents();
    QElapsedTimer timer;
    timer.start();
    QTimer heart;
    constexpr int kBeatMs = 2;
    QObject::connect(&heart, &QTimer::timeout, [&] {
      worst = std::max(worst, static_cast<double>(timer.nsecsElapsed()) / 1e6 - kBeatMs);
      timer.start();
    });
    heart.start(kBeatMs);
    window.open(kModel);
    wait_for_plan(window);
    constexpr int kAfterMs = 200;
    QTimer::singleShot(kAfterMs, &heart, &QTimer::stop);
    while (heart.isActive()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
  }
  state.counters["stall_ms"] = worst;
  within(state, worst, 100);
}

/// The largest kernel of the opened view expanded and laid out again.
void BM_Expand(benchmark::State& state) {
  const PlannedPtr plan = the_plan();
  FoldedLayout layout(plan->folds, box_size);
  Folding folding = folding_at_opening(plan->folds);
  layout.draw(folding);
  int largest = 1;
  for (std::size_t i = 1; i < plan->folds->nodes.size(); ++i)
    if (plan->folds->nodes[i].kind == FoldKind::kLayer && !folding.expanded(static_cast<int>(i)) &&
        plan->folds->nodes[i].ops > plan->folds->node(largest).ops)
      largest = static_cast<int>(i);
  double worst = 0;
  for (auto _ : state) {
    QElapsedTimer timer;
    timer.start();
    folding.expand(largest);
    benchmark::DoNotOptimize(layout.draw(folding));
    worst = std::max(worst, static_cast<double>(timer.nsecsElapsed()) / 1e6);
    state.PauseTiming();
    folding.expand(largest, false);
    state.ResumeTiming();
  }
  within(state, worst, 100);
}

/// Every op at once, as one flat layout.
void BM_LayoutOfEveryOp(benchmark::State& state) {
  const PlannedPtr plan = the_plan();
  double worst = 0;
  int boxes = 0;
  for (auto _ : state) {
    QElapsedTimer timer;
    timer.start();
    FoldedLayout layout(plan->folds, box_size);
    Folding folding(plan->folds);
    folding.expand_all(FoldKind::kOp, 1 << 30);
    boxes = static_cast<int>(layout.draw(folding).boxes.size());
    worst = std::max(worst, static_cast<double>(timer.nsecsElapsed()) / 1e6);
  }
  state.counters["boxes"] = boxes;
  within(state, worst, 500);
}

void frame(benchmark::State& state, bool every_op) {
  const PlannedPtr plan = the_plan();
  GraphView view;
  view.resize(1400, 900);
  view.show_plan(plan);
  if (every_op) view.expand_all();
  view.zoom_fit();
  QImage image(view.size(), QImage::Format_RGB32);
  double worst = 0;
  for (auto _ : state) {
    QElapsedTimer timer;
    timer.start();
    view.render(&image);
    worst = std::max(worst, static_cast<double>(timer.nsecsElapsed()) / 1e6);
  }
  state.counters["boxes"] = static_cast<double>(view.drawn().boxes.size());
  within(state, worst, 150);
}

void BM_FitAllFrame(benchmark::State& state) { frame(state, false); }
void BM_FitAllFrameOfEveryOp(benchmark::State& state) { frame(state, true); }

/// Peak of the whole process, after the benchmarks above.
void BM_ResidentMemory(benchmark::State& state) {
  rusage use{};
  for (auto _ : state) getrusage(RUSAGE_SELF, &use);
  const double mib = static_cast<double>(use.ru_maxrss) / 1024;
  state.counters["peak_MiB"] = mib;
  if (mib > 300) state.SkipWithError("over its budget");
}

BENCHMARK(BM_OpenToFirstFrame)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ResidentMemory)->Iterations(1);
BENCHMARK(BM_LongestStallWhileOpening)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Expand)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_LayoutOfEveryOp)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FitAllFrame)->Iterations(10)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FitAllFrameOfEveryOp)->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stitchwork::gui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
