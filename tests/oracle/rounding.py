"""Text that computes the same with other rounding: Monte Carlo arithmetic (D. S. Parker, UCLA CSD-970002, 1997).

Behind every operation that may round differently in two right programs, `perturbed` puts a change of the result by a few units
in the last place, drawn from the bits of the value and a seed. What XLA computes from such a text is a result that rounding
may give; the spread over several seeds says, element by element, how far rounding can move the result. An element that no
rounding reaches does not move at all.
"""

import random
import re

# Most units in the last place by which a result may be off, by operation; all others are exact: they move values, compare or
# choose, or IEEE 754 fixes their result. Sums and products are exact too, but XLA contracts a product and a sum to one
# rounding and regroups sums. Functions: the largest errors that CUDA's C++ Programming Guide lists for f32 (powf: 4,
# tanf: 4, lgammaf: 6), and as much again for XLA's own approximations.
UNITS = {"add": 1, "subtract": 1, "multiply": 1, "divide": 1, "sqrt": 1, "rsqrt": 2, "cbrt": 2, "remainder": 1,
         "exponential": 4, "exponential-minus-one": 4, "log": 4, "log-plus-one": 4, "logistic": 4, "tanh": 6, "sine": 4, "cosine": 4,
         "tan": 8, "atan2": 6, "erf": 6, "power": 8, "asin": 6, "acos": 6, "atan": 6, "sinh": 6, "cosh": 6, "asinh": 6, "acosh": 6, "atanh": 6,
         "dot": 1, "convolution": 1, "batch-norm-training": 0, "batch-norm-inference": 4, "batch-norm-grad": 0}
# Products are sums over many terms inside one operation: their terms' rounding is that of the operands.
PRODUCTS = ("dot", "convolution")
# Of 16-bit types both programs compute these in f32 and round once, which gives the exactly rounded result.
EXACT_IN_16_BITS = ("add", "subtract", "multiply", "divide", "sqrt")

WIDTH = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}  # bits after the point
INSTRUCTION = re.compile(r"^(\s*)(ROOT )?(\S+) = ((f16|bf16|f32|f64)\[([\d,]*)\]\S*) ([\w-]+)\((.*)$")
REDUCERS = re.compile(r" (?:reduce|reduce-window|scatter|select-and-scatter|all-reduce)\(.*(?:to_apply|scatter)=([^\s,]+)")
HEADER = re.compile(r"^(?:ENTRY )?(\S+)(?: \(.*\) -> .*)? \{$")


def perturbed(text, seed):
    """The normalised text (xla_cpu.normalised) with its rounding perturbed by `seed`."""
    reducers = set(REDUCERS.findall(text))
    helpers, body, computation = {}, [], ""

    def change(name, shape, kind, rank, units):
        """A line that defines `name` as the perturbed `name`.exact."""
        helper = f"rounding_{kind}_{units}"
        helpers[helper] = (kind, units)
        dimensions = ",".join(map(str, range(rank)))
        return f"{name} = {shape} map({name}.exact), dimensions={{{dimensions}}}, to_apply={helper}"

    for line in text.splitlines():
        if header := HEADER.match(line):
            computation = header[1]
        match = INSTRUCTION.match(line)
        units = match and UNITS.get(match[7], 0)
        if not units or (match[5] in ("f16", "bf16") and match[7] in EXACT_IN_16_BITS and computation not in reducers):
            body.append(line)
            continue
        indent, root, name, shape, kind, dimensions, op, rest = match.groups()
        rank = len(dimensions.split(",")) if dimensions else 0
        if op in PRODUCTS:
            operands, tail = rest.split(")", 1)
            shapes = {operand: declared(body, operand) for operand in operands.split(", ")}
            for operand, (of, width, extents) in shapes.items():
                if width in WIDTH:
                    count = len(extents.split(",")) if extents else 0
                    body.append(f"{indent}{name}.{operand}.exact = {of} copy({operand})")
                    body.append(indent + change(f"{name}.{operand}", of, width, count, 1))
            operands = ", ".join(f"{name}.{o}" if shapes[o][1] in WIDTH else o for o in operands.split(", "))
            rest = f"{operands}){tail}"
        body.append(f"{indent}{name}.exact = {shape} {op}({rest}")
        body.append(f"{indent}{root or ''}" + change(name, shape, kind, rank, units))
    head, *computations = "\n".join(body).split("\n\n", 1)
    return "\n\n".join([head, *(helper_text(name, *of, seed) for name, of in helpers.items()), *computations]) + "\n"


def declared(lines, name):
    """(shape, element type, dimensions) of the last instruction of this name: names may return in other computations."""
    pattern = re.compile(rf"^\s*(?:ROOT )?{re.escape(name)} = ((\w+)\[([\d,]*)\]\S*) ")
    for line in reversed(lines):
        if match := pattern.match(line):
            return match.groups()
    raise ValueError(f"no instruction {name}")


def helper_text(name, kind, units, seed):
    """A scalar computation: x times 1 + or - `units` machine epsilons, as a hash of its bits says; zeros, infinities and NaN stay.

    The hash is the top bit of a product with an odd number (multiplicative hashing, Knuth, The Art of Computer Programming 6.4).
    """
    width = WIDTH[kind]
    bits, draw = f"s{width}", random.Random(f"{seed} {kind}")
    epsilon = units * 2.0 ** -MANTISSA[kind]
    return f"""{name} {{
  x = {kind}[] parameter(0)
  bits = {bits}[] bitcast-convert(x)
  seed = {bits}[] constant({draw.getrandbits(width - 1)})
  mixed = {bits}[] xor(bits, seed)
  odd = {bits}[] constant({draw.getrandbits(width - 1) | 1})
  hash = {bits}[] multiply(mixed, odd)
  zero = {bits}[] constant(0)
  top = pred[] compare(hash, zero), direction=LT
  up = {kind}[] constant({1 + epsilon!r})
  down = {kind}[] constant({1 - epsilon!r})
  factor = {kind}[] select(top, up, down)
  ROOT result = {kind}[] multiply(x, factor)
}}"""
