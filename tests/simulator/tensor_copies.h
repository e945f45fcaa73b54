// Kernels that copy a box of a tensor, and which elements such a box is: the references work on whole
// tensors, element by element.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "simulator/tensor_map.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim::tensor_copies {

using Bytes = std::vector<std::byte>;
using At = std::array<std::int32_t, 5>;

inline constexpr Sanitizers kAll{.race = true, .init = true, .sync = true};

/// A kernel k(map, memory, at): the map by value, a pointer, coordinates. %d1 is the map's address, %d2 the
/// pointer, %r10 and on the coordinates, %r1 tid, %p1 whether it is thread 0, %r3 an mbarrier, %r4 128-byte
/// aligned data.
inline std::string kernel(const std::string& body) {
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 memory, .param .align 4 .b8 at[20])\n{\n"
      ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<60>;\n.reg .b64 %d<32>;\n"
      ".shared .align 8 .b8 bar[16];\n.shared .align 1024 .b8 data[40960];\n"
      "mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [memory];\n"
      "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, bar; mov.u32 %r4, data;\n";
  for (int d = 0; d < 5; ++d) text += fmt::format("ld.param.s32 %r{}, [at+{}];\n", 10 + d, 4 * d);
  return text + body + "\nret;\n}\n";
}

inline std::string coordinates(int rank) {
  std::string text;
  for (int d = 0; d < rank; ++d) text += fmt::format("{}%r{}", d == 0 ? "" : ", ", 10 + d);
  return "{" + text + "}";
}

inline const std::string kInit = R"(
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 fence.proxy.async.shared::cta;
bar.sync 0;
)";
inline const std::string kWait = R"(
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
)";
/// The first %r20 bytes of the data, to memory.
inline const std::string kDump = R"(
shl.b32 %r21, %r1, 2;
DUMP: setp.ge.u32 %p3, %r21, %r20;
@%p3 bra DUMPED;
add.u32 %r22, %r4, %r21; ld.shared.u32 %r23, [%r22];
cvt.u64.u32 %d5, %r21; add.u64 %d6, %d2, %d5; st.global.u32 [%d6], %r23;
add.u32 %r21, %r21, 128;
bra DUMP;
DUMPED:
)";
/// The other way, and made visible to what copies next.
inline const std::string kFill = R"(
shl.b32 %r21, %r1, 2;
FILL: setp.ge.u32 %p3, %r21, %r20;
@%p3 bra FILLED;
cvt.u64.u32 %d5, %r21; add.u64 %d6, %d2, %d5; ld.global.u32 %r23, [%d6];
add.u32 %r22, %r4, %r21; st.shared.u32 [%r22], %r23;
add.u32 %r21, %r21, 128;
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
)";
inline std::string load_form(int rank) {
  return fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes", rank);
}
inline std::string load(const TensorMap& map, const std::string& form) {
  return fmt::format(
      "mov.u32 %r20, {0};\n{1}@!%p1 bra WAIT;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {0};\n"
      "{2} [%r4], [%d1, {3}], [%r3];\n{4}{5}",
      map.box_bytes(), kInit, form, coordinates(map.rank), kWait, kDump);
}
inline std::string store_form(int rank) {
  return fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group", rank);
}
inline std::string store(const TensorMap& map, const std::string& form) {
  return fmt::format(
      "mov.u32 %r20, {};\n{}@!%p1 bra END;\n{} [%d1, {}], [%r4];\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\nEND:\n",
      map.box_bytes(), kFill, form, coordinates(map.rank));
}

