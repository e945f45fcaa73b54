#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/stitching/lifetimes.h"
#include "analysis/stitching/memory.h"
#include "tests/support/astitch_passes.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(AstitchFinalize, Fig7HasThePapersSchemesAndTwoBarriers) {
  const Graph graph = dataset("fig7");
  const Passes passes(graph);
  EXPECT_EQ(passes.scheme("reduce.1"), Scheme::kRegional);
  EXPECT_EQ(passes.scheme("power.1"), Scheme::kGlobal);
  EXPECT_EQ(passes.scheme("reduce.2"), Scheme::kGlobal);
  EXPECT_EQ(passes.scheme("multiply.1"), Scheme::kIndependent);
  for (const char* local : {"broadcast.1", "add.1", "divide.1", "broadcast.2", "add.2", "broadcast.3"}) {
    EXPECT_EQ(passes.scheme(local), Scheme::kLocal) << local;
  }
  EXPECT_EQ(passes.finalization.grid_barriers, 2);
}

TEST(AstitchFinalize, SoftmaxIsAllRegional) {
  const Graph graph = dataset("softmax");
  const Passes passes(graph);
  EXPECT_EQ(passes.groups.size(), 1u);
  EXPECT_EQ(passes.finalization.grid_barriers, 0);
  for (const auto& [id, kind] : passes.candidates.kinds) {
    if (passes.body.outputs.contains(id)) continue;
    EXPECT_EQ(passes.finalization.schemes.at(id), Scheme::kRegional) << passes.nodes.name(id);
  }
}

TEST(AstitchFinalize, LayerNormIsAllRegional) {
  const Graph graph = dataset("layer_norm");
  const Passes passes(graph);
  EXPECT_EQ(passes.groups.size(), 1u);
  EXPECT_EQ(passes.finalization.grid_barriers, 0);
}

const char* kRowsThenElements = R"(ENTRY e {
  x = f32[4096,256] parameter(0)
  y = f32[4096,8] parameter(1)
  zero = f32[] constant(0)
  r = f32[4096] reduce(x, zero), dimensions={1}, to_apply=sum
  wide = f32[4096,8] broadcast(r), dimensions={0}
  ROOT out = f32[4096,8] add(wide, y)
})";

TEST(AstitchFinalize, AnElementwiseGroupFollowsItsProducersBlocks) {
  const Graph graph = parse(kRowsThenElements);
  const Passes adapted(graph);
  EXPECT_EQ(adapted.scheme("r"), Scheme::kRegional);
  EXPECT_EQ(adapted.finalization.grid_barriers, 0);
  const Passes passive(graph, {1024, 160, true, true}, true, false);
  EXPECT_EQ(passive.scheme("r"), Scheme::kGlobal);
  EXPECT_EQ(passive.finalization.grid_barriers, 1);
}

TEST(AstitchFinalize, ReductionGroupsNeverAdapt) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[4096,256] parameter(0)
    y = f32[4096,64] parameter(1)
    zero = f32[] constant(0)
    r1 = f32[4096] reduce(x, zero), dimensions={1}, to_apply=sum
    wide = f32[4096,64] broadcast(r1), dimensions={0}
    b = f32[4096,64] add(y, wide)
    ROOT r2 = f32[4096] reduce(b, zero), dimensions={1}, to_apply=sum
  })");
  const Passes passes(graph);
  EXPECT_EQ(passes.scheme("r1"), Scheme::kGlobal);
  EXPECT_EQ(task_rows(passes.groups[1].mapping), 16);
}

