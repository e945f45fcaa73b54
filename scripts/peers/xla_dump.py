"""A folder of XLA's own files (scripts/peers/xla) as a program: dump.json (docs/peers.md).

Which launch carries out which instruction is XLA's own word (thunk_metadata.txt), where values lie its buffer assignment's. A kernel has a
parameter for each operand and result; what lies in the same bytes may share one.
"""

import json
import re
import struct

import dump
import hlo
import xla_calls
from dump import NotUnderstood

CONTROL = {"kWhile", "kConditional", "kSequential", "kCommandBuffer"}
# XLA's allocator gives whole multiples of it, and its kernels read vectors that end behind a value.
ALIGNMENT = 256
MOST_VALUES = 256  # bytes of a constant that dump.json itself has
FREE = {"parameter", "constant", "bitcast", "get-tuple-element", "tuple", "after-all"}


def read(folder, name):
    try:
        return (folder / name).read_text()
    except OSError as error:
        raise NotUnderstood(f"{folder / name}: {error.strerror}") from error


def origin(folder):
    """What was said of a dump when it was made."""
    try:
        document = json.loads(read(folder, "dump.json"))
        return {"target": document["target"], "versions": document["versions"], "flags": document["flags"]}
    except (ValueError, KeyError) as error:
        raise NotUnderstood(f"{folder}/dump.json: {error}") from error


