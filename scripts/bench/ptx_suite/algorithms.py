"""Algorithms in the manner of samples and of libraries (algorithms.cu, threads.cu), and what numpy says they compute."""
import math

import numpy

from arithmetic import philox
from samples import EVERY, floats, launch, numbers, room, words


def sorts():
    keys, values = words(1024), words(1024, 2)
    order = numpy.argsort(keys.reshape(2, 512), axis=1, kind="stable")
    sorted_by = lambda a: numpy.take_along_axis(a.reshape(2, 512), order, axis=1).reshape(-1)
    yield "odd-even merge sort", {"k": keys, "v": values}, {"k": sorted_by(keys), "v": sorted_by(values)}, [launch("odd_even_merge_sort", 2, 256, ["k", "v"])]
    pairs = numpy.random.default_rng(3).integers(0, 1 << 63, 256, dtype=numpy.uint64)
    yield "sort in a warp", {"x": pairs}, {"x": numpy.sort(pairs.reshape(8, 32), axis=1).reshape(-1)}, [launch("warp_sort", 2, 128, ["x"])]
    keys = words(4096, 5) >> numpy.uint32(12)
    least = numpy.sort(keys)[1234]
    first = keys[:512]
    yield "radix select", {"x": keys, "y": room(4, "u4")}, {"y": numpy.array([least, (first == least).sum(), (first < least).any(), 1])}, [
        launch("radix_select", 1, 512, ["x", "y", "i32:4096", "i32:1234"])]


def scans():
    x, heads = numbers(1024, -50, 50).astype("f4"), (numpy.random.default_rng(2).random(1024) < .02).astype("u1")
    out = []
    for k in range(1024):
        out.append(x[k] if heads[k] or k % 256 == 0 else out[-1] + x[k])
    yield "segmented scan", {"x": x, "h": heads, "y": room(1024, "f4")}, {"y": numpy.array(out)}, [launch("segmented_scan", 4, 256, ["x", "h", "y"])]
    n = 3000
    x = numbers(n)
    steps = math.ceil(math.log2(n))
    buffers = {"a": x, "b": numpy.zeros(n, "i4")}
    yield "scan, grid.sync", buffers, {"a" if steps % 2 == 0 else "b": x.cumsum()}, [launch("grid_scan", 6, 128, ["a", "b", f"i32:{n}"])]
    bins = numbers(1000, 0, 13)
    yield "matched atomics", {"x": bins, "c": numpy.zeros(13, "i4"), "r": room(1000, "i4")}, {"c": numpy.bincount(bins, minlength=13)}, [launch("matched_ranks", 4, 256, ["x", "c", "r", "i32:1000"])]
    f = floats(2000)
    product = numpy.prod(1 + numpy.arange(40) / 64)
    yield "extremes by compare and swap", {"x": f, "m": numpy.full(1, -9, "f4"), "b": numpy.zeros(1, "i4"), "p": numpy.ones(1)}, {
        "m": f.max(), "b": numpy.array([f.max()]).view("i4"), "p": product}, [launch("extremes", 8, 256, ["x", "m", "b", "p", "i32:2000"])]


