"""LLaMA as Hugging Face transformers defines it in Flax: a decoder layer over a prompt, and a model decoding a token."""

import functools

import jax
import jax.numpy as jnp
from transformers import FlaxLlamaForCausalLM, LlamaConfig
from transformers.models.llama import modeling_flax_llama

import fill
from graphs import Dataset, constant, f32, i32, index, normal

_SOURCE = "transformers' modeling_flax_llama (Touvron et al., LLaMA, 2023; Grattafiori et al., The Llama 3 herd of models, 2024)"
_KEYS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
)

_sinusoidal_positions = modeling_flax_llama.create_sinusoidal_positions


@functools.lru_cache
def _positions_once(count, width):
    """The table of rotations is a constant of the model: one for all layers, not one a layer."""
    with jax.ensure_compile_time_eval():
        return _sinusoidal_positions(count, width)


modeling_flax_llama.create_sinusoidal_positions = _positions_once


def _config(hidden, inner, layers, heads, groups, vocabulary, positions):
    # Flax's model rotates with base 10,000; Llama 3's 500,000 and its scaling only change the table's numbers.
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        max_position_embeddings=positions,
        rms_norm_eps=1e-5,
    )


def _layer(name, title, config, sequence, golden=False):
    module = modeling_flax_llama.FlaxLlamaDecoderLayer(config)
    hidden, mask = f32(1, sequence, config.hidden_size), i32(1, sequence)
    params = jax.eval_shape(lambda key, h, m: module.init(key, h, m, m), jax.random.PRNGKey(0), hidden, mask)["params"]

    def function(params, hidden_states, attention_mask, position_ids):
        return module.apply({"params": params}, hidden_states, attention_mask, position_ids)[0]

    return Dataset(
        name,
        title,
        f"One LLaMA decoder layer over a prompt of {sequence} tokens: RMS norm, rotary embedding, grouped-query attention "
        f"({config.num_attention_heads} heads, {config.num_key_value_heads} of keys and values), SwiGLU; inference",
        _SOURCE,
        function,
        (params, hidden, mask, mask),
        {
            "hidden_states": normal(),
            "attention_mask": index(0, 2) if golden else constant(1),
            "position_ids": index(0, sequence),
        }
        | fill.parameters(params),
        {"batch": 1, "sequence": sequence} | {key: getattr(config, key) for key in _KEYS},
        golden,
        large=not golden,
    )


def _decode(name, title, config, batch, context, golden=False):
    """The whole model: one token in, the next one and the new cache out."""
    model = FlaxLlamaForCausalLM(config, input_shape=(1, 1), _do_init=False)
    params = model.params_shape_tree
    cache = jax.eval_shape(lambda: model.init_cache(batch, context))

    def function(params, cache, last, position):
        (logits, *_), variables = model.module.apply(
            {"params": params, "cache": cache},
            last,
            jnp.ones((batch, context), jnp.int32),
            position,
            deterministic=True,
            return_dict=False,
            mutable=["cache"],
        )
        return variables["cache"], jnp.argmax(logits, axis=-1).astype(jnp.int32), logits

    return Dataset(
        name,
        title,
        f"LLaMA, {config.num_hidden_layers} layers: one token decoded greedily with a key-value cache of {context} positions, "
        f"batch {batch}",
        _SOURCE + "; the sizes of Llama 3.2 1B" * (not golden),
        function,
        (params, cache, i32(batch, 1), i32(batch, 1)),
        {
            "cache*cache_index": constant(context // 2),
            "cache*cached_*": normal(),
            "last": index(0, config.vocab_size),
            "position": constant(context // 2),
        }
        | fill.parameters(params),
        {"batch": batch, "context": context} | {key: getattr(config, key) for key in _KEYS},
        golden,
        large=not golden,
        kind="decoding",
    )


def datasets():
    tiny = _config(12, 20, 1, 6, 2, 17, 8)  # heads of 2: three queries share a key
    return [
        _layer("llama_layer", "LLaMA 3 8B, one layer", _config(4096, 14336, 1, 32, 8, 128256, 512), 512),
        _layer("llama_layer_tiny", "Small LLaMA layer", _config(24, 20, 1, 6, 2, 17, 8), 5, golden=True),
        _decode("llama_decode", "LLaMA 3.2 1B, a token decoded", _config(2048, 8192, 16, 32, 8, 128256, 512), 1, 512),
        _decode("llama_decode_tiny", "Small LLaMA, a token decoded", tiny, 2, 8, golden=True),
    ]
