// Programs for what is asynchronous or between the blocks of a cluster: mbarriers, bulk copies and
// reductions, asynchronous stores, proxy fences, barriers and addresses of clusters.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "tests/simulator/modifier_programs.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Addresses of shared memory: of an mbarrier `bar` (%r28, as 64 bits %d27, generic %d25) and of `data`
/// (%r26, %d23, generic %d22); of the same in the other block of the cluster %r27, %d26, generic %d24, and
/// %r25, %d21, generic %d20. `data` begins as the first 16 bytes of every thread's row of inputs, the
/// thread's own at %r21 (%d16; of the other block %d17, generic %d18). %p1: thread 0.
const std::string kObjects =
    ".shared .align 128 .b8 bar[128];\n.shared .align 128 .b8 data[1024];\n"
    "mov.u32 %r28, bar;\ncvt.u64.u32 %d27, %r28;\ncvta.shared.u64 %d25, %d27;\n"
    "mov.u32 %r26, data;\ncvt.u64.u32 %d23, %r26;\ncvta.shared.u64 %d22, %d23;\n"
    "mov.u32 %r24, %cluster_ctarank;\nxor.b32 %r24, %r24, 1;\nmov.u64 %d0, 0;\n"
    "mapa.shared::cluster.u32 %r27, %r28, %r24;\ncvt.u64.u32 %d26, %r27;\nmapa.u64 %d24, %d25, %r24;\n"
    "mapa.shared::cluster.u32 %r25, %r26, %r24;\ncvt.u64.u32 %d21, %r25;\nmapa.u64 %d20, %d22, %r24;\n"
    "setp.eq.u32 %p1, %r30, 0;\nshl.b32 %r22, %r30, 4;\nadd.u32 %r21, %r26, %r22;\n"
    "ld.global.v2.b64 {%d1, %d2}, [%d30];\nst.shared.v2.b64 [%r21], {%d1, %d2};\n"
    "cvt.u64.u32 %d19, %r22;\nadd.u64 %d18, %d20, %d19;\nadd.u64 %d17, %d21, %d19;\n"
    "add.u64 %d16, %d23, %d19;\n";

std::string init(int count) { return fmt::format("@%p1 mbarrier.init.shared::cta.b64 [%r28], {};\n", count); }
/// Waits, though not for ever, and leaves whether it came in %r5.
std::string wait(const std::string& label, const std::string& order = ".acquire.cluster", int parity = 0) {
  return fmt::format(
      "mov.u32 %r23, 0;\n{0}:\nadd.u32 %r23, %r23, 1;\nmbarrier.try_wait.parity{1}.shared::cta.b64 %p7, "
      "[%r28], {2};\nsetp.lt.u32 %p6, %r23, 100;\n@%p7 bra {0}_CAME;\n@%p6 bra {0};\n{0}_CAME:\n"
      "selp.u32 %r5, 1, 0, %p7;\n",
      label, order, parity);
}
/// All threads of all blocks of the cluster meet.
const std::string kMeet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
/// Of the thread's own of `data`, and of the word %r5.
const std::string kStoreData =
    "st.global.u32 [%d31+24], %r5;\nld.shared.v2.b64 {%d1, %d2}, [%r21];\nst.global.v2.b64 [%d31], {%d1, "
    "%d2};\n";

ModifierProgram program(const std::string& body, std::uint32_t blocks, std::uint32_t threads) {
  ModifierProgram p = modifier_program(kObjects + body, blocks, threads, true);
  if (blocks > 1) p.text.insert(p.text.find("\n{\n"), "\n.reqnctapercluster 2, 1, 1");
  return p;
}

/// `[address]` as spaces are named: .shared, .shared::cta, .shared::cluster, or none.
std::string address(const std::string& space, bool other_block) {
  if (space.empty()) return other_block ? "[%d24]" : "[%d25]";
  return other_block ? "[%d26]" : "[%d27]";
}
const char* const kSpaces[] = {"", ".shared", ".shared::cta"};

/// How an mbarrier's count comes to be complete by an arrival of each kind with the operand 2: the count to
/// begin with, and what else has to come.
struct Completion {
  const char* modifier;
  int count;
  std::string rest;
};
const Completion kCompletions[] = {
    {"", 2, ""},
    {".expect_tx", 1, "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r28], 2;\n"},
    {".noComplete", 3, "mbarrier.arrive.relaxed.cta.shared::cta.b64 %d9, [%r28];\n"}};
