"""Integers, bits, types, rank and shape corners, random bits, special functions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special, stats

from cases import add, case

EDGES = {kind: np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 3, 5, 64], kind)
         for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64") for info in [np.iinfo(kind)]}

for kind, x in EDGES.items():
    y = np.roll(x, 5)
    add(f"arithmetic_{kind}", lambda x, y: (x + y, x - y, x * y, lax.div(x, y), lax.rem(x, y), x // y, x % y, jnp.maximum(x, y), jnp.minimum(x, y)), x, y, values=True)
    add(f"bits_{kind}", lambda x, y: (x & y, x | y, x ^ y, ~x, lax.population_count(x), lax.clz(x), lax.shift_left(x, y), lax.shift_right_logical(x, y),
                                      lax.shift_right_arithmetic(x, y)), x, y, values=True)
    add(f"compare_{kind}", lambda x, y: (x < y, x >= y, x == y, jnp.sign(x), jnp.abs(x), x.sum(), x.max(), x.min(), jnp.prod(x)), x, y, values=True)
    add(f"convert_{kind}", lambda x, y: tuple(x.astype(t) for t in (jnp.float32, jnp.float16, jnp.bfloat16, jnp.float64, jnp.int8, jnp.uint16, jnp.int32, jnp.uint64, bool)),
        x, y, values=True)

add("integer_power", lambda x: (x ** 3, lax.integer_pow(x, 5), jnp.power(x, 2)), "s32[9]")
add("floor_divide_floats", lambda x, y: (x // y, x % y, jnp.divmod(x, y)[0]), "f32[19]", "f32[19]")
# Of the smallest integer, which is its own absolute value, JAX's loop does not end.
NO_LEAST = np.maximum(EDGES["int32"], -2147483647)
add("gcd_lcm", lambda x, y: (jnp.gcd(x, y), jnp.lcm(x % 50, y % 50)), NO_LEAST, np.roll(NO_LEAST, 5), values=True)
add("bitcast", lambda x: (lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8), lax.bitcast_convert_type(x, jnp.bfloat16)), "f32[7]")
add("bitcast_wider", lambda x: lax.bitcast_convert_type(x, jnp.float32), "u8[5,4]")
add("float_bits_hash", lambda x: (lax.bitcast_convert_type(x, jnp.uint32) * jnp.uint32(2654435761)) >> 7, "f32[19]")
add("predicates", lambda p, q: (p & q, p | q, p ^ q, ~p, p.any(), p.all(), p.sum(), jnp.logical_xor(p, q)), "pred[7,3]", "pred[7,3]")
add("frexp_ldexp", lambda x: (*jnp.frexp(x), jnp.ldexp(x, 3), jnp.nextafter(x, 5.0)), "f32[9]")

TINY = {"float16": np.array([0, 6e-8, -6e-8, 3e-5, -5.007e-5, 6.1e-5, 1, 65504, np.inf, -np.inf, np.nan, 1.0005], np.float16),
        "float32": np.array([0, 1e-45, -1e-42, 5.877472e-39, -1.1754944e-38, 1e-30, 1, 3.4e38, np.inf, -np.inf, np.nan, 1.0000001], np.float32),
        "float64": np.array([0, 5e-324, -1e-310, 2.3e-308, 1e-45, 1e39, 1, 1.7e308, np.inf, -np.inf, np.nan, 1 + 2.0 ** -52], np.float64)}
for kind, x in TINY.items():
    for e, m in ((5, 10), (8, 7), (8, 23), (4, 3), (5, 2), (2, 0)):
        add(f"reduce_precision_{kind}_e{e}m{m}", lambda x, e=e, m=m: lax.reduce_precision(x, e, m), x, values=True)
    add(f"convert_{kind}_edges", lambda x: tuple(x.astype(t) for t in (jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64, jnp.int16, jnp.uint8)), x, values=True)

for rank in range(7):
    shape = ",".join("2313121"[:rank])
    add(f"rank_{rank}", lambda x: (jnp.exp(x) + 1, x.sum(), x.mean(), x.max() if x.size else x), f"f32[{shape}]")
for shape in ("0", "0,3", "3,0", "2,0,4"):
    add(f"empty_{shape.replace(',', 'x')}", lambda x: (x * 2, x.sum(), x.sum(0), x.prod(), jnp.concatenate([x, x])), f"f32[{shape}]")
for extent in (1, 31, 32, 33, 127, 255, 257, 1023, 1025, 2049):
    add(f"reduce_{extent}", lambda x: (x.sum(1), x.max(1), x.mean(), x.var(0)), f"f32[3,{extent}]")
    add(f"reduce_columns_{extent}", lambda x: (x.sum(0), x.min(0), (x * x).sum(0)), f"f32[{extent},3]")
add("reduce_middle", lambda x: (x.sum(1), x.max((0, 2)), x.prod((0, 1, 2))), "f32[5,17,3]")
for kind in ("f16", "bf16", "f64", "s8", "u16", "s64", "u32"):
    add(f"reduce_{kind}", lambda x: (x.sum(0), x.sum(1), x.max(), x.prod(1)), f"{kind}[6,37]")
add("reduce_bf16_long", lambda x: x.sum(), "bf16[3000]")
add("reduce_in_bf16", lambda x: lax.reduce(x, jnp.bfloat16(0), lax.add, (1,)), "bf16[4,100]")
add("reduce_in_f16", lambda x: lax.reduce(x, jnp.float16(0), lax.add, (1,)), "f16[4,100]")
add("reduce_and_or_xor", lambda x: (lax.reduce_and(x, (0,)), lax.reduce_or(x, (0,)), lax.reduce_xor(x, (0,))), "u32[9,4]")
add("reduce_pair", lambda x, y: lax.reduce((x, y), (0.0, 0.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)), "f32[4,9]", "f32[4,9]")
add("welford", lambda x: (x.mean(1), x.var(1), x.std(1, ddof=1)), "f32[4,90]")
add("variance_of_large_mean", lambda x: (x + 1000).var(1), "f32[4,90]")
add("norms", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, 1, axis=0), jnp.linalg.norm(x, jnp.inf, axis=1)), "f32[7,9]")

KEY = np.array([7, 11], np.uint32)
add("random_bits", lambda k: jax.random.bits(k, (7, 3)), KEY, values=True)
add("random_bits_8", lambda k: jax.random.bits(k, (13,), "uint8"), KEY, values=True)
add("random_uniform", lambda k: jax.random.uniform(k, (17,)), KEY, values=True)
add("random_normal", lambda k: jax.random.normal(k, (17,)), KEY, values=True)
add("random_normal_bf16", lambda k: jax.random.normal(k, (17,), jnp.bfloat16), KEY, values=True)
add("random_integers", lambda k: jax.random.randint(k, (17,), -5, 90), KEY, values=True)
add("random_categorical", lambda k, x: jax.random.categorical(k, x), KEY, np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6), values=True)
add("random_permutation", lambda k: jax.random.permutation(k, 11), KEY, values=True)
add("random_split_fold", lambda k: (jax.random.split(k, 3), jax.random.fold_in(k, 9)), KEY, values=True)
add("random_gumbel", lambda k: jax.random.gumbel(k, (9,)), KEY, values=True)
add("random_truncated", lambda k: jax.random.truncated_normal(k, -2, 2, (9,)), KEY, values=True)
add("random_gamma", lambda k: jax.random.gamma(k, 2.5, (5,)), KEY, values=True)
add("random_in_scan", lambda k: lax.scan(lambda k, _: (lambda s: (s[0], jax.random.uniform(s[1], (3,))))(jax.random.split(k)), k, None, length=4), KEY, values=True)

FUNCTIONS = ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "exp", "exp2", "expm1", "log1p", "cbrt", "sinc", "square",
             "reciprocal", "deg2rad", "i0", "heaviside", "copysign", "logaddexp2", "float_power", "hypot", "round", "rint", "trunc", "spacing")
for name in FUNCTIONS:
    if not hasattr(jnp, name):
        continue
    two = name in ("heaviside", "copysign", "logaddexp2", "hypot", "float_power")
    add(f"function_{name}", lambda x, y, f=getattr(jnp, name), two=two: f(jnp.abs(x) if two and f is jnp.float_power else x, y) if two else f(x), "f32[65]", "f32[65]")
    if name in ("sin", "exp", "log1p", "tanh", "arctan"):
        add(f"function_{name}_f64", lambda x, f=getattr(jnp, name): f(x), "f64[65]")
        add(f"function_{name}_f16", lambda x, f=getattr(jnp, name): f(x), "f16[65]")
for name in ("erf", "erfc", "erfinv", "gammaln", "digamma", "expit", "logit", "ndtr", "log_ndtr", "xlogy", "xlog1py", "entr", "i0e", "i1e", "zeta", "betaln"):
    f = getattr(special, name)
    if name in ("xlogy", "xlog1py", "betaln"):
        add(f"special_{name}", lambda x, y, f=f: f(jnp.abs(x), jnp.abs(y) + 0.1), "f32[33]", "f32[33]")
    elif name == "zeta":
        add("special_zeta", lambda x, f=f: f(jnp.abs(x) + 1.5, 1.0), "f32[17]")
    elif name in ("erfinv", "logit"):
        add(f"special_{name}", lambda x, f=f: f(jax.nn.sigmoid(x)), "f32[33]")
    else:
        add(f"special_{name}", f, "f32[33]")
add("gammainc", lambda x: special.gammainc(1.5, jnp.abs(x)), "f32[9]")
add("stats_norm", lambda x: (stats.norm.logpdf(x), stats.norm.cdf(x), stats.norm.ppf(jax.nn.sigmoid(x))), "f32[33]")
add("sine_large", lambda x: (jnp.sin(x * 1e5), jnp.cos(x * 1e5), jnp.tan(x * 1e3)), "f32[65]")
add("cancellation", lambda x: (jnp.sqrt(x * x + 1) - jnp.abs(x)), "f32[65]")
add("zero_by_subtraction", lambda x: (jnp.exp(x) - jnp.exp(x), (x * 3 - x * 3) * 1e30), "f32[65]")
add("overflow", lambda x: (jnp.exp(x * 100), (x * 1e30) * (x * 1e30), jnp.exp(-jnp.exp(x * 20))), "f32[65]")
# Not x * 60000 * 2: XLA multiplies the constants first, to infinity in f16.
add("overflow_f16", lambda x: (jnp.exp(x * 20), (x * 60000) * (x + 2), (x * 300) ** 2), "f16[65]")
add("same_output_twice", lambda x: (x * 2, x * 2, x, x), "f32[7]")
add("outputs_only_parameters", lambda x, y: (y, x), "f32[7]", "s32[3]")
add("outputs_only_constants", lambda x: (jnp.arange(5), jnp.eye(3), 2.5), "f32[7]")
add("unused_parameter", lambda x, y: y + 1, "f32[7]", "s32[3]")
add("complex_spectrum", lambda x: jnp.abs(jnp.fft.fft(x)), "f32[8]")
