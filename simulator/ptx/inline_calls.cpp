// Calls of device functions are replaced by their bodies: a kernel is executed as one function. Parameters
// stay .param variables, which lowering keeps in registers where it can.
#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/error.h"
#include "simulator/ptx/syntax.h"

namespace stitchwork::ptx {
namespace {

/// The window of function addresses: below kFirstAllocation, so that no memory lies there.
constexpr std::uint64_t kFunctionWindow = 15;
/// Between two of them.
constexpr int kFunctionShift = 4;

/// Of one kernel after inlining; far more than any compiler would leave as calls.
constexpr std::size_t kMaxStatements = 1 << 21;

class Inliner {
 public:
  Inliner(const File& file, Function& kernel) : file_(file), kernel_(kernel), taken_(file.taken_functions) {
    const auto note = [&](const Function& f) {
      for (const Statement& s : f.body)
        if (s.opcode != "call")
          for (const Operand& o : s.operands) taken_.insert(o.name);
    };
    note(kernel);
    for (const Function& f : file.device_functions) note(f);
  }

  void run() {
    Function from = std::move(kernel_);
    kernel_ = {};
    kernel_.info = from.info;
    kernel_.registers = from.registers;
    kernel_.shared = from.shared;
    kernel_.local = from.local;
    kernel_.params = from.params;
    copy_body(from, {});
  }

 private:
  /// One use of a function: how its names are spelled in the kernel.
  struct Site {
    std::string prefix;     ///< of labels
    std::string variables;  ///< prefix of variables, the same for all uses of a function
    int first_register = 0;
    std::map<std::string, std::string, std::less<>> formals;  ///< to the caller's variables
    std::string end;                                          ///< label that ret goes to; empty: the kernel's
    std::set<std::string, std::less<>> own;                   ///< variables
  };

  [[noreturn]] void fail(const Statement& s, std::string message, std::string hint) const {
    throw Error(file_.files[static_cast<std::size_t>(s.file)], s.line, s.column, std::move(message),
                std::move(hint));
  }

  void copy_body(const Function& from, const Site& site) {
    // Labels by statement, so that they follow it.
    std::multimap<int, std::string> labels;
    for (const auto& [name, at] : from.labels) labels.emplace(at, site.prefix + name);
    for (std::size_t k = 0; k <= from.body.size(); ++k) {
      const auto [first, last] = labels.equal_range(static_cast<int>(k));
      for (auto it = first; it != last; ++it) place_label(it->second);
      if (k < from.body.size()) copy_statement(from.body[k], site);
    }
  }

  void place_label(std::string name) {
    kernel_.labels[std::move(name)] = static_cast<int>(kernel_.body.size());
  }

  void rename(Operand& o, const Site& site) const {
    if (o.reg >= 0) o.reg += site.first_register;
    if (const auto formal = site.formals.find(o.name); formal != site.formals.end())
      o.name = formal->second;
    else if (site.own.contains(o.name))
      o.name = site.variables + o.name;
    for (Operand& e : o.elements) rename(e, site);
  }

  void copy_statement(const Statement& original, const Site& site) {
    Statement s = original;
    if (s.guard >= 0) s.guard += site.first_register;
    const bool branch = s.opcode.starts_with("bra");
    for (Operand& o : s.operands) {
      if (branch)
        o.name = site.prefix + o.name;
      else
        rename(o, site);
    }
    if (s.opcode == "call" && s.operands[1].kind != Operand::Kind::kName) {
      inline_indirect_call(s);
      return;
    }
    if (s.opcode == "call" && !is_system_call(s.operands[1].name)) {
      inline_call(s);
      return;
    }
    if (!site.end.empty() && (s.opcode == "ret" || s.opcode == "ret.uni")) {
      s.opcode = "bra";
      s.operands = {name_of(site.end)};
    }
    append(std::move(s));
  }

  void append(Statement s) {
    if (kernel_.body.size() >= kMaxStatements)
      fail(s, fmt::format("kernel '{}' becomes too large when its calls are inlined", kernel_.info.name),
           "let device functions call each other fewer times");
    kernel_.body.push_back(std::move(s));
  }

  static Operand name_of(std::string name) {
    Operand o;
    o.kind = Operand::Kind::kName;
    o.name = std::move(name);
    return o;
  }
  static Operand register_of(int reg) {
    Operand o;
    o.kind = Operand::Kind::kRegister;
    o.reg = reg;
    return o;
  }

