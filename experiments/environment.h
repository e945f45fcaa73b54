// Where a trial ran: the host, the GPU and its driver, the program, the compiler of its kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/trial.h"

struct sqlite3;

namespace stitchwork {

class Store;

/// The row of the environment that the trial ran in, made on first use. A trial without a result knows no
/// compiler and no GPU.
std::int64_t environment_row(sqlite3* db, const TrialSpec& spec, const TrialResult& result);

/// One line: program and commit, compilers, GPU with driver and clocks, CPU, system, host.
std::string environment_text(sqlite3* db, std::int64_t id);

/// The environments that attempts of the store ran in, a line each.
std::vector<std::string> environments(const Store& store);

}  // namespace stitchwork
