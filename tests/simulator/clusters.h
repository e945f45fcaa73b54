// Kernels run in thread block clusters.
#pragma once

#include <fmt/format.h>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim::clusters {

/// A kernel k(in, out) of sm_90: %d1 holds in, %d2 out, %r1 tid, %r2 the number of the thread in the launch
/// (grids and blocks are of one dimension where it matters), %d3 where its result goes, %r3 the rank of its
/// block, %r4 the number of blocks of its cluster, %r5 4 * tid.
inline std::string kernel(const std::string& body, const std::string& directives = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n" +
         directives +
         "\n{\n.reg .pred %p<8>;\n.reg .b32 %r<40>;\n.reg .f32 %f<8>;\n.reg .b64 %d<32>;\n"
         ".shared .align 16 .b8 pad[64];\n.shared .align 16 .b8 mine[1024];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r10, %ctaid.x;\n"
         "mov.u32 %r11, %ntid.x; mad.lo.u32 %r2, %r10, %r11, %r1; mul.wide.u32 %d3, %r2, 4; add.u64 %d3, "
         "%d2, "
         "%d3;\nmov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; shl.b32 %r5, %r1, 2;\n" +
         body + "\nret;\n}\n";
}

struct Launched {
  Dim3 grid{4, 1, 1}, block{64, 1, 1};
  std::optional<Dim3> cluster = Dim3{4, 1, 1};
  bool non_portable = false;
  std::string device = "h100";
  Sanitizers sanitize{};
  int host_threads = 0;
};

inline Outcome run_kernel(const std::string& text, const Launched& setup) {
  const ptx::Module module = ptx::parse(text, "cluster.ptx");
  Launch launch{.kernel = "k", .grid = setup.grid, .block = setup.block};
  launch.cluster = setup.cluster;
  launch.non_portable_cluster = setup.non_portable;
  Options options;
  options.sanitize = setup.sanitize;
  options.host_threads = setup.host_threads;
  const std::size_t threads = setup.grid.count() * setup.block.count();
  return run_on_numbers(module, launch, options, setup.device, threads, threads);
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

inline constexpr Sanitizers kBoth{.race = true, .init = true};

/// Every thread leaves its number in its block and takes that of its like in the next block of the cluster.
inline const std::string kExchange = R"(
mov.u32 %r6, mine;
add.u32 %r6, %r6, %r5;
st.shared.u32 [%r6], %r2;
barrier.cluster.arrive;
barrier.cluster.wait;
add.u32 %r7, %r3, 1;
rem.u32 %r7, %r7, %r4;
mapa.shared::cluster.u32 %r8, %r6, %r7;
ld.shared::cluster.u32 %r9, [%r8];
barrier.cluster.arrive;
barrier.cluster.wait;
st.global.u32 [%d3], %r9;)";

}  // namespace stitchwork::sim::clusters
