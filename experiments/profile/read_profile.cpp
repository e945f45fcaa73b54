// Which tool a profile is of.
#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/profile/profile.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

constexpr const char* kProfileFiles = ".sqlite, .csv, .json or .json.gz";

/// Reports that only their own tools open, and what these make of them.
struct OwnFormat {
  std::string_view ending, what, hint;
};
constexpr auto kOwnFormats = std::to_array<OwnFormat>({
    {".nsys-rep", "is a report of Nsight Systems itself", "export it: nsys export --type sqlite FILE"},
    {".qdrep", "is a report of Nsight Systems itself", "export it: nsys export --type sqlite FILE"},
    {".ncu-rep", "is a report of Nsight Compute itself",
     "print it: ncu --import FILE --csv --page raw > profile.csv"},
    {".xplane.pb", "is a protocol buffer of JAX's profiler",
     "give the trace.json.gz beside it, or record with jax.profiler.trace(DIR, create_perfetto_trace=True)"},
});

}  // namespace

std::string_view name(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::kKernel:
      return "kernel";
    case ProfileKind::kCopy:
      return "copy";
    case ProfileKind::kMemset:
      return "memset";
    case ProfileKind::kTransfer:
      return "transfer";
  }
  return "";
}

std::string function_name(std::string_view kernel) {
  std::string text(kernel);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = text.find(kAnonymous)) != std::string::npos;) text.erase(at, kAnonymous.size());
  // Up to the parameters or template arguments, but for those of a namespace's own templates.
  int nesting = 0;
  std::string plain;
  for (const char c : text) {
    if (c == '(' && nesting == 0) break;
    if (c == '<') ++nesting;
    if (nesting == 0) plain += c;
    if (c == '>') nesting = std::max(0, nesting - 1);
  }
  while (!plain.empty() && plain.back() == ' ') plain.pop_back();
  const std::size_t from = plain.find_last_of(": ");
  return from == std::string::npos ? plain : plain.substr(from + 1);
}

int busiest_device(const Profile& profile) {
  std::map<int, std::size_t> devices;
  for (const ProfileEvent& e : profile.events) ++devices[e.device];
  return std::ranges::max_element(devices, {}, [](const auto& d) { return d.second; })->first;
}

Profile read_profile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    for (const OwnFormat& own : kOwnFormats)
      if (path.ends_with(own.ending)) throw Error(path, 0, 0, std::string(own.what), std::string(own.hint));
    if (sqlite_header(path)) return read_nsys_sqlite(path);
  }
  const std::string text = read_decompressed(path, kProfileFiles);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    throw Error(path, 0, 0, "is empty", "record the profile again: has the program ended as it should?");
  if (text[first] == '{' || text[first] == '[') return parse_chrome_trace(text, path);
  if (text.find("Kernel Name") != std::string::npos) return parse_ncu_csv(text, path);
  throw Error(path, 0, 0, "is no profile that can be read",
              "give nsys export --type sqlite, ncu --csv --page raw, or the trace of JAX or PyTorch "
              "(docs/profiles.md)");
}

}  // namespace stitchwork
