"""BERT as Hugging Face transformers defines it in Flax. Only shapes are needed: no weights are read."""

import math

import jax
import jax.numpy as jnp
import optax
from transformers import BertConfig, FlaxBertForPreTraining, FlaxBertModel
from transformers.models.bert.modeling_flax_bert import FlaxBertLayer

from graphs import Dataset, constant, f32, i32, index, normal, uniform
from steps import training_step

_PAPER = "AStitch (ASPLOS 2022), Table 2: BERT, "
_SOURCE = "transformers.FlaxBertModel (Devlin et al., BERT, NAACL 2019), inference, no dropout"


def model(name, title, config, batch, sequence, attention_mask, dtype=jnp.float32, golden=False, **more):
    """The whole model: token ids in, last hidden state and pooled output out."""
    flax_model = FlaxBertModel(config, dtype=dtype, _do_init=False)
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
        f"BERT, {config.num_hidden_layers} layers with pooler, batch {batch}, sequence {sequence}, inference",
        _SOURCE,
        function,
        (params, i32(batch, sequence), i32(batch, sequence), i32(batch, sequence)),
        inputs | _parameter_inputs(config, whole_model=True),
        _configuration(config, batch, sequence),
        golden,
        dtype=dtype,
        kind="inference",
        **more,
    )


def training(name, title, config, batch, sequence, dtype=jnp.float32, golden=False):
    """A step of pre-training: masked language model and next sentence, clipping, AdamW (Devlin et al., appendix A.2)."""
    model = FlaxBertForPreTraining(config, dtype=dtype, _do_init=False)

    def loss(params, batch):
        outputs = model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"], params=params)
        words, sentences = (x.astype(jnp.float32) for x in (outputs.prediction_logits, outputs.seq_relationship_logits))
        of_words = optax.softmax_cross_entropy_with_integer_labels(words, batch["labels"])
        of_sentences = optax.softmax_cross_entropy_with_integer_labels(sentences, batch["next_sentence_label"])
        masked = batch["masked"].astype(jnp.float32)
        return jnp.sum(of_words * masked) / (jnp.sum(masked) + 1e-5) + jnp.mean(of_sentences)

    tokens = i32(batch, sequence)
    shapes = {name: tokens for name in ("input_ids", "attention_mask", "token_type_ids", "labels", "masked")}
    return training_step(
        name,
        title,
        loss,
        model.params_shape_tree,
        shapes | {"next_sentence_label": i32(batch)},
        {
            "batch.input_ids": index(0, config.vocab_size),
            "batch.attention_mask": index(0, 2) if golden else constant(1),
            "batch.token_type_ids": index(0, 2),
            "batch.labels": index(0, config.vocab_size),
            "batch.masked": index(0, 2),
            "batch.next_sentence_label": index(0, 2),
        },
        optimiser={"learning_rate": 1e-4, "b1": 0.9, "b2": 0.999, "eps": 1e-6, "clip": 1.0, "weight_decay": 0.01},
        embedding=config.hidden_size**-0.5,  # the table of words is the head's matrix too
        description=f"One step of pre-training BERT, {config.num_hidden_layers} layers, batch {batch}, sequence {sequence}: "
        "masked-word and next-sentence loss, gradients, clipping by the global norm, AdamW; no dropout",
        source="transformers.FlaxBertForPreTraining (Devlin et al., BERT, NAACL 2019), optax.adamw; training",
        configuration=_configuration(config, batch, sequence),
        golden=golden,
        dtype=dtype,
        paper=_PAPER + "training, batch 12",
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
        _configuration(config, 1, sequence) | {"num_hidden_layers": 1},
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
    small = BertConfig(
        vocab_size=6,
        hidden_size=10,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=6,
        max_position_embeddings=6,
    )  # few sizes: tensors of one shape share their kernels
    # Zeros in the mask of what is executed: both sides of its select matter to the check.
    padded, half = index(0, 2), jnp.float16
    batch_200 = {"large": True, "paper": _PAPER + "inference, batch 200"}
    return [
        model("bert", "BERT-base, batch 200", base, 200, 128, constant(1), **batch_200),
        model("bert_fp16", "BERT-base, batch 200, mixed precision", base, 200, 128, constant(1), half, **batch_200),
        model("bert_fp16_tiny", "BERT, a small layer, mixed precision", small, 3, 5, padded, half, golden=True),
        training("bert_train", "BERT-base, a training step", base, 12, 128),
        training("bert_train_tiny", "BERT, a training step of a small layer", small, 3, 5, golden=True),
        training("bert_train_fp16", "BERT-base, a training step, mixed precision", base, 12, 128, half),
        training("bert_train_fp16_tiny", "BERT, a mixed-precision step of a small layer", small, 3, 5, half, True),
        model("bert_base", "BERT-base", base, 1, 128, constant(1)),
        layer("bert_layer", "BERT-base, one layer", base, 128),
        model("bert_tiny", "BERT, 2 small layers", tiny, 1, 16, padded, golden=True),
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


def _configuration(config, batch, sequence):
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
    return {"batch": batch, "sequence": sequence} | {key: getattr(config, key) for key in keys}
