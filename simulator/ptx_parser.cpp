// Recursive descent over PTX: directives, variables, kernels, statements.
#include <bit>
#include <cstring>
#include <set>

#include "core/error.h"
#include "simulator/ptx_lexer.h"
#include "simulator/ptx_syntax.h"

namespace stitchwork::ptx {

int type_bytes(std::string_view type) {
  static const std::map<std::string_view, int> kBytes = {
      {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},  {"s16", 2},   {"f16", 2},
      {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},  {"f16x2", 4}, {"bf16x2", 4},
      {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}, {"b128", 16}};
  const auto it = kBytes.find(type);
  return it == kBytes.end() ? 0 : it->second;
}

namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string file) : lex_(text, file) { out_.file = std::move(file); }

  File run() {
    while (lex_.peek().kind != Token::Kind::kEnd) top_level();
    if (out_.version.empty()) throw Error(out_.file, 1, 1, "not PTX: no .version directive");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const Token& t, std::string message, std::string hint = {}) const {
    throw Error(out_.file, t.line, t.column, std::move(message), std::move(hint));
  }
  Token expect(char c) {
    Token t = lex_.next();
    if (!t.is(c)) {
      if (t.kind == Token::Kind::kEnd)
        fail(t, "the file ends in the middle", fmt::format("expected '{}'", c));
      fail(t, fmt::format("expected '{}', found '{}'", c, t.text));
    }
    return t;
  }
  Token word() {
    Token t = lex_.next();
    if (t.kind == Token::Kind::kEnd) fail(t, "the file ends in the middle", "expected a name");
    if (t.kind != Token::Kind::kWord) fail(t, fmt::format("expected a name, found '{}'", t.text));
    return t;
  }
  std::int64_t integer() {
    const bool negative = accept('-');
    Token t = lex_.next();
    if (t.kind != Token::Kind::kInteger) fail(t, fmt::format("expected an integer, found '{}'", t.text));
    return negative ? -static_cast<std::int64_t>(t.bits) : static_cast<std::int64_t>(t.bits);
  }
  bool accept(char c) {
    if (!lex_.peek().is(c)) return false;
    lex_.next();
    return true;
  }
  bool accept(std::string_view w) {
    if (!lex_.peek().is(w)) return false;
    lex_.next();
    return true;
  }
  void skip_to_semicolon() {
    while (!lex_.peek().is(';')) {
      if (lex_.peek().kind == Token::Kind::kEnd)
        fail(lex_.peek(), "the file ends in the middle", "expected ';'");
      lex_.next();
    }
    lex_.next();
  }
  void skip_line(int line) {
    while (lex_.peek().kind != Token::Kind::kEnd && lex_.peek().line == line) lex_.next();
  }
  void skip_braces() {
    int depth = 0;
    do {
      const Token t = lex_.next();
      if (t.kind == Token::Kind::kEnd) fail(t, "the file ends in the middle", "expected '}'");
      depth += t.is('{') ? 1 : t.is('}') ? -1 : 0;
    } while (depth > 0);
  }

  void top_level() {
    const Token t = lex_.next();
    if (t.is(".version")) {
      out_.version = std::string(lex_.peek().text);
      skip_line(t.line);
    } else if (t.is(".target")) {
      out_.target = std::string(word().text);
      skip_line(t.line);
    } else if (t.is(".address_size")) {
      if (integer() != 64) fail(t, "only 64-bit PTX is executed", "compile for 64 bits");
    } else if (t.is(".file")) {
      file_directive(t);
    } else if (t.is(".visible") || t.is(".weak") || t.is(".common")) {
    } else if (t.is(".extern")) {
      external_ = true;
    } else if (t.is(".entry")) {
      kernel();
    } else if (t.is(".func")) {
      device_function();
    } else if (t.is(".global") || t.is(".const")) {
      out_.globals.push_back(variable());
    } else if (t.is(".shared")) {
      out_.shared.push_back(variable());
    } else if (t.is(".section")) {
      while (!lex_.peek().is('{')) {
        if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
        lex_.next();
      }
      skip_braces();
    } else if (t.is(".pragma") || t.is(".alias")) {
      skip_to_semicolon();
    } else if (t.kind != Token::Kind::kPunctuation || t.text != ";") {
      fail(t, fmt::format("unexpected '{}' outside a kernel", t.text),
           "expected .entry, .global, .const or .shared");
    }
  }

  void file_directive(const Token& at) {
    const int index = static_cast<int>(integer());
    out_.source_files[index] = std::string(lex_.next().text);
    skip_line(at.line);
  }

  /// A declaration whose body, if any, is skipped: calls of it are refused where they stand.
  void device_function() {
    external_ = false;
    while (!lex_.peek().is('{') && !lex_.peek().is(';')) {
      if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
      lex_.next();
    }
    if (lex_.peek().is('{'))
      skip_braces();
    else
      lex_.next();
  }

  Variable variable() {
    Variable v;
    v.external = std::exchange(external_, false);
    int element = 0, vector = 1;
    Token t = word();
    for (; t.text[0] == '.'; t = word()) {
      if (t.is(".align")) {
        v.alignment = static_cast<int>(integer());
      } else if (t.is(".v2") || t.is(".v4")) {
        vector = t.text[2] - '0';
      } else if (const int bytes = type_bytes(t.text.substr(1))) {
        element = bytes * vector;
      }
    }
    if (element == 0) fail(t, fmt::format("variable '{}' has no type", t.text));
    v.name = std::string(t.text);
    v.alignment = std::max(v.alignment, element);
    std::int64_t count = 1;
    while (accept('[')) {
      count *= lex_.peek().is(']') ? 0 : integer();
      expect(']');
    }
    v.bytes = count * element;
    if (accept('=')) {
      v.initial.resize(static_cast<std::size_t>(v.bytes));
      std::int64_t offset = 0;
      initialiser(v, element / vector, offset);
      if (count == 0) v.bytes = static_cast<std::int64_t>(v.initial.size());
    }
    expect(';');
    return v;
  }
  void initialiser(Variable& v, int element, std::int64_t& offset) {
    if (accept('{')) {
      while (!accept('}')) {
        initialiser(v, element, offset);
        accept(',');
        if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
      }
      return;
    }
    const bool negative = accept('-');
    const Token t = lex_.next();
    std::uint64_t bits = negative ? 0 - t.bits : t.bits;
    if (t.kind == Token::Kind::kFloat64 && element == 4) {
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(t.bits)));
    } else if (t.kind == Token::Kind::kWord) {
      std::string target(t.text);
      if (target == "generic") {
        expect('(');
        target = std::string(word().text);
        expect(')');
      }
      v.pointers.push_back({offset, target});
    }
    if (static_cast<std::int64_t>(v.initial.size()) < offset + element) {
      v.initial.resize(static_cast<std::size_t>(offset + element));
    }
    std::memcpy(v.initial.data() + offset, &bits, static_cast<std::size_t>(std::min(element, 8)));
    offset += element;
  }

  void kernel() {
    Function f;
    const Token name = word();
    external_ = false;
    f.info.name = std::string(name.text);
    f.info.line = name.line;
    if (accept('(')) parameters(f);
    while (lex_.peek().kind == Token::Kind::kWord) {
      const Token t = lex_.next();
      if (t.is(".maxntid") || t.is(".reqntid")) {
        std::int64_t product = integer();
        while (accept(',')) product *= integer();
        f.info.max_threads = static_cast<int>(product);
      } else if (t.is(".minnctapersm")) {
        f.info.min_blocks_per_sm = static_cast<int>(integer());
      } else if (t.is(".maxnreg") || t.is(".maxclusterrank")) {
        integer();
      } else if (t.is(".pragma")) {
        skip_to_semicolon();
      } else if (!t.is(".explicitcluster")) {
        fail(t, fmt::format("unknown kernel directive '{}'", t.text));
      }
    }
    if (accept(';')) return;  // a declaration
    registers_.clear();
    expect('{');
    body(f);
    for (const Statement& s : f.body) check_labels(f, s);
    out_.functions.push_back(std::move(f));
  }

  void parameters(Function& f) {
    std::uint32_t offset = 0;
    while (!accept(')')) {
      const Token at = lex_.peek();
      if (!accept(".param")) fail(at, fmt::format("expected .param, found '{}'", at.text));
      ParameterInfo p;
      int alignment = 0;
      Token t = word();
      for (; t.text[0] == '.'; t = word()) {
        if (t.is(".align")) {
          alignment = static_cast<int>(integer());
        } else if (t.is(".ptr") || t.is(".global") || t.is(".shared") || t.is(".const") || t.is(".local")) {
        } else if (const int bytes = type_bytes(t.text.substr(1))) {
          p.type = std::string(t.text.substr(1));
          p.bytes = static_cast<std::uint32_t>(bytes);
        }
      }
      if (p.bytes == 0) fail(t, fmt::format("parameter '{}' has no type", t.text));
      alignment = std::max<int>(alignment, static_cast<int>(p.bytes));
      p.name = std::string(t.text);
      if (accept('[')) {
        p.bytes *= static_cast<std::uint32_t>(integer());
        expect(']');
      }
      const auto a = static_cast<std::uint32_t>(alignment);
      offset = (offset + a - 1) / a * a;
      p.offset = offset;
      offset += p.bytes;
      f.info.parameters.push_back(std::move(p));
      accept(',');
    }
  }

  void body(Function& f) {
    for (;;) {
      const Token t = lex_.peek();
      if (t.kind == Token::Kind::kEnd) fail(t, "the file ends inside a kernel", "expected '}'");
      if (t.is('}')) {
        lex_.next();
        return;
      }
      if (t.is('{')) {  // a scope, as inline assembly opens: registers of it shadow outer ones
        lex_.next();
        const auto outer = registers_;
        body(f);
        registers_ = outer;
      } else if (t.kind == Token::Kind::kWord && t.text[0] == '.') {
        directive(f);
      } else {
        statement(f);
      }
    }
  }

  void directive(Function& f) {
    const Token t = lex_.next();
    if (t.is(".reg") || t.text.starts_with(".reg.")) {
      Token type = t;  // ".reg .b32" or, as some headers write it, ".reg.b32"
      if (t.is(".reg"))
        type = word();
      else
        type.text.remove_prefix(4);
      declare_registers(f, type);
    } else if (t.is(".shared")) {
      f.shared.push_back(variable());
    } else if (t.is(".local")) {
      f.local.push_back(variable());
    } else if (t.is(".loc")) {
      Location l;
      l.file = static_cast<int>(integer());
      l.line = static_cast<int>(integer());
      skip_line(t.line);
      out_.locations.push_back(l);
    } else if (t.is(".file")) {
      file_directive(t);
    } else if (t.is(".pragma") || t.is(".branchtargets") || t.is(".param")) {
      skip_to_semicolon();
    } else {
      fail(t, fmt::format("unknown directive '{}'", t.text),
           "list what is supported with: stitchwork ptx isa");
    }
  }

  void declare_registers(Function& f, const Token& type) {
    RegisterClass cls;
    if (type.is(".pred")) {
      cls = RegisterClass::kPred;
    } else {
      const int bytes = type_bytes(type.text.substr(1));
      if (bytes == 0 || bytes > 8)
        fail(type, fmt::format("registers of type '{}' are not supported", type.text));
      cls = bytes <= 2 ? RegisterClass::k16 : bytes == 4 ? RegisterClass::k32 : RegisterClass::k64;
    }
    do {
      const std::string name(word().text);
      auto add = [&](std::string n) {
        registers_[n] = static_cast<int>(f.registers.size());
        f.registers.push_back({std::move(n), cls});
      };
      if (accept('<')) {
        const std::int64_t count = integer();
        expect('>');
        for (std::int64_t k = 0; k < count; ++k) add(name + std::to_string(k));
      } else {
        add(name);
      }
    } while (accept(','));
    expect(';');
  }

  void statement(Function& f) {
    Statement s;
    if (lex_.peek().is('@')) {
      lex_.next();
      s.guard_negated = accept('!');
      const Token t = word();
      s.guard = find_register(t);
    }
    const Token t = word();
    if (s.guard < 0 && lex_.peek().is(':')) {
      lex_.next();
      f.labels[std::string(t.text)] = static_cast<int>(f.body.size());
      return;
    }
    s.opcode = std::string(t.text);
    s.line = t.line;
    s.column = t.column;
    s.location = static_cast<int>(out_.locations.size()) - 1;
    if (s.opcode == "call" || s.opcode.starts_with("call.")) {
      fail(t, "call is not supported: device functions must be inlined",
           "declare the function __forceinline__; supported forms: stitchwork ptx isa");
    }
    while (!accept(';')) {
      s.operands.push_back(operand());
      if (lex_.peek().is('|')) {
        lex_.next();
        Operand pair;
        pair.kind = Operand::Kind::kPair;
        pair.elements.push_back(std::move(s.operands.back()));
        pair.elements.push_back(operand());
        s.operands.back() = std::move(pair);
      }
      if (!lex_.peek().is(';')) expect(',');
    }
    f.body.push_back(std::move(s));
  }

  int find_register(const Token& t) const {
    const auto it = registers_.find(t.text);
    if (it == registers_.end()) fail(t, fmt::format("register '{}' is not declared", t.text));
    return it->second;
  }

  Operand operand() {
    Operand o;
    const Token t = lex_.next();
    using Kind = Operand::Kind;
    if (t.is('[')) {
      o.kind = Kind::kAddress;
      const Token base = lex_.next();
      if (base.kind == Token::Kind::kInteger) {
        o.offset = static_cast<std::int64_t>(base.bits);
      } else if (const auto it = registers_.find(base.text); it != registers_.end()) {
        o.reg = it->second;
      } else if (base.kind == Token::Kind::kWord) {
        o.name = std::string(base.text);
      } else {
        fail(base, fmt::format("expected an address, found '{}'", base.text));
      }
      if (accept('+'))
        o.offset += integer();
      else if (lex_.peek().is('-'))
        o.offset += integer();
      expect(']');
    } else if (t.is('{')) {
      o.kind = Kind::kVector;
      while (!accept('}')) {
        o.elements.push_back(operand());
        if (!lex_.peek().is('}')) expect(',');
      }
    } else if (t.is('!')) {
      o = operand();
      o.negated = !o.negated;
    } else if (t.is('-')) {
      o = operand();
      if (o.kind == Kind::kFloat64)
        o.bits ^= std::uint64_t{1} << 63;
      else if (o.kind == Kind::kFloat32)
        o.bits ^= std::uint64_t{1} << 31;
      else
        o.bits = 0 - o.bits;
    } else if (t.kind == Token::Kind::kInteger) {
      o.kind = Kind::kInteger;
      o.bits = t.bits;
    } else if (t.kind == Token::Kind::kFloat32 || t.kind == Token::Kind::kFloat64) {
      o.kind = t.kind == Token::Kind::kFloat32 ? Kind::kFloat32 : Kind::kFloat64;
      o.bits = t.bits;
    } else if (t.is("_")) {
      o.kind = Kind::kSink;
    } else if (t.kind == Token::Kind::kWord) {
      if (const auto it = registers_.find(t.text); it != registers_.end()) {
        o.kind = Kind::kRegister;
        o.reg = it->second;
      } else {
        o.kind = Kind::kName;
        o.name = std::string(t.text);
        if (accept('+')) o.offset = integer();
      }
    } else if (t.kind == Token::Kind::kEnd) {
      fail(t, "the file ends in the middle of an instruction");
    } else {
      fail(t, fmt::format("expected an operand, found '{}'", t.text));
    }
    return o;
  }

  void check_labels(const Function& f, const Statement& s) const {
    if (!s.opcode.starts_with("bra")) return;
    if (s.operands.size() != 1 || s.operands[0].kind != Operand::Kind::kName ||
        !f.labels.contains(s.operands[0].name)) {
      throw Error(out_.file, s.line, s.column, "branch to an unknown label");
    }
  }

  Lexer lex_;
  File out_;
  bool external_ = false;
  std::map<std::string, int, std::less<>> registers_;
};

}  // namespace

File parse_file(std::string_view text, std::string file) { return Parser(text, std::move(file)).run(); }

}  // namespace stitchwork::ptx
