#include "simulator/ptx/parser.h"

namespace stitchwork::ptx {

void Parser::leave_function(Function& f) {
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

void Parser::expand_indexed_branches(Function& f) {
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

}  // namespace stitchwork::ptx
