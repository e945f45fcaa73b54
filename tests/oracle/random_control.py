"""Random nests of JAX control flow: loops, branches and calls whose state is shared, swapped, duplicated, constant or dead.

The state of everything is a list of small values of a few kinds; each construct takes some of the values at hand and gives
values of the same kinds, so constructs nest freely. Bounds of loops are small, and data decide branches and some trips, also
through integers that float comparisons give. Values stay bounded: what an operation makes larger is brought back by a tanh or
a remainder, so that differences come from wrong values and not from amplified rounding.
"""

import random

import jax
import jax.numpy as jnp
from jax import lax

KINDS = (("f32", (5,)), ("f32", ()), ("s32", ()), ("s32", (5,)), ("f32", (3, 4)), ("pred", ()))
TYPES = {"f32": jnp.float32, "s32": jnp.int32, "pred": jnp.bool_}
DEEPEST = 3
LARGEST = 16  # constructs and operations in one function


def function(seed):
    """(a JAX function, its arguments' shapes) of this seed."""
    draw = random.Random(seed)
    kinds = [draw.choice(KINDS[:5]) for _ in range(draw.randint(1, 4))] + [("s32", ())]
    program, made = block(draw, kinds, 0, [LARGEST])
    new = range(len(kinds), len(made))
    outputs = draw.sample(new, min(len(new), 6)) + [draw.randrange(len(made))]  # the last may be one of the others, or a parameter

    def fn(*values):
        everything = program(list(values))
        return [everything[index] for index in outputs]

    return fn, [jax.ShapeDtypeStruct(shape, TYPES[kind]) for kind, shape in kinds]


# A block is (a function from the list of values at hand to a longer list, the kinds of all of these).
def block(draw, kinds, depth, left):
    steps, kinds = [], list(kinds)
    for _ in range(draw.randint(1, 3 if depth < 2 else 2)):
        left[0] -= 1
        nested = depth < DEEPEST and left[0] > 0 and draw.random() < 0.7
        makers = [draw.choice((operation,) * 4 + (constant,))]
        if nested:  # an operation before and behind: kernels that read what the construct takes, and what it gives
            makers = [operation, draw.choice((fori, fori, while_, cond, cond, switch, scan, call)), operation]
        for make in makers:
            step, made = make(draw, kinds, depth, left)
            steps.append(step)
            kinds += made

    def run(values):
        for step in steps:
            values = values + list(step(values))
        return values

    return run, kinds


def operation(draw, kinds, depth, left):
    """One value out of one or two at hand."""
    index = draw.randrange(len(kinds))
    kind, shape = kinds[index]
    same = [i for i, k in enumerate(kinds) if k == kinds[index]]
    other = draw.choice(same)
    scalars = [i for i, k in enumerate(kinds) if k[1] == () and k[0] != "pred"]
    by = draw.choice(scalars) if scalars else None
    choice, amount = draw.randrange(6), draw.choice((1, 2, 3))

    def step(values):
        x, y = values[index], values[other]
        if kind == "pred":
            return [(jnp.logical_not(x), x & y, x ^ y)[choice % 3]]
        if kind == "s32":
            s = values[by].astype(jnp.int32) if by is not None else 1
            return [(x + y, x * amount - y, jnp.where(x > y, x, -y), x + s, lax.rem(x, 5), x ^ amount)[choice] % 97]
        s = values[by].astype(jnp.float32) if by is not None else 0.5
        return [(x * 0.5 + y, jnp.tanh(x) - y, jnp.maximum(x, -y), jnp.tanh(x * s), jnp.sin(x + amount),
                 (jnp.cumsum(jnp.tanh(x)) if x.ndim == 1 else x[::-1] if x.ndim else x + amount))[choice]]

    return step, [(kind, shape)]


def constant(draw, kinds, depth, left):
    """A constant, a reduction to a scalar, or a truth value."""
    choice, number = draw.randrange(4), draw.choice((0, 1, 2, -1.5))
    index = draw.randrange(len(kinds))
    if choice == 0:
        kind, shape = draw.choice(KINDS[:5])
        return lambda values: [jnp.full(shape, number, TYPES[kind])], [(kind, shape)]
    if choice == 1 and kinds[index][0] != "pred":
        return lambda values: [values[index].sum() > number], [("pred", ())]
    if choice == 2:
        return lambda values: [lax.rem(jnp.abs(jnp.nan_to_num(values[index].sum() * 3)).astype(jnp.int32), 4)], [("s32", ())]
    return lambda values: [jnp.asarray(values[index].max() if values[index].dtype != bool else values[index], jnp.float32)], [("f32", ())]


def state_of(draw, kinds):
    """Values that a construct carries: some twice, so that two places of the state share one buffer."""
    chosen = [draw.randrange(len(kinds)) for _ in range(draw.randint(1, 3))]
    if draw.random() < 0.4:
        chosen.append(draw.choice(chosen))
    return chosen


def returned(draw, kinds, state):
    """For each kind of the state, the index of a value of it: its own place, another, or a new one; swaps and duplicates among them."""
    result = []
    for position, kind in enumerate(state):
        of_kind = [i for i, k in enumerate(kinds) if k == kind]
        newest = of_kind[-1]
        result.append(draw.choice((newest, newest, draw.choice(of_kind), position)))
    return result


