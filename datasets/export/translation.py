"""The Transformer of Vaswani et al., as Hugging Face transformers defines it in Flax (Marian): translation and training."""

import functools

import jax
import jax.numpy as jnp
import optax
from transformers import FlaxMarianMTModel, MarianConfig
from transformers.models.marian import modeling_flax_marian

import fill
from graphs import Dataset, constant, i32, index
from steps import training_step

_SOURCE = "transformers.FlaxMarianMTModel (Vaswani et al., Attention is all you need, NeurIPS 2017, Table 3, base)"
_SUBSTITUTION = (
    "The paper's is a production model: here the public base model, with the 30,000 words of Figure 6-(b). No beam search; "
    "26 decoding steps make about as many reductions (1,676) as section 2.1 counts (1,666)."
)
_KEYS = (
    "vocab_size",
    "d_model",
    "encoder_layers",
    "decoder_layers",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "activation_function",
    "max_position_embeddings",
)

_sinusoidal_positions = modeling_flax_marian.create_sinusoidal_positions


@functools.lru_cache
def _positions_once(count, width):
    """The table of positions is a constant of the model: one for all steps of the loop, not one a step."""
    with jax.ensure_compile_time_eval():
        return _sinusoidal_positions(count, width)


modeling_flax_marian.create_sinusoidal_positions = _positions_once


def _config(vocabulary, width, layers, heads, inner, positions):
    return MarianConfig(
        vocab_size=vocabulary,
        decoder_vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        activation_function="relu",
        max_position_embeddings=positions,
        scale_embedding=True,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )


def _translate(name, title, config, sequence, steps, dtype=jnp.float32, golden=False):
    """Encoder, then `steps` tokens chosen greedily with a key-value cache: the loop over tokens unrolled."""
    model = FlaxMarianMTModel(config, input_shape=(1, sequence), dtype=dtype, _do_init=False)
    params = model.params_shape_tree
    encoder_output = jax.ShapeDtypeStruct((1, sequence, config.d_model), dtype)
    cache_shapes = jax.eval_shape(lambda encoded: model.init_cache(1, steps, (encoded,)), encoder_output)

    def function(params, input_ids, attention_mask):
        encoded = model.encode(input_ids, attention_mask, params=params)
        # As generate() does it, but with the cache's shapes alone: model.init_cache draws random parameters for them.
        cache = jax.tree_util.tree_map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), cache_shapes)
        last, tokens = jnp.full((1, 1), config.decoder_start_token_id, jnp.int32), []
        for step in range(steps):
            outputs = model.decode(
                last,
                encoded,
                attention_mask,
                decoder_attention_mask=jnp.ones((1, steps), jnp.int32),
                decoder_position_ids=jnp.full((1, 1), step, jnp.int32),
                past_key_values=cache,
                params=params,
            )
            cache = outputs.past_key_values
            last = jnp.argmax(outputs.logits, axis=-1).astype(jnp.int32)
            tokens.append(last)
        return jnp.concatenate(tokens, axis=1), outputs.logits

    return Dataset(
        name,
        title,
        f"Transformer, {config.encoder_layers} + {config.decoder_layers} layers: a sentence of {sequence} tokens encoded, "
        f"{steps} tokens decoded greedily with a key-value cache, unrolled; batch 1, inference",
        _SOURCE + ", inference",
        function,
        (params, i32(1, sequence), i32(1, sequence)),
        {"input_ids": index(2, config.vocab_size), "attention_mask": index(0, 2) if golden else constant(1)}
        | fill.parameters(params, embedding=config.d_model**-0.5),
        {"batch": 1, "sequence": sequence, "steps": steps} | {key: getattr(config, key) for key in _KEYS},
        golden,
        large=not golden,
        dtype=dtype,
        kind="decoding",
        paper="AStitch (ASPLOS 2022), Table 2: Transformer, inference, batch 1",
        substitution=_SUBSTITUTION,
    )


def _train(name, title, config, batch, sequence, dtype=jnp.float32, golden=False):
    model = FlaxMarianMTModel(config, input_shape=(1, sequence), dtype=dtype, _do_init=False)

    def loss(params, batch):
        logits = model(
            batch["input_ids"], batch["attention_mask"], decoder_input_ids=batch["decoder_input_ids"], params=params
        ).logits
        goal = optax.smooth_labels(jax.nn.one_hot(batch["labels"], config.vocab_size), 0.1)
        return jnp.mean(optax.softmax_cross_entropy(logits.astype(jnp.float32), goal))

    tokens = i32(batch, sequence)
    return training_step(
        name,
        title,
        loss,
        model.params_shape_tree,
        {name: tokens for name in ("input_ids", "attention_mask", "decoder_input_ids", "labels")},
        {f"batch.{name}": index(2, config.vocab_size) for name in ("input_ids", "decoder_input_ids", "labels")}
        | {"batch.attention_mask": index(0, 2) if golden else constant(1)},
        optimiser={"learning_rate": 1e-3, "b1": 0.9, "b2": 0.98, "eps": 1e-9},
        embedding=config.d_model**-0.5,
        description=f"One training step of a Transformer, {config.encoder_layers} + {config.decoder_layers} layers, "
        f"{batch} pairs of sentences of {sequence} tokens: loss with label smoothing, gradients, Adam; no dropout",
        source=_SOURCE + ", optax; training",
        configuration={"batch": batch, "sequence": sequence} | {key: getattr(config, key) for key in _KEYS},
        golden=golden,
        dtype=dtype,
        paper="AStitch (ASPLOS 2022), Table 2: Transformer, training, batch 4,096 (tokens)",
        substitution=_SUBSTITUTION,
    )


def datasets():
    base = _config(30000, 512, 6, 8, 2048, 64)
    tiny = _config(23, 12, 1, 3, 20, 8)
    small = _config(6, 10, 1, 2, 6, 6)  # few sizes: tensors of one shape share their kernels
    return [
        _translate("transformer", "Transformer, translation", base, 32, 26),
        _translate("transformer_tiny", "Small Transformer, translation", tiny, 5, 2, golden=True),
        _translate("transformer_fp16", "Transformer, translation, mixed precision", base, 32, 26, jnp.float16),
        _translate("transformer_fp16_tiny", "Small Transformer, mixed precision", tiny, 5, 2, jnp.float16, golden=True),
        _train("transformer_train", "Transformer, a training step", base, 64, 64),
        _train("transformer_train_tiny", "Small Transformer, a training step", small, 3, 5, golden=True),
    ]
