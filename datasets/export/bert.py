"""BERT as Hugging Face transformers defines it in Flax. Only shapes are needed: no weights are read."""

import math

import jax
import jax.numpy as jnp
from transformers import BertConfig, FlaxBertModel
from transformers.models.bert.modeling_flax_bert import FlaxBertLayer

from graphs import Dataset, constant, f32, i32, index, normal, uniform

_SOURCE = "transformers.FlaxBertModel (Devlin et al., BERT, NAACL 2019), inference, no dropout"


def model(name, title, config, sequence, attention_mask, golden=False):
    """The whole model: token ids in, last hidden state and pooled output out."""
    flax_model = FlaxBertModel(config, _do_init=False)
    params = flax_model.params_shape_tree

    def function(params, input_ids, attention_mask, token_type_ids):
        # As FlaxBertModel.__call__ does, but without its default head mask of ones, which BERT itself does not have.
        position_ids = jnp.broadcast_to(jnp.arange(input_ids.shape[-1]), input_ids.shape)
        return flax_model.module.apply(
            {"params": params},
            input_ids,
            attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            head_mask=None,
            deterministic=True,
            return_dict=False,
        )

    inputs = {"input_ids": index(0, config.vocab_size), "attention_mask": attention_mask, "token_type_ids": index(0, 2)}
    return Dataset(
        name,
        title,
        f"BERT, {config.num_hidden_layers} layers with pooler, batch 1, sequence {sequence}, inference",
        _SOURCE,
        function,
        (params, i32(1, sequence), i32(1, sequence), i32(1, sequence)),
        inputs | _parameter_inputs(config, whole_model=True),
        _configuration(config, sequence),
        golden,
    )


def layer(name, title, config, sequence):
    """One encoder layer: attention and feed-forward block with their residuals and layer norms."""
    module = FlaxBertLayer(config)
    hidden, mask = f32(1, sequence, config.hidden_size), i32(1, sequence)
    params = jax.eval_shape(
        lambda key, h, m: module.init(key, h, m, None, deterministic=True), jax.random.PRNGKey(0), hidden, mask
    )["params"]

    def function(params, hidden_states, attention_mask):
        return module.apply({"params": params}, hidden_states, attention_mask, None, deterministic=True)[0]

    return Dataset(
        name,
        title,
        f"One encoder layer of BERT-base, batch 1, sequence {sequence}, inference",
        _SOURCE.replace("FlaxBertModel", "FlaxBertLayer"),
        function,
        (params, hidden, mask),
        {"hidden_states": normal(), "attention_mask": constant(1)} | _parameter_inputs(config, whole_model=False),
        _configuration(config, sequence) | {"num_hidden_layers": 1},
    )


def datasets():
    base = BertConfig()
    tiny = BertConfig(
        vocab_size=100,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=16,
    )
    return [
        model("bert_base", "BERT-base", base, 128, constant(1)),
        layer("bert_layer", "BERT-base, one layer", base, 128),
        # Zeros in the mask: both sides of its select matter to the check.
        model("bert_tiny", "BERT, 2 small layers", tiny, 16, index(0, 2), golden=True),
    ]


def _parameter_inputs(config, whole_model):
    """Distributions under which activations keep a scale near 1, so that an error anywhere reaches the output."""
    from_hidden = normal(0.0, round(1.0 / math.sqrt(config.hidden_size), 6))
    from_intermediate = normal(0.0, round(1.0 / math.sqrt(config.intermediate_size), 6))
    inputs = {
        "params.*LayerNorm.scale": uniform(0.5, 1.5),
        "params.*bias": normal(0.0, 0.1),
        "params.*attention.*kernel": from_hidden,
        "params.*intermediate.dense.kernel": from_hidden,
        "params.*output.dense.kernel": from_intermediate,  # attention.output matched above
    }
    if whole_model:
        inputs["params.pooler.dense.kernel"] = from_hidden
        inputs["params.embeddings.*.embedding"] = normal()  # their rows are the activations
    return inputs


def _configuration(config, sequence):
    keys = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
        "hidden_act",
        "layer_norm_eps",
    )
    return {"batch": 1, "sequence": sequence} | {key: getattr(config, key) for key in keys}
