#include "experiments/reproduce.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/data.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "experiments/environment.h"
#include "experiments/limits.h"
#include "experiments/reproduce_best.h"
#include "experiments/reproduce_choices.h"
#include "experiments/reproduce_figures.h"
#include "runtime/program/dump.h"

namespace stitchwork {
namespace {
namespace fs = std::filesystem;

fs::path folder() { return data_folder("experiments"); }

struct Row {
  std::string row, workload;
  std::string unsaid;              ///< what the paper does not say of its model
  std::vector<std::string> sizes;  ///< workloads: the same model at other values of that
  std::vector<std::string>
      buckets;  ///< workloads: the model by length of its sequences, in place of `workload`
};

/// A list, or "workloads": the experiment's, by their names.
std::vector<Row> read_rows(const JsonCursor& c, const PaperExperiment* experiment) {
  std::vector<Row> rows;
  if (c.is("workloads")) {
    if (experiment == nullptr) c.fail("rows of an experiment's workloads in a table without one");
    for (const std::string& name : experiment->workloads) rows.push_back({name, name});
    return rows;
  }
  c.each([&](const JsonCursor& one) {
    one.only({"row", "workload", "unsaid", "sizes", "buckets"});
    Row& row = rows.emplace_back(one.at("row").text(), one.at("workload").text());
    if (const auto buckets = one.find("buckets"))
      buckets->each([&](const JsonCursor& length) {
        row.buckets.push_back(bucket_workload(row.workload, length.integer()));
      });
    if (const auto unsaid = one.find("unsaid")) row.unsaid = unsaid->text();
    if (const auto sizes = one.find("sizes"))
      sizes->each([&](const JsonCursor& size) { row.sizes.push_back(size.text()); });
  });
  return rows;
}

class Reproducer {
 public:
  Reproducer(const ReproduceOptions& options, fs::path home) : options_(options), home_(std::move(home)) {}

  Reproduction run(const JsonCursor& root, const std::string& paper) {
    root.only({"schema", "id", "title", "device", "rows", "sizes", "artifacts", "exports"});
    const auto exports = root.find("exports");
    if (!exports && !options_.models.empty())
      throw Error(fmt::format("the models of {} are datasets", paper), "leave out --models");
    if (options_.quick && !options_.models.empty())
      throw Error("--quick takes the tiny models, --models whole ones", "leave one of them out");
    if (exports && options_.models.empty() && options_.run) options_.quick = true;
    result_.paper = paper;
    result_.title = root.at("title").text();
    result_.device = root.at("device").text();
    result_.quick = options_.quick;
    result_.exports = exports && options_.quick ? exports->text() : "";
    result_.command = reproduce_command(options_, paper);
    rows_ = root.at("rows");
    if (const auto sizes = root.find("sizes"); sizes && !options_.quick) sizes_ = sizes->text();
    std::vector<std::string> ids;
    root.at("artifacts").each([&](const JsonCursor& c) { ids.push_back(c.at("id").text()); });
    for (const std::string& id : options_.only)
      if (std::find(ids.begin(), ids.end(), id) == ids.end())
        throw Error(fmt::format("{} has no table called '{}'", paper, id),
                    fmt::format("it has: {}", fmt::join(ids, ", ")));
    if (!options_.models.empty())
      root.at("artifacts").each([&](const JsonCursor& c) {
        if (!c.find("rows")) return;
        std::set<std::string>& exports = exports_[c.at("experiment").text()];
        for (const Row& row : read_rows(c.at("rows"), nullptr)) {
          if (row.buckets.empty()) exports.insert(row.workload);
          exports.insert(row.buckets.begin(), row.buckets.end());
        }
      });
    if (!options_.models.empty()) check_exports();
    root.at("artifacts").each([&](const JsonCursor& c) { artifact(c); });
    if (store_) result_.environments = environments(*store_);
    return std::move(result_);
  }

