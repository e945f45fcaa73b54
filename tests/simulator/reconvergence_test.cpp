// Threads of a warp that come to a barrier of their block by different paths: from sm_70 on each thread
// arrives for itself (CUDA C++ Programming Guide, "Independent Thread Scheduling").
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Two blocks of two warps, with the sanitizers that look at barriers.
Outcome run_body(const std::string& body, const std::string& device_id = "v100", bool sync = false) {
  const std::string start =
      ".shared .align 4 .b8 tile[256];\n"
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mov.u32 %r3, tile;\nshl.b32 %r4, %r1, 2;\nadd.u32 %r5, %r3, %r4;\n"
      "mad.lo.u32 %r6, %r2, 64, %r1;\nmul.wide.u32 %d3, %r6, 4;\nadd.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, "
      "%d3;\nld.global.u32 %r7, [%d1];\nmov.u32 %r8, 0;\n";
  const ptx::Module module = ptx::parse(
      ".version 7.8\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .pred %p<16>;\n.reg .b32 %r<32>;\n.reg .b64 %d<8>;\n" +
          start + body + "\n}\n",
      "paths.ptx");
  Options options;
  options.sanitize = {.race = true, .init = true, .sync = sync};
  return run_on_numbers(module, {.kernel = "k", .grid = {2, 1, 1}, .block = {64, 1, 1}}, options, device_id,
                        128, 128);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

/// out[t] = tile[63 - t] behind the barrier, where what was written before is x + 1.
const std::string kReadBack =
    "sub.u32 %r9, 252, %r4;\nadd.u32 %r9, %r9, %r3;\nld.shared.u32 %r10, [%r9];\n"
    "add.u32 %r10, %r10, %r8;\nst.global.u32 [%d2], %r10;\n";

std::vector<std::uint32_t> mirrored(std::uint32_t added) {
  std::vector<std::uint32_t> expected(128);
  for (std::uint32_t t = 0; t < 128; ++t) expected[t] = t / 64 * 64 + (63 - t % 64) + 1 + added;
  return expected;
}

/// Lanes below 16 jump past a branch that no thread takes: the paths meet for sure only at the end.
const std::string kPastABranch =
    "st.shared.u32 [%r5], %r7;\nsetp.lt.u32 %p1, %r1, 16;\nsetp.gt.u32 %p2, %r7, 100000;\n"
    "@%p1 bra join;\nadd.u32 %r8, %r8, 0;\n@%p2 bra end;\njoin:\nbar.sync 0;\n" +
    kReadBack + "end:\nret;";

TEST(Reconvergence, PathsThatMeetAtABarrierArriveTogether) {
  const Outcome outcome = run_body(kPastABranch);
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.out, mirrored(0));
  EXPECT_EQ(outcome.result.counters.block_barriers, 2u);
}

TEST(Reconvergence, WhatFollowsTheBarrierRunsForTheWholeWarp) {
  // Behind the barrier a warp runs each instruction once, as it does where paths meet before it.
  const std::string before = "st.shared.u32 [%r5], %r7;\nsetp.lt.u32 %p1, %r1, 16;\n";
  const std::string together = before + "@%p1 bra join;\nadd.u32 %r8, %r8, 0;\njoin:\nbar.sync 0;\n";
  const std::string apart =
      before +
      "setp.gt.u32 %p2, %r7, 100000;\n@%p1 bra join;\nadd.u32 %r8, %r8, 0;\n@%p2 bra end;\njoin:\nbar.sync "
      "0;\n";
  const Outcome a = run_body(together + kReadBack + "ret;"), b = run_body(apart + kReadBack + "end:\nret;");
  EXPECT_EQ(b.out, a.out);
  // setp once a warp; the branch once for each warp that runs the other side.
  EXPECT_EQ(b.result.counters.inst_executed, a.result.counters.inst_executed + 4 + 4);
}

