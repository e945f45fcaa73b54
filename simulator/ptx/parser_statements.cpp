#include "simulator/ptx/parser.h"

namespace stitchwork::ptx {

void Parser::statement(Function& f) {
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

void Parser::call(Statement& s) {
  auto list = [&] {
    Operand o;
    o.kind = Operand::Kind::kVector;
    expect('(');
    while (!accept(')')) {
      Operand one = operand();
      if (one.kind == Operand::Kind::kVector)
        o.elements.insert(o.elements.end(), one.elements.begin(), one.elements.end());
      else
        o.elements.push_back(std::move(one));
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
  const Token callee = lex_.peek();
  s.operands.push_back(operand());
  if (s.operands.back().kind != Operand::Kind::kName && s.operands.back().kind != Operand::Kind::kRegister)
    fail(callee, "a call wants a function or a register");
  const bool indirect = s.operands.back().kind == Operand::Kind::kRegister;
  const bool more = accept(',');
  const bool arguments = more && lex_.peek().is('(');
  s.operands.push_back(arguments ? list() : none);
  if (indirect && (arguments ? accept(',') : more))
    word();  // the prototype
  else if (more && !arguments)
    expect('(');
  expect(';');
}

int Parser::find_register(const Token& t) const {
  const auto it = registers_.find(t.text);
  if (it == registers_.end()) fail(t, fmt::format("register '{}' is not declared", t.text));
  return it->second;
}

std::string Parser::unique_name(std::string_view name) const {
  const auto it = variables_.find(name);
  return it == variables_.end() ? std::string(name) : it->second;
}

Operand Parser::elements_of(std::string_view name, int count) const {
  Operand all;
  all.kind = Operand::Kind::kVector;
  for (int k = 0; k < count; ++k) {
    Operand one;
    one.kind = Operand::Kind::kRegister;
    one.reg = registers_.find(fmt::format("{}.{}", name, "xyzw"[k]))->second;
    all.elements.push_back(one);
  }
  return all;
}

/// What follows '['.
Operand Parser::address() {
  using Kind = Operand::Kind;
  Operand o;
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
  if (accept('+') || lex_.peek().is('-')) o.offset += integer();
  if (accept(',')) {  // coordinates of a texture, a surface or a tensor
    o.elements.push_back(operand());
    while (accept(',')) o.elements.push_back(operand());
  }
  expect(']');
  return o;
}

Operand Parser::operand() {
  Operand o;
  const Token t = lex_.next();
  using Kind = Operand::Kind;
  if (++operand_depth_ > kMaxNesting) fail(t, "operands nest too deep");
  const struct Leave {
    std::size_t& depth;
    ~Leave() { --depth; }
  } leave{operand_depth_};
  if (t.is('[')) {
    o = address();
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
    } else if (const auto vector = vector_registers_.find(t.text); vector != vector_registers_.end()) {
      o = elements_of(t.text, vector->second);
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

}  // namespace stitchwork::ptx
