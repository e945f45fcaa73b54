"""What the kernels of kernels.py compute."""
import math
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import arithmetic


def softmax(x):
    e = numpy.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x, w, b):
    d = x - x.mean(axis=1, keepdims=True)
    return d / numpy.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b


def matmul(a, b):
    return a.astype(numpy.float32) @ b.astype(numpy.float32)


def attention(q, k, v):
    q, k, v = (t.astype(numpy.float32) for t in (q, k, v))
    return softmax((q @ k.transpose(0, 2, 1) * 0.125).reshape(-1, k.shape[1])).reshape(q.shape[0], q.shape[1], -1) @ v


def cumulative(x):
    return x.cumsum(axis=1)


def sorted_rows(x):
    return numpy.sort(x, axis=1)


def dropout(x):
    n = x.size
    keep = []
    for i in range(n):
        c = arithmetic.philox((i, 0, 0, 0), (7, 0))
        v = c[0] - (1 << 32) if c[0] >> 31 else c[0]
        v = -v - 1 if v < 0 else v
        keep.append(numpy.float32(v) * numpy.float32(4.6566127342e-10) > .5)
    return numpy.where(keep, x / .5, 0)


def extremes(x):
    return numpy.stack([x.max(axis=1), x.argmax(axis=1), x.argmin(axis=1)], axis=1)


def recurrence(a, x):
    decay = 1 / (1 + numpy.exp(-a.astype("f8")))
    h, out = numpy.zeros(x.shape[0]), numpy.zeros(x.shape)
    for k in range(x.shape[1]):
        h = decay[:, k] * h + x[:, k]
        out[:, k] = h
    return out


def shapes(x):
    n = x.shape[0]
    p = numpy.stack([x.T, x], axis=2).reshape(n, 2 * n)
    return p.reshape(2 * n, n)[:, ::-1]


def functions(x, y):
    a, b = x.astype("f8"), y.astype("f8")
    erf = numpy.vectorize(math.erf)
    return erf(a) + numpy.arctan2(a, b) + numpy.abs(a)**b + numpy.sin(a) + 2**b + numpy.log1p(numpy.abs(b)) + numpy.tanh(a) + (numpy.abs(b) + 1)**-.5


def half_products(a, b):
    c = a.astype("f8") @ b.astype("f8")
    return c / (1 + numpy.exp(-c))


def float_products(a, b):
    return a.astype("f8") @ b.astype("f8")


def small_floats(a, b):
    def e5m2(v):
        step = 2.**(numpy.floor(numpy.log2(numpy.maximum(numpy.abs(v.astype("f8")), 2.**-14))) - 2)
        return numpy.rint(v / step) * step
    return e5m2(a) @ e5m2(b)


def byte_products(a, b):
    return numpy.trunc(a * numpy.float32(20)) @ numpy.trunc(b * numpy.float32(20))


def welford(x):
    return x.astype("f8").var(axis=1)