def graphs():
    d = numbers(2048, 1, 100).reshape(2, 32, 32)
    d[numpy.random.default_rng(2).random(d.shape) < .7] = 10**6
    right = d.astype("i8")
    for k in range(32):
        right = numpy.minimum(right, right[:, :, k:k + 1] + right[:, k:k + 1, :])
    yield "Floyd and Warshall", {"d": d.reshape(-1)}, {"d": right.reshape(-1)}, [launch("floyd_block", 2, [32, 32], ["d"])]
    n, levels = 1500, 12
    rng = numpy.random.default_rng(4)
    ends = [rng.integers(0, n, rng.integers(0, 5)).astype("i4") for _ in range(n)]
    begins = numpy.concatenate([[0], numpy.cumsum([len(e) for e in ends])]).astype("i4")
    distance, frontier = numpy.full(n, -1), [0]
    distance[0] = 0
    for level in range(1, levels + 1):
        frontier = sorted({e for v in frontier for e in ends[v] if distance[e] < 0})
        distance[frontier] = level
    start, buffers = numpy.full(n, -1, "i4"), {}
    start[0] = 0
    buffers |= {"b": begins, "e": numpy.concatenate(ends), "d": start, "q0": numpy.zeros(n, "i4"), "q1": room(n, "i4"), "s": numpy.array([1] + [0] * levels, "i4")}
    yield "search by breadth", buffers, {"d": distance}, [
        launch("bfs_step", 6, 256, ["b", "e", "d", f"q{(k - 1) % 2}", f"s+{4 * (k - 1)}", f"q{k % 2}", f"s+{4 * k}", f"i32:{k}"]) for k in range(1, levels + 1)]
    edges = rng.integers(0, 800, (600, 2)).astype("i4")
    label = list(range(800))
    for _ in range(800):
        before = list(label)
        for a, b in edges:
            label[a] = label[b] = min(label[a], label[b])
        if before == label:
            break
    yield "union and find", {"e": edges, "p": numpy.arange(800, dtype="i4"), "y": room(800, "i4")}, {"y": numpy.array(label)}, [
        launch("unite", 5, 128, ["e", "p", "i32:600"]), launch("roots", 4, 256, ["p", "y", "i32:800"])]
    rows = numpy.sort(numbers(900, 0, 60))
    columns, values, x = numbers(900, 0, 50, seed=2), floats(900), floats(50, seed=2)
    y = numpy.zeros(60)
    numpy.add.at(y, rows, values.astype("f8") * x[columns])
    yield "sparse product of coordinates", {"r": rows, "c": columns, "v": values, "x": x, "y": numpy.zeros(60, "f4")}, {"y": y}, [launch("coo_product", 4, 256, ["r", "c", "v", "x", "y", "i32:900"])]


