#include "experiments/environment.h"

#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/base/version.h"
#include "core/hlo/hlo_text.h"
#include "experiments/sqlite.h"
#include "experiments/store.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0)
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

/// "570.86.15, CUDA 12.8": of the kernel module where it says so, and what the driver's library supports.
std::string driver_text(const cuda::Gpu& gpu) {
  std::ifstream in("/proc/driver/nvidia/version");
  std::string module;
  std::smatch found;
  if (std::getline(in, module) && std::regex_search(module, found, std::regex(R"(\s(\d+\.\d+[\d.]*)\s)")))
    module = found[1].str() + ", ";
  else
    module.clear();
  return fmt::format("{}CUDA {}.{}", module, gpu.driver_version / 1000, gpu.driver_version % 1000 / 10);
}

std::string clocks_text(const cuda::Gpu& gpu) {
  constexpr int kKilohertzPerMegahertz = 1000;
  return fmt::format("SMs at most {} MHz, memory {} MHz", gpu.clock_kilohertz / kKilohertzPerMegahertz,
                     gpu.memory_clock_kilohertz / kKilohertzPerMegahertz);
}

}  // namespace

std::int64_t environment_row(sqlite3* db, const TrialSpec& spec, const TrialResult& result) {
  utsname system{};
  ::uname(&system);
  const Version& v = version();
  const Device& target = device(spec.device);
  const std::string os = std::string(system.sysname) + " " + system.release;
  std::string gpu = target.name;
  std::optional<std::string> driver, uuid, clocks;
  if (spec.backend != "cuda") gpu += spec.backend == "sim" ? " (simulated)" : " (modelled)";
  if (result.gpu) {
    gpu = result.gpu->name;
    driver = driver_text(*result.gpu);
    clocks = clocks_text(*result.gpu);
    if (!result.gpu->uuid.empty()) uuid = result.gpu->uuid;
  }
  const auto json = [](const std::optional<std::string>& text) {
    return text ? ordered_json(*text) : ordered_json();
  };
  const std::string text =
                        ordered_json{{"host", system.nodename}, {"os", os},
                                     {"cpu", cpu_name()},       {"gpu", gpu},
                                     {"gpu_uuid", json(uuid)},  {"gpu_clocks", json(clocks)},
                                     {"driver", json(driver)},  {"ptx_compiler", result.executable.compiler},
                                     {"compiler", v.compiler},  {"version", v.version},
                                     {"commit", v.commit},      {"dirty", v.dirty}}
                            .dump(),
                    hash = sha256_hex(text);
  Statement(db,
            "INSERT OR IGNORE INTO environment(hash,host,os,cpu,gpu_name,gpu_uuid,gpu_clocks,sm_arch,driver,"
            "cuda,compiler,app_version,git_commit,git_dirty,env_json) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .bind(hash)
      .bind(system.nodename)
      .bind(os)
      .bind(cpu_name())
      .bind(gpu)
      .bind(uuid)
      .bind(clocks)
      .bind(fmt::format("sm_{}{}", target.cc_major, target.cc_minor))
      .bind(driver)
      .bind(result.executable.compiler)
      .bind(v.compiler)
      .bind(v.version)
      .bind(v.commit)
      .bind(v.dirty ? 1 : 0)
      .bind(text)
      .run();
  Statement query(db, "SELECT id FROM environment WHERE hash = ?");
  query.bind(hash).step();
  return query.integer(0);
}

std::string environment_text(sqlite3* db, std::int64_t id) {
  Statement query(
      db,
      "SELECT app_version, git_commit, git_dirty, compiler, cuda, gpu_name, sm_arch, cpu, os, host, "
      "gpu_uuid, driver, gpu_clocks FROM environment WHERE id = ?");
  query.bind(id).step();
  std::string gpu = fmt::format("{}, {}", query.text(5), query.text(6));
  if (!query.is_null(10)) gpu += ", " + query.text(10);
  if (!query.is_null(11)) gpu += ", driver " + query.text(11);
  if (!query.is_null(12)) gpu += ", " + query.text(12);
  const std::string compiled =
      query.text(4).empty() ? "" : fmt::format("; kernels compiled by {}", query.text(4));
  return fmt::format("stitchwork {} ({}{}), built with {}{}; GPU {}; CPU {}; {}; host {}", query.text(0),
                     query.text(1), query.integer(2) ? ", modified" : "", query.text(3), compiled, gpu,
                     query.text(7), query.text(8), query.text(9));
}

std::vector<std::string> environments(const Store& store) {
  std::vector<std::int64_t> ids;
  Statement query(store.handle(), "SELECT DISTINCT environment_id FROM attempt ORDER BY environment_id");
  while (query.step()) ids.push_back(query.integer(0));
  std::vector<std::string> texts;
  for (const std::int64_t id : ids) texts.push_back(environment_text(store.handle(), id));
  return texts;
}

}  // namespace stitchwork
