"""The micro graphs: one function each, its arguments' shapes, and how its inputs are to be filled."""

import dataclasses
from collections.abc import Callable

import flax.linen
import jax
import jax.numpy as jnp


@dataclasses.dataclass
class Dataset:
    """One exported graph. `arguments` are abstract; `inputs` overrides the generator, by parameter name."""

    name: str
    title: str
    description: str
    source: str
    function: Callable
    arguments: tuple
    inputs: dict
    configuration: dict
    golden: bool = False
    large: bool = False  # too large for tests to execute; committed compressed
    packages: tuple = ()  # it depends on, beyond those of all (export.py)
    dtype: jnp.dtype = jnp.float32  # of its arithmetic; parameters of mixed precision stay f32
    kind: str = "layer"  # docs/schema/dataset.schema.json lists them
    paper: str | None = None  # whose workload it is, and which
    substitution: str | None = None  # how it differs from the paper's own model, where that is not public


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def normal(mean=0.0, stddev=1.0):
    return {"distribution": "normal", "mean": mean, "stddev": stddev}


def uniform(low, high):
    return {"distribution": "uniform", "low": low, "high": high}


def index(low, high):
    return {"distribution": "index", "low": low, "high": high}


def constant(value):
    return {"distribution": "constant", "value": value}


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def layer_norm(x, scale, bias):
    # Two passes, the textbook form: the variance reads x - mean. BERT's own (bert_layer) is the one-pass form.
    module = flax.linen.LayerNorm(epsilon=1e-6, use_fast_variance=False)
    return module.apply({"params": {"scale": scale, "bias": bias}}, x)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x):
    return jax.nn.gelu(x, approximate=True)


def fig5(base, exponent, addend):
    power = jax.lax.pow(base, jnp.broadcast_to(exponent, base.shape))
    return jax.lax.broadcast_in_dim(power, addend.shape, (0,)) + addend


def row_sum(x):
    return jnp.sum(x, axis=1)


def column_sum(x):
    return jnp.sum(x, axis=0)


_ASTITCH = "AStitch (ASPLOS 2022), "
_LAYER_NORM_INPUTS = {"x": normal(0.5, 2.0), "scale": uniform(0.5, 1.5), "bias": normal()}


def _rows(name, title, description, source, function, rows, columns, golden=False):
    """A graph with one input x f32[rows,columns]."""
    shape = {"rows": rows, "columns": columns}
    # A unit normal: the default of matrices, 1/fan_in, would leave softmax nearly uniform and gelu nearly linear.
    inputs, paper = {"x": normal()}, source if source.startswith(_ASTITCH) else None
    arguments = (f32(rows, columns),)
    return Dataset(
        name, title, description, source, function, arguments, inputs, shape, golden, kind="micro", paper=paper
    )


def _layer_norm(name, title, rows, columns, golden=False):
    return Dataset(
        name,
        title,
        "flax.linen.LayerNorm over the last axis with scale and bias, variance in a second pass",
        "flax.linen.LayerNorm(use_fast_variance=False)",
        layer_norm,
        (f32(rows, columns), f32(columns), f32(columns)),
        _LAYER_NORM_INPUTS,
        {"rows": rows, "columns": columns, "epsilon": 1e-6},
        golden,
        kind="micro",
    )


def micro_graphs():
    softmax_text = ("jax.nn.softmax over the last axis", "jax.nn.softmax", softmax)
    gelu_text = ("Exact GELU: x (1 + erf(x / sqrt 2)) / 2", "jax.nn.gelu(approximate=False)", gelu)
    tanh_text = ("GELU by its tanh approximation", "jax.nn.gelu(approximate=True)", gelu_tanh)
    row_text = "Sum of every row"
    column_text = ("Sum of every column", "jax.numpy.sum(axis=0)", column_sum)
    return [
        _rows("softmax", "Softmax 4096 x 1024", *softmax_text, 4096, 1024),
        _rows("softmax_tiny", "Softmax 13 x 97", *softmax_text, 13, 97, golden=True),
        _layer_norm("layer_norm", "Layer norm 4096 x 768", 4096, 768),
        _layer_norm("layer_norm_tiny", "Layer norm 13 x 97", 13, 97, golden=True),
        _rows("gelu", "GELU (erf) 128 x 3072", *gelu_text, 128, 3072),
        _rows("gelu_tiny", "GELU (erf) 7 x 33", *gelu_text, 7, 33, golden=True),
        _rows("gelu_tanh", "GELU (tanh) 128 x 3072", *tanh_text, 128, 3072),
        _rows("gelu_tanh_tiny", "GELU (tanh) 7 x 33", *tanh_text, 7, 33, golden=True),
        Dataset(
            "fig5",
            "power - broadcast - add",
            "power<2> - broadcast<2,128> - add<2,128>: a heavy op recomputed by every consumer that inlines it. "
            "The exponent is a parameter, so that power stays a power.",
            _ASTITCH + "Figure 5",
            fig5,
            (f32(2), f32(), f32(2, 128)),
            {"base": uniform(0.5, 1.5), "exponent": constant(2), "addend": normal()},
            {"rows": 2, "columns": 128},
            golden=True,
            kind="micro",
            paper=_ASTITCH + "Figure 5",
        ),
        _rows(
            "row_750000x32",
            "Row reduction 750000 x 32",
            row_text + ": the small-block case, taken from DIEN",
            _ASTITCH + "Figure 6-(a)",
            row_sum,
            750000,
            32,
        ),
        _rows(
            "row_64x30000",
            "Row reduction 64 x 30000",
            row_text + ": the few-blocks case, taken from a Transformer",
            _ASTITCH + "Figure 6-(b)",
            row_sum,
            64,
            30000,
        ),
        _rows("row_tiny", "Row reduction 13 x 97", row_text, "jax.numpy.sum(axis=1)", row_sum, 13, 97, golden=True),
        _rows("column_sum", "Column reduction 8192 x 1024", *column_text, 8192, 1024),
        _rows("column_sum_tiny", "Column reduction 67 x 35", *column_text, 67, 35, golden=True),
    ]