def body(draw, kinds, state, extra, depth, left):
    """A function of (the state's values, extra values, all outer values) to new values of the state; it may close over outer values."""
    outer = draw.sample(range(len(kinds)), min(len(kinds), draw.randint(0, 2)))
    inner = state + extra + [kinds[i] for i in outer]
    if depth + 1 < DEEPEST and left[0] > 0 and draw.random() < 0.5:
        # The body is one construct over all of the state: kernels read elements of the state that then go into it, and end there.
        left[0] -= 1
        step, _ = draw.choice((fori, while_, cond, cond, switch))(draw, inner, depth + 1, left, list(range(len(state + extra))))
        return lambda values, extras, everything: step(list(values) + list(extras) + [everything[i] for i in outer])[: len(state)]
    program, made = block(draw, inner, depth + 1, left)
    chosen = returned(draw, made, state)

    def run(values, extras, everything):
        results = program(list(values) + list(extras) + [everything[i] for i in outer])
        return [results[i] for i in chosen]

    return run


def fori(draw, kinds, depth, left, chosen=None):
    chosen = chosen or state_of(draw, kinds)
    state = [kinds[i] for i in chosen]
    run = body(draw, kinds, state, [("s32", ())], depth, left)
    trips, integers = draw.choice((0, 1, 2, 3, 4)), [i for i, k in enumerate(kinds) if k == ("s32", ())]
    by = draw.choice(integers) if integers and draw.random() < 0.3 else None

    def step(values):
        last = trips if by is None else jnp.abs(values[by]) % 4
        return lax.fori_loop(0, last, lambda i, c: tuple(run(c, [i], values)), tuple(values[i] for i in chosen))

    return step, state


def while_(draw, kinds, depth, left, chosen=None):
    """Runs at most a few times, and stops early where a value of the state says so."""
    chosen = chosen or state_of(draw, kinds)
    state = [kinds[i] for i in chosen]
    run = body(draw, kinds, state, [("s32", ())], depth, left)
    most, watched, limit = draw.choice((1, 2, 3, 5)), draw.randrange(len(state)), draw.choice((-1, 0, 2, 9))

    def goes_on(carry):
        watch = carry[1][watched]
        early = watch if watch.dtype == bool else watch.sum() > limit
        return (carry[0] < most) & (early if limit != 9 else True)

    def step(values):
        first = (jnp.int32(0), tuple(values[i] for i in chosen))
        count, state = lax.while_loop(goes_on, lambda c: (c[0] + 1, tuple(run(c[1], [c[0]], values))), first)
        return [*state, count]

    return step, state + [("s32", ())]


def branches(draw, kinds, depth, left, count, chosen):
    chosen = chosen or state_of(draw, kinds)
    state = [kinds[i] for i in chosen]
    return chosen, state, [body(draw, kinds, state, [], depth, left) for _ in range(count)]


def cond(draw, kinds, depth, left, chosen=None):
    chosen, state, (yes, no) = branches(draw, kinds, depth, left, 2, chosen)
    index, limit = draw.choice((draw.randrange(len(kinds)), draw.choice(chosen))), draw.choice((0, 1, -0.5))

    def step(values):
        watch = values[index]
        taken = watch if watch.dtype == bool else watch.sum() > limit
        return lax.cond(taken, lambda *c: tuple(yes(c, [], values)), lambda *c: tuple(no(c, [], values)), *(values[i] for i in chosen))

    return step, state


def switch(draw, kinds, depth, left, chosen=None):
    chosen, state, bodies = branches(draw, kinds, depth, left, 3, chosen)
    integers = [i for i, k in enumerate(kinds) if k == ("s32", ())]
    index = draw.choice(integers) if integers else None

    def step(values):
        which = values[index] - 1 if index is not None else 1
        return lax.switch(which, [lambda *c, b=b: tuple(b(c, [], values)) for b in bodies], *(values[i] for i in chosen))

    return step, state


def scan(draw, kinds, depth, left, chosen=None):
    """Over a ramp; the values that it stacks up are left as one sum."""
    chosen = chosen or state_of(draw, kinds)
    state = [kinds[i] for i in chosen]
    run = body(draw, kinds, state, [("f32", ())], depth, left)
    steps, reverse = draw.choice((1, 2, 3)), draw.random() < 0.3

    def step(values):
        def once(carry, x):
            return tuple(run(carry, [x], values)), jnp.asarray(carry[0], jnp.float32).sum()
        state, seen = lax.scan(once, tuple(values[i] for i in chosen), jnp.linspace(-1, 1, steps), reverse=reverse)
        return [*state, jnp.tanh(seen).sum()]

    return step, state + [("f32", ())]


def call(draw, kinds, depth, left, chosen=None):
    chosen = chosen or state_of(draw, kinds)
    state = [kinds[i] for i in chosen]
    run = body(draw, kinds, state, [], depth, left)

    def step(values):
        return jax.jit(lambda *c: tuple(run(c, [], values)))(*(values[i] for i in chosen))

    return step, state
