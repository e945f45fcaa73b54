#include "cli/stages.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/plan/control_flow.h"
#include "cli/dumps.h"
#include "codegen/compile/disassemble.h"
#include "codegen/write.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Files beside the folder that is asked for: they go there when all are written, or away.
class StagedFolder {
 public:
  explicit StagedFolder(fs::path wanted)
      : wanted_(wanted.has_filename() ? std::move(wanted) : wanted.parent_path()), path_(wanted_) {
    path_ += fmt::format(".{}.partial", getpid());
    make(path_, wanted_);
  }
  ~StagedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const fs::path& path() const { return path_; }
  void publish(const std::vector<std::string>& files) {
    std::error_code ignored, not_renamed;
    const bool is_link = fs::is_symlink(fs::symlink_status(wanted_, ignored));  // which stays one
    if (!is_link && fs::is_empty(wanted_, ignored)) fs::remove(wanted_, ignored);
    if (!fs::exists(wanted_, ignored)) fs::rename(path_, wanted_, not_renamed);
    if (!fs::exists(path_, ignored)) return;  // all of it at once
    for (const std::string& file : files) {
      make((wanted_ / file).parent_path(), wanted_);
      std::error_code error;
      fs::rename(path_ / file, wanted_ / file, error);
      if (error)
        throw Error((wanted_ / file).string(), 0, 0, fmt::format("cannot be written: {}", error.message()));
    }
  }

 private:
  /// `wanted`: whose name people know.
  static void make(const fs::path& folder, const fs::path& wanted) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      throw Error(wanted.string(), 0, 0, fmt::format("cannot be created: {}", error.message()),
                  "name a writable folder");
  }
  fs::path wanted_, path_;
};

class Stages {
 public:
  Stages(const Planned& planned, const std::string& folder) : planned_(planned), staged_(folder) {}

  void text(const std::string& stage, const std::string& file, const std::string& what,
            const std::string& text) {
    write_file((staged_.path() / file).string(), text);
    add(stage, what, {file});
  }
  void missing(const std::string& stage, const std::string& what, const std::string& why) {
    stages_.push_back({{"stage", stage}, {"what", what}, {"files", ordered_json::array()}, {"missing", why}});
  }
  void dump(const std::string& stage, const std::string& file) {
    const DumpKind& kind = dump_kind(stage);
    text(stage, file, std::string(kind.help), kind.print(planned_, {}));
  }

  /// The kernels of the entry, and of what loops and branches run in a folder each.
  void kernels(const Executable& executable) {
    std::vector<std::string> sources, code, launches;
    const auto write = [&](const Graph& graph, const Executable& part, const std::string& folder) {
      for (const std::string& file : write_kernels(graph, part, (staged_.path() / folder).string())) {
        const std::string extension = fs::path(file).extension().string();
        (extension == ".cu"     ? sources
         : extension == ".json" ? launches
                                : code)
            .push_back(folder + "/" + file);
      }
    };
    const Graph& graph = planned_.graph();
    write(graph, executable, "kernels");
    for (std::size_t c = 0; c < executable.computations.size(); ++c) {
      const Graph part = entered(graph, executable.plan.computations[c].computation);
      write(part, executable.computations[c], "kernels/" + file_name(part.entry_computation().name));
    }
    add("cuda", "the CUDA C++ of each kernel", sources);
    add("ptx", fmt::format("what {} made of it", executable.compiler), code);
    add("launch", "how each kernel is launched", launches);
    machine_code(executable);
  }

  ordered_json finish() {
    const Graph& graph = planned_.graph();
    ordered_json index{{"schema", "stitchwork.stages/1"},
                       {"model", {{"path", graph.source}, {"sha256", graph.source_sha256}}},
                       {"device", planned_.plan.device},
                       {"planner", planned_.plan.planner},
                       {"stages", stages_}};
    std::string page =
        fmt::format("# {} by {} for {}\n\n", graph.source, planned_.plan.planner, planned_.plan.device);
    for (const ordered_json& stage : stages_) {
      page +=
          fmt::format("- **{}**: {}", stage["stage"].get<std::string>(), stage["what"].get<std::string>());
      if (stage.contains("missing"))
        page += fmt::format(" (not here: {})", stage["missing"].get<std::string>());
      for (const ordered_json& file : stage["files"])
        page += fmt::format("\n  - [{0}]({0})", file.get<std::string>());
      page += "\n";
    }
    write_file((staged_.path() / "index.md").string(), page);
    write_file((staged_.path() / "index.json").string(), index.dump(2) + "\n");
    files_.insert(files_.end(), {"index.md", "index.json"});
    staged_.publish(files_);
    return index;
  }

