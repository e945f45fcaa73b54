// Recursive descent over PTX. The grammar's parts, a file each: directives, kernels and functions
// (parser.cpp), variables, parameters and registers (parser_variables.cpp), statements and operands
// (parser_statements.cpp), what is left once labels are known (parser_branches.cpp).
#pragma once

#include <map>
#include <optional>
#include <set>

#include "simulator/ptx/syntax.h"
#include "simulator/ptx/token_reader.h"

namespace stitchwork::ptx {

class Parser : TokenReader {
 public:
  Parser(std::string_view text, std::string file) : TokenReader(text, file) { out_.file = std::move(file); }
  File run();

 private:
  void top_level();
  void file_directive(const Token& at);
  void kernel();
  /// .func (results) name (parameters) { body }, or a declaration, which only its calls need.
  void device_function();
  void enter_function();
  /// Of .reqnctapercluster: up to three extents.
  std::array<std::uint32_t, 3> cluster_extents(const Token& at);
  void body(Function& f);
  void directive(Function& f);

  Variable variable();
  /// ".align 8 .b8 name[24]"; `type`, if asked for, is that of an element.
  Variable variable_declaration(std::string* type);
  void initial_value(Variable& v);
  void initialiser(Variable& v, int element, std::int64_t& offset);
  void formals(Function& f, std::vector<Formal>& list);
  void parameters(Function& f);
  void declare_registers(Function& f);
  /// What stands before the name: ".v4 .u16".
  struct RegisterType {
    Token element;
    int count = 1;
  };
  RegisterType register_type();
  /// A 128-bit register is two of 64 bits, the lower first.
  void declare_register(Function& f, const Token& type, const Token& name);
  void declare_register(Function& f, const RegisterType& type, const Token& name);
  /// A .global or .const variable of a function lies with those of the file, under a name of its own.
  void declare_global(const Function& f);
  /// Variables of inner scopes may have the names of outer ones: each gets one of its own.
  void declare_variable(std::vector<Variable>& list, Variable v, const Token& at);

  void statement(Function& f);
  /// call (results), function, (arguments), prototype; all but the function may be missing.
  void call(Statement& s);
  int find_register(const Token& t) const;
  std::string unique_name(std::string_view name) const;
  Operand operand();
  Operand address();
  /// A register of type .v2 or .v4 as its elements.
  Operand elements_of(std::string_view name, int count) const;

  /// Labels are known now: resolves branches, innermost scope first, and turns indexed ones into plain ones.
  void leave_function(Function& f);
  /// brx.idx becomes one comparison and branch for each entry of its table.
  void expand_indexed_branches(Function& f);

  static std::string scoped(std::string_view name, int scope) {
    return scope == 0 ? std::string(name) : fmt::format("{}@{}", name, scope);
  }

  struct Branch {
    std::size_t statement, operand;
    std::vector<int> scopes;  ///< outermost first
  };
  struct BranchTable {
    std::vector<Token> names;
    std::vector<std::string> labels;
  };
  static constexpr std::size_t kMaxNesting = 200;
  static constexpr std::int64_t kMaxParameterBytes = 1 << 20, kMaxRegisters = 1 << 20;
  static constexpr std::int64_t kMaxVariableBytes = std::int64_t{1} << 32, kMaxBlockExtent = 1 << 20,
                                kMaxClusterExtent = 1 << 10;

  File out_;
  Linkage linkage_ = Linkage::kInternal;  ///< of what comes next
  std::map<std::string, int, std::less<>> registers_;
  std::set<std::string, std::less<>> wide_registers_;  ///< 128 bits
  /// Elements of those of type .v2 or .v4, each of them a register: "v.x" and so on.
  std::map<std::string, int, std::less<>> vector_registers_;
  std::map<std::string, std::string, std::less<>> variables_;  ///< as written -> unique in the function
  std::set<std::string, std::less<>> declared_;
  std::vector<int> scopes_;  ///< open ones, outermost first
  int next_scope_ = 1;
  std::size_t operand_depth_ = 0;
  std::vector<Branch> branches_;
  std::map<std::string, BranchTable, std::less<>> tables_;
  std::optional<std::string> table_label_;
};

}  // namespace stitchwork::ptx
