"""Parts of Transformers: the attention block, rotary embeddings, a decoder layer, and an encoder layer for speech."""

import math

import flax.linen
import jax
import jax.numpy as jnp
from transformers.models.gptj import modeling_flax_gptj
from transformers.models.llama import modeling_flax_llama

from graphs import Dataset, f32, i32, index, normal, uniform


def attention(query, key, value, mask):
    """Scores, mask, softmax and the weighted sum, without projections and dropout."""
    return flax.linen.dot_product_attention(query, key, value, mask=mask[:, None, None, :] > 0)


def _angles(positions, dimension):
    """As every LLaMA and GPT-J implementation computes them: positions by 10000^(-2i/dimension)."""
    frequency = 1.0 / (10000.0 ** (jnp.arange(0, dimension, 2, dtype=jnp.float32) / dimension))
    return positions[..., None].astype(jnp.float32) * frequency


def rotary(query, key, positions):
    """LLaMA: the two halves of a head are the pair that is rotated (GPT-NeoX does the same)."""
    angles = _angles(positions, query.shape[-1])
    angles = jnp.concatenate([angles, angles], axis=-1)[:, :, None, :]
    rotate = modeling_flax_llama.apply_rotary_pos_emb
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    return rotate(query, sin, cos), rotate(key, sin, cos)


def rotary_interleaved(query, key, positions):
    """GPT-J: adjacent elements are the pair, and only the first quarter of a head is rotated, as in GPT-NeoX."""
    rotated = query.shape[-1] // 4
    angles = _angles(positions, rotated)
    sincos = jnp.sin(angles), jnp.cos(angles)

    def turn(x):
        head = modeling_flax_gptj.apply_rotary_pos_emb(x[..., :rotated], sincos)
        return jnp.concatenate([head, x[..., rotated:]], axis=-1)

    return turn(query), turn(key)


class _FeedForward(flax.linen.Module):
    intermediate: int
    activation: str

    @flax.linen.compact
    def __call__(self, x):
        y = flax.linen.Dense(self.intermediate, name="up")(x)
        y = getattr(flax.linen, self.activation)(y)
        return flax.linen.Dense(x.shape[-1], name="down")(y)


class _DecoderLayer(flax.linen.Module):
    """Vaswani et al., section 3.1: post-norm, ReLU."""

    heads: int
    intermediate: int

    @flax.linen.compact
    def __call__(self, x, memory, memory_mask):
        def attend(name):
            return flax.linen.MultiHeadDotProductAttention(self.heads, deterministic=True, name=name)

        causal = flax.linen.make_causal_mask(x[..., 0])
        x = flax.linen.LayerNorm(name="norm_self")(x + attend("attention_self")(x, mask=causal))
        cross = attend("attention_cross")(x, memory, mask=memory_mask[:, None, None, :] > 0)
        x = flax.linen.LayerNorm(name="norm_cross")(x + cross)
        return flax.linen.LayerNorm(name="norm_out")(x + _FeedForward(self.intermediate, "relu", name="mlp")(x))


class _Conformer(flax.linen.Module):
    """Gulati et al., Conformer, INTERSPEECH 2020, Figure 1, as ESPnet's encoder layer; absolute positions."""

    heads: int
    intermediate: int
    kernel: int

    @flax.linen.compact
    def __call__(self, x):
        def half(name, y):
            z = flax.linen.LayerNorm(name=name + "_norm")(y)
            return y + 0.5 * _FeedForward(self.intermediate, "swish", name=name)(z)

        x = half("mlp_in", x)
        y = flax.linen.LayerNorm(name="attention_norm")(x)
        x = x + flax.linen.MultiHeadDotProductAttention(self.heads, deterministic=True, name="attention")(y)
        x = x + self._convolution(flax.linen.LayerNorm(name="conv_norm")(x))
        return flax.linen.LayerNorm(name="norm_out")(half("mlp_out", x))

    def _convolution(self, x):
        width = x.shape[-1]
        y = flax.linen.glu(flax.linen.Dense(2 * width, name="conv_in")(x))
        y = flax.linen.Conv(width, (self.kernel,), feature_group_count=width, name="conv_depthwise")(y)
        y = flax.linen.swish(flax.linen.BatchNorm(use_running_average=True, name="batch_norm")(y))
        return flax.linen.Dense(width, name="conv_out")(y)


def module_dataset(name, title, description, source, module, inputs, how, configuration, golden=False, **more):
    """A Flax module in inference; `inputs` is {name: shape} and `how` says how its parameters and inputs are filled."""
    variables = jax.eval_shape(lambda key, values: module.init(key, **values), jax.random.PRNGKey(0), inputs)

    def function(variables, inputs):
        return module.apply(variables, **inputs)

    function.__module__ = type(module).__module__
    function.__qualname__ = type(module).__qualname__
    how = parameters(variables) | {f"inputs.{key}": value for key, value in how.items()}
    return Dataset(
        name, title, description, source, function, (variables, inputs), how, configuration, golden, not golden, **more
    )