TEST(AstitchFinalize, WithSeveralProducersTheOneThatSavesMostBytesWins) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[4096,256] parameter(0)
    y = f32[8192,512] parameter(1)
    z = f32[8192,4096] parameter(2)
    zero = f32[] constant(0)
    few = f32[4096] reduce(x, zero), dimensions={1}, to_apply=sum
    many = f32[8192] reduce(y, zero), dimensions={1}, to_apply=sum
    wf = f32[8192,4096] broadcast(few), dimensions={1}
    wm = f32[8192,4096] broadcast(many), dimensions={0}
    a = f32[8192,4096] add(wf, wm)
    ROOT out = f32[8192,4096] add(a, z)
  })");
  const Passes passes(graph);
  // few is needed whole by every row. It makes `out` a phase later than `many`, so both end up Global.
  EXPECT_EQ(passes.scheme("few"), Scheme::kGlobal);
  EXPECT_EQ(passes.scheme("many"), Scheme::kGlobal);
  EXPECT_EQ(passes.finalization.grid_barriers, 1);
}

TEST(AstitchFinalize, ARegionalValueIsNotReadAcrossABarrier) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,512] parameter(0)
    zero = f32[] constant(0)
    cols = f32[512] reduce(x, zero), dimensions={0}, to_apply=sum
    rows = f32[512] reduce(x, zero), dimensions={1}, to_apply=sum
    wr = f32[512,512] broadcast(rows), dimensions={0}
    wc = f32[512,512] broadcast(cols), dimensions={1}
    a = f32[512,512] add(x, wr)
    ROOT out = f32[512,512] add(a, wc)
  })");
  Passes passes(graph);
  EXPECT_EQ(passes.scheme("cols"), Scheme::kGlobal);
  EXPECT_EQ(passes.scheme("rows"), Scheme::kGlobal);
  EXPECT_EQ(passes.level("out"), 1);
  const auto decisions = passes.recorder.take();
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const Decision& d) {
    return d.subject == "rows" && d.verdict.rule == "astitch.same-phase";
  }));
}

/// Rows are normalised in their blocks; the column sums of the result need all blocks.
const char* kRowsThenCols = R"(ENTRY e {
  x = f32[512,512] parameter(0)
  zero = f32[] constant(0)
  rows = f32[512] reduce(x, zero), dimensions={1}, to_apply=sum
  wr = f32[512,512] broadcast(rows), dimensions={0}
  centred = f32[512,512] subtract(x, wr)
  squares = f32[512,512] multiply(centred, centred)
  spread = f32[512] reduce(squares, zero), dimensions={1}, to_apply=sum
  cols = f32[512] reduce(centred, zero), dimensions={0}, to_apply=sum
  ROOT t = (f32[512], f32[512]) tuple(spread, cols)
})";

TEST(AstitchFinalize, OnlyReadersOfOtherBlocksWaitAtABarrier) {
  const Graph graph = parse(kRowsThenCols);
  Passes passes(graph);
  EXPECT_EQ(passes.scheme("rows"), Scheme::kGlobal);
  EXPECT_EQ(passes.finalization.scheme_in_phase(graph.entry_computation().find("rows")), Scheme::kRegional);
  EXPECT_EQ(passes.level("spread"), 0);
  EXPECT_EQ(passes.level("cols"), 1);
  const MemoryPlan memory =
      plan_memory(passes.body, passes.groups, passes.finalization, {0, 1024}, true, passes.recorder);
  const NodeId rows = graph.entry_computation().find("rows");
  const auto of_rows = [rows](const MemorySlot& slot) { return slot.op == rows; };
  EXPECT_TRUE(std::any_of(memory.shared.begin(), memory.shared.end(), of_rows));
  EXPECT_TRUE(std::any_of(memory.scratch.begin(), memory.scratch.end(), of_rows));
}

TEST(AstitchFinalize, AValueDemotedToGlobalMemoryIsReadThereByItsOwnBlocksToo) {
  const Graph graph = parse(kRowsThenCols);
  Passes passes(graph);
  Recorder silent(false);
  const NodeId rows = graph.entry_computation().find("rows");
  const Finalization demoted =
      finalize(passes.body, passes.candidates, passes.groups, std::set<NodeId>{rows}, silent);
  EXPECT_TRUE(demoted.in_phase.empty());
  EXPECT_EQ(demoted.levels.at(graph.entry_computation().find("spread")), 1);
}

