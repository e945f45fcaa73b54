"""HLO text of the memory-intensive graphs that are measured at many sizes, with the bytes that each must move.

A graph is named by family and sizes: softmax_16384x1024. torch_models.py has the same families for PyTorch.
"""

import json
import re

_ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
_MAX = "max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] maximum(a, b)\n}\n\n"


def _softmax(r, c):
    return _ADD + _MAX, f"""  x = f32[{r},{c}] parameter(0)
  lowest = f32[] constant(-inf)
  largest = f32[{r}] reduce(x, lowest), dimensions={{1}}, to_apply=max
  largest.row = f32[{r},{c}] broadcast(largest), dimensions={{0}}
  shifted = f32[{r},{c}] subtract(x, largest.row)
  power = f32[{r},{c}] exponential(shifted)
  zero = f32[] constant(0)
  sum = f32[{r}] reduce(power, zero), dimensions={{1}}, to_apply=add
  sum.row = f32[{r},{c}] broadcast(sum), dimensions={{0}}
  ROOT y = f32[{r},{c}] divide(power, sum.row)
""", 8 * r * c


def _normalised(x, r, c, scale, bias):
    """Layer norm of the value `x`, variance in a second pass, epsilon 1e-6."""
    return f"""  zero = f32[] constant(0)
  count = f32[] constant({c})
  counts = f32[{r}] broadcast(count), dimensions={{}}
  sum = f32[{r}] reduce({x}, zero), dimensions={{1}}, to_apply=add
  mean = f32[{r}] divide(sum, counts)
  mean.row = f32[{r},{c}] broadcast(mean), dimensions={{0}}
  centred = f32[{r},{c}] subtract({x}, mean.row)
  square = f32[{r},{c}] multiply(centred, centred)
  squares = f32[{r}] reduce(square, zero), dimensions={{1}}, to_apply=add
  variance = f32[{r}] divide(squares, counts)
  epsilon = f32[] constant(1e-06)
  epsilons = f32[{r}] broadcast(epsilon), dimensions={{}}
  shifted = f32[{r}] add(variance, epsilons)
  factor = f32[{r}] rsqrt(shifted)
  factor.row = f32[{r},{c}] broadcast(factor), dimensions={{0}}
  scale.row = f32[{r},{c}] broadcast({scale}), dimensions={{1}}
  bias.row = f32[{r},{c}] broadcast({bias}), dimensions={{1}}
  scaled = f32[{r},{c}] multiply(factor.row, scale.row)
  normal = f32[{r},{c}] multiply(centred, scaled)
  ROOT y = f32[{r},{c}] add(normal, bias.row)
"""


def _layer_norm(r, c):
    return _ADD, f"""  x = f32[{r},{c}] parameter(0)
  scale = f32[{c}] parameter(1)
  bias = f32[{c}] parameter(2)
""" + _normalised("x", r, c, "scale", "bias"), 8 * r * c + 8 * c


def _bias_residual_layer_norm(r, c):
    return _ADD, f"""  x = f32[{r},{c}] parameter(0)
  residual = f32[{r},{c}] parameter(1)
  offset = f32[{c}] parameter(2)
  scale = f32[{c}] parameter(3)
  bias = f32[{c}] parameter(4)
  offset.row = f32[{r},{c}] broadcast(offset), dimensions={{1}}
  with_offset = f32[{r},{c}] add(x, offset.row)
  total = f32[{r},{c}] add(with_offset, residual)
""" + _normalised("total", r, c, "scale", "bias"), 12 * r * c + 12 * c


def _gelu(r, c):
    return "", f"""  x = f32[{r},{c}] parameter(0)
  root = f32[] constant(0.707106769)
  roots = f32[{r},{c}] broadcast(root), dimensions={{}}
  scaled = f32[{r},{c}] multiply(x, roots)
  error = f32[{r},{c}] erf(scaled)
  one = f32[] constant(1)
  ones = f32[{r},{c}] broadcast(one), dimensions={{}}
  share = f32[{r},{c}] add(error, ones)
  half = f32[] constant(0.5)
  halves = f32[{r},{c}] broadcast(half), dimensions={{}}
  part = f32[{r},{c}] multiply(x, halves)
  ROOT y = f32[{r},{c}] multiply(part, share)
""", 8 * r * c


def _row_sum(r, c):
    return _ADD, f"""  x = f32[{r},{c}] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[{r}] reduce(x, zero), dimensions={{1}}, to_apply=add
""", 4 * r * c + 4 * r


def _column_sum(r, c):
    return _ADD, f"""  x = f32[{r},{c}] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[{c}] reduce(x, zero), dimensions={{0}}, to_apply=add
""", 4 * r * c + 4 * c


def _adam(r, c):
    n = f"f32[{r},{c}]"
    constants = {"b1": 0.9, "c1": 0.1, "b2": 0.999, "c2": 0.001, "rate": 0.001, "epsilon": 1e-8}
    text = "".join(f"  {name} = {n} parameter({i})\n" for i, name in enumerate(("weight", "gradient", "first", "second")))
    for name, value in constants.items():
        text += f"  {name} = f32[] constant({value})\n  {name}s = {n} broadcast({name}), dimensions={{}}\n"
    return "", text + f"""  first.old = {n} multiply(first, b1s)
  first.add = {n} multiply(gradient, c1s)
  first.new = {n} add(first.old, first.add)
  square = {n} multiply(gradient, gradient)
  second.old = {n} multiply(second, b2s)
  second.add = {n} multiply(square, c2s)
  second.new = {n} add(second.old, second.add)
  root = {n} sqrt(second.new)
  below = {n} add(root, epsilons)
  ratio = {n} divide(first.new, below)
  step = {n} multiply(ratio, rates)
  weight.new = {n} subtract(weight, step)
  ROOT out = ({n}, {n}, {n}) tuple(weight.new, first.new, second.new)
""", 28 * r * c


FAMILIES = {"softmax": _softmax, "layer_norm": _layer_norm, "bias_residual_layer_norm": _bias_residual_layer_norm, "gelu": _gelu,
            "row_sum": _row_sum, "column_sum": _column_sum, "adam": _adam}
# Filled so that an error anywhere reaches the output; Adam's second moment is a mean of squares (datasets/README.md, Inputs).
_NORMAL = {"distribution": "normal", "mean": 0.0, "stddev": 1.0}
_POSITIVE = {"distribution": "uniform", "low": 0.5, "high": 1.5}


def split(name):
    """("softmax", rows, columns) of softmax_16384x1024, or None where it names no graph of these."""
    found = re.fullmatch(r"(\w+?)_(\d+)x(\d+)", name)
    return (found[1], int(found[2]), int(found[3])) if found and found[1] in FAMILIES else None


def text(name):
    """The HLO text of the graph."""
    family, rows, columns = split(name)
    functions, body, _ = FAMILIES[family](rows, columns)
    return f"HloModule {name}\n\n{functions}ENTRY main {{\n{body}}}\n"


def compulsory_bytes(name):
    """Of the inputs, read once, and the outputs, written once."""
    family, rows, columns = split(name)
    return FAMILIES[family](rows, columns)[2]


def write(name, folder):
    """FOLDER/NAME.hlo, and how its parameters are filled in the JSON beside it; the path of the text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.hlo"
    content = text(name)
    parameters = re.findall(r"(\S+) = \S+ parameter\(", content[content.index("ENTRY") :])
    filled = {parameter: _POSITIVE if parameter in ("scale", "second") else _NORMAL for parameter in parameters}
    path.with_suffix(".json").write_text(json.dumps({"inputs": filled}))
    path.write_text(content)
    return path
