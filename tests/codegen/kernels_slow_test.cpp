// Memory-bound kernels at real sizes, in the simulator, against the least any kernel could do.
#include <fmt/ostream.h>

#include <cstdlib>

#include "tests/codegen/judged.h"

namespace stitchwork::testing {
namespace TEST_FILE {

struct Case {
  const char* workload;
  WorkloadSize size;
  const char* device = "h200";
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.workload << " " << c.size.rows << "x" << c.size.cols << " " << c.size.dtype << " on "
             << c.device;
}

/// Tensors beyond this are sampled where their kernels can be (a few waves of blocks stand for all).
bool is_sampled(const WorkloadSize& size) { return size.rows * size.cols > (std::int64_t{1} << 24); }

/// Group norm cuts whole groups of 32 rows and 8 columns.
bool applies(const std::string& workload, std::int64_t rows, std::int64_t cols) {
  return workload != "group_norm" || (rows % 32 == 0 && cols % 8 == 0);
}

/// Rows of 1,024 and of 768; rows that take a block; rows shared by blocks, for there are few of them or one
/// has no room for them, of which none of its vectors divides one (32,768 of 50,257 have the same blocks, 64
/// times); rows of a warp or less.
std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Workload& w : workloads())
    for (const char* dtype : {"f32", "bf16"}) {
      for (const auto& [rows, cols] : {std::pair{4096, 1024}, std::pair{16384, 768}, std::pair{2048, 8192}})
        result.push_back({w.name, {rows, cols, dtype}});
      if (w.name == std::string("adam")) continue;  // tensors of its own sizes
      for (const auto& [rows, cols] :
           {std::pair{64, 30000}, std::pair{750000, 32}, std::pair{1048576, 33}, std::pair{512, 50257}})
        if (applies(w.name, rows, cols)) result.push_back({w.name, {rows, cols, dtype}});
    }
  for (const char* name : {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "rms_norm",
                           "residual_norm", "gelu", "group_norm"})
    for (const char* dtype : {"f32", "bf16"}) result.push_back({name, {8192, 8192, dtype}});
  result.push_back({"residual_norm", {1024, 50257, "bf16"}});
  for (const char* name : {"layer_norm_grad", "rms_norm_grad"})
    for (const char* dtype : {"f32", "bf16"})
      for (const auto& [rows, cols] : {std::pair{4096, 8192}, std::pair{1024, 50257}})
        result.push_back({name, {rows, cols, dtype}});
  for (const char* name :
       {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "rms_norm", "residual_norm"})
    for (const char* dtype : {"f32", "bf16"})
      for (const auto& [rows, cols] : {std::pair{64, 30000}, std::pair{512, 50257}})
        result.push_back({name, {rows, cols, dtype}, "h100"});
  return result;
}

/// Arrays of the domain's size whose elements a row's later steps need again.
int kept_arrays(const std::string& workload) {
  if (workload == "gelu" || workload == "adam" || workload == "column_sum") return 0;
  return workload.ends_with("_grad") ? 2 : 1;
}

/// Whether the blocks of a cluster may share a row.
bool shares_rows(const std::string& workload) { return workload != "group_norm"; }

/// Whether what is needed again fits: a row in the registers that an SM has for it, or the SMs of a cluster
/// (half; the other half is for the arithmetic), or all rows in those of all SMs.
bool fits_on_chip(const Case& c, const Device& target) {
  constexpr int kRegisterBytes = 4, kShare = 2;
  const std::int64_t room = target.registers_per_sm * kRegisterBytes / kShare;
  const std::int64_t row = c.size.cols * kRegisterBytes * kept_arrays(c.workload);
  const std::int64_t sms = shares_rows(c.workload) ? std::max(1, target.max_cluster_blocks) : 1;
  return row <= room * std::min<std::int64_t>(sms, kPortableClusterBlocks) ||
         c.size.rows * row <= room * target.sms;
}

/// Whether what is stored are whole arrays of rows: no partials beside them, nor values a row.
bool stores_rows_alone(const Case& c) {
  const std::string workload = c.workload;
  return workload == "softmax" || workload == "masked_softmax" || workload == "layer_norm" ||
         workload == "rms_norm" || workload == "residual_norm";
}

constexpr double kBytesInFlight = 32 * 1024;

/// Whether memory is to be kept busy from the first load to the last store: of tensors that a launch and a
/// round trip are small beside.
bool streams(const Case& c) {
  constexpr std::int64_t kLargeBytes = std::int64_t{16} << 20;
  return c.size.rows * c.size.cols * (c.size.dtype == "f32" ? 4 : 2) > kLargeBytes;
}

/// Bytes a thread: of layer norms of 8,192 columns on an H200 the plan without spills has a row a warp, 64 MB
/// of rows under way at once, which the L2 does not hold: 45.0 us simulated of 2,048 rows, 36.3 with 24
/// bytes.
std::int64_t spills_allowed(const Case& c) {
  return c.workload == std::string("layer_norm") && c.size.cols == 8192 && c.size.dtype == "f32" ? 24 : 0;
}

class Kernels : public ::testing::TestWithParam<Case> {};

