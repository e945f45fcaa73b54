// Kernels that copy in bulk.
#pragma once

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim::bulk_copies {

/// A kernel k(in, out) of sm_90: %d1 holds in, %d2 out, both at this block's 4096 bytes; %r1 tid, %r2 16 *
/// tid, %p1 whether it is thread 0, %r3 the address of `bar`, %r4 that of `data`.
inline std::string kernel(const std::string& body) {
  return ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<60>;\n.reg .b64 %d<32>;\n"
         ".shared .align 128 .b8 bar[128];\n.shared .align 128 .b8 data[8192];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r30, %ctaid.x;\n"
         "mul.wide.u32 %d3, %r30, 4096; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
         "shl.b32 %r2, %r1, 4; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, bar; mov.u32 %r4, data;\n" +
         body + "\nret;\n}\n";
}

struct Launched {
  Dim3 grid{2, 1, 1}, block{256, 1, 1};
  std::optional<Dim3> cluster{};
  Sanitizers sanitize{};
  std::string device = "h100";
  int host_threads = 0;
};

inline constexpr std::uint32_t kWords = 1024;  // of a block

inline Outcome run_kernel(const std::string& body, const Launched& setup = {}) {
  const ptx::Module module = ptx::parse(kernel(body), "bulk.ptx");
  Launch launch{.kernel = "k", .grid = setup.grid, .block = setup.block};
  launch.cluster = setup.cluster;
  Options options;
  options.sanitize = setup.sanitize;
  options.host_threads = setup.host_threads;
  const std::size_t words = setup.grid.count() * kWords;
  return run_on_numbers(module, launch, options, setup.device, words, words, false);
}

inline constexpr Sanitizers kBoth{.race = true, .init = true}, kRace{.race = true};

inline void expect_finding(const std::string& body, const std::string& text, const Launched& setup = {}) {
  const Outcome r = run_kernel(body, setup);
  EXPECT_NE(r.text().find(text), std::string::npos) << "found: " << r.text() << "\nin:\n" << body;
  EXPECT_FALSE(r.result.findings.empty());
}

inline std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("no " + part);
  return text.replace(at, part.size(), instead);
}

/// A tile is loaded in bulk, every thread adds one to its 16 bytes, and the tile is stored in bulk.
inline const std::string kCopy = R"(
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra ISSUED;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], 4096, [%r3];
ISSUED:
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
add.u32 %r5, %r4, %r2;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
add.u32 %r10, %r10, 1;
add.u32 %r11, %r11, 1;
add.u32 %r12, %r12, 1;
add.u32 %r13, %r13, 1;
st.shared.v4.u32 [%r5], {%r10, %r11, %r12, %r13};
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r4], 4096;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END:)";

}  // namespace stitchwork::sim::bulk_copies
