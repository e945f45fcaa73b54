"""Kernels in the manner of CUDA's samples and of well-known libraries (numeric.cu, bits.cu, warps.cu, memory.cu, libraries.cu), and what numpy says they compute."""
import hashlib
import math
import zlib

import numpy

from arithmetic import nearest, philox

EVERY, AMPERE, HOPPER = ("75", "80", "90", "100", "120"), ("80", "90", "100", "120"), ("90", "100", "120")


class room:
    """A buffer that nothing has written."""

    def __init__(self, shape, dtype):
        self.shape = shape if isinstance(shape, tuple) else (shape,)
        self.dtype = numpy.dtype(dtype)


def launch(kernel, grid, block, arguments, **more):
    return {"kernel": kernel, "grid": grid, "block": block, "arguments": arguments, **more}


def numbers(count, low=0, high=1000, seed=1):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


def floats(*shape, seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def words(count, seed=1):
    return numpy.random.default_rng(seed).integers(0, 1 << 32, count, dtype=numpy.uint32)


def numeric():
    def of(name, buffers, expected, steps, archs=EVERY):
        return name, "numeric", archs, buffers, expected, steps

    x = floats(64, 64)
    basis = numpy.array([[math.cos((2 * k + 1) * u * math.pi / 16) * (math.sqrt(1 / 8) if u == 0 else .5) for k in range(8)] for u in range(8)])
    tiles = x.astype("f8").reshape(8, 8, 8, 8).transpose(0, 2, 1, 3)
    yield of("DCT of 8 x 8", {"x": x, "y": room((64, 64), "f4")}, {"y": (basis @ tiles @ basis.T).transpose(0, 2, 1, 3).reshape(64, 64)}, [launch("dct8x8", [8, 8], [8, 8], ["x", "y", "i32:64"])])

    nz, ny, nx = 10, 20, 40
    field = floats(nz, ny, nx)
    wide = numpy.pad(field.astype("f8"), 3)
    inner = lambda z, y, x: wide[3 + z:3 + z + nz, 3 + y:3 + y + ny, 3 + x:3 + x + nx]
    right = .4 * inner(0, 0, 0)
    for k, w in ((1, .06), (2, .03), (3, .01)):
        right = right + w * sum(inner(*numpy.roll((s * k, 0, 0), axis)) for s in (-1, 1) for axis in range(3))
    yield of("FDTD in 3D", {"x": field, "y": room((nz, ny, nx), "f4")}, {"y": right}, [launch("fdtd3d", [3, 3], [16, 8], ["x", "y", f"i32:{nx}", f"i32:{ny}", f"i32:{nz}"])])

    bodies = numpy.concatenate([floats(300, 3), numpy.abs(floats(300, 1, seed=2))], axis=1)
    b = bodies.astype("f8")
    apart = b[None, :, :3] - b[:, None, :3]
    force = (apart * (b[None, :, 3] * ((apart**2).sum(axis=2) + .01)**-1.5)[:, :, None]).sum(axis=1)
    yield of("n bodies", {"x": bodies, "y": room((300, 4), "f4")}, {"y": numpy.pad(force, ((0, 0), (0, 1)))}, [
        launch("nbody", 3, 128, ["x", "y", "i32:300", "f32:0.01"], shared_bytes=128 * 16)])

    rows = floats(3, 1024)
    hadamard = numpy.array([[1.]])
    for _ in range(10):
        hadamard = numpy.block([[hadamard, hadamard], [hadamard, -hadamard]])
    yield of("Walsh transform", {"x": rows}, {"x": rows.astype("f8") @ hadamard}, [launch("walsh", 3, 256, ["x"])])

    spot, strike, years = (numpy.random.default_rng(k).uniform(low, high, 20) for k, (low, high) in enumerate(((5, 30), (1, 100), (.25, 10))))
    steps, rate, volatility, call = 500, .06, .1, []
    for s, k, t in zip(spot, strike, years):
        dt = t / steps
        v = volatility * math.sqrt(dt)
        up, down, grow = math.exp(v), math.exp(-v), math.exp(rate * dt)
        p = (grow - down) / (up - down)
        leaves = numpy.maximum(s * numpy.exp(v * (2. * numpy.arange(steps + 1) - steps)) - k, 0)
        for _ in range(steps):
            leaves = (p * leaves[1:] + (1 - p) * leaves[:-1]) / grow
        call.append(leaves[0])
    options = {"s": spot.astype("f4"), "k": strike.astype("f4"), "t": years.astype("f4")}
    yield of("binomial options", {**options, "y": room(20, "f4")}, {"y": (numpy.array(call), 1e-2)}, [
        launch("binomial", 20, 128, ["s", "k", "t", "y", f"i32:{steps}", f"f32:{rate}", f"f32:{volatility}"], shared_bytes=4 * (steps + 1))])
    normal = lambda d: numpy.array([.5 * math.erfc(-one / math.sqrt(2)) for one in d])
    d1 = (numpy.log(spot / strike) + (rate + .5 * .3 * .3) * years) / (.3 * numpy.sqrt(years))
    d2, discount = d1 - .3 * numpy.sqrt(years), numpy.exp(-rate * years)
    both = numpy.stack([spot * normal(d1) - strike * discount * normal(d2), strike * discount * (1 - normal(d2)) - spot * (1 - normal(d1))], axis=1)
    yield of("Black-Scholes in f64", {"s": spot, "k": strike, "t": years, "y": room((20, 2), "f8")}, {"y": both}, [
        launch("black_scholes", 1, 32, ["s", "k", "t", "y", "i32:20", f"f64:{rate}", "f64:0.3"])])

    directions = words(3 * 32)
    indices = numpy.arange(1000, dtype="u4")
    gray = indices ^ (indices >> 1)
    drawn = numpy.zeros((3, 1000), "u4")
    for d in range(3):
        for bit in range(32):
            drawn[d] ^= numpy.where(gray >> numpy.uint32(bit) & 1, directions[d * 32 + bit], 0).astype("u4")
    yield of("Sobol numbers", {"x": directions, "y": room((3, 1000), "f4")}, {"y": drawn.astype("f4") * numpy.float32(2.**-32)}, [launch("sobol", [2, 3], 128, ["x", "y", "i32:1000"])])

    signal = floats(2, 512, 2)
    spectrum = numpy.fft.fft(signal[..., 0] + 1j * signal[..., 1])
    yield of("FFT of 512", {"x": signal, "y": room((2, 512, 2), "f4")}, {"y": (numpy.stack([spectrum.real, spectrum.imag], axis=2), 1e-3)}, [launch("fft512", 2, 256, ["x", "y"])])

    image = floats(4, 200)
    taps = numpy.array([.01, .02, .03, .05, .06, .07, .08, .1, .16, .1, .08, .07, .06, .05, .03, .02, .01])
    padded = numpy.pad(image.astype("f8"), ((0, 0), (8, 8)))
    yield of("convolution of rows", {"x": image, "y": room((4, 200), "f4")}, {"y": sum(taps[k] * padded[:, k:k + 200] for k in range(17))}, [launch("convolve_rows", [2, 4], 128, ["x", "y", "i32:200"])])

    a, b = numpy.meshgrid(-2. + 3. * numpy.arange(50) / 50, -1.5 + 3. * numpy.arange(40) / 40)
    z, count = numpy.zeros((40, 50), complex), numpy.zeros((40, 50), "i4")
    for _ in range(60):
        inside = z.real**2 + z.imag**2 <= 4
        count += inside
        z = numpy.where(inside, z * z + (a + 1j * b), z)
    yield of("Mandelbrot", {"y": room((40, 50), "i4")}, {"y": count}, [launch("mandelbrot", [4, 5], [16, 8], ["y", "i32:50", "i32:40", "i32:60"])])

    matrices = floats(2, 32, 32) + 8 * numpy.eye(32, dtype="f4")
    factors = matrices.astype("f8")
    for m in factors:
        for k in range(32):
            m[k + 1:, k] /= m[k, k]
            m[k + 1:, k + 1:] -= numpy.outer(m[k + 1:, k], m[k, k + 1:])
    yield of("LU in registers", {"x": matrices}, {"x": factors}, [launch("lu32", 2, 32, ["x"])])

    left, right = (numpy.random.default_rng(k).integers(0, 4, (5, 64)).astype("u1") for k in (1, 2))
    distances = []
    for s, t in zip(left, right):
        row = list(range(65))
        for i in range(64):
            before, row[0] = row[0], i + 1
            for j in range(64):
                before, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, before + int(s[i] != t[j]))
        distances.append(row[64])
    yield of("edit distances", {"a": left, "b": right, "y": room(5, "i4")}, {"y": numpy.array(distances)}, [launch("edit_distance", 5, 96, ["a", "b", "y"])])

    pairs = numpy.random.default_rng(5).integers(0, 1 << 64, (2, 100), dtype=numpy.uint64)
    pairs[1, ::3] >>= numpy.uint64(40)
    signed = lambda v: v - (1 << 64) if v >> 63 else v
    out = []
    for p, q in zip(*pairs.tolist()):
        q |= 1
        sp, sq = signed(p), signed(q)
        quotient = abs(sp) // abs(sq) * (1 if (sp < 0) == (sq < 0) else -1)
        product = p * q + 12345
        out += [product, product >> 64, p // q, p % q, quotient, sp - quotient * sq, (product - p) >> 37, (p * q >> 64) ^ (sp * sq >> 64)]
    yield of("wide integers", {"a": pairs[0], "b": pairs[1], "y": room(800, "u8")}, {"y": numpy.array([v % (1 << 64) for v in out], "u8")}, [launch("wide_integers", 1, 128, ["a", "b", "y", "i32:100"])])


def signed32(v):
    return (v & 0xffffffff ^ 1 << 31) - (1 << 31)


def bit_tricks(x, y):
    field = lambda v, at, size: v >> at & ((1 << size) - 1)
    sfield = field(x, 5, 9)
    at = x & 31
    into = ((1 << 7) - 1) << at & 0xffffffff
    bytes_of = list(x.to_bytes(4, "little") + y.to_bytes(4, "little"))
    found, wanted = 0xffffffff, (y & 7) + 1
    for bit in range(32):
        if x >> bit & 1:
            wanted -= 1
            if wanted == 0:
                found = bit
                break
    s24 = lambda v: (v & 0xffffff ^ 1 << 23) - (1 << 23)
    sx, sy = signed32(x), signed32(y)
    shift = min(y & 63, 32)
    return [
        field(x, y & 31, y >> 8 & 31), sfield - 512 if sfield >> 8 else sfield, x << at & into | y & ~into, x ^ y ^ (x >> 3), int(f"{x:032b}"[::-1], 2), 32 - x.bit_length(),
        (x & -x).bit_length(), bin(x & y).count("1"), sum(bytes_of[0x5140 >> 4 * k & 7] << 8 * k for k in range(4)), ((y << 32 | x) << (x & 31)) >> 32, (y << 32 | x) >> shift,
        found, abs(x - y) + 5, (x * y >> 32) + (sx * sy >> 32), s24(x) * s24(y) + (x & 0xffffff) * (y & 0xffffff), (sx + sy + 1 >> 1) ^ (x + y >> 1)]


def packed(x, y):
    parts = lambda v, size, sign: [(p ^ 1 << size - 1) - (1 << size - 1) if sign else p for p in (v >> k & (1 << size) - 1 for k in range(0, 32, size))]
    join = lambda values, size: sum((v & (1 << size) - 1) << size * k for k, v in enumerate(values))
    each = lambda f, size, sign: join([f(a, b) for a, b in zip(parts(x, size, sign), parts(y, size, sign))], size)
    return [
        each(lambda a, b: a + b, 8, False), each(lambda a, b: max(a - b, 0), 8, False), each(lambda a, b: max(-128, min(127, a + b)), 8, True), each(lambda a, b: abs(a - b), 8, False),
        each(max, 8, True), each(lambda a, b: 255 if a > b else 0, 8, False), each(lambda a, b: a + b + 1 >> 1, 8, False), sum(abs(a - b) for a, b in zip(parts(x, 8, False), parts(y, 8, False))),
        each(lambda a, b: a + b, 16, False), each(min, 16, True), max(signed32(x + y), 17, 0), each(lambda a, b: max(a, b, 5), 16, True)]


def bits():
    def of(name, buffers, expected, steps, archs=EVERY):
        return name, "bits", archs, buffers, expected, steps

    def unsigned(values, size=32):
        return numpy.array([v % (1 << size) for v in values], f"u{size // 8}")

    x, y = words(200, 1), words(200, 2)
    x[:4], y[:4] = (0, 0xffffffff, 1, 1 << 31), (0, 0xffffffff, 1 << 31, 37)
    both = list(zip(x.tolist(), y.tolist()))
    once = ["a", "b", "y", "i32:200"]
    yield of("bit tricks", {"a": x, "b": y, "y": room(3200, "u4")}, {"y": unsigned([v for p in both for v in bit_tricks(*p)])}, [launch("bit_tricks", 2, 128, once)])
    wide = numpy.random.default_rng(3).integers(0, 1 << 64, 100, dtype=numpy.uint64)
    wide[0] = 0
    tricks = []
    for v in wide.tolist():
        into, size = (1 << 20) - 1 << 11, 1 << 64
        mantissa = numpy.array([v & (1 << 52) - 1 | 0x3ff << 52], "u8").view("f8") * 1.5
        tricks += [int(f"{v:064b}"[::-1], 2), 64 - v.bit_length(), (v & -v).bit_length(), bin(v).count("1"), (v << (v & 63) | v >> (-v & 63)) % size, v >> 7 & (1 << 33) - 1,
                   v << 11 & into | ~v & ~into, int(mantissa.view("u8")[0])]
    yield of("bit tricks, 64 bits", {"a": wide, "y": room(800, "u8")}, {"y": unsigned(tricks, 64)}, [launch("bit_tricks_64", 1, 128, ["a", "y", "i32:100"])])
    yield of("packed bytes", {"a": x, "b": y, "y": room(2400, "u4")}, {"y": unsigned([v for p in both for v in packed(*p)])}, [launch("packed_bytes", 2, 128, once)])

    dots = []
    for a, b in both:
        ua, ub = a.to_bytes(4, "little"), b.to_bytes(4, "little")
        sa, sb = (numpy.frombuffer(v, "i1").astype(int).tolist() for v in (ua, ub))
        ha = numpy.frombuffer(ua, "i2").astype(int).tolist()
        dot = lambda p, q: sum(i * j for i, j in zip(p, q))
        dots += [dot(sa, sb) + 7, dot(ua, ub) + 7, dot(ha, sb[:2]) - 3, dot(ha, sb[2:]) - 3]
    yield of("dp4a and dp2a", {"a": x.view("i4"), "b": y.view("i4"), "y": room(800, "i4")}, {"y": unsigned(dots).view("i4")}, [launch("dot_products", 2, 128, once)])

    data = numpy.random.default_rng(7).integers(0, 256, (128, 64)).astype("u1")
    yield of("CRC-32", {"x": data, "y": room(128, "u4")}, {"y": numpy.array([zlib.crc32(row.tobytes()) for row in data], "u4")}, [launch("crc32", 2, 64, ["x", "y"])])
    # A message of 55 bytes with its padding is one block.
    blocks = numpy.zeros((32, 64), "u1")
    blocks[:, :55], blocks[:, 55], blocks[:, 62:] = data[:32, :55], 0x80, numpy.frombuffer((55 * 8).to_bytes(2, "big"), "u1")
    digests = numpy.array([numpy.frombuffer(hashlib.sha256(row[:55].tobytes()).digest(), ">u4") for row in blocks]).astype("u4")
    yield of("SHA-256", {"x": blocks.view("u4"), "y": room((32, 8), "u4")}, {"y": digests}, [launch("sha256", 1, 32, ["x", "y"])])

    p, q = floats(200, 2, seed=3).astype("f2"), floats(200, 2, seed=4).astype("f2")
    f, g = p.astype("f4"), q.astype("f4")
    relu = numpy.stack([numpy.maximum(f[:, 0] * g[:, 0] + g[:, 1], 0), numpy.sqrt(numpy.abs(f[:, 1]))], axis=1)
    halves = numpy.stack([f * g + f, numpy.maximum(f, g), numpy.clip(f - g, 0, 1), numpy.exp(f), (f > g).astype("f4"), f / g, (f + numpy.abs(g))[:, ::-1], relu], axis=1)
    yield of("halves", {"a": p, "b": q, "y": room((200, 8, 2), "f2")}, {"y": (halves.astype("f2"), 2e-3)}, [launch("half_arithmetic", 2, 128, once)])

    def bf16(v):
        u = numpy.ascontiguousarray(v, "f4").view("u4")
        return ((u + 0x7fff + (u >> 16 & 1)) >> 16).astype("u2")

    up = lambda u: (u.astype("u4") << 16).view("f4")
    a, b = bf16(f), bf16(g)
    f, g = up(a), up(b)
    results = numpy.stack([f.astype("f8") * g + f, numpy.minimum(f, g), numpy.stack([f[:, 0] * numpy.float32(1.7), g[:, 1] / numpy.float32(3)], axis=1), numpy.abs(f) * g], axis=1)
    yield of("bf16", {"a": a, "b": b, "y": room((200, 4, 2), "u2")}, {"y": bf16(results)}, [launch("bfloat_arithmetic", 2, 128, once)], AMPERE)

    def fp8(values, exponent_bits, mantissa_bits, top):
        bias, codes, back = (1 << exponent_bits - 1) - 1, [], []
        for v in values.tolist():
            size = abs(v)
            step = 2.**(max(math.floor(math.log2(size)), 1 - bias) - mantissa_bits) if size else 1.
            rounded = min(round(size / step) * step, top)
            back.append(math.copysign(rounded, v))
            if rounded < 2.**(1 - bias):
                code = round(rounded / 2.**(1 - bias - mantissa_bits))
            else:
                e = math.floor(math.log2(rounded))
                code = (e + bias << mantissa_bits) + round((rounded / 2.**e - 1) * (1 << mantissa_bits))
            codes.append(code | 128 * (math.copysign(1, v) < 0))
        return codes, back

    values = numpy.concatenate([floats(60) * 10, floats(20, seed=2) * .01, numpy.array([0, -0., 448, 460, 1e6, -1e6, 57344, 2.**-9, 2.**-10, 3 * 2.**-10, 2.**-16, -2.**-17], "f4")]).astype("f4")
    e4m3, e5m2 = fp8(values, 4, 3, 448.), fp8(values, 5, 2, 57344.)
    yield of("fp8", {"x": values, "y": room((values.size, 2), "f4"), "c": room((values.size, 2), "u1")}, {
        "y": numpy.stack([e4m3[1], e5m2[1]], axis=1), "c": numpy.stack([e4m3[0], e5m2[0]], axis=1)}, [launch("fp8_round_trip", 1, 128, ["x", "y", "c", f"i32:{values.size}"])])

    bins = numbers(500, 0, 7)
    count = numpy.bincount(bins, minlength=7)
    yield of("atomics on halves", {"x": bins, "p": numpy.zeros((7, 2), "f2"), "h": numpy.zeros(7, "f2"), "b": numpy.zeros(7, "u2")}, {
        "p": numpy.stack([count, count / 2], axis=1), "h": 2 * count, "b": bf16(count.astype("f4"))}, [launch("narrow_atomics", 4, 128, ["x", "p", "h", "b", "i32:500"])])

    left, right = (numpy.random.default_rng(k).integers(-128, 128, (32, 64)).astype("i1") for k in (1, 2))
    yield of("product, wmma of bytes", {"a": left.view("u1"), "b": right.view("u1"), "c": room((32, 32), "i4")}, {"c": 2 * (left.astype("i4") @ right.astype("i4").T)}, [
        launch("wmma_int8", [2, 2], 32, ["a", "b", "c", "i32:32", "i32:64"])])
    left, right = ((numpy.random.default_rng(k).integers(-8, 9, shape) / 8).astype("f2") for k, shape in ((1, (32, 64)), (2, (64, 32))))
    yield of("product, wmma of halves", {"a": left, "b": right, "c": room((32, 32), "f4")}, {"c": left.astype("f4") @ right.astype("f4")}, [
        launch("wmma_half", [2, 2], 32, ["a", "b", "c", "i32:32", "i32:64"])])
    left, right = (numpy.random.default_rng(k).integers(-8, 8, (rows, 64)) for k, rows in ((1, 16), (2, 8)))
    nibbles = lambda m: sum((m[:, k::8] & 15).astype("u4") << numpy.uint32(4 * k) for k in range(8)).astype("u4")
    yield of("product, mma of 4 bits", {"a": nibbles(left), "b": nibbles(right), "c": room((16, 8), "i4")}, {"c": left @ right.T}, [launch("mma_int4", 1, 32, ["a", "b", "c"])], AMPERE)
    left, right = ((numpy.random.default_rng(k).integers(-8, 9, (16, 8)) / 8).astype("f4") for k in (1, 2))
    yield of("product, wmma of tf32", {"a": left, "b": right, "c": room((16, 16), "f4")}, {"c": left @ right.T + 1}, [launch("wmma_tf32", 1, 32, ["a", "b", "c"])], AMPERE)


def warps():
    def of(name, buffers, expected, steps, archs=EVERY):
        return name, "warps", archs, buffers, expected, steps

    x = numbers(1500, -1000, 1000)
    kept = numpy.full(1024, 0x7fffffff, "i4")
    kept[:(x > 0).sum()] = numpy.sort(x[x > 0])
    yield of("warp-aggregated filter", {"x": x, "y": numpy.full(1024, 0x7fffffff, "i4"), "n": numpy.zeros(1, "i4")}, {"y": kept, "n": numpy.array([(x > 0).sum()])}, [
        launch("aggregated_filter", 3, 256, ["x", "y", "n", "i32:1500"]), launch("radix_sort", 1, 1024, ["y"])])
    x = numbers(512)
    rows = x.reshape(32, 16)
    same = numpy.array([[(row & 3 == v & 3).sum() * 101 for v in row] for row in rows])
    yield of("cg::reduce, scans, partitions", {"x": x, "s": room(32, "i4"), "m": room(32, "f4"), "c": room(512, "i4"), "p": room(512, "i4")}, {
        "s": rows.sum(axis=1), "m": rows.max(axis=1) * .5, "c": rows.cumsum(axis=1), "p": same}, [launch("group_reductions", 4, 128, ["x", "s", "m", "c", "p"])])
    x = numbers(5000)
    yield of("scan with look-back", {"x": x, "y": room(5000, "i4"), "s": numpy.zeros(20, "u8"), "n": numpy.zeros(1, "u4")}, {"y": x.cumsum()}, [
        launch("look_back_scan", 20, 256, ["x", "y", "s", "n", "i32:5000"])])
    keys, asked = numbers(1000, 0, 300).astype("u4"), numbers(400, 0, 400, seed=2).astype("u4")
    yield of("hash table", {"k": keys, "q": asked, "s": numpy.full(1024, (1 << 64) - 1, "u8"), "y": room(400, "u4")}, {"y": (keys[None, :] == asked[:, None]).sum(axis=1)}, [
        launch("hash_insert", 4, 256, ["k", "s", "i32:1000", "u32:1023"]), launch("hash_look_up", 2, 256, ["q", "s", "y", "i32:400", "u32:1023"])])
    x = numbers(2048, -100, 100)
    runs, steps, size, pair = x.reshape(-1, 16), [], 16, ["a", "b"]
    while size < 2048:
        steps.append(launch("merge_runs", 8, 256, [*pair, f"i32:{size}"]))
        size, pair = size * 2, pair[::-1]
    yield of("merge sort", {"a": numpy.sort(runs, axis=1).reshape(-1), "b": room(2048, "i4")}, {"b": numpy.sort(x)}, steps)
    x = words(2048)
    yield of("radix sort by match", {"x": x}, {"x": numpy.sort(x.reshape(2, 1024), axis=1).reshape(-1)}, [launch("radix_sort", 2, 1024, ["x"])])
    x = numbers(256)
    out = []
    for w, row in enumerate(x.reshape(8, 32)):
        for lane in range(32):
            partner = row[(lane & 16) | (lane & 15) ^ 5]
            out.append(partner if lane == 7 else (row > 500).sum() * 1000000 + 100000 + (row > 990).any() * 10000 + 1000 + (row[lane] > 500) + 1)
    yield of("votes", {"x": x, "y": room(256, "i4")}, {"y": numpy.array(out)}, [launch("votes", 2, 128, ["x", "y"])])
    yield of("stack by compare and swap", {"s": room((400, 2), "i4"), "h": numpy.full(1, -1, "i4"), "y": room(1, "i8")}, {"y": numpy.array([3 * sum(range(400))])}, [
        launch("stack_push", 4, 128, ["s", "h", "i32:400"]), launch("stack_sum", 1, 1, ["s", "h", "y"])])
    yield of("spin lock", {"l": numpy.zeros(1, "i4"), "c": numpy.zeros(1, "i4")}, {"c": numpy.array([5 * 4 * 6])}, [launch("spin_lock", 6, 128, ["l", "c", "i32:5"])])
    at = numpy.arange(512)
    inc = dec = 0
    for _ in range(512):
        inc, dec = 0 if inc >= 100 else inc + 1, 100 if dec == 0 or dec > 100 else dec - 1
    plain = [512, -1024, -511, 511, (~((1 << 20) - 1)) & -1, (1 << 20) - 1, int(numpy.bitwise_xor.reduce(1 << at % 31)), inc, dec, 128, 128, 128, 128, 512]
    yield of("all atomics", {"w": numpy.array([0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "i4"), "l": numpy.array([0, 10**7, (1 << 64) - 100, 0], "u8"), "f": numpy.zeros(1, "f4"),
                             "d": numpy.zeros(1, "f8")}, {
        "w": numpy.array(plain), "l": numpy.array([512 << 33, 1000000 - 511, 506, (1 << 60) - 1], "u8"), "f": numpy.array([128.]), "d": numpy.array([64.])}, [
        launch("all_atomics", 4, 128, ["w", "l", "f", "d"])])


def memory():
    def of(name, buffers, expected, steps, archs=EVERY):
        return name, "memory", archs, buffers, expected, steps

    x = floats(6, 256)
    yield of("cg::memcpy_async", {"x": x, "y": room((6, 256), "f4")}, {"y": 2 * x[:, ::-1]}, [launch("group_copies", 2, 256, ["x", "y", "i32:6"])])
    x = floats(2, 5, 256)
    yield of("cuda::pipeline", {"x": x, "y": room((2, 256), "f4")}, {"y": numpy.roll(x, -1, axis=2).sum(axis=1)}, [launch("pipelined", 2, 256, ["x", "y", "i32:5"])])
    x = numbers(2 * 6 * 32)
    yield of("cuda::barrier, two sides", {"x": x, "y": room((2, 32), "i4")}, {"y": x.reshape(2, 6, 32)[:, :, ::-1].sum(axis=1)}, [launch("handed_over", 2, 64, ["x", "y", "i32:6"])])
    x = floats(200, 4)
    a, b, c, d = (numpy.roll(x, -k, axis=0) for k in range(4))
    yield of("cached loads", {"x": x, "y": room((200, 4), "f4")}, {"y": numpy.stack([a[:, 0] + b[:, 0], a[:, 1] + c[:, 1], a[:, 2] + d[:, 2], b[:, 3] - c[:, 3]], axis=1)}, [
        launch("cached", 2, 128, ["x", "y", "i32:200"])])
    x, out = numbers(300), []
    for v in x.tolist():
        bins = [0] * 16
        for k in range(32):
            bins[v >> k % 7 & 15] += k
        value = bins[v & 15] + (v * v if v & 1 else 2 * v)
        m = v % 11
        value = [value + 17, value ^ 0x55, value * 3, value - 1000, -value, value << 2 | 1, ~value, int(math.fmod(value, 77)), *[value + 1] * 3][m]
        out.append(value + (3 * (v % 3)**2 if v >> 1 & 1 else (v % 5)**2))
    yield of("C++ of a kernel", {"x": x, "y": room(300, "i4")}, {"y": numpy.array(out)}, [launch("language", 3, 128, ["x", "y", "i32:300"])])
    x = floats(10, 32)
    yield of("variables of the module", {"x": x, "y": room(1, "f4")}, {"y": numpy.array([(x * 1.5 + 1 + numpy.arange(32) % 3).sum()])}, [
        launch("module_variables", 10, 32, ["x", "y"]), launch("module_variables", 10, 32, ["x", "y"])])
    yield of("printf and assert", {"x": x[0]}, {}, [launch("prints", 3, 32, ["x", "i32:5"])])
    x = numbers(512)
    yield of("reduction sample", {"x": x, "y": room(4, "i4")}, {"y": x.reshape(4, 128).sum(axis=1)}, [launch("sum_of_blocks", 4, 128, ["x", "y"])])
    counts = numbers(40, 0, 60)
    begins = numpy.concatenate([[0], counts.cumsum()]).astype("i4")
    columns, values, v = numbers(int(begins[-1]), 0, 50, seed=2), floats(int(begins[-1])), floats(50, seed=2)
    y = numpy.array([(values[b:e].astype("f8") * v[columns[b:e]]).sum() for b, e in zip(begins, begins[1:])])
    yield of("sparse rows from a queue", {"b": begins, "c": columns, "v": values, "x": v, "y": room(40, "f4"), "n": numpy.zeros(1, "i4")}, {"y": y}, [
        launch("sparse_rows", 3, 64, ["b", "c", "v", "x", "y", "i32:40", "n"])])
    yield of("spaces of addresses", {"x": numbers(4), "y": room(40, "i4")}, {"y": numpy.array([80 + (1, 2, 4, 8, 1)[k % 5] for k in range(40)])}, [launch("spaces", 1, 40, ["x", "y"])])
    x = numbers(256).reshape(64, 4)
    cut = x.copy()
    cut[1::2, 3] = 0
    yield of("copies cut short", {"x": x, "y": room((64, 4), "i4")}, {"y": cut[::-1]}, [launch("cut_copies", 1, 64, ["x", "y"])])
    of_place = [[k for k in range(96) if k % 3 == j] for j in range(3)]
    yield of("atomics on vectors", {"a": numpy.zeros((3, 4), "f4"), "b": numpy.zeros((3, 2), "f4")}, {
        "a": numpy.array([[32, 64, 96, sum(p)] for p in of_place]), "b": numpy.array([[16, 32]] * 3)}, [launch("vector_atomics", 1, 96, ["a", "b"])], HOPPER)
    x = numbers(1024)
    yield of("bulk reductions", {"x": x, "y": numpy.zeros(256, "i4")}, {"y": 2 * x.reshape(4, 256).sum(axis=0)}, [launch("bulk_sums", 4, 256, ["x", "y"])], HOPPER)
    yield of("accesses of 32 bytes", {"x": x, "y": room((128, 8), "i4")}, {"y": x.reshape(128, 8)[:, ::-1]}, [launch("wide_accesses", 1, 128, ["x", "y"])], ("100", "120"))
    x = numbers(3000, 0, 10000)
    yield of("histogram of a cluster", {"x": x, "y": numpy.zeros(256, "i4")}, {"y": numpy.bincount(x & 255, minlength=256)}, [launch("cluster_histogram", 8, 128, ["x", "y", "i32:3000"])], HOPPER)
    x = floats(8, 128)
    yield of("sums of a cluster", {"x": x, "y": room(8, "f4")}, {"y": numpy.full(8, x.sum())}, [launch("cluster_sums", 8, 128, ["x", "y"])], HOPPER)


def libraries():
    def of(name, buffers, expected, steps, archs=EVERY):
        return name, "libraries", archs, buffers, expected, steps

    x, y = floats(200, seed=1) * 3, floats(200, seed=2) * 2
    f = numpy.float32
    rows = []
    for i, (a, b) in enumerate(zip(x, y)):
        p, q = float(a), float(b)
        big = float(a * f(1e5))
        mantissa, exponent = math.frexp(p)
        rows.append([
            math.sin(big), math.cos(big), math.tan(p), math.atan2(p, q), math.expm1(p), math.log1p(abs(p)), math.erf(p), math.erfc(p), math.lgamma(abs(p) + .5), math.gamma(abs(p) + .5),
            abs(p)**q, math.copysign(abs(p)**(1 / 3), p), math.hypot(p, q), math.fmod(float(a * f(100)), q), math.remainder(float(a * f(100)), q), math.asinh(p), math.acos(p / (abs(p) + 1)),
            math.tanh(p), numpy.nextafter(a, b), math.ldexp(p, i % 20 - 10), round(p * 7) + math.trunc(q * 3) + math.floor(abs(p) + .5) * math.copysign(1, p), mantissa + exponent,
            2**p + 10**q + math.log2(abs(p)) + math.log10(abs(q)), max(p - q, 0) + p * q + 1 + math.copysign(1, q)])
    yield of("functions of floats", {"a": x, "b": y, "y": room((200, 24), "f4")}, {"y": numpy.array(rows)}, [launch("functions_f32", 2, 128, ["a", "b", "y", "i32:200"])])
    x, y, rows = x.astype("f8"), y.astype("f8"), []
    for p, q in zip(x.tolist(), y.tolist()):
        rows.append([
            math.sin(p * 1e10), math.cos(p * 1e10), abs(p)**q, math.erf(p), math.lgamma(abs(p) + .5), math.copysign(abs(p)**(1 / 3), p) + math.asinh(q), math.fmod(p * 1000, q),
            math.atan2(p, q) + math.acos(p / (abs(p) + 1)), math.expm1(p) + math.log1p(abs(q)), math.tanh(p) + math.sinh(q), abs(p)**-.5 + abs(q)**(-1 / 3), p * q + p / q + p * q + 1])
    yield of("functions of doubles", {"a": x, "b": y, "y": room((200, 12), "f8")}, {"y": numpy.array(rows)}, [launch("functions_f64", 2, 128, ["a", "b", "y", "i32:200"])])

    seed = 0x123456789abcdef
    drawn = [philox((0, 0, i, 0), (seed & 0xffffffff, seed >> 32)) for i in range(128)]
    yield of("cuRAND Philox", {"y": room((128, 4), "u4")}, {"y": numpy.array(drawn, "u4")}, [launch("philox", 1, 128, ["y", f"i64:{seed}"])])
    yield of("cuRAND normal numbers", {"s": numpy.zeros(64 * 12, "u4"), "y": room(2, "f4")}, {"y": (numpy.array([0, 1]), .02, .03)}, [launch("xorwow_moments", 1, 64, ["s", "y", "i32:200"])])

    keys, count = numbers(1200, 0, 300), 1200
    results = {name: numpy.zeros(count, "i4") for name in ("s", "o", "u", "h")}
    for base in range(0, count, 512):
        tile = keys[base:base + 512]
        order = numpy.argsort(tile, kind="stable")
        heads = numpy.diff(tile[order], prepend=tile[order][0] - 1) != 0
        for name, part in (("s", tile[order]), ("o", base + order), ("u", heads.cumsum()), ("h", heads)):
            results[name][base:base + 512] = part
    yield of("CUB block collectives", {"k": keys, **{name: room(count, "i4") for name in results}}, results, [launch("block_collectives", 3, 128, ["k", "s", "o", "u", "h", f"i32:{count}"])])
    letters = numpy.random.default_rng(4).integers(0, 256, (3, 1024)).astype("u1")
    yield of("CUB block histogram", {"x": letters, "y": room((3, 256), "u4"), "m": room(12, "i4")}, {
        "y": numpy.array([numpy.bincount(row, minlength=256) for row in letters]), "m": letters[:, ::8].reshape(12, 32).max(axis=1)}, [launch("block_histogram", 3, 128, ["x", "y", "m"])])

    x = floats(200, 2)
    z = x[:, 0] + 1j * x[:, 1].astype("f8")
    turned = numpy.array([w**(i % 4 + 1) for i, w in enumerate(z)]) / (z + 2j)
    size = numpy.where(numpy.abs(z) > 1, numpy.abs(z)**4, -1)
    yield of("libcu++ on the device", {"x": x, "y": room((200, 2), "f4")}, {"y": numpy.stack([turned.real + size, turned.imag], axis=1)}, [launch("standard_library", 2, 128, ["x", "y", "i32:200"])])
    x = numpy.concatenate([floats(90) * 3, numpy.array([0, .25, -.75, 2.5, 5, 6, 7.25, 28, 40, -100], "f4")]).astype("f4")
    small = numpy.stack([nearest(x, 2, 3, 7.5), nearest(x, 3, 2, 28.), nearest(x, 2, 1, 6.)], axis=1)
    yield of("fp6 and fp4", {"x": x, "y": room(small.shape, "f4")}, {"y": small}, [launch("fp6_fp4", 1, 128, ["x", "y", f"i32:{x.size}"])])


def programs():
    for part in (numeric, bits, warps, memory, libraries):
        yield from part()
