// The performance library of FusionStitching 2018, section 4.4, "permanent storage": a SQLite file of its
// own, one table performance(key, device, compiler, us, method, tool_version). Never opened unless a command
// names it: plans do not depend on what lies in somebody's home.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/planners/fusionstitching/library.h"

struct sqlite3;

namespace stitchwork {

/// The time of one op's kernel.
struct LibraryRow {
  std::string key;           ///< fusionstitching::to_text(LibraryKey)
  std::string device;        ///< id; of all rows of a file the same
  std::string compiler;      ///< "NVRTC 13.0"
  double us = 0;             ///< of one launch, caches cold
  std::string method;        ///< "measured", "simulated", "sampled"
  std::string tool_version;  ///< results_version() of the program that timed it
  bool operator==(const LibraryRow&) const = default;
};

/// What a file holds.
struct LibraryContents {
  std::vector<LibraryRow> rows;      ///< ascending by key and method
  std::string sha256;                ///< of the file
  std::string device() const;        ///< of the rows; "" of none
  std::vector<std::string> methods;  ///< that occur, ascending
};

/// Reads a whole library, of which a transaction that was killed is undone. Throws Error naming the file if
/// it is missing, cut off, damaged, of another program or newer than this one, or if its rows are no
/// library's (several devices, times that are none).
LibraryContents read_library(const std::string& path);

/// As planners take it. Throws Error naming the file where there are no times, or those of several methods,
/// unless `mixed`: then of the times of one key the measured one counts, before the simulated one.
fusionstitching::PerformanceLibrary performance_library(const LibraryContents& contents,
                                                        const std::string& path, bool mixed);

struct CloseLibrary {
  void operator()(sqlite3*) const;
};

/// Adds rows to a library.
class LibraryWriter {
 public:
  /// Opens or creates `path` (its folder is there). Throws Error naming the file if it cannot be written or
  /// is something else. Another process may be writing: it is waited for.
  static LibraryWriter open(const std::string& path);

  /// In one transaction. Those whose key and method are there are left out; returns how many were added.
  /// Throws Error, and adds nothing, where a row is of another device than those that are there.
  std::size_t insert(const std::vector<LibraryRow>& rows);

 private:
  std::string path_;
  std::unique_ptr<sqlite3, CloseLibrary> db_;
};

struct LibraryMerged {
  std::size_t added = 0;  ///< rows
  std::size_t known = 0;  ///< rows whose key and method were there
};

/// Adds what `others` hold to `into`, which is made where it is missing: all or nothing; others are not
/// changed. Throws Error naming the file that is none, is of another device, or, unless `mixed`, has times of
/// another method.
LibraryMerged merge_libraries(const std::string& into, const std::vector<std::string>& others, bool mixed);

}  // namespace stitchwork
