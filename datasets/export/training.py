"""Training: gradients of layer norm, one step of an MLP block, and an optimiser's update of a whole model's parameters."""

import flax.linen
import jax
import jax.numpy as jnp
import optax
from transformers import BertConfig, FlaxBertModel, FlaxViTForImageClassification, ViTConfig

from graphs import Dataset, constant, f32, i32, layer_norm, normal, uniform
from steps import adam, adam_inputs, adam_update

_ADAM = {"learning_rate": 1e-3, "b1": 0.9, "b2": 0.999, "eps": 1e-8}
_ADAMW = {"learning_rate": 1e-4, "b1": 0.9, "b2": 0.999, "eps": 1e-6, "clip": 1.0, "weight_decay": 0.01}
_SGD = {"learning_rate": 1e-2, "momentum": 0.9}


def layer_norm_grad(x, scale, bias, dy):
    """y, dx, dscale, dbias: rows are reduced for dx, columns for dscale and dbias."""
    y, pull = jax.vjp(layer_norm, x, scale, bias)
    return y, *pull(dy)


class _Mlp(flax.linen.Module):
    """The feed-forward block of a Transformer, pre-norm, with its residual."""

    hidden: int
    intermediate: int

    @flax.linen.compact
    def __call__(self, x):
        y = flax.linen.LayerNorm(name="norm")(x)
        y = flax.linen.Dense(self.intermediate, name="up")(y)
        y = flax.linen.gelu(y)
        return x + flax.linen.Dense(self.hidden, name="down")(y)


def _mlp_training(name, title, rows, hidden, intermediate, golden=False):
    module = _Mlp(hidden, intermediate)
    x = f32(rows, hidden)
    params = jax.eval_shape(lambda key, x: module.init(key, x), jax.random.PRNGKey(0), x)["params"]
    optimiser = optax.sgd(**_SGD)

    def mlp_training(params, momentum, x, target):
        def loss_of(params):
            return jnp.mean(jnp.square(module.apply({"params": params}, x) - target))

        loss, gradients = jax.value_and_grad(loss_of)(params)
        state = (optax.TraceState(trace=momentum), optax.EmptyState())
        updates, state = optimiser.update(gradients, state, params)
        return loss, optax.apply_updates(params, updates), state[0].trace

    return Dataset(
        name,
        title,
        "One training step of a Transformer's feed-forward block: layer norm, dense, GELU, dense, residual; mean squared "
        "error, gradients (column sums for biases and norm), SGD with momentum",
        "jax.value_and_grad of flax.linen modules, optax.sgd",
        mlp_training,
        (params, params, x, x),
        {
            "params.norm.scale": uniform(0.5, 1.5),
            "params.*bias": normal(0.0, 0.1),
            "params.up.kernel": normal(0.0, round(hidden**-0.5, 6)),
            "params.down.kernel": normal(0.0, round(intermediate**-0.5, 6)),
            "momentum.*": normal(0.0, 0.01),
            "x": normal(),
            "target": normal(),
        },
        {"rows": rows, "hidden": hidden, "intermediate": intermediate} | _SGD,
        golden,
        large=not golden,
        packages=("optax",),
        kind="training",
    )


def _adam(name, title, config, golden=False):
    """One update by Adam of every parameter of a vision Transformer; the sizes are the model's, scaled down."""
    model = FlaxViTForImageClassification(config, input_shape=(1, config.image_size, config.image_size, 3), _do_init=False)
    params = model.params_shape_tree
    tensors = len(jax.tree_util.tree_leaves(params))
    optimiser = optax.adam(**_ADAM)

    def adam(params, gradients, mu, nu, count):
        state = (optax.ScaleByAdamState(count=count, mu=mu, nu=nu), optax.EmptyState())
        updates, state = optimiser.update(gradients, state, params)
        return optax.apply_updates(params, updates), state[0].mu, state[0].nu, state[0].count

    return Dataset(
        name,
        title,
        f"One Adam update of the {tensors} parameters of a {config.num_hidden_layers}-layer vision Transformer, sizes "
        "scaled down: many small independent kernels",
        "optax.adam (Kingma and Ba, ICLR 2015) over transformers.FlaxViTForImageClassification's parameters",
        adam,
        (params, params, params, params, i32()),
        {
            "params.*": normal(),
            "gradients.*": normal(),
            "mu.*": normal(0.0, 0.1),
            "nu.*": uniform(0.1, 1.0),
            "count": constant(7),
        },
        {"tensors": tensors, "num_hidden_layers": config.num_hidden_layers, "hidden_size": config.hidden_size} | _ADAM,
        golden,
        large=tensors > 100,
        packages=("optax",),
        kind="optimizer",
    )


