// Memory-bound workloads of any size and type, as HLO text: what a training step is made of beside its matrix
// products.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace stitchwork::testing {

/// A domain of rows x cols of `dtype` ("f32", "bf16", "f16"). 16-bit inputs are widened, computed in f32 and
/// rounded once when they are stored, as frameworks do under mixed precision.
struct WorkloadSize {
  std::int64_t rows = 1, cols = 1;
  std::string dtype = "f32";
};

struct Workload {
  const char* name;
  std::string (*hlo)(const WorkloadSize&);
};

namespace workload_text {

/// The text of an entry computation, op by op; each emits a line and returns its name.
class Text {
 public:
  explicit Text(WorkloadSize size)
      : size_(std::move(size)),
        all_(fmt::format("[{},{}]", size_.rows, size_.cols)),
        rows_(fmt::format("[{}]", size_.rows)),
        cols_(fmt::format("[{}]", size_.cols)) {}

  const std::string& all() const { return all_; }
  const std::string& rows() const { return rows_; }
  const std::string& cols() const { return cols_; }
  const WorkloadSize& size() const { return size_; }

  std::string emit(const std::string& type, const std::string& expression) {
    std::string name = fmt::format("v{}", next_++);
    lines_ += fmt::format("  {} = {} {}\n", name, type, expression);
    return name;
  }
  std::string op(const std::string& shape, const std::string& expression) {
    return emit("f32" + shape, expression);
  }
  std::string raw(const std::string& type) { return emit(type, fmt::format("parameter({})", parameters_++)); }
  /// A parameter of the workload's type, widened.
  std::string input(const std::string& shape) {
    const std::string value = raw(size_.dtype + shape);
    return size_.dtype == "f32" ? value : op(shape, fmt::format("convert({})", value));
  }
  std::string scalar(const std::string& shape, double value) {
    return op(shape,
              fmt::format("broadcast({}), dimensions={{}}", op("[]", fmt::format("constant({})", value))));
  }
  std::string reduce(const std::string& shape, const std::string& value, int dimension, const char* by) {
    const std::string first = op("[]", by == std::string("max") ? "constant(-inf)" : "constant(0)");
    return op(shape,
              fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", value, first, dimension, by));
  }
  std::string row_sum(const std::string& value) { return reduce(rows_, value, 1, "sum"); }
  std::string row_mean(const std::string& value) {
    return op(rows_,
              fmt::format("divide({}, {})", row_sum(value), scalar(rows_, static_cast<double>(size_.cols))));
  }
  std::string along_cols(const std::string& of_rows) {
    return op(all_, fmt::format("broadcast({}), dimensions={{0}}", of_rows));
  }
  std::string along_rows(const std::string& of_cols) {
    return op(all_, fmt::format("broadcast({}), dimensions={{1}}", of_cols));
  }
  std::string map(const char* name, const std::string& a) { return op(all_, fmt::format("{}({})", name, a)); }
  std::string map(const char* name, const std::string& a, const std::string& b) {
    return op(all_, fmt::format("{}({}, {})", name, a, b));
  }
  std::string row_map(const char* name, const std::string& a, const std::string& b) {
    return op(rows_, fmt::format("{}({}, {})", name, a, b));
  }
  void output(const std::string& shape, const std::string& value) {
    outputs_.push_back(size_.dtype == "f32" ? value
                                            : emit(size_.dtype + shape, fmt::format("convert({})", value)));
    types_.push_back(size_.dtype + shape);
  }
  void output_f32(const std::string& shape, const std::string& value) {
    outputs_.push_back(value);
    types_.push_back("f32" + shape);
  }
  std::string take(const std::string& name) const {
    return fmt::format(
        "HloModule {}\n"
        "sum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}}\n"
        "max {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] maximum(a, b)\n}}\n"
        "ENTRY main {{\n{}  ROOT results = ({}) tuple({})\n}}\n",
        name, lines_, fmt::join(types_, ", "), fmt::join(outputs_, ", "));
  }

 private:
  WorkloadSize size_;
  std::string all_, rows_, cols_, lines_;
  std::vector<std::string> outputs_, types_;
  int next_ = 0, parameters_ = 0;
};

/// exp(x - max) and its row sums.
inline std::pair<std::string, std::string> exponentials(Text& t, const std::string& shifted) {
  const std::string e = t.map("exponential", shifted);
  return {e, t.row_sum(e)};
}
inline std::string shifted(Text& t, const std::string& x) {
  return t.map("subtract", x, t.along_cols(t.reduce(t.rows(), x, 1, "max")));
}

inline std::string softmax(const WorkloadSize& size) {
  Text t(size);
  const auto [e, sum] = exponentials(t, shifted(t, t.input(t.all())));
  t.output(t.all(), t.map("divide", e, t.along_cols(sum)));
  return t.take("softmax");
}

inline std::string masked_softmax(const WorkloadSize& size) {
  Text t(size);
  const std::string x = t.map("multiply", t.input(t.all()), t.scalar(t.all(), 0.125));
  const std::string mask = t.raw("pred" + t.all());
  const std::string masked =
      t.op(t.all(), fmt::format("select({}, {}, {})", mask, x, t.scalar(t.all(), -1e9)));
  const auto [e, sum] = exponentials(t, shifted(t, masked));
  t.output(t.all(), t.map("divide", e, t.along_cols(sum)));
  return t.take("masked_softmax");
}

inline std::string cross_entropy(const WorkloadSize& size) {
  Text t(size);
  const std::string s = shifted(t, t.input(t.all()));
  const auto [e, sum] = exponentials(t, s);
  const std::string log_p = t.map("subtract", s, t.along_cols(t.op(t.rows(), fmt::format("log({})", sum))));
  const std::string labels = t.raw("s32" + t.rows());
  const std::string hit =
      t.emit("pred" + t.all(),
             fmt::format("compare({}, {}), direction=EQ", t.emit("s32" + t.all(), "iota(), iota_dimension=1"),
                         t.emit("s32" + t.all(), fmt::format("broadcast({}), dimensions={{0}}", labels))));
  const std::string chosen =
      t.op(t.all(), fmt::format("select({}, {}, {})", hit, log_p, t.scalar(t.all(), 0)));
  t.output(t.all(), log_p);
  t.output_f32(t.rows(), t.op(t.rows(), fmt::format("negate({})", t.row_sum(chosen))));
  return t.take("cross_entropy");
}

/// (x - mean) / sqrt(variance + epsilon), and the reciprocal root of a row.
inline std::pair<std::string, std::string> normalised(Text& t, const std::string& x, bool centred) {
  const std::string c = centred ? t.map("subtract", x, t.along_cols(t.row_mean(x))) : x;
  const std::string variance = t.row_mean(t.map("multiply", c, c));
  const std::string r =
      t.op(t.rows(), fmt::format("rsqrt({})", t.row_map("add", variance, t.scalar(t.rows(), 1e-5))));
  return {t.map("multiply", c, t.along_cols(r)), r};
}

inline std::string norm(const WorkloadSize& size, bool centred) {
  Text t(size);
  const std::string n = normalised(t, t.input(t.all()), centred).first;
  std::string y = t.map("multiply", n, t.along_rows(t.input(t.cols())));
  if (centred) y = t.map("add", y, t.along_rows(t.input(t.cols())));
  t.output(t.all(), y);
  return t.take(centred ? "layer_norm" : "rms_norm");
}
inline std::string layer_norm(const WorkloadSize& size) { return norm(size, true); }
inline std::string rms_norm(const WorkloadSize& size) { return norm(size, false); }

/// Gradients of input, scale and (layer norm) offset.
inline std::string norm_grad(const WorkloadSize& size, bool centred) {
  Text t(size);
  const auto [n, r] = normalised(t, t.input(t.all()), centred);
  const std::string dy = t.input(t.all());
  const std::string g = t.map("multiply", dy, t.along_rows(t.input(t.cols())));
  std::string dx =
      t.map("subtract", g, t.map("multiply", n, t.along_cols(t.row_mean(t.map("multiply", g, n)))));
  if (centred) dx = t.map("subtract", dx, t.along_cols(t.row_mean(g)));
  t.output(t.all(), t.map("multiply", dx, t.along_cols(r)));
  t.output_f32(t.cols(), t.reduce(t.cols(), t.map("multiply", dy, n), 0, "sum"));
  if (centred) t.output_f32(t.cols(), t.reduce(t.cols(), dy, 0, "sum"));
  return t.take(centred ? "layer_norm_grad" : "rms_norm_grad");
}
inline std::string layer_norm_grad(const WorkloadSize& size) { return norm_grad(size, true); }
inline std::string rms_norm_grad(const WorkloadSize& size) { return norm_grad(size, false); }

inline std::string residual_norm(const WorkloadSize& size) {
  Text t(size);
  const std::string x = t.input(t.all()), bias = t.input(t.cols());
  const std::string biased = t.map("add", x, t.along_rows(bias));
  const std::string residual = t.input(t.all());
  const std::string kept =
      t.op(t.all(), fmt::format("select({}, {}, {})", t.raw("pred" + t.all()),
                                t.map("multiply", biased, t.scalar(t.all(), 1 / 0.9)), t.scalar(t.all(), 0)));
  const std::string n = normalised(t, t.map("add", kept, residual), true).first;
  const std::string scale = t.along_rows(t.input(t.cols())), offset = t.along_rows(t.input(t.cols()));
  t.output(t.all(), t.map("add", t.map("multiply", n, scale), offset));
  return t.take("residual_norm");
}

inline std::string gelu(const WorkloadSize& size) {
  Text t(size);
  const std::string x = t.input(t.all());
  const std::string erf = t.map("erf", t.map("multiply", x, t.scalar(t.all(), 0.70710678)));
  t.output(t.all(), t.map("multiply", t.map("multiply", x, t.scalar(t.all(), 0.5)),
                          t.map("add", erf, t.scalar(t.all(), 1))));
  return t.take("gelu");
}

/// 32 groups an image; scale and offset are a channel's, 8 channels a group.
inline std::string group_norm(const WorkloadSize& size) {
  constexpr std::int64_t kGroups = 32, kChannels = 8;
  Text t(size);
  SW_CHECK(size.rows % kGroups == 0 && size.cols % kChannels == 0, "group norm of {} groups of {} elements",
           size.rows, size.cols);
  const std::string n = normalised(t, t.input(t.all()), true).first;
  const std::string channels = fmt::format("[{}]", kGroups * kChannels);
  const std::string image =
      fmt::format("[{},{},{}]", size.rows / kGroups, kGroups * kChannels, size.cols / kChannels);
  const auto of_channels = [&](const std::string& v) {
    return t.op(image, fmt::format("broadcast({}), dimensions={{1}}", v));
  };
  const std::string scale = of_channels(t.input(channels)), offset = of_channels(t.input(channels));
  const std::string shaped = t.op(image, fmt::format("reshape({})", n));
  t.output(image,
           t.op(image, fmt::format("add({}, {})", t.op(image, fmt::format("multiply({}, {})", shaped, scale)),
                                   offset)));
  return t.take("group_norm");
}

inline std::string column_sum(const WorkloadSize& size) {
  Text t(size);
  t.output(t.cols(), t.reduce(t.cols(), t.input(t.all()), 0, "sum"));
  return t.take("column_sum");
}

/// Tensors of a transformer's shapes in turn: weights of rows x cols / 120 elements, and 79 times smaller
/// biases.
inline std::string adam(const WorkloadSize& size) {
  constexpr int kTensors = 200;
  Text t(size);
  const std::int64_t weight = std::max<std::int64_t>(1, size.rows * size.cols / 120);
  for (int i = 0; i < kTensors; ++i) {
    const std::string shape =
        fmt::format("[{}]", i % 5 < 3 ? weight : std::max<std::int64_t>(1, weight / 79));
    const std::string p = t.input(shape), g = t.input(shape), m = t.raw("f32" + shape),
                      v = t.raw("f32" + shape);
    const auto two = [&](const char* name, const std::string& a, const std::string& b) {
      return t.op(shape, fmt::format("{}({}, {})", name, a, b));
    };
    const auto mix = [&](const std::string& old, double keep, const std::string& now) {
      return two("add", two("multiply", old, t.scalar(shape, keep)),
                 two("multiply", now, t.scalar(shape, 1 - keep)));
    };
    const std::string m2 = mix(m, 0.9, g), v2 = mix(v, 0.999, two("multiply", g, g));
    const std::string root = t.op(shape, fmt::format("sqrt({})", v2));
    const std::string step =
        two("divide", two("multiply", m2, t.scalar(shape, 1e-3)), two("add", root, t.scalar(shape, 1e-8)));
    t.output(shape, two("subtract", p, step));
    t.output_f32(shape, m2);
    t.output_f32(shape, v2);
  }
  return t.take("adam");
}

}  // namespace workload_text

/// softmax, masked_softmax, cross_entropy (log-softmax and the loss of integer labels), layer_norm,
/// layer_norm_grad, rms_norm, rms_norm_grad, residual_norm (layer norm of residual + dropout mask of x +
/// bias), gelu, group_norm (cols: channels of a group x pixels), column_sum, adam (updates of 200 tensors of
/// rows x cols elements in all).
inline const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {{"softmax", workload_text::softmax},
                                            {"masked_softmax", workload_text::masked_softmax},
                                            {"cross_entropy", workload_text::cross_entropy},
                                            {"layer_norm", workload_text::layer_norm},
                                            {"layer_norm_grad", workload_text::layer_norm_grad},
                                            {"rms_norm", workload_text::rms_norm},
                                            {"rms_norm_grad", workload_text::rms_norm_grad},
                                            {"residual_norm", workload_text::residual_norm},
                                            {"gelu", workload_text::gelu},
                                            {"group_norm", workload_text::group_norm},
                                            {"column_sum", workload_text::column_sum},
                                            {"adam", workload_text::adam}};
  return all;
}

inline const Workload& workload(const std::string& name) {
  const auto found =
      std::find_if(workloads().begin(), workloads().end(), [&](const Workload& w) { return w.name == name; });
  SW_CHECK(found != workloads().end(), "no workload '{}'", name);
  return *found;
}

}  // namespace stitchwork::testing
