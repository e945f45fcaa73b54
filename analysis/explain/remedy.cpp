#include "analysis/explain/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

namespace stitchwork {
namespace {

struct Remedy {
  std::string_view rule;
  /// {subject}, {object}; {a}, {b}, {c}: the numbers of the decision's reason, in order; {over}: a - b;
  /// {admits}: what launch admits a bytes of shared memory.
  std::string_view needs;
};

constexpr std::string_view kFaster = "it would have to be predicted faster than the form that was chosen";

constexpr Remedy kRemedies[] = {
    {"xla.reduce-is-never-a-producer",
     "XLA ends a kernel at a tiled reduction: {subject} would have to reduce fewer than 32 elements; astitch "
     "passes its values "
     "between threads"},
    {"xla.producer-is-a-fusion",
     "only the fusion merger moves {subject} once it is a fusion; see its decision"},
    {"xla.not-loop-fusible", "{subject} would have to be an op that a loop can compute element by element"},
    {"xla.renamed-input", "nothing: {subject} is another name of a buffer that exists anyway"},
    {"xla.several-users",
     "{subject} would have to have {object} as its one reader; the pass that duplicates decides next"},
    {"xla.expensive-to-duplicate",
     "{subject} would have to be cheap to XLA, or have {object} as its one reader"},
    {"xla.globally-unfusible",
     "{subject} would have to be fusible into every reader, or read no more than it writes"},
    {"xla.expensive-and-reused",
     "{subject} would have to be cheap to XLA, or {object} read each of its elements once; tvm computes it "
     "again for each "
     "reader, astitch shares it between threads"},
    {"xla.nested-loops",
     "the reduction inside {subject} or the one inside {object} would have to be tiled (32 elements or "
     "more)"},
    {"xla.shared-memory", "the tiles of their reductions would have to take {over} bytes less"},
    {"xla.too-many-parameters", "{over} of the {a} parameters would have to go"},
    {"xla.emitted-too-often", "{object} would have to need {subject} at {over} indices less"},
    {"xla.merge-several-outputs", "{subject} would have to be its kernel's only result"},
    {"xla.merge-user-is-no-fusion", "every reader of {subject} would have to be a fusion itself"},
    {"xla.merge-expensive", "the kernel of {subject} would have to hold only ops that are cheap to XLA"},
    {"xla.merge-reads-more", "merged, its readers would have to move at most 1.1 x {b} bytes, not {a}"},
    {"xla.multi-output-shapes", "their loops would have to have the same extents"},
    {"xla.multi-output-cycle", "{subject} would have to reach {object} directly only"},
    {"xla.multi-output-index", "each result would have to lie one to one in the common loop"},
    {"xla.sibling-kinds", "both would have to be loops, or both reductions"},
    {"xla.sibling-reductions", "both would have to reduce the same dimensions of equal shapes"},
    {"xla.sibling-dependence", "nothing: one reads what the other computes"},
    {"xla.in-place-root", "no result of theirs could be a dynamic-update-slice"},
    {"xla-today.no-gain",
     "XLA's model would have to give less than {b} ns for it within its readers, not {a}"},
    {"xla-today.two-reductions",
     "one of the two reductions would have to have rows of fewer than 16 elements, or both to be a "
     "normalisation that XLA gives to Triton (compute capability 8.0)"},
    {"xla-today.reduction-epilogue",
     "{object} would have to be its one reader and made of ops of one operand"},
    {"xla-today.several-outputs", "{subject} would have to be its kernel's only result"},
    {"xla-today.reductions", "the kernel would have to hold {over} reductions less"},
    {"xla-today.tiles", "every value of {object} would have to be rows of the same tile"},
    {"xla-today.parts", "a generated kernel would have to give all that the fusion gives"},
    {"xla-today.code-duplication", "{object} would have to need {subject} at fewer indices"},
    {"tvm.reduce-never-fuses-forward",
     "TVM ends a kernel at a reduction; astitch passes its values between threads"},
    {"tvm.no-post-dominator", "what reads {subject} would have to meet again in one op"},
    {"tvm.meets-in-a-tuple",
     "its readers would have to meet before they become results; tvm-duplicating computes cheap ones in "
     "each"},
    {"tvm.path-kind",
     "the paths from {subject} would have to reach {object} without that op; tvm-duplicating computes cheap "
     "ones in each reader"},
    {"tvm.sink-kind", "{subject} would have to be element-wise or a broadcast, or {object} of another kind"},
    {"tvm.epilogue-not-element-wise", "only element-wise ops could follow {subject}"},
    {"tvm.too-many-ops", "{over} ops would have to go elsewhere"},
    {"tvm.library-epilogue", "library calls would have to take an epilogue"},
    {"tvm.duplicate-reads-more",
     "fewer readers, or inputs smaller than its result: the copies read {b} bytes, storing it moves {c}"},
    {"tvm.duplicate-indices", "its reader would have to read elements of fewer places"},
    {"fs18.roof", "roof=path, which looks at the calls themselves, not at their layers"},
    {"fs18.user-given-up",
     "all that reads {subject} below the layer of {object} would have to be in its fusion; library calls are "
     "in "
     "none"},
    {"fs18.cycle", "what lies between them would have to join the fusion too"},
    {"fs18.no-schedule",
     "all ops of the fusion would have to pass one schedule (Table 1 of the paper) to {subject}"},
    {"fs18.shared-memory",
     "a block's values would have to fit: size_shrinking=on, shared_limit=device, or smaller chunks"},
    {"fs18.not-optimized",
     "the best schedule of all would have to cost at most a launch more than those apart"},
    {"fs18.kernel-limits", "the kernel would have to be smaller"},
    {"fs18.footprint", "the pack would have to hold fewer, or smaller, tensors"},
    {"fs18.too-large-to-pack", "its own kernel would have to take less than {b} us"},
    {"fs18.strided-column", "nothing: no loop deals with columns of some but not all of a dimension"},
    {"fs19.outvoted", "it would have to save more than the patterns taken in its place"},
    {"fs19.not-found", "the search would have to meet a pattern of both"},
    {"fs19.negative", "its kernel would have to take less than its ops one by one, launches included"},
    {"fs19.cycle", "one of the patterns would have to hold all ops of the cycle, or none"},
    {"fs19.layout", "each block would have to read only what it has made itself"},
    {"fs19.volume", "a block's values would have to fit: shared_limit=device, or smaller chunks"},
    {"fs19.maps", "fewer ops between them would have to read elements of several places"},
    {"fs19.kernel-limits", "the kernel would have to be smaller"},
    {"fs19.large-gemm", "the product would have to take less time than a kernel of its own is worth"},
    {"fs19.cap", "fewer large ops: patterns are grown from the largest first"},
    {"fs19.solver-limit", "a smaller program: fewer patterns, as with exploratory=off"},
    {"fission.sketched", "the calls and kernels that it makes would have to take less than those it saves"},
    {"fission.moves", "the kernels that it makes would have to take less than those it saves"},
    {"fission.model-gains-nothing", "what is saved there would have to be more than what it costs elsewhere"},
    {"fission.named-by-override", "an override that names another op"},
    {"astra.batch-dims", "{subject} would have to be a product of two matrices, without batch dimensions"},
    {"astra.dtype", "the products would have to be of one float type"},
    {"astra.attributes", "their precision and other attributes would have to be equal"},
    {"astra.layout", "their sides would have to be the same kind of matrix of each array"},
    {"astra.provenance", "the same products would have to reach both"},
    {"astra.depends", "neither would have to depend on the other"},
    {"astra.read-elsewhere", "{subject} would have to have the sum as its one reader"},
    {"astra.same-operand-twice", "the products would have to read different arrays"},
    {"astra.host-call", "nothing but products and kernels would have to read the array"},
    {"astra.offending-tensor", "the groups that share the array would have to want one place for it"},
    {"astra.other-block", "the block that was kept would have to be smaller"},
    {"astra.no-groups",
     "products would have to share an operand, or be added up, and not depend on each other"},
    {"astra.off", "--set gemm_fusion=on"},
    {"astra.no-grid", "what the pieces read would have to be whole arrays or slices that lie side by side"},
    {"astra.chunk", "fewer calls would have to save more than appending operands and copying results takes"},
    {"astra.slower", "the whole plan would have to be predicted faster than the one that was chosen"},
    {"astra.strategies", "a strategy in which its arrays lie beside each other would have to be fastest"},
    {"astra.one-stream", "steps that do not depend on each other would have to leave the device room"},
    {"korch.windows", "fewer ops between library calls, so that none of TVM's functions is cut"},
    {"korch.gap", "fewer ops between library calls"},
    {"korch.max-ops", "fewer ops in either kernel"},
    {"korch.not-convex", "what lies between them would have to be computed with them"},
    {"korch.several-functions",
     "TVM would have to make one function of both: it ends one at {subject}; astitch passes values between "
     "threads"},
    {"korch.dearer",
     "the kernels that store and read {subject} would have to take longer than one that computes it"},
    {"korch.window", "fewer ops between library calls: a component of at most {a} is planned at once"},
    {"fs.shrunk", "{a} bytes more of a block's shared memory would have to be free (shared_limit=device)"},
    {"astitch.cycle",
     "the other path would have to go: what lies on it ({why}) would have to join the kernel too"},
    {"astitch.max-ops", "{over} ops would have to go elsewhere (a kernel has at most {b})"},
    {"astitch.kernel-limits", "the kernel would have to be smaller: fewer groups or phases"},
    {"astitch.remote-cycle", "nothing: one reads what the other computes"},
    {"astitch.remote-once", "both would have to depend on weights alone, or neither"},
    {"astitch.remote-levels", "they would have to lie {over} levels closer in the graph"},
    {"astitch.remote-memory", "{over} bytes less would have to be alive at once"},
    {"astitch.remote-time", "together they would have to be predicted about as fast as apart"},
    {"astitch.block-locality",
     "a task would have to read only what it produces: the same rows under both mappings, unsplit"},
    {"astitch.same-phase",
     "{subject} would have to be computed in phase {b}, behind the barrier its reader waits for"},
    {"astitch.resident",
     "its blocks would have to have fewer tasks of it, or registers or shared memory to spare, and reading "
     "it "
     "again take longer"},
    {"astitch.tiles",
     "what is read or stored against its order in memory would have to be larger, so that whole sectors save "
     "more than tiles of shared memory cost"},
    {"astitch.staged",
     "all that the group reads and stores by elements would have to lie in the order of its rows, and the "
     "rows of "
     "a task fit the shared memory that its blocks leave, and take less time so"},
    {"astitch.one-pass",
     "the row would have to exceed half of its threads' registers, and reading and computing it again to "
     "cost "
     "more than gathering it"},
    {"astitch.small-value", "{subject} would have to have more than 1,024 elements, or save a grid barrier"},
    {"astitch.demoted", "the block would have to need less shared memory"},
    {"astitch.propagation", "{subject} would have to have the elements of that mapping, each read once"},
    {"astitch.reduction-domain", "{subject} would have to reduce the same dimensions of the same shape"},
    {"astitch.across-rows",
     "partials of every block would have to be predicted faster than another pass over the input, their "
     "accumulators in half the registers"},
    {"astitch.split-rows",
     "the rows would have to be more, or shorter, so that none is split (fewer blocks than a wave split rows "
     "of over 1,024)"},
    {"astitch.split-needs-atomics",
     "the reduction would have to be a sum from zero of a type with an atomic add"},
    {"astitch.light-cone", "its cone would have to cost more than a grid barrier to compute again"},
    {"astitch.store-shared",
     "storing it would have to be predicted faster than computing it where it is read"},
    {"astitch.shared-memory", "the block would have to need {over} bytes less; {admits}"},
    {"astitch.wave",
     "the block would have to need so little that {c} blocks a wave remain, not {b}; {admits}"},
    {"form.needs-wave", "nothing: the same form is tried with blocks that all run at once"},
    {"form.cut", "the kernel would have to be smaller: fewer groups or phases"},
    {"form.slower", kFaster},
    {"form.as-fast", kFaster},
    {"form.no-sure-gain", kFaster},
    {"auto.stitched", kFaster},
    {"auto.cut", kFaster},
    {"auto.apart", kFaster},
    {"auto.inlined", kFaster},
    {"auto.epilogue",
     "nothing: it would take longer in the call; epilogues=off shows how much else it saves"},
    {"auto.product",
     "all that it ties together would have to be faster in kernels, by more than the times may be wrong"},
    {"auto.recompute", "nothing: the kernel would read more without it; recompute=off shows how much"},
    {"auto.xla", kFaster},
    {"override.forbid_merge", "the override that forbids it would have to go"},
    {"override.launch", "the overrides would have to ask for one launch"},
    {"xla.consumer-is-no-loop", "{object} would have to be an op that a loop can compute element by element"},
    {"tvm.opaque", "TVM would have to know {subject} as element-wise, a broadcast, injective or a reduction"},
    {"astitch.isolated", "that op would have to read its operands by index maps"},
    {"boundary.library-call", "a library with a prologue or an epilogue, or a kernel that computes the call"},
    {"boundary.copy", "the copy would have to go: it only gives the value another buffer"},
    {"boundary.loop", "the loop would have to be unrolled"},
    {"boundary.branch", "both ways would have to be computed and one selected"},
    {"boundary.opaque-call", "it would have to be written in ops that kernels compute"},
    {"boundary.result", "nothing: results are stored, whatever else reads them"},
    {"boundary.optimization-barrier", "the barrier would have to go from the program"},
    {"boundary.cycle", "what lies between them would have to join the kernel too"},
    {"boundary.no-elements", "nothing: such arrays are left to kernels of their own"},
    {"boundary.not-recorded", "plan the model again, with explain MODEL OP"},
    {"unfused.one-op-a-kernel", "another planner: this one shows what no fusion costs"},
    {"eager.no-fusion", "a compiler: an eager framework launches op after op"},
    {"eager.contiguous", "{object} would have to take strides"},
    {"eager.library-function", "one kernel without barriers of the grid would have to compute all of it"},
    {"imported.as-compiled", "the compiler that wrote the dump would have to fuse them"},
    {"imported.roots", "one loop would have to give all the values of the fusion"},
    {"imported.form", "a generated kernel would need the form of that fusion"},
};

std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < text.size();) {
    // The 1 of reduce.1 is part of a name.
    const bool inside_name = i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) ||
                                       text[i - 1] == '.' || text[i - 1] == '_');
    if (!std::isdigit(static_cast<unsigned char>(text[i])) || inside_name) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end - i < 19) found.push_back(std::stoll(text.substr(i, end - i)));
    i = end;
  }
  return found;
}