/// One launch of `body` with a tensor and other memory.
struct Ran {
  LaunchResult result;
  Bytes tensor, memory;
  std::string text() const {
    return result.findings.empty()
               ? ""
               : std::string(name(result.findings[0].kind)) + ": " + result.findings[0].message;
  }
};
struct CopySetup {
  Sanitizers sanitize = kAll;
  std::uint32_t blocks = 1, cluster = 0;
  bool map_in_memory = false;  ///< its address is `memory`, in place of other memory
  bool writes_memory = true;
  const char *device = "h100", *target = "sm_90";
};
inline Ran run_copy(const std::string& body, TensorMap map, const Bytes& tensor, const Bytes& other,
                    const At& at, const CopySetup& setup = {}) {
  std::string text = kernel(body);
  text.replace(text.find("sm_90"), 5, setup.target);
  const ptx::Module module = ptx::parse(text, "tensor.ptx");
  DeviceMemory memory(true);
  const DeviceAddress base = memory.allocate(tensor.size(), "tensor");
  memory.write(base, tensor);
  map.address = base;
  const auto encoded = map.encode();
  Bytes contents = other;
  if (setup.map_in_memory) contents.assign(encoded.begin(), encoded.end());
  const DeviceAddress second = memory.allocate(contents.size(), "memory");
  if (!setup.writes_memory || setup.map_in_memory) memory.write(second, contents);
  Launch launch{.kernel = "k", .grid = {setup.blocks, 1, 1}, .block = {32, 1, 1}};
  if (setup.cluster != 0) launch.cluster = Dim3{setup.cluster, 1, 1};
  launch.arguments = {{Bytes(encoded.begin(), encoded.end())}, Argument::pointer(second), {Bytes(20)}};
  std::memcpy(launch.arguments[2].bytes.data(), at.data(), 20);
  Options options;
  options.sanitize = setup.sanitize;
  Ran ran{run(module, launch, memory, device(setup.device), options), Bytes(tensor.size()),
          Bytes(contents.size())};
  memory.read(base, ran.tensor);
  memory.read(second, ran.memory);
  return ran;
}

inline std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("no " + part);
  return text.replace(at, part.size(), instead);
}

/// A packed tensor of rows padded to 16 bytes, and some more.
inline TensorMap tensor_of(TensorElement type, std::vector<std::uint64_t> dims,
                           std::vector<std::uint32_t> box) {
  TensorMap m;
  m.type = type;
  m.rank = static_cast<int>(dims.size());
  std::uint64_t pitch = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    m.dims[d] = dims[d];
    m.box[d] = box[d];
    pitch = d == 0 ? (dims[0] * m.element_bytes() + 15) / 16 * 16 : pitch * dims[d];
    if (d + 1 < dims.size()) m.strides[d] = pitch;
  }
  return m;
}
inline std::size_t bytes_of(const TensorMap& m) {
  return m.rank == 1 ? (m.dims[0] * m.element_bytes() + 15) / 16 * 16
                     : m.strides[m.rank - 2] * m.dims[m.rank - 1];
}
inline Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Bytes bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

/// f(offset in shared memory, offset in the tensor or -1) for each element of the box.
template <class F>
inline void for_box(const TensorMap& m, const At& at, F f) {
  std::array<std::uint32_t, 5> count{1, 1, 1, 1, 1}, k{};
  for (int d = 0; d < m.rank; ++d)
    count[d] =
        d == 0 ? m.box[0] : static_cast<std::uint32_t>(std::ceil(double(m.box[d]) / m.element_strides[d]));
  std::uint64_t linear = 0;
  for (k[4] = 0; k[4] < count[4]; ++k[4])
    for (k[3] = 0; k[3] < count[3]; ++k[3])
      for (k[2] = 0; k[2] < count[2]; ++k[2])
        for (k[1] = 0; k[1] < count[1]; ++k[1])
          for (k[0] = 0; k[0] < count[0]; ++k[0], linear += m.element_bytes()) {
            std::int64_t from = 0;
            bool inside = true;
            for (int d = 0; d < m.rank; ++d) {
              const std::int64_t c =
                  std::int64_t{at[d]} + std::int64_t{k[d]} * (d == 0 ? 1 : m.element_strides[d]);
              inside &= c >= 0 && c < std::int64_t(m.dims[d]);
              from += c * std::int64_t(d == 0 ? m.element_bytes() : m.strides[d - 1]);
            }
            // CUDA C++ Programming Guide, "TMA Swizzle": chunks of a 128-byte line are permuted by the line's
            // number.
            const std::uint64_t line = linear / 128, chunk = linear / 16 % 8;
            const std::uint64_t permuted = m.swizzle == Swizzle::k128B  ? chunk ^ line % 8
                                           : m.swizzle == Swizzle::k64B ? chunk ^ line % 4
                                           : m.swizzle == Swizzle::k32B ? chunk ^ line % 2
                                                                        : chunk;
            f(line * 128 + permuted * 16 + linear % 16, inside ? from : -1);
          }
}

inline bool is_nan_of(TensorElement type, const std::byte* p) {
  if (type == TensorElement::kF64) {
    double v;
    std::memcpy(&v, p, 8);
    return std::isnan(v);
  }
  if (type == TensorElement::kF32) {
    float v;
    std::memcpy(&v, p, 4);
    return std::isnan(v);
  }
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return type == TensorElement::kF16 ? (v & 0x7fff) > 0x7c00 : (v & 0x7fff) > 0x7f80;
}

}  // namespace stitchwork::sim::tensor_copies