TEST(Reconvergence, BarriersInALoopWhoseTurnsComeByDifferentPaths) {
  // In turn k the lanes below 8 * k jump past the branch; each turn rewrites the tile between two barriers.
  const Outcome outcome = run_body(
      "mov.u32 %r11, 0;\nsetp.gt.u32 %p2, %r7, 100000;\nadd.u32 %r14, %r7, 0;\nturn:\n"
      "shl.b32 %r12, %r11, 3;\nsetp.lt.u32 %p1, %r1, %r12;\n@%p1 bra write;\n@%p2 bra end;\nwrite:\n"
      "bar.sync 0;\nst.shared.u32 [%r5], %r14;\n@%p1 bra read;\n@%p2 bra end;\nread:\nbar.sync 0;\n"
      "sub.u32 %r9, 252, %r4;\nadd.u32 %r9, %r9, %r3;\nld.shared.u32 %r14, [%r9];\n"
      "add.u32 %r11, %r11, 1;\nsetp.lt.u32 %p3, %r11, 5;\n@%p3 bra turn;\n"
      "st.global.u32 [%d2], %r14;\nend:\nret;");
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.out, mirrored(0)) << "an odd number of turns";
  EXPECT_EQ(outcome.result.counters.block_barriers, 2u * 10);
}

TEST(Reconvergence, LanesThatAGuardHoldsBackMayComeLater) {
  // The last 16 threads come to the guarded barrier in their second turn.
  const Outcome outcome = run_body(
      "st.shared.u32 [%r5], %r7;\nsetp.lt.u32 %p1, %r1, 48;\nturn:\n@%p1 bar.sync 0;\n@%p1 bra done;\n"
      "setp.ge.u32 %p1, %r1, 48;\nbra turn;\ndone:\n" +
      kReadBack + "ret;");
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.out, mirrored(0));
}

TEST(Reconvergence, ReductionsAtABarrierCountEachThreadOnce) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %r1, 16;\nsetp.gt.u32 %p2, %r7, 100000;\nand.b32 %r11, %r1, 1;\n"
      "setp.eq.u32 %p3, %r11, 1;\n@%p1 bra join;\n@%p2 bra end;\njoin:\n"
      "bar.red.popc.u32 %r12, 0, %p3;\nst.global.u32 [%d2], %r12;\nend:\nret;");
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.out, std::vector<std::uint32_t>(128, 32));
}

TEST(Reconvergence, ThreadsThatEndInsteadOfArrivingAreFound) {
  // Threads 20 to 31 leave by the branch between.
  std::string body = kPastABranch;
  body.replace(body.find("setp.gt.u32 %p2, %r7, 100000"), 28, "setp.gt.u32 %p2, %r1, 19");
  const Outcome outcome = run_body(body);
  ASSERT_EQ(outcome.result.findings.size(), 1u);
  EXPECT_EQ(outcome.text(),
            "divergent-barrier: block barrier reached by 20 of the 32 running threads of warp 0; this thread "
            "ended elsewhere");
  EXPECT_EQ(outcome.result.findings[0].thread.x, 20u);
}

TEST(Reconvergence, ThreadsThatArriveAtAnotherBarrierAreFound) {
  const Outcome outcome =
      run_body("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra other;\nbar.sync 0;\nret;\nother:\nbar.sync 0;\nret;");
  EXPECT_EQ(outcome.text(),
            "divergent-barrier: block barrier reached by 16 of the 32 running threads of warp 0; this thread "
            "is at another barrier");
  EXPECT_EQ(outcome.result.findings[0].thread.x, 16u);
}

TEST(Reconvergence, BeforeSm70AWarpArrivesAsAWhole) {
  EXPECT_EQ(run_body(kPastABranch, "p100").text(),
            "divergent-barrier: block barrier reached by 16 of the 32 running threads of warp 0; this thread "
            "is elsewhere");
}

/// As kPastABranch, with an exchange within the warp where the paths meet: `instruction` makes %r10.
std::string exchange(const std::string& instruction) {
  return "setp.lt.u32 %p1, %r1, 16;\nsetp.gt.u32 %p2, %r7, 100000;\nadd.u32 %r11, %r7, 0;\n"
         "@%p1 bra join;\nadd.u32 %r11, %r11, 1000;\n@%p2 bra end;\njoin:\n" +
         instruction + "\nst.global.u32 [%d2], %r10;\nend:\nret;";
}

