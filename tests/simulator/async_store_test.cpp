// st.async and red.async: what they leave in shared memory of another block, when, and what is done wrong.
#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/isa/isa.h"
#include "tests/simulator/clusters.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace clusters;

/// Each thread sends to its like in the next block, which waits for `bytes` of each of its 64 senders. %r6
/// is the thread's place in its own block, of `place` bytes, %r8 the one it sends to; %r12 and %r13 are the
/// mbarriers of these blocks. The words %r20 to %r23 are the number of the thread times 4, + 1, + 2, + 3.
std::string exchange(const std::string& send, int place, int bytes, const std::string& receive) {
  return kernel(fmt::format(R"(
.shared .align 8 .b8 bar[8];
mov.u32 %r6, mine; mad.lo.u32 %r6, %r1, {}, %r6;
mov.u32 %r12, bar; setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r12], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], {};
fence.mbarrier_init.release.cluster;
st.shared.u32 [%r6], 0x80000005;
mul.lo.u32 %r20, %r2, 4; add.u32 %r21, %r20, 1; add.u32 %r22, %r20, 2; add.u32 %r23, %r20, 3;
mov.b64 %d20, {{%r20, %r21}}; mov.b64 %d21, {{%r22, %r23}};
barrier.cluster.arrive; barrier.cluster.wait;
add.u32 %r7, %r3, 1; rem.u32 %r7, %r7, %r4;
mapa.shared::cluster.u32 %r8, %r6, %r7; mapa.shared::cluster.u32 %r13, %r12, %r7;
{}
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r12], 0;
@!%p2 bra WAIT;
{}
st.global.u32 [%d3], %r9;)",
                            place, 64 * bytes, send, receive));
}

/// Of a form of st.async: [to], words from %r20 on, [mbarrier].
std::string store_line(const std::string& form, int count, int bytes, const std::string& to,
                       const std::string& mbarrier) {
  std::string values;
  for (int k = 0; k < count; ++k)
    values += fmt::format("{}{}{}", k == 0 ? "" : ", ", bytes == 8 ? "%d2" : "%r2", k);
  if (count > 1) values = "{" + values + "}";
  return fmt::format("{} [{}], {}, [{}];\n", form, to, values, mbarrier);
}

const std::string kStore = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8], %r20, [%r13];";
const std::string kLoad = "ld.shared.u32 %r9, [%r6];";

TEST(AsyncStore, EveryFormMovesItsElements) {
  int forms = 0;
  for (const std::string_view pattern : ptx::bulk_patterns()) {
    if (!pattern.starts_with("st.async")) continue;
    for (const std::string& form : expand_spelling(pattern)) {
      ++forms;
      const bool own = form.find("::cta") != form.npos, named = form.find(".shared") != form.npos;
      const int count = form.find(".v4") != form.npos ? 4 : form.find(".v2") != form.npos ? 2 : 1;
      const bool is_float = form.ends_with("f32") || form.ends_with("f64");
      const int bytes = form.ends_with("64") ? 8 : 4, words = count * bytes / 4;
      std::string send = store_line(form, count, bytes, own ? "%r6" : "%r8", own ? "%r12" : "%r13");
      if (is_float && bytes == 4)
        for (int k = count - 1; k >= 0; --k) {
          send = replaced(send, fmt::format("%r2{}", k), fmt::format("%f{}", k));
          send = fmt::format("mov.b32 %f{0}, %r2{0};\n", k) + send;
        }
      if (!named) {
        send = replaced(replaced(send, "[%r8]", "[%d8]"), "[%r13]", "[%d13]");
        send =
            "cvt.u64.u32 %d8, %r8; cvta.shared.u64 %d8, %d8; cvt.u64.u32 %d13, %r13; cvta.shared.u64 %d13, "
            "%d13;\n" +
            send;
      }
      std::string receive = "mov.u32 %r9, 0;\n";
      for (int k = 0; k < words; ++k)
        receive += fmt::format("ld.shared.u32 %r10, [%r6+{}]; mad.lo.u32 %r9, %r9, 31, %r10;\n", 4 * k);
      for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
        const Outcome r = run_kernel(exchange(send, 4 * words, 4 * words, receive), {.sanitize = what});
        ASSERT_EQ(r.text(), "") << form;
        for (std::uint32_t t = 0; t < 256; ++t) {
          const std::uint32_t sender = own ? t : (t + 192) % 256;
          std::uint32_t expected = 0;
          for (int k = 0; k < words; ++k)
            expected = expected * 31 + sender * 4 + static_cast<std::uint32_t>(k);
          ASSERT_EQ(r.out[t], expected) << form << ", thread " << t;
        }
      }
    }
  }
  EXPECT_EQ(forms, 2 * 3 * (2 * 8 + 4));
}

