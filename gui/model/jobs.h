// Long work off the event loop: each lane runs one job, a newer job of a lane makes the older one's result
// stale.
#pragma once

#include <QObject>
#include <QString>
#include <QThreadPool>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "gui/model/problem.h"

namespace stitchwork::gui {

/// Thrown by JobContext::check in a job that nobody waits for any more.
struct Cancelled {};

/// What a job sees of the outside. Copied into the job; safe to use on its thread.
class JobContext {
 public:
  /// Throws Cancelled once the job is cancelled.
  void check() const {
    if (*cancelled_) throw Cancelled{};
  }
  /// `fraction` within [0, 1]; at most some thirty times a second reach the event loop. Throws as check()
  /// does.
  void progress(double fraction, const QString& what) const;

 private:
  friend class Jobs;
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  std::function<void(double, const QString&)> tell_;
};

class Jobs : public QObject {
  Q_OBJECT
 public:
  enum Lane {
    kPlan,
    kExplain,
    kSource,
    kRun,
    kCompare,
    kAdvise,
    kStore,
    kFigure,
    kDot,
    kProfile,
    kExport,
    kLanes
  };

  explicit Jobs(QObject* parent = nullptr);
  /// Cancels all and waits for them.
  ~Jobs() override;

  /// Runs `work(context)` on a worker thread, then `done(result)` here, unless a newer job of the lane was
  /// started or the lane was cancelled meanwhile: then the work ends at its next interruption point
  /// (core/base/interrupt.h) or call of the context, and nobody waits for it. What it throws becomes
  /// `failed`.
  template <typename Work, typename Done>
  void start(Lane lane, const QString& doing, Work work, Done done) {
    using Result = std::invoke_result_t<Work, const JobContext&>;
    run(lane, doing, [work = std::move(work), done = std::move(done)](const JobContext& context) {
      auto result = std::make_shared<Result>(work(context));
      return std::function<void()>([result, done] { done(std::move(*result)); });
    });
  }
  void cancel(Lane lane);
  bool busy(Lane lane) const { return lanes_[lane].has_value(); }
  bool any_busy() const;
  /// Without what accompanies the selection.
  bool any_work() const;
  /// Threads at work, also for those whose result nobody waits for.
  int threads() const { return pool_.activeThreadCount(); }

 signals:
  void started(int lane, const QString& doing);
  void progressed(int lane, double fraction, const QString& what);
  void finished(int lane);  ///< done, failed or cancelled
  void failed(int lane, const stitchwork::gui::Problem& problem);

 private:
  using Deliver = std::function<void()>;
  void run(Lane lane, const QString& doing, std::function<Deliver(const JobContext&)> work);
  bool current(Lane lane, const JobContext& context) const;

  std::array<std::optional<JobContext>, kLanes> lanes_;
  QThreadPool pool_;
};

}  // namespace stitchwork::gui
