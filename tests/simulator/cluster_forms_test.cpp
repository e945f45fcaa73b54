// Every form of thread block clusters.
#include <functional>
#include <map>

#include "simulator/isa/isa.h"
#include "tests/simulator/clusters.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace clusters;

/// Body that leaves a number at [%d3] by one form, and the number that thread `t` of block rank `rank` has to
/// leave.
struct Reference {
  std::string body;
  std::function<std::uint32_t(std::uint32_t rank, std::uint32_t t)> expected;
};

/// By form; the barrier forms exchange through shared memory, those of addresses give what they say.
std::map<std::string, Reference> references() {
  std::map<std::string, Reference> all;
  const auto next = [](std::uint32_t rank, std::uint32_t t) { return (rank + 1) % 4 * 64 + t; };
  for (const char* arrive : {"", ".release"})
    for (const char* aligned : {"", ".aligned"}) {
      all[fmt::format("barrier.cluster.arrive{}{}", arrive, aligned)] = {
          replaced(kExchange, "arrive;", fmt::format("arrive{}{};", arrive, aligned)), next};
      const std::string wait = *arrive ? ".acquire" : "";
      all[fmt::format("barrier.cluster.wait{}{}", wait, aligned)] = {
          replaced(kExchange, "wait;", fmt::format("wait{}{};", wait, aligned)), next};
      // The fence before it releases in its place.
      std::string relaxed = kExchange;
      relaxed = relaxed.insert(relaxed.rfind("barrier.cluster.arrive;"), "fence.acq_rel.cluster;\n");
      relaxed = relaxed.replace(relaxed.rfind("arrive;"), 7, fmt::format("arrive.relaxed{};", aligned));
      all[fmt::format("barrier.cluster.arrive.relaxed{}", aligned)] = {relaxed, next};
    }
  all["mapa.shared::cluster.u32"] = {kExchange, next};
  all["mapa.u32"] = {replaced(kExchange, "mapa.shared::cluster", "mapa"), next};
  const std::string wide = replaced(replaced(kExchange, "mapa.shared::cluster.u32 %r8, %r6, %r7",
                                             "cvt.u64.u32 %d6, %r6; mapa.shared::cluster.u64 %d8, %d6, %r7"),
                                    "[%r8]", "[%d8]");
  all["mapa.shared::cluster.u64"] = {wide, next};
  const std::string generic = replaced(
      replaced(wide, "mapa.shared::cluster", "cvta.shared.u64 %d6, %d6; mapa"), "ld.shared::cluster", "ld");
  all["mapa.u64"] = {generic, next};
  const auto other = [](std::uint32_t rank, std::uint32_t) { return (rank + 1) % 4; };
  const auto rank_instead = [](const std::string& text, const std::string& load, const std::string& by) {
    return replaced(text, load, by);
  };
  const std::string ld = "ld.shared::cluster.u32 %r9, [%r8]", ld_wide = "ld.shared::cluster.u32 %r9, [%d8]";
  all["getctarank.shared::cluster.u32"] = {
      rank_instead(kExchange, ld, "getctarank.shared::cluster.u32 %r9, %r8"), other};
  all["getctarank.u32"] = {rank_instead(kExchange, ld, "getctarank.u32 %r9, %r8"), other};
  all["getctarank.shared::cluster.u64"] = {
      rank_instead(wide, ld_wide, "getctarank.shared::cluster.u64 %r9, %d8"), other};
  all["getctarank.u64"] = {rank_instead(generic, "ld.u32 %r9, [%d8]", "getctarank.u64 %r9, %d8"), other};
  return all;
}

TEST(Conformance, EveryFormOfClustersGivesWhatItsReferenceDoes) {
  const auto known = references();
  int forms = 0;
  for (const std::string& form : ptx::supported_instructions()) {
    if (!form.starts_with("barrier.cluster") && !form.starts_with("mapa") && !form.starts_with("getctarank"))
      continue;
    const auto reference = known.find(form);
    ASSERT_NE(reference, known.end()) << form << " has no reference";
    ++forms;
    for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
      const Outcome r = run_kernel(kernel(reference->second.body), {.sanitize = what});
      ASSERT_EQ(r.text(), "") << form;
      for (std::uint32_t t = 0; t < 256; ++t)
        ASSERT_EQ(r.out[t], reference->second.expected(t / 64, t % 64)) << form << ", thread " << t;
    }
  }
  EXPECT_EQ(forms, static_cast<int>(known.size()));
}