/// What 64 reductions of these operands leave of 0x80000005 (and of 0 in the upper half).
std::uint64_t reduced(const std::string& operation, const std::vector<std::uint64_t>& operands) {
  std::uint64_t v = 0x80000005;
  for (const std::uint64_t x : operands) {
    const auto low = static_cast<std::uint32_t>(v), y = static_cast<std::uint32_t>(x);
    const auto is_less = [&](std::uint32_t a, std::uint32_t b) {
      return operation.ends_with("s32") ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
    };
    if (operation.ends_with("64"))
      v += x;
    else if (operation.starts_with("add"))
      v = low + y;
    else if (operation.starts_with("min"))
      v = is_less(y, low) ? y : low;
    else if (operation.starts_with("max"))
      v = is_less(low, y) ? y : low;
    else if (operation == "inc.u32")
      v = low >= y ? 0 : low + 1;
    else if (operation == "dec.u32")
      v = low == 0 || low > y ? y : low - 1;
    else if (operation.starts_with("and"))
      v = low & y;
    else if (operation.starts_with("or"))
      v = low | y;
    else
      v = low ^ y;
    if (!operation.ends_with("64")) v &= 0xffffffff;
  }
  return v;
}

TEST(AsyncStore, EveryReductionGivesWhatItsReferenceDoes) {
  int forms = 0;
  for (const std::string_view pattern : ptx::bulk_patterns()) {
    if (!pattern.starts_with("red.async")) continue;
    for (const std::string& form : expand_spelling(pattern)) {
      ++forms;
      const std::string operation = form.substr(form.rfind('.', form.rfind('.') - 1) + 1);
      const bool wide = form.ends_with("64"), steps = operation == "inc.u32" || operation == "dec.u32";
      const bool named = form.find(".shared") != form.npos;
      // All reduce the first place of the next block: 2654435761 tid | 0x10, in 64 bits times 2^20.
      std::string send =
          steps ? "mov.u32 %r24, 40;\n" : "mul.lo.u32 %r24, %r1, 0x9E3779B1; or.b32 %r24, %r24, 16;\n";
      if (wide) send += "mul.wide.u32 %d24, %r24, 1048576;\n";
      send += "sub.u32 %r8, %r8, %r5; sub.u32 %r8, %r8, %r5;\n";
      if (!named)
        send +=
            "cvt.u64.u32 %d8, %r8; cvta.shared.u64 %d8, %d8; cvt.u64.u32 %d13, %r13; cvta.shared.u64 %d13, "
            "%d13;\n";
      send += fmt::format("{} [{}], {}, [{}];", form, named ? "%r8" : "%d8", wide ? "%d24" : "%r24",
                          named ? "%r13" : "%d13");
      const std::string receive =
          "mov.u32 %r6, mine; ld.shared.v2.u32 {%r9, %r10}, [%r6]; xor.b32 %r9, %r9, %r10;";
      std::string text = exchange(send, 8, wide ? 8 : 4, receive);
      text = replaced(text, "st.shared.u32 [%r6], 0x80000005;", "st.shared.v2.u32 [%r6], {0x80000005, 0};");
      std::vector<std::uint64_t> operands;
      for (std::uint32_t t = 0; t < 64; ++t) {
        const std::uint32_t x = steps ? 40 : t * 0x9E3779B1u | 16;
        operands.push_back(wide ? std::uint64_t{x} << 20 : x);
      }
      const std::uint64_t expected = reduced(operation, operands);
      for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
        const Outcome r = run_kernel(text, {.sanitize = what});
        ASSERT_EQ(r.text(), "") << form;
        for (std::uint32_t t = 0; t < 256; ++t)
          ASSERT_EQ(r.out[t], static_cast<std::uint32_t>(expected ^ expected >> 32)) << form;
      }
    }
  }
  EXPECT_EQ(forms, 2 * 13);
}

