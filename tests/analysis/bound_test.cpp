#include "analysis/facts/bound.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;

KernelBound bound_of(const std::string& body, int max_ops = 512) {
  return kernel_bound(graph_of(body), max_ops);
}

constexpr const char* kDot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

TEST(KernelBound, OneKernelComputesWhatNoCallSeparates) {
  const KernelBound bound = bound_of(R"(
    p = f32[4,4] parameter(0)
    a = f32[4,4] exponential(p)
    b = f32[4,4] tanh(p)
    ROOT t = (f32[4,4], f32[4,4]) tuple(a, b))");
  EXPECT_EQ(bound.ops, 2);
  EXPECT_EQ(bound.stages, 1);
  EXPECT_EQ(bound.kernels, 1);
}

TEST(KernelBound, ACallBetweenOpsForcesAKernelMore) {
  EXPECT_EQ(bound_of(fmt::format(R"(
    p = f32[4,4] parameter(0)
    a = f32[4,4] exponential(p)
    d = f32[4,4] dot(a, p), {}
    ROOT b = f32[4,4] add(a, d))",
                                 kDot))
                .kernels,
            2);
}

TEST(KernelBound, CallsInARowOrAtAnEndForceNone) {
  EXPECT_EQ(bound_of(fmt::format(R"(
    p = f32[4,4] parameter(0)
    c = f32[4,4] dot(p, p), {0}
    d = f32[4,4] dot(c, p), {0}
    a = f32[4,4] exponential(d)
    ROOT e = f32[4,4] dot(a, p), {0})",
                                 kDot))
                .kernels,
            1);
}

// The first chain works before its calls and the second after them: one kernel may do both, if the second's
// calls are made first. Stages counted from the start of the graph would say two.
TEST(KernelBound, WhatCallsAndTheCallerReadIsWrittenOnce) {
  // a feeds a call, s the caller under another name, b only s; the call's own result is not a kernel's.
  EXPECT_EQ(bound_of(fmt::format(R"(
    p = f32[4,4] parameter(0)
    a = f32[4,4] exponential(p)
    d = f32[4,4] dot(a, a), {}
    b = f32[4,4] tanh(p)
    s = f32[4,4] add(a, b)
    r = f32[16] reshape(s)
    ROOT t = (f32[4,4], f32[16]) tuple(d, r))",
                                 kDot))
                .written_bytes,
            2 * 64);
}

TEST(KernelBound, WorkWithSlackMeetsThatOfOtherChains) {
  EXPECT_EQ(bound_of(fmt::format(R"(
    p = f32[4,4] parameter(0)
    a = f32[4,4] exponential(p)
    b = f32[4,4] dot(a, p), {0}
    c = f32[4,4] dot(p, p), {0}
    d = f32[4,4] tanh(c)
    ROOT t = (f32[4,4], f32[4,4]) tuple(b, d))",
                                 kDot))
                .kernels,
            1);
}

TEST(KernelBound, RemoteTrapNeedsTwo) { EXPECT_EQ(kernel_bound(testing::dataset("remote_trap")).kernels, 2); }

TEST(KernelBound, MapsCountWhereACallReadsThem) {
  const std::string body = fmt::format(R"(
    p = f32[4] parameter(0)
    q = f32[4,4] parameter(1)
    b = f32[4,4] broadcast(p), dimensions={{0}}
    ROOT d = f32[4,4] dot(b, q), {})",
                                       kDot);
  EXPECT_EQ(bound_of(body).kernels, 1);
  EXPECT_EQ(bound_of(R"(
    p = f32[4] parameter(0)
    b = f32[4,4] broadcast(p), dimensions={0}
    ROOT e = f32[4,4] exponential(b))")
                .ops,
            1);
}

TEST(KernelBound, AKernelsSizeForcesMore) {
  const std::string body = fmt::format(R"(
    p = f32[4,4] parameter(0)
    a = f32[4,4] exponential(p)
    b = f32[4,4] tanh(a)
    c = f32[4,4] tanh(b)
    d = f32[4,4] dot(c, p), {}
    ROOT e = f32[4,4] tanh(d))",
                                       kDot);
  EXPECT_EQ(bound_of(body, 3).kernels, 2);
  EXPECT_EQ(bound_of(body, 2).kernels, 3);  // two for the ops before the call, one after it
  EXPECT_EQ(bound_of(body, 1).kernels, 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