def _adam_step(name, title, config, golden=False):
    """What a framework does to BERT's parameters once the gradients are there: clipping by the global norm, AdamW."""
    params = FlaxBertModel(config, _do_init=False).params_shape_tree
    transformation, place = adam(**_ADAMW)

    def adam_step(params, gradients, mu, nu, count):
        return adam_update(transformation, place, gradients, params, mu, nu, count)

    return Dataset(
        name,
        title,
        f"One AdamW update of the {len(jax.tree_util.tree_leaves(params))} parameters of BERT, {config.num_hidden_layers} "
        "layers, after clipping by the global norm of all gradients: a reduction that every tensor waits for",
        "optax.chain(clip_by_global_norm, adamw) (Loshchilov and Hutter, ICLR 2019) over transformers.FlaxBertModel's "
        "parameters",
        adam_step,
        (params, params, params, params, i32()),
        {"params.*": normal(), "gradients.*": normal(0.0, 0.1)} | adam_inputs(),
        {"num_hidden_layers": config.num_hidden_layers, "hidden_size": config.hidden_size} | _ADAMW,
        golden,
        large=not golden,
        packages=("optax",),
        kind="optimizer",
    )


def _layer_norm_grad(name, title, rows, columns, golden=False):
    return Dataset(
        name,
        title,
        "Layer norm over the last axis and its gradients dx, dscale, dbias: reductions of rows and of columns over the "
        "same tensors",
        "jax.vjp of flax.linen.LayerNorm(use_fast_variance=False)",
        layer_norm_grad,
        (f32(rows, columns), f32(columns), f32(columns), f32(rows, columns)),
        {"x": normal(0.5, 2.0), "scale": uniform(0.5, 1.5), "bias": normal(), "dy": normal()},
        {"rows": rows, "columns": columns, "epsilon": 1e-6},
        golden,
        large=not golden,
        kind="micro",
    )


def datasets():
    vit = {"num_attention_heads": 4, "num_labels": 10, "patch_size": 4}
    return [
        _layer_norm_grad("layer_norm_grad", "Layer norm and its gradients, 4096 x 768", 4096, 768),
        _layer_norm_grad("layer_norm_grad_tiny", "Layer norm and its gradients, 13 x 97", 13, 97, golden=True),
        _mlp_training("mlp_training", "Training step of an MLP block", 4096, 768, 3072),
        _mlp_training("mlp_training_tiny", "Training step of a small MLP block", 37, 24, 56, golden=True),
        _adam(
            "adam_200",
            "Adam update of 200 tensors",
            ViTConfig(hidden_size=48, intermediate_size=192, num_hidden_layers=12, image_size=32, **vit),
        ),
        _adam(
            "adam_tiny",
            "Adam update of 24 tensors",
            ViTConfig(hidden_size=12, intermediate_size=28, num_hidden_layers=1, image_size=8, **vit),
            golden=True,
        ),
        _adam_step("adam_step", "AdamW step of BERT-base", BertConfig()),
        _adam_step(
            "adam_step_tiny",
            "AdamW step of a small BERT",
            BertConfig(
                vocab_size=6,
                hidden_size=10,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=6,
                max_position_embeddings=6,
            ),
            golden=True,
        ),
    ]
