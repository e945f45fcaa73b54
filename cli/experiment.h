// What the files of `stitchwork experiment` share.
#pragma once

#include <optional>
#include <string>

#include "cli/cli.h"
#include "experiments/store.h"

namespace stitchwork {

/// "" = the default one. Throws Error where there is none.
Store open_store(const std::string& given);
void add_db(CLI::App& command, std::string& db);

/// Whole numbers without a fraction; "-" for none.
std::string number_text(const std::optional<double>& value, int digits = 2);

void add_experiment_ablate(CLI::App& experiment, Cli& cli);
void add_experiment_compare(CLI::App& experiment, Cli& cli);
void add_experiment_export(CLI::App& experiment, Cli& cli);
void add_experiment_import(CLI::App& experiment, Cli& cli);
void add_experiment_limits(CLI::App& experiment, Cli& cli);
void add_experiment_run(CLI::App& experiment, Cli& cli);
void add_experiment_show(CLI::App& experiment, Cli& cli);
void add_experiment_submit(CLI::App& experiment, Cli& cli);

}  // namespace stitchwork