  const Function& callee_of(const Statement& call) const {
    const Operand& who = call.operands[1];
    for (const Function& f : file_.device_functions)
      if (f.info.name == who.name) return f;
    fail(call, fmt::format("function '{}' has no body in any module of the program", who.name),
         "name the module that has it, too, in a script (docs/ptx_programs.md); of the system's functions, "
         "vprintf and __assertfail are known");
  }

  /// A call through a register is one of each function whose address is taken and that fits.
  void inline_indirect_call(const Statement& call) {
    const Operand& pointer = call.operands[1];
    if (pointer.kind != Operand::Kind::kRegister) fail(call, "a call wants a function or a register", "");
    const std::string id = fmt::format("indirect#{}:", ++uses_);
    Statement s = call;
    s.weightless = true;
    const auto jump = [&](int guard, bool negated, std::string to) {
      Statement branch = s;
      branch.opcode = "bra";
      branch.guard = guard;
      branch.guard_negated = negated;
      branch.operands = {name_of(std::move(to))};
      append(std::move(branch));
    };
    if (call.guard >= 0) jump(call.guard, !call.guard_negated, id + "end");
    const int other = static_cast<int>(kernel_.registers.size());
    kernel_.registers.push_back({"%indirect", RegisterClass::kPred});
    for (std::size_t k = 0; k < file_.device_functions.size(); ++k) {
      const Function& f = file_.device_functions[k];
      if (!taken_.contains(f.info.name) || !fits(call, f)) continue;
      const std::string next = fmt::format("{}{}", id, k);
      Statement compare = s;
      compare.opcode = "setp.ne.u64";
      compare.guard = -1;
      compare.operands = {register_of(other), pointer, Operand{}};
      compare.operands[2].kind = Operand::Kind::kInteger;
      compare.operands[2].bits = function_address(k);
      append(std::move(compare));
      jump(other, false, next);
      Statement direct = call;
      direct.guard = -1;
      direct.operands[1] = name_of(f.info.name);
      inline_call(direct);
      jump(-1, false, id + "end");
      place_label(next);
    }
    Statement none = s;  // the pointer is of no such function
    none.opcode = "trap";
    none.guard = -1;
    none.operands.clear();
    append(std::move(none));
    place_label(id + "end");
  }

  bool fits(const Statement& call, const Function& f) const {
    const auto bytes_of = [](const std::vector<Variable>& list, const std::string& name) -> std::int64_t {
      for (const Variable& v : list)
        if (v.name == name) return v.bytes;
      return -1;
    };
    const auto all_fit = [&](const std::vector<Operand>& given, const std::vector<Formal>& wanted) {
      if (given.size() != wanted.size()) return false;
      for (std::size_t k = 0; k < given.size(); ++k)
        if (given[k].kind == Operand::Kind::kName && wanted[k].reg < 0 &&
            bytes_of(kernel_.params, given[k].name) != bytes_of(f.params, wanted[k].name))
          return false;
      return true;
    };
    return all_fit(call.operands[0].elements, f.results) && all_fit(call.operands[2].elements, f.formals);
  }

  void inline_call(const Statement& call) {
    const Function& callee = callee_of(call);
    const std::string& name = callee.info.name;
    if (std::find(open_.begin(), open_.end(), name) != open_.end())
      fail(call, fmt::format("function '{}' calls itself: recursion is not supported", name),
           "write it as a loop");
    const Operand& results = call.operands[0];
    const Operand& arguments = call.operands[2];
    if (results.elements.size() != callee.results.size() ||
        arguments.elements.size() != callee.formals.size())
      fail(call,
           fmt::format("function '{}' takes {} arguments and gives {} results; {} and {} given", name,
                       callee.formals.size(), callee.results.size(), arguments.elements.size(),
                       results.elements.size()),
           "");
    const std::string id = fmt::format("{}#{}:", name, ++uses_);
    Site site{.prefix = id,
              .variables = name + ":",
              .first_register = static_cast<int>(kernel_.registers.size()),
              .formals = {},
              .end = id + "end",
              .own = {}};
    kernel_.registers.insert(kernel_.registers.end(), callee.registers.begin(), callee.registers.end());
    const bool fresh = adopted_.insert(name).second;
    for (auto [theirs, ours] :
         {std::pair{&callee.shared, &kernel_.shared}, std::pair{&callee.local, &kernel_.local},
          std::pair{&callee.params, &kernel_.params}}) {
      for (const Variable& v : *theirs) {
        site.own.insert(v.name);
        if (!fresh) continue;
        ours->push_back(v);
        ours->back().name = site.variables + v.name;
      }
    }

    Statement entry = call;  // the call itself, which counts as one instruction
    entry.operands.clear();
    if (call.guard >= 0) {
      entry.opcode = "bra";
      entry.guard_negated = !call.guard_negated;
      entry.operands = {name_of(id + "after")};
    }
    append(entry);
    for (std::size_t k = 0; k < callee.formals.size(); ++k)
      pass(call, callee, callee.formals[k], arguments.elements[k], site, true);
    for (std::size_t k = 0; k < callee.results.size(); ++k)
      pass(call, callee, callee.results[k], results.elements[k], site, false);
    open_.push_back(name);
    copy_body(callee, site);
    open_.pop_back();
    place_label(site.end);
    for (std::size_t k = 0; k < callee.results.size(); ++k)
      fetch(call, callee.results[k], results.elements[k], site);
    if (call.guard >= 0) place_label(id + "after");
  }

