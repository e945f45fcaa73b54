// PTX text to a compact typed form, once. An instruction outside the supported subset is an Error that names
// it and its line; nothing is ever skipped silently.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork::ptx {

struct ParameterInfo {
  std::string name;
  std::string type;  ///< "u64", "f32", "b8"
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;  ///< in the parameter block
};

struct KernelInfo {
  std::string name;
  std::vector<ParameterInfo> parameters;
  int line = 0;
  std::int64_t static_shared_bytes = 0;
  std::int64_t local_bytes = 0;            ///< per thread (.local depot)
  int max_threads = 0;                     ///< .maxntid product, 0 if absent
  int min_blocks_per_sm = 0;               ///< .minnctapersm, 0 if absent
  std::array<std::uint32_t, 3> cluster{};  ///< .reqnctapercluster, 0 if absent
  int max_cluster_blocks = 0;              ///< .maxclusterrank, 0 if absent
  bool explicit_cluster = false;           ///< .explicitcluster: to be launched with a cluster size
  bool uses_clusters = false;              ///< has instructions or registers of clusters, or directives
  int needs_sm = 0;                        ///< compute capability its instructions need: 80 or 90, 0: any
  std::string needs_sm_for;                ///< which these are
  int virtual_registers = 0;
  int estimated_registers = 0;  ///< 32-bit, from liveness; ptxas knows better
  /// 128-byte requests of a warp that loads of one basic block have in flight at once in machine code, at
  /// most; 4 for a 16-byte load a thread (docs/simulator.md, "Loads in flight").
  int loads_in_flight = 0;
  int instructions = 0;
};

struct ModuleImpl;

/// A parsed module. Movable, immutable, shareable between threads by const reference.
class Module {
 public:
  explicit Module(std::unique_ptr<ModuleImpl> impl);
  ~Module();
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;

  const std::string& file() const;
  const std::string& version() const;  ///< ".version"
  const std::string& target() const;   ///< ".target"
  const std::vector<KernelInfo>& kernels() const;
  const KernelInfo* kernel(std::string_view name) const;  ///< null if absent
  const ModuleImpl& impl() const { return *impl_; }

 private:
  std::unique_ptr<ModuleImpl> impl_;
};

/// PTX text; `file` names it in errors.
struct Source {
  std::string text, file;
};

/// Parses the modules of one program. What one declares .extern another may define; a name that two define is
/// an error, one that none does where it is used.
std::vector<Module> parse_program(std::span<const Source> sources);

/// Parses PTX (a trailing NUL, as NVRTC leaves, is ignored). `file` names the source in errors.
Module parse(std::string_view text, std::string file);

/// Supported instruction forms, one a line, for `stitchwork ptx isa`.
std::vector<std::string> supported_instructions();

}  // namespace stitchwork::ptx
