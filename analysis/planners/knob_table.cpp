// Every knob of every planner (docs/planners/knobs.md says what each does).
#include <array>

#include "analysis/planners/planner.h"

namespace stitchwork {
namespace {

constexpr std::array<std::string_view, 2> kOnOff = {"on", "off"};
constexpr std::array<std::string_view, 3> kCopies = {"on", "off", "cp_async"};
constexpr std::array<std::string_view, 2> kMappings = {"paper", "tuned"};
constexpr std::array<std::string_view, 2> kRoofs = {"path", "layer"};
constexpr std::array<std::string_view, 4> kFissions = {"on", "softmax", "tidy", "off"};
constexpr std::array<std::string_view, 2> kCandidates = {"paper", "recompute"};
constexpr std::array<std::string_view, 3> kEfforts = {"normal", "quick", "full"};
constexpr std::array<std::string_view, 2> kSolvers = {"ilp", "greedy"};
constexpr std::array<std::string_view, 3> kScores = {"mixed", "volume", "execution"};
constexpr std::array<std::string_view, 2> kLaunchCosts = {"device", "paper"};
constexpr std::array<std::string_view, 4> kStreams = {"2", "1", "3", "4"};
constexpr std::array<std::string_view, 4> kElementwise = {"xla", "astitch", "auto", "unfused"};
constexpr std::array<std::string_view, 2> kWeights = {"runtime", "stable"};
constexpr std::array<std::string_view, 2> kSharedLimits = {"paper", "device"};

constexpr std::array kKnobs = {
    Knob{"adaptive_mapping", kOnOff, "on", "packs small rows into a block, splits large ones"},
    Knob{"dominant_merging", kOnOff, "on", "connected dominant candidates share one thread mapping"},
    Knob{"proactive_locality", kOnOff, "on", "element-wise groups take the block mapping of a producer"},
    Knob{"shared_reuse", kOnOff, "on", "shared memory and scratch of dead values are used again"},
    Knob{"register_relaxation", kOnOff, "on", "registers up to what the resident blocks leave"},
    Knob{"remote_stitching", kOnOff, "on", "stitch ops that do not reach each other share kernels"},
    Knob{"exhaustive_stitching", kOnOff, "on", "a kernel a stitch op; off: XLA's kernels"},
    Knob{"data_reuse", kOnOff, "on", "values travel on chip between groups; off: global memory"},
    Knob{"across_rows", kOnOff, "on", "reductions over rows leave partials in another group's loop"},
    Knob{"residence", kOnOff, "on", "values stay with their threads across a grid barrier"},
    Knob{"tiles", kOnOff, "on", "accesses across the order in memory take shared memory"},
    Knob{"async_copies", kCopies, "on", "sm_80+: rows of the next tasks are copied while one runs"},
    Knob{"one_pass", kOnOff, "on", "sums about a mean or a maximum are gathered in its own pass"},
    Knob{"clusters", kOnOff, "on", "sm_90+: a cluster's blocks share rows in their shared memory"},
    Knob{"wide_vectors", kOnOff, "on", "sm_100+: 32 bytes of global memory move at a time"},
    Knob{"recompute", kOnOff, "on", "kernels compute again what costs less than to store and read"},
    Knob{"epilogues", kOnOff, "on", "library calls transpose, add, take ReLU where that is faster"},
    Knob{"duplicate_cheap", kOnOff, "off", "cheap producers are computed in every kernel that reads them"},
    Knob{"fission", kFissions, "on", "the model is rewritten by search; softmaxes; tidied; not"},
    Knob{"reassociate", kOnOff, "on", "rules that add in another order; off: those that move alone"},
    Knob{"candidates", kCandidates, "paper", "kernels: differences of states; or also what is round others"},
    Knob{"effort", kEfforts, "normal", "how much a search of rewritings or kernels looks at"},
    Knob{"weights", kWeights, "runtime", "stable: what depends on declared weights alone is done once"},
    Knob{"products", kOnOff, "on", "cheap matrix products are ops of kernels, no library calls"},
    Knob{"roof", kRoofs, "path", "2018: fusion ends at library calls, or at a layer with one"},
    Knob{"elementwise_fusion", kOnOff, "on", "2018: element-wise ops of a layer and shape become one"},
    Knob{"size_shrinking", kOnOff, "on", "values that do not fit give up shared memory; off: refused"},
    Knob{"shared_limit", kSharedLimits, "paper", "bytes of a block's values: the paper's, or the device's"},
    Knob{"solver", kSolvers, "ilp", "how patterns are chosen: by an integer program, or greedily"},
    Knob{"score", kScores, "mixed", "patterns by traffic, by execution, or by their complexity"},
    Knob{"launch_cost", kLaunchCosts, "device", "a launch in scores: the device's gap, or the paper's 8 us"},
    Knob{"exploratory", kOnOff, "on", "patterns from large ops beside those between partition ops"},
    Knob{"remainders", kOnOff, "on", "what patterns leave between them may be patterns, too"},
    Knob{"packing", kOnOff, "on", "patterns may have parts that no value connects"},
    Knob{"gemm_fusion", kOnOff, "on", "products of one operand, and sums of products, become one"},
    Knob{"gemm_kernels", kOnOff, "on", "the library's kernel of each product is explored"},
    Knob{"views", kOnOff, "on", "operands of fused products lie side by side; off: copied"},
    Knob{"allocations", kOnOff, "on", "all allocation strategies are explored; off: the first"},
    Knob{"streams", kStreams, "2", "on how many streams steps may run"},
    Knob{"elementwise", kElementwise, "xla", "who plans the kernels between the products"},
    Knob{"mapping", kMappings, "tuned", "thread mappings by the paper's rules, or by modelled time"},
};

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

}  // namespace stitchwork
