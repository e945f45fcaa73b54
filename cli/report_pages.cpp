#include "cli/report_pages.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/plan_again.h"
#include "gui/page/page.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

/// Plans of one page. A choice, not measured: more are hardly compared by looking, and the page holds the
/// difference of each two.
constexpr std::size_t kPlansOfPage = 6;

/// One plan, and the trials that had it: on several backends, say.
struct PageTrial {
  std::string name;
  FusionPlan plan;
  std::vector<const ReportTrial*> trials;
};

/// As encodeURIComponent of a browser.
std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                       (byte >= 'A' && byte <= 'Z') ||
                       std::string_view("-_.!~*'()").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

/// What decides a plan: planner, knobs, overrides, tf32.
std::string plan_key(const ReportTrial& trial) {
  std::string key;
  for (const auto& [name, value] : trial.settings)
    if (name == "planner" || name.starts_with("options.") || name == "overrides" || name == "tf32")
      key += "\n" + name + "=" + value;
  return key;
}

/// The label, with a number where a plan is called so.
std::string unlike(const std::vector<PageTrial>& plans, const std::string& label) {
  std::string name = label;
  for (int n = 2; std::ranges::find(plans, name, &PageTrial::name) != plans.end(); ++n)
    name = fmt::format("{} ({})", label, n);
  return name;
}

std::vector<PageTrial> plans_of(const Cli& cli, const Model& model, const ReportSection& section) {
  std::vector<PageTrial> plans;
  std::map<std::string, std::size_t> known;
  std::set<std::string> refused;
  for (const ReportTrial& trial : section.trials) {
    const std::string key = plan_key(trial);
    if (!trial.ok || refused.contains(key)) continue;
    if (const auto at = known.find(key); at != known.end()) {
      plans[at->second].trials.push_back(&trial);
      continue;
    }
    cli.progress(fmt::format("planning {} on {}: {}", section.workload, section.device, trial.label));
    try {
      plans.push_back({unlike(plans, trial.label), plan_again(model, section, trial), {&trial}});
      known[key] = plans.size() - 1;
    } catch (const Error& error) {
      cli.err << fmt::format("stitchwork: no page of {} on {}, {}: {}\n", section.workload, section.device,
                             trial.label, error.what());
      refused.insert(key);
    }
  }
  return plans;
}

/// "bert_layer-v100-sxm2.html", and a number where there is such a page.
std::string file_name(const ReportSection& section, std::set<std::string>& taken) {
  std::string stem = fs::path(section.workload).filename().string() + "-" + section.device;
  std::ranges::replace_if(
      stem, [](char c) { return c == '/' || c == ' ' || c == '#' || c == '?' || c == '%'; }, '_');
  std::string name = stem + ".html";
  for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}-{}.html", stem, n);
  return name;
}

/// From the report's folder to the file, as a link has it.
std::string address_of(const fs::path& file, const std::string& report) {
  const fs::path from = fs::absolute(report).parent_path().lexically_normal();
  std::string address;
  for (const fs::path& part : fs::absolute(file).lexically_normal().lexically_relative(from))
    address += (address.empty() ? "" : "/") + (part == ".." ? std::string("..") : encoded(part.string()));
  return address;
}

void write_page(const Model& model, std::span<PageTrial> plans, const ReportSection& section,
                const fs::path& file, const std::string& report, ReportPages& written) {
  std::vector<gui::PagePlan> shown;
  WrittenPage page{section.workload, section.device, {}, address_of(file, report)};
  for (const PageTrial& one : plans) {
    shown.push_back({.plan = &one.plan, .name = one.name});
    page.plans.push_back(one.name);
    ReportPage link{page.address + "#plan=" + encoded(one.name), {}};
    for (const KernelPlan& kernel : one.plan.kernels)
      link.kernels[kernel_title(kernel)] = link.address + "&kernel=" + encoded(kernel.id);
    for (const ReportTrial* trial : one.trials) written.trials[trial->id] = link;
  }
  write_file(file.string(), gui::plans_page(model, shown));
  written.pages.push_back(std::move(page));
}

}  // namespace

ReportPages write_pages(const Cli& cli, const ReportData& data, const std::string& folder,
                        const std::string& report) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(folder, 0, 0, fmt::format("cannot be made: {}", error.message()),
                "give another with --pages");
  ReportPages written;
  std::set<std::string> taken;
  for (const ReportSection& section : data.sections) {
    Model model;
    try {
      model = load_model(section.workload);
    } catch (const Error& unread) {
      cli.err << fmt::format("stitchwork: no page of {}: {}\n", section.workload, unread.what());
      continue;
    }
    std::vector<PageTrial> plans = plans_of(cli, model, section);
    for (std::size_t first = 0; first < plans.size(); first += kPlansOfPage)
      write_page(model, std::span(plans).subspan(first, std::min(kPlansOfPage, plans.size() - first)),
                 section, fs::path(folder) / file_name(section, taken), report, written);
  }
  cli.progress("");
  return written;
}

void add_pages(CLI::App& command, std::string& folder) {
  command.add_option(
      "--pages", folder,
      "also a page of `stitchwork view` for each model and device into this folder, to which the "
      "report leads: plans, CUDA, and why");
}

}  // namespace stitchwork