class Buffers:
    """XLA's allocations, and where in them each value lies."""

    def __init__(self, text, file):
        self.sizes, self.parameters, self.constants, self.at = {}, {}, set(), {}
        allocation = None
        for line in text.split("\n"):
            if head := re.match(r"allocation (\d+): size (\d+), ?(.*)", line):
                allocation = int(head[1])
                self.sizes[allocation] = -(-int(head[2]) // ALIGNMENT) * ALIGNMENT
                if number := re.match(r"parameter (\d+)", head[3]):
                    if re.search(r"ShapeIndex \{\d", head[3]):
                        raise NotUnderstood(f"{file}: parameter {number[1]} is a tuple")
                    self.parameters[int(number[1])] = allocation
                if head[3].startswith("constant"):
                    self.constants.add(allocation)
            elif value := re.match(r" value: <\d+ (\S+) @\d+> \(size=(\d+),offset=(\d+)\)", line):
                self.at[value[1]] = (allocation, int(value[3]), int(value[2]))
        if not self.sizes or not self.at:
            raise NotUnderstood(f"{file}: no buffer assignment as XLA of jaxlib 0.10 writes it")

    def of(self, name, index=None):
        return self.at.get(name if index is None else f"{name}{{{index}}}")


def thunks(folder):
    """(kind, name, grid, block, shared bytes, instruction), in order."""
    metadata = [dict(re.findall(r'(\w+): "?([^"\n]*)"?', part)) for part in read(folder, "thunk_metadata.txt").split("thunk_metadata {")[1:]]
    named = {int(m["thunk_id"]): m.get("profile_annotation", "") for m in metadata if "thunk_id" in m}
    found = []
    line_of = re.compile(r"\s*(\d+): (\w+)\s+\[.*?\](?:\s+(\S+))?(?: grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\]\s+shared_memory: (\d+) bytes)?")
    for line in read(folder, "thunks.txt").split("\n"):
        if not line.strip():
            continue
        m = line_of.match(line)
        if m and m[2] in CONTROL:
            raise NotUnderstood(f"{folder}/thunks.txt: it runs a {m[2]}: loops, branches and command buffers are not known")
        if not m or (m[2] == "kCustomKernel" and m[4] is None):
            raise NotUnderstood(f"{folder}/thunks.txt: '{line.strip()[:80]}' is no thunk as XLA of jaxlib 0.10 writes it")
        size = [int(x) for x in m.groups()[3:9]] if m[4] else [0] * 6
        found.append((m[2], m[3], size[:3], size[3:], int(m[10] or 0), named.get(int(m[1]), "")))
    return found


class Lowering:
    def __init__(self, folder):
        self.folder = folder
        self.parts = hlo.computations(read(folder, "after.hlo"))
        if "ENTRY" not in self.parts:
            raise NotUnderstood(f"{folder}/after.hlo: has no ENTRY computation")
        self.entry = self.parts["ENTRY"]
        self.buffers = Buffers(read(folder, "buffers.txt"), f"{folder}/buffers.txt")
        self.kernels = self.read_kernels()
        self.values = {}  # name -> [(place, shape)], a place for each array of a tuple
        self.used = set()

    def read_kernels(self):
        """Entry -> (file, number of parameters, whether shared memory is the launch's)."""
        found = {}
        for file in sorted(self.folder.glob("*.ptx")):
            text = file.read_text()
            for name, parameters in re.findall(r"\.entry (\S+?)\((.*?)\)", text, re.S):
                found[name] = (file.name, parameters.count(".param"), ".extern .shared" in text)
        return found

    def place(self, where):
        self.used.add(where[0])
        return f"a{where[0]}" + (f"+{where[1]}" if where[1] else "")

    def place_values(self):
        for one in self.entry:
            if one.op == "bitcast":
                self.values[one.name] = [(self.values[one.operands[0]][0][0], one.shapes[0])]
            elif one.op == "get-tuple-element":
                self.values[one.name] = [self.values[one.operands[0]][int(one.attribute(r"index=(\d+)"))]]
            elif one.op == "tuple":
                self.values[one.name] = [v for operand in one.operands for v in self.values[operand]]
            else:
                self.values[one.name] = [(self.buffers.of(one.name, i if one.is_tuple else None), shape) for i, shape in enumerate(one.shapes)]

    def kernel_arguments(self, one, kernel, count):
        """A parameter an operand and result; what lies in the same bytes is one where the kernel has fewer."""
        places = [place for operand in one.operands for place, _ in self.values[operand]] + [place for place, _ in self.values[one.name]]
        if any(place is None for place in places):
            raise NotUnderstood(f"{one.name}: the buffer assignment does not say where its operands and results lie")
        if len(places) != count:
            places = list(dict.fromkeys(places))
        if len(places) != count:
            raise NotUnderstood(f"{one.name}: kernel {kernel} takes {count} parameters, its operands and results lie in {len(places)} places")
        return [self.place(place) for place in places]

    def ops(self, one):
        """Of the model: the metadata of the instruction and of what it holds."""
        called = self.parts.get(one.attribute(r"calls=%?([^\s,]+)", ""), [])
        return list(dict.fromkeys(i.op_name for i in [*called, one] if i.op_name))

    def holds_product(self, one):
        called = self.parts.get(one.attribute(r"calls=%?([^\s,]+)", ""), [])
        return any(i.op in ("dot", "convolution") for i in called)

    def step(self, thunk, one):
        kind, name, grid, block, shared, _ = thunk
        said = {"instruction": one.name, "ops": self.ops(one)}
        if kind == "kCustomKernel":
            if name not in self.kernels:
                raise NotUnderstood(f"{one.name}: no PTX file has its kernel {name}")
            file, count, dynamic = self.kernels[name]
            return {"kernel": name, "module": file, "grid": grid, "block": block, "shared_bytes": shared if dynamic else 0,
                    "arguments": self.kernel_arguments(one, name, count), **({"product": True} if self.holds_product(one) else {}), **said}
        results = [(place, shape) for place, shape in self.values[one.name] if place]
        operands = [v for operand in one.operands for v in self.values[operand]]
        if kind == "kCopy" and len(operands) == 1:
            return {"copy": self.place(results[0][0]), "from": self.place(operands[0][0]), "bytes": results[0][1].bytes, **said}
        if kind in ("kMemzero", "kMemset32BitValue") and results and (kind == "kMemzero" or "constant(0)" in one.arguments):
            return {"memset": self.place(results[0][0]), "bytes": results[0][1].bytes, **said}
        if one.op != "custom-call":
            raise NotUnderstood(f"{one.name} ({one.op}): thunks of kind {kind} are not known")
        target = one.attribute(r'custom_call_target="([^"]*)"', one.op)
        step = {"call": target, "operands": [self.place(place) for place, _ in operands], **said}
        computed = xla_calls.computes(target, one, [shape for _, shape in operands])
        if computed is None:
            return {**step, "results": [self.place(place) for place, _ in results]}
        text, count = computed  # the first results; workspaces are left out
        return {**step, "computes": text, "results": [self.place(place) for place, _ in results[:count]]}

    def steps(self):
        by_name = {one.name: one for one in self.entry}
        made = []
        pending = [one for one in self.entry if one.op not in FREE]
        for thunk in thunks(self.folder):
            name = thunk[5]
            one = by_name.get(name)
            if one is None:
                raise NotUnderstood(f"thunk {thunk[1]} ({thunk[0]}) is of '{name}', which the module's entry does not have")
            if one in pending:
                pending.remove(one)
            made.append(self.step(thunk, one))
        if pending:
            raise NotUnderstood(f"no thunk carries out {pending[0].name} ({pending[0].op})")
        return made

    def interface(self):
        """Parameters by number and results: place, type and shape."""
        def said(place, shape, what):
            if not shape.row_major:
                raise NotUnderstood(f"{what} is {shape.type}{list(shape.dims)} with layout {list(shape.minor_to_major)}: only row-major ones are known")
            return {"at": self.place(place), "type": shape.type, "shape": list(shape.dims)}

        parameters = sorted((int(one.arguments), one) for one in self.entry if one.op == "parameter")
        root = next(one for one in self.entry if one.root)
        return ([said(*self.values[one.name][0], f"parameter {number}") for number, one in parameters],
                [said(place, shape, "a result") for place, shape in self.values[root.name]])

    def declared(self):
        buffers = {f"a{number}": {"bytes": size} for number, size in self.buffers.sizes.items() if number in self.used and size}
        for one in self.entry:
            place = self.values[one.name][0][0] if one.op == "constant" and self.values[one.name] else None
            if place is None or place[0] not in self.used:
                continue
            found = hlo.values(one.arguments)
            if found is None:
                raise NotUnderstood(f"constant {one.name}: its values were left out of the file")
            shape = one.shapes[0]
            if len(found) == 1:
                found = found * (shape.bytes // hlo.BYTES[shape.type])
            data = packed(shape.type, in_memory_order(found, shape), one.name).ljust(self.buffers.sizes[place[0]], b"\0")
            buffers[f"a{place[0]}"] = self.constant(f"a{place[0]}", data)
        return buffers

    def constant(self, name, data):
        """Long ones have files of their own."""
        if len(data) <= MOST_VALUES:
            return {"type": "u8", "shape": [len(data)], "fill": {"values": list(data)}}
        dump.write_bytes(self.folder / f"{name}.npy", data)
        return {"npy": f"{name}.npy"}


def in_memory_order(found, shape):
    if shape.row_major:
        return found
    steps, size = {}, 1
    for d in reversed(range(len(shape.dims))):
        steps[d], size = size, size * shape.dims[d]
    order = [0]
    for d in shape.physical:
        order = [base + i * steps[d] for base in order for i in range(shape.dims[d])]
    return [found[i] for i in order]


def packed(kind, found, name):
    formats = {"f64": "d", "f32": "f", "f16": "e", "s8": "b", "u8": "B", "pred": "B", "s16": "h", "u16": "H", "s32": "i", "u32": "I", "s64": "q", "u64": "Q"}
    if kind == "bf16":  # the upper half of an f32 that is one already
        return b"".join(struct.pack("<f", v)[2:] for v in found)
    if kind not in formats:
        raise NotUnderstood(f"constant {name}: values of type {kind} are not known")
    return struct.pack(f"<{len(found)}{formats[kind]}", *found)


def write(folder, target, versions, flags):
    """Writes dump.json beside XLA's files. The number of steps."""
    lowering = Lowering(folder)
    lowering.place_values()
    steps = lowering.steps()
    parameters, results = lowering.interface()
    dump.write(folder, peer="xla", versions=versions, flags=flags, target=target, model="before.hlo", optimised="after.hlo", parameters=parameters, results=results,
               program={"buffers": lowering.declared(), "steps": steps})
    return len(steps)
