// Documents of the occupancy calculator and of what takes PTX.
#include "core/base/file.h"
#include "core/hlo/npy.h"
#include "tests/cli/json_documents.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::JsonDocuments;
using testing::run_command;

TEST_F(JsonDocuments, Occupancy) {
  const auto document = expect_document({"occupancy", "--device", "v100", "--block", "1024"}, "occupancy");
  EXPECT_EQ(document["blocks_per_sm"], 2);
}

/// out[i] = i for i < n.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry iota(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvt.rn.f32.u32 %f1, %r5;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
DONE:
  ret;
}
)";

TEST_F(JsonDocuments, LinesOfPtxAddUpToItsCounters) {
  const std::string file = path("k.ptx");
  // The last of four warps leaves before the store.
  write_file(file, kPtx);
  const std::vector<std::string> words = {"ptx",     "run",    file,    "--grid",           "4",
                                          "--block", "32",     "--arg", "buf:f32:100:zero", "--arg",
                                          "u32:96",  "--lines"};
  const auto document = expect_document(words, "ptx-run");
  std::int64_t warps = 0, threads = 0, slots = 0, accesses = 0;
  for (const auto& line : document["lines"]) {
    warps += line["inst_executed"].get<std::int64_t>();
    threads += line["thread_inst_executed"].get<std::int64_t>();
    slots += line["issue_slots"].get<std::int64_t>();
    accesses += line["inst_ldst"].get<std::int64_t>();
  }
  const auto& counters = document["counters"];
  EXPECT_EQ(warps, counters["inst_executed"]);
  EXPECT_EQ(threads, counters["thread_inst_executed"]);
  EXPECT_EQ(slots, counters["issue_slots"]);
  EXPECT_EQ(accesses, counters["inst_ldst"]);
  // ld.param is on line 10 of the text, run by all; the store by three warps of four.
  EXPECT_EQ(document["lines"][0]["line"], 10);
  EXPECT_EQ(document["lines"][0]["inst_executed"], 4);
  const auto store =
      std::ranges::find_if(document["lines"], [](const auto& l) { return l["inst_ldst"] > 0; });
  ASSERT_NE(store, document["lines"].end());
  EXPECT_EQ((*store)["inst_executed"], 3);
  EXPECT_EQ((*store)["gst_transactions"], counters["gst_transactions"]);
  EXPECT_EQ((*store)["gst_transactions"], 12);  // 96 floats
  const testing::CommandResult said = run_command(words);
  EXPECT_THAT(said.out, ::testing::HasSubstr("ld.param.u64 %rd1, [out];"));
  EXPECT_FALSE(expect_document({"ptx", "run", file, "--grid", "4", "--block", "32", "--arg",
                                "buf:f32:100:zero", "--arg", "u32:96"},
                               "ptx-run")
                   .contains("lines"));
}

TEST_F(JsonDocuments, LinesHaveTheirSectorsAndBankConflicts) {
  // Words of shared memory 128 bytes apart lie in one bank; every second word of global memory is loaded.
  const std::string file = path("s.ptx");
  write_file(file, R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b8 tile[4096];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 8;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  shl.b32 %r3, %r1, 7;
  mov.u32 %r4, tile;
  add.s32 %r5, %r4, %r3;
  st.shared.u32 [%r5], %r2;
  ld.shared.u32 %r6, [%r5];
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd6, %rd2, %rd5;
  atom.global.add.u32 %r7, [%rd6], %r6;
  ret;
}
)");
  const auto document = expect_document({"ptx", "run", file, "--grid", "2", "--block", "32", "--arg",
                                         "buf:u32:64:seed=1", "--arg", "buf:u32:32:zero", "--lines"},
                                        "ptx-run");
  const auto line = [&](int number) {
    for (const auto& l : document["lines"])
      if (l["line"] == number) return l;
    return nlohmann::json();
  };
  EXPECT_EQ(line(14)["gld_transactions"], 2 * 8);
  EXPECT_EQ(line(18)["shared_bank_conflicts"], 2 * 31);
  EXPECT_EQ(line(19)["shared_wavefronts"], 2 * 32);
  EXPECT_EQ(line(22)["l2_atomic_sectors"], 2 * 4);
  for (const char* counter : {"gld_transactions", "gst_transactions", "l2_atomic_sectors",
                              "shared_wavefronts", "shared_bank_conflicts"}) {
    std::int64_t sum = 0;
    for (const auto& l : document["lines"]) sum += l[counter].get<std::int64_t>();
    EXPECT_EQ(sum, document["counters"][counter]) << counter;
  }
}