TEST(AstitchFinalize, AStoredElementStaysInRegistersForItsOwnThread) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,512] parameter(0)
    zero = f32[] constant(0)
    heavy = f32[512,512] exponential(x)
    cols = f32[512] reduce(heavy, zero), dimensions={0}, to_apply=sum
    both = f32[512,512] add(heavy, x)
    rows = f32[512] reduce(both, zero), dimensions={1}, to_apply=sum
    ROOT t = (f32[512], f32[512]) tuple(cols, rows)
  })");
  Passes passes(graph);
  const NodeId heavy = graph.entry_computation().find("heavy");
  Amendments stored;
  stored.promoted.insert(heavy);
  Recorder silent(false);
  const Candidates candidates = find_candidates(passes.body, stored, silent);
  const auto groups = form_groups(passes.body, candidates, {1024, 160, true, true}, true, silent);
  const Finalization result = finalize(passes.body, candidates, groups, {}, silent);
  EXPECT_EQ(result.schemes.at(heavy), Scheme::kGlobal);
  EXPECT_EQ(result.scheme_in_phase(heavy), Scheme::kLocal);
  EXPECT_TRUE(plan_memory(passes.body, groups, result, {0, 1024}, true, silent).shared.empty());
}

TEST(AstitchFinalize, ASmallValueThatLaterPhasesReadTiesNoOtherGroupToItsBlocks) {
  // The step's scalar is read by a group of one block, which could follow it, and by large ones.
  const Graph graph = parse(R"(ENTRY e {
    step = f32[] parameter(0)
    small = f32[48] parameter(1)
    large = f32[400000] parameter(2)
    rate = f32[] parameter(3)
    p = f32[] power(rate, step)
    ws = f32[48] broadcast(p), dimensions={}
    us = f32[48] divide(small, ws)
    wl = f32[400000] broadcast(p), dimensions={}
    ul = f32[400000] divide(large, wl)
    ROOT t = (f32[48], f32[400000]) tuple(us, ul)
  })");
  const Passes passes(graph);
  ASSERT_EQ(passes.scheme("p"), Scheme::kGlobal);
  EXPECT_TRUE(passes.finalization.in_phase.empty());
  EXPECT_EQ(passes.level("us"), passes.level("ul"));
}

TEST(AstitchFinalize, ASplitOutputNeedsABarrierForItsFold) {
  const Graph graph = dataset("row_64x30000");
  const Passes passes(graph);
  EXPECT_EQ(passes.finalization.grid_barriers, 1);
}

MemoryPlan plan(const Passes& passes, bool reuse) {
  Recorder recorder(false);
  return plan_memory(passes.body, passes.groups, passes.finalization, {128, 1024}, reuse, recorder);
}

TEST(AstitchMemory, RegionalValuesOfDifferentPhasesShareBytes) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,512] parameter(0)
    zero = f32[] constant(0)
    r1 = f32[512] reduce(x, zero), dimensions={1}, to_apply=sum
    w1 = f32[512,512] broadcast(r1), dimensions={0}
    a = f32[512,512] divide(x, w1)
    c = f32[512] reduce(a, zero), dimensions={0}, to_apply=sum
    wc = f32[512,512] broadcast(c), dimensions={1}
    b = f32[512,512] add(x, wc)
    r2 = f32[512] reduce(b, zero), dimensions={1}, to_apply=sum
    w2 = f32[512,512] broadcast(r2), dimensions={0}
    ROOT out = f32[512,512] divide(b, w2)
  })");
  const Passes passes(graph);
  const MemoryPlan apart = plan(passes, false), reused = plan(passes, true);
  EXPECT_LE(reused.shared_bytes, apart.shared_bytes);
  EXPECT_EQ(apart.shared.size(), reused.shared.size());
  EXPECT_EQ(reused.shared.back().op, kNoNode);
}

