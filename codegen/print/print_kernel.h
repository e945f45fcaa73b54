// Prints a kernel as CUDA C++: its signature and places, its loops over tasks, bodies that loops share.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/print/print_step.h"
#include "codegen/table.h"

namespace stitchwork {

class KernelPrinter {
 public:
  /// `printed`: the identifiers of the canonical text, which the readable one uses for the same.
  KernelPrinter(const Graph& graph, const Schedule& kernel, bool canonical, bool dependent,
                const Identifiers* printed = nullptr)
      : graph_(graph),
        computation_(graph.entry_computation()),
        kernel_(kernel),
        canonical_(canonical),
        dependent_(dependent),
        names_(canonical, printed),
        index_(kernel.wide_indices ? "long long" : "int"),
        table_(kernel_table(kernel)) {}

  std::string print();

 private:
  void wait_for_earlier_kernels();
  void signature();
  void heading();
  /// "  // text"; nothing in canonical form.
  std::string remark(const std::string& text) const { return canonical_ ? "" : "  // " + text; }
  std::vector<std::string> phase_names(const Phase& phase) const;
  void places();
  const Buffer& buffer(int b) const { return kernel_.buffers[static_cast<std::size_t>(b)]; }
  std::string& place(int b) { return places_.buffers[static_cast<std::size_t>(b)]; }
  static std::string_view suffix(const Buffer& buffer);
  static std::string_view element_type(const Buffer& buffer);
  static std::string pointer_type(const Buffer& buffer);
  std::string parameter_text(int b);
  void take_pointers(const TaskLoop& loop);
  void barrier(bool of_warp = false);

  // ---- loops (print_loop.cpp)

  void print_loop(const TaskLoop& loop);
  void print_steps(const TaskLoop& loop, bool ends_apart);
  void print_step(const TaskLoop& loop, const Step& step, const Step*& before);
  void comment(const Step& step, const Step* before);
  void arrive_in_cluster(const TaskLoop& loop);
  static std::string block_text(const TaskLoop& loop);
  void open_range(const TaskLoop& loop);
  void open_tasks(const TaskLoop& loop);
  bool in_registers(const TaskLoop& loop) const;

  // ---- tiles that are filled ahead (print_ahead.cpp)

  void print_steps_of(const TaskLoop& loop, Filling filling);
  void ask_for(const TaskLoop& loop, const std::string& ahead, const std::string& stage, bool in_task);
  void declare_stage(const TaskLoop& loop, const std::string& stage, Filling filling);
  void ask_for_first(const TaskLoop& loop);
  void ask_in_task(const TaskLoop& loop);
  std::string mbarrier(const TaskLoop& loop, const std::string& stage) const;
  void for_mbarriers(const TaskLoop& loop, std::string_view call, const std::string& further);
  void begin_copies(const TaskLoop& loop);
  void end_copies(const TaskLoop& loop, bool behind_barrier);
  void wait_for_bulk(const TaskLoop& loop);
  static std::pair<std::int64_t, std::int64_t> bytes_of(const Buffer& tile);
  bool meets_copies(const TaskLoop& loop, const Buffer& stored) const;
  bool stores_over_copies(const TaskLoop& loop) const;
  static bool stores_in_bulk(const TaskLoop& loop);
  void end_task_of_bulk(const TaskLoop& loop);
  void wait_for_stores(const TaskLoop& loop);

  // ---- loops with entries (print_entries.cpp)

  std::string rows_name(const TaskLoop& loop, const Step& step) const;
  void print_shared_body(const TaskLoop& loop, bool several_tasks, bool shared);
  std::string field_name(const TaskLoop& loop, const EntryField& field);
  std::string field_type(const TaskLoop& loop, const EntryField& field) const;
  void print_entry_type(const TaskLoop& loop, const std::string& type);
  std::vector<std::string> common_places(const TaskLoop& loop, bool shared, bool declared);
  void open_body(const TaskLoop& loop, const std::string& type, const std::string& body, bool shared);
  void open_entry_tasks(const TaskLoop& loop);
  void call_body(const TaskLoop& loop, const std::string& type, const std::string& body, bool shared);

  const Graph& graph_;
  const Computation& computation_;
  const Schedule& kernel_;
  bool canonical_, dependent_;
  Namer names_;
  const char* index_;
  KernelTable table_;
  Writer out_, bodies_;
  PartFunctions parts_;
  PlaceNames places_;
  std::size_t next_table_ = 0;            ///< the next of table_.loops
  const LoopTable* layout_ = nullptr;     ///< of the loop being printed, if it has entries
  std::vector<std::string> field_names_;  ///< likewise
  SharedState shared_;
  std::vector<const TaskLoop*> touched_;  ///< loops whose shared memory some block may still read
  std::vector<const TaskLoop*> stored_;   ///< loops of the phase that have stored to shared memory
};

}  // namespace stitchwork
