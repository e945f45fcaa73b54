"""What libraries' functions give, by their definitions."""
import math


def philox(counter, key):
    """Four words of Philox4x32-10 (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        low, high = c[0] * 0xd2511f53, c[2] * 0xcd9e8d57
        c = [(high >> 32) ^ c[1] ^ k[0], high & 0xffffffff, (low >> 32) ^ c[3] ^ k[1], low & 0xffffffff]
        k = [(k[0] + 0x9e3779b9) & 0xffffffff, (k[1] + 0xbb67ae85) & 0xffffffff]
    return c


def nearest(values, exponent_bits, mantissa_bits, top):
    """Of small floats without infinities, the nearest to each value; ties to even."""
    lowest = 2 - (1 << exponent_bits - 1)
    out = []
    for v in values.tolist():
        step = 2.**(max(math.floor(math.log2(abs(v))) if v else lowest, lowest) - mantissa_bits)
        out.append(math.copysign(min(round(abs(v) / step) * step, top), v))
    return out
