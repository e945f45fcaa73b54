// Which slices of arrays of a loop's state are written where the array lies.
#include "core/passes/in_place.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/hlo/hlo_text.h"
#include "core/index/buffer.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A body of the state (s32[], f32[5,3], f32[5,3], f32[3]): `array` and `slice` are known to `rest`, which
/// ends in its root.
Computation body(const std::string& rest) {
  const Graph graph =
      parse_hlo(fmt::format("HloModule m\nENTRY body {{\n"
                            "  s = (s32[], f32[5,3], f32[5,3], f32[3]) parameter(0)\n"
                            "  i = s32[] get-tuple-element(s), index=0\n"
                            "  array = f32[5,3] get-tuple-element(s), index=1\n"
                            "  other = f32[5,3] get-tuple-element(s), index=2\n"
                            "  v = f32[3] get-tuple-element(s), index=3\n"
                            "  slice = f32[1,3] reshape(v)\n  zero = s32[] constant(0)\n"
                            "  update = f32[5,3] dynamic-update-slice(array, slice, i, zero)\n{}}}\n",
                            rest),
                "test.hlo");
  return graph.entry_computation();
}

std::vector<std::string> updated(const std::string& rest) {
  Computation computation = body(rest);
  update_in_place(computation);
  std::vector<std::string> names;
  for (const Node& node : computation.nodes)
    if (node.op == Op::kUpdateInPlace) names.push_back(node.name);
  return names;
}

constexpr const char* kRoot = "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, other, v)\n";

TEST(UpdateInPlace, ASliceOfAnArrayThatNobodyElseReads) {
  Computation computation = body(kRoot);
  update_in_place(computation);
  const Node& update = computation.node(computation.find("update"));
  ASSERT_EQ(update.op, Op::kUpdateInPlace);
  EXPECT_EQ(to_text(update.shape), "f32[1,3]");
  EXPECT_EQ(to_text(buffer_shape(update)), "f32[5,3]");
  EXPECT_EQ(update.attrs.updated->op, computation.find("array"));
  EXPECT_THAT(update.operands,
              ElementsAre(computation.find("slice"), computation.find("i"), computation.find("zero")));
  EXPECT_TRUE(operand_map(computation, update.id, 0)->is_identity());
  // The trip's row, clamped to those there are; the columns all fit.
  const IndexMap map = updated_map(computation, update);
  ASSERT_EQ(map.runtime.size(), 1u);
  EXPECT_EQ(map.runtime[0].op, computation.find("i"));
  EXPECT_EQ(map.runtime[0].range.hi, 4);
  EXPECT_EQ(evaluate(map.results.at(0), std::vector<std::int64_t>{0, 2}, {}, std::vector<std::int64_t>{3}),
            3);
  EXPECT_EQ(evaluate(map.results.at(1), std::vector<std::int64_t>{0, 2}, {}, std::vector<std::int64_t>{3}),
            2);
}

TEST(UpdateInPlace, NotWhereWhatWasThereIsStillWanted) {
  // Another op reads the array; the update is read by more than the next state; it is another element of
  // that, or two; the state has the array elsewhere too; or something takes the state whole.
  EXPECT_THAT(updated("  n = f32[5,3] negate(array)\n"
                      "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, n, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated("  n = f32[5,3] negate(update)\n"
                      "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, n, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated("  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, other, update, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated("  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, update, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated("  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, array, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated("  again = f32[5,3] get-tuple-element(s), index=1\n  n = f32[5,3] negate(again)\n"
                      "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, n, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated("  whole = (f32[5,3], (s32[], f32[5,3], f32[5,3], f32[3])) tuple(other, s)\n"
                      "  o = f32[5,3] get-tuple-element(whole), index=0\n"
                      "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, o, v)\n"),
              IsEmpty());
}

TEST(UpdateInPlace, OtherArraysStay) {
  EXPECT_THAT(updated("  two = f32[5,3] dynamic-update-slice(other, slice, zero, zero)\n"
                      "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, update, two, v)\n"),
              ElementsAre("update", "two"));
  // Of two slices of one array the first is no element of the state.
  EXPECT_THAT(updated("  two = f32[5,3] dynamic-update-slice(update, slice, zero, zero)\n"
                      "  ROOT r = (s32[], f32[5,3], f32[5,3], f32[3]) tuple(i, two, other, v)\n"),
              IsEmpty());
  EXPECT_THAT(updated(kRoot), ElementsAre("update"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
