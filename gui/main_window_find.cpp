// Search, and counters as colours on the graph.
#include <QLabel>
#include <QLineEdit>
#include <QTabWidget>
#include <algorithm>

#include "gui/main_window.h"
#include "gui/model/search.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"

namespace stitchwork::gui {

GraphView& MainWindow::searched() { return tabs_->currentWidget() == dot_ ? *dot_ : *graph_; }

void MainWindow::search(const QString& text) {
  hits_.clear();
  hit_ = -1;
  GraphView& view = searched();
  if (view.planned() && !text.trimmed().isEmpty()) {
    const Query query = parse_query(text);
    if (!query.error.isEmpty()) {
      search_count_->setText("?");
      search_->setToolTip(query.error);
      return view.set_hits({});
    }
    hits_ = gui::find(*view.planned(), query);
    search_count_->setText(counted(static_cast<int>(hits_.size()), "hit"));
  } else {
    search_count_->clear();
  }
  search_->setToolTip(tr("Return: next hit, Shift+Return: previous"));
  view.set_hits(hits_);
}

void MainWindow::next_hit(int by) {
  if (hits_.empty()) return;
  const int count = static_cast<int>(hits_.size());
  hit_ = hit_ < 0 ? (by > 0 ? 0 : count - 1) : (hit_ + by + count) % count;
  search_count_->setText(tr("%1 of %2").arg(hit_ + 1).arg(count));
  const int node = hits_[static_cast<std::size_t>(hit_)];
  if (&searched() == dot_)
    dot_->select_node(node, true);
  else
    select_node(node);
}

void MainWindow::show_overlay(const QString& counter) {
  const PlannedPtr planned = session_.planned();
  const auto result = session_.result();
  if (!planned || counter.isEmpty()) return graph_->set_overlay(std::nullopt);
  std::vector<std::optional<double>> values(planned->steps.size());
  for (const StepRow& row : planned->steps) {
    auto& value = values[static_cast<std::size_t>(row.step)];
    if (counter == "time") {
      value = result && row.body < 0 && result->run.steps.size() == planned->plan->steps.size()
                  ? result->run.steps[static_cast<std::size_t>(row.step)].time_us
                  : row.predicted_us;
    } else if (result && row.body < 0 && row.kernel >= 0 &&
               row.kernel < static_cast<int>(result->run.kernels.size())) {
      for (const auto& [name, v] :
           sim::counter_list(result->run.kernels[static_cast<std::size_t>(row.kernel)].counters))
        if (q(name) == counter) value = v;
    }
  }
  double least = 1e300, most = -1e300;
  for (const auto& v : values)
    if (v) least = std::min(least, *v), most = std::max(most, *v);
  const bool time = counter == "time";
  const auto text = [time](double v) {
    if (time) return us(v);
    return v == static_cast<double>(static_cast<long long>(v)) ? grouped(static_cast<long long>(v))
                                                               : QString::number(v, 'f', 3);
  };
  Overlay overlay;
  overlay.title =
      time ? (result ? tr("time, simulated") : tr("time, modelled")) : counter + tr(", simulated");
  overlay.least = text(least);
  overlay.most = text(most);
  overlay.value = [values, least, most, text](int step) -> std::optional<std::pair<double, QString>> {
    const auto& v = values[static_cast<std::size_t>(step)];
    if (!v) return std::nullopt;
    return std::pair(most > least ? (*v - least) / (most - least) : 0.5, text(*v));
  };
  graph_->set_overlay(std::move(overlay));
  tabs_->setCurrentIndex(1);
}

}  // namespace stitchwork::gui
