#include "analysis/forms/one_pass.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/one_pass.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"

namespace stitchwork::astitch {
namespace {

class Gathering {
 public:
  Gathering(const Graph& graph, const Device& device, KernelPlan& kernel, Group& group)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(device),
        kernel_(kernel),
        group_(group) {}

  void run(Recorder& recorder) {
    if (is_staged(group_.mapping)) return;  // its rows stay on chip
    for (const NodeId op : materialised(group_)) {
      if (!can_gather(graph_, kernel_, group_, op)) continue;
      const Verdict verdict = judge(op);
      recorder.add("mapping", computation_.node(op).name, computation_.node(group_.dominant).name,
                   [&] { return verdict; });
    }
  }

 private:
  /// Gathers `op` if the kernel is faster so.
  Verdict judge(NodeId op) {
    const OnePassForm form = *one_pass_form(graph_, op);
    const DType dtype = computation_.node(form.x).shape.dtype;
    const std::int64_t registers =
        Layout(group_.mapping, kernel_.launch.block).elements() * ceil_div(byte_size(dtype), kRegisterBytes);
    const std::int64_t kept = registers_to_keep_in(kernel_.launch);
    if (registers <= kept)
      return Verdict::no("astitch.one-pass",
                         fmt::format("the row stays on chip: {} registers a thread of {}", registers, kept));
    if (!found_) found_ = evaluations(computation_, kernel_);
    const double apart = estimate();
    insert_sorted(group_.one_pass, op);
    const double together = estimate();
    const std::string why = fmt::format(
        "{} registers a thread of {}: {:.2f} us with it gathered in an earlier pass, {:.2f} us "
        "with a pass of its own",
        registers, kept, together, apart);
    if (together < apart) return Verdict::yes("astitch.one-pass", why);
    std::erase(group_.one_pass, op);
    return Verdict::no("astitch.one-pass", why);
  }

  double estimate() const { return kernel_cost(graph_, device_, kernel_, *found_).predicted_us; }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const KernelPlan& kernel_;
  Group& group_;
  std::optional<KernelEvaluations> found_;  ///< what is gathered does not change it
};

}  // namespace

void gather_in_one_pass(const Graph& graph, const Device& device, const Options& options, KernelPlan& kernel,
                        Recorder& recorder) {
  if (!options.one_pass || !options.tuned) return;
  for (Group& group : kernel.groups) Gathering(graph, device, kernel, group).run(recorder);
}

}  // namespace stitchwork::astitch