 private:
  /// Throws Error where the folder has no export of any table.
  void check_exports() const {
    std::set<std::string> all;
    for (const auto& [file, names] : exports_) all.insert(names.begin(), names.end());
    if (std::ranges::none_of(all, [&](const std::string& name) {
          return workload_name(name, false, options_.models) != name;
        }))
      throw Error(options_.models, 0, 0, "has none of the exports of the paper's models",
                  fmt::format("datasets/export/export.py --out writes them: {}", fmt::join(all, ", ")));
  }

  PaperExperiment& experiment(const std::string& file) {
    const auto known = experiments_.find(file);
    if (known != experiments_.end()) return known->second;
    PaperExperiment found;
    found.spec = read_experiment((home_ / file).string());
    if (!options_.models.empty()) take_exports(options_, exports_[file], found.spec);
    if (!options_.workloads.empty()) choose_workloads(options_, file != sizes_, found.spec);
    if (!options_.devices.empty()) choose_devices(options_, found.spec);
    found.workloads = found.spec.workloads;
    if (options_.quick) found.spec = on_tiny_models(std::move(found.spec));
    if (found.spec.has_peers()) take_dumps(options_, found.spec, result_.failures);
    if (options_.run && !found.spec.workloads.empty()) {
      store_.reset();  // trials are run by children (open_stores)
      RunnerOptions run;
      run.progress = options_.progress;
      const RunnerSummary summary = run_experiment(found.spec, options_.db, run);
      result_.failures.insert(result_.failures.end(), summary.failures.begin(), summary.failures.end());
    }
    if (!store_) store_ = Store::open(options_.db);
    found.results = read_results(*store_, found.spec.name);
    found.select();
    result_.versions.insert(found.version);
    result_.experiments.push_back(found.spec.name);
    return experiments_.emplace(file, std::move(found)).first->second;
  }

  /// Variants whose times should fall in this order, and do not.
  void check_order(const JsonCursor& order, const ValueContext& context, ReproducedTable& table) const {
    std::vector<std::string> variants;
    order.each([&](const JsonCursor& variant) { variants.push_back(variant.text()); });
    PaperExperiment& of = *context.experiment;
    const std::string& device = context.device;
    for (const std::string& name : of.spec.workloads)
      for (std::size_t i = 1; i < variants.size(); ++i) {
        const TrialResults *before = of.trial(name, variants[i - 1], device),
                           *after = of.trial(name, variants[i], device);
        if (before == nullptr || after == nullptr) continue;
        const auto earlier = before->median("total_us"), later = after->median("total_us");
        if (!earlier || !later || *later <= *earlier) continue;
        table.exceptions.push_back(
            fmt::format("{}: {} takes {:.2f} us, {} {:.2f} us ({:+.1f} %): {}", name, variants[i], *later,
                        variants[i - 1], *earlier, 100 * (*later / *earlier - 1),
                        cause_of(*after, *before, of.kernels_of(*store_, name, variants[i], device),
                                 of.kernels_of(*store_, name, variants[i - 1], device))));
      }
  }

  /// One table, or one for each of the experiment's devices.
  void artifact(const JsonCursor& c) {
    c.only({"id", "place", "title", "experiment", "barrier_kernel", "order", "rows", "row_names", "columns",
            "values", "figures", "notes", "layout", "each_device", "device", "best", "summary_of"});
    const std::string id = c.at("id").text();
    if (!options_.only.empty() && std::ranges::find(options_.only, id) == options_.only.end()) return;
    ValueContext context;
    context.device = device(c.find("device") ? c.at("device").text() : result_.device).id;
    context.quick = options_.quick;
    context.models = options_.models;
    if (const auto of = c.find("experiment")) context.experiment = &experiment(of->text());
    if (context.experiment != nullptr && !sizes_.empty()) experiment(sizes_);
    // A row a device: it is of all of them, and of no other.
    if (context.experiment != nullptr && c.find("summary_of"))
      context.device = context.experiment->spec.devices.front();
    context.store = store_ ? &*store_ : nullptr;
    if (!c.find("each_device") || !c.at("each_device").boolean()) return table(c, id, context);
    if (context.experiment == nullptr) c.fail("a table for each device of an experiment, and it has none");
    for (const std::string& device : context.experiment->spec.devices) {
      context.device = device;
      table(c, fmt::format("{}-{}", id, device), context);
      result_.tables.back().title += ", " + device;
    }
  }

