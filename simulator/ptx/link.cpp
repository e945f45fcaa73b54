// Modules of one program: what one declares .extern another defines.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "simulator/ptx/syntax.h"

namespace stitchwork::ptx {
namespace {

/// f(name, linkage, line) of each .global, .const or .shared variable and each function.
template <class F>
void for_symbols(const File& file, F f) {
  for (const auto* variables : {&file.globals, &file.shared})
    for (const Variable& v : *variables) f(v.name, v.linkage, v.line);
  for (const Function& function : file.device_functions)
    f(function.info.name, function.linkage, function.info.line);
}

/// Dynamic shared memory, which is .extern in every module and defined in none.
bool is_dynamic_shared(const File& file, const std::string& name) {
  return std::ranges::any_of(file.shared, [&](const Variable& v) { return v.name == name; });
}

/// Other names for a file's own.
class Renaming {
 public:
  explicit Renaming(std::map<std::string, std::string> names) : names_(std::move(names)) {}
  void apply(File& file) const {
    if (names_.empty()) return;
    for (auto* variables : {&file.globals, &file.shared}) {
      for (Variable& v : *variables) {
        rename(v.name);
        for (Variable::Pointer& p : v.pointers) rename(p.target);
      }
    }
    for (Function& f : file.functions) apply(f);
    for (Function& f : file.device_functions) {
      rename(f.info.name);
      apply(f);
    }
  }

 private:
  void rename(std::string& name) const {
    if (const auto it = names_.find(name); it != names_.end()) name = it->second;
  }
  void apply(Function& f) const {
    std::set<std::string> local;
    for (const auto* variables : {&f.shared, &f.local, &f.params})
      for (const Variable& v : *variables) local.insert(v.name);
    for (const ParameterInfo& p : f.info.parameters) local.insert(p.name);
    for (Statement& s : f.body)
      if (!s.opcode.starts_with("bra"))
        for (Operand& o : s.operands) apply(o, local);
  }
  void apply(Operand& o, const std::set<std::string>& local) const {
    if (!local.contains(o.name)) rename(o.name);
    for (Operand& e : o.elements) apply(e, local);
  }

  std::map<std::string, std::string> names_;
};

class Linker {
 public:
  explicit Linker(std::vector<File>& files) : files_(files), group_(files.size()) {
    std::iota(group_.begin(), group_.end(), 0);
  }

  std::vector<int> run() {
    for (std::size_t f = 0; f < files_.size(); ++f)
      for_symbols(files_[f], [&](const std::string& name, Linkage linkage, int line) {
        if (linkage != Linkage::kInternal && linkage != Linkage::kExternal)
          definitions_[name].push_back({f, linkage, line});
      });
    for (std::size_t f = 0; f < files_.size(); ++f)
      for (const std::string& name : wanted(files_[f]))
        if (const auto found = definitions_.find(name); found != definitions_.end())
          for (const Definition& d : found->second) join(f, d.file);
    for (int g = 0; g < static_cast<int>(files_.size()); ++g) {
      std::vector<std::size_t> members;
      for (std::size_t f = 0; f < files_.size(); ++f)
        if (group_[f] == g) members.push_back(f);
      if (members.size() > 1) merge(members);
    }
    return group_;
  }

 private:
  struct Definition {
    std::size_t file;
    Linkage linkage;
    int line;
  };

  static std::set<std::string> wanted(const File& file) {
    std::set<std::string> names = file.external_functions;
    for (const Variable& v : file.globals)
      if (v.linkage == Linkage::kExternal) names.insert(v.name);
    for_symbols(file, [&](const std::string& name, Linkage linkage, int) {
      if (linkage != Linkage::kExternal) names.erase(name);
    });
    return names;
  }

  void join(std::size_t a, std::size_t b) {
    const int from = group_[b], to = group_[a];
    std::ranges::replace(group_, std::max(from, to), std::min(from, to));
  }

  /// The file whose definition of a name counts: the only strong one, else the first weak one.
  std::size_t definer(const std::string& name) const {
    const std::vector<Definition>& all = definitions_.at(name);
    const Definition* chosen = &all.front();
    for (const Definition& d : all) {
      if (d.linkage != Linkage::kVisible) continue;
      if (chosen->linkage == Linkage::kVisible && chosen != &d)
        throw Error(files_[d.file].file, d.line, 1,
                    fmt::format("'{}' is also defined in {}", name, files_[chosen->file].file),
                    "modules that are linked define a name once: leave one of them out");
      chosen = &d;
    }
    return chosen->file;
  }

  void merge(const std::vector<std::size_t>& members) {
    make_own_names_unique(members);
    File common;
    std::set<std::string> missing;
    for (const std::size_t m : members) take_places(files_[m], common);
    for (const std::size_t m : members) {
      File& file = files_[m];
      const auto is_here = [&](const std::string& name, Linkage linkage) {
        return linkage == Linkage::kInternal || (linkage != Linkage::kExternal && definer(name) == m);
      };
      for (Variable& v : file.globals)
        if (is_here(v.name, v.linkage) || (v.linkage == Linkage::kExternal &&
                                           !definitions_.contains(v.name) && missing.insert(v.name).second))
          common.globals.push_back(v);
      for (Function& f : file.device_functions)
        if (is_here(f.info.name, f.linkage)) common.device_functions.push_back(f);
      for (Variable& v : file.shared)
        if (!is_dynamic_shared(common, v.name)) common.shared.push_back(v);
    }
    for (const std::size_t m : members) {
      File& file = files_[m];
      file.globals = common.globals;
      file.device_functions = common.device_functions;
      file.shared = common.shared;
      file.source_files = common.source_files;
      file.locations = common.locations;
      file.files = common.files;
    }
  }

  /// A name that is a file's own, and another file's too, gets the file's number.
  void make_own_names_unique(const std::vector<std::size_t>& members) {
    std::map<std::string, int> users;
    for (const std::size_t m : members) {
      std::set<std::string> names;
      for_symbols(files_[m], [&](const std::string& name, Linkage, int) { names.insert(name); });
      for (const std::string& name : names) ++users[name];
    }
    for (std::size_t k = 0; k < members.size(); ++k) {
      std::map<std::string, std::string> names;
      for_symbols(files_[members[k]], [&](const std::string& name, Linkage linkage, int) {
        if (linkage == Linkage::kInternal && users[name] > 1)
          names[name] = fmt::format("{}@module{}", name, k);
      });
      Renaming(std::move(names)).apply(files_[members[k]]);
    }
  }

  /// Statements keep which file they are of, and where in its source.
  static void take_places(File& file, File& common) {
    const int first_source = common.source_files.empty() ? 0 : common.source_files.rbegin()->first + 1;
    const int first_location = static_cast<int>(common.locations.size());
    const int number = static_cast<int>(common.files.size());
    common.files.push_back(file.file);
    for (const auto& [id, name] : file.source_files) common.source_files[first_source + id] = name;
    for (Location l : file.locations) {
      l.file += first_source;
      common.locations.push_back(l);
    }
    for (auto* functions : {&file.functions, &file.device_functions}) {
      for (Function& f : *functions) {
        for (Statement& s : f.body) {
          s.file = number;
          if (s.location >= 0) s.location += first_location;
        }
      }
    }
  }

  std::vector<File>& files_;
  std::vector<int> group_;  ///< by file: the least of those it is linked with
  std::map<std::string, std::vector<Definition>> definitions_;
};

}  // namespace

std::vector<int> link(std::vector<File>& files) { return Linker(files).run(); }

}  // namespace stitchwork::ptx
