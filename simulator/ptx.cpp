// From PTX text to modules: parsed (ptx/), linked, and lowered (lower/).
#include "simulator/ptx.h"

#include <algorithm>
#include <atomic>

#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"

namespace stitchwork::ptx {

Module::Module(std::unique_ptr<ModuleImpl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
const std::string& Module::file() const { return impl_->file; }
const std::string& Module::version() const { return impl_->version; }
const std::string& Module::target() const { return impl_->target; }
const std::vector<KernelInfo>& Module::kernels() const { return impl_->kernels; }
const KernelInfo* Module::kernel(std::string_view name) const {
  for (const KernelInfo& k : impl_->kernels) {
    if (k.name == name) return &k;
  }
  return nullptr;
}

namespace {

Module module_of(File& syntax, std::uint64_t id) {
  resolve_function_pointers(syntax);
  auto impl = std::make_unique<ModuleImpl>();
  impl->id = id;
  impl->file = syntax.file;
  impl->files = syntax.files;
  impl->version = syntax.version;
  impl->target = syntax.target;
  impl->globals = syntax.globals;
  impl->source_files = syntax.source_files;
  impl->locations = syntax.locations;
  for (const Function& written : syntax.functions) {
    Function f = written;
    inline_calls(syntax, f);
    impl->programs.push_back(lower(syntax, f));
    impl->kernels.push_back(impl->programs.back().info);
  }
  return Module(std::move(impl));
}

}  // namespace

std::vector<Module> parse_program(std::span<const Source> sources) {
  static std::atomic<std::uint64_t> next_id{1};
  std::vector<File> files;
  for (const Source& source : sources) files.push_back(parse_file(source.text, source.file));
  const std::vector<int> group = link(files);
  const std::uint64_t first = next_id.fetch_add(files.size());
  std::vector<Module> modules;
  for (std::size_t f = 0; f < files.size(); ++f)
    modules.push_back(module_of(files[f], first + static_cast<std::uint64_t>(group[f])));
  return modules;
}

Module parse(std::string_view text, std::string file) {
  const Source source{std::string(text), std::move(file)};
  return std::move(parse_program(std::span(&source, 1)).front());
}

std::vector<std::string> supported_instructions() {
  std::vector<std::string> forms;
  for (const sim::IsaRow& row : sim::isa_rows()) {
    if (row.spelling[0] == '@') continue;
    for (std::string& form : sim::expand_spelling(row.spelling)) forms.push_back(std::move(form));
  }
  for (const auto& patterns : {listed_patterns(), bulk_patterns()})
    for (const std::string_view pattern : patterns)
      for (std::string& form : sim::expand_spelling(pattern)) forms.push_back(std::move(form));
  for (const char* pattern : {"mapa{,.shared::cluster}.{u32,u64}", "getctarank{,.shared::cluster}.{u32,u64}",
                              "cp.async.mbarrier.arrive{,.noinc}{,.shared,.shared::cta}.b64"})
    for (std::string& form : sim::expand_spelling(pattern)) forms.push_back(std::move(form));
  for (std::string& form : matrix_forms()) forms.push_back(std::move(form));
  // Forms built from several rows or with many optional modifiers.
  for (const char* form :
       {"setp.CMP{.ftz}{.and,.or,.xor}.TYPE p|q",
        "set.CMP{.ftz}{.and,.or,.xor}.{u32,s32,u16,s16,f32,f16,bf16}.TYPE",
        "ld{.weak,.volatile,.relaxed,.acquire}{.cta,.cluster,.gpu,.sys}{.global,.shared,."
        "shared::cluster,.local,."
        "param,.const}{.nc}{."
        "ca,.cg,"
        ".cs,.lu,.cv}{.L1::*,.L2::*}{.v2,.v4}.TYPE",
        "st{.weak,.volatile,.relaxed,.release}{.cta,.cluster,.gpu,.sys}{.global,.shared,."
        "shared::cluster,.local}{."
        "wb,.cg,.cs,.wt}{.v2,."
        "v4}"
        ".TYPE",
        "atom{.relaxed,.acquire,.release,.acq_rel}{.cta,.cluster,.gpu,.sys}{.global,."
        "shared,.shared::cluster}.{add,"
        "exch,cas,min,max,"
        "and,or,xor,"
        "inc,dec}.TYPE",
        "{atom,red}.global.{add,min,max}.noftz{.v2,.v4,.v8}.{f16,bf16}",
        "{atom,red}.global.{add,min,max}.noftz{.v2,.v4}.{f16x2,bf16x2}", "{atom,red}.global.add{.v2,.v4}.f32",
        "red{.relaxed,.release}{.cta,.cluster,.gpu,.sys}{.global,.shared,.shared::cluster}"
        ".{add,min,max,and,or,xor,"
        "inc,dec}.TYPE",
        "mbarrier.init{.shared,.shared::cta}.b64", "mbarrier.inval{.shared,.shared::cta}.b64",
        "mbarrier.{expect_tx,complete_tx}{.relaxed}{.cta,.cluster}{.shared,.shared::cta,."
        "shared::cluster}.b64",
        "mbarrier.{arrive,arrive_drop}{.expect_tx,.noComplete}{.release,.relaxed}{.cta,."
        "cluster}{.shared,.shared::cta,.shared::cluster}.b64",
        "mbarrier.{test_wait,try_wait}{.parity}{.acquire,.relaxed}{.cta,.cluster}{.shared,."
        "shared::cta}.b64",
        "mbarrier.pending_count.b64", "{min,max}{.ftz}{.NaN}{.abs}.f32 of three numbers",
        "{ldmatrix,stmatrix}.sync.aligned.m8n8.{x1,x2,x4}{.trans}{,.shared,.shared::cta}.b16",
        "mov.{b16,b32,b64} packing and unpacking", "mov.{v2,v4,v8}.TYPE"}) {
    forms.push_back(form);
  }
  std::sort(forms.begin(), forms.end());
  return forms;
}

}  // namespace stitchwork::ptx
