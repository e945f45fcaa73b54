"""GPT-2 as Hugging Face transformers defines it in Flax: greedy decoding unrolled, and a training step."""

import math

import jax
import jax.numpy as jnp
from transformers import FlaxGPT2LMHeadModel, GPT2Config

from graphs import Dataset, constant, i32, index, normal, uniform

_SOURCE = "transformers.FlaxGPT2LMHeadModel (Radford et al., Language models are unsupervised multitask learners, 2019)"


def decoder(name, title, config, batch, context, steps):
    """`steps` tokens chosen greedily, one after the other: a loop over tokens unrolled, as tracing unrolls it.

    In: the parameters, the keys and values of `context` positions, the first token and its position.
    Out: the last token, its position, keys and values; so that copies of the graph can follow each other.
    """
    model = FlaxGPT2LMHeadModel(config, _do_init=False)
    params = model.params_shape_tree
    cache = jax.eval_shape(lambda: model.init_cache(batch, context))

    def function(params, cache, last, position):
        attention_mask = jnp.ones((batch, context), jnp.int32)
        for _ in range(steps):
            (logits, *_), variables = model.module.apply(
                {"params": params, "cache": cache},
                last,
                attention_mask,
                position,
                deterministic=True,
                return_dict=False,
                mutable=["cache"],
            )
            last = jnp.argmax(logits, axis=-1).astype(jnp.int32)
            position = position + 1
            cache = variables["cache"]
        return cache, last, position

    return Dataset(
        name,
        title,
        f"GPT-2, {config.n_layer} layers with a key-value cache of {context} positions, batch {batch}, "
        + ("one step of greedy decoding" if steps == 1 else f"{steps} steps of greedy decoding unrolled"),
        _SOURCE + ", inference",
        function,
        (params, cache, i32(batch, 1), i32(batch, 1)),
        {
            "cache*cache_index": constant(context // 2),
            "cache*cached_*": normal(),
            "last": index(0, config.vocab_size),
            "position": constant(context // 2),
        }
        | _parameter_inputs(config),
        _configuration(config) | {"batch": batch, "context": context, "steps": steps},
        large=True,
        kind="decoding",
    )


def training(name, title, config, batch, sequence):
    """One step of training by gradient descent: forward, backward, and the update of every parameter."""
    model = FlaxGPT2LMHeadModel(config, _do_init=False)
    rate = 1e-3

    def loss(params, tokens):
        positions = jnp.broadcast_to(jnp.arange(sequence), (batch, sequence))
        (logits, *_) = model.module.apply(
            {"params": params}, tokens, jnp.ones_like(tokens), positions, deterministic=True, return_dict=False
        )
        log_probability = jax.nn.log_softmax(logits[:, :-1])
        return -jnp.mean(jnp.take_along_axis(log_probability, tokens[:, 1:, None], axis=-1))

    def function(params, tokens):
        value, gradient = jax.value_and_grad(loss)(params, tokens)
        return value, jax.tree_util.tree_map(lambda p, g: p - rate * g, params, gradient)

    return Dataset(
        name,
        title,
        f"GPT-2, {config.n_layer} layers, batch {batch}, sequence {sequence}: loss, gradient and update, no dropout",
        _SOURCE + ", training",
        function,
        (model.params_shape_tree, i32(batch, sequence)),
        {"tokens": index(0, config.vocab_size)} | _parameter_inputs(config),
        _configuration(config) | {"batch": batch, "sequence": sequence, "learning_rate": rate},
        large=True,
        kind="training",
    )


def datasets():
    # DistilGPT2 (Sanh et al., 2019) is GPT-2 with half of the layers.
    return [
        decoder("gpt2_step", "DistilGPT2, one decoding step", GPT2Config(n_layer=6), 8, 128, 1),
        decoder("gpt2_decoder_10k", "GPT-2, decoding unrolled", GPT2Config(), 8, 128, 8),
        training("gpt2_training", "GPT-2, a training step", GPT2Config(), 2, 128),
    ]


def _parameter_inputs(config):
    """Distributions under which activations keep a scale near 1, so that an error anywhere reaches the output."""
    return {
        "params.*ln_*.scale": uniform(0.5, 1.5),
        "params.*bias": normal(0.0, 0.1),
        "params.*mlp.c_proj.kernel": normal(0.0, round(1.0 / math.sqrt(4 * config.n_embd), 6)),
        "params.*kernel": normal(0.0, round(1.0 / math.sqrt(config.n_embd), 6)),
        "params.*embedding": normal(),
    }


def _configuration(config):
    keys = ("vocab_size", "n_embd", "n_layer", "n_head", "n_positions", "activation_function", "layer_norm_epsilon")
    return {key: getattr(config, key) for key in keys}
