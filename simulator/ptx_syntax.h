// The syntax tree of a PTX file: what the parser hands to lowering (lower.h). Names are resolved to register
// numbers; instructions keep their spelling, which the instruction table matches.
#pragma once

#include <cstdint>
#include <map>
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
  std::vector<Operand> operands;
  int line = 0, column = 0;
  int location = -1;  ///< index into File::locations
};

struct Location {
  int file = 0, line = 0;
};

/// A .shared, .global, .const or .local variable.
struct Variable {
  std::string name;
  std::int64_t bytes = 0;
  int alignment = 1;
  bool external = false;
  std::vector<std::byte> initial;  ///< empty: zero
  struct Pointer {
    std::int64_t offset = 0;
    std::string target;
  };
  std::vector<Pointer> pointers;  ///< initialisers that are addresses of other variables
};

struct Function {
  KernelInfo info;
  struct Register {
    std::string name;
    RegisterClass cls;
  };
  std::vector<Register> registers;
  std::vector<Statement> body;
  std::map<std::string, int, std::less<>> labels;  ///< to index in `body`
  std::vector<Variable> shared, local;
};

struct File {
  std::string file, version, target;
  std::vector<Function> functions;  ///< .entry only
  std::vector<Variable> globals;    ///< .global and .const
  std::vector<Variable> shared;     ///< .shared at file scope
  std::map<int, std::string> source_files;
  std::vector<Location> locations;
};

/// Throws Error with line and column.
File parse_file(std::string_view text, std::string file);

/// Bytes of a fundamental type ("u32" -> 4), 0 if it is none.
int type_bytes(std::string_view type);

}  // namespace stitchwork::ptx
