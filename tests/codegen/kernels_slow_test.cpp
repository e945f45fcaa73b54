// Memory-bound kernels at real sizes, in the simulator, against the least any kernel could do.
#include <cstdlib>

#include "tests/codegen/judged.h"

namespace stitchwork::testing {
namespace {

struct Case {
  const char* workload;
  WorkloadSize size;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.workload << " " << c.size.rows << "x" << c.size.cols << " " << c.size.dtype;
}

/// Rows of 1,024 and of 768, and rows that take a block (16,384 of them have the same blocks, eight times).
std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Workload& w : workloads())
    for (const char* dtype : {"f32", "bf16"})
      for (const auto& [rows, cols] : {std::pair{4096, 1024}, std::pair{16384, 768}, std::pair{2048, 8192}})
        result.push_back({w.name, {rows, cols, dtype}});
  for (const char* dtype : {"f32", "bf16"}) {
    for (const char* name : {"softmax", "layer_norm", "rms_norm", "column_sum"})
      result.push_back({name, {64, 30000, dtype}});
    for (const char* name : {"softmax", "column_sum"}) result.push_back({name, {750000, 32, dtype}});
  }
  return result;
}

class Kernels : public ::testing::TestWithParam<Case> {};

TEST_P(Kernels, MoveWhatTheyMustOnceInWholeSectorsWithoutSpills) {
  SKIP_WITHOUT_COMPILER();
  const Case& c = GetParam();
  const Judged judged = judge(graph_of(workload(c.workload).hlo(c.size)), device("h200"));
  EXPECT_EQ(judged.spill_bytes, 0);
  // Sums over the rows beside sums over the columns leave a partial a block and column, written once and read
  // once.
  EXPECT_LE(judged.dram_sectors, 1.05 * judged.least_sectors + 2 * judged.scratch_sectors);
  EXPECT_LE(judged.load_spread(), 1.05);
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}_{}x{}_{}", c.workload, c.size.rows, c.size.cols, c.size.dtype);
}
INSTANTIATE_TEST_SUITE_P(RealSizes, Kernels, ::testing::ValuesIn(cases()), case_name);

class Streams : public ::testing::TestWithParam<Case> {};

TEST_P(Streams, KeepThirtyTwoKilobytesInFlightAnSm) {
  SKIP_WITHOUT_COMPILER();
  const Case& c = GetParam();
  const Judged judged = judge(graph_of(workload(c.workload).hlo(c.size)), device("h200"));
  EXPECT_GE(judged.bytes_in_flight, 32 * 1024);
}

std::vector<Case> streams() {
  std::vector<Case> result;
  for (const char* name : {"softmax", "masked_softmax", "layer_norm", "rms_norm", "residual_norm", "gelu"})
    for (const char* dtype : {"f32", "bf16"}) result.push_back({name, {16384, 1024, dtype}});
  return result;
}
INSTANTIATE_TEST_SUITE_P(Above16Megabytes, Streams, ::testing::ValuesIn(streams()), case_name);

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
/// commas.
TEST(KernelTable, Prints) {
  const char* wanted = std::getenv("STITCHWORK_KERNELS");
  if (wanted == nullptr) GTEST_SKIP() << "prints a table where STITCHWORK_KERNELS asks for one";
  SKIP_WITHOUT_COMPILER();
  const std::vector<std::string> fields = split(wanted, ':');
  ASSERT_EQ(fields.size(), 4u) << "STITCHWORK_KERNELS=devices:workloads:sizes:dtypes";
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
          const Judged j = judge(graph_of(workload(name).hlo(s)), device(device_name));
          fmt::print(
              "{:15} {:>12} {:5} {:10} {:7} {:6.3f} {:6.3f} {:6.3f} {:6} {:4} {:8} {:4} {:6.1f} KB {:10.2f} "
              "{:9.2f}\n",
              name, size, dtype, device_name, j.kernels, j.traffic(), j.load_spread(), j.store_spread(),
              j.spill_bytes, j.registers, j.block_barriers, j.grid_barriers, j.bytes_in_flight / 1024,
              j.instructions * 32 / static_cast<double>(s.rows * s.cols), j.time_us);
          std::fflush(stdout);
        }
}

}  // namespace
}  // namespace stitchwork::testing
