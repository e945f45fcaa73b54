#include "core/passes/trip_count.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

std::optional<std::int64_t> trips(const std::string& condition, const std::string& body,
                                  const std::string& start, const std::string& attributes = "",
                                  const std::string& type = "s32") {
  const Graph graph = canonicalize(parse_hlo(fmt::format(R"(HloModule m
c {{ p = ({0}[], {0}[], f32[4]) parameter(0)  i = {0}[] get-tuple-element(p), index=0
  n = {0}[] get-tuple-element(p), index=1
  {1} }}
b {{ p = ({0}[], {0}[], f32[4]) parameter(0)  i = {0}[] get-tuple-element(p), index=0
  n = {0}[] get-tuple-element(p), index=1  v = f32[4] get-tuple-element(p), index=2  w = f32[4] negate(v)
  {2}  ROOT t = ({0}[], {0}[], f32[4]) tuple(next, limit, w) }}
ENTRY e {{ x = f32[4] parameter(0)  y = {0}[] parameter(1)  {3}
  s = ({0}[], {0}[], f32[4]) tuple(first, last, x)
  ROOT l = ({0}[], {0}[], f32[4]) while(s), condition=c, body=b{4} }})",
                                                         type, condition, body, start, attributes),
                                             "test.hlo"));
  const Computation& entry = graph.entry_computation();
  return trip_count(graph, entry, entry.node(entry.root));
}

const std::string kUp = "one = s32[] constant(1)  next = s32[] add(i, one)  limit = s32[] copy(n)";
const std::string kStart = "first = s32[] constant(0)  last = s32[] constant(7)";

TEST(TripCount, OfAConstantBoundIsCounted) {
  const auto to_ten = [](const std::string& how, const std::string& operands = "i, k") {
    return "k = s32[] constant(10)  ROOT r = pred[] compare(" + operands + "), direction=" + how;
  };
  EXPECT_EQ(trips(to_ten("LT"), kUp, kStart), 10);
  EXPECT_EQ(trips(to_ten("LE"), kUp, kStart), 11);
  EXPECT_EQ(trips(to_ten("NE"), kUp, kStart), 10);
  EXPECT_EQ(trips(to_ten("GT"), kUp, kStart), 0);
  EXPECT_EQ(trips(to_ten("GT", "k, i"), kUp, kStart), 10);
  const std::string by_three = "k = s32[] constant(3)  next = s32[] add(k, i)  limit = s32[] copy(n)";
  EXPECT_EQ(trips(to_ten("LT"), by_three, kStart), 4);
  EXPECT_EQ(trips(to_ten("NE"), by_three, kStart), std::nullopt);
}

TEST(TripCount, DownwardsAndFromWhereTheLoopStarts) {
  const std::string down = "k = s32[] constant(2)  next = s32[] subtract(i, k)  limit = s32[] copy(n)";
  const std::string above = "k = s32[] constant(1)  ROOT r = pred[] compare(i, k), direction=GE";
  EXPECT_EQ(trips(above, down, "first = s32[] constant(9)  last = s32[] constant(7)"), 5);
}

TEST(TripCount, ABoundThatTheStateCarriesUnchangedCounts) {
  const std::string condition = "ROOT r = pred[] compare(i, n), direction=LT";
  EXPECT_EQ(trips(condition, kUp, kStart), 7);
  EXPECT_EQ(trips(condition, "one = s32[] constant(1)  next = s32[] add(i, one)  limit = s32[] add(n, one)",
                  kStart),
            std::nullopt);
  EXPECT_EQ(trips(condition, kUp, "first = s32[] constant(0)  last = s32[] copy(y)"), std::nullopt);
}

TEST(TripCount, OfADataDependentOrOverflowingLoopIsUnknown) {
  const std::string condition = "k = s8[] constant(100)  ROOT r = pred[] compare(i, k), direction=LT";
  EXPECT_EQ(trips(condition, "a = s8[] multiply(i, n)  next = s8[] add(a, n)  limit = s8[] copy(n)",
                  "first = s8[] constant(0)  last = s8[] constant(7)", "", "s8"),
            std::nullopt);
  EXPECT_EQ(trips(condition, "a = s8[] constant(60)  next = s8[] add(i, a)  limit = s8[] copy(n)",
                  "first = s8[] constant(20)  last = s8[] constant(7)", "", "s8"),
            std::nullopt);
}

TEST(TripCount, WhatXlaFoundIsTaken) {
  const std::string condition = "ROOT r = pred[] compare(i, n), direction=LT";
  const std::string unknown = "first = s32[] constant(0)  last = s32[] copy(y)";
  EXPECT_EQ(trips(condition, kUp, unknown, R"(, backend_config={"known_trip_count":{"n":"42"}})"), 42);
  EXPECT_EQ(trips(condition, kUp, unknown, R"(, backend_config="{\"known_trip_count\":{\"n\":\"42\"}}")"),
            42);
  EXPECT_EQ(trips(condition, kUp, unknown, R"(, backend_config="not json")"), std::nullopt);
}

Graph endless() {
  return canonicalize(parse_hlo(R"(HloModule m
c { p = s32[] parameter(0)  n = s32[] constant(5)  ROOT r = pred[] compare(p, n), direction=LT }
b { p = s32[] parameter(0)  ROOT n = s32[] multiply(p, p) }
c2 { p = s32[] parameter(0)  n = s32[] constant(3)  ROOT r = pred[] compare(p, n), direction=LT }
b2 { p = s32[] parameter(0)  one = s32[] constant(1)  ROOT n = s32[] add(p, one) }
ENTRY e { x = s32[] parameter(0)  zero = s32[] constant(0)  known = s32[] while(zero), condition=c2, body=b2
  s = s32[] add(x, known)  ROOT open = s32[] while(s), condition=c, body=b })",
                                "test.hlo"));
}

TEST(Trips, OfLoopsAreToldKnownOrNot) {
  EXPECT_EQ(to_text(loops(endless())), "known 3 trips, open trips unknown: counted once (--trips open=N)");
}

TEST(Trips, ThatTheModelDoesNotTellCanBeGiven) {
  const Graph graph = with_trips(endless(), {{"open", 100}, {"known", 3}});
  EXPECT_EQ(to_text(loops(graph)), "known 3 trips, open 100 trips");
  EXPECT_THROW(with_trips(endless(), {{"known", 4}}), Error);
  EXPECT_THROW(with_trips(endless(), {{"s", 4}}), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
