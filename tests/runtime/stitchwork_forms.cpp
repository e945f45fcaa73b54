// Every form that planning's search completes for kernels of drawn graphs, estimated and simulated: what
// scripts/bench/forms reads. A line a form, tab separated, the column names first.
//
// stitchwork_forms FIRST_SEED LAST_SEED MAX_ELEMENTS DEVICE[,DEVICE...] [launches]: of each seed one family
// and shape (tests/support/held_out.h), families in turn. "launches": also the forms of launches that the
// search weighs by the largest domain alone, which it never completes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/forms/search.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/judge.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/tiles.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/codegen/judged.h"
#include "tests/support/held_out.h"

namespace stitchwork::testing {
namespace {

/// How the rows of the kernel's leading group come to its threads.
std::string transport(const KernelPlan& kernel) {
  for (const Group& group : kernel.groups) {
    const Mapping& m = group.mapping;
    if (!is_staged(m)) continue;
    const std::string copy = copies_in_bulk(m) ? "bulk" : copy_depth(m) > 0 ? "async" : "loads";
    return fmt::format("{} {} x{}", stages_a_row(m) ? "single rows" : "range", copy, copy_depth(m));
  }
  return "registers";
}

std::string mappings(const KernelPlan& kernel) {
  std::vector<std::string> texts;
  for (const Group& group : kernel.groups) texts.push_back(to_text(group.mapping, group.deal));
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// What two forms of one kernel can differ in.
std::string choices(const KernelPlan& kernel) {
  const KernelLaunch& launch = kernel.launch;
  std::size_t across = 0;
  for (const Group& group : kernel.groups) across += group.across.size();
  return fmt::format("{}x{}\t{}\t{}\t{}\t{}", launch.block, launch.blocks_per_sm, transport(kernel),
                     launch.grid_barriers, launch.cluster, across);
}

struct Simulated {
  double us = 0;
  std::string problem;
};

Simulated simulate(const Graph& graph, const Device& target, const KernelPlan& kernel) {
  try {
    const FusionPlan plan = assemble(graph, target, "astitch", {kernel});
    if (const std::vector<Verdict> problems = verify(graph, target, plan); !problems.empty())
      return {0, problems.front().why};
    CompileOptions compiling;
    compiling.ptxas = false;
    RunOptions running;
    running.sampled = true;
    const RunResult run =
        run_simulated(graph, target, compile(graph, target, plan, compiling), fillers(graph), running);
    if (!run.findings.empty()) return {0, run.findings.front().message};
    return {run.kernels.at(0).time_us, ""};
  } catch (const Error& error) {
    return {0, error.what()};
  }
}

/// Launches like those that mapping=tuned weighs by the largest domain
/// (analysis/stitching/launch.cpp).
std::vector<astitch::Form> launched(const Device& target) {
  std::vector<astitch::Form> forms;
  for (int cluster = 1; cluster <= std::min(4, largest_cluster(target)); cluster *= 2)
    for (const int share : {1, 2})
      for (const int block : {128, 256, 512, 1024}) {
        astitch::Form form;
        form.mappings.launch = astitch::TunedLaunch{block, share, cluster};
        forms.push_back(form);
        form.mappings.waits = true;
        if (cluster == 1) forms.push_back(form);
      }
  return forms;
}

/// Lists a stitch op's forms, those equal in their kernel once: the chosen one is "taken", others that the
/// search completed "tried".
void list(const std::string& what, const Graph& graph, const Device& target, const astitch::Nodes& nodes,
          const astitch::Options& options, bool launches, const astitch::Searched& searched) {
  std::set<std::string> seen;
  const auto line = [&](const astitch::Attempt& attempt, const char* status) {
    if (attempt.kernels.size() != 1) return;
    const KernelPlan& kernel = attempt.kernels.at(0);
    const std::string key = choices(kernel) + mappings(kernel);
    if (!seen.insert(key).second) return;
    const Simulated simulated = simulate(graph, target, kernel);
    const Worth of = modelled_judge().worth(graph, target, attempt.kernels);
    const Simplicity& simple = of.simple;
    fmt::print("{}\t{}\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\t{}\t{}\n", what, target.id, status,
               choices(kernel), astitch::to_text(nodes, attempt.form), mappings(kernel),
               kernel_cost(graph, target, kernel).predicted_us, simulated.us, of.dram_sectors, of.l2_sectors,
               fmt::join({simple.grid_barriers, simple.kinds_of_sync, simple.steps, simple.choices}, " "),
               simulated.problem);
    std::fflush(stdout);
  };
  line(searched.best(), "taken");
  for (const astitch::Attempt& attempt : searched.attempts) line(attempt, "tried");
  if (launches)
    for (const astitch::Form& form : launched(target))
      line(astitch::complete(nodes, searched.candidate, target, options, form), "launched");
}

void list_all(std::uint32_t seed, std::int64_t max_elements, const std::vector<std::string>& devices,
              bool launches) {
  Extents extents;
  extents.max_elements = max_elements;
  const HeldOut of = held_out(kHeldOutFamilies[seed % std::size(kHeldOutFamilies)], seed, extents);
  const Graph graph = held_out_graph(of);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  for (const std::string& id : devices) {
    const Device& target = device(id);
    astitch::Options options;
    options.tuned = true;
    Recorder silent(false);
    const astitch::Scope scope = astitch::find_scope(nodes, options.max_ops, silent);
    // Kernels alone: what several of a graph exchange is no form's doing.
    if (scope.stitch_ops.size() != 1) continue;
    const astitch::Searched searched = astitch::search(nodes, scope.stitch_ops[0], target, options);
    if (searched.best().kernels.size() != 1) continue;
    list(fmt::format("{}\t{}\t{}\t{}\t{}", seed, of.family, of.size.rows, of.size.cols, of.size.dtype), graph,
         target, nodes, options, launches, searched);
  }
}

}  // namespace
}  // namespace stitchwork::testing

int main(int argc, char** argv) {
  const bool launches = argc == 6 && argv[5] == std::string("launches");
  if (argc != 5 && !launches) {
    fmt::print(stderr,
               "usage: stitchwork_forms FIRST_SEED LAST_SEED MAX_ELEMENTS DEVICE[,DEVICE...] [launches]\n");
    return 1;
  }
  try {
    std::vector<std::string> devices;
    std::stringstream list(argv[4]);
    for (std::string id; std::getline(list, id, ',');) devices.push_back(id);
    fmt::print(
        "seed\tfamily\trows\tcols\tdtype\tdevice\tstatus\tlaunch\ttransport\tbarriers\tcluster\tacross\tform"
        "\t"
        "mappings\tpredicted_us\tsimulated_us\tdram_sectors\tl2_sectors\tsimplicity\tproblem\n");
    for (unsigned long seed = std::stoul(argv[1]); seed <= std::stoul(argv[2]); ++seed)
      stitchwork::testing::list_all(static_cast<std::uint32_t>(seed), std::stoll(argv[3]), devices, launches);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
