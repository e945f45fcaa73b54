// The optimised module of a dump, its ops linked to the model's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/passes/op_trace.h"
#include "core/substitute/rewritten_graph.h"
#include "runtime/program/dump.h"

namespace stitchwork {

struct LinkedDump {
  /// The module, canonical, with what library calls compute in place of the calls. Computations that run what
  /// one of the model's does have origins, and once `finished` its name.
  std::shared_ptr<rewriting::RewrittenGraph> rewritten;
  std::map<std::string, std::string> gone;  ///< ops of the model that no op stands for, and why
  std::vector<std::string> own;             ///< ops that stand for none of the model's

  /// What the compiler calls an instruction: "loop fusion", "triton fusion", "custom-call"; "": not known.
  std::string kind_of(const std::string& instruction) const;

  struct Ops {
    std::vector<NodeId> all, given;
  };
  /// The ops of an instruction, and those whose values it gives, in the computation of `rewritten` that it is
  /// of.
  Ops ops_of(ComputationId computation, const std::string& instruction) const;

  /// `rewritten` by the model's names; nothing else is asked from then on.
  std::shared_ptr<const rewriting::RewrittenGraph> finished();

  Graph raw;                                              ///< as the compiler wrote it
  std::map<std::string, std::vector<std::string>> calls;  ///< ops that stand in the place of one
  OpTrace trace;
  std::map<ComputationId, std::string> names;  ///< of the model's computations
};

/// Throws Error where the two do not compute the same.
void require_dump_of(const Dump& dump, const Graph& given, const Graph& model);

/// `given`: Dump::model, `model`: the user's, both canonical, which compute the same. Throws Error where the
/// module is not made of the model.
LinkedDump link_dump(const Dump& dump, const Graph& given, const Graph& model);

}  // namespace stitchwork