  void table(const JsonCursor& c, const std::string& id, const ValueContext& context) {
    ReproducedTable table;
    table.id = id;
    table.artifact = c.at("id").text();
    table.place = c.at("place").text();
    table.title = c.at("title").text();
    table.device = context.device;
    if (const auto notes = c.find("notes"))
      notes->each([&](const JsonCursor& note) { table.notes.push_back(note.text()); });
    if (const auto layout = c.find("layout")) {
      if (layout->text() != "matrix") layout->fail("known layouts: matrix");
      table.matrix = true;
    }
    if (const auto of = c.find("summary_of")) summary(of->text(), table);
    if (const auto columns = c.find("columns")) add_rows(c, *columns, context, table);
    if (table.values.empty() && c.find("columns") && !result_.exports.empty())
      table.notes.insert(table.notes.begin(), "No dataset is a tiny variant of its models.");
    if (const auto values = c.find("values"))
      values->each([&](const JsonCursor& one) { add_value(one, context, table); });
    if (const auto order = c.find("order"); order && context.experiment != nullptr)
      check_order(*order, context, table);
    if (table.matrix) table.notes.push_back(fmt::format("All numbers: {}.", methods_of(table)));
    explain(table);
    if (const auto figures = c.find("figures"))
      figures->each([&](const JsonCursor& one) { table.figures.push_back(figure_of(one, table, context)); });
    result_.tables.push_back(std::move(table));
  }

  /// The table's own, or the document's, all or those it names.
  std::vector<Row> rows_of(const JsonCursor& c, const ValueContext& context) const {
    std::vector<Row> rows = read_rows(c.find("rows") ? c.at("rows") : *rows_, context.experiment);
    const auto names = c.find("row_names");
    if (!names) return rows;
    std::vector<Row> named;
    names->each([&](const JsonCursor& name) {
      const auto row = std::ranges::find(rows, name.text(), &Row::row);
      if (row == rows.end()) name.fail("the document has no such row");
      named.push_back(*row);
    });
    return named;
  }

  void add_rows(const JsonCursor& c, const JsonCursor& columns, const ValueContext& context,
                ReproducedTable& table) {
    const auto& known = context.experiment->spec.workloads;
    std::set<std::string> small;
    for (Row row : rows_of(c, context)) {
      const auto run_as = [&](const std::string& name) {
        return workload_name(name, options_.quick, options_.models);
      };
      const auto is_known = [&](const std::string& name) {
        return std::ranges::find(known, run_as(name)) != known.end();
      };
      const std::string workload = run_as(row.workload);
      if (row.buckets.empty() ? !is_known(row.workload) : !std::ranges::all_of(row.buckets, is_known))
        continue;
      // A tiny variant stands for a model of all sizes, and for none of the paper's numbers.
      if (options_.quick && workload != row.workload + "_tiny") {
        if (!small.insert(workload).second) continue;
        row.row = workload;
      }
      columns.each([&](const JsonCursor& column) {
        each_variant(column, context, [&](const std::string& variant) {
          table.values.push_back(value_of(column, row.row, row.workload, context, variant));
          if (!sizes_.empty()) add_sizes(column, row, context, table.values.back());
        });
      });
      if (!c.find("best") || !c.at("best").boolean()) continue;
      if (auto best = best_of(context, workload)) table.best.emplace(row.row, *std::move(best));
    }
  }

