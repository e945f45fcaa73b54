// Damaged files: read, or refused with a place; never a crash, a hang or an internal error.
#include <chrono>
#include <optional>
#include <random>

#include "core/base/error.h"
#include "simulator/tensor_map.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const bool word = std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    std::size_t end = at + 1;
    while (word && end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// One to four words deleted, doubled, swapped or replaced by words from elsewhere or by odd ones.
std::string damaged(std::vector<std::string> words, const std::vector<std::string>& others,
                    std::mt19937_64& rng) {
  static const std::vector<std::string> kOdd = {"-1",   "0",  "4294967296", "18446744073709551615",
                                                "{",    "}",  "[",          "]",
                                                ";",    ",",  "%",          "|",
                                                "!",    "@",  "_",          "\"",
                                                "<",    ":",  ".b128",      "v4",
                                                "0f",   "0x", "(",          ")",
                                                "call", "\n", "//",         "/*"};
  const std::size_t changes = 1 + rng() % 4;
  for (std::size_t c = 0; c < changes && !words.empty(); ++c) {
    const std::size_t at = rng() % words.size();
    switch (rng() % 5) {
      case 0:
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), words[at]);
        break;
      case 2:
        std::swap(words[at], words[rng() % words.size()]);
        break;
      case 3:
        words[at] = others[rng() % others.size()];
        break;
      default:
        words[at] = kOdd[rng() % kOdd.size()];
        break;
    }
  }
  std::string text;
  for (const std::string& w : words) text += w;
  return text;
}

TEST(PtxMutation, DamagedFilesAreReadOrRefusedWithAPlace) {
  std::mt19937_64 rng(5);
  const std::string all =
      fixture_text("half.ptx") + fixture_text("grid_barrier.ptx") + fixture_text("reduce.ptx");
  const std::vector<std::string> others = words_of(all);
  int refused = 0, tried = 0;
  for (const char* file : {"vecadd.ptx", "softmax.ptx", "reduce.ptx", "half.ptx", "divergent.ptx",
                           "grid_barrier.ptx", "bulk.ptx", "hopper_gemm.ptx"}) {
    const auto words = words_of(fixture_text(file));
    for (int k = 0; k < 250; ++k, ++tried) {
      const std::string text = damaged(words, others, rng);
      const auto begin = std::chrono::steady_clock::now();
      try {
        ptx::parse(text, "damaged.ptx");
      } catch (const Error& e) {
        ++refused;
        EXPECT_GT(e.line(), 0) << e.what();
        EXPECT_EQ(e.message().find("internal check"), std::string::npos) << e.what() << "\n" << text;
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(took.count(), 5.0) << file << " " << k;
    }
  }
  EXPECT_GT(refused, tried / 2);
}

/// What can still be read of a pipeline of bulk copies: mbarriers left open, copies to anywhere, waits for
/// nothing.
TEST(PtxMutation, DamagedPipelinesRunOrEndWithAFinding) {
  std::mt19937_64 rng(7);
  const auto words = words_of(fixture_text("bulk.ptx"));
  int ran = 0, found = 0;
  for (int k = 0; k < 2000; ++k) {
    std::optional<ptx::Module> module;
    try {
      module.emplace(ptx::parse(damaged(words, words, rng), "damaged.ptx"));
    } catch (const Error&) {
      continue;
    }
    if (module->kernel("doubled") == nullptr) continue;
    DeviceMemory memory(true);
    Launch launch{.kernel = "doubled", .grid = {2, 1, 1}, .block = {64, 1, 1}};
    const DeviceAddress in = memory.adopt(std::vector<std::byte>(8192), "in");
    const DeviceAddress out = memory.allocate(8192, "out");
    launch.arguments = {Argument::pointer(in), Argument::pointer(out), Argument::i32(3)};
    Options options;
    options.host_threads = 1;
    options.max_warp_instructions = 20000;
    if (k % 2 == 0) options.sanitize = {.race = true, .init = true};
    try {
      const LaunchResult r = run(*module, launch, memory, device("h100"), options);
      ++ran;
      found += !r.findings.empty();
    } catch (const Error& e) {
      EXPECT_EQ(e.message().find("internal check"), std::string::npos) << e.what();
    }
  }
  EXPECT_GT(ran, 50);
  EXPECT_GT(found, 10);
}

/// The same of tensor copies and wgmma: maps at odd places, odd coordinates, descriptors of anything.
TEST(PtxMutation, DamagedTensorCopiesRunOrEndWithAFinding) {
  std::mt19937_64 rng(11);
  const auto words = words_of(fixture_text("hopper_gemm.ptx"));
  std::vector<std::size_t> numbers;  // of registers, and values
  for (std::size_t at = 0; at < words.size(); ++at)
    if (words[at].find_first_not_of("0123456789") == std::string::npos) numbers.push_back(at);
  int ran = 0, found = 0;
  for (int k = 0; k < 150; ++k) {
    std::optional<ptx::Module> module;
    auto changed = words;
    for (int c = 0; c < 3; ++c)
      changed[numbers[rng() % numbers.size()]] = words[numbers[rng() % numbers.size()]];
    std::string text;
    for (const std::string& word : changed) text += word;
    try {
      module.emplace(ptx::parse(text, "damaged.ptx"));
    } catch (const Error&) {
      continue;
    }
    if (module->kernel("hopper_gemm") == nullptr) continue;
    DeviceMemory memory(true);
    TensorMap map;
    map.type = TensorElement::kF16;
    map.rank = 2;
    map.dims = {192, 128, 1, 1, 1};
    map.strides = {384, 0, 0, 0};
    map.box = {64, 128, 1, 1, 1};
    map.swizzle = Swizzle::k128B;
    map.address = memory.adopt(std::vector<std::byte>(192 * 128 * 2), "a");
    const auto bytes = map.encode();
    const Argument argument{{bytes.begin(), bytes.end()}};
    Launch launch{.kernel = "hopper_gemm", .grid = {1, 1, 1}, .block = {384, 1, 1}};
    launch.dynamic_shared_bytes = 6 * 16384;
    launch.arguments = {argument, argument, Argument::pointer(memory.allocate(65536, "c")),
                        Argument::i32(128), Argument::i32(192)};
    Options options;
    options.host_threads = 1;
    options.max_warp_instructions = 20000;
    if (k % 2 == 0) options.sanitize = {.race = true, .init = true, .sync = true};
    try {
      const LaunchResult r = run(*module, launch, memory, device("h100"), options);
      ++ran;
      found += !r.findings.empty();
    } catch (const Error& e) {
      EXPECT_EQ(e.message().find("internal check"), std::string::npos) << e.what();
    }
  }
  EXPECT_GT(ran, 20);
  EXPECT_GT(found, 5);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
