// The syntax tree of a PTX file: what the parser hands to lowering (lower.h). Names are resolved to register
// numbers; instructions keep their spelling, which the instruction table matches.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/ptx.h"

namespace stitchwork::ptx {

enum class RegisterClass : std::uint8_t { kPred, k16, k32, k64 };

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,
    kInteger,  ///< bits
    kFloat32,  ///< bits of 0f...
    kFloat64,  ///< bits of 0d... or of a decimal literal
    kName,     ///< variable, parameter, label or special register: `name`
    kAddress,  ///< [reg or name + offset]
    kVector,   ///< {a, b, ...}
    kPair,     ///< d|p
    kSink,     ///< _
  };
  Kind kind = Kind::kSink;
  bool negated = false;  ///< !%p
  bool wide = false;     ///< a 128-bit register: `reg` is its lower half, the next register the upper
  int reg = -1;          ///< kRegister, or base of kAddress (-1: `name` or absolute)
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::string name;
  std::vector<Operand> elements;
};

struct Statement {
  std::string opcode;
  int guard = -1;  ///< predicate register
  bool guard_negated = false;
  std::vector<Operand> operands;  ///< of call: results as a vector, the function, arguments as a vector
  int line = 0, column = 0;
  int file = 0;              ///< index into File::files
  int location = -1;         ///< index into File::locations
  bool weightless = false;   ///< added by the reader: counts as no instruction of the original PTX
  bool in_function = false;  ///< of a device function: its parameters lie in the thread's local memory
};

struct Location {
  int file = 0, line = 0;
};

/// Who may name a variable or function: its module alone, or others too.
enum class Linkage : std::uint8_t {
  kInternal,
  kVisible,
  kWeak,      ///< .weak, .common: others may define it as well
  kExternal,  ///< another module defines it; of .shared: dynamic shared memory
};

/// A .shared, .global, .const or .local variable.
struct Variable {
  std::string name;
  std::int64_t bytes = 0;
  int alignment = 1;
  int element_bytes = 1;
  Linkage linkage = Linkage::kInternal;
  bool constant = false;  ///< .const
  int line = 0;
  std::vector<std::byte> initial;  ///< empty: zero
  struct Pointer {
    std::int64_t offset = 0;
    std::string target;
  };
  std::vector<Pointer> pointers;  ///< initialisers that are addresses of other variables
};

/// What a device function takes or gives back: a .param variable, or a register.
struct Formal {
  std::string name, type;
  int reg = -1;
};

/// A kernel or a device function. Names of variables and labels are unique within it.
struct Function {
  KernelInfo info;
  Linkage linkage = Linkage::kInternal;
  struct Register {
    std::string name;
    RegisterClass cls;
  };
  std::vector<Register> registers;
  std::vector<Statement> body;
  std::map<std::string, int, std::less<>> labels;  ///< to index in `body`
  std::vector<Variable> shared, local;
  std::vector<Variable> params;          ///< .param variables of calls, and the formals of a device function
  std::vector<Formal> formals, results;  ///< of a device function
};

struct File {
  std::string file, version, target;
  std::vector<std::string> files;   ///< whose statements it has: its own name, or all that are linked with it
  std::vector<Function> functions;  ///< .entry
  std::vector<Function> device_functions;    ///< .func with a body
  std::vector<Variable> globals;             ///< .global and .const
  std::set<std::string> taken_functions;     ///< whose addresses initial values are
  std::set<std::string> external_functions;  ///< declared, and another module's
  std::vector<Variable> shared;              ///< .shared at file scope
  std::map<int, std::string> source_files;
  std::vector<Location> locations;
};

/// What a pointer to a device function holds: nothing can be read there.
std::uint64_t function_address(std::size_t device_function);
/// Files that are modules of one program get what they declare .extern from those that define it: linked ones
/// have the same variables and device functions, in the same order. By file, the first one it is linked with.
/// Throws Error where two define one name.
std::vector<int> link(std::vector<File>& files);
/// Initial values that are addresses of device functions become numbers.
void resolve_function_pointers(File& file);
/// Replaces calls by the bodies of the functions called. Throws Error where one is unknown or calls itself.
void inline_calls(const File& file, Function& kernel);
/// Functions the simulator provides itself (vprintf, __assertfail).
bool is_system_call(std::string_view function);

/// Throws Error with line and column.
File parse_file(std::string_view text, std::string file);

/// Bytes of a fundamental type ("u32" -> 4), 0 if it is none.
int type_bytes(std::string_view type);

}  // namespace stitchwork::ptx