  /// The same number of the model at the other sizes that stand for what the paper does not say.
  void add_sizes(const JsonCursor& column, const Row& row, ValueContext context, ReproducedValue& value) {
    if (!value.far()) return;
    value.unsaid = row.unsaid;
    context.experiment = &experiments_.at(sizes_);
    for (const std::string& size : row.sizes)
      if (const auto ours = value_of(column, row.row, size, context).ours)
        value.sizes.push_back({size, *ours});
  }

  void add_value(const JsonCursor& one, const ValueContext& context, ReproducedTable& table) {
    if (one.find("average_of") || one.find("variants")) {
      const std::vector<ReproducedValue> values =
          one.find("variants") ? comparable(table, context) : table.values;
      each_variant(one, context, [&](const std::string& variant) {
        ReproducedValue average = average_of(one, values, variant);
        // The paper's is of the whole models, by their sizes.
        if (!result_.exports.empty()) average.paper.reset();
        // A folder may have some of the exports: the paper's mean over the same rows.
        if (!options_.models.empty() && average.paper) {
          std::vector<double> numbers;
          for (const ReproducedValue& v : table.values)
            if (v.column == average.average_of && !v.averaged && v.paper) numbers.push_back(*v.paper);
          average.paper = mean_of(std::move(numbers), average.mean);
        }
        // A range of sizes that no tiny variant is in has no average.
        if (average.ours || !options_.quick) table.values.push_back(std::move(average));
      });
      return;
    }
    const auto workload = one.find("workload");
    table.values.push_back(value_of(one, one.at("row").text(), workload ? workload->text() : "", context));
  }

  /// Means of variants are over the same rows: those that all have, but for variants that have none.
  /// The table says which rows that leaves out, and by whom.
  static std::vector<ReproducedValue> comparable(ReproducedTable& table, const ValueContext& context) {
    std::set<std::string> some, rows;
    for (const ReproducedValue& v : table.values)
      if (v.ours && !v.averaged) some.insert(v.column);
    std::map<std::string, std::vector<std::string>> lacking;  // variants by row
    for (const ReproducedValue& v : table.values) {
      if (v.averaged) continue;
      rows.insert(v.row);
      if (!v.ours && some.contains(v.column)) lacking[v.row].push_back(v.column);
    }
    std::vector<ReproducedValue> result = table.values;
    std::erase_if(result, [&](const ReproducedValue& v) { return lacking.contains(v.row); });
    if (lacking.empty()) return result;
    std::map<std::string, std::vector<std::string>> by_variants;
    for (const auto& [row, variants] : lacking)
      by_variants[fmt::format("{}", fmt::join(variants, ", "))].push_back(row);
    std::string without;
    for (const auto& [variants, of] : by_variants)
      without += fmt::format("{}{} of {}", without.empty() ? "" : "; ", variants, fmt::join(of, ", "));
    table.notes.push_back(fmt::format(
        "Means are over the {} of {} rows that all have. No plan, as it failed or took more than {} s: {}.",
        rows.size() - lacking.size(), rows.size(), context.experiment->spec.timeout_s, without));
    return result;
  }

  /// Calls add(variant) for each of the experiment's where a column has `variants` "each", else add("").
  template <typename Add>
  void each_variant(const JsonCursor& column, const ValueContext& context, Add add) const {
    const auto variants = column.find("variants");
    if (!variants) return add(std::string());
    if (!variants->is("each")) variants->fail("known: each");
    for (const Variant& variant : context.experiment->spec.variants) add(variant.name);
  }

  /// Of the tables called `id`, one a device.
  void summary(const std::string& id, ReproducedTable& table) const {
    std::vector<const ReproducedTable*> of;
    for (const ReproducedTable& one : result_.tables)
      if (one.artifact == id) of.push_back(&one);
    summarise(of, table);
  }

  static std::string methods_of(const ReproducedTable& table) {
    std::set<std::string> methods;
    for (const ReproducedValue& v : table.values)
      if (v.ours) methods.insert(v.method);
    return methods.empty() ? "none" : made_of(methods);
  }

