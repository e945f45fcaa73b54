// Nsight Systems' SQLite exports. Which tables and columns there are differs by version and by what was
// traced ("SQLite Schema Reference" in its documentation), so that each is asked for.
#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "experiments/profile/profile.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

constexpr double kNsPerUs = 1e3;

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};

/// What ranges around a launch on its thread say.
struct LaunchRange {
  std::string module, instruction, op;
};

class NsysReader {
 public:
  explicit NsysReader(const std::string& path) {
    profile_.tool = "Nsight Systems";
    profile_.file = path;
    sqlite3* db = nullptr;
    const int status = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr);
    db_.reset(db);
    if (status != SQLITE_OK) throw_sqlite(db, "cannot be opened");
  }

  Profile run() {
    check();
    read_strings();
    const bool ranges = read_ranges();
    read_kernels(ranges);
    read_copies();
    read_memsets();
    if (columns("TARGET_INFO_GPU").contains("name")) {
      Statement gpu(db_.get(), "SELECT name FROM TARGET_INFO_GPU ORDER BY id LIMIT 1");
      if (gpu.step()) profile_.device = gpu.text(0);
    }
    if (profile_.events.empty())
      throw Error(profile_.file, 0, 0, "holds no kernels", "record with nsys profile --trace=cuda,nvtx");
    std::ranges::stable_sort(profile_.events, {}, [](const ProfileEvent& e) { return e.start_us; });
    return std::move(profile_);
  }

 private:
  std::set<std::string> columns(const std::string& table) const {
    std::set<std::string> names;
    Statement info(db_.get(), "SELECT name FROM pragma_table_info(?)");
    info.bind(table);
    while (info.step()) names.insert(info.text(0));
    return names;
  }

  void check() {
    const std::set<std::string> kernel = columns("CUPTI_ACTIVITY_KIND_KERNEL");
    if (columns("StringIds").empty())
      throw Error(profile_.file, 0, 0, "is a SQLite file, but no export of Nsight Systems",
                  "give what nsys export --type sqlite wrote");
    if (kernel.empty())
      throw Error(profile_.file, 0, 0, "is an export of Nsight Systems without kernels",
                  "record with nsys profile --trace=cuda,nvtx");
    for (const char* needed : {"start", "end"})
      if (!kernel.contains(needed))
        throw Error(profile_.file, 0, 0,
                    fmt::format("its table CUPTI_ACTIVITY_KIND_KERNEL has no column '{}'", needed),
                    "export it with a version of Nsight Systems from 2019 on");
  }

  void read_strings() {
    Statement rows(db_.get(), "SELECT id, value FROM StringIds");
    while (rows.step()) strings_.emplace(rows.integer(0), rows.text(1));
  }

  const std::string& string(std::int64_t id) const {
    static const std::string none;
    const auto found = strings_.find(id);
    return found == strings_.end() ? none : found->second;
  }

  /// "SELECT ..., NULL AS ...": columns that the table has not are NULL.
  std::string select(const std::string& table, const std::vector<std::string>& wanted) const {
    const std::set<std::string> known = columns(table);
    std::string list;
    for (const std::string& column : wanted)
      list += (list.empty() ? "" : ", ") +
              (known.contains(column) ? fmt::format("\"{}\"", column) : std::string("NULL"));
    return fmt::format("SELECT {} FROM {}", list, table);
  }

  /// Ranges around launches, by process and correlation: which HLO instruction XLA says it launches
  /// ("Thunk:#hlo_op=fusion.1,hlo_module=jit_f#"), and the innermost range of anybody else. Whether there are
  /// any.
  bool read_ranges() {
    const std::set<std::string> nvtx = columns("NVTX_EVENTS"), api = columns("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!nvtx.contains("globalTid") || !api.contains("globalTid") || !api.contains("correlationId"))
      return false;
    struct Range {
      std::int64_t start, end;
      std::string text;
    };
    std::unordered_map<std::int64_t, std::vector<Range>> ranges;  // by thread
    Statement rows(db_.get(),
                   select("NVTX_EVENTS", {"start", "end", "globalTid", "text", "textId", "eventType"}));
    constexpr std::int64_t kPushPop = 59;  // NvtxPushPopRange of its schema; others need not nest
    while (rows.step()) {
      if (rows.is_null(1) || (!rows.is_null(5) && rows.integer(5) != kPushPop)) continue;
      ranges[rows.integer(2)].push_back(
          {rows.integer(0), rows.integer(1), rows.is_null(3) ? string(rows.integer(4)) : rows.text(3)});
    }
    if (ranges.empty()) return false;
    std::unordered_map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> calls;
    Statement launches(db_.get(), "SELECT start, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    while (launches.step())
      if (ranges.contains(launches.integer(1)))
        calls[launches.integer(1)].emplace_back(launches.integer(0), launches.integer(2));
    for (auto& [thread, its] : calls) {
      std::vector<Range>& around = ranges[thread];
      std::ranges::sort(around, {}, [](const Range& r) { return std::pair(r.start, -r.end); });
      std::ranges::sort(its);
      std::vector<const Range*> open;
      std::size_t next = 0;
      for (const auto& [start, correlation] : its) {
        while (next < around.size() && around[next].start <= start) {
          while (!open.empty() && open.back()->end < around[next].start) open.pop_back();
          open.push_back(&around[next++]);
        }
        while (!open.empty() && open.back()->end < start) open.pop_back();
        LaunchRange found;
        for (auto range = open.rbegin(); range != open.rend(); ++range) add_range((*range)->text, found);
        launched_in_[{process_of(thread), correlation}] = std::move(found);
      }
    }
    return true;
  }

  /// The process of a thread: its number without the lowest 24 bits (documentation, "Serialized process and
  /// thread identifiers").
  static std::int64_t process_of(std::int64_t thread) { return thread & ~std::int64_t{0xFFFFFF}; }

  static void add_range(const std::string& text, LaunchRange& to) {
    const auto field = [&](std::string_view key) {
      const std::size_t at = text.find(key);
      if (at == std::string::npos) return std::string();
      const std::size_t from = at + key.size();
      return text.substr(from, text.find_first_of(",#", from) - from);
    };
    const std::string instruction = field("hlo_op="), module = field("hlo_module=");
    if (to.instruction.empty()) to.instruction = instruction;
    if (to.module.empty()) to.module = module.substr(0, module.find('('));
    // PyTorch's emit_nvtx: "aten::mm, seq = 12, op_id = 3".
    if (to.op.empty() && instruction.empty() && module.empty()) to.op = text.substr(0, text.find(", "));
  }

  void put_range(const Statement& row, int process, int correlation, ProfileEvent& event) const {
    auto found = launched_in_.end();
    if (!row.is_null(process)) found = launched_in_.find({row.integer(process), row.integer(correlation)});
    if (found == launched_in_.end()) {  // older versions do not say the process: the only one
      found = launched_in_.lower_bound({std::numeric_limits<std::int64_t>::min(), 0});
      const std::int64_t only = found == launched_in_.end() ? 0 : found->first.first;
      if (launched_in_.empty() || launched_in_.rbegin()->first.first != only) return;
      found = launched_in_.find({only, row.integer(correlation)});
      if (found == launched_in_.end()) return;
    }
    event.module = found->second.module;
    event.instruction = found->second.instruction;
    event.op = found->second.op;
  }

  ProfileEvent event(const Statement& row, ProfileKind kind) const {
    ProfileEvent event;
    event.kind = kind;
    event.start_us = static_cast<double>(row.integer(0)) / kNsPerUs;
    event.us = static_cast<double>(row.integer(1) - row.integer(0)) / kNsPerUs;
    event.device = static_cast<int>(row.integer(2));
    event.stream = row.integer(3);
    return event;
  }

  void read_kernels(bool ranges) {
    Statement rows(db_.get(), select("CUPTI_ACTIVITY_KIND_KERNEL",
                                     {"start", "end", "deviceId", "streamId", "globalPid", "correlationId",
                                      "demangledName", "shortName", "mangledName", "registersPerThread",
                                      "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"}));
    while (rows.step()) {
      ProfileEvent kernel = event(rows, ProfileKind::kKernel);
      for (int column = 6; column <= 8 && kernel.kernel.empty(); ++column)
        if (!rows.is_null(column)) kernel.kernel = string(rows.integer(column));
      if (!rows.is_null(9)) kernel.counters["registers"] = static_cast<double>(rows.integer(9));
      if (!rows.is_null(10))
        kernel.grid = fmt::format("[{},{},{}]", rows.integer(10), rows.integer(11), rows.integer(12));
      if (!rows.is_null(13))
        kernel.block = fmt::format("[{},{},{}]", rows.integer(13), rows.integer(14), rows.integer(15));
      if (ranges) put_range(rows, 4, 5, kernel);
      profile_.events.push_back(std::move(kernel));
    }
  }

  void read_copies() {
    if (!columns("CUPTI_ACTIVITY_KIND_MEMCPY").contains("copyKind")) return;
    Statement rows(db_.get(),
                   select("CUPTI_ACTIVITY_KIND_MEMCPY", {"start", "end", "deviceId", "streamId", "globalPid",
                                                         "correlationId", "copyKind"}));
    constexpr std::int64_t kDeviceToDevice = 8;  // CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
    while (rows.step()) {
      const bool inside = rows.integer(6) == kDeviceToDevice;
      ProfileEvent copy = event(rows, inside ? ProfileKind::kCopy : ProfileKind::kTransfer);
      copy.kernel = inside ? "memcpy device to device" : "memcpy";
      put_range(rows, 4, 5, copy);
      profile_.events.push_back(std::move(copy));
    }
  }

  void read_memsets() {
    if (!columns("CUPTI_ACTIVITY_KIND_MEMSET").contains("start")) return;
    Statement rows(db_.get(), select("CUPTI_ACTIVITY_KIND_MEMSET",
                                     {"start", "end", "deviceId", "streamId", "globalPid", "correlationId"}));
    while (rows.step()) {
      ProfileEvent memset = event(rows, ProfileKind::kMemset);
      memset.kernel = "memset";
      put_range(rows, 4, 5, memset);
      profile_.events.push_back(std::move(memset));
    }
  }

  std::unique_ptr<sqlite3, CloseDatabase> db_;
  Profile profile_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::map<std::pair<std::int64_t, std::int64_t>, LaunchRange> launched_in_;  ///< by process, correlation
};

}  // namespace

Profile read_nsys_sqlite(const std::string& path) { return NsysReader(path).run(); }

}  // namespace stitchwork