TEST_P(Kernels, MoveWhatTheyMustOnceInWholeSectorsWithoutSpills) {
  SKIP_WITHOUT_COMPILER();
  const Case& c = GetParam();
  const Device& target = device(c.device);
  const Judged judged = judge(graph_of(workload(c.workload).hlo(c.size)), target, {}, is_sampled(c.size));
  EXPECT_LE(judged.spill_bytes, spills_allowed(c));
  // Whole sectors, wherever rows begin: docs/codegen.md, "Staged rows", "Staged single rows", "Vectors and
  // unrolling".
  EXPECT_LE(judged.load_spread(), 1.05);
  if (stores_rows_alone(c)) {
    EXPECT_LE(judged.store_spread(), 1.05);
  }
  if (streams(c)) {
    EXPECT_GE(judged.bytes_in_flight, kBytesInFlight);
  }
  fmt::print("{}: DRAM {:.3f}, loads {:.3f}, {:.1f} KB in flight an SM\n", fmt::streamed(c), judged.traffic(),
             judged.load_spread(), judged.bytes_in_flight / 1024);
  // Sums over the rows beside sums over the columns leave a partial a block, or cluster, and column, which is
  // written once and read from the L2.
  if (fits_on_chip(c, target)) {
    EXPECT_LE(judged.dram_sectors, 1.05 * judged.least_sectors + judged.scratch_sectors);
  }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}_{}x{}_{}{}", c.workload, c.size.rows, c.size.cols, c.size.dtype,
                     c.device == std::string("h200") ? "" : fmt::format("_{}", c.device));
}
INSTANTIATE_TEST_SUITE_P(RealSizes, Kernels, ::testing::ValuesIn(cases()), case_name);

class Streams : public ::testing::TestWithParam<Case> {};

TEST_P(Streams, KeepThirtyTwoKilobytesInFlightAnSm) {
  SKIP_WITHOUT_COMPILER();
  const Case& c = GetParam();
  const Judged judged = judge(graph_of(workload(c.workload).hlo(c.size)), device(c.device));
  EXPECT_GE(judged.bytes_in_flight, kBytesInFlight);
}

std::vector<Case> stream_cases() {
  std::vector<Case> result;
  for (const char* name : {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "rms_norm",
                           "rms_norm_grad", "residual_norm", "gelu", "group_norm"})
    for (const char* dtype : {"f32", "bf16"}) result.push_back({name, {16384, 1024, dtype}});
  return result;
}
INSTANTIATE_TEST_SUITE_P(Above16Megabytes, Streams, ::testing::ValuesIn(stream_cases()), case_name);

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// What scripts/bench/kernels prints: STITCHWORK_KERNELS is devices:workloads:sizes:dtypes, lists with
/// commas; a fifth field of knob=value.
TEST(KernelTable, Prints) {
  const char* wanted = std::getenv("STITCHWORK_KERNELS");
  if (wanted == nullptr) GTEST_SKIP() << "prints a table where STITCHWORK_KERNELS asks for one";
  SKIP_WITHOUT_COMPILER();
  const std::vector<std::string> fields = split(wanted, ':');
  ASSERT_TRUE(fields.size() == 4 || fields.size() == 5)
      << "STITCHWORK_KERNELS=devices:workloads:sizes:dtypes[:knobs]";
  std::map<std::string, std::string> knobs;
  if (fields.size() == 5)
    for (const std::string& knob : split(fields[4], ','))
      if (const std::vector<std::string> sides = split(knob, '='); sides.size() == 2)
        knobs[sides[0]] = sides[1];
  fmt::print("{:15} {:>12} {:5} {:10} {:>7} {:>6} {:>6} {:>6} {:>6} {:>4} {:>8} {:>4} {:>9} {:>10} {:>9}\n",
             "workload", "size", "dtype", "device", "kernels", "DRAM", "loads", "stores", "spills", "regs",
             "barriers", "grid", "in flight", "inst/elem", "us");
  for (const std::string& device_name : split(fields[0], ','))
    for (const std::string& name : split(fields[1], ','))
      for (const std::string& size : split(fields[2], ','))
        for (const std::string& dtype : split(fields[3], ',')) {
          const std::vector<std::string> extents = split(size, 'x');
          ASSERT_EQ(extents.size(), 2u) << size;
          const WorkloadSize s{std::stoll(extents[0]), std::stoll(extents[1]), dtype};
          const Judged j = judge(graph_of(workload(name).hlo(s)), device(device_name), knobs, is_sampled(s));
          fmt::print(
              "{:15} {:>12} {:5} {:10} {:7} {:6.3f} {:6.3f} {:6.3f} {:6} {:4} {:8} {:4} {:6.1f} KB {:10.2f} "
              "{:9.2f}\n",
              name, size, dtype, device_name, j.kernels, j.traffic(), j.load_spread(), j.store_spread(),
              j.spill_bytes, j.registers, j.block_barriers, j.grid_barriers, j.bytes_in_flight / 1024,
              j.instructions * 32 / static_cast<double>(s.rows * s.cols), j.time_us);
          std::fflush(stdout);
        }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::testing