TEST(Reconvergence, ExchangesWithinAWarpWaitForTheLanesTheyName) {
  const auto of = [](std::uint32_t t) { return t + 1 + (t % 64 < 16 ? 0 : 1000); };
  const Outcome shuffled = run_body(exchange("shfl.sync.bfly.b32 %r10, %r11, 16, 31, 0xffffffff;"));
  EXPECT_EQ(shuffled.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(shuffled.out[t], of(t ^ 16)) << t;

  const Outcome votes = run_body(exchange("vote.sync.ballot.b32 %r10, %p1, 0xffffffff;"));
  EXPECT_EQ(votes.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(votes.out[t], t % 64 < 32 ? 0xffffu : 0u) << t;

  const Outcome sums = run_body(exchange("redux.sync.add.u32 %r10, %r11, 0xffffffff;"), "a100");
  EXPECT_EQ(sums.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) {
    std::uint32_t sum = 0;
    for (std::uint32_t l = t / 32 * 32; l < t / 32 * 32 + 32; ++l) sum += of(l);
    EXPECT_EQ(sums.out[t], sum) << t;
  }
}

TEST(Reconvergence, WhatLanesLeaveForEachOtherIsThereBehindABarrierOfTheirWarp) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %r1, 16;\nsetp.gt.u32 %p2, %r7, 100000;\nst.shared.u32 [%r5], %r7;\n"
      "@%p1 bra join;\n@%p2 bra end;\njoin:\nbar.warp.sync 0xffffffff;\nxor.b32 %r9, %r4, 64;\n"
      "add.u32 %r9, %r9, %r3;\nld.shared.u32 %r10, [%r9];\nst.global.u32 [%d2], %r10;\nend:\nret;");
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(outcome.out[t], (t ^ 16) + 1) << t;
}

TEST(Reconvergence, LanesThatAnExchangeDoesNotNameAreNotWaitedFor) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %r1, 48;\nand.b32 %r12, %r1, 31;\nsetp.lt.u32 %p2, %r12, 16;\nmov.u32 %r10, 0;\n"
      "@!%p2 bra done;\nshfl.sync.bfly.b32 %r10, %r7, 1, 31, 0xffff;\ndone:\nst.global.u32 [%d2], "
      "%r10;\nret;");
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(outcome.out[t], t % 32 < 16 ? (t ^ 1) + 1 : 0) << t;
}

TEST(Reconvergence, LanesThatHaveEndedAreNotWaitedForButNotRead) {
  // Threads 20 to 31 of the first warp end instead of exchanging (PTX ISA, shfl.sync: non-exited threads are
  // waited for).
  std::string body = exchange("shfl.sync.bfly.b32 %r10, %r11, 16, 31, 0xffffffff;");
  body.replace(body.find("setp.gt.u32 %p2, %r7, 100000"), 28, "setp.gt.u32 %p2, %r1, 19");
  EXPECT_EQ(run_body(body, "v100", true).text(),
            "membermask: shuffle reads lane 20 of warp 0, which has ended, or is past the end of the block");
  const std::string neighbours = replaced(body, "bfly.b32 %r10, %r11, 16", "bfly.b32 %r10, %r11, 1");
  const Outcome outcome = run_body(neighbours, "v100", true);
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 20; ++t)
    EXPECT_EQ(outcome.out[t], (t ^ 1) + 1 + ((t ^ 1) < 16 ? 0 : 1000)) << t;
}

TEST(Reconvergence, LanesOfAPartOfTheWarpAreWaitedFor) {
  // Lanes 8 to 23 exchange; those below 16 jump past a branch that no lane takes, the others of the warp end.
  const Outcome outcome = run_body(
      "and.b32 %r12, %r1, 31;\nsub.u32 %r13, %r12, 8;\nsetp.ge.u32 %p3, %r13, 16;\n@%p3 bra end;\n"
      "setp.lt.u32 %p1, %r12, 16;\nsetp.gt.u32 %p2, %r7, 100000;\nadd.u32 %r11, %r7, 0;\n@%p1 bra join;\n"
      "add.u32 %r11, %r11, 1000;\n@%p2 bra end;\njoin:\nshfl.sync.idx.b32 %r10, %r11, 8, 31, 0x00ffff00;\n"
      "redux.sync.max.u32 %r14, %r11, 0x00ffff00;\nadd.u32 %r10, %r10, %r14;\nst.global.u32 [%d2], "
      "%r10;\nend:\nret;",
      "a100", true);
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) {
    const std::uint32_t lane = t % 32, warp = t - lane;
    EXPECT_EQ(outcome.out[t], lane < 8 || lane > 23 ? 0 : (warp + 8 + 1) + (warp + 23 + 1 + 1000)) << t;
  }
}

