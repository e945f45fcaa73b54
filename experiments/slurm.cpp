#include "experiments/slurm.h"

#include <cctype>
#include <cstdio>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace {
namespace fs = std::filesystem;

/// As a word of a shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string head(const SlurmOptions& options, const std::string& name, const std::string& log,
                 const std::string& more) {
  std::string text = fmt::format("#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --output={}/{}\n{}", name,
                                 options.folder, log, more);
  for (const std::string& line : options.sbatch) text += fmt::format("#SBATCH {}\n", line);
  return text;
}

/// Slurm cuts names at odd characters.
std::string job_name(const std::string& experiment) {
  std::string name = "stitchwork-";
  for (const char c : experiment) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name;
}

std::string shard_store(const SlurmOptions& options, const std::string& shard) {
  return quoted(options.folder) + "/shard-" + shard + ".db";
}

/// sbatch's answer under --parsable: "123" or "123;cluster".
std::string sbatch(const std::string& arguments) {
  const std::string command = "sbatch --parsable " + arguments + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw Error("sbatch cannot be started");
  std::string said;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) said += buffer;
  const int status = ::pclose(pipe);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (status != 0)
    throw Error(fmt::format("sbatch: {}", said.empty() ? "failed" : said),
                "run this where Slurm's commands are, or submit the scripts by hand");
  return said.substr(0, said.find(';'));
}

}  // namespace

std::string slurm_array_script(const ExperimentSpec& spec, const SlurmOptions& options) {
  return head(options, job_name(spec.name), "shard-%a.log",
              fmt::format("#SBATCH --array=1-{}\n#SBATCH --requeue\n#SBATCH --open-mode=append\n",
                          options.shards)) +
         fmt::format(
             "# A runner that is killed goes on behind what it had recorded; a trial that fails is recorded "
             "and is\n"
             "# no reason to try again (exit code 1).\n"
             "for try in $(seq {}); do\n"
             "  {} experiment run {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --db {}\n"
             "  status=$?\n"
             "  [ $status -gt 128 ] || exit $status\n"
             "done\n"
             "exit $status\n",
             options.tries, quoted(options.program), quoted(options.spec), options.shards,
             shard_store(options, "\"$SLURM_ARRAY_TASK_ID\""));
}

std::string slurm_merge_script(const ExperimentSpec& spec, const SlurmOptions& options) {
  std::string stores;
  for (int shard = 1; shard <= options.shards; ++shard)
    stores += " " + shard_store(options, std::to_string(shard));
  return head(options, job_name(spec.name) + "-merge", "merge.log", "#SBATCH --open-mode=append\n") +
         fmt::format(
             "stores=()\n"
             "for store in{}; do\n"
             "  if [ -e \"$store\" ]; then stores+=(\"$store\"); else echo \"no store of $store\" >&2; fi\n"
             "done\n"
             "{} experiment merge \"${{stores[@]}}\" --db {}\n",
             stores, quoted(options.program), quoted(options.db));
}

std::vector<std::string> write_slurm_scripts(const ExperimentSpec& spec, const SlurmOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) throw Error(options.folder, 0, 0, fmt::format("cannot be made: {}", error.message()));
  std::vector<std::string> files{options.folder + "/array.sh", options.folder + "/merge.sh"};
  write_file(files[0], slurm_array_script(spec, options));
  write_file(files[1], slurm_merge_script(spec, options));
  return files;
}

Submitted submit_to_slurm(const std::vector<std::string>& scripts) {
  Submitted jobs;
  jobs.array_job = sbatch(quoted(scripts.at(0)));
  jobs.merge_job = sbatch(fmt::format("--dependency=afterany:{} {}", jobs.array_job, quoted(scripts.at(1))));
  return jobs;
}

}  // namespace stitchwork
