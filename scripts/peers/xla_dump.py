"""A folder of XLA's own files (scripts/peers/xla) as a program: dump.json (docs/peers.md).

Which launch carries out which instruction is XLA's own word (thunk_metadata.txt), where values lie its buffer assignment's. A kernel has a
parameter for each operand and result; what lies in the same bytes may share one.
"""

import dataclasses
import json
import re
import struct

import dump
import hlo
import xla_calls
import xla_thunks
from dump import NotUnderstood

# XLA's allocator gives whole multiples of it, and its kernels read vectors that end behind a value.
ALIGNMENT = 256
MOST_VALUES = 256  # bytes of a constant that dump.json itself has
MOST_STEPS = 200_000  # with all trips of loops written out: beyond, dump.json has hundreds of megabytes
# What depends on values that are there when it runs, and a dump, whose steps are a list, has no place for.
REFUSED = {
    "kWhile": "{}: how often this loop runs is only known when it runs; give it trips that are known, as lax.scan and lax.fori_loop between constants have",
    "kConditional": "{}: which branch of this conditional runs is only known when it runs; compute the branches and take one by jnp.where or lax.select_n, "
                    "or make a dump of a model that has one of them",
    "kCommandBuffer": "{}: its launches are recorded in a command buffer; compile with --flag=--xla_gpu_enable_command_buffer=",
}
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
        self.sizes, self.at = {}, {}
        allocation = None
        for line in text.split("\n"):
            if head := re.match(r"allocation (\d+): size (\d+), ?(.*)", line):
                allocation = int(head[1])
                self.sizes[allocation] = -(-int(head[2]) // ALIGNMENT) * ALIGNMENT
            elif value := re.match(r" value: <\d+ (\S+) (?:\(phi\) )?@\d+> \(size=(\d+),offset=(\d+)\)", line):
                self.at[value[1]] = (allocation, int(value[3]), int(value[2]))
        if not self.sizes or not self.at:
            raise NotUnderstood(f"{file}: no buffer assignment as XLA of jaxlib 0.10 writes it")

    def of(self, name, path=()):
        return self.at.get(f"{name}{{{','.join(map(str, path))}}}" if path else name)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array of a value: where in tuples, and where in memory, which is not known of what no launch touches."""
    path: tuple
    place: tuple  # allocation, offset, bytes; or None
    shape: hlo.Shape

    def at(self, path):
        return Leaf(path, self.place, self.shape)


class Lowering:
    def __init__(self, folder):
        self.folder = folder
        self.parts = hlo.computations(read(folder, "after.hlo"))
        if "ENTRY" not in self.parts:
            raise NotUnderstood(f"{folder}/after.hlo: has no ENTRY computation")
        self.entry = self.parts["ENTRY"]
        self.buffers = Buffers(read(folder, "buffers.txt"), f"{folder}/buffers.txt")
        self.kernels = self.read_kernels()
        self.values = {}  # name -> leaves
        self.constants = []  # instructions
        self.used = set()
        self.made, self.loops = [], []

    def read_kernels(self):
        """Entry -> (file, number of parameters, whether shared memory is the launch's)."""
        found = {}
        for file in sorted(self.folder.glob("*.ptx")):
            text = file.read_text()
            for name, parameters in re.findall(r"\.entry (\S+?)\((.*?)\)", text, re.S):
                found[name] = (file.name, parameters.count(".param"), ".extern .shared" in text)
        return found

    def place(self, where):
        if where is None:
            raise NotUnderstood("the buffer assignment does not say where a value lies that a thunk reads or writes")
        self.used.add(where[0])
        return f"a{where[0]}" + (f"+{where[1]}" if where[1] else "")

    def called(self, one):
        """What a loop or branch runs: names of its thunk's parts -> computations."""
        if one.op == "while":
            return {part: one.attribute(rf"{part}=%?([^\s,]+)") for part in ("condition", "body")}
        branches = one.attribute(r"branch_computations=\{([^}]*)\}")
        # Of a predicate the false one is the first.
        names = branches.split(",") if branches else [one.attribute(rf"{which}_computation=%?([^\s,]+)", "") for which in ("true", "false")]
        return {f"branch_{i}": name.strip().lstrip("%") for i, name in enumerate(names)}

    def place_values(self, computation, given=None):
        """Of a computation's instructions and of all that it runs; `given`: leaves of its parameter."""
        for one in computation:
            known = {}  # path -> leaf, where the value is another's
            if one.op == "parameter" and given is not None:
                known = {leaf.path: leaf for leaf in given}
            elif one.op == "while":
                known = {leaf.path: leaf for leaf in self.values[one.operands[0]]}
            self.values[one.name] = self.aliased(one, self.values) or [
                Leaf(path, self.buffers.of(one.name, path) or (known[path].place if path in known else None), shape) for path, shape in one.leaves]
            if one.op == "constant":
                self.constants.append(one)
            if one.op in ("while", "conditional"):
                for number, name in enumerate(self.called(one).values()):
                    operand = one.operands[0 if one.op == "while" else 1 + number]
                    self.place_values(self.parts[name], self.values[operand])

    @staticmethod
    def aliased(one, values):
        """Leaves of what is only another name for its operands."""
        if one.op == "bitcast":
            return [Leaf((), values[one.operands[0]][0].place, one.shapes[0])]
        if one.op == "get-tuple-element":
            index = int(one.attribute(r"index=(\d+)"))
            return [leaf.at(leaf.path[1:]) for leaf in values[one.operands[0]] if leaf.path[0] == index]
        if one.op == "tuple":
            return [leaf.at((i, *leaf.path)) for i, operand in enumerate(one.operands) for leaf in values[operand]]
        return None

    def kernel_arguments(self, one, kernel, count):
        """A parameter an operand and result; what lies in the same bytes is one where the kernel has fewer."""
        places = [leaf.place for name in (*one.operands, one.name) for leaf in self.values[name]]
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

    def copied(self, one, operand):
        """Where a copy begins to read: a slice's rows lie together, somewhere in its operand."""
        called = self.parts.get(one.attribute(r"calls=%?([^\s,]+)", ""), [one])
        slices = [i for i in called if i.op in ("slice", "dynamic-slice")]
        if not slices:
            return operand.place
        if len(slices) > 1 or not slices[0].root and slices[0] is not one:
            raise NotUnderstood(f"{one.name}: a copy of more than a slice is not known")
        return moved(operand.place, offset(slices[0], {i.name: i for i in called}, operand.shape, ()), slices[0].shapes[0])

    def step(self, thunk, one):
        said = {"instruction": one.name, "ops": self.ops(one)}
        if thunk.kind == "kCustomKernel":
            if thunk.name not in self.kernels:
                raise NotUnderstood(f"{one.name}: no PTX file has its kernel {thunk.name}")
            file, count, dynamic = self.kernels[thunk.name]
            return {"kernel": thunk.name, "module": file, "grid": thunk.grid, "block": thunk.block, "shared_bytes": thunk.shared_bytes if dynamic else 0,
                    "arguments": self.kernel_arguments(one, thunk.name, count), **({"product": True} if self.holds_product(one) else {}), **said}
        results = [leaf for leaf in self.values[one.name] if leaf.place]
        operands = [leaf for operand in one.operands for leaf in self.values[operand]]
        if thunk.kind == "kCopy" and len(operands) == 1 and results:
            return {"copy": self.place(results[0].place), "from": self.place(self.copied(one, operands[0])), "bytes": results[0].shape.bytes, **said}
        if thunk.kind in ("kMemzero", "kMemset32BitValue") and results and (thunk.kind == "kMemzero" or "constant(0)" in one.arguments):
            return {"memset": self.place(results[0].place), "bytes": results[0].shape.bytes, **said}
        if one.op != "custom-call":
            raise NotUnderstood(f"{one.name} ({one.op}): thunks of kind {thunk.kind} are not known")
        target = one.attribute(r'custom_call_target="([^"]*)"', one.op)
        step = {"call": target, "operands": [self.place(leaf.place) for leaf in operands], **said}
        computed = xla_calls.computes(target, one, [leaf.shape for leaf in operands])
        if computed is None:
            return {**step, "results": [self.place(leaf.place) for leaf in results]}
        text, count = computed  # the first results; workspaces are left out
        return {**step, "computes": text, "results": [self.place(leaf.place) for leaf in results[:count]]}

    def sequence(self, thunks, computation, trips=()):
        """Appends the steps of a computation's thunks; `trips`: those of the loops around it, the innermost first."""
        by_name = {one.name: one for one in computation}
        pending = [one for one in computation if one.op not in FREE]
        for thunk in xla_thunks.without_sequences(thunks):
            one = by_name.get(thunk.instruction)
            if one is None:
                raise NotUnderstood(f"thunk {thunk.name} ({thunk.kind}) is of '{thunk.instruction}', which its computation does not have")
            if one in pending:
                pending.remove(one)
            if thunk.kind == "kWhile":
                self.loop(thunk, one, trips)
            elif thunk.kind == "kDynamicSliceFusion":
                self.sliced(thunk, one, trips)
            elif thunk.kind in ("kConditional", "kCommandBuffer"):
                raise NotUnderstood(REFUSED[thunk.kind].format(one.name))
            else:
                self.made.append(self.step(thunk, one))
            if len(self.made) > MOST_STEPS:
                raise NotUnderstood(f"{one.name}: more than {MOST_STEPS} steps with all trips of loops written out; give the model fewer trips")
        if pending:
            raise NotUnderstood(f"no thunk carries out {pending[0].name} ({pending[0].op})")

    def loop(self, thunk, one, trips):
        """All its trips, one after another: XLA's host counts them where the module says how many there are, and runs no condition."""
        count = xla_calls.backend_config(one).get("known_trip_count", {}).get("n")
        if count is None:
            raise NotUnderstood(REFUSED["kWhile"].format(one.name))
        first, known = len(self.made), len(self.loops)
        body = self.parts[self.called(one)["body"]]
        for trip in range(int(count)):
            self.sequence(thunk.parts.get("body", []), body, (trip, *trips))
            if trip == 0 and len(self.made) == first:
                return  # nothing is launched
            if trip == 0:
                self.loops.insert(known, {"instruction": one.name, "first": first, "steps": len(self.made) - first, "trips": int(count)})
                known = len(self.loops)
            del self.loops[known:]  # of the first trip alone

    def sliced(self, thunk, one, trips):
        """Of a fusion that carries out its ops by thunks of their own, which read slices of its operands and write slices of its results in place."""
        fused = self.parts[one.attribute(r"calls=%?([^\s,]+)")]
        by_name = {inner.name: inner for inner in fused}
        values = {}
        for inner in fused:
            values[inner.name] = self.aliased(inner, values)
            if inner.op == "parameter":
                values[inner.name] = self.values[one.operands[int(inner.arguments)]]
            elif inner.op in ("dynamic-slice", "slice"):
                whole = values[inner.operands[0]][0]
                values[inner.name] = [Leaf((), moved(whole.place, offset(inner, by_name, whole.shape, trips), inner.shapes[0]), inner.shapes[0])]
            elif values[inner.name] is None:
                values[inner.name] = [Leaf(path, None, shape) for path, shape in inner.leaves]

        def write(inner, leaves):
            """Says where a value lies: it is (part of) a result."""
            if inner.op == "tuple":
                for i, operand in enumerate(inner.operands):
                    write(by_name[operand], [leaf.at(leaf.path[1:]) for leaf in leaves if leaf.path[0] == i])
            elif inner.op == "dynamic-update-slice":
                update = by_name[inner.operands[1]]
                write(update, [Leaf((), moved(leaves[0].place, offset(inner, by_name, inner.shapes[0], trips), update.shapes[0]), update.shapes[0])])
            elif inner.op == "bitcast":
                write(by_name[inner.operands[0]], leaves)
            elif inner.op == "get-tuple-element":
                index = int(inner.attribute(r"index=(\d+)"))
                write(by_name[inner.operands[0]], [leaf.at((index, *leaf.path)) for leaf in leaves])
            else:
                given = {leaf.path: leaf.place for leaf in leaves}
                values[inner.name] = [Leaf(leaf.path, given.get(leaf.path, leaf.place), leaf.shape) for leaf in values[inner.name]]

        write(next(inner for inner in fused if inner.root), self.values[one.name])
        self.values.update(values)
        for part in xla_thunks.without_sequences(thunk.inner()):
            if part.instruction not in by_name:
                raise NotUnderstood(f"{one.name}: its thunk {part.name} ({part.kind}) is of '{part.instruction}', which it does not hold")
            step = self.step(part, by_name[part.instruction])
            self.made.append({**step, "instruction": one.name, "ops": self.ops(one)})

    def interface(self):
        """Arrays of the parameters by number, and of the results: place, type, shape and layout."""
        def said(leaf):
            shape = leaf.shape
            layout = {} if shape.row_major else {"layout": list(shape.minor_to_major)}
            return {"at": self.place(leaf.place), "type": shape.type, "shape": list(shape.dims), **layout}

        parameters = sorted((int(one.arguments), one) for one in self.entry if one.op == "parameter")
        root = next(one for one in self.entry if one.root)
        return [said(leaf) for _, one in parameters for leaf in self.values[one.name]], [said(leaf) for leaf in self.values[root.name]]

    def declared(self):
        buffers = {f"a{number}": {"bytes": size} for number, size in self.buffers.sizes.items() if number in self.used and size}
        for one in self.constants:
            place = self.values[one.name][0].place if self.values[one.name] else None
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


def moved(place, by, shape):
    return None if place is None else (place[0], place[1] + by, shape.bytes)


def offset(one, by_name, whole, trips):
    """Bytes from the beginning of `whole` to the slice that an op reads or updates in this trip of the loops around it."""
    steps = whole.steps
    if one.op == "slice":
        return hlo.BYTES[whole.type] * sum(int(start) * step for start, step in zip(re.findall(r"\[(\d+):", one.attribute(r"slice=\{([^}]*)\}")), steps))
    config = xla_calls.backend_config(one).get("dynamic_slice_config")
    if config and "byte_offset" in config:
        loop = int(config.get("loop_index", 0))
        if config.get("byte_stride", "0") != "0" and loop >= len(trips):
            raise NotUnderstood(f"{one.name}: its slice is of loop {loop} around it; there are {len(trips)}")
        return int(config["byte_offset"]) + (int(config.get("byte_stride", 0)) * trips[loop] if trips else 0)
    indices = [by_name[name] for name in one.operands[1 if one.op == "dynamic-slice" else 2:]]
    if any(index.op != "constant" for index in indices):
        raise NotUnderstood(f"{one.name}: where its slice begins is only known when it runs")
    sizes = (one if one.op == "dynamic-slice" else by_name[one.operands[1]]).shapes[0].dims
    starts = [min(max(hlo.values(index.arguments)[0], 0), dim - size) for index, dim, size in zip(indices, whole.dims, sizes)]
    return hlo.BYTES[whole.type] * sum(start * step for start, step in zip(starts, steps))


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
    lowering.place_values(lowering.entry)
    lowering.sequence(xla_thunks.sequence(read(folder, "thunks.txt"), read(folder, "thunk_metadata.txt"), f"{folder}/thunks.txt"), lowering.entry)
    parameters, results = lowering.interface()
    loops = {"loops": lowering.loops} if lowering.loops else {}
    dump.write(folder, peer="xla", versions=versions, flags=flags, target=target, model="before.hlo", optimised="after.hlo", parameters=parameters, results=results,
               program={"buffers": lowering.declared(), "steps": lowering.made}, **loops)
    return len(lowering.made)
