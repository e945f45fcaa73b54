#include "gui/model/jobs.h"

#include <QElapsedTimer>
#include <QMetaObject>

#include "core/base/interrupt.h"

namespace stitchwork::gui {

void JobContext::progress(double fraction, const QString& what) const {
  check();
  if (tell_) tell_(fraction, what);
}

Jobs::Jobs(QObject* parent) : QObject(parent) {
  // One for the work a person waits for, one for what accompanies the selection; a run uses threads of its
  // own.
  pool_.setMaxThreadCount(3);
}

Jobs::~Jobs() {
  for (auto& lane : lanes_)
    if (lane) *lane->cancelled_ = true;
  pool_.waitForDone();
}

bool Jobs::current(Lane lane, const JobContext& context) const {
  return lanes_[lane] && lanes_[lane]->cancelled_ == context.cancelled_;
}

bool Jobs::any_busy() const {
  for (const auto& lane : lanes_)
    if (lane) return true;
  return false;
}

bool Jobs::any_work() const {
  for (int lane = 0; lane < kLanes; ++lane)
    if (lane != kExplain && lanes_[static_cast<std::size_t>(lane)]) return true;
  return false;
}

void Jobs::cancel(Lane lane) {
  if (!lanes_[lane]) return;
  *lanes_[lane]->cancelled_ = true;
  lanes_[lane].reset();
  emit finished(lane);
}

void Jobs::run(Lane lane, const QString& doing, std::function<Deliver(const JobContext&)> work) {
  if (lanes_[lane]) *lanes_[lane]->cancelled_ = true;
  JobContext context;
  auto since = std::make_shared<QElapsedTimer>();
  context.tell_ = [this, lane, since, flag = context.cancelled_](double fraction, const QString& what) {
    constexpr int kBetweenMs = 33;
    if (since->isValid() && since->elapsed() < kBetweenMs) return;
    since->start();
    QMetaObject::invokeMethod(
        this,
        [this, lane, fraction, what, flag] {
          if (!*flag) emit progressed(lane, fraction, what);
        },
        Qt::QueuedConnection);
  };
  lanes_[lane] = context;
  emit started(lane, doing);
  pool_.start([this, lane, doing, context, work = std::move(work)] {
    Deliver deliver;
    std::optional<Problem> problem;
    try {
      const Interruptible interruptible([&context] { context.check(); });
      context.check();
      deliver = work(context);
    } catch (const Cancelled&) {
      return;
    } catch (...) {
      problem = current_problem(doing);
    }
    QMetaObject::invokeMethod(
        this,
        [this, lane, context, deliver = std::move(deliver), problem] {
          if (!current(lane, context)) return;  // stale
          lanes_[lane].reset();
          if (problem)
            emit failed(lane, *problem);
          else
            deliver();
          if (!lanes_[lane]) emit finished(lane);
        },
        Qt::QueuedConnection);
  });
}

}  // namespace stitchwork::gui
