// Profiles as their tools write them, made here: the Chrome traces of JAX and PyTorch, Nsight Systems' SQLite
// export, Nsight Compute's CSV. Names of fields and tables are those of the tools' documentation.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stitchwork::testing {

/// A launch of a program that is "profiled".
struct MadeLaunch {
  std::string kernel, instruction;
  double us = 1;
  int grid = 1, block = 32;
  std::string op = {};  ///< tf_op of JAX, the operator of PyTorch, an NVTX range of Nsight Systems
};

/// `times` iterations, one after the other; the n-th (from 0) takes n % 3 us longer a launch. In us, 1 us
/// between launches, 50 us between iterations.
template <typename Visit>
void each_launch(const std::vector<MadeLaunch>& program, int times, Visit visit) {
  double at = 1000;
  for (int n = 0; n < times; ++n, at += 50)
    for (const MadeLaunch& launch : program) {
      const double us = launch.us + n % 3;
      visit(launch, at, us);
      at += us + 1;
    }
}

/// XProf's trace of a GPU: streams are threads, all arguments are strings, and lines that it derives hold the
/// same time once more.
inline nlohmann::json jax_trace(const std::vector<MadeLaunch>& program, int times,
                                const std::string& module) {
  nlohmann::json events = {
      {{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "/device:GPU:0 NVIDIA A100"}}}},
      {{"ph", "M"},
       {"pid", 1},
       {"tid", 20},
       {"name", "thread_name"},
       {"args", {{"name", "Stream #20(Compute)"}}}},
      {{"ph", "M"}, {"pid", 1}, {"tid", 21}, {"name", "thread_name"}, {"args", {{"name", "XLA Ops"}}}},
      {{"ph", "M"}, {"pid", 701}, {"name", "process_name"}, {"args", {{"name", "/host:CPU"}}}},
      {{"ph", "X"}, {"pid", 701}, {"tid", 1}, {"ts", 1.0}, {"dur", 9.0}, {"name", "PjitFunction(f)"}}};
  each_launch(program, times, [&](const MadeLaunch& l, double at, double us) {
    nlohmann::json args = {{"correlation_id", "7"}, {"hlo_module", module}, {"hlo_op", l.instruction}};
    if (!l.op.empty()) args["tf_op"] = l.op + ":";
    args["kernel_details"] = fmt::format(
        "regs:32 static_shared:0 dynamic_shared:0 grid:{},1,1 block:{},1,1 occ_pct:100", l.grid, l.block);
    events.push_back(
        {{"ph", "X"}, {"pid", 1}, {"tid", 20}, {"ts", at}, {"dur", us}, {"name", l.kernel}, {"args", args}});
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", 21},
                      {"ts", at},
                      {"dur", us},
                      {"name", l.instruction},
                      {"args", {{"hlo_module", module}, {"hlo_op", l.instruction}}}});
  });
  events.push_back(nlohmann::json::object());  // XProf's last one
  return {{"displayTimeUnit", "ns"}, {"metadata", {{"highres-ticks", true}}}, {"traceEvents", events}};
}

/// PyTorch's (Kineto's): kernels name the operator by its external id.
inline nlohmann::json torch_trace(const std::vector<MadeLaunch>& program, int times) {
  nlohmann::json events = {
      {{"ph", "M"}, {"pid", 0}, {"tid", 0}, {"name", "process_name"}, {"args", {{"name", "python"}}}}};
  int id = 100;
  each_launch(program, times, [&](const MadeLaunch& l, double at, double us) {
    ++id;
    events.push_back({{"ph", "X"},
                      {"cat", "cpu_op"},
                      {"name", l.op},
                      {"pid", 4242},
                      {"tid", 4242},
                      {"ts", at - 20},
                      {"dur", 5.0},
                      {"args", {{"External id", id}, {"Record function id", 0}}}});
    events.push_back({{"ph", "X"},
                      {"cat", "cuda_runtime"},
                      {"name", "cudaLaunchKernel"},
                      {"pid", 4242},
                      {"tid", 4242},
                      {"ts", at - 18},
                      {"dur", 3.0},
                      {"args", {{"External id", id}, {"cbid", 211}, {"correlation", id}}}});
    events.push_back({{"ph", "X"},
                      {"cat", "kernel"},
                      {"name", l.kernel},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", at},
                      {"dur", us},
                      {"args",
                       {{"External id", id},
                        {"queued", 0},
                        {"device", 0},
                        {"context", 1},
                        {"stream", 7},
                        {"correlation", id},
                        {"registers per thread", 40},
                        {"shared memory", 0},
                        {"blocks per SM", 0.5},
                        {"warps per SM", 4.0},
                        {"grid", {l.grid, 1, 1}},
                        {"block", {l.block, 1, 1}},
                        {"est. achieved occupancy %", 25}}}});
    events.push_back({{"ph", "f"},
                      {"id", id},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", at},
                      {"cat", "ac2g"},
                      {"name", "ac2g"},
                      {"bp", "e"}});
  });
  events.push_back({{"name", "Iteration Start: PyTorch Profiler"},
                    {"ph", "i"},
                    {"s", "g"},
                    {"pid", "Traces"},
                    {"tid", "Trace PyTorch Profiler"},
                    {"ts", 900.0}});
  return {{"schemaVersion", 1},
          {"deviceProperties", {{{"id", 0}, {"name", "NVIDIA H100 80GB HBM3"}, {"totalGlobalMem", 85}}}},
          {"traceEvents", events},
          {"traceName", "trace.json"}};
}

