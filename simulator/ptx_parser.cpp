// Recursive descent over PTX: directives, variables, kernels, statements.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
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
  /// A size, count or offset: none has more than 32 bits, signed or not (PTX ISA 5.3, 6.4.1).
  std::int64_t integer() {
    const bool negative = accept('-');
    Token t = lex_.next();
    if (t.kind != Token::Kind::kInteger) fail(t, fmt::format("expected an integer, found '{}'", t.text));
    if (t.bits > std::numeric_limits<std::uint32_t>::max())
      fail(t, fmt::format("{} does not fit 32 bits", t.text));
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

  /// .func (results) name (parameters) { body }, or a declaration, which only its calls need.
  void device_function() {
    external_ = false;
    Function f;
    enter_function();
    while (lex_.peek().is(".attribute")) {
      lex_.next();
      skip_parentheses();
    }
    if (accept('(')) formals(f, f.results);
    const Token name = word();
    f.info.name = std::string(name.text);
    f.info.line = name.line;
    if (accept('(')) formals(f, f.formals);
    while (!lex_.peek().is('{') && !lex_.peek().is(';')) {  // .noreturn and the like
      if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
      lex_.next();
    }
    if (accept(';')) return;
    expect('{');
    body(f);
    leave_function(f);
    for (Statement& s : f.body) s.in_function = true;
    out_.device_functions.push_back(std::move(f));
  }
  void formals(Function& f, std::vector<Formal>& list) {
    while (!accept(')')) {
      const Token at = lex_.peek();
      Formal formal;
      if (accept(".reg")) {
        const Token type = word();
        formal.name = std::string(lex_.peek().text);
        formal.type = std::string(type.text.substr(1));
        formal.reg = static_cast<int>(f.registers.size());
        declare_register(f, type, word());
      } else if (accept(".param")) {
        Variable v = variable_declaration(&formal.type);
        formal.name = v.name;
        declare_variable(f.params, std::move(v), at);
      } else {
        fail(at, fmt::format("expected .param or .reg, found '{}'", at.text));
      }
      list.push_back(std::move(formal));
      if (!lex_.peek().is(')')) expect(',');
    }
  }
  void skip_parentheses() {
    expect('(');
    while (!accept(')')) {
      if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
      lex_.next();
    }
  }

  Variable variable() {
    Variable v = variable_declaration(nullptr);
    v.external = std::exchange(external_, false);
    initial_value(v);
    expect(';');
    return v;
  }
  /// ".align 8 .b8 name[24]"; `type`, if asked for, is that of an element.
  Variable variable_declaration(std::string* type) {
    Variable v;
    int element = 0, vector = 1;
    Token t = word();
    for (; t.text[0] == '.'; t = word()) {
      if (t.is(".align")) {
        v.alignment = static_cast<int>(integer());
      } else if (t.is(".v2") || t.is(".v4")) {
        vector = t.text[2] - '0';
      } else if (const int bytes = type_bytes(t.text.substr(1))) {
        element = bytes * vector;
        v.element_bytes = bytes;
        if (type != nullptr) *type = std::string(t.text.substr(1));
      }
    }
    if (element == 0) fail(t, fmt::format("variable '{}' has no type", t.text));
    v.name = std::string(t.text);
    v.alignment = std::max(v.alignment, element);
    if (v.alignment <= 0 || (v.alignment & (v.alignment - 1)) != 0)
      fail(t, fmt::format("the alignment of '{}' is no power of two", t.text));
    std::int64_t count = 1;
    while (accept('[')) {
      const std::int64_t n = lex_.peek().is(']') ? 0 : integer();
      expect(']');
      if (n < 0 || (n > 0 && count > kMaxVariableBytes / n))
        fail(t, fmt::format("variable '{}' is too large", t.text));
      count *= n;
    }
    if (count > kMaxVariableBytes / element) fail(t, fmt::format("variable '{}' is too large", t.text));
    v.bytes = count * element;
    return v;
  }
  void initial_value(Variable& v) {
    if (!accept('=')) return;
    const bool open_ended = v.bytes == 0;
    std::int64_t offset = 0;  // what is not listed is zero
    initialiser(v, v.element_bytes, offset);
    if (open_ended) v.bytes = static_cast<std::int64_t>(v.initial.size());
  }
  void initialiser(Variable& v, int element, std::int64_t& offset) {
    if (v.bytes > 0 && offset >= v.bytes && !lex_.peek().is('{') && !lex_.peek().is('}'))
      fail(lex_.peek(), fmt::format("more initial values than '{}' has room for", v.name));
    if (accept('{')) {
      if (++operand_depth_ > kMaxNesting) fail(lex_.peek(), "values nest too deep");
      while (!accept('}')) {
        initialiser(v, element, offset);
        accept(',');
        if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
      }
      --operand_depth_;
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
        std::int64_t product = 1;
        int dimensions = 0;
        do {
          const std::int64_t extent = integer();
          if (++dimensions > 3 || extent < 0 || extent > kMaxBlockExtent)
            fail(t, fmt::format("{} takes up to three extents of a block", t.text));
          product *= extent;
        } while (accept(','));
        f.info.max_threads = static_cast<int>(std::min(product, kMaxBlockExtent));
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
    enter_function();
    expect('{');
    body(f);
    leave_function(f);
    out_.functions.push_back(std::move(f));
  }

  void enter_function() {
    registers_.clear();
    wide_registers_.clear();
    variables_.clear();
    declared_.clear();
    scopes_ = {0};
    next_scope_ = 1;
    branches_.clear();
    tables_.clear();
  }
  /// Labels are known now: resolves branches, innermost scope first, and turns indexed ones into plain ones.
  void leave_function(Function& f) {
    for (const Branch& b : branches_) {
      Statement& s = f.body[b.statement];
      std::string& name = s.operands[b.operand].name;
      auto scope = b.scopes.rbegin();
      while (scope != b.scopes.rend() && !f.labels.contains(scoped(name, *scope)) &&
             !tables_.contains(scoped(name, *scope)))
        ++scope;
      if (scope == b.scopes.rend())
        throw Error(out_.file, s.line, s.column, fmt::format("branch to an unknown label '{}'", name));
      name = scoped(name, *scope);
    }
    expand_indexed_branches(f);
  }
  static std::string scoped(std::string_view name, int scope) {
    return scope == 0 ? std::string(name) : fmt::format("{}@{}", name, scope);
  }

  /// brx.idx becomes one comparison and branch for each entry of its table.
  void expand_indexed_branches(Function& f) {
    std::vector<int> moved(f.body.size() + 1);
    std::vector<Statement> body;
    for (std::size_t k = 0; k < f.body.size(); ++k) {
      moved[k] = static_cast<int>(body.size());
      Statement& s = f.body[k];
      if (!s.opcode.starts_with("brx")) {
        body.push_back(std::move(s));
        continue;
      }
      const auto table = s.operands.size() == 2 ? tables_.find(s.operands[1].name) : tables_.end();
      if (table == tables_.end() || table->second.labels.empty())
        throw Error(out_.file, s.line, s.column, "brx.idx wants an index and a label of .branchtargets");
      const int taken = static_cast<int>(f.registers.size());
      f.registers.push_back({"%brx", RegisterClass::kPred});
      for (std::size_t t = 0; t < table->second.labels.size(); ++t) {
        Statement branch = s;
        const bool last = t + 1 == table->second.labels.size();
        branch.opcode = "bra";
        branch.operands = {Operand{}};
        branch.operands[0].kind = Operand::Kind::kName;
        branch.operands[0].name = table->second.labels[t];
        if (!last || s.guard >= 0) {
          Statement compare = s;
          compare.opcode = "setp.eq.u32";
          compare.operands = {Operand{}, s.operands[0], Operand{}};
          compare.operands[0].kind = Operand::Kind::kRegister;
          compare.operands[0].reg = taken;
          compare.operands[2].kind = Operand::Kind::kInteger;
          compare.operands[2].bits = t;
          compare.guard = -1;
          compare.weightless = true;
          if (!last) {
            if (s.guard >= 0) throw Error(out_.file, s.line, s.column, "a guarded brx.idx is not supported");
            body.push_back(std::move(compare));
            branch.guard = taken;
            branch.guard_negated = false;
          }
        }
        branch.weightless = t > 0;
        body.push_back(std::move(branch));
      }
    }
    moved[f.body.size()] = static_cast<int>(body.size());
    f.body = std::move(body);
    for (auto& [name, at] : f.labels) at = moved[static_cast<std::size_t>(at)];
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
        const std::int64_t count = integer();
        if (count < 0 || count > kMaxParameterBytes)
          fail(t, fmt::format("parameter '{}' is too large", t.text));
        p.bytes *= static_cast<std::uint32_t>(count);
        expect(']');
      }
      if (alignment > kMaxParameterBytes || offset > kMaxParameterBytes)
        fail(t, fmt::format("the parameters of '{}' are too large", f.info.name));
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
        if (scopes_.size() > kMaxNesting) fail(t, "scopes nest too deep");
        lex_.next();
        const auto outer = registers_;
        const auto outer_wide = wide_registers_;
        const auto outer_variables = variables_;
        scopes_.push_back(next_scope_++);
        body(f);
        scopes_.pop_back();
        registers_ = outer;
        wide_registers_ = outer_wide;
        variables_ = outer_variables;
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
      declare_variable(f.shared, variable(), t);
    } else if (t.is(".local")) {
      declare_variable(f.local, variable(), t);
    } else if (t.is(".param")) {
      declare_variable(f.params, variable(), t);
    } else if (t.is(".loc")) {
      Location l;
      l.file = static_cast<int>(integer());
      l.line = static_cast<int>(integer());
      skip_line(t.line);
      out_.locations.push_back(l);
    } else if (t.is(".file")) {
      file_directive(t);
    } else if (t.is(".pragma")) {
      skip_to_semicolon();
    } else if (t.is(".branchtargets") && table_label_) {
      BranchTable& table = tables_[*table_label_];
      do table.names.push_back(word());
      while (accept(','));
      expect(';');
      for (const Token& name : table.names) table.labels.push_back(scoped(name.text, scopes_.back()));
    } else if ((t.is(".callprototype") || t.is(".calltargets")) && table_label_) {
      skip_to_semicolon();
    } else {
      fail(t, fmt::format("unknown directive '{}'", t.text),
           "list what is supported with: stitchwork ptx isa");
    }
  }

  void declare_registers(Function& f, const Token& type) {
    do {
      const Token name = word();
      if (accept('<')) {
        const std::int64_t count = integer();
        expect('>');
        if (count < 0 || count > kMaxRegisters) fail(name, fmt::format("{} registers are too many", count));
        for (std::int64_t k = 0; k < count; ++k) {
          Token one = name;
          const std::string numbered = std::string(name.text) + std::to_string(k);
          one.text = numbered;
          declare_register(f, type, one);
        }
      } else {
        declare_register(f, type, name);
      }
    } while (accept(','));
    expect(';');
  }
  /// A 128-bit register is two of 64 bits, the lower first.
  void declare_register(Function& f, const Token& type, const Token& name) {
    RegisterClass cls = RegisterClass::kPred;
    int bytes = 0;
    if (!type.is(".pred")) {
      bytes = type_bytes(type.text.substr(1));
      if (bytes == 0) fail(type, fmt::format("registers of type '{}' are not supported", type.text));
      cls = bytes <= 2 ? RegisterClass::k16 : bytes == 4 ? RegisterClass::k32 : RegisterClass::k64;
    }
    if (f.registers.size() > kMaxRegisters) fail(name, "a function declares too many registers");
    std::string n(name.text);
    registers_[n] = static_cast<int>(f.registers.size());
    if (bytes == 16) {
      wide_registers_.insert(n);
      f.registers.push_back({n, cls});
    } else {
      wide_registers_.erase(n);
    }
    f.registers.push_back({std::move(n), cls});
  }
  /// Variables of inner scopes may have the names of outer ones: each gets one of its own.
  void declare_variable(std::vector<Variable>& list, Variable v, const Token& at) {
    const std::string name = scoped(v.name, scopes_.empty() ? 0 : scopes_.back());
    variables_[v.name] = name;
    v.name = name;
    if (!declared_.insert(name).second) fail(at, fmt::format("variable '{}' is declared twice", name));
    list.push_back(std::move(v));
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
      const std::string label = scoped(t.text, scopes_.back());
      if (const Token& next = lex_.peek();
          next.is(".branchtargets") || next.is(".callprototype") || next.is(".calltargets")) {
        table_label_ = label;
        directive(f);
        table_label_.reset();
        return;
      }
      if (!f.labels.emplace(label, static_cast<int>(f.body.size())).second)
        fail(t, fmt::format("label '{}' stands twice", t.text));
      return;
    }
    s.opcode = std::string(t.text);
    s.line = t.line;
    s.column = t.column;
    s.location = static_cast<int>(out_.locations.size()) - 1;
    if (s.opcode == "call" || s.opcode == "call.uni") {
      call(s);
      f.body.push_back(std::move(s));
      return;
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
    if (s.opcode.starts_with("bra") || s.opcode.starts_with("brx")) {
      const bool indexed = s.opcode.starts_with("brx");
      const std::size_t label = indexed ? 1 : 0;
      if (s.operands.size() != label + 1 || s.operands[label].kind != Operand::Kind::kName)
        fail(t, fmt::format("{} takes {}", s.opcode, indexed ? "an index and a table" : "one label"));
      branches_.push_back({f.body.size(), label, scopes_});
    }
    f.body.push_back(std::move(s));
  }

  /// call (results), function, (arguments), prototype; all but the function may be missing.
  void call(Statement& s) {
    auto list = [&] {
      Operand o;
      o.kind = Operand::Kind::kVector;
      expect('(');
      while (!accept(')')) {
        o.elements.push_back(operand());
        if (!lex_.peek().is(')')) expect(',');
      }
      return o;
    };
    Operand none;
    none.kind = Operand::Kind::kVector;
    s.opcode = "call";
    if (lex_.peek().is('(')) {
      s.operands.push_back(list());
      expect(',');
    } else {
      s.operands.push_back(none);
    }
    s.operands.push_back(operand());
    if (accept(',')) {
      s.operands.push_back(list());
      if (accept(',')) lex_.next();  // of an indirect call
    } else {
      s.operands.push_back(none);
    }
    expect(';');
  }

  int find_register(const Token& t) const {
    const auto it = registers_.find(t.text);
    if (it == registers_.end()) fail(t, fmt::format("register '{}' is not declared", t.text));
    return it->second;
  }

  std::string unique_name(std::string_view name) const {
    const auto it = variables_.find(name);
    return it == variables_.end() ? std::string(name) : it->second;
  }

  Operand operand() {
    Operand o;
    const Token t = lex_.next();
    using Kind = Operand::Kind;
    if (++operand_depth_ > kMaxNesting) fail(t, "operands nest too deep");
    const struct Leave {
      std::size_t& depth;
      ~Leave() { --depth; }
    } leave{operand_depth_};
    if (t.is('[')) {
      o.kind = Kind::kAddress;
      const Token base = lex_.next();
      if (base.kind == Token::Kind::kInteger) {
        if (base.bits >> 62 != 0) fail(base, fmt::format("no memory has address {}", base.text));
        o.offset = static_cast<std::int64_t>(base.bits);
      } else if (const auto it = registers_.find(base.text); it != registers_.end()) {
        o.reg = it->second;
      } else if (base.kind == Token::Kind::kWord) {
        o.name = unique_name(base.text);
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
        o.wide = wide_registers_.contains(t.text);
      } else {
        o.kind = Kind::kName;
        o.name = unique_name(t.text);
        if (accept('+')) o.offset = integer();
      }
    } else if (t.kind == Token::Kind::kEnd) {
      fail(t, "the file ends in the middle of an instruction");
    } else {
      fail(t, fmt::format("expected an operand, found '{}'", t.text));
    }
    return o;
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
  static constexpr std::int64_t kMaxParameterBytes = 1 << 20;
  static constexpr std::int64_t kMaxRegisters = 1 << 20, kMaxVariableBytes = std::int64_t{1} << 32,
                                kMaxBlockExtent = 1 << 20;

  Lexer lex_;
  File out_;
  bool external_ = false;
  std::map<std::string, int, std::less<>> registers_;
  std::set<std::string, std::less<>> wide_registers_;          ///< 128 bits
  std::map<std::string, std::string, std::less<>> variables_;  ///< as written -> unique in the function
  std::set<std::string, std::less<>> declared_;
  std::vector<int> scopes_;  ///< open ones, outermost first
  int next_scope_ = 1;
  std::size_t operand_depth_ = 0;
  std::vector<Branch> branches_;
  std::map<std::string, BranchTable, std::less<>> tables_;
  std::optional<std::string> table_label_;
};

}  // namespace

File parse_file(std::string_view text, std::string file) { return Parser(text, std::move(file)).run(); }

}  // namespace stitchwork::ptx