TEST_F(JsonDocuments, PtxRunCleanAndWithAFinding) {
  const std::string file = path("iota.ptx");
  write_file(file, kPtx);
  const auto info = expect_document({"ptx", "info", file}, "ptx-info");
  EXPECT_EQ(info["kernels"][0]["name"], "iota");
  EXPECT_EQ(info["kernels"][0]["parameters"].size(), 2u);
  const std::vector<std::string> launch = {"ptx", "run", file, "--grid", "4", "--block", "32", "--arg"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = launch;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto clean = expect_document(
      with({"buf:f32:100:zero", "--arg", "u32:100", "--out", "0:" + path("out.npy")}), "ptx-run");
  EXPECT_TRUE(clean["findings"].empty());
  EXPECT_EQ(clean["counters"]["gst_bytes"], 400);
  EXPECT_EQ(read_npy(path("out.npy")).data<float>()[99], 99);
  EXPECT_FALSE(clean["sanitizers"].contains("race"));
  const auto sanitized = expect_document(
      with({"buf:f32:100:zero", "--arg", "u32:100", "--sanitize", "mem,race,sync,init"}), "ptx-run");
  EXPECT_TRUE(sanitized["findings"].empty());
  EXPECT_EQ(sanitized["sanitizers"]["race"]["accesses_checked"], 100);
  EXPECT_EQ(sanitized["sanitizers"]["init"]["accesses_checked"], 0);
  EXPECT_EQ(sanitized["counters"], clean["counters"]);
  const std::string other = path("other.json"), broken = path("broken.json");
  write_file(other, clean.dump());
  const auto streams =
      expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--beside", other, "--beside", other}),
                      "ptx-run")["streams"];
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_DOUBLE_EQ(streams[2]["end_us"], streams[0]["end_us"]);
  EXPECT_GE(streams[0]["end_us"], streams[0]["alone_us"]);
  for (const char* text : {"{", "{}", "[]", R"({"schema": "stitchwork.ptx-run/1"})", ""}) {
    write_file(broken, text);
    expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--beside", broken}), "error", 1);
  }
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--device", "t4", "--beside", other}),
                  "error", 1);
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--sanitize", "races"}), "error", 1);
  const auto clusters = expect_document(
      with({"buf:f32:100:zero", "--arg", "u32:100", "--cluster", "2,1,1", "--device", "h100"}), "ptx-run");
  EXPECT_EQ(clusters["cluster"], nlohmann::json({2, 1, 1}));
  EXPECT_EQ(clean["cluster"], nlohmann::json({1, 1, 1}));
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--cluster", "2"}), "error", 1);  // v100
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--cluster", "3", "--device", "h100"}),
                  "error", 1);
  const auto overrun = expect_document(with({"buf:f32:99:zero", "--arg", "u32:100"}), "ptx-run", 1);
  EXPECT_EQ(overrun["findings"][0]["kind"], "out-of-bounds");
  expect_document(with({"buf:f32:99:zero", "--arg", "u32:100", "--out", "7:x.npy"}), "error", 1);
}

TEST_F(JsonDocuments, PtxIsa) {
  EXPECT_GT(expect_document({"ptx", "isa"}, "ptx-isa")["instructions"].size(), 50u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