  ReproduceOptions options_;
  fs::path home_;
  Reproduction result_;
  std::optional<JsonCursor> rows_;
  /// With a folder of exports, by experiment: names of the rows' workloads.
  std::map<std::string, std::set<std::string>> exports_;
  std::string sizes_;  ///< the experiment of models at other sizes; "": there is none
  std::optional<Store> store_;
  std::map<std::string, PaperExperiment> experiments_;  ///< by file
};

void require_paper(const std::string& paper) {
  const std::vector<std::string> known = papers();
  if (std::find(known.begin(), known.end(), paper) == known.end())
    throw Error(fmt::format("no paper is called '{}'", paper),
                fmt::format("known: {}", fmt::join(known, ", ")));
}

}  // namespace

std::vector<std::string> papers() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder(), error))
    if (fs::exists(entry.path() / "paper.json")) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

Reproduction reproduce(const std::string& paper, const ReproduceOptions& options) {
  require_paper(paper);
  const fs::path home = folder() / paper;
  const std::string file = (home / "paper.json").string();
  const JsonDocument document(read_file(file), file, "stitchwork.paper/1", "a paper's figures",
                              "docs/experiments.md");
  return Reproducer(options, home).run(document.root(), paper);
}

std::vector<std::string> tables_of_figure(const std::string& paper, const std::string& id) {
  require_paper(paper);
  const std::string file = (folder() / paper / "paper.json").string();
  const JsonDocument document(read_file(file), file, "stitchwork.paper/1", "a paper's figures",
                              "docs/experiments.md");
  std::vector<std::string> tables;
  document.root().at("artifacts").each([&](const JsonCursor& table) {
    bool found = table.at("id").text() == id;
    if (const auto figures = table.find("figures"))
      figures->each([&](const JsonCursor& figure) { found = found || figure.at("id").text() == id; });
    if (found) tables.push_back(table.at("id").text());
  });
  return tables;
}

bool only_quick(const std::string& paper, const std::string& db) {
  require_paper(paper);
  bool whole = false, quick = false;
  const std::vector<ExperimentEntry> entries = list_experiments(Store::open(db));
  for (const auto& file : fs::directory_iterator(folder() / paper)) {
    if (file.path().extension() != ".json" || file.path().filename() == "paper.json") continue;
    const std::string name = read_experiment(file.path().string()).name;
    for (const ExperimentEntry& entry : entries) {
      whole = whole || entry.name == name;
      quick = quick || entry.name == name + kQuickSuffix;
    }
  }
  return quick && !whole;
}

bool Reproduction::compared() const {
  return std::ranges::any_of(tables, [](const ReproducedTable& table) {
    return std::ranges::any_of(table.values, [](const ReproducedValue& v) { return v.paper.has_value(); });
  });
}

std::string heading(const Reproduction& r) {
  std::string versions;
  for (const std::string& version : r.versions)
    if (version != results_version())
      versions +=
          fmt::format("Results of {}, not of this program's version {}. ",
                      version.empty() ? "a program from before results had a version" : "version " + version,
                      results_version());
  std::vector<std::string> devices;
  for (const ReproducedTable& table : r.tables)
    if (std::ranges::find(devices, table.device) == devices.end()) devices.push_back(table.device);
  if (devices.empty()) devices.push_back(r.device);
  std::string compares;
  if (r.compared())
    compares = r.quick
                   ? "The paper's figures are of whole models: with tiny ones only directions compare."
                   : "* differs by more than a quarter (of what is saved: what is left): what explains it "
                     "is below the table.";
  if (!r.exports.empty()) compares += fmt::format(" The whole models: {}.", r.exports);
  return fmt::format("{}{}\n{}: {}. {}{}", r.title, r.quick ? ", on tiny variants of its models" : "",
                     devices.size() == 1 ? "Device" : "Devices", fmt::join(devices, ", "), versions,
                     compares);
}

}  // namespace stitchwork