def solvers():
    n = 24
    d, e = floats(2, n).astype("f8"), numpy.abs(floats(2, n, seed=2).astype("f8")) + .1
    values = numpy.stack([numpy.linalg.eigvalsh(numpy.diag(a) + numpy.diag(b[:-1], 1) + numpy.diag(b[:-1], -1)) for a, b in zip(d, e)])
    yield "eigenvalues by bisection", {"d": d, "e": e, "y": room((2, n), "f8")}, {"y": (values, 1e-9, 1e-9)}, [
        launch("bisection", 2, 32, ["d", "e", "y", f"i32:{n}", "f64:-20", "f64:20"], shared_bytes=16 * n)]
    image = floats(64, 48)
    taps, wide = (.02, .05, .1, .18, .3, .18, .1, .05, .02), numpy.pad(image.astype("f8"), ((4, 4), (0, 0)))
    yield "convolution of columns", {"x": image, "y": room((64, 48), "f4")}, {"y": sum(w * wide[k:k + 64] for k, w in enumerate(taps))}, [
        launch("convolve_columns", [3, 8], [16, 8], ["x", "y", "i32:48", "i32:64"])]
    n = 128
    lower, upper, right = floats(2, n), floats(2, n, seed=2), floats(2, n, seed=3)
    lower[:, 0] = upper[:, -1] = 0
    main = (5 + numpy.abs(floats(2, n, seed=4))).astype("f4")
    solved = numpy.stack([numpy.linalg.solve(numpy.diag(m) + numpy.diag(l[1:], -1) + numpy.diag(u[:-1], 1), r) for l, m, u, r in zip(lower.astype("f8"), main, upper, right)])
    yield "tridiagonal systems", {"l": lower, "m": main, "u": upper, "r": right, "x": room((2, n), "f4")}, {"x": (solved, 1e-4, 1e-5)}, [
        launch("cyclic_reduction", 2, n, ["l", "m", "u", "r", "x", f"i32:{n}"], shared_bytes=18 * n)]
    a = floats(3, 24, 24).astype("f8")
    a = a @ a.transpose(0, 2, 1) + 8 * numpy.eye(24)
    yield "Cholesky, named barriers", {"a": a.astype("f4")}, {"a": numpy.linalg.cholesky(a)}, [launch("cholesky", 3, 128, ["a"])]
    roots, products = [], []
    for k in range(32):
        low, high = 0., 1.3 + .2 * (k // 2)
        while high - low > 1e-12:
            middle = .5 * (low + high)
            if (middle**3 - 2 if k % 2 == 0 else -math.cos(middle)) > 0:
                high = middle
            else:
                low = middle
        roots.append(low)
        p = math.factorial(25 + k % 4)
        products += [p // (k + 7) & (1 << 64) - 1, p >> 64]
    yield "zeros, functions of a table", {"x": room(32, "f8"), "p": room(64, "u8")}, {"x": numpy.array(roots), "p": numpy.array(products, "u8")}, [launch("zeros", 1, 32, ["x", "p"])]
    density = numpy.abs(floats(9, 20, 30)) + 1
    f, xs, ys = density.astype("f8"), (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)
    f = numpy.stack([numpy.roll(f[k], (ys[k], xs[k]), (0, 1)) for k in range(9)])
    total = f.sum(axis=0)
    u, v = (sum(f[k] * way[k] for k in range(9)) / total for way in (xs, ys))
    out = []
    for k in range(9):
        w, along = (4 / 9 if k == 0 else 1 / 9 if k < 5 else 1 / 36), 3 * (xs[k] * u + ys[k] * v)
        out.append(f[k] + .6 * (w * total * (1 + along + .5 * along**2 - 1.5 * (u * u + v * v)) - f[k]))
    yield "lattice Boltzmann", {"x": density, "y": room((9, 20, 30), "f4")}, {"y": numpy.stack(out)}, [launch("lattice", [2, 5], [16, 4], ["x", "y", "i32:30", "i32:20"])]


def chacha(key, counter):
    s = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, *key, counter, 1, 2, 3]
    w = list(s)
    left = lambda v, by: (v << by | v >> 32 - by) & 0xffffffff

    def quarter(a, b, c, d):
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            w[x] = w[x] + w[y] & 0xffffffff
            w[z] = left(w[z] ^ w[x], by)
    for _ in range(10):
        for q in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(*q)
    return [x + y & 0xffffffff for x, y in zip(w, s)]


def numbers_and_text():
    key = words(8)
    yield "ChaCha20", {"k": key, "y": room(16 * 64, "u4")}, {"y": numpy.array([w for i in range(64) for w in chacha(key.tolist(), 7 + i)], "u4")}, [launch("chacha20", 2, 32, ["k", "y", "u32:7"])]
    rng = numpy.random.default_rng(9)
    whole = lambda v: sum(int(w) << 32 * k for k, w in enumerate(v))
    modulus = rng.integers(0, 1 << 32, 8, dtype=numpy.uint32)
    modulus[0] |= 1
    m = whole(modulus)
    a, b = (numpy.array([[v >> 32 * k & 0xffffffff for k in range(8)] for v in (whole(rng.integers(0, 1 << 32, 8, dtype=numpy.uint32)) % m for _ in range(50))], "u4") for _ in range(2))
    shrink = pow(1 << 256, -1, m)
    out = [whole(p) * whole(q) * shrink % m for p, q in zip(a, b)]
    yield "Montgomery products", {"a": a, "b": b, "m": modulus, "y": room((50, 8), "u4")}, {"y": numpy.array([[v >> 32 * k & 0xffffffff for k in range(8)] for v in out], "u4")}, [
        launch("montgomery", 2, 32, ["a", "b", "m", "y", f"u32:{-pow(m, -1, 1 << 32) % (1 << 32)}", "i32:50"])]
    left, right = (rng.integers(97, 101, shape).astype("u1") for shape in ((4, 32), (4, 50)))
    best = []
    for s, t in zip(left, right):
        table = numpy.zeros((33, 51), int)
        for i in range(32):
            for j in range(50):
                table[i + 1, j + 1] = max(0, table[i, j] + (3 if s[i] == t[j] else -2), table[i, j + 1] - 1, table[i + 1, j] - 1)
        best.append(table.max())
    yield "local alignment", {"a": left, "b": right, "y": room(4, "i4")}, {"y": numpy.array(best)}, [launch("align", 4, 32, ["a", "b", "y", "i32:50"])]
    world = rng.integers(0, 2, (64, 64))
    pack = lambda w: numpy.array([sum(int(c) << k for k, c in enumerate(row)) for row in w], "u8")
    after = world
    for _ in range(7):
        around = sum(numpy.roll(after, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) - after
        after = ((around == 3) | (after == 1) & (around == 2)).astype(int)
    yield "game of life", {"x": pack(world)}, {"x": pack(after)}, [launch("life", 1, 64, ["x", "i32:7"])]
    draws = [philox((i, d, 0, 0), (17, 0xcafe)) for i in range(64) for d in range(6)]
    yield "Monte Carlo by Philox", {"s": numpy.zeros(1), "h": numpy.zeros(1, "u8")}, {
        "s": sum(c[0] * c[1] * 2.**-64 + c[2] * 2.**-40 - c[3] * 2.**-40 for c in draws), "h": numpy.array([sum(c[0]**2 + c[1]**2 < 1 << 64 for c in draws)])}, [
        launch("philox_walks", 2, 32, ["s", "h", "u32:17", "i32:6"])]
    text = rng.choice(numpy.frombuffer(b"abAc", "u1"), 3000)
    for at in (5, 9, 1000, 2990):
        text[at:at + 7] = numpy.frombuffer(b"aBacAba", "u1")
    folded = bytes(text).lower()
    places = [k for k in range(3000) if folded[k:k + 7] == b"abacaba"]
    bloom = numpy.zeros(32, "u4")
    for k in places:
        h = (k + 6) * 2654435761 & 0xffffffff
        bloom[h >> 27] |= numpy.uint32(1 << (h >> 22 & 31))
    yield "search in a text", {"x": text, "c": numpy.zeros(1, "i4"), "f": numpy.zeros(32, "u4")}, {"c": len(places), "f": bloom}, [launch("find_pattern", 2, 64, ["x", "c", "f", "i32:3000", "i32:30"])]


def cooperation():
    x = numbers(128)
    out = numpy.zeros((128, 8), "i8")
    for i, v in enumerate(x.tolist()):
        tile, rank = x[i // 8 * 8:i // 8 * 8 + 8].tolist(), i % 8
        same = [t for t in tile if t & 1 == v & 1]
        warp = [k for k in range(i // 32 * 32, i // 32 * 32 + 32) if x[k] % 3 == 0]
        out[i] = [i % 64 // 8 * 100 + 8, sum(tile[:rank]), numpy.bitwise_xor.reduce(tile), min(tile), len(same) * 1000 + sum(same) % 1000,
                  (tile[rank + 3] if rank < 5 else v) * 2 + any(t > 900 for t in tile), sum(1 << k for k, t in enumerate(tile) if t & 3 == v & 3),
                  len(warp) * 10000 + warp.index(i) * 100 + max(x[k] for k in warp) % 100 if v % 3 == 0 else -1]
    yield "groups of threads", {"x": x, "y": room((128, 8), "i4")}, {"y": out}, [launch("groups", 2, 64, ["x", "y"])]
    yield "locks, semaphores, latches", {"t": numpy.zeros(2, "u4"), "s": numpy.zeros(1, "i4"), "i": numpy.zeros(1, "i4"), "m": numpy.zeros(1, "i4")}, {"s": 21, "i": 0}, [
        launch("locks", 6, 64, ["t", "t+4", "s", "i", "m"])]
    rows = [[t % 32, t % 32, 1, 2, 1, 1, t // 64 * 11, (t % 32 // 8 * 8 + 5) * 3] for _ in range(2) for t in range(256)]
    yield "special registers, named barriers", {"y": room((512, 8), "u4")}, {"y": numpy.array(rows)}, [launch("places", [1, 2], 256, ["y"])]


def programs():
    for source, groups in (("algorithms", (sorts, scans, graphs, solvers)), ("threads", (numbers_and_text, cooperation))):
        for group in groups:
            for name, buffers, expected, steps in group():
                yield name, source, EVERY, buffers, expected, steps
