// From the syntax tree to the intermediate form; lower.cpp drives it, lower_memory.cpp does loads, stores and
// atomics, lower_control.cpp barriers and warp-wide operations.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "simulator/lower/ir.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {

/// An opcode split at its dots: "ld.global.nc.f32" -> ld | global nc f32.
struct Opcode {
  explicit Opcode(std::string_view text);
  std::string_view base;
  std::vector<std::string_view> modifiers;
  bool has(std::string_view m) const;
  std::string_view last() const { return modifiers.empty() ? std::string_view{} : modifiers.back(); }
};

/// The registers that hold an operand of a signature letter.
RegisterClass class_of_letter(char letter);

/// Those of mma, mma.sp and wmma.mma, optional modifiers in braces.
std::vector<std::string> matrix_forms();
/// Of a fence or an access; the device where none is named.
sim::Scope scope_named(const Opcode& op);

/// Lowers one kernel. Throws Error with file, line and column for what is not supported.
Program lower(const File& file, const Function& function);

class Lowering {
 public:
  Lowering(const File& file, const Function& function);
  Program run();

 private:
  // Structure.
  void find_blocks();
  void lower_statement(int index);
  void finish(Program& p);
  [[noreturn]] void fail(std::string message, std::string hint = {}) const;
  [[noreturn]] void unknown() const;

  // Values.
  std::uint32_t value(Value v);
  std::uint32_t constant(RegisterClass cls, std::uint64_t bits);
  std::uint32_t temporary(RegisterClass cls);
  std::uint32_t special(std::string_view name, RegisterClass* cls);
  std::uint32_t address_of(std::string_view name, RegisterClass cls, std::int64_t addend);
  /// The value of a source operand for a signature letter. A register has that size, or `may_be_wider`; then
  /// its low bits are meant.
  std::uint32_t source(const Operand& o, char letter, bool may_be_wider = false);
  [[noreturn]] void wrong_size(std::uint32_t reg) const;
  std::uint32_t destination(const Operand& o, char letter);
  RegisterClass class_of(std::uint32_t v) const { return f_.values[v].cls; }
  /// The letter of an operand of so many bytes that is loaded, stored or passed, which a register may be
  /// wider than.
  char letter_of(const Operand& o, int bytes) const;

  // Instructions.
  IrInst& emit(std::string_view row, std::uint8_t defs = 0, std::uint8_t uses = 0);
  IrInst& emit_simple(int row, std::initializer_list<std::uint32_t> operands);
  /// An instruction of more operands than one takes: more follow in "@operands" (ops_tensor.h). Those before
  /// `first` are defined, or under `late_defs` used, the others the other way round.
  IrInst& emit_wide(std::string_view row, const std::vector<std::uint32_t>& operands, std::size_t first,
                    bool late_defs);
  void lower_row(int row);
  void extend(std::uint32_t to, std::uint32_t from, std::string_view type);
  void lower_move(const Opcode& op);
  void lower_setp(const Opcode& op);
  void lower_set(const Opcode& op);
  void lower_vector_move(int bytes, const Operand& to, const Operand& from);
  void lower_elementwise_move(const Opcode& op, const Operand& to, const Operand& from);
  void lower_wide_move(const Operand& to, const Operand& from);
  std::uint32_t compare(const std::string& opcode, const Operand& a, const Operand& b);
  std::uint32_t compare_half(const std::string& opcode, const Operand& a, const Operand& b, bool high);
  void lower_cvta(const Opcode& op);
  void lower_memory(const Opcode& op, bool is_store);
  void check_access_modifiers(const Opcode& op, bool is_store) const;
  void lower_wide_atomic(const Opcode& op, std::uint16_t order);
  bool lower_async_store(const Opcode& op);
  void lower_param_load(const Opcode& op, const Operand& address);
  struct AtomicModifiers {
    std::string_view operation, type, vector;
    bool hint = false;
  };
  AtomicModifiers atomic_modifiers(const Opcode& op, bool is_reduction) const;
  void lower_atomic(const Opcode& op, bool is_reduction);
  void find_call_parameters();
  void lower_call_parameter(const Opcode& op, bool is_store, const Operand& address, const Operand& data);
  void lower_call();
  bool lower_carry(const Opcode& op);
  bool lower_async(const Opcode& op);
  void lower_async_arrive(const Opcode& op);
  bool lower_mbarrier(const Opcode& op);
  bool lower_bulk(const Opcode& op);
  bool lower_bulk_exchange(const Opcode& op, bool reduce);
  void set_reduction(IrInst& i, const Opcode& op);
  bool lower_tensor_copy(const Opcode& op);
  void require_tensor_copies(const Opcode& op);
  bool lower_tensor_map(const Opcode& op);
  std::uint32_t tensor_map_address(const Operand& map);
  bool lower_wgmma(const Opcode& op);
  void lower_wgmma_product(const Opcode& op);
  void require_sm(int sm, std::string_view what);
  bool lower_matrix(const Opcode& op);
  void lower_mma(const Opcode& op);
  void lower_sparse_mma(const Opcode& op);
  std::vector<std::uint32_t> matrix_registers(std::size_t operand, int count, bool is_double, bool is_float,
                                              bool defines);
  void lower_wmma_access(const Opcode& op);
  bool lower_warp(const Opcode& op);
  std::string_view space_of(const Opcode& op, const Operand& address) const;
  std::uint32_t within_shared(const Operand& address);
  void set_address(IrInst& i, const Operand& address);
  std::uint32_t whole_address(const Operand& address);
  std::uint32_t clock_value(std::string_view name);
  std::uint32_t address_value(const Operand& address, std::int64_t* offset);
  bool lower_control(const Opcode& op);
  void check_operand_count(const Opcode& op) const;
  void lower_barrier(const Opcode& op);
  void lower_cluster_barrier(const Opcode& op);
  bool lower_cluster_address(const Opcode& op);
  void lower_shuffle(const Opcode& op);
  bool lower_three_way_extremum(const Opcode& op);
  bool lower_mixed_precision(const Opcode& op);
  std::uint32_t members_of(const Opcode& op, std::size_t operand);
  int target_sm() const;
  int ptx_version() const;  ///< 64 for 6.4
  void lower_redux(const Opcode& op);
  void lower_vote(const Opcode& op);
  void lower_branch();
  void count_statement(int index);
  void mark_polls();
  /// Plain loads whose value a compare-and-swap of the same address compares with: the first guess of a loop
  /// (CUDA C++ Programming Guide, Atomic Functions). A stale one is found out, so they make no race with
  /// atomics.
  void mark_guesses();
  void mark_memos();

  const File& file_;
  const Function& fn_;
  IrFunction f_;
  Program program_;
  std::map<Value, std::uint32_t> interned_;
  std::vector<int> block_of_statement_;  ///< basic block that begins at a statement, or -1
  int exit_block_ = -1;
  int block_ = 0;    ///< being filled
  int current_ = 0;  ///< statement being lowered
  bool block_ended_ = false;
  std::map<std::string, std::int64_t, std::less<>> shared_offset_, local_offset_;
  /// Parameters of calls that are kept in registers: values by (variable, offset), and their bytes.
  struct CallParameter {
    std::map<std::int64_t, std::pair<int, std::uint32_t>> parts;  ///< offset -> bytes, value
  };
  std::map<std::string, CallParameter, std::less<>> call_parameters_;
  std::uint32_t carry_ = kNone;  ///< the condition code's carry flag
};

}  // namespace stitchwork::ptx
