"""Tensor cores, asynchronous copies and narrow numbers (machines.cu), and what numpy says they compute."""
import numpy

from samples import AMPERE, EVERY, HOPPER, floats, launch, numbers, room


def eighths(*shape, seed=1):
    return (numpy.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(numpy.float16)


def narrow(value, exponent_bits, mantissa_bits):
    """The nearest float of eight bits, ties to even, saturated; without infinities where there are four exponent bits."""
    bias = (1 << exponent_bits - 1) - 1
    codes = range(127 if exponent_bits == 4 else 124)
    of = lambda c: (c >> mantissa_bits and (1 + (c & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)) * 2.**((c >> mantissa_bits) - bias) or (c & (1 << mantissa_bits) - 1) / (1 << mantissa_bits) * 2.**(1 - bias))
    best = min(codes, key=lambda c: (abs(of(c) - abs(float(value))), c & 1))
    return best | (128 if numpy.signbit(value) else 0), of(best) * (-1 if numpy.signbit(value) else 1)


def programs():
    x = floats(4, 128).astype(numpy.float16)
    e = numpy.exp(x.astype("f8") - x.max(axis=1, keepdims=True).astype("f8"))
    yield "softmax of halves", "machines", EVERY, {"x": x, "y": room((4, 128), "f2")}, {"y": (e / e.sum(axis=1, keepdims=True), 4e-3, 1e-3)}, [launch("half_softmax", 4, 32, ["x", "y", "i32:64"])]
    a, b = eighths(128, 160), eighths(160, 128, seed=2)
    for name, stages in (("three", 3), ("four", 4)):
        yield f"product, cp.async in {name} stages", "machines", AMPERE, {"a": a, "b": b, "c": room((128, 128), "f4")}, {"c": a.astype("f4") @ b.astype("f4")}, [
            launch(f"{name}_stages", [2, 2], 128, ["a", "b", "c", "i32:128", "i32:160"], shared_bytes=stages * 2 * (64 * 40 + 32 * 72))]
    a, b = (numpy.random.default_rng(k).integers(low, 9, shape).astype("f4") for k, low, shape in ((1, -8, (16, 32)), (2, 0, (32, 8))))
    right = [a[:, :k] @ (b[:k] + plus) for k, plus in ((16, 0), (8, 0), (32, 125), (8, 0))] + [numpy.concatenate([a[:8, :4] @ b[:4], numpy.zeros((8, 8))])]
    yield "fragments of mma", "machines", AMPERE, {"a": a, "b": b, "y": room((5, 16, 8), "f4")}, {"y": numpy.stack(right)}, [launch("fragments", 1, 32, ["a", "b", "y"])]
    v = numbers(32)
    out = numpy.zeros((4, 32), "i4")
    out[0] = v.sum()
    out[1, :16], out[1, 16:] = v[:16].min(), v[16:].min()
    out[2, ::2], out[2, 1::2] = numpy.bitwise_xor.reduce(v[::2]), numpy.bitwise_xor.reduce(v[1::2])
    matrix = numpy.arange(64).reshape(8, 8).T
    out[3] = [int(matrix.reshape(-1)[2 * k]) | int(matrix.reshape(-1)[2 * k + 1]) << 16 for k in range(32)]
    p = numbers(64, -8, 8).astype("f4") / 4
    as_bf = lambda f: (numpy.asarray(f, "f4").view("u4") >> 16).astype("u2")
    pairs = p.reshape(32, 2)
    yield "units of a warp", "machines", AMPERE, {"x": v, "y": room((4, 32), "i4"), "p": as_bf(p), "s": room(64, "u2")}, {
        "y": out, "s": as_bf((pairs * pairs[::-1] + numpy.maximum(pairs, .5)).reshape(-1))}, [launch("warp_units", 1, 32, ["x", "y", "p", "s"])]
    tiles = numbers(2 * 9 * 32 * 4).reshape(2, 9, 32, 4)
    t = tiles[:, :, ::-1]
    yield "warps that fetch, pipeline roles", "machines", AMPERE, {"x": tiles, "y": room((2, 32, 4), "i4")}, {
        "y": numpy.stack([t[..., 0].sum(axis=1), numpy.bitwise_xor.reduce(t[..., 1], axis=1), t[..., 2].max(axis=1), -t[..., 3].sum(axis=1)], axis=2)}, [launch("producers", 2, 64, ["x", "y", "i32:9"])]
    f = floats(300)
    yield "policies of the cache", "machines", AMPERE, {"x": f, "y": room(300, "f4")}, {"y": f + numpy.roll(f, -1)}, [launch("policies", 3, 128, ["x", "y", "i32:300"])]
    f = (floats(64) * 10.**numpy.linspace(-4, 5, 64)).astype("f4")
    f[:3] = 0, -0., 448
    codes, back = numpy.zeros((64, 4), "u1"), numpy.zeros((64, 2))
    for k, value in enumerate(f):
        codes[k, 0], back[k, 0] = narrow(value, 4, 3)
        codes[k, 1], back[k, 1] = narrow(value, 5, 2)
        codes[k, 2], codes[k, 3] = codes[k, 1], codes[k, 1] ^ 128
    yield "floats of eight bits", "machines", AMPERE, {"x": f, "c": room((64, 4), "u1"), "b": room((64, 2), "f4")}, {"c": codes, "b": back}, [launch("eight_bits", 1, 64, ["x", "c", "b"])]
    x = numbers(256)
    yield "ring of a cluster, remote mbarriers", "machines", HOPPER, {"x": x, "y": room(256, "i4")}, {"y": numpy.roll(x.reshape(4, 64), 1, axis=0)[:, ::-1].reshape(-1)}, [launch("cluster_ring", 4, 64, ["x", "y"])]
    other = x.reshape(2, 2, 64)[:, ::-1]
    yield "st.async within a cluster", "machines", HOPPER, {"x": x, "y": room(256, "i4")}, {
        "y": numpy.concatenate([other[..., ::2] * other[..., 1::2], other[..., ::2] + other[..., ::-1][..., ::2]], axis=2)}, [launch("async_stores", 4, 32, ["x", "y"])]
    halves = numpy.array([[lane + 100 * m, 0] for m in range(4) for lane in range(32)]).reshape(4, 8, 8).transpose(0, 2, 1)
    stored = [int(halves[m, r, 2 * c]) | int(halves[m, r, 2 * c + 1]) << 16 for m in range(4) for r in range(8) for c in range(4)]
    yield "stmatrix, elect, 128-bit swaps", "machines", HOPPER, {"y": room(160, "i4"), "w": numpy.zeros(2, "u8")}, {"y": numpy.array(stored + [1] * 32), "w": numpy.array([96, 32])}, [
        launch("hopper_bits", 1, 32, ["y", "w"])]
    a, b = numbers(64 * 32, -8, 9).reshape(64, 32).astype("f4"), numbers(8 * 32, -8, 9, seed=2).reshape(8, 32).astype("f4")
    yield "wgmma of bf16, tf32 and bytes", "machines", ("90a",), {"a": a, "b": b, "y": room((4, 64, 8), "f4")}, {
        "y": numpy.stack([-a @ b.T, a[:, :16] @ b[:, :16].T, -a @ b.T, a @ b.T])}, [launch("warpgroup_products", 1, 128, ["a", "b", "y"])]