TEST(Reconvergence, UnalignedBarriersMayStandInDifferentPlaces) {
  const std::string two =
      "st.shared.u32 [%r5], %r7;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra other;\n"
      "barrier.sync 0;\nbra join;\nother:\nbarrier.sync 0;\nadd.u32 %r8, %r8, 0;\njoin:\n" +
      kReadBack + "ret;";
  const Outcome outcome = run_body(two);
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.out, mirrored(0));
  EXPECT_EQ(outcome.result.counters.block_barriers, 2u);
  EXPECT_EQ(run_body(replaced(replaced(two, "barrier.sync", "barrier.sync.aligned"), "barrier.sync 0",
                              "barrier.sync.aligned 0"))
                .text(),
            "divergent-barrier: block barrier reached by 16 of the 32 running threads of warp 0; this thread "
            "is at another barrier");
  // Reductions count every thread once, and a thread that has ended need not come.
  const Outcome counted = run_body(
      "setp.lt.u32 %p1, %r1, 16;\nand.b32 %r11, %r1, 1;\nsetp.eq.u32 %p3, %r11, 1;\n@%p1 bra other;\n"
      "barrier.red.popc.u32 %r12, 0, %p3;\nbra join;\nother:\nbarrier.red.popc.u32 %r12, 0, %p3;\njoin:\n"
      "st.global.u32 [%d2], %r12;\nret;");
  EXPECT_EQ(counted.text(), "");
  EXPECT_EQ(counted.out, std::vector<std::uint32_t>(128, 32));
  const Outcome ended = run_body(
      "st.shared.u32 [%r5], %r7;\nsetp.gt.u32 %p2, %r1, 59;\nsetp.lt.u32 %p1, %r1, 40;\nmov.u32 %r10, 7;\n"
      "@%p1 bra join;\n@%p2 bra end;\njoin:\nbarrier.sync 0;\nst.global.u32 [%d2], %r10;\nend:\nret;");
  EXPECT_EQ(ended.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(ended.out[t], t % 64 < 60 ? 7u : 0u) << t;
}

TEST(Reconvergence, BarriersOfAWarpMayStandInDifferentPlaces) {
  const std::string two =
      "setp.lt.u32 %p1, %r1, 16;\nst.shared.u32 [%r5], %r7;\nxor.b32 %r9, %r4, 64;\nadd.u32 %r9, %r9, %r3;\n"
      "@%p1 bra other;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r10, [%r9];\nbra join;\nother:\n"
      "bar.warp.sync 0xffffffff;\nld.shared.u32 %r10, [%r9];\njoin:\nst.global.u32 [%d2], %r10;\nret;";
  const Outcome outcome = run_body(two, "v100", true);
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(outcome.out[t], (t ^ 16) + 1) << t;
  // Each side waits for lanes that come to no such barrier.
  EXPECT_EQ(
      run_body(replaced(two, "other:\nbar.warp.sync 0xffffffff;",
                        "other:\nshfl.sync.idx.b32 %r10, %r7, 0, 31, "
                        "-1;"))
          .text(),
      "divergent-barrier: shuffle reached by 16 of the 32 running threads of warp 0; this thread waits for "
      "others elsewhere");
}

/// A lock that all lanes of a warp want: who has it waits at the end of the loop for the others, which poll.
const std::string kLock =
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r3], 0;\n@%p1 st.shared.u32 [%r3+4], 0;\nbar.sync 0;\n"
    "again:\natom.shared.cas.b32 %r10, [%r3], 0, 1;\nsetp.ne.u32 %p1, %r10, 0;\n@%p1 bra again;\n"
    "membar.cta;\nld.shared.u32 %r11, [%r3+4];\nadd.u32 %r11, %r11, 1;\nst.shared.u32 [%r3+4], %r11;\n"
    "membar.cta;\natom.shared.exch.b32 %r12, [%r3], 0;\n"
    "bar.sync 0;\nld.shared.u32 %r10, [%r3+4];\nst.global.u32 [%d2], %r10;\nret;";

TEST(Reconvergence, ALockBetweenLanesOfAWarpOpens) {
  const Outcome outcome = run_body(kLock, "v100", true);
  EXPECT_EQ(outcome.text(), "");
  EXPECT_EQ(outcome.out, std::vector<std::uint32_t>(128, 64));
}

