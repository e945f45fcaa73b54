// One step of a kernel: its loops over rows and elements, its reductions and stores.
#pragma once

#include "codegen/print_values.h"

namespace stitchwork {

/// What a step leaves behind for the next.
struct SharedState {
  bool workspace_busy = false;  ///< read since the last block barrier
};

class StepPrinter {
 public:
  StepPrinter(const Graph& graph, const Kernel& kernel, const Step& step, const PlaceNames& places,
              const Namer& names, bool canonical, Writer& out, SharedState& shared);

  void print();

 private:
  void print_rows();         ///< each row once
  void print_thread_rows();  ///< elementwise, row_serial: a thread a row
  void open_thread_rows(std::int64_t rows);
  void declare_row(const std::string& tile, std::int64_t rows);
  void print_shared_rows();  ///< row_pack, row_split, column: several threads a row
  void print_col_loop(const std::string& first, const std::string& end, std::int64_t length,
                      std::int64_t threads, const std::string& lane, bool exact);
  void element_body();
  void declare_accumulators();
  void finish_reduction(const Root& root, std::size_t index, const std::string& writer);
  void store(const Root& root, const std::string& value);
  bool reduces(const Root& root) const { return root.store != StoreKind::kElement; }
  bool has_kept() const;
  std::string number(std::int64_t n) const;

  const Computation& computation_;
  const Kernel& kernel_;
  const Step& step_;
  const ThreadMapping& mapping_;
  const PlaceNames& places_;
  ValuePrinter values_;
  Writer& out_;
  SharedState& shared_;
  const char* index_;
  int block_;
  std::vector<std::string> accumulators_;  ///< by root
};

}  // namespace stitchwork
