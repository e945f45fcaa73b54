#include <bit>
#include <cstring>
#include <utility>

#include "simulator/ptx/parser.h"

namespace stitchwork::ptx {

int type_bytes(std::string_view type) {
  static const std::map<std::string_view, int> kBytes = {
      {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},  {"s16", 2},   {"f16", 2},
      {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},  {"f16x2", 4}, {"bf16x2", 4},
      {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}, {"b128", 16}};
  const auto it = kBytes.find(type);
  return it == kBytes.end() ? 0 : it->second;
}

Variable Parser::variable() {
  const int line = lex_.peek().line;
  Variable v = variable_declaration(nullptr);
  v.linkage = std::exchange(linkage_, Linkage::kInternal);
  v.line = line;
  initial_value(v);
  expect(';');
  return v;
}

Variable Parser::variable_declaration(std::string* type) {
  Variable v;
  int element = 0, vector = 1;
  Token t = word();
  for (; t.text[0] == '.'; t = word()) {
    if (t.is(".align")) {
      v.alignment = static_cast<int>(integer());
    } else if (t.is(".attribute")) {  // .managed, .unified: there is one memory
      skip_parentheses();
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

void Parser::initial_value(Variable& v) {
  if (!accept('=')) return;
  const bool open_ended = v.bytes == 0;
  std::int64_t offset = 0;  // what is not listed is zero
  initialiser(v, v.element_bytes, offset);
  if (open_ended) v.bytes = static_cast<std::int64_t>(v.initial.size());
}

void Parser::initialiser(Variable& v, int element, std::int64_t& offset) {
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

void Parser::formals(Function& f, std::vector<Formal>& list) {
  while (!accept(')')) {
    const Token at = lex_.peek();
    Formal formal;
    if (accept(".reg")) {
      const RegisterType type = register_type();
      const Token name = word();
      const auto first = static_cast<int>(f.registers.size());
      declare_register(f, type, name);
      for (int k = 0; k < type.count; ++k)  // a vector is passed as its elements
        list.push_back({std::string(name.text), std::string(type.element.text.substr(1)), first + k});
      if (!lex_.peek().is(')')) expect(',');
      continue;
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

void Parser::parameters(Function& f) {
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

Parser::RegisterType Parser::register_type() {
  RegisterType type{.element = word()};
  if (type.element.is(".v2") || type.element.is(".v4")) {
    type.count = type.element.text[2] - '0';
    type.element = word();
  }
  return type;
}

void Parser::declare_registers(Function& f) {
  const RegisterType type = register_type();
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

void Parser::declare_register(Function& f, const RegisterType& type, const Token& name) {
  vector_registers_.erase(std::string(name.text));
  if (type.count == 1) return declare_register(f, type.element, name);
  if (type_bytes(type.element.text.substr(1)) == 16)
    fail(name, fmt::format("vectors of type '{}' are not supported", type.element.text));
  const std::string whole(name.text);
  registers_.erase(whole);
  const auto first = static_cast<int>(f.registers.size());
  for (int k = 0; k < type.count; ++k) {
    Token element = name;
    const std::string spelled = fmt::format("{}.{}", whole, "xyzw"[k]);
    element.text = spelled;
    declare_register(f, type.element, element);
    registers_[fmt::format("{}.{}", whole, "rgba"[k])] = first + k;
  }
  vector_registers_[whole] = type.count;
}

void Parser::declare_global(const Function& f) {
  Variable v = variable();
  const std::string name = fmt::format("{}@{}@{}", v.name, f.info.name, scopes_.back());
  variables_[v.name] = name;
  v.name = name;
  out_.globals.push_back(std::move(v));
}

void Parser::declare_register(Function& f, const Token& type, const Token& name) {
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

void Parser::declare_variable(std::vector<Variable>& list, Variable v, const Token& at) {
  const std::string name = scoped(v.name, scopes_.empty() ? 0 : scopes_.back());
  variables_[v.name] = name;
  v.name = name;
  if (!declared_.insert(name).second) fail(at, fmt::format("variable '{}' is declared twice", name));
  list.push_back(std::move(v));
}

}  // namespace stitchwork::ptx
