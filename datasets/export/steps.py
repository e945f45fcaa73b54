"""A whole training step: forward, backward by JAX's autodiff, clipping, and the update of every parameter by Adam."""

import jax
import optax

import fill
from graphs import Dataset, constant, i32, normal, uniform


def adam(learning_rate, b1, b2, eps, clip=None, weight_decay=None):
    """(transformation, where Adam's state stands in its state): optax.adamw, behind clipping by the global norm if `clip`."""
    chain = [optax.clip_by_global_norm(clip)] if clip else []
    chain.append(optax.scale_by_adam(b1=b1, b2=b2, eps=eps))
    if weight_decay:
        chain.append(optax.add_decayed_weights(weight_decay))
    chain.append(optax.scale(-learning_rate))
    return optax.chain(*chain), 1 if clip else 0


def adam_update(transformation, place, gradients, params, mu, nu, count):
    """(params, mu, nu, count) after one update."""
    state = list(jax.eval_shape(transformation.init, params))  # all but Adam's are empty
    state[place] = optax.ScaleByAdamState(count=count, mu=mu, nu=nu)
    updates, state = transformation.update(gradients, tuple(state), params)
    return optax.apply_updates(params, updates), state[place].mu, state[place].nu, state[place].count


def adam_inputs():
    """Moments as they are in the middle of training; the second one is no square of a small number."""
    return {"mu*": normal(0.0, 0.01), "nu*": uniform(0.01, 0.1), "count": constant(7)}


def training_step(
    name, title, loss, params, batch, inputs, optimiser, description, source, configuration, embedding=1.0, **more
):
    """`loss(params, batch)` is a scalar; `params` and `batch` are pytrees of shapes, `inputs` says how `batch` is filled."""
    transformation, place = adam(**optimiser)

    def function(params, mu, nu, count, batch):
        value, gradients = jax.value_and_grad(loss)(params, batch)
        return value, *adam_update(transformation, place, gradients, params, mu, nu, count)

    function.__module__, function.__qualname__ = loss.__module__, loss.__qualname__
    return Dataset(
        name,
        title,
        description,
        source,
        function,
        (params, params, params, i32(), batch),
        inputs | fill.parameters(params, embedding=embedding) | adam_inputs(),
        configuration | optimiser,
        large=not more.get("golden"),
        packages=("optax",),
        kind="training",
        **more,
    )
