"""Products of sparse matrices by mma.sp (sparse.cu), and what numpy says they are."""
import numpy

from samples import AMPERE, HOPPER, launch, room


def small_float(mantissa, bias):
    """-3 to 3 as a float of 8 bits."""
    code = lambda v: 0 if v == 0 else (128 if v < 0 else 0) | (bias + (abs(v) > 1)) << mantissa | (1 << mantissa - 1 if abs(v) == 3 else 0)
    return lambda x: numpy.array([code(int(v)) for v in x.reshape(-1)], "u1").reshape(x.shape)


def programs():
    """A of m x k, of which each chunk keeps some, without its zeros; where they were, so many bits each."""
    m, n, k = 32, 24, 256
    half, single = lambda x: x.astype("f2"), lambda x: x.astype("f4")
    brain = lambda x: (x.astype("f4").view("u4") >> 16).astype("u2")
    kinds = (("f16_k32", half, half, "f4", 2, AMPERE), ("f16_k16", half, half, "f4", 2, AMPERE), ("bf16_k32", brain, brain, "f4", 2, AMPERE), ("tf32_k16", single, single, "f4", 4, AMPERE),
             ("s8_k64", lambda x: x.astype("i1"), lambda x: x.astype("i1"), "i4", 2, AMPERE), ("u8_k32", lambda x: abs(x).astype("u1"), lambda x: x.astype("i1"), "i4", 2, AMPERE),
             ("e4m3_k64", small_float(3, 7), small_float(2, 15), "f4", 2, HOPPER))
    for kind, left, right, result, bits, archs in kinds:
        rng = numpy.random.default_rng(len(kind))
        chunk, kept = (2, 1) if bits == 4 else (4, 2)
        chosen = numpy.sort(rng.random((m, k // chunk, chunk)).argsort(axis=2)[:, :, :kept], axis=2)
        a = rng.integers(-3, 4, (m, k // chunk, kept))
        if kind.startswith("u8"):
            a = abs(a)
        whole = numpy.zeros((m, k // chunk, chunk), "i8")
        numpy.put_along_axis(whole, chosen, a, axis=2)
        codes = numpy.where(chosen == 0, 0b0100, 0b1110) if bits == 4 else chosen
        entries = codes.reshape(m, -1, 32 // bits).astype("u4")
        where = (entries << (numpy.arange(32 // bits, dtype="u4") * bits)).sum(axis=2, dtype="u4")
        b = rng.integers(-3, 4, (n, k))
        yield f"sparse product, {kind.replace('_', ' ')}", "sparse", archs, {"a": left(a.reshape(m, k // 2)), "where": where, "b": right(b), "c": room((m, n), result)}, {"c": whole.reshape(m, k) @ b.T}, [
            launch(f"sparse_{kind}", [n // 8, m // 16], 32, ["a", "where", "b", "c", f"i32:{n}", f"i32:{k}"])]