const char* const kOrders[] = {"", ".cta", ".cluster"};

/// States and counts of one thread: the arrival, what is pending then, the end of the phase and the next one,
/// which shows a drop.
ModifierProgram arrival_states(const std::string& at, int count, const std::string& rest) {
  return program(init(count) + "@!%p1 bra END;\nOPCODE %d5, " + at +
                     ", 2;\nmbarrier.pending_count.b64 %r6, %d5;\nst.global.u32 [%d31], %r6;\n" + rest +
                     wait("FIRST") +
                     "st.global.u32 [%d31+4], %r5;\nmbarrier.arrive.noComplete.shared::cta.b64 %d6, [%r28], "
                     "1;\nmbarrier.pending_count.b64 %r6, %d6;\nst.global.u32 [%d31+8], %r6;\nEND:\n",
                 1, 32);
}
/// The same where no more is wanted than an arrival gives.
ModifierProgram last_arrival(const std::string& at) {
  return program(init(2) + "@!%p1 bra END;\nOPCODE %d5, " + at + ", 2;\n" + wait("FIRST") +
                     "st.global.u32 [%d31+4], %r5;\nEND:\n",
                 1, 32);
}
/// One warp leaves a word and arrives, another waits and takes it.
ModifierProgram arrival_message(const std::string& arrive, int count, const std::string& rest,
                                const std::string& waits) {
  return program(init(count) +
                     "bar.sync 0;\nand.b32 %r6, %r30, 31;\nsetp.ne.u32 %p2, %r6, 0;\n@%p2 bra "
                     "END;\n@!%p1 bra WAITER;\nst.shared.u32 [%r26+64], 42;\n" +
                     arrive + rest + "bra END;\nWAITER:\n" + waits +
                     "st.global.u32 [%d31], %r5;\nld.shared.u32 %r7, [%r26+64];\nst.global.u32 [%d31+4], "
                     "%r7;\nEND:\n",
                 1, 64);
}
/// The same between blocks, in global memory.
ModifierProgram remote_message(const std::string& arrive, int count, const std::string& waits) {
  return program("ld.param.u64 %d28, [out];\n" + init(count) + kMeet +
                     "@!%p1 bra END;\nsetp.eq.u32 %p2, %r24, 0;\n@%p2 bra WAITER;\nst.global.u32 [%d28+128], "
                     "42;\n" +
                     arrive + "bra END;\nWAITER:\n" + waits +
                     "st.global.u32 [%d28], %r5;\nld.global.u32 %r7, [%d28+128];\nst.global.u32 [%d28+4], "
                     "%r7;\nEND:\n" +
                     kMeet,
                 2, 32);
}
/// Whether the phase is complete of the mbarrier at which a thread of the other block arrives, and what the
/// next one wants, which shows a drop.
ModifierProgram remote_states(const std::string& arrive, int count) {
  return program(
      init(count) + kMeet + "@!%p1 bra END;\nsetp.eq.u32 %p2, %r24, 0;\n@%p2 bra WAITER;\n" + arrive +
          "bra END;\nWAITER:\n" + wait("AGAIN") +
          "st.global.u32 [%d31], %r5;\nmbarrier.arrive.noComplete.relaxed.cta.shared::cta.b64 %d6, "
          "[%r28], 1;\nmbarrier.pending_count.b64 %r6, %d6;\nst.global.u32 [%d31+8], %r6;\nEND:\n" +
          kMeet,
      2, 32);
}

