"""As much of HLO's text as the dumps of compilers need: instructions, shapes with layouts, what fusions hold."""

import dataclasses
import re

SHAPE = re.compile(r"(\w+)\[([\d,]*)\](?:\{([\d,]*)[^}]*\})?")
BYTES = {"pred": 1, "s4": 1, "u4": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8,
         "f64": 8, "c64": 8, "c128": 16, "token": 0}


@dataclasses.dataclass(frozen=True)
class Shape:
    type: str
    dims: tuple
    minor_to_major: tuple

    @property
    def physical(self):
        """Dimensions from the outermost in memory."""
        return tuple(reversed(self.minor_to_major))

    @property
    def in_memory(self):
        return tuple(self.dims[d] for d in self.physical)

    @property
    def bytes(self):
        size = BYTES.get(self.type, 1)
        for dim in self.dims:
            size *= dim
        return size

    @property
    def steps(self):
        """Elements in memory from one to the next of each dimension."""
        found, size = [0] * len(self.dims), 1
        for d in self.minor_to_major:
            found[d], size = size, size * self.dims[d]
        return found

    @property
    def row_major(self):
        return self.physical == tuple(range(len(self.dims)))


def numbers(text):
    return tuple(int(x) for x in text.split(",") if x)


def leaves(text):
    """Of an array, or of all arrays of a tuple: (places in tuples from the outermost, shape)."""
    found, path = [], []
    for part in re.finditer(rf"[(),]|{SHAPE.pattern}", re.sub(r"/\*.*?\*/", "", text)):
        if part[0] == "(":
            path.append(0)
        elif part[0] == ")":
            path.pop()
        elif part[0] == ",":
            path[-1] += 1
        else:
            dims = numbers(part[2])
            found.append((tuple(path), Shape(part[1], dims, numbers(part[3]) if part[3] else tuple(reversed(range(len(dims)))))))
    return found


def shapes(text):
    return [shape for _, shape in leaves(text)]


@dataclasses.dataclass
class Instruction:
    name: str
    op: str
    leaves: list  # (path, shape) of each array
    is_tuple: bool
    arguments: str  # between the brackets, as written
    operands: list  # names
    attributes: str  # behind them, as written
    root: bool

    @property
    def shapes(self):
        return [shape for _, shape in self.leaves]

    def attribute(self, pattern, default=None):
        found = re.search(pattern, self.attributes)
        return found[1] if found else default

    @property
    def op_name(self):
        return self.attribute(r'op_name="((?:[^"\\]|\\.)*)"')


LINE = re.compile(r"\s*(ROOT )?%?([^\s=]+) = (\((?:[^()]|\([^()]*\))*\)|\S+) ([\w-]+)\((.*)$")


def instruction(line):
    found = LINE.match(line)
    if not found:
        return None
    root, name, shape, op, rest = found.groups()
    depth = 1
    quoted = False
    for end, letter in enumerate(rest):
        if letter == '"':
            quoted = not quoted
        if not quoted:
            depth += (letter in "({") - (letter in ")}")
        if depth == 0:
            break
    arguments = rest[:end]
    return Instruction(name, op, leaves(shape), shape.startswith("("), arguments, [] if op in ("constant", "parameter") else operands(arguments), rest[end + 1:],
                       bool(root))


def operands(arguments):
    """Names: with a % as XLA writes them, behind their types or alone, or without, as stitchwork does."""
    plain = re.sub(r"/\*.*?\*/", "", arguments)
    return re.findall(r"%([^\s,()]+)", plain) if "%" in plain else [name.strip() for name in plain.split(",") if name.strip()]


def computations(text):
    """name -> instructions, in order; the entry computation under "ENTRY"."""
    found, body = {}, None
    for line in text.split("\n"):
        head = re.match(r"(ENTRY )?%?([^\s(]+) (?:\(.*)?\{\s*$", line)
        if head:
            body = found.setdefault("ENTRY" if head[1] else head[2], [])
        elif line.startswith("}"):
            body = None
        elif body is not None:
            one = instruction(line)
            if one:
                body.append(one)
    return found


def with_negative_zeros(text):
    """Text in which XLA's reader finds every zero's sign: it takes "-0", which its own printer writes, for the integer."""
    return re.sub(r"(?<=[\s{(])-0(?=[\s,})])", "-0.0", text)


def values(text):
    """Of a constant's brackets: numbers in row-major order; None where the text leaves some out."""
    if "..." in text:
        return None
    words = {"true": 1, "false": 0, "inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "-nan": float("nan")}
    found = re.findall(r"-?inf|-?nan|true|false|-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.sub(r"/\*.*?\*/", "", text))
    return [words[w] if w in words else float(w) if re.search(r"[.e]", w) else int(w) for w in found]