 private:
  void add(const std::string& stage, const std::string& what, const std::vector<std::string>& files) {
    stages_.push_back({{"stage", stage}, {"what", what}, {"files", files}});
    files_.insert(files_.end(), files.begin(), files.end());
  }

  /// Computations' names may hold what file systems do not take.
  static std::string file_name(std::string name) {
    for (char& c : name)
      if (c == '/' || c == '\0') c = '_';
    return name;
  }

  void machine_code(const Executable& executable) {
    constexpr const char* kWhat = "the machine code, as nvdisasm prints it";
    const Disassembler tools = find_disassembler();
    if (!tools.there()) return missing("sass", kWhat, "no ptxas and nvdisasm; the CUDA toolkit has both");
    std::vector<std::string> files;
    const std::vector<std::string> written = files_;
    for (const std::string& file : written) {
      if (fs::path(file).extension() != ".ptx") continue;
      files.push_back(fs::path(file).replace_extension(".sass").string());
      write_file((staged_.path() / files.back()).string(),
                 disassembled(tools, read_file((staged_.path() / file).string()), executable.architecture));
    }
    add("sass", kWhat, files);
  }

  const Planned& planned_;
  StagedFolder staged_;
  ordered_json stages_ = ordered_json::array();
  std::vector<std::string> files_;
};

/// Whether the planner deals what kernels store by templates (FusionStitching 2019).
bool has_templates(const FusionPlan& plan) {
  return std::ranges::find(planner(plan.planner).edits, EditKind::kTemplate) !=
         planner(plan.planner).edits.end();
}

}  // namespace

void require_empty_folder(const std::string& folder, bool force) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) throw Error(folder, 0, 0, "is no folder", "name a new one");
  if (!force && !fs::is_empty(folder, error))
    throw Error(folder, 0, 0, "has files already",
                "name a new folder, or --force: files of the same names are replaced, others stay");
}

ordered_json write_stages(const Planned& planned, const Graph& as_read, const Executable* executable,
                          const std::string& folder) {
  const Graph& graph = planned.graph();
  Stages stages(planned, folder);
  stages.text("read", "1-read.hlo", "the model as it was read, before any pass, as HLO text",
              to_text(as_read));
  stages.dump("graph", "2-graph.hlo");
  stages.dump("dominants", "3-dominants.txt");
  stages.dump("plan", "3-plan.txt");
  stages.text("plan-json", "3-plan.json", "the plan, to edit and to give back with --plan",
              plan_document(graph, planned.plan).dump(2) + "\n");
  if (has_templates(planned.plan))
    stages.dump("templates", "4-templates.txt");
  else
    stages.missing("templates", std::string(dump_kind("templates").help),
                   fmt::format("planner {} has none", planned.plan.planner));
  if (planned.plan.planner == "korch") {
    stages.dump("primitives", "4-primitives.txt");
    stages.dump("candidates", "4-candidates.txt");
    stages.dump("program", "4-program.lp");
  }
  stages.dump("schedule", "5-schedule.txt");
  stages.dump("occupancy", "6-occupancy.txt");
  const DumpKind& memory = dump_kind("memory");
  stages.dump("memory", "7-memory.txt");
  stages.text("memory-json", "7-memory.json", std::string(memory.help),
              memory.document(planned).dump(2) + "\n");
  if (executable != nullptr) {
    stages.kernels(*executable);
  } else {
    stages.dump("cuda", "8-kernels.cu");
    stages.missing("ptx", std::string(dump_kind("ptx").help), "no NVRTC and no clang was found");
  }
  return stages.finish();
}

}  // namespace stitchwork
