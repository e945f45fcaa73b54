"""The subgraphs of the operator fission paper."""

import flax.linen
import jax
import jax.numpy as jnp

from graphs import Dataset, f32, normal
from transformer import module_dataset

_PAPER = "Venkatram and Oliaro, ML computation graph operator fission and fusion, section 2.3: "


def softmax_block(x, scores, values):
    """Figure 3: a softmax between two products, whose sum can join the second one."""
    return jax.nn.softmax(x @ scores, axis=-1) @ values


def softmax_subgraph(query, key, value):
    """The test graph of Korch's artifact: Div, Softmax, MatMul of attention in SegFormer's first stage."""
    scores = jnp.einsum("bqd,bkd->bqk", query, key) / jnp.sqrt(jnp.float32(query.shape[-1]))
    return jax.nn.softmax(scores, axis=-1) @ value


def relu_attention(query, key, value):
    """Attention by ReLU and its row sums, quadratic in the tokens as written."""
    weights = jax.nn.relu(query) @ jax.nn.relu(key).T
    return (weights / weights.sum(axis=-1, keepdims=True)) @ value


class _LinearAttention(flax.linen.Module):
    """Shen et al., Efficient attention, WACV 2021, equation 5: softmax of queries over features, of keys over tokens."""

    heads: int

    @flax.linen.compact
    def __call__(self, x):
        batch, tokens, width = x.shape
        qkv = flax.linen.Dense(3 * width, use_bias=False, name="qkv")(x)
        query, key, value = (
            part.reshape(batch, tokens, self.heads, width // self.heads) for part in jnp.split(qkv, 3, axis=-1)
        )
        query, key = jax.nn.softmax(query, axis=-1), jax.nn.softmax(key, axis=1)
        context = jnp.einsum("bnhd,bnhe->bhde", key, value)
        mixed = jnp.einsum("bnhd,bhde->bnhe", query, context)
        return flax.linen.Dense(width, name="out")(mixed.reshape(batch, tokens, width))


def _linear_attention(name, title, tokens, width, heads, golden=False):
    return module_dataset(
        name,
        title,
        "Linear attention: queries, keys and values in one product, softmax of queries over features and of keys over "
        "tokens, two products per head, projection; inference",
        "flax.linen modules put together as in Shen et al., Efficient attention, WACV 2021",
        _LinearAttention(heads),
        {"x": f32(1, tokens, width)},
        {"x": normal()},
        {"batch": 1, "tokens": tokens, "width": width, "heads": heads},
        golden,
        paper=_PAPER + "linear attention subgraph",
        substitution="The paper prints no sizes: here those of a 32 x 32 feature map." if not golden else None,
    )


def _softmax_block(name, title, rows, inner, columns, golden=False):
    return Dataset(
        name,
        title,
        "A softmax between two matrix products: its sum, written as a product, can join the second",
        "jax.nn.softmax between two products, as in Figure 3",
        softmax_block,
        (f32(rows, inner), f32(inner, columns), f32(columns, inner)),
        {"x": normal(), "scores": normal(0.0, round(inner**-0.5, 6)), "values": normal()},
        {"rows": rows, "inner": inner, "columns": columns},
        golden,
        large=not golden,
        kind="micro",
        paper=_PAPER + "softmax subgraph",
        substitution="The paper prints no sizes: here those of one attention head." if not golden else None,
    )


_KORCH = "Hu et al., Optimal Kernel Orchestration for Tensor Programs with Korch, ASPLOS 2024: "


def _softmax_subgraph(name, title, queries, keys, width, golden=False):
    return Dataset(
        name,
        title,
        "Products of queries and keys over the root of the width, their softmax, and its product with values; inference",
        "jax.nn.softmax between two products, as softmax_subgraph.onnx of Korch's artifact (humuyan/ASPLOS24-Korch-AE)",
        softmax_subgraph,
        (f32(1, queries, width), f32(1, keys, width), f32(1, keys, width)),
        {"query": normal(), "key": normal(), "value": normal()},
        {"queries": queries, "keys": keys, "width": width},
        golden,
        large=not golden,
        kind="micro",
        paper=_PAPER + "softmax subgraph",
        substitution="The paper prints no sizes: here those that Korch's artifact feeds." if not golden else None,
    )


def _relu_attention(name, title, tokens, width, golden=False):
    return Dataset(
        name,
        title,
        "Attention with ReLU in the place of exponentials, normalised by its row sums: linear in the tokens if the "
        "products are taken in another order; inference",
        "jnp products, as the attention of Cai et al., EfficientViT, ICCV 2023",
        relu_attention,
        (f32(tokens, width), f32(tokens, width), f32(tokens, width)),
        {"query": normal(0.5, 1.0), "key": normal(0.5, 1.0), "value": normal()},
        {"tokens": tokens, "width": width},
        golden,
        large=not golden,
        kind="micro",
        paper=_KORCH + "EfficientViT",
        substitution="One head of a 64 x 64 feature map." if not golden else None,
    )


def datasets():
    return [
        _linear_attention("linear_attention", "Linear attention", 1024, 256, 8),
        _linear_attention("linear_attention_tiny", "Linear attention, small", 7, 12, 3, golden=True),
        _softmax_block("softmax_block", "Softmax between two products", 512, 64, 512),
        _softmax_block("softmax_block_tiny", "Softmax between two products, small", 7, 5, 11, golden=True),
        _softmax_subgraph("softmax_subgraph", "Attention's softmax in SegFormer's first stage", 65536, 1024, 32),
        _softmax_subgraph("softmax_subgraph_tiny", "Attention's softmax, small", 9, 7, 5, golden=True),
        _relu_attention("relu_attention", "ReLU attention", 4096, 32),
        _relu_attention("relu_attention_tiny", "ReLU attention, small", 9, 5, golden=True),
    ]
