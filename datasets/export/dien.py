"""DIEN, for the click-through rate: embeddings, a GRU over the user's behaviours, attention, an AUGRU, an MLP."""

import flax.linen
import jax
import jax.numpy as jnp
import optax

import fill
from graphs import Dataset, i32, index
from steps import training_step

_SOURCE = (
    "flax.linen modules put together as in Zhou et al., Deep interest evolution network, AAAI 2019, section 4, with the "
    "layers and sizes of the authors' code (github.com/mouna99/dien) on Amazon Books"
)
_SUBSTITUTION = "The paper's is a production model: here the authors' public one."


class _Perceptron(flax.linen.Module):
    """Dense layers with sigmoids between, as the attention's and the auxiliary loss's networks."""

    widths: tuple
    dtype: jnp.dtype

    @flax.linen.compact
    def __call__(self, x):
        for i, width in enumerate(self.widths):
            x = flax.linen.Dense(width, dtype=self.dtype, name=f"dense{i}")(x)
            if i + 1 < len(self.widths):
                x = flax.linen.sigmoid(x)
        return x


class _Gates(flax.linen.Module):
    """The update, reset and candidate parts of a GRU step; `score` scales the update (AUGRU, equation 16)."""

    hidden: int
    dtype: jnp.dtype

    @flax.linen.compact
    def __call__(self, x, state, score=None):
        both = flax.linen.Dense(2 * self.hidden, dtype=self.dtype, name="gates")(jnp.concatenate([x, state], axis=-1))
        reset, update = jnp.split(flax.linen.sigmoid(both), 2, axis=-1)
        inner = jnp.concatenate([x, reset * state], axis=-1)
        candidate = jnp.tanh(flax.linen.Dense(self.hidden, dtype=self.dtype, name="candidate")(inner))
        if score is not None:
            update = (1.0 - score) * update
        return update * state + (1.0 - update) * candidate


class _Dice(flax.linen.Module):
    """The data-dependent activation of Zhou et al., DIN, KDD 2018, section 5.3."""

    train: bool

    @flax.linen.compact
    def __call__(self, x):
        scaled = flax.linen.BatchNorm(not self.train, use_bias=False, use_scale=False, dtype=x.dtype, name="norm")(x)
        p = flax.linen.sigmoid(scaled)
        alpha = self.param("alpha", flax.linen.initializers.zeros, (x.shape[-1],)).astype(x.dtype)
        return alpha * (1.0 - p) * x + p * x


class _Dien(flax.linen.Module):
    users: int
    items: int
    categories: int
    embedding: int
    mlp: tuple
    attention: tuple
    auxiliary: tuple
    dtype: jnp.dtype = jnp.float32
    train: bool = False

    @flax.linen.compact
    def __call__(self, user, item, category, item_history, category_history, mask, item_other=None, category_other=None):
        """Logits [batch, 2] and, where behaviours not clicked are given (item_other), the auxiliary loss (equation 7)."""

        def table(name, rows):
            return flax.linen.Embed(rows, self.embedding, dtype=self.dtype, name=name)

        items, categories = table("item", self.items), table("category", self.categories)

        def pair(item, category):
            return jnp.concatenate([items(item), categories(category)], axis=-1)

        target, history = pair(item, category), pair(item_history, category_history)
        interests = self._run(_Gates(target.shape[-1], self.dtype, name="extractor"), history, mask)
        interests = jnp.stack(interests, axis=1)
        loss = 0.0
        if item_other is not None:
            loss = self._auxiliary(interests, history, pair(item_other, category_other), mask)
        scores = self._attend(target, interests, mask)
        final = self._run(_Gates(target.shape[-1], self.dtype, name="evolution"), interests, mask, scores)[-1]
        total = jnp.sum(history * mask[..., None].astype(history.dtype), axis=1)
        x = jnp.concatenate([table("user", self.users)(user), target, total, target * total, final], axis=-1)
        x = flax.linen.BatchNorm(not self.train, dtype=self.dtype, name="norm")(x)
        for i, width in enumerate(self.mlp):
            x = _Dice(self.train, name=f"dice{i}")(flax.linen.Dense(width, dtype=self.dtype, name=f"dense{i}")(x))
        return flax.linen.Dense(2, dtype=self.dtype, name="head")(x).astype(jnp.float32), loss

    def _run(self, cell, inputs, mask, scores=None):
        """The state after every step; behind the end of a user's behaviours it stays (TensorFlow's dynamic_rnn)."""
        state, states = jnp.zeros((inputs.shape[0], cell.hidden), self.dtype), []
        for t in range(inputs.shape[1]):
            following = cell(inputs[:, t], state, None if scores is None else scores[:, t, None])
            state = jnp.where(mask[:, t, None] > 0, following, state)
            states.append(state)
        return states

    def _attend(self, target, interests, mask):
        """The authors' din_fcn_attention: a perceptron of query, fact, their difference and product; softmax over time."""
        query = flax.linen.PReLU(name="query_prelu")(flax.linen.Dense(target.shape[-1], dtype=self.dtype, name="query")(target))
        query = jnp.broadcast_to(query[:, None].astype(self.dtype), interests.shape)
        features = jnp.concatenate([query, interests, query - interests, query * interests], axis=-1)
        scores = _Perceptron((*self.attention, 1), self.dtype, name="attention")(features)[..., 0]
        scores = jnp.where(mask > 0, scores.astype(jnp.float32), -(2.0**32) + 1)
        return jax.nn.softmax(scores, axis=-1).astype(self.dtype)

    def _auxiliary(self, interests, history, other, mask):
        network = _Perceptron((*self.auxiliary, 1), self.dtype, name="auxiliary")
        norm = flax.linen.BatchNorm(not self.train, dtype=self.dtype, name="auxiliary_norm")

        def logit(behaviours):
            pairs = jnp.concatenate([interests[:, :-1], behaviours[:, 1:]], axis=-1)
            return network(norm(pairs))[..., 0].astype(jnp.float32)

        clicked, not_clicked = logit(history), logit(other)
        losses = jax.nn.softplus(-clicked) + jax.nn.softplus(not_clicked)
        return jnp.mean(losses * mask[:, 1:])