def parameters(variables):
    """Activations keep a scale near 1: matrices have a standard deviation of 1/sqrt(elements that are summed)."""
    how = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        name = ".".join(["variables", *(key.key for key in path)])
        if name.endswith((".scale", ".var")):
            how[name] = uniform(0.5, 1.5)
        elif leaf.ndim == 1 or name.endswith(".bias"):
            how[name] = normal(0.0, 0.1)
        else:
            # Attention projections: [in, heads, head] and, out of it, [heads, head, out]; the rest sum all but the last.
            into_heads = leaf.ndim == 3 and ".attention" in name and not name.endswith(".out.kernel")
            summed = leaf.shape[0] if into_heads else math.prod(leaf.shape[:-1])
            how[name] = normal(0.0, round(summed**-0.5, 6))
    return how


def _attention(name, title, batch, sequence, heads, head, golden=False):
    shape = f32(batch, sequence, heads, head)
    return Dataset(
        name,
        title,
        "Scaled dot-product attention: scores, mask, softmax over the keys, weighted sum of the values; no projections, "
        "no dropout",
        "flax.linen.dot_product_attention",
        attention,
        (shape, shape, shape, i32(batch, sequence)),
        {"query": normal(), "key": normal(), "value": normal(), "mask": index(0, 2)},
        {"batch": batch, "sequence": sequence, "heads": heads, "head": head},
        golden,
        large=not golden,
    )


def _rotary(name, title, function, batch, sequence, heads, head, golden=False):
    shape = f32(batch, sequence, heads, head)
    halves = function is rotary
    return Dataset(
        name,
        title,
        "Rotary position embedding of queries and keys, "
        + ("the halves of a head rotated" if halves else "adjacent pairs of a head's first quarter rotated")
        + ": slices, a negation, a concatenation, sine and cosine shared by all heads",
        "transformers' "
        + ("modeling_flax_llama" if halves else "modeling_flax_gptj")
        + ".apply_rotary_pos_emb (Su et al., RoFormer, 2021)",
        function,
        (shape, shape, i32(batch, sequence)),
        {"query": normal(), "key": normal(), "positions": index(0, sequence)},
        {"batch": batch, "sequence": sequence, "heads": heads, "head": head},
        golden,
        large=not golden,
    )


def _decoder(name, title, batch, sequence, memory, width, heads, intermediate, golden=False):
    return module_dataset(
        name,
        title,
        "One decoder layer of a Transformer, post-norm: causal self-attention, cross-attention over a masked memory, "
        "feed-forward block; inference",
        "flax.linen modules put together as in Vaswani et al., Attention is all you need, 2017, section 3.1",
        _DecoderLayer(heads, intermediate),
        {"x": f32(batch, sequence, width), "memory": f32(batch, memory, width), "memory_mask": i32(batch, memory)},
        {"x": normal(), "memory": normal(), "memory_mask": index(0, 2)},
        {"batch": batch, "sequence": sequence, "memory": memory, "width": width, "heads": heads}
        | {"intermediate": intermediate},
        golden,
    )


def _asr(name, title, sequence, width, heads, intermediate, kernel, golden=False):
    return module_dataset(
        name,
        title,
        "One Conformer encoder layer: half feed-forward, self-attention, convolution module with GLU and batch norm, half "
        "feed-forward; inference",
        "flax.linen modules put together as in ESPnet's conformer.EncoderLayer (Gulati et al., INTERSPEECH 2020)",
        _Conformer(heads, intermediate, kernel),
        {"x": f32(1, sequence, width)},
        {"x": normal()},
        {"batch": 1, "sequence": sequence, "width": width, "heads": heads, "intermediate": intermediate}
        | {"kernel": kernel},
        golden,
    )


def datasets():
    return [
        _attention("attention", "Attention block, 128 tokens, 12 heads", 1, 128, 12, 64),
        _attention("attention_tiny", "Attention block, 9 tokens, 3 heads", 2, 9, 3, 5, golden=True),
        _rotary("rotary", "Rotary embedding, rotated halves", rotary, 1, 128, 12, 64),
        _rotary("rotary_tiny", "Rotary embedding, rotated halves, small", rotary, 2, 7, 3, 10, golden=True),
        _rotary("rotary_interleaved", "Rotary embedding, interleaved", rotary_interleaved, 1, 128, 12, 64),
        _rotary(
            "rotary_interleaved_tiny", "Rotary embedding, interleaved, small", rotary_interleaved, 2, 7, 3, 24, golden=True
        ),
        _decoder("decoder_layer", "Transformer decoder layer", 1, 64, 96, 512, 8, 2048),
        _decoder("decoder_layer_tiny", "Small Transformer decoder layer", 2, 5, 7, 24, 3, 40, golden=True),
        _asr("asr_layer", "Conformer encoder layer", 200, 256, 4, 2048, 31),
        _asr("asr_layer_tiny", "Small Conformer encoder layer", 11, 12, 2, 20, 5, golden=True),
    ]
