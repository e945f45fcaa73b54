#include "analysis/stitching/wanted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"

namespace stitchwork::astitch {
namespace {

std::string names(const Nodes& nodes, const std::set<NodeId>& ids) {
  std::vector<std::string> result;
  for (const NodeId id : ids) result.push_back(nodes.name(id));
  return fmt::format("{}", fmt::join(result, ", "));
}

std::string override_text(const Nodes& nodes, NodeId id, Scheme wanted) {
  return fmt::format("override '{}'",
                     to_text(Edit{EditKind::kScheme, {nodes.name(id)}, std::string(name(wanted)), 0}));
}

/// Why a value that is to be Regional is not.
std::string not_regional(const Body& body, const std::vector<OpGroup>& groups,
                         const Finalization& finalization, NodeId id) {
  const Nodes& nodes = *body.nodes;
  bool read = false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Read& r : finalization.reads[g].reads) {
      if (r.value != id) continue;
      read = true;
      const OpGroup& producer = groups[static_cast<std::size_t>(group_of(groups, id))];
      const Verdict local = block_local(nodes, producer, groups[g], r);
      if (!local) return fmt::format("not block-local for {}: {}", nodes.name(r.reader), local.why);
    }
  }
  if (!read) return "no op of its kernel reads it from memory";
  return "it is read behind a grid barrier, where shared memory has been given to others";
}

std::string not_so(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                   const Finalization& finalization, NodeId id, Scheme wanted) {
  const Nodes& nodes = *body.nodes;
  std::set<NodeId> readers, evaluating;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Read& r : finalization.reads[g].reads)
      if (r.value == id) readers.insert(r.reader);
    if (std::binary_search(groups[g].ops.begin(), groups[g].ops.end(), id))
      evaluating.insert(groups[g].dominant);
  }
  switch (wanted) {
    case Scheme::kRegional:
      return not_regional(body, groups, finalization, id);
    case Scheme::kGlobal:
      return "no op of its kernel reads it from memory";
    case Scheme::kIndependent:
      return readers.empty() ? "ops of its kernel read it"
                             : fmt::format("{} read it in its kernel", names(nodes, readers));
    case Scheme::kLocal:
    case Scheme::kResident:
    case Scheme::kRecomputed:
      break;
  }
  if (nodes[id].reduction)
    return "a reduction is computed by the threads of a block together, so it is stored";
  if (candidates.stored(id)) return "it cannot be computed where it is read";
  if (body.users.at(id).empty()) return "it is only read outside its kernel";
  return fmt::format("it is evaluated by the groups of {}: {}", names(nodes, evaluating),
                     name(finalization.schemes.at(id)));
}

}  // namespace

WantedSchemes wanted_schemes(const StitchOp& op, const Constraints& constraints) {
  WantedSchemes result;
  for (const auto& [id, scheme] : constraints.schemes) {
    if (!std::binary_search(op.members.begin(), op.members.end(), id)) continue;
    result.schemes[id] = scheme;
    if (scheme == Scheme::kLocal || scheme == Scheme::kRecomputed) result.amendments.inlined.insert(id);
    if (scheme == Scheme::kRegional || scheme == Scheme::kGlobal) result.amendments.promoted.insert(id);
    if (scheme == Scheme::kRegional) result.regional.insert(id);
    if (scheme == Scheme::kGlobal) result.global.insert(id);
  }
  return result;
}

void require_schemes(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                     const Finalization& finalization, const std::map<NodeId, Scheme>& wanted) {
  for (const auto& [id, scheme] : wanted) {
    if (finalization.schemes.at(id) == scheme || scheme == Scheme::kResident) continue;
    throw Error(fmt::format("{}: {}", override_text(*body.nodes, id, scheme),
                            not_so(body, candidates, groups, finalization, id, scheme)),
                fmt::format("it is {} where the rules decide", name(finalization.schemes.at(id))));
  }
}

void require_residents(const Nodes& nodes, const KernelPlan& kernel, const std::map<NodeId, Scheme>& wanted,
                       const std::map<NodeId, Verdict>& reasons) {
  for (const auto& [id, scheme] : wanted) {
    if (scheme != Scheme::kResident || kernel.schemes.at(id) == Scheme::kResident) continue;
    const auto known = reasons.find(id);
    std::string why = "no thread needs its own elements of it in a later phase";
    if (kernel.launch.grid_barriers == 0) {
      why = "its kernel has no grid barrier to cross";
    } else if (known != reasons.end() && !known->second.ok) {
      why = known->second.why;
    } else if (known != reasons.end()) {
      const bool kept = std::any_of(kernel.resident.begin(), kernel.resident.end(),
                                    [id = id](const Residence& r) { return r.op == id; });
      why = kept ? "other threads read it in later phases too"
                 : fmt::format("the only task of a block keeps it as within a task ({})", known->second.why);
    }
    throw Error(fmt::format("{}: {}", override_text(nodes, id, Scheme::kResident), why),
                fmt::format("it is {} where the rules decide", name(kernel.schemes.at(id))));
  }
}

void refuse_regional(const Nodes& nodes, const std::set<NodeId>& regional, const Verdict& fits) {
  throw Error(
      fmt::format("{}: its kernel {}", override_text(nodes, *regional.begin(), Scheme::kRegional), fits.why),
      "ask for fewer Regional values, or smaller blocks");
}

}  // namespace stitchwork::astitch