void add_arrivals(std::vector<ModifierForm>& forms) {
  for (const std::string base : {"mbarrier.arrive", "mbarrier.arrive_drop"})
    for (const Completion& c : kCompletions)
      for (const std::string order :
           {"", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster"}) {
        for (const std::string space : kSpaces) {
          const std::string at = address(space, false);
          forms.push_back(
              {base + c.modifier + order + space + ".b64",
               {arrival_states(at, c.count, c.rest), last_arrival(at),
                arrival_message("OPCODE %d5, " + at + ", 2;\n", c.count, c.rest, wait("AGAIN"))}});
        }
        // Of the other block nobody gets the state.
        for (const std::string space : {"", ".shared::cluster"}) {
          const std::string arrive = "OPCODE _, " + address(space, true) + ", 2;\n";
          const std::string rest =
              *c.modifier == 0 ? ""
              : c.count == 1
                  ? "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 " + address(".", true) +
                        ", 2;\n"
                  : "mbarrier.arrive.relaxed.cta.shared::cluster.b64 _, " + address(".", true) + ", 1;\n";
          forms.push_back(
              {base + c.modifier + order + space + ".b64",
               {remote_states(arrive, 2), remote_states(arrive + rest, c.count),
                remote_message(arrive + rest, c.count, wait("AGAIN")),
                remote_message("fence.acq_rel.cluster;\n" + arrive + rest, c.count, wait("AGAIN"))}});
        }
      }
}

void add_waits(std::vector<ModifierForm>& forms) {
  for (const std::string base : {"mbarrier.test_wait", "mbarrier.try_wait"})
    for (const std::string parity : {"", ".parity"})
      for (const std::string order :
           {"", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster"})
        for (const std::string space : kSpaces) {
          const std::string at = address(space, false), value = parity.empty() ? "%d5" : "0";
          const auto waits = [&](const std::string& state) {
            return state + "mov.u32 %r23, 0;\nAGAIN:\nadd.u32 %r23, %r23, 1;\nOPCODE %p7, " + at + ", " +
                   value +
                   ";\nsetp.lt.u32 %p6, %r23, 100;\n@%p7 bra CAME;\n@%p6 bra AGAIN;\nCAME:\nselp.u32 %r5, 1, "
                   "0, %p7;\n";
          };
          // The waiting warp arrives too, which gives it the state.
          const std::string arrives = "mbarrier.arrive.relaxed.cta.shared::cta.b64 %d5, [%r28];\n",
                            remote = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r27];\n";
          forms.push_back({base + parity + order + space + ".b64",
                           {arrival_message("mbarrier.arrive.release.cta.shared::cta.b64 %d6, [%r28];\n", 2,
                                            "", waits(arrives)),
                            remote_message(remote, 2, waits(arrives)),
                            remote_message(remote, 2, waits(arrives) + "fence.acq_rel.cluster;\n")}});
        }
}

void add_counts(std::vector<ModifierForm>& forms) {
  for (const std::string space : kSpaces) {
    const std::string at = address(space, false);
    forms.push_back({"mbarrier.init" + space + ".b64",
                     {program("@!%p1 bra END;\nOPCODE " + at +
                                  ", 3;\nmbarrier.arrive.shared::cta.b64 %d5, [%r28];\n"
                                  "mbarrier.pending_count.b64 %r6, %d5;\nst.global.u32 [%d31], %r6;\nEND:\n",
                              1, 32)}});
    forms.push_back({"mbarrier.inval" + space + ".b64",
                     {program(init(1) + "@!%p1 bra END;\nOPCODE " + at +
                                  ";\nst.shared.u64 [%r28], %d0;\nst.global.u32 [%d31], %r30;\nEND:\n",
                              1, 32)}});
  }
  for (const std::string base : {"mbarrier.expect_tx", "mbarrier.complete_tx"})
    for (const std::string order : {"", ".relaxed.cta", ".relaxed.cluster"}) {
      for (const std::string space : kSpaces)
        forms.push_back(
            {base + order + space + ".b64",
             {program(init(1) + "@!%p1 bra END;\nmbarrier.expect_tx.shared::cta.b64 [%r28], 8;\nOPCODE " +
                          address(space, false) + ", 8;\nmbarrier.arrive.shared::cta.b64 %d5, [%r28];\n" +
                          wait("AGAIN") + "st.global.u32 [%d31], %r5;\nEND:\n",
                      1, 32)}});
      for (const std::string space : {"", ".shared::cluster"})
        forms.push_back({base + order + space + ".b64",
                         {program(init(1) + "@%p1 mbarrier.expect_tx.shared::cta.b64 [%r28], 8;\n" + kMeet +
                                      "@%p1 OPCODE " + address(space, true) + ", 8;\n" + kMeet +
                                      "@!%p1 bra END;\nmbarrier.arrive.shared::cta.b64 %d5, [%r28];\n" +
                                      wait("AGAIN") + "st.global.u32 [%d31], %r5;\nEND:\n",
                                  2, 32)}});
    }
  forms.push_back(
      {"mbarrier.pending_count.b64",
       {program(init(3) + "@!%p1 bra END;\nmbarrier.arrive.shared::cta.b64 %d5, [%r28];\nOPCODE %r6, "
                          "%d5;\nst.global.u32 [%d31], %r6;\nEND:\n",
                1, 32)}});
  // An arrival when the thread's copies are complete: one more to wait for, or one of those there are.
  for (const std::string counts : {"", ".noinc"})
    for (const std::string space : kSpaces) {
      const auto copied = [&](int count, const std::string& arrives) {
        return program(init(count) +
                           "@!%p1 bra END;\ncp.async.ca.shared.global [%r26], [%d30+32], 16;\nOPCODE " +
                           address(space, false) + ";\n" + arrives + wait("AGAIN") + kStoreData + "END:\n",
                       1, 32);
      };
      forms.push_back({"cp.async.mbarrier.arrive" + counts + space + ".b64",
                       {copied(1, "mbarrier.arrive.shared::cta.b64 %d5, [%r28];\n"), copied(1, "")}});
    }
}

void add_clusters(std::vector<ModifierForm>& forms) {
  const auto meet = [&](const std::string& arrive, const std::string& wait) {
    return program(
        "ld.param.u64 %d28, [out];\nsetp.eq.u32 %p2, %r24, 0;\nand.pred %p3, %p1, %p2;\n@%p3 "
        "st.global.u32 [%d28+128], 42;\n" +
            arrive + wait +
            "mov.u32 %r7, 0;\nsetp.ne.and.u32 %p3, %r24, 0, %p1;\n@%p3 ld.global.u32 %r7, "
            "[%d28+128];\nst.global.u32 [%d31+16], %r7;\n",
        2, 32);
  };
  const auto apart = [](const std::string& line) {
    return "setp.lt.u32 %p5, %r30, 16;\n@%p5 bra OTHER;\n" + line + "bra JOIN;\nOTHER:\n" + line +
           "add.u32 %r7, %r7, 0;\nJOIN:\n";
  };
  const std::string line = "OPCODE;\n";
  for (const std::string aligned : {"", ".aligned"}) {
    for (const std::string order : {"", ".release", ".relaxed"})
      forms.push_back({"barrier.cluster.arrive" + order + aligned,
                       {meet(line, "barrier.cluster.wait;\n"),
                        meet("mov.u32 %r7, 0;\n" + apart(line), "barrier.cluster.wait;\n")}});
    for (const std::string order : {"", ".acquire"})
      forms.push_back({"barrier.cluster.wait" + order + aligned,
                       {meet("barrier.cluster.arrive;\n", line),
                        meet("mov.u32 %r7, 0;\nbarrier.cluster.arrive;\n", apart(line))}});
  }
  for (const std::string space : {"", ".shared::cluster"}) {
    const bool generic = space.empty();
    forms.push_back({"mapa" + space + ".u64",
                     {program(fmt::format("OPCODE %d5, {}, %r24;\nst.global.b64 [%d31], %d5;\n",
                                          generic ? "%d25" : "%d27"),
                              2, 32)}});
    forms.push_back(
        {"getctarank" + space + ".u64",
         {program(fmt::format("OPCODE %r5, {};\nst.global.b32 [%d31], %r5;\n", generic ? "%d24" : "%d26"), 2,
                  32)}});
  }
  for (const std::string space : {"", ".shared::cluster"}) {
    forms.push_back(
        {"mapa" + space + ".u32", {program("OPCODE %r5, %r28, %r24;\nst.global.b32 [%d31], %r5;\n", 2, 32)}});
    forms.push_back(
        {"getctarank" + space + ".u32", {program("OPCODE %r5, %r27;\nst.global.b32 [%d31], %r5;\n", 2, 32)}});
  }
  forms.push_back(
      {"fence.mbarrier_init.release.cluster",
       {program(
           init(1) +
               "OPCODE;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
               "@%p1 mbarrier.arrive.shared::cluster.b64 _, [%r27];\n" +
               kMeet + wait("AGAIN") + "st.global.u32 [%d31], %r5;\n",
           2, 32)}});
}

int type_bytes_of(const std::string& type) { return type.ends_with("64") ? 8 : type.ends_with("16") ? 2 : 4; }
char letter_of(const std::string& type) {
  return type == "f32" ? 'f' : type == "f64" ? 'e' : type_bytes_of(type) == 8 ? 'd' : 'r';
}

/// From one block's registers to the other's shared memory, which counts the bytes.
void add_async_stores(std::vector<ModifierForm>& forms) {
  const auto stored = [](const std::string& type, int count, const std::string& space) {
    const int bytes = type_bytes_of(type);
    const char letter = letter_of(type);
    std::string values, list;
    for (int k = 0; k < count; ++k) {
      values += fmt::format("ld.global.b{} %{}{}, [%d30+{}];\n", bytes * 8, letter, 10 + k, 32 + 8 * k);
      list += fmt::format("{}%{}{}", k == 0 ? "" : ", ", letter, 10 + k);
    }
    if (count > 1) list = "{" + list + "}";
    const bool own = space == ".shared::cta";
    const char *to = own             ? "%d16"
                     : space.empty() ? "%d18"
                                     : "%d17",
               *at = own             ? "%d27"
                     : space.empty() ? "%d24"
                                     : "%d26";
    return program(init(1) +
                       fmt::format("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %d9, [%r28], {};\n",
                                   32 * bytes * count) +
                       kMeet + values + fmt::format("OPCODE [{}], {}, [{}];\n", to, list, at) +
                       wait("AGAIN") + kStoreData + kMeet,
                   2, 32);
  };
  for (const std::string weak : {"", ".weak"})
    for (const std::string space : {"", ".shared::cluster", ".shared::cta"})
      for (const std::string type : {"b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"})
        for (const int count : {1, 2, 4})
          if (count < 4 || (type.ends_with("32")))
            forms.push_back({"st.async" + weak + space + ".mbarrier::complete_tx::bytes" +
                                 (count == 1 ? "" : fmt::format(".v{}", count)) + "." + type,
                             {stored(type, count, space)}});
  for (const std::string space : {"", ".shared::cluster"})
    for (const std::string operation :
         {"add.u32", "add.s32", "add.u64", "add.s64", "min.u32", "min.s32", "max.u32", "max.s32", "inc.u32",
          "dec.u32", "and.b32", "or.b32", "xor.b32"})
      forms.push_back({"red.async.relaxed.cluster" + space + ".mbarrier::complete_tx::bytes." + operation,
                       {stored(operation.substr(4 - (operation[0] == 'o' ? 1 : 0)), 1, space)}});
}

/// Bulk copies of 32 bytes, which come before what waits for them.
void add_bulk(std::vector<ModifierForm>& forms) {
  const std::string expects = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %d9, [%r28], 32;\n";
  // Sources of 16 bytes' alignment.
  const std::string source = "ld.param.u64 %d10, [in];\n";
  const auto loaded = [&](const std::string& line) {
    return program(source + init(1) + expects + "fence.proxy.async;\n" + kMeet + "@%p1 " + line + "" +
                       wait("AGAIN") + kStoreData + "END:\n" + kMeet,
                   2, 32);
  };
  for (const std::string hint : {"", ".L2::cache_hint"}) {
    const std::string policy = hint.empty() ? "" : ", %d0";
    forms.push_back({"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes" + hint,
                     {loaded("OPCODE [%d23], [%d10+64], 32, [%d27]" + policy + ";\n")}});
    forms.push_back({"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" + hint,
                     {loaded("OPCODE [%d21], [%d10+64], 32, [%d26]" + policy + ";\n")}});
    // The second block copies to both.
    forms.push_back(
        {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster" + hint,
         {loaded("setp.eq.and.u32 %p2, %r24, 0, %p1;\nmov.u16 %h1, 3;\n@%p2 OPCODE [%d23], [%d10+64], 32, "
                 "[%d27], %h1" +
                 policy + ";\n")}});
    const auto store = [&](const std::string& line, const std::string& waits, const std::string& fence) {
      return program(
          "ld.param.u64 %d10, [out];\nmov.u32 %r5, 0;\n" + fence + "bar.sync 0;\n@!%p1 bra END;\n" + line +
              waits +
              "ld.global.v2.b64 {%d1, %d2}, [%d10+64];\nst.global.v2.b64 [%d10+128], {%d1, %d2};\nEND:\n",
          1, 32);
    };
    forms.push_back(
        {"cp.async.bulk.global.shared::cta.bulk_group" + hint,
         {store("OPCODE [%d10+64], [%d23], 32" + policy + ";\n",
                "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n", "fence.proxy.async;\n")}});
    if (!hint.empty()) continue;
    const std::string copy = "cp.async.bulk.global.shared::cta.bulk_group [%d10+64], [%d23], 32;\n";
    forms.push_back({"cp.async.bulk.commit_group",
                     {store(copy + "OPCODE;\n", "cp.async.bulk.wait_group 0;\n", "fence.proxy.async;\n")}});
    for (const std::string read : {"", ".read"})
      forms.push_back(
          {"cp.async.bulk.wait_group" + read,
           {store(copy + "cp.async.bulk.commit_group;\n", "OPCODE 0;\n", "fence.proxy.async;\n")}});
    // Of what was written to shared memory of the own block, of the other block, and to global memory.
    const std::string other_writes =
        "@%p1 st.shared::cluster.u32 [%r25+4], %r31;\nOPCODE;\n" + kMeet +
        "@!%p1 bra END;\nld.param.u64 %d10, [out];\ncp.async.bulk.global.shared::cta.bulk_group [%d10+64], "
        "[%d23], 32;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n" +
        kMeet;
    const std::string global_writes =
        "ld.param.u64 %d10, [out];\n@%p1 st.global.u32 [%d10+64], %r30;\nOPCODE;\n" + init(1) + expects +
        "@!%p1 bra END;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%d23], [%d10+64], "
        "32, "
        "[%d27];\n" +
        wait("AGAIN") + "END:\n";
    for (const std::string base : {"fence", "membar"})
      for (const std::string what :
           {"alias", "async", "async.global", "async.shared::cta", "async.shared::cluster",
            "async::generic.acquire.sync_restrict::shared::cluster.cluster",
            "async::generic.release.sync_restrict::shared::cta.cluster"})
        if (base == "fence" || what.find("generic") == what.npos)
          forms.push_back(
              {base + ".proxy." + what,
               {store(copy, "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n", "OPCODE;\n"),
                program("fence.proxy.async;\n" + kMeet + other_writes, 2, 32),
                program("fence.proxy.async.shared::cta;\n" + global_writes, 1, 32)}});
  }
  forms.push_back({"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
                   {loaded("OPCODE [%d21+32], [%d23], 32, [%d26];\n")}});
}

/// Elements of shared memory onto others, in global memory and in the other block.
void add_bulk_reductions(std::vector<ModifierForm>& forms) {
  for (const std::string operation :
       {"add.u32", "add.s32", "add.u64", "add.f32", "add.f64",  "add.noftz.f16", "add.noftz.bf16",
        "min.u32", "min.s32", "min.u64", "min.s64", "min.f16",  "min.bf16",      "max.u32",
        "max.s32", "max.u64", "max.s64", "max.f16", "max.bf16", "and.b32",       "and.b64",
        "or.b32",  "or.b64",  "xor.b32", "xor.b64", "inc.u32",  "dec.u32"})
    for (const std::string hint : {"", ".L2::cache_hint"}) {
      const std::string policy = hint.empty() ? "" : ", %d0";
      forms.push_back(
          {"cp.reduce.async.bulk.global.shared::cta.bulk_group" + hint + "." + operation,
           {program("ld.param.u64 %d10, [out];\nadd.u64 %d11, %d10, %d19;\nld.global.v2.b64 {%d1, %d2}, "
                    "[%d30+32];\nst.global.v2.b64 [%d11+4096], {%d1, %d2};\nfence.proxy.async;\nbar.sync 0;\n"
                    "@!%p1 bra END;\nOPCODE [%d10+4096], [%d23], 512" +
                        policy + ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n",
                    1, 32)}});
    }
  for (const std::string operation : {"add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32",
                                      "max.s32", "and.b32", "or.b32", "xor.b32", "inc.u32", "dec.u32"})
    forms.push_back(
        {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." + operation,
         {program(
             init(1) +
                 "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %d9, [%r28], 512;\nfence.proxy.async;\n" +
                 kMeet +
                 "setp.eq.and.u32 %p2, %r24, 0, %p1;\n@%p2 OPCODE [%d21], [%d23], 512, [%d26];\n"
                 "setp.eq.u32 %p3, %r24, 0;\n@%p3 bra END;\n" +
                 wait("AGAIN") + kStoreData + "END:\n" + kMeet,
             2, 32)}});
}

}  // namespace TEST_FILE

std::vector<ModifierForm> async_forms() {
  using namespace TEST_FILE;
  std::vector<ModifierForm> forms;
  add_arrivals(forms);
  add_waits(forms);
  add_counts(forms);
  add_clusters(forms);
  add_async_stores(forms);
  add_bulk(forms);
  add_bulk_reductions(forms);
  // One form for each opcode, with the programs of both where it is of the own block's memory and another's.
  std::map<std::string, std::size_t> known;
  std::vector<ModifierForm> merged;
  for (ModifierForm& form : forms) {
    const auto [at, fresh] = known.try_emplace(form.opcode, merged.size());
    if (fresh)
      merged.push_back(std::move(form));
    else
      std::move(form.programs.begin(), form.programs.end(), std::back_inserter(merged[at->second].programs));
  }
  return merged;
}

}  // namespace stitchwork::sim