/// Loads and stores of every width and count of elements: bytes written to the next block are what it reads
/// back.
TEST(Conformance, LoadsAndStoresOfOtherBlocksMoveEveryWidth) {
  for (const bool generic : {false, true})
    for (const auto& [type, reg, bytes] :
         {std::tuple{"u8", "%r", 1}, {"u16", "%r", 2}, {"u32", "%r", 4}, {"u64", "%d", 8}})
      for (const char* count : {"", ".v2", ".v4"}) {
        const int n = *count == 0 ? 1 : count[2] - '0';
        if (bytes * n > 16) continue;
        SCOPED_TRACE(fmt::format("{}{} {}", type, count, generic));
        const auto list = [&](int first) {
          std::string text;
          for (int k = 0; k < n; ++k) text += fmt::format("{}{}{}", k ? ", " : "", reg, first + k);
          return n == 1 ? text : "{" + text + "}";
        };
        std::string body =
            "mov.u32 %r6, mine; shl.b32 %r7, %r1, 4; add.u32 %r6, %r6, %r7;\n"
            "add.u32 %r8, %r3, 1; rem.u32 %r8, %r8, %r4; mapa.shared::cluster.u32 %r9, %r6, %r8;\n"
            "barrier.cluster.arrive; barrier.cluster.wait;\n";
        for (int k = 0; k < n; ++k)
          body += bytes == 8 ? fmt::format("mul.wide.u32 %d{}, %r2, {};\n", 20 + k, 0x1234567 + k)
                             : fmt::format("mad.lo.u32 %r{}, %r2, {}, {};\n", 20 + k, 7 + k, k);
        const std::string address = generic ? "[%d9]" : "[%r9]", space = generic ? "" : ".shared::cluster";
        if (generic) body += "cvt.u64.u32 %d9, %r9; cvta.shared::cluster.u64 %d9, %d9;\n";
        body += fmt::format("st{}{}.{} {}, {};\n", space, count, type, address, list(20));
        body += "barrier.cluster.arrive; barrier.cluster.wait;\n";
        body += fmt::format("ld.shared{}.{} {}, [%r6];\n", count, type, list(30 - (bytes == 8 ? 6 : 0)));
        body += fmt::format("ld{}{}.{} {}, {};\n", space, count, type, list(bytes == 8 ? 28 : 34), address);
        body += "mov.u32 %r17, 0; mov.u32 %r18, 0;\n";
        for (int k = 0; k < n; ++k) {
          if (bytes == 8)
            body += fmt::format("cvt.u32.u64 %r15, %d{}; cvt.u32.u64 %r16, %d{};\n", 24 + k, 28 + k);
          else
            body += fmt::format("mov.u32 %r15, %r{}; mov.u32 %r16, %r{};\n", 30 + k, 34 + k);
          body += "mad.lo.u32 %r17, %r17, 31, %r15; mad.lo.u32 %r18, %r18, 31, %r16;\n";
        }
        body +=
            "barrier.cluster.arrive; barrier.cluster.wait; shl.b32 %r17, %r17, 16; and.b32 %r18, %r18, "
            "65535;\n"
            "or.b32 %r17, %r17, %r18; st.global.u32 [%d3], %r17;";
        const auto hash = [&](std::uint32_t thread) {
          std::uint32_t h = 0;
          for (int k = 0; k < n; ++k) {
            const auto u = static_cast<std::uint32_t>(k);
            std::uint32_t v = bytes == 8 ? thread * (0x1234567u + u) : thread * (7 + u) + u;
            if (bytes < 4) v &= (1u << 8 * bytes) - 1;
            h = h * 31 + v;
          }
          return h;
        };
        const Outcome r = run_kernel(kernel(body), {.sanitize = kBoth});
        ASSERT_EQ(r.text(), "");
        for (std::uint32_t t = 0; t < 256; ++t) {
          const std::uint32_t writer =
              (t / 64 + 3) % 4 * 64 + t % 64;  // who wrote to this block; this one reads its own
          ASSERT_EQ(r.out[t], hash(writer) << 16 | (hash(t) & 65535)) << t;
        }
      }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