  /// An argument or result: a .param variable of the caller stands for the formal, a register is copied.
  void pass(const Statement& call, const Function& callee, const Formal& formal, const Operand& actual,
            Site& site, bool in) {
    if (formal.reg < 0 && actual.kind == Operand::Kind::kName) {
      auto bytes_of = [](const std::vector<Variable>& list, const std::string& name) -> std::int64_t {
        for (const Variable& v : list)
          if (v.name == name) return v.bytes;
        return -1;
      };
      const std::int64_t given = bytes_of(kernel_.params, actual.name);
      const std::int64_t wanted = bytes_of(callee.params, formal.name);
      if (given < wanted)
        fail(call,
             fmt::format("parameter '{}' of '{}' has {} bytes, '{}' has {}", formal.name, callee.info.name,
                         wanted, actual.name, given),
             "");
      site.formals[formal.name] = actual.name;
      return;
    }
    if (in) move(call, formal, actual, site, true);
  }
  void fetch(const Statement& call, const Formal& formal, const Operand& actual, const Site& site) {
    if (site.formals.contains(formal.name) || actual.kind == Operand::Kind::kSink) return;
    move(call, formal, actual, site, false);
  }
  void move(const Statement& call, const Formal& formal, const Operand& actual, const Site& site, bool in) {
    Statement s = call;
    s.weightless = true;
    s.in_function = true;
    s.guard = -1;
    if (formal.reg >= 0) {
      const bool halves = formal.type.find("f16") != std::string::npos;  // no type of mov
      s.opcode = halves ? fmt::format("mov.b{}", 8 * type_bytes(formal.type)) : "mov." + formal.type;
      const Operand ours = register_of(formal.reg + site.first_register);
      s.operands = in ? std::vector{ours, actual} : std::vector{actual, ours};
    } else {
      Operand address = name_of(site.variables + formal.name);
      address.kind = Operand::Kind::kAddress;
      s.opcode = fmt::format("{}.param.{}", in ? "st" : "ld", formal.type);
      s.operands = in ? std::vector{address, actual} : std::vector{actual, address};
    }
    append(std::move(s));
  }

  const File& file_;
  Function& kernel_;
  std::vector<std::string> open_;
  std::set<std::string> taken_;    ///< names of which an address is taken, functions among them
  std::set<std::string> adopted_;  ///< functions whose variables the kernel has
  int uses_ = 0;
};

}  // namespace

std::uint64_t function_address(std::size_t device_function) {
  return kFunctionWindow << 40 | (device_function + 1) << kFunctionShift;
}

void resolve_function_pointers(File& file) {
  for (Variable& v : file.globals) {
    std::erase_if(v.pointers, [&](const Variable::Pointer& p) {
      for (std::size_t k = 0; k < file.device_functions.size(); ++k) {
        if (file.device_functions[k].info.name != p.target) continue;
        const std::uint64_t address = function_address(k);
        std::memcpy(v.initial.data() + p.offset, &address, sizeof address);
        file.taken_functions.insert(p.target);
        return true;
      }
      return false;
    });
  }
}

bool is_system_call(std::string_view function) { return function == "vprintf" || function == "__assertfail"; }

void inline_calls(const File& file, Function& kernel) {
  const bool any = std::any_of(kernel.body.begin(), kernel.body.end(),
                               [](const Statement& s) { return s.opcode == "call"; });
  if (any) Inliner(file, kernel).run();
}

}  // namespace stitchwork::ptx
