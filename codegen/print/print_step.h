// One step of a kernel: its loops over rows and elements, its reductions and stores.
#pragma once

#include "analysis/schedule/layout.h"
#include "codegen/print/print_values.h"

namespace stitchwork {

/// What a step leaves behind for the next.
struct SharedState {
  /// What of the reduction workspace some thread may still read; a row's reductions take its halves in turn.
  enum Workspace : std::uint8_t { kFree, kFirstBusy, kSecondBusy, kAllBusy } workspace = kFree;
  /// Of a cluster's loop: whether the blocks have yet to wait until all have left the task before, and the
  /// half of the workspace that the next reduction takes. A block barrier changes neither.
  bool cluster_arrived = false, cluster_second = false;
};

class StepPrinter {
 public:
  /// `rows`: what the domain's rows are called where they are known only when the kernel runs, else "".
  StepPrinter(const Graph& graph, const Schedule& kernel, const TaskLoop& loop, const Step& step,
              std::string rows, const PlaceNames& places, const Namer& names, bool canonical, Writer& out,
              PartFunctions& parts, SharedState& shared);

  void print();
  /// Of a step of bulk copies: behind their wait, the array's last elements where these fill no kBulkUnit
  /// bytes; every thread's, behind a block barrier.
  void print_rest();

 private:
  /// Loops of at most this many elements a thread are unrolled whether or not their values are kept.
  /// As many as the estimate counts in flight (kMaxLoadsInFlight), because more gain nothing by it.
  static constexpr std::int64_t kUnrolledElements = 8;

  void print_rows();         ///< each row once
  void print_rows_by_all();  ///< each row by all its threads
  void print_thread_rows();  ///< elementwise, row_serial: a thread a row
  void open_thread_rows(std::int64_t rows);
  void declare_row(const std::string& tile, std::int64_t rows);
  void print_shared_rows();  ///< row_pack, row_split, column: several threads a row
  /// row_split, column: the segment of the task, and where its cols begin and end.
  struct Segment {
    std::string tile = "task", first = "0", end;
  };
  Segment declare_segment();
  /// column, in vectors: neighbouring threads on neighbouring vectors of results.
  void print_column_vectors();
  void declare_column_lanes(const std::string& first);
  /// Declares the indices of the element `at` ("j", "0") of the vector at hand.
  void place_in_columns(const std::string& at);
  void finish_columns(const Root& root, std::size_t index);
  void print_col_loop(const std::string& first, const std::string& end, std::int64_t length,
                      std::int64_t threads, const std::string& lane, bool exact);

  /// Where the elements of a thread lie that move several at a time (Layout::runs).
  struct Batches {
    std::string index;  ///< the dimension along which they lie: "col" or "local_row"
    std::string start;  ///< the thread's first element
    std::string guard;  ///< that element `index` exists
  };
  bool in_batches() const { return layout_.width > 1 || layout_.unroll > 1; }
  void print_batches(const Batches& batches, const Layout& layout);
  void print_batch(const Batches& batches, const Layout& layout, const Run& run);
  void open_batch_loop(std::int64_t vectors);
  /// " + (n + u) * 128": from the thread's first vector to the one at hand, `stride` apart; "" at the first.
  std::string to_vector(std::int64_t stride) const;
  void place(const Batches& batches, const Layout& layout, const std::string& at);
  void place_inside(const Batches& batches, const Layout& layout);
  /// A tile's elements, its cols or, where the step is turned, its rows by consecutive threads.
  void print_tile();
  void print_row_batches();
  /// Asynchronous copies from memory to a tile (print_async.cpp).
  void print_copies();
  void print_copies_at(const std::string& further, const std::string& inside);
  /// The same in bulk, by one thread (print_bulk.cpp).
  void print_bulk_copies();
  void print_bulk_stores();
  std::string copied_elements(int size) const;
  void print_rest(const Root& root, int to, int from, bool stores);
  /// Staged, and of a cluster: the block's cols are [first_col, end_col).
  bool has_part_of_row() const { return layout_.by_parts && !step_.rows; }
  std::string elements_of_task() const;  ///< of a range, of this block
  std::string elements_inside() const;   ///< "first, end" of a vector's elements that are the task's
  bool empties_tiles() const;            ///< from tiles to memory

  bool in_column_vectors() const { return layout_.columns != ColumnVectors::kNone; }
  /// That the element at hand of the vector is the row's, or the task's; "" if all are.
  std::string element_guard(const Batches& batches, bool guarded) const;
  void element_body();
  void store_vectors(bool in_part);
  /// Between memory and a tile, vectors that nothing is made of element by element.
  bool moves_as_it_is() const;
  /// Elements from one of row `row`, at `col`, to the end of the domain; "" if vectors end with it.
  std::string elements_left() const;
  void declare_accumulators();
  void finish_reduction(const Root& root, std::size_t index, const std::string& writer);
  /// Over all threads of the cluster's blocks (print_cluster.cpp).
  void reduce_in_cluster(const Root& root, const std::string& accumulator);
  /// The thread of a cluster's block among those that share the row, declared as `lane`.
  void declare_cluster_lane();
  /// Before a store of a value of the row to global memory: one block of a cluster does it.
  std::string by_one_block(const Root& root, const Buffer& buffer) const;
  /// Folds the initial value into a reduction's result where that is done here.
  void fold_initial(const Root& root, const std::string& value);
  /// Folds and stores.
  void store(const Root& root, const std::string& value);
  void store_only(const Root& root, const std::string& value);
  void
  declare_shared_row();  ///< row_pack: the thread's row of the task and its place among the row's threads
  void open_turns();     ///< the loop over rows of a task that a block's threads take in turn
  std::string active_rows() const;  ///< the condition that the thread has a row
  std::string offset_text(const Root& root, const Target& target) const;
  bool reduces(const Root& root) const {
    return root.store != StoreKind::kElement && root.store != StoreKind::kAcross &&
           root.store != StoreKind::kGather;
  }
  /// Whether it asks for a pass over the elements: not a reduction that was gathered in another's.
  bool passes(const Root& root) const { return root.store == StoreKind::kGather || root.gathered < 0; }
  bool needs_index() const;  ///< of the elements of a thread: something of each is kept
  /// Arrays in registers need constant indices; places in shared memory do not.
  bool needs_constant_index() const;
  std::string number(std::int64_t n) const;
  /// "row < 1000", "" where every task is whole.
  std::string row_guard() const;

  const Computation& computation_;
  const Schedule& kernel_;
  const Step& step_;
  std::int64_t tasks_;  ///< of the loop
  std::string rows_;
  std::string tile_ = "task";  ///< what rows_per_task rows each are counted in
  bool in_bulk_;               ///< asynchronous copies are bulk copies
  bool partial_;               ///< a task may lack rows
  const PlaceNames& places_;
  int block_;
  Layout layout_;
  ValuePrinter values_;
  Writer& out_;
  SharedState& shared_;
  const char* index_;
  std::string vector_number_;  ///< of the thread's vectors the one at hand: "n", "(n + u)"
  int alignment_ = 1;  ///< of the tiles (Buffer): beyond 1 their elements lie `lead` behind their beginning
  std::vector<std::string> accumulators_;         ///< by root
  std::vector<std::string> copied_to_;            ///< by root, of copies: where its tile begins
  std::map<const Target*, std::string> vectors_;  ///< being gathered for the targets stored by vectors
};

}  // namespace stitchwork
