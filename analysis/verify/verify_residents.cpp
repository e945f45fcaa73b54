#include <algorithm>

#include "analysis/schedule/launch.h"
#include "analysis/verify/verify_internal.h"

namespace stitchwork::verification {
namespace {

class ResidentCheck {
 public:
  ResidentCheck(const Computation& c, const KernelPlan& k, const KernelEvaluations& evaluated, Report& r)
      : computation_(c), kernel_(k), groups_(evaluated), report_(r) {}

  void check() {
    for (const Residence& r : kernel_.resident) residence(r);
    if (registers_ > registers_to_keep_in(kernel_.launch))
      report_.add("resident", "kernel {}: {} registers a thread are to keep values, {} may", kernel_.id,
                  registers_, registers_to_keep_in(kernel_.launch));
    for (const auto& [op, scheme] : kernel_.schemes) {
      const auto keeps = [op = op](const Residence& r) { return r.op == op; };
      if (scheme == Scheme::kResident &&
          std::none_of(kernel_.resident.begin(), kernel_.resident.end(), keeps))
        report_.add("resident", "kernel {}: {} is resident, but no group keeps it", kernel_.id, name_of(op));
    }
    places();
  }

 private:
  const std::string& name_of(NodeId op) const { return computation_.node(op).name; }

  void residence(const Residence& r) {
    const auto group = std::find_if(kernel_.groups.begin(), kernel_.groups.end(),
                                    [&](const Group& g) { return g.dominant == r.group; });
    if (group == kernel_.groups.end()) {
      report_.add("resident", "kernel {}: {} is kept by the group of {}, which leads none", kernel_.id,
                  name_of(r.op), name_of(r.group));
      return;
    }
    if (!has_it(*group, r)) {
      report_.add("resident", "kernel {}: no thread of the group of {} has its element of {} in level {}",
                  kernel_.id, name_of(r.group), name_of(r.op), r.level);
      return;
    }
    const DType dtype = computation_.node(r.op).shape.dtype;
    const std::int64_t registers = resident_registers(*group, kernel_.launch.block, dtype);
    const std::int64_t needed =
        r.shared ? resident_shared_bytes(*group, kernel_.launch.block, dtype) : kRegisterBytes * registers;
    if (!r.shared) registers_ += registers;
    const bool outside = r.shared && (r.offset < 0 || r.offset + r.bytes > kernel_.launch.shared_bytes);
    if (r.bytes < needed || outside)
      report_.add("resident", "kernel {}: {} needs {} bytes of {}, {} are given from {} on of {}", kernel_.id,
                  name_of(r.op), needed, r.shared ? "shared memory" : "registers", r.bytes, r.offset,
                  kernel_.launch.shared_bytes);
  }

  /// Whether the group's threads have the value in that level, one element of the domain each.
  bool has_it(const Group& group, const Residence& r) const {
    if (is<mapping::OneThread>(group.mapping)) return false;
    const auto index = static_cast<std::size_t>(&group - kernel_.groups.data());
    const auto placed = groups_[index].placements->find(r.op);
    if (placed == groups_[index].placements->end() || placed->second.coverage != Coverage::kFull)
      return false;
    const std::vector<Evaluation>& values = groups_[index].values;
    return std::any_of(values.begin(), values.end(), [&](const Evaluation& e) {
      return e.op == r.op && !e.resident && kernel_.levels.at(e.root) == r.level &&
             e.map == placed->second.map;
    });
  }

  /// What is kept lies beside all else: it lives on while phases come and go.
  void places() {
    for (const Residence& r : kernel_.resident) {
      if (!r.shared) continue;
      const auto meets = [&](std::int64_t offset, std::int64_t bytes) {
        return r.offset < offset + bytes && offset < r.offset + r.bytes;
      };
      const auto clash = [&](std::string_view other) {
        report_.add("slot", "kernel {}: {} and {} share shared memory while both are needed", kernel_.id,
                    name_of(r.op), other);
      };
      for (const MemorySlot& slot : kernel_.shared)
        if (meets(slot.offset, slot.bytes)) clash(slot.op == kNoNode ? "the workspace" : name_of(slot.op));
      for (const Residence& other : kernel_.resident)
        if (&r < &other && other.shared && meets(other.offset, other.bytes)) clash(name_of(other.op));
    }
  }

  const Computation& computation_;
  const KernelPlan& kernel_;
  const KernelEvaluations& groups_;
  Report& report_;
  std::int64_t registers_ = 0;  ///< a thread's, taken
};

}  // namespace

void check_residents(const Computation& computation, const KernelPlan& kernel,
                     const KernelEvaluations& evaluated, Report& report) {
  ResidentCheck(computation, kernel, evaluated, report).check();
}

}  // namespace stitchwork::verification