TEST(AsyncStore, CountsAccessesToOtherBlocksAsStoresDo) {
  const Outcome later = run_kernel(exchange(kStore, 4, 4, kLoad), {});
  const Outcome at_once =
      run_kernel(exchange(kStore + "\nst.shared::cluster.u32 [%r8], %r20;", 4, 4, kLoad), {});
  ASSERT_EQ(later.text(), "");
  ASSERT_EQ(at_once.text(), "");
  const Counters &a = later.result.counters, &b = at_once.result.counters;
  EXPECT_GT(a.remote_shared_requests, 0u);
  EXPECT_EQ(b.remote_shared_requests, 2 * a.remote_shared_requests);
  EXPECT_EQ(b.remote_shared_sectors, 2 * a.remote_shared_sectors);
}

TEST(AsyncStore, WhoDoesNotWaitSeesOldContents) {
  std::string text = exchange(kStore, 4, 4, "");
  text = replaced(text, "WAIT:", kLoad + "\nWAIT:");
  const Outcome r = run_kernel(text, {});
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(r.out[70], 0x80000005u);
  const std::string found = run_kernel(text, {.sanitize = kBoth}).text();
  EXPECT_TRUE(found.starts_with("shared-race: ")) << found;
}

TEST(AsyncStore, RacesAreFound) {
  const auto race = [&](const std::string& text) { return run_kernel(text, {.sanitize = kBoth}).text(); };
  // The place is written or read by its own block, with nothing in between.
  const std::string clean = exchange(kStore, 4, 4, kLoad);
  ASSERT_EQ(race(clean), "");
  for (const char* own : {"st.shared.u32 [%r6], 7;", "ld.shared.u32 %r10, [%r6];"}) {
    const std::string found = race(replaced(clean, "add.u32 %r7", std::string(own) + "\nadd.u32 %r7"));
    EXPECT_TRUE(found.starts_with("shared-race: ")) << found;
  }
  // A wait that does not acquire orders nothing behind what it waited for.
  const std::string relaxed =
      race(replaced(clean, "try_wait.parity.shared", "try_wait.parity.relaxed.cta.shared"));
  EXPECT_TRUE(relaxed.starts_with("shared-race: reads 4 bytes at ")) << relaxed;
  EXPECT_NE(relaxed.find("an asynchronous store wrote at PTX line"), std::string::npos) << relaxed;
  // Two stores to one place, each of which is counted; two reductions make none.
  const std::string twice = exchange(kStore + "\n" + kStore, 4, 8, kLoad);
  EXPECT_TRUE(race(twice).starts_with("shared-race: has an asynchronous store write 4 bytes at "))
      << race(twice);
  const std::string add =
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], 1, [%r13];";
  const Outcome sums = run_kernel(exchange(add + "\n" + add, 4, 8, kLoad), {.sanitize = kBoth});
  EXPECT_EQ(sums.text(), "");
  EXPECT_EQ(sums.out[9], 0x80000007u);
  // What lies beside it is another's.
  const std::string beside = exchange(kStore + "\nld.shared.u32 %r10, [%r6+4];", 8, 4, kLoad);
  EXPECT_EQ(run_kernel(beside, {.sanitize = {.race = true}}).text(), "");
}

TEST(AsyncStore, MisuseIsFound) {
  const auto text_of = [&](const std::string& send, const std::string& receive = kLoad) {
    return run_kernel(exchange(send, 4, 4, receive), {}).text();
  };
  EXPECT_EQ(text_of(replaced(kStore, "[%r13]", "[%r12]")),
            "mbarrier: completes an mbarrier that is not in the shared memory it copies to");
  EXPECT_TRUE(text_of(replaced(kStore, "[%r8]", "[%r8+2]")).starts_with("misaligned"));
  EXPECT_TRUE(text_of(replaced(kStore, "shared::cluster", "shared::cta")).starts_with("out-of-bounds"));
  EXPECT_TRUE(text_of(replaced(kStore, "[%r8]", "[%r13]")).find("over the mbarrier") != std::string::npos);
  // Nobody waits for what a second phase counts, in the block's own memory.
  const std::string again =
      text_of(kStore, kLoad +
                          "\n@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], 256;\n"
                          "st.async.shared::cta.mbarrier::complete_tx::bytes.u32 [%r6], %r20, [%r12];");
  EXPECT_NE(again.find("of a block that ends without waiting for them"), std::string::npos) << again;
  EXPECT_THROW(run_kernel(exchange(kStore, 4, 4, kLoad), {.device = "a100"}), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