def _inputs(batch, steps, users, items, categories, other=False):
    """(shapes, how they are filled) of one batch; `other` are the behaviours not clicked."""
    inputs = {
        "user": (i32(batch), index(0, users)),
        "item": (i32(batch), index(0, items)),
        "category": (i32(batch), index(0, categories)),
        "item_history": (i32(batch, steps), index(0, items)),
        "category_history": (i32(batch, steps), index(0, categories)),
        "mask": (i32(batch, steps), index(0, 2)),
    }
    if other:
        inputs |= {"item_other": inputs["item_history"], "category_other": inputs["category_history"]}
    return {key: shape for key, (shape, _) in inputs.items()}, {f"inputs.{key}": how for key, (_, how) in inputs.items()}


_BOOKS = {"users": 543060, "items": 367983, "categories": 1601, "embedding": 18}
_BOOKS |= {"mlp": (200, 80), "attention": (80, 40), "auxiliary": (100, 50)}
_TINY = {"users": 11, "items": 13, "categories": 5, "embedding": 3, "mlp": (9, 5), "attention": (7, 4), "auxiliary": (6, 4)}
_SMALL = {"users": 8, "items": 8, "categories": 8, "embedding": 4, "mlp": (6,), "attention": (6,), "auxiliary": (6,)}


def _dien(name, title, sizes, batch, steps, dtype=jnp.float32, golden=False):
    module = _Dien(**sizes, dtype=dtype)
    shapes, how = _inputs(batch, steps, sizes["users"], sizes["items"], sizes["categories"])
    variables = jax.eval_shape(lambda key, values: module.init(key, **values), jax.random.PRNGKey(0), shapes)

    def function(variables, inputs):
        return jax.nn.softmax(module.apply(variables, **inputs)[0])

    return Dataset(
        name,
        title,
        f"Click-through rate: embeddings, a GRU over {steps} behaviours, attention of each to the target item, a GRU whose "
        "update gate the attention scales, both unrolled, an MLP with batch norm and Dice; inference",
        _SOURCE,
        function,
        (variables, shapes),
        how | fill.parameters(variables, "variables"),
        {"batch": batch, "steps": steps} | sizes,
        golden,
        large=not golden,
        dtype=dtype,
        kind="inference",
        paper="AStitch (ASPLOS 2022), Table 2: DIEN, inference, batch 256",
        substitution=_SUBSTITUTION,
    )


def _train(name, title, sizes, batch, steps, golden=False):
    module = _Dien(**sizes, train=True)
    shapes, how = _inputs(batch, steps, sizes["users"], sizes["items"], sizes["categories"], other=True)
    variables = jax.eval_shape(lambda key, values: module.init(key, **values), jax.random.PRNGKey(0), shapes)

    def loss(params, batch):
        # Batch norm reads the batch's own statistics; the running ones (not trained) do not enter the step.
        batch = dict(batch)
        clicked = batch.pop("clicked")
        (logits, auxiliary), _ = module.apply({"params": params}, **batch, mutable=["batch_stats"])
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, clicked)) + auxiliary

    return training_step(
        name,
        title,
        loss,
        variables["params"],
        shapes | {"clicked": i32(batch)},
        {key.replace("inputs.", "batch."): value for key, value in how.items()} | {"batch.clicked": index(0, 2)},
        optimiser={"learning_rate": 1e-3, "b1": 0.9, "b2": 0.999, "eps": 1e-8},
        description=f"One training step of DIEN over {steps} behaviours: cross entropy and the auxiliary loss, gradients "
        "through both unrolled GRUs, scatters into the embeddings, Adam",
        source=_SOURCE + "; optax; training",
        configuration={"batch": batch, "steps": steps} | sizes,
        golden=golden,
        paper="AStitch (ASPLOS 2022), Table 2: DIEN, training, batch 256",
        substitution=_SUBSTITUTION,
    )


def datasets():
    half = jnp.float16
    return [
        _dien("dien", "DIEN", _BOOKS, 256, 100),
        _dien("dien_tiny", "Small DIEN", _TINY, 5, 3, golden=True),
        _dien("dien_fp16", "DIEN, mixed precision", _BOOKS, 256, 100, half),
        _dien("dien_fp16_tiny", "Small DIEN, mixed precision", _TINY, 5, 3, half, golden=True),
        _train("dien_train", "DIEN, a training step", _BOOKS, 256, 100),
        _train("dien_train_tiny", "Small DIEN, a training step", _SMALL, 5, 2, golden=True),
    ]
