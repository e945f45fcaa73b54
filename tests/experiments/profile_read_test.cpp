#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/profile/profile.h"
#include "tests/experiments/sample_trial.h"
#include "tests/support/profile_files.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using testing::MadeLaunch;
using testing::test_folder;

const std::vector<MadeLaunch> kProgram = {
    {"loop_add_fusion_3", "loop_add_fusion.3", 4, 80, 256, "jit(f)/add"},
    {"ampere_sgemm_128x64_nn", "cublas-gemm.1", 30, 16, 128}};

std::string complaint_about(const std::string& path) {
  try {
    read_profile(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void write_gzip(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(ProfileFiles, FunctionsAreNamedWithoutTypes) {
  EXPECT_EQ(function_name("void at::native::reduce_kernel<512, 1, at::Op<float>>(int, float*)"),
            "reduce_kernel");
  EXPECT_EQ(function_name("void (anonymous namespace)::softmax_warp_forward<float, 10, false>(float*)"),
            "softmax_warp_forward");
  EXPECT_EQ(function_name("loop_add_fusion_3"), "loop_add_fusion_3");
  EXPECT_EQ(function_name("fusion_1(float*, int)"), "fusion_1");
}

TEST(ProfileFiles, JaxTraceHasInstructionsAndLaunchesAndEachTimeOnce) {
  const std::string path = test_folder() + "/host.trace.json.gz";
  write_gzip(path, testing::jax_trace(kProgram, 2, "jit_f").dump());
  const Profile profile = read_profile(path);
  EXPECT_EQ(profile.tool, "JAX");
  ASSERT_EQ(profile.events.size(), 4U) << "lines that XProf derives are no second time";
  const ProfileEvent& first = profile.events[0];
  EXPECT_EQ(first.kernel, "loop_add_fusion_3");
  EXPECT_EQ(first.instruction, "loop_add_fusion.3");
  EXPECT_EQ(first.module, "jit_f");
  EXPECT_EQ(first.op, "jit(f)/add");
  EXPECT_EQ(first.grid, "[80,1,1]");
  EXPECT_EQ(first.block, "[256,1,1]");
  EXPECT_EQ(first.stream, 20);
  EXPECT_DOUBLE_EQ(first.start_us, 1000);
  EXPECT_DOUBLE_EQ(*first.us, 4);
  EXPECT_DOUBLE_EQ(first.counters.at("registers"), 32);
  EXPECT_DOUBLE_EQ(*profile.events[2].us, 5);
  EXPECT_TRUE(profile.clock);
}

TEST(ProfileFiles, TorchTraceHasOperatorsByExternalId) {
  const std::string path = test_folder() + "/trace.json";
  nlohmann::json trace = testing::torch_trace({{"void gemm<float>(int)", "", 3, 8, 64, "aten::mm"}}, 2);
  const auto copy = [](const char* category, const char* name, double at) {
    return nlohmann::json{{"ph", "X"},    {"cat", category},
                          {"name", name}, {"pid", 0},
                          {"tid", 7},     {"ts", at},
                          {"dur", 2},     {"args", {{"device", 0}, {"stream", 7}, {"bytes", 4}}}};
  };
  trace["traceEvents"].push_back(copy("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 1.0));
  trace["traceEvents"].push_back(copy("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 2.0));
  trace["traceEvents"].push_back(copy("gpu_memset", "Memset (Device)", 3.0));
  write_file(path, trace.dump(2));
  const Profile profile = read_profile(path);
  EXPECT_EQ(profile.tool, "PyTorch");
  EXPECT_EQ(profile.device, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(profile.events.size(), 5U);
  EXPECT_EQ(profile.events[0].kind, ProfileKind::kCopy) << "ascending by start";
  EXPECT_EQ(profile.events[1].kind, ProfileKind::kTransfer);
  EXPECT_EQ(profile.events[2].kind, ProfileKind::kMemset);
  EXPECT_EQ(profile.events[3].op, "aten::mm");
  EXPECT_EQ(profile.events[3].grid, "[8,1,1]");
  EXPECT_EQ(profile.events[3].stream, 7);
  EXPECT_EQ(profile.host_events, 4U);
}

TEST(ProfileFiles, NsightSystemsNamesInstructionsByTheRangesAroundLaunches) {
  const std::string path = test_folder() + "/nsys.sqlite";
  std::vector<MadeLaunch> program = kProgram;
  program.push_back({"void at::native::add<float>(float*)", "", 2, 4, 32, "aten::add"});
  program.push_back({"alone", "", 2, 4, 32});
  testing::write_nsys(path, program, 2, "jit_f");
  const Profile profile = read_profile(path);
  EXPECT_EQ(profile.tool, "Nsight Systems");
  EXPECT_EQ(profile.device, "NVIDIA A100-SXM4-80GB");
  ASSERT_EQ(profile.events.size(), 9U);
  EXPECT_EQ(profile.events[0].kind, ProfileKind::kTransfer);
  EXPECT_EQ(profile.events[1].instruction, "loop_add_fusion.3");
  EXPECT_EQ(profile.events[1].module, "jit_f");
  EXPECT_EQ(profile.events[1].grid, "[80,1,1]");
  EXPECT_DOUBLE_EQ(*profile.events[1].us, 4);
  EXPECT_EQ(profile.events[2].instruction, "cublas-gemm.1");
  EXPECT_EQ(profile.events[3].op, "aten::add");
  EXPECT_EQ(profile.events[3].instruction, "");
  EXPECT_EQ(profile.events[4].op, "");
}

TEST(ProfileFiles, NsightComputeDetailsHaveTheTimesOfTheirTitles) {
  const std::string path = test_folder() + "/ncu.csv";
  write_file(path, testing::ncu_details(kProgram));
  const Profile profile = read_profile(path);
  ASSERT_EQ(profile.events.size(), 2U);
  EXPECT_DOUBLE_EQ(*profile.events[1].us, 30);
  EXPECT_DOUBLE_EQ(profile.events[1].counters.at("registers"), 64);
  EXPECT_DOUBLE_EQ(profile.events[1].counters.at("achieved_occupancy"), 0.75);
  EXPECT_FALSE(profile.clock);
}

TEST(ProfileFiles, CutOffOrForeignFilesAreOneLineThatSaysWhatToDo) {
  const std::string folder = test_folder();
  const auto file = [&](const char* name, const std::string& text) {
    write_file(folder + "/" + name, text);
    return folder + "/" + name;
  };
  const std::string jax = testing::jax_trace(kProgram, 3, "jit_f").dump(1);
  EXPECT_THAT(complaint_about(file("cut.json", jax.substr(0, jax.size() / 2))),
              HasSubstr("ends within the trace; the file is cut off"));
  EXPECT_THAT(complaint_about(file("broken.json", "{\"traceEvents\": [}]}")),
              HasSubstr("broken.json:1: not JSON"));
  EXPECT_THAT(complaint_about(file("other.json", "{\"a\": 1}")), HasSubstr("is JSON without traceEvents"));
  EXPECT_THAT(complaint_about(
                  file("host.json", "{\"traceEvents\": [{\"ph\":\"X\",\"name\":\"f\",\"ts\":1,\"dur\":2}]}")),
              HasSubstr("holds nothing that a GPU did, among 1 events"));
  write_gzip(folder + "/whole.gz", jax);
  const std::string packed = read_file(folder + "/whole.gz");
  EXPECT_THAT(complaint_about(file("cut.json.gz", packed.substr(0, packed.size() / 2))),
              HasSubstr("damaged gzip file"));
  const std::string csv = testing::ncu_details(kProgram);
  EXPECT_THAT(complaint_about(file("cut.csv", csv.substr(0, csv.find("Achieved Occ")))),
              HasSubstr("ends within a quoted field"));
  EXPECT_THAT(complaint_about(file("short.csv", csv.substr(0, csv.find("\",\"\",\"\",\"\"") + 2))),
              HasSubstr("fields, the heads are"));
  EXPECT_THAT(complaint_about(file("notes.txt", "my notes")), HasSubstr("is no profile that can be read"));
  EXPECT_THAT(complaint_about(file("empty.json", "")), HasSubstr("is empty"));
  EXPECT_THAT(complaint_about(file("r.nsys-rep", "x")), HasSubstr("nsys export --type sqlite"));
  EXPECT_THAT(complaint_about(file("r.ncu-rep", "x")), HasSubstr("ncu --import"));
  EXPECT_THAT(complaint_about(folder + "/none.json"), HasSubstr("no such file"));
  EXPECT_THAT(complaint_about(folder), HasSubstr("this is a directory"));
}

TEST(ProfileFiles, DatabasesThatAreCutOffOrOthersAreOneLine) {
  const std::string folder = test_folder(), whole = folder + "/nsys.sqlite";
  testing::write_nsys(whole, std::vector<MadeLaunch>(40, kProgram[0]), 20, "jit_f");
  const std::string bytes = read_file(whole);
  write_file(folder + "/cut.sqlite", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(complaint_about(folder + "/cut.sqlite"), HasSubstr("is a damaged SQLite file"));
  const auto database = [&](const char* name, const char* sql) {
    const std::string path = folder + "/" + name;
    sqlite3* db = nullptr;
    sqlite3_open(path.c_str(), &db);
    sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    sqlite3_close(db);
    return path;
  };
  EXPECT_THAT(complaint_about(database("other.db", "CREATE TABLE t(x)")),
              HasSubstr("no export of Nsight Systems"));
  EXPECT_THAT(complaint_about(database("host.sqlite", "CREATE TABLE StringIds(id INTEGER, value TEXT)")),
              HasSubstr("without kernels; record with nsys profile"));
  EXPECT_THAT(complaint_about(database("old.sqlite",
                                       "CREATE TABLE StringIds(id INTEGER, value TEXT);"
                                       "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT)")),
              HasSubstr("has no column 'end'"));
  EXPECT_THAT(complaint_about(database("none.sqlite",
                                       "CREATE TABLE StringIds(id INTEGER, value TEXT);"
                                       "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT)")),
              HasSubstr("holds no kernels"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
