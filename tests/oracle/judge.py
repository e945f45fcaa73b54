"""Are two programs' results the same, up to rounding, element by element?

The rule. An element of the outputs agrees with XLA's if its bits are the same, or both are NaN. Where they differ, rounding must
explain it: the outputs of the same text with its rounding perturbed (rounding.py) say how far XLA's own element moves. With
spread = the largest distance of a perturbed result from XLA's, a float agrees within
`FACTOR` * spread + `UNITS` units in the last place, an integer or truth value within the perturbed results' range. An element that
no perturbed run moves must have the same bits: there is no tolerance of the type, the tensor or its largest value.
"""

import dataclasses
import functools

import ml_dtypes
import numpy as np

import rounding
import xla_cpu

FACTOR = 4  # a few samples find about half of the largest error; two programs each have one
UNITS = 2  # of the element itself: the last operation of each program rounds
FIRST_SAMPLES, ALL_SAMPLES = 2, 20  # perturbed runs: to begin with, and before an element is called different


@dataclasses.dataclass
class Verdict:
    """What the comparison of all outputs found."""
    elements: int = 0
    allowed: int = 0  # elements whose bits differ and that rounding explains
    different: int = 0  # elements that it does not
    worst: str = ""  # the element farthest from its bound, in words
    excess: float = 0.0  # its distance over its bound


class Reference:
    """XLA's results of a text at given inputs, and how rounding moves them."""

    def __init__(self, text, inputs, seed=0):
        self.text, self.inputs, self.seed = text, inputs, seed
        self.sampled = []

    @functools.cached_property
    def expected(self):
        return xla_cpu.compiled(self.text)(self.inputs)

    def samples(self, count):
        """The outputs of `count` perturbed runs, each a list of arrays."""
        while len(self.sampled) < count:
            text = rounding.perturbed(self.text, self.seed * 1000 + len(self.sampled) + 1)
            self.sampled.append(xla_cpu.compiled(text)(self.inputs))
        return self.sampled


def judge(actual, reference):
    """The verdict on `actual`, a list of arrays, against the reference."""
    expected = reference.expected
    if [(a.shape, a.dtype) for a in actual] != [(e.shape, e.dtype) for e in expected]:
        return Verdict(different=1, excess=np.inf, worst=f"outputs are {shapes(actual)}, XLA's {shapes(expected)}")
    open_ = [np.flatnonzero(~same(a.ravel(), e.ravel())) for a, e in zip(actual, expected)]
    verdict = Verdict(elements=sum(e.size for e in expected))
    differing = sum(map(len, open_))
    for count in (FIRST_SAMPLES, ALL_SAMPLES):
        if not any(map(len, open_)):
            break
        samples = reference.samples(count)
        for output, where in enumerate(open_):
            if len(where):
                a, e = actual[output].ravel()[where], expected[output].ravel()[where]
                moved = np.stack([sample[output].ravel()[where] for sample in samples])
                open_[output] = where[~within(a, e, moved)[0]]
    verdict.different = sum(map(len, open_))
    verdict.allowed = differing - verdict.different
    for output, where in enumerate(open_):
        if len(where):
            describe(verdict, output, where, actual[output], expected[output], [sample[output] for sample in reference.sampled])
    return verdict


def same(a, e):
    """Elements whose bits are equal, or both NaN."""
    bits = f"u{a.dtype.itemsize}"
    equal = a.view(bits) == e.view(bits)
    return equal | (np.isnan(a) & np.isnan(e)) if is_float(a.dtype) else equal


def within(a, e, moved):
    """(whether a is within the bound of e, the bound) by element; `moved`: e in perturbed runs, one a row."""
    if not is_float(a.dtype):
        low, high = np.minimum(moved.min(axis=0), e), np.maximum(moved.max(axis=0), e)
        return (low <= a) & (a <= high), np.maximum(np.abs(high.astype("f8") - e), np.abs(low.astype("f8") - e))
    with np.errstate(all="ignore"):
        wide = np.longdouble if a.dtype == np.float64 else np.float64
        x, y, m = a.astype(wide), e.astype(wide), moved.astype(wide)
        spread = np.where(np.isfinite(m), np.abs(m - y), 0).max(axis=0)
        bound = np.where(spread > 0, FACTOR * spread + UNITS * unit(e).astype(wide), 0)
        ok = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= bound)
        # Zeros of other signs compare equal; only a sum that rounding makes zero may have either.
        ok &= (x != 0) | (y != 0) | (spread > 0)
        # Both are on the edge of overflow, or of an invalid operation: a perturbed run has what this program has.
        ok |= ~np.isfinite(x) & (same(np.broadcast_to(a, moved.shape).copy(), moved).any(axis=0))
        ok |= np.isfinite(x) & ~np.isfinite(y) & np.isfinite(m).any(axis=0)
        # XLA's code for the CPU gives zero for a subnormal result.
        ok |= (y == 0) & (np.abs(x) <= float(ml_dtypes.finfo(a.dtype).smallest_normal)) & (x != 0) & (a.dtype.itemsize > 2)
    return ok, bound


def describe(verdict, output, where, actual, expected, samples):
    a, e = actual.ravel()[where], expected.ravel()[where]
    _, bound = within(a, e, np.stack([sample.ravel()[where] for sample in samples]))
    with np.errstate(all="ignore"):
        distance = np.abs(a.astype("f8") - e.astype("f8"))
        excess = np.where(np.isnan(distance) | np.isinf(distance), np.inf, distance / np.maximum(bound.astype("f8"), 1e-300))
    k = int(np.argmax(excess))
    if excess[k] < verdict.excess:
        return
    index = ",".join(map(str, np.unravel_index(where[k], expected.shape)))
    verdict.excess = float(excess[k])
    verdict.worst = (f"{name(expected.dtype)} output {output}[{index}]: {a[k]!s}, XLA {e[k]!s}, rounding explains {float(bound[k]):.3g} "
                     f"({len(where)} of {expected.size} elements)")


def unit(e):
    """The distance of |e| to the next larger number of its type."""
    info = ml_dtypes.finfo(e.dtype)
    size = np.maximum(np.abs(e.astype("f8")), float(info.smallest_normal))
    return np.exp2(np.floor(np.log2(np.where(np.isfinite(size), size, 1)))) * float(info.eps)


def is_float(dtype):
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def name(dtype):
    return next((short for short, long in xla_cpu.DTYPES.items() if long == dtype.name), dtype.name)


def shapes(arrays):
    return ", ".join(f"{name(a.dtype)}[{','.join(map(str, a.shape))}]" for a in arrays) or "none"
