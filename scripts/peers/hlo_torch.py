"""HLO carried out op by op in torch: what torch.compile makes of a model that is HLO text, as stitchwork prints it (hlo.py reads it).

`Function` is called with tensors, the parameters by number and then its array constants; run under make_fx it becomes a graph of ATen.
"""

import math
import re

import torch

import dump
import hlo
from hlo_values import TYPES, hlo_type, is_identity, list_of, number_of, padded, reduced, window

MOST_STEPS = 60000  # instructions, loops unrolled: a choice, beyond it Inductor takes hours

UNARY = {"negate": torch.neg, "abs": torch.abs, "exponential": torch.exp, "exponential-minus-one": torch.expm1, "log": torch.log, "log-plus-one": torch.log1p,
         "tanh": torch.tanh, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "erf": torch.erf, "logistic": torch.sigmoid, "sine": torch.sin, "cosine": torch.cos,
         "tan": torch.tan, "floor": torch.floor, "ceil": torch.ceil, "round-nearest-even": torch.round, "sign": torch.sign, "is-finite": torch.isfinite,
         "not": torch.bitwise_not, "copy": torch.clone, "erf-inv": torch.erfinv, "cbrt": lambda x: torch.sign(x) * torch.pow(torch.abs(x), 1 / 3),
         "round-nearest-afz": lambda x: torch.sign(x) * torch.floor(torch.abs(x) + 0.5), "optimization-barrier": lambda x: x}
BINARY = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum, "and": torch.bitwise_and,
          "or": torch.bitwise_or, "xor": torch.bitwise_xor, "power": torch.pow, "remainder": torch.fmod, "atan2": torch.atan2,
          "shift-left": torch.bitwise_left_shift, "shift-right-arithmetic": torch.bitwise_right_shift}
LOGICAL = {"add": torch.logical_or, "maximum": torch.logical_or, "multiply": torch.logical_and, "minimum": torch.logical_and}
COMPARE = {"EQ": torch.eq, "NE": torch.ne, "LT": torch.lt, "LE": torch.le, "GT": torch.gt, "GE": torch.ge}
# What is computed of scalars that are known, such as a loop's counter.
SCALAR = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "maximum": max, "minimum": min}
SCALAR_COMPARE = {"EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b,
                  "GE": lambda a, b: a >= b}


