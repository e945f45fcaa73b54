#include "experiments/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(Trace, SlicesAreTheStepsInOrderAndLastAsLongAsTheRun) {
  SKIP_WITHOUT_COMPILER();
  const Model model = load_model("attention_tiny");
  TrialSpec spec;
  spec.planner = "xla";
  const TrialResult result = run_trial(model, spec);
  const auto trace = trace_json(model, spec, result);
  const FusionPlan& plan = result.executable.plan;
  double end = 0;
  std::size_t step = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), end);
    end = event["ts"].get<double>() + event["dur"].get<double>();
    EXPECT_EQ(event["cat"], name(plan.steps[step].kind));
    EXPECT_EQ(event["name"].get<std::string>().rfind(plan.steps[step].id, 0), 0u);
    EXPECT_EQ(event["args"]["method"], plan.steps[step].kind == StepKind::kKernel ? "simulated" : "modelled");
    EXPECT_EQ(event["args"].contains("counters"), plan.steps[step].kind == StepKind::kKernel);
    ++step;
  }
  EXPECT_EQ(step, plan.steps.size());
  EXPECT_NEAR(end, result.run.total_us, 1e-6 * end);
}

/// What Perfetto's importer of Chrome's format and chrome://tracing need of a trace; "" or what is wrong.
/// Times become whole nanoseconds there, and slices of a thread have to lie within or behind one another.
std::string problem_of(const nlohmann::json& trace) {
  if (trace["displayTimeUnit"] != "ns" && trace["displayTimeUnit"] != "ms") return "displayTimeUnit";
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
  std::set<std::pair<int, int>> threads;
  std::set<int> processes;
  for (const auto& event : trace["traceEvents"]) {
    if (!event["name"].is_string() || event["name"].get<std::string>().empty()) return "name";
    if (!event["pid"].is_number_integer() || !event["tid"].is_number_integer()) return "pid, tid";
    if (!event["args"].is_object()) return "args";
    const std::pair<int, int> thread{event["pid"], event["tid"]};
    if (event["ph"] == "M") {
      if (!event["args"]["name"].is_string()) return "a name without text";
      if (event["name"] == "process_name")
        processes.insert(thread.first);
      else if (event["name"] == "thread_name")
        threads.insert(thread);
      else
        return "unknown metadata";
      continue;
    }
    if (event["ph"] != "X") return "a phase that is not written here";
    if (!event["ts"].is_number() || !event["dur"].is_number()) return "ts, dur";
    if (!event["cat"].is_string()) return "cat";
    const double begin = event["ts"], length = event["dur"];
    if (begin < 0 || length < 0) return "a time below zero";
    slices[thread].emplace_back(begin, begin + length);
  }
  for (auto& [thread, its] : slices) {
    if (!threads.contains(thread) || !processes.contains(thread.first)) return "a thread without a name";
    std::ranges::sort(its);
    for (std::size_t i = 1; i < its.size(); ++i)
      if (std::floor(1e3 * its[i].first) < std::floor(1e3 * its[i - 1].second)) return "slices overlap";
  }
  return slices.empty() ? "no slices" : "";
}

TEST(Trace, PerfettoOpensIt) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& [dataset, planner] :
       {std::pair("attention_tiny", "xla"), std::pair("scrnn_tiny", "astra")}) {
    const Model model = load_model(dataset);
    TrialSpec spec;
    spec.planner = planner;
    const auto trace = nlohmann::json::parse(trace_json(model, spec, run_trial(model, spec)).dump());
    EXPECT_EQ(problem_of(trace), "") << dataset;
    std::set<int> streams;
    for (const auto& event : trace["traceEvents"])
      if (event["ph"] == "X") streams.insert(event["tid"].get<int>());
    EXPECT_EQ(streams.size() > 1, std::string(planner) == "astra") << "a thread a stream";
  }
}

TEST(Trace, WhatPerfettoWouldMisplaceIsFound) {
  const auto slice = [](double begin, double length) {
    return nlohmann::json{
        {"name", "k"},   {"cat", "kernel"}, {"ph", "X"}, {"ts", begin},
        {"dur", length}, {"pid", 1},        {"tid", 0},  {"args", nlohmann::json::object()}};
  };
  const auto named = [](const char* what) {
    return nlohmann::json{{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 0}, {"args", {{"name", "x"}}}};
  };
  nlohmann::json trace{
      {"displayTimeUnit", "ns"},
      {"traceEvents", {named("process_name"), slice(0, 2), slice(3, 1), named("thread_name")}}};
  EXPECT_EQ(problem_of(trace), "");
  trace["traceEvents"][1]["dur"] = 3.5;
  EXPECT_EQ(problem_of(trace), "slices overlap");
  trace["traceEvents"].erase(3);
  EXPECT_EQ(problem_of(trace), "a thread without a name");
}

TEST(Trace, ALoopIsOneSlice) {
  SKIP_WITHOUT_COMPILER();
  Model model;
  model.graph = testing::graph_of(R"(HloModule loop
body { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[8] tanh(x)  ROOT t = (s32[], f32[8]) tuple(j, y) }
more { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY main { zero = s32[] constant(0)  x = f32[8] parameter(0)
  t = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(t), condition=more, body=body
  ROOT y = f32[8] get-tuple-element(w), index=1 }
)");
  const TrialSpec spec;
  const auto trace = trace_json(model, spec, run_trial(model, spec));
  int loops = 0;
  for (const auto& event : trace["traceEvents"]) loops += event.value("cat", "") == "control";
  EXPECT_EQ(loops, 1);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