std::string admission(const Device& device, std::int64_t bytes) {
  if (bytes > device.shared_bytes_per_block_optin)
    return fmt::format("no launch on {} admits {} bytes a block ({} at most)", device.id, bytes,
                       device.shared_bytes_per_block_optin);
  const std::int64_t blocks =
      device.shared_bytes_per_sm / std::max<std::int64_t>(1, bytes + device.shared_bytes_reserved_per_block);
  return fmt::format("{} block{} per SM would admit its {} bytes", blocks, blocks == 1 ? "" : "s", bytes);
}

}  // namespace

std::string remedy(const Device& device, const Decision& decision) {
  if (decision.verdict.ok) return "";
  for (const Remedy& row : kRemedies) {
    if (row.rule != decision.verdict.rule) continue;
    std::vector<std::int64_t> n = numbers_in(decision.verdict.why);
    n.resize(3, 0);
    return fmt::format(
        fmt::runtime(row.needs), fmt::arg("subject", decision.subject),
        fmt::arg("object", decision.object.empty() ? std::string("its reader") : decision.object),
        fmt::arg("why", decision.verdict.why), fmt::arg("a", n[0]), fmt::arg("b", n[1]), fmt::arg("c", n[2]),
        fmt::arg("over", n[0] - n[1]), fmt::arg("admits", admission(device, n[0])));
  }
  return "";
}

}  // namespace stitchwork
