#include "core/base/error.h"
#include "figures/data/figure.h"

namespace stitchwork {

void check(const Figure& figure) {
  std::size_t grouped = 0;
  for (const auto& [label, count] : figure.groups) grouped += static_cast<std::size_t>(count);
  SW_CHECK(figure.groups.empty() || grouped == figure.categories.size(), "{}: groups", figure.id);
  for (const FigureSeries& series : figure.series) {
    const std::size_t n = series.y.size();
    if (figure.kind == FigureKind::kPoints)
      SW_CHECK(series.x.size() == n, "{}: {}", figure.id, series.name);
    else if (figure.kind != FigureKind::kCdf)
      SW_CHECK(n == figure.categories.size(), "{}: {}", figure.id, series.name);
    SW_CHECK(series.interval.empty() || series.interval.size() == n, "{}: {}", figure.id, series.name);
  }
}

}  // namespace stitchwork
