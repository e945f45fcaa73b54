"""What the kernels of kernels.py compute."""
import numpy


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
