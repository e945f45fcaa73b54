#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <vector>

#include "codegen/compile/compiler.h"
#include "codegen/compile/lines.h"
#include "codegen/kernel.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {
namespace fs = std::filesystem;

// NVRTC's C interface, as far as it is used; loaded at run time so that nothing links to it.
struct Nvrtc {
  using Program = void*;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*ptx_size)(Program, std::size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*arch_count)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  std::string path;
  std::vector<int> architectures;
  int major = 0, minor = 0;
};

template <typename F>
bool bind(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

std::optional<Nvrtc> load(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Nvrtc n;
  n.path = path;
  const bool complete =
      bind(library, "nvrtcVersion", n.version) && bind(library, "nvrtcCreateProgram", n.create) &&
      bind(library, "nvrtcCompileProgram", n.compile) && bind(library, "nvrtcDestroyProgram", n.destroy) &&
      bind(library, "nvrtcGetPTXSize", n.ptx_size) && bind(library, "nvrtcGetPTX", n.ptx) &&
      bind(library, "nvrtcGetCUBINSize", n.cubin_size) && bind(library, "nvrtcGetCUBIN", n.cubin) &&
      bind(library, "nvrtcGetProgramLogSize", n.log_size) && bind(library, "nvrtcGetProgramLog", n.log) &&
      bind(library, "nvrtcGetNumSupportedArchs", n.arch_count) &&
      bind(library, "nvrtcGetSupportedArchs", n.archs) && bind(library, "nvrtcGetErrorString", n.error_text);
  int count = 0;
  if (!complete || n.version(&n.major, &n.minor) != 0 || n.arch_count(&count) != 0 || count <= 0) {
    ::dlclose(library);
    return std::nullopt;
  }
  n.architectures.resize(static_cast<std::size_t>(count));
  n.archs(n.architectures.data());
  std::sort(n.architectures.begin(), n.architectures.end());
  return n;
}

// Newest first: CUDA 13 and 12 are what this code was tried with; 11.2 brought the list of architectures.
std::vector<std::string> candidates() {
  const std::vector<std::string> names = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                          "libnvrtc.so.11.2"};
  std::vector<fs::path> roots;
  if (const char* home = std::getenv("CUDA_HOME")) roots.emplace_back(home);
  roots.emplace_back("/usr/local/cuda");
  std::error_code error;
  std::vector<fs::path> versioned;
  for (const auto& entry : fs::directory_iterator("/usr/local", error))
    if (entry.path().filename().string().rfind("cuda-", 0) == 0) versioned.push_back(entry.path());
  std::sort(versioned.rbegin(), versioned.rend());
  roots.insert(roots.end(), versioned.begin(), versioned.end());

  std::vector<std::string> paths;
  for (const fs::path& root : roots)
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
      for (const std::string& name : names)
        if (const fs::path path = root / folder / name; fs::exists(path, error))
          paths.push_back(path.string());
  paths.insert(paths.end(), names.begin(), names.end());
  return paths;
}

const std::optional<Nvrtc>& nvrtc() {
  static const std::optional<Nvrtc> loaded = []() -> std::optional<Nvrtc> {
    for (const std::string& path : candidates())
      if (auto found = load(path)) return found;
    return std::nullopt;
  }();
  return loaded;
}

std::string program_log(const Nvrtc& n, Nvrtc::Program program) {
  std::size_t size = 0;
  if (n.log_size(program, &size) != 0 || size <= 1) return {};
  std::string log(size, '\0');
  n.log(program, log.data());
  log.resize(size - 1);
  return log;
}

}  // namespace

std::optional<PtxCompiler> find_nvrtc() {
  if (!nvrtc()) return std::nullopt;
  return PtxCompiler{CompilerKind::kNvrtc, fmt::format("NVRTC {}.{}", nvrtc()->major, nvrtc()->minor),
                     nvrtc()->path};
}

int nvrtc_architecture(const PtxCompiler&, int wanted) {
  SW_CHECK(nvrtc().has_value());
  const std::vector<int>& known = nvrtc()->architectures;
  const auto at_least = std::lower_bound(known.begin(), known.end(), wanted);
  return at_least != known.end() ? *at_least : known.back();
}

Code nvrtc_compile(const PtxCompiler& compiler, const std::string& source, int architecture, bool cubin) {
  SW_CHECK(nvrtc().has_value());
  const Nvrtc& n = *nvrtc();
  Nvrtc::Program program = nullptr;
  int status = n.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  if (status != 0) throw Error(fmt::format("{}: {}", compiler.id, n.error_text(status)));
  const std::string target = fmt::format("--gpu-architecture={}_{}", cubin ? "sm" : "compute", architecture);
  std::vector<const char*> options = {target.c_str(), "--std=c++17", "--disable-warnings"};
  if (tells_lines(source)) options.push_back("-lineinfo");
  if (has_fast_math(source)) options.push_back("--use_fast_math");
  // Without the declarations of textures and of the run-time library, which kernels here do not use: the same
  // PTX in three quarters of the time. An NVRTC that does not know the option refuses it.
  static std::atomic<bool> knows_minimal = true;
  if (knows_minimal) options.push_back("--minimal");
  status = n.compile(program, static_cast<int>(options.size()), options.data());
  // No quantity: the name NVRTC_ERROR_INVALID_OPTION of its header.
  constexpr int kInvalidOption = 5;
  if (status == kInvalidOption && knows_minimal) {
    knows_minimal = false;
    n.destroy(&program);
    return nvrtc_compile(compiler, source, architecture, cubin);
  }
  Code code;
  std::string log;
  if (status == 0) {
    std::size_t size = 0;
    n.ptx_size(program, &size);
    code.ptx.resize(size);
    n.ptx(program, code.ptx.data());
    while (!code.ptx.empty() && code.ptx.back() == '\0') code.ptx.pop_back();  // ptxas dislikes trailing NULs
    if (cubin && n.cubin_size(program, &size) == 0) {
      code.cubin.resize(size);
      n.cubin(program, code.cubin.data());
    }
  } else {
    log = program_log(n, program);
  }
  n.destroy(&program);
  if (status != 0)
    throw Error(fmt::format("{} cannot compile a generated kernel: {}", compiler.id,
                            log.empty() ? n.error_text(status) : first_error(log)),
                "this is a defect of the code generator: please report it with the model and the plan");
  return code;
}

}  // namespace stitchwork