/// A chain of rows, each twice as long as the one before and read by the next step alone.
const char* kChain = R"(ENTRY e {
  x = f32[2048,128] parameter(0)
  y = f32[2048,128,2] parameter(1)
  z = f32[2048,128,2,2] parameter(2)
  w = f32[2048,128,2,2,2] parameter(3)
  zero = f32[] constant(0)
  m = f32[2048] reduce(x, zero), dimensions={1}, to_apply=sum
  wm = f32[2048,128] broadcast(m), dimensions={0}
  d = f32[2048,128] subtract(x, wm)
  e = f32[2048,128] exponential(d)
  we = f32[2048,128,2] broadcast(e), dimensions={0,1}
  p = f32[2048,128,2] multiply(we, y)
  t = f32[2048,128,2] exponential(p)
  wt = f32[2048,128,2,2] broadcast(t), dimensions={0,1,2}
  q = f32[2048,128,2,2] multiply(wt, z)
  u = f32[2048,128,2,2] exponential(q)
  wu = f32[2048,128,2,2,2] broadcast(u), dimensions={0,1,2,3}
  ROOT out = f32[2048,128,2,2,2] subtract(wu, w)
})";

TEST(AstitchMemory, AValueTakesOverTheBytesOfOneThatNoLaterStepReads) {
  const Graph graph = parse(kChain);
  const Passes passes(graph);
  // A task is 8 rows: e has 4 KiB and is read by t in step 2, so u, of 16 KiB and made in step 3, lies over
  // it.
  const SharedLifetimes lives = shared_lifetimes(passes.body, passes.groups, passes.finalization, 1024);
  const auto life = [&](const char* name) { return lives.values.at(passes.nodes.computation->find(name)); };
  EXPECT_TRUE(life("e").meets(life("t")));
  EXPECT_FALSE(life("e").meets(life("u")));
  EXPECT_EQ(passes.nodes.name(life("e").last_reader), "t");
  EXPECT_EQ(plan(passes, false).shared_bytes, 32 + 4096 + 8192 + 16384 + 128);
  EXPECT_EQ(plan(passes, true).shared_bytes, 8192 + 16384);
}

TEST(AstitchMemory, ReuseIsRecordedWithTheBytesItSaves) {
  const Graph graph = parse(kChain);
  const Passes passes(graph);
  Recorder recorder(true);
  plan_memory(passes.body, passes.groups, passes.finalization, {128, 1024}, true, recorder);
  std::vector<std::string> found;
  for (const Decision& d : recorder.take()) found.push_back(d.subject + ": " + d.verdict.why);
  EXPECT_THAT(found, Contains("u: takes over bytes of e, last read in step 2 of its task, in step 3"));
  EXPECT_THAT(found,
              Contains(HasSubstr("24576 bytes of shared memory a block, 28832 without reuse: 4256 saved")));
}

TEST(AstitchMemory, DemotesTheValueOfLeastTrafficPerByteFreed) {
  // e is a row of 16,384 elements (64 KiB a task), r one element a task: e frees most for its traffic.
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,16384] parameter(0)
    y = f32[512,16384,2] parameter(1)
    zero = f32[] constant(0)
    r = f32[512] reduce(x, zero), dimensions={1}, to_apply=sum
    wr = f32[512,16384] broadcast(r), dimensions={0}
    d = f32[512,16384] subtract(x, wr)
    e = f32[512,16384] exponential(d)
    we = f32[512,16384,2] broadcast(e), dimensions={0,1}
    ROOT out = f32[512,16384,2] add(we, y)
  })");
  const Passes passes(graph);
  ASSERT_EQ(passes.scheme("e"), Scheme::kRegional);
  ASSERT_EQ(passes.scheme("r"), Scheme::kRegional);
  const auto demoted = cheapest_demotion(passes.body, passes.groups, passes.finalization);
  ASSERT_TRUE(demoted.has_value());
  EXPECT_EQ(passes.nodes.name(*demoted), "e");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
