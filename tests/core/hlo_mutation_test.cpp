// Damaged text is read or refused with an Error, never anything else: one character changed, dropped or
// doubled.
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(HloMutation, DamagedTextGivesAGraphOrAnError) {
  const std::string text = R"hlo(HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2]{0}}

sum (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, f32[] b), metadata={op_name="x\"(y)" source_line=3}
}

ENTRY e {
  x = f32[2,3]{1,0:T(2,128)} parameter(0), sharding={devices=[2,1]0,1}
  c = f32[2,3]{1,0} constant({ { 1, nan(0x1), -inf }, { 0x1.8p1, 1e-3, -0 } })
  z = f32[] constant(0) /* neutral */
  p = f32[4,3]{1,0} pad(x, z), padding=1_1_0x0_0
  g = (f32[2,3]{1,0}, f32[]) tuple(x, /*index=1*/z) // both
  l = f32[1,2]{1,0} slice(x), slice={[0:2:2], [1:3]}
  ROOT r = f32[2]{0} reduce(c, z), dimensions={1}, to_apply=sum, backend_config={"a":["b"]}
}
)hlo";
  parse_hlo(text, "whole.hlo");
  const std::string alphabet = "{}[]()<>,:=\"%/*-.x019 \n\\";
  std::mt19937 random(1);  // fixed: the test is the same every time
  int refused = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), 1 + random() % 8));
      }
    }
    try {
      const Graph graph = parse_hlo(damaged, "damaged.hlo");
      ASSERT_TRUE(equal(parse_hlo(to_text(graph), "again.hlo"), graph)) << damaged;
    } catch (const Error& error) {
      ASSERT_GT(error.line(), 0) << error.what();
      ASSERT_GT(error.column(), 0) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
