#include "simulator/ptx/parser.h"

#include <algorithm>
#include <utility>

namespace stitchwork::ptx {

File Parser::run() {
  while (lex_.peek().kind != Token::Kind::kEnd) top_level();
  if (out_.version.empty()) throw Error(out_.file, 1, 1, "not PTX: no .version directive");
  out_.files = {out_.file};
  return std::move(out_);
}

void Parser::top_level() {
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
  } else if (t.is(".visible")) {
    linkage_ = Linkage::kVisible;
  } else if (t.is(".weak") || t.is(".common")) {
    linkage_ = Linkage::kWeak;
  } else if (t.is(".extern")) {
    linkage_ = Linkage::kExternal;
  } else if (t.is(".entry")) {
    kernel();
  } else if (t.is(".func")) {
    device_function();
  } else if (t.is(".global") || t.is(".const")) {
    out_.globals.push_back(variable());
    out_.globals.back().constant = t.is(".const");
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

void Parser::file_directive(const Token& at) {
  const int index = static_cast<int>(integer());
  out_.source_files[index] = std::string(lex_.next().text);
  skip_line(at.line);
}

void Parser::kernel() {
  Function f;
  const Token name = word();
  f.linkage = std::exchange(linkage_, Linkage::kInternal);
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
    } else if (t.is(".reqnctapercluster")) {
      f.info.cluster = cluster_extents(t);
      f.info.uses_clusters = true;
    } else if (t.is(".maxclusterrank")) {
      const std::int64_t most = integer();
      if (most < 1 || most > kMaxClusterExtent) fail(t, ".maxclusterrank takes a number of blocks");
      f.info.max_cluster_blocks = static_cast<int>(most);
    } else if (t.is(".maxnreg")) {
      integer();
    } else if (t.is(".pragma")) {
      skip_to_semicolon();
    } else if (t.is(".explicitcluster")) {
      f.info.explicit_cluster = f.info.uses_clusters = true;
    } else {
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

std::array<std::uint32_t, 3> Parser::cluster_extents(const Token& at) {
  std::array<std::uint32_t, 3> extents{1, 1, 1};
  std::size_t dimensions = 0;
  do {
    const std::int64_t extent = integer();
    if (dimensions == extents.size() || extent < 1 || extent > kMaxClusterExtent)
      fail(at, fmt::format("{} takes up to three extents of a cluster", at.text));
    extents[dimensions++] = static_cast<std::uint32_t>(extent);
  } while (accept(','));
  return extents;
}

void Parser::device_function() {
  Function f;
  f.linkage = std::exchange(linkage_, Linkage::kInternal);
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
  if (accept(';')) {
    if (f.linkage == Linkage::kExternal && !is_system_call(f.info.name))
      out_.external_functions.insert(f.info.name);
    return;
  }
  expect('{');
  body(f);
  leave_function(f);
  for (Statement& s : f.body) s.in_function = true;
  out_.device_functions.push_back(std::move(f));
}

void Parser::enter_function() {
  registers_.clear();
  wide_registers_.clear();
  vector_registers_.clear();
  variables_.clear();
  declared_.clear();
  scopes_ = {0};
  next_scope_ = 1;
  branches_.clear();
  tables_.clear();
}

void Parser::body(Function& f) {
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
      const auto outer_vectors = vector_registers_;
      const auto outer_variables = variables_;
      scopes_.push_back(next_scope_++);
      body(f);
      scopes_.pop_back();
      registers_ = outer;
      wide_registers_ = outer_wide;
      vector_registers_ = outer_vectors;
      variables_ = outer_variables;
    } else if (t.kind == Token::Kind::kWord && t.text[0] == '.') {
      directive(f);
    } else {
      statement(f);
    }
  }
}

void Parser::directive(Function& f) {
  const Token t = lex_.next();
  if (t.is(".reg")) {
    declare_registers(f);
  } else if (t.is(".global") || t.is(".const")) {
    declare_global(f);
    out_.globals.back().constant = t.is(".const");
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
    fail(t, fmt::format("unknown directive '{}'", t.text), "list what is supported with: stitchwork ptx isa");
  }
}

File parse_file(std::string_view text, std::string file) { return Parser(text, std::move(file)).run(); }

}  // namespace stitchwork::ptx