class Function:
    def __init__(self, text, device="cuda"):
        self.parts = hlo.computations(text)
        self.entry = self.parts["ENTRY"]
        self.device = device
        self.parameters = [one.shapes[0] for _, one in sorted((int(one.arguments), one) for one in self.entry if one.op == "parameter")]
        # Constants with more than one value are inputs of their own, behind the parameters.
        self.constants = {}
        for part in self.parts.values():
            for one in part:
                found = hlo.values(one.arguments) if one.op == "constant" else None
                if found and len(found) > 1 and any(v != found[0] for v in found):
                    self.constants[one.name] = (one.shapes[0], found)
        self.steps = 0

    def __call__(self, *inputs):
        self.given = dict(zip(self.constants, inputs[len(self.parameters):]))
        self.steps = 0
        with torch.no_grad():
            result, _ = self.run(self.entry, inputs[:len(self.parameters)], [None] * len(self.parameters), outer=None)
        return tuple(x.contiguous() for x in (result if isinstance(result, tuple) else (result,)))

    def run(self, body, inputs, known_inputs, outer):
        """(value of the root, what is known of it: a scalar's number, a tuple's by element). `outer`: the entry's op that called."""
        values, known = {}, {}
        for one in body:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise dump.NotUnderstood(f"more than {MOST_STEPS} instructions, loops unrolled")
            name = outer or (one.name, one.op)
            if one.op == "parameter":
                values[one.name], known[one.name] = inputs[int(one.arguments)], known_inputs[int(one.arguments)]
                continue
            with marked(name):
                values[one.name], known[one.name] = self.carry_out(one, [values[n] for n in one.operands], [known[n] for n in one.operands], name)
            if one.root:
                return values[one.name], known[one.name]
        raise dump.NotUnderstood("a computation has no root")

    def carry_out(self, one, x, known, name):
        op = one.op
        if op == "tuple":
            return tuple(x), tuple(known)
        if op == "get-tuple-element":
            index = number_of(one, "index")
            return x[0][index], known[0][index] if known[0] is not None else None
        if op == "call":
            return self.run(self.parts[one.attribute(r"to_apply=%?([^\s,]+)")], x, known, name)
        if op == "while":
            return self.loop(one, x[0], known[0], name)
        folded = self.fold(one, known)
        if op == "constant":
            return self.constant(one, folded), folded
        return self.compute(one, x, known), folded

    def fold(self, one, known):
        """The number that all elements are, where it is known."""
        if one.op in ("broadcast", "slice", "reshape", "transpose", "copy"):
            return None if isinstance(known[0], tuple) else known[0]
        if one.op == "convert" and known[0] is not None and one.shapes[0].type in TYPES:
            return float(known[0]) if TYPES[one.shapes[0].type].is_floating_point else int(known[0])
        if one.is_tuple or one.shapes[0].dims:
            return None
        if one.op == "constant":
            return hlo.values(one.arguments)[0]
        if any(k is None or isinstance(k, tuple) for k in known) or not known:
            return None
        if one.op in SCALAR and len(known) == 2:
            return SCALAR[one.op](*known)
        if one.op == "compare":
            return int(SCALAR_COMPARE[one.attribute(r"direction=(\w+)")](*known))
        return known[0] if one.op == "bitcast" else None

    def constant(self, one, folded):
        shape = one.shapes[0]
        if one.name in self.given:
            return self.given[one.name]
        found = hlo.values(one.arguments)
        if found is None:
            raise dump.NotUnderstood(f"constant {one.name}: its values were left out of the text")
        return torch.full(shape.dims, found[0] if found else 0, dtype=TYPES[shape.type], device=self.device)

    def loop(self, one, state, known, name):
        condition, body = (self.parts[one.attribute(key + r"=%?([^\s,]+)")] for key in ("condition", "body"))
        known = known or (None,) * len(state)
        while True:
            _, goes_on = self.run(condition, [state], [known], name)
            if goes_on is None:
                raise dump.NotUnderstood(f"{one.name}: how often the loop runs depends on values")
            if not goes_on:
                return state, known
            state, known = self.run(body, [state], [known], name)

    def compute(self, one, x, known):
        op, shape = one.op, None if one.is_tuple else one.shapes[0]
        kind = None if one.is_tuple else TYPES.get(shape.type)
        if not one.is_tuple and kind is None:
            raise dump.NotUnderstood(f"{one.name}: values of type {shape.type} are not known")
        if op in UNARY:
            return UNARY[op](x[0])
        if op in BINARY or op == "divide":
            if kind == torch.bool and op in LOGICAL:
                return LOGICAL[op](*x)
            if op == "divide":
                return torch.div(*x) if kind.is_floating_point else torch.div(*x, rounding_mode="trunc")
            return BINARY[op](*x)
        method = getattr(self, "op_" + op.replace("-", "_"), None)
        if method is None:
            raise dump.NotUnderstood(f"{one.name}: {op} has no counterpart in torch here")
        return method(one, x, known, shape, kind)

    def op_compare(self, one, x, known, shape, kind):
        return COMPARE[one.attribute(r"direction=(\w+)")](*x)

    def op_convert(self, one, x, known, shape, kind):
        return x[0] != 0 if kind == torch.bool else x[0].to(kind)

    def op_select(self, one, x, known, shape, kind):
        return torch.where(*x)

    def op_clamp(self, one, x, known, shape, kind):
        return torch.minimum(torch.maximum(x[1], x[0]), x[2])

    def op_reshape(self, one, x, known, shape, kind):
        return x[0].reshape(shape.dims)

    def op_bitcast(self, one, x, known, shape, kind):
        if x[0].dtype != kind or not shape.row_major:
            raise dump.NotUnderstood(f"{one.name}: a bitcast to other types or layouts")
        return x[0].reshape(shape.dims)

    def op_transpose(self, one, x, known, shape, kind):
        return x[0].permute(list_of(one, "dimensions"))

    def op_broadcast(self, one, x, known, shape, kind):
        if known[0] is not None and x[0].dim() == 0:
            return torch.full(shape.dims, known[0], dtype=kind, device=self.device)
        dims = list_of(one, "dimensions")
        return x[0].permute(sorted(range(len(dims)), key=dims.__getitem__)).reshape([n if d in dims else 1 for d, n in enumerate(shape.dims)]).expand(shape.dims)

    def op_iota(self, one, x, known, shape, kind):
        d = number_of(one, "iota_dimension", 0)
        line = torch.arange(shape.dims[d], dtype=kind, device=self.device)
        return line.reshape([n if i == d else 1 for i, n in enumerate(shape.dims)]).expand(shape.dims)

    def op_slice(self, one, x, known, shape, kind):
        value = x[0]
        for d, (first, end, step) in enumerate(re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", one.attribute(r"slice=\{(.*?)\}", ""))):
            if (int(first), int(end), int(step or 1)) != (0, value.shape[d], 1):
                value = torch.ops.aten.slice.Tensor(value, d, int(first), int(end), int(step or 1))
        return value

    def op_concatenate(self, one, x, known, shape, kind):
        return torch.cat(x, list_of(one, "dimensions")[0])

    def op_reverse(self, one, x, known, shape, kind):
        return torch.flip(x[0], list_of(one, "dimensions"))

    def op_pad(self, one, x, known, shape, kind):
        if known[1] is None:
            raise dump.NotUnderstood(f"{one.name}: pads with a value that is no constant")
        amounts = [tuple(int(v) for v in (*pair.split("_"), 0)[:3]) for pair in one.attribute(r"padding=([\d_x-]+)").split("x")]
        return padded(x[0], amounts, bool(known[1]) if kind == torch.bool else known[1])

    def op_dot(self, one, x, known, shape, kind):
        sides, batches = [], [list_of(one, f"{side}_batch_dims") for side in ("lhs", "rhs")]
        for side, value, batch, last in zip(("lhs", "rhs"), x, batches, (True, False)):
            contracting = list_of(one, f"{side}_contracting_dims")
            free = [d for d in range(value.dim()) if d not in batch + contracting]
            size = [[value.shape[d] for d in dims] for dims in (batch, free, contracting)]
            order = batch + (free + contracting if last else contracting + free)
            b, f, c = (math.prod(s) for s in size)
            sides.append(value.permute(order).reshape([b] * bool(batch) + ([f, c] if last else [c, f])))
        if not kind.is_floating_point:
            product = (sides[0].unsqueeze(-1) * sides[1].unsqueeze(-3)).sum(-2, dtype=kind)
        else:
            # Operands of a lower type than the result: torch's products have one type, and accumulate in f32.
            product = (torch.bmm if batches[0] else torch.mm)(*(side.to(kind) for side in sides))
        return product.reshape(shape.dims)

    def op_convolution(self, one, x, known, shape, kind):
        lhs, rhs, out = re.match(r"(\w+)_(\w+)->(\w+)", one.attribute(r"dim_labels=(\S+?)(?:,|$|\s)")).groups()
        spatial = [str(d) for d in range(len(lhs) - 2)]
        groups, batch_groups = number_of(one, "feature_group_count", 1), number_of(one, "batch_group_count", 1)
        if batch_groups != 1:
            raise dump.NotUnderstood(f"{one.name}: a convolution with batch groups")
        value = x[0].permute([lhs.index(d) for d in ["b", "f", *spatial]])
        kernel = x[1].permute([rhs.index(d) for d in ["o", "i", *spatial]])
        places = window(one, len(spatial))
        reverse = [2 + d for d, place in enumerate(places) if place[5]]
        kernel = torch.flip(kernel, reverse) if reverse else kernel
        pads = [(low, high, lhs_dilation - 1) for _, _, (low, high), lhs_dilation, _, _ in places]
        if all(low == high >= 0 and inner == 0 for low, high, inner in pads):
            padding = [low for low, _, _ in pads]
        else:
            value, padding = padded(value, [(0, 0, 0)] * 2 + pads, 0), [0] * len(pads)
        made = torch.ops.aten.convolution(value, kernel, None, [place[1] for place in places], padding, [place[4] for place in places], False, [0] * len(pads), groups)
        return made.permute([["b", "f", *spatial].index(d) for d in out])

    def region(self, one):
        """What two values become: the op of a region's root, or "second" where that is its second parameter."""
        body = self.parts[one.attribute(r"to_apply=%?([^\s,]+)")]
        root = next(i for i in body if i.root)
        parameters = {i.name: int(i.arguments) for i in body if i.op == "parameter"}
        if root.name in parameters:
            return "second" if parameters[root.name] == 1 else "first"
        if len(body) == len(parameters) + 1 and sorted(parameters.get(n, -1) for n in root.operands) == [0, 1]:
            return root.op
        return None

    def op_reduce(self, one, x, known, shape, kind):
        dims = list_of(one, "dimensions")
        if one.is_tuple:
            return self.arg_reduce(one, x, known, dims)
        combine = self.region(one)
        value = reduced(combine, x[0], dims)
        if value is None:
            raise dump.NotUnderstood(f"{one.name}: reduces by {combine or 'a computation of its own'}")
        if is_identity(combine, known[1], kind):
            return value
        return (LOGICAL.get(combine, BINARY[combine]) if kind == torch.bool else BINARY[combine])(value, x[1])

    def arg_reduce(self, one, x, known, dims):
        """The largest (least) value and where it is: a reduction of values and of their indices."""
        body = self.parts[one.attribute(r"to_apply=%?([^\s,]+)")]
        # Values are compared, and of equal ones their indices.
        values = {i.name for i in body if not i.is_tuple and i.shapes[0].type == hlo_type(x[0])}
        directions = {i.attribute(r"direction=(\w+)") for i in body if i.op == "compare" and i.operands[0] in values} - {"EQ", "NE"}
        if len(x) != 4 or len(dims) != 1 or len(directions) != 1 or x[1].dtype.is_floating_point:
            raise dump.NotUnderstood(f"{one.name}: a reduction of several values that is no argmax or argmin")
        largest = directions.pop() in ("GT", "GE")
        place = (torch.argmax if largest else torch.argmin)(x[0], dims[0], keepdim=True)
        return reduced("maximum" if largest else "minimum", x[0], dims), torch.gather(x[1], dims[0], place).squeeze(dims[0])

    def op_reduce_window(self, one, x, known, shape, kind):
        combine, places = self.region(one), window(one, x[0].dim())
        if combine is None or known[1] is None or any(place[3] != 1 for place in places):
            raise dump.NotUnderstood(f"{one.name}: a window that reduces by a computation of its own, is dilated below or begins with no constant")
        wide = [d for d, place in enumerate(places) if place[0] > 1]
        # A prefix of everything before is a cumulative sum.
        if combine == "add" and known[1] == 0 and len(wide) == 1:
            n = x[0].shape[wide[0]]
            if places[wide[0]] == (n, 1, (n - 1, 0), 1, 1, 0):
                return torch.cumsum(x[0], wide[0], dtype=kind)
        value = padded(x[0], [(*place[2], 0) for place in places], known[1])
        for d, (size, stride, _, _, dilation, _) in enumerate(places):
            value = value.unfold(d, (size - 1) * dilation + 1, stride)
            value = value[..., ::dilation] if dilation > 1 else value
        value = reduced(combine, value, list(range(x[0].dim(), value.dim())))
        if value is None:
            raise dump.NotUnderstood(f"{one.name}: reduces windows by {combine}")
        return value if is_identity(combine, known[1], kind) else BINARY[combine](value, x[1])

    def starts(self, x, known, sizes, whole):
        """By dimension: a number where it is known, else a tensor; clamped as HLO says."""
        return [min(max(k, 0), n - size) if k is not None else torch.clamp(start, 0, n - size) for start, k, size, n in zip(x, known, sizes, whole)]

    def positions(self, starts, sizes):
        """Index tensors, one a dimension, of a box."""
        return [(start + torch.arange(size, device=self.device)).reshape([size if i == d else 1 for i in range(len(sizes))])
                for d, (start, size) in enumerate(zip(starts, sizes))]

    def op_dynamic_slice(self, one, x, known, shape, kind):
        starts, value = self.starts(x[1:], known[1:], shape.dims, x[0].shape), x[0]
        if all(isinstance(start, int) for start in starts):
            for d, start in enumerate(starts):
                value = value.narrow(d, start, shape.dims[d])
            return value
        return torch.ops.aten._unsafe_index.Tensor(value, self.positions(starts, shape.dims))

    def op_dynamic_update_slice(self, one, x, known, shape, kind):
        sizes = tuple(x[1].shape)
        starts = self.starts(x[2:], known[2:], sizes, x[0].shape)
        if not all(isinstance(start, int) for start in starts):
            return torch.ops.aten._unsafe_index_put(x[0], self.positions(starts, sizes), x[1], False)

        def put(value, update, d):
            while d < value.dim() and update.shape[d] == value.shape[d]:
                d += 1
            if d == value.dim():
                return update
            inner = put(value.narrow(d, starts[d], sizes[d]), update, d + 1)
            return torch.slice_scatter(value, inner, d, starts[d], starts[d] + sizes[d])

        return put(x[0], x[1], 0)

    def indices(self, one, given, index_map, batching, batching_indices, axis):
        """By operand dimension the index of each element of the batch, of the shape of the indices without their vector."""
        if axis == given.dim():
            given = given.unsqueeze(-1)
        parts = {d: given.select(axis, i) for i, d in enumerate(index_map)}
        shape = given.select(axis, 0).shape
        for d, i in zip(batching, batching_indices):
            i -= i > axis
            parts[d] = torch.arange(shape[i], device=self.device).reshape([shape[i] if j == i else 1 for j in range(len(shape))]).expand(shape)
        return parts, shape

    def op_gather(self, one, x, known, shape, kind):
        sizes, offset_dims = list_of(one, "slice_sizes"), list_of(one, "offset_dims")
        batching = list_of(one, "operand_batching_dims")
        gone = list_of(one, "collapsed_slice_dims") + batching
        parts, batch = self.indices(one, x[1], list_of(one, "start_index_map"), batching, list_of(one, "start_indices_batching_dims"),
                                    number_of(one, "index_vector_dim"))
        batch_dims = [d for d in range(len(shape.dims)) if d not in offset_dims]
        kept = iter(offset_dims)
        found = []
        for d, size in enumerate(sizes):
            where = 0
            if d in parts:
                start = parts[d] if d in batching else torch.clamp(parts[d], 0, x[0].shape[d] - size)
                spread = dict(zip(batch_dims, batch))
                where = start.reshape([spread.get(o, 1) for o in range(len(shape.dims))])
            if d not in gone:
                o = next(kept)
                where = where + torch.arange(size, device=self.device).reshape([size if i == o else 1 for i in range(len(shape.dims))])
            elif d not in parts:
                where = torch.zeros([1] * len(shape.dims), dtype=torch.int64, device=self.device)
            found.append(where)
        return torch.ops.aten._unsafe_index.Tensor(x[0], [where.expand(shape.dims) if not i else where for i, where in enumerate(found)])

    def op_scatter(self, one, x, known, shape, kind):
        combine = self.region(one)
        if combine not in ("add", "second"):
            raise dump.NotUnderstood(f"{one.name}: a scatter that combines by {combine or 'a computation of its own'}")
        operand, given, updates = x
        window_dims, batching = list_of(one, "update_window_dims"), list_of(one, "input_batching_dims")
        gone = list_of(one, "inserted_window_dims") + batching
        parts, batch = self.indices(one, given, list_of(one, "scatter_dims_to_operand_dims"), batching, list_of(one, "scatter_indices_batching_dims"),
                                    number_of(one, "index_vector_dim"))
        batch_dims = [d for d in range(updates.dim()) if d not in window_dims]
        kept = iter(window_dims)
        found, inside = [], None
        for d in range(operand.dim()):
            where = torch.zeros([1] * updates.dim(), dtype=torch.int64, device=self.device)
            size = 1
            if d not in gone:
                u = next(kept)
                size = updates.shape[u]
                where = torch.arange(size, device=self.device).reshape([size if i == u else 1 for i in range(updates.dim())])
            if d in parts:
                spread = dict(zip(batch_dims, batch))
                start = parts[d].reshape([spread.get(o, 1) for o in range(updates.dim())])
                fits = (start >= 0) & (start <= operand.shape[d] - size)
                inside = fits if inside is None else inside & fits
                where = where + torch.clamp(start, 0, operand.shape[d] - size)
            found.append(where)
        # An update outside is left out: it adds nothing, or puts what is there.
        old = torch.zeros([], dtype=kind, device=self.device) if combine == "add" else torch.ops.aten._unsafe_index.Tensor(operand, [w.expand(updates.shape) for w in found])
        updates = updates if inside is None else torch.where(inside, updates, old)
        return torch.ops.aten._unsafe_index_put(operand, [where.expand(updates.shape) for where in found], updates, combine == "add")

    def op_topk(self, one, x, known, shape, kind):
        values, places = torch.topk(x[0], number_of(one, "k"), -1, "largest=false" not in one.attributes, True)
        return values, places.to(TYPES[one.shapes[1].type])


class marked:
    """What is traced meanwhile is of that instruction (name, op): FX nodes carry it where passes keep it."""

    def __init__(self, instruction):
        self.instruction = instruction

    def __enter__(self):
        from torch.fx.experimental.proxy_tensor import get_proxy_mode
        mode = get_proxy_mode()
        self.graph = mode.tracer.graph if mode else None
        self.last = next(iter(reversed(self.graph.nodes)), None) if self.graph else None

    def __exit__(self, *_):
        for node in reversed(self.graph.nodes) if self.graph else ():
            if node is self.last:
                break
            node.meta["custom"] = {"instruction": node.meta.get("custom", {}).get("instruction", self.instruction)}