/// `nsys export --type sqlite`: XLA's ranges name the instruction, other launches have theirs in one of their
/// own.
inline void write_nsys(const std::string& path, const std::vector<MadeLaunch>& program, int times,
                       const std::string& module) {
  std::filesystem::remove(path);
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  std::string sql = R"sql(
BEGIN;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA A100-SXM4-80GB', 8, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,
  mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
  gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,
  text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (500000, 501000, 0, 1, 7, 1, 281475000000512, 4096, 1);
)sql";
  std::vector<std::string> strings;
  const auto id_of = [&](const std::string& text) {
    for (std::size_t i = 0; i < strings.size(); ++i)
      if (strings[i] == text) return i + 1;
    strings.push_back(text);
    sql += fmt::format("INSERT INTO StringIds VALUES ({}, '{}');\n", strings.size(), text);
    return strings.size();
  };
  constexpr std::int64_t kProcess = std::int64_t{0x1000000} << 24, kThread = kProcess | 0x77;
  std::int64_t correlation = 10;
  each_launch(program, times, [&](const MadeLaunch& l, double at, double us) {
    ++correlation;
    const auto begin = static_cast<std::int64_t>(at * 1e3), end = begin + static_cast<std::int64_t>(us * 1e3);
    const std::size_t name = id_of(l.kernel);
    sql += fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
        "({},{},0,1,7,{},{},{},{},{},0,0,48,{},1,1,{},1,1,0,0,NULL);\n",
        begin, end, correlation, kProcess, name, name, name, l.grid, l.block);
    sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({},{},0,{},{},{},0,NULL);\n",
                       begin - 9000, begin - 8000, kThread, correlation, id_of("cuLaunchKernel"));
    if (!l.instruction.empty()) {
      const std::string outer = fmt::format("XlaModule:#hlo_module={},program_id=1#", module);
      sql += fmt::format("INSERT INTO NVTX_EVENTS VALUES ({},{},59,NULL,NULL,NULL,NULL,{},NULL,{},1);\n",
                         begin - 9700, begin - 7300, kThread, id_of(outer));
      sql += fmt::format(
          "INSERT INTO NVTX_EVENTS VALUES ({},{},59,NULL,NULL,NULL,'Thunk:#hlo_op={}#',{},NULL,NULL,1);\n",
          begin - 9500, begin - 7500, l.instruction, kThread);
    } else if (!l.op.empty()) {
      sql += fmt::format(
          "INSERT INTO NVTX_EVENTS VALUES ({},{},59,NULL,NULL,NULL,'{}, seq = 3',{},NULL,NULL,0);\n",
          begin - 9500, begin - 7500, l.op, kThread);
    }
  });
  sql += "COMMIT;";
  sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
  sqlite3_close(db);
}

/// `ncu --csv --page details`: a row a metric, after the lines of the program.
inline std::string ncu_details(const std::vector<MadeLaunch>& program) {
  std::string text =
      "==PROF== Connected to process 77 (/usr/bin/python3)\nloss 0.7\n"
      "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block "
      "Size\","
      "\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric "
      "Value\",\"Rule Name\","
      "\"Rule Type\",\"Rule Description\"\n";
  int id = 0;
  for (const MadeLaunch& l : program) {
    const std::string kernel = fmt::format(
        "\"{}\",\"77\",\"python3\",\"127.0.0.1\",\"{}\",\"1\",\"7\",\"({}, 1, 1)\",\"({}, 1, "
        "1)\",\"0\",\"8.0\"",
        id++, l.kernel, l.block, l.grid);
    text += kernel +
            fmt::format(",\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"{:.2f}\",\"\",\"\",\"\"\n",
                        l.us);
    text += kernel +
            ",\"Launch Statistics\",\"Registers Per Thread\",\"register/thread\",\"64\",\"\",\"\",\"\"\n";
    text += kernel + ",\"Occupancy\",\"Achieved Occupancy\",\"%\",\"75.00\",\"\",\"\",\"\"\n";
    text += kernel + ",\"SpeedOfLight\",\"\",\"\",\"\",\"SOLBottleneck\",\"OPT\",\"Low, \"\"very\"\" low\"\n";
  }
  return text;
}

}  // namespace stitchwork::testing