TEST(Reconvergence, ALockThatNobodyOpensIsALivelock) {
  const std::string shut = replaced(kLock, "atom.shared.exch.b32 %r12, [%r3], 0;", "");
  EXPECT_EQ(run_body(shut).text(), "livelock: polls memory that no running thread will change");
}

TEST(Reconvergence, BeforeSm70ALockBetweenLanesOfAWarpStaysShut) {
  EXPECT_EQ(
      run_body(kLock, "p100").text(),
      "livelock: polls memory that no running thread will change; 1 other threads of its warp are held "
      "back: before sm_70 the sides of a branch run one after the other, so a lock between lanes of one "
      "warp does not open");
}

TEST(Reconvergence, GroupsWithMasksOfTheirOwnExchangeAmongThemselves) {
  // Lanes of one remainder by 3 are a group: what cooperative groups make of a label.
  const std::string masks =
      "rem.u32 %r12, %r1, 3;\nand.b32 %r13, %r1, 31;\nmatch.any.sync.b32 %r14, %r12, 0xffffffff;\n"
      "and.b32 %r15, %r1, 1;\nsetp.eq.u32 %p1, %r15, 1;\n";
  const auto group = [](std::uint32_t t) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t u = t / 32 * 32; u < t / 32 * 32 + 32; ++u)
      if (u % 64 % 3 == t % 64 % 3) members.push_back(u);
    return members;
  };
  const Outcome most =
      run_body(masks + "redux.sync.max.s32 %r10, %r7, %r14;\nst.global.u32 [%d2], %r10;\nret;", "a100", true);
  EXPECT_EQ(most.text(), "");
  const Outcome any =
      run_body(masks +
                   "redux.sync.min.u32 %r16, %r13, %r14;\nsetp.eq.u32 %p2, %r12, 1;\n"
                   "vote.sync.all.pred %p3, %p2, %r14;\nvote.sync.ballot.b32 %r17, %p1, %r14;\n"
                   "elect.sync %r18|%p4, %r14;\nselp.u32 %r10, 1000, 0, %p3;\nadd.u32 %r10, %r10, "
                   "%r16;\npopc.b32 %r17, %r17;\nmad.lo.u32 %r10, %r17, 10000, %r10;\nst.global.u32 "
                   "[%d2], %r10;\nret;",
               "h100", true);
  EXPECT_EQ(any.text(), "");
  for (std::uint32_t t = 0; t < 128; ++t) {
    const auto members = group(t);
    EXPECT_EQ(most.out[t], members.back() + 1) << t;
    std::uint32_t odd = 0;
    for (const std::uint32_t m : members) odd += m & 1;
    EXPECT_EQ(any.out[t], odd * 10000 + (t % 64 % 3 == 1 ? 1000 : 0) + members.front() % 32) << t;
  }
}

TEST(Reconvergence, MasksThatNameTheWrongLanesAreFound) {
  struct Case {
    const char *body, *text;
  };
  for (const auto& [body, text] :
       {Case{"vote.sync.ballot.b32 %r10, %p1, 0x7fffffff;",
             "membermask: vote by lane 31, which its own membermask 0x7fffffff does not name"},
        Case{"add.u32 %r9, %r1, 4294967264;\nredux.sync.add.u32 %r10, %r7, %r9;",
             "membermask: redux by lane 0"},
        Case{"setp.lt.u32 %p2, %r1, 8;\nselp.b32 %r9, 0xffff, 0xffffffff, %p2;\nbar.warp.sync %r9;",
             "membermask: warp barrier with membermask 0x0000ffff names lane 8, whose membermask is "
             "0xffffffff"},
        Case{"and.b32 %r12, %r1, 31;\nsetp.ge.u32 %p2, %r12, 16;\n@%p2 bra end;\nshfl.sync.down.b32 %r10, "
             "%r7, 8, "
             "31, 0xffff;",
             "membermask: shuffle reads lane 16 of warp 0, which its membermask 0x0000ffff does not name"}}) {
    const std::string whole = std::string("setp.eq.u32 %p1, %r1, 0;\n") + body + "\nend:\nret;";
    const std::string found = run_body(whole, "a100", true).text();
    EXPECT_EQ(found.substr(0, std::string(text).size()), text) << body << found;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
