"""What library calls that Inductor makes compute, as HLO text: operands are parameters as they lie in memory, results the root.

What is not here has no text, and a run of it is refused by its name.
"""

import dataclasses
import math

from xla_calls import Text


@dataclasses.dataclass(frozen=True)
class View:
    """A tensor of torch: HLO's type, sizes and strides in elements."""

    type: str
    size: tuple
    stride: tuple

    @property
    def order(self):
        """Dimensions from the outermost in memory; without those of one element and those that are spread."""
        return sorted((d for d, n in enumerate(self.size) if n > 1 and self.stride[d]), key=lambda d: -self.stride[d])

    @property
    def span(self):
        """Elements from the first to the last."""
        return 1 + sum((n - 1) * s for n, s in zip(self.size, self.stride)) if math.prod(self.size) else 0

    @property
    def dense(self):
        return self.span == math.prod(self.size[d] for d in self.order)

    @property
    def row_major(self):
        return self.span == math.prod(self.size) and self.order == sorted(self.order)


def list_text(numbers):
    return "{" + ",".join(map(str, numbers)) + "}"


class Call(Text):
    def operand(self, number, view):
        """Of its sizes, from the elements that it spans."""
        order = view.order
        sizes = [view.size[d] for d in order]
        if view.dense:
            name = self.add(view.type, sizes, f"parameter({number})")
        else:
            name, _ = self.rows(view, self.add(view.type, [view.span], f"parameter({number})"), [], order)
        kept = sorted(order)
        if order != kept:
            name = self.add(view.type, [view.size[d] for d in kept], f"transpose({name}), dimensions={list_text(order.index(d) for d in kept)}")
        spread = [d for d, n in enumerate(view.size) if d not in order]
        if spread:
            name = self.add(view.type, view.size, f"broadcast({name}), dimensions={list_text(kept)}")
        return name

    def padded(self, view, name, dims, to):
        """Longer in the last dimension."""
        if dims[-1] == to:
            return name
        zero = self.add(view.type, (), f"constant({0 if view.type != 'pred' else 'false'})")
        return self.add(view.type, [*dims[:-1], to], f"pad({name}, {zero}), padding={'x'.join(['0_0'] * (len(dims) - 1) + [f'0_{to - dims[-1]}'])}")

    def cut(self, view, name, dims, first, end):
        if (first, end) == (0, dims[-1]):
            return name
        bounds = ", ".join([f"[0:{n}]" for n in dims[:-1]] + [f"[{first}:{end}]"])
        return self.add(view.type, [*dims[:-1], end - first], f"slice({name}), slice={{{bounds}}}")

    def rows(self, view, name, before, order):
        """Elements with gaps between them: the last dimension is cut into rows of a stride, and of each its beginning is taken."""
        if not order:
            return self.add(view.type, before, f"reshape({name})"), before
        n, stride = view.size[order[0]], view.stride[order[0]]
        inner = 1 + sum((view.size[d] - 1) * view.stride[d] for d in order[1:])
        name = self.padded(view, name, [*before, (n - 1) * stride + inner], n * stride)
        name = self.add(view.type, [*before, n, stride], f"reshape({name})")
        return self.rows(view, self.cut(view, name, [*before, n, stride], 0, inner), [*before, n], order[1:])

    def into(self, view, old, new, before, order):
        """`old`, elements that a view spans, with `new` at those that are the view's."""
        if not order:
            return self.add(view.type, [*before, 1], f"reshape({new})")
        n, stride = view.size[order[0]], view.stride[order[0]]
        inner = 1 + sum((view.size[d] - 1) * view.stride[d] for d in order[1:])
        length = (n - 1) * stride + inner
        rows = self.add(view.type, [*before, n, stride], f"reshape({self.padded(view, old, [*before, length], n * stride)})")
        begin = self.into(view, self.cut(view, rows, [*before, n, stride], 0, inner), new, [*before, n], order[1:])
        if inner < stride:
            rest = self.cut(view, rows, [*before, n, stride], inner, stride)
            begin = self.add(view.type, [*before, n, stride], f"concatenate({begin}, {rest}), dimensions={{{len(before) + 1}}}")
        whole = self.add(view.type, [*before, n * stride], f"reshape({begin})")
        return self.cut(view, whole, [*before, n * stride], 0, length)

    def result(self, name, view, old=None):
        """As it lies in memory. `old`: the parameter that is what a result with gaps has between its elements."""
        order = view.order
        kept = sorted(order)
        if kept != list(range(len(view.size))):
            name = self.add(view.type, [view.size[d] for d in kept], f"reshape({name})")
        if kept != order:
            name = self.add(view.type, [view.size[d] for d in order], f"transpose({name}), dimensions={list_text(kept.index(d) for d in order)}")
        if view.dense:
            return name
        return self.into(view, self.add(view.type, [view.span], f"parameter({old})"), name, [], order)

    def number(self, view, value):
        one = self.add(view.type, (), f"constant({value})")
        return self.add(view.type, view.size, f"broadcast({one}), dimensions={{}}")

    def times(self, name, view, value):
        return name if value == 1 else self.add(view.type, view.size, f"multiply({name}, {self.number(view, value)})")

    def spread(self, name, view, to):
        """As torch broadcasts: from the last dimension, ones repeated."""
        lead = len(to.size) - len(view.size)
        kept = [d for d, n in enumerate(view.size) if n == to.size[lead + d]]
        if len(kept) != len(view.size):
            name = self.add(view.type, [view.size[d] for d in kept], f"reshape({name})")
        return name if len(kept) == len(to.size) else self.add(view.type, to.size, f"broadcast({name}), dimensions={list_text(lead + d for d in kept)}")


def product(text, names, result):
    batch = len(result.size) - 2
    both = list_text(range(batch))
    dims = f"lhs_batch_dims={both}, rhs_batch_dims={both}, " if batch else ""
    return text.add(result.type, result.size, f"dot({names[0]}, {names[1]}), {dims}lhs_contracting_dims={{{batch + 1}}}, rhs_contracting_dims={{{batch}}}")


def mm(text, operands, result, _):
    return product(text, [text.operand(i, v) for i, v in enumerate(operands)], result)


def addmm(text, operands, result, more):
    """beta * operand 0 + alpha * product of 1 and 2"""
    added = text.times(text.spread(text.operand(0, operands[0]), operands[0], result), result, more.get("beta", 1))
    value = text.times(product(text, [text.operand(i + 1, v) for i, v in enumerate(operands[1:])], result), result, more.get("alpha", 1))
    return text.add(result.type, result.size, f"add({value}, {added})")


def convolution(text, operands, result, more):
    stride, padding, dilation, transposed, output_padding, groups = more["arguments"]
    names = [text.operand(i, v) for i, v in enumerate(operands)]
    kernel = operands[1].size[2:]
    if transposed and groups != 1:
        return None
    pads = [(p, p) for p in padding]
    if transposed:
        pads = [(d * (k - 1) - p, d * (k - 1) - p + o) for k, p, d, o in zip(kernel, padding, dilation, output_padding)]
    window = {"size": kernel, "stride": [1] * len(kernel) if transposed else stride, "pad": [f"{a}_{b}" for a, b in pads],
              "lhs_dilate": stride if transposed else [1] * len(kernel), "rhs_dilate": dilation, "rhs_reversal": [int(transposed)] * len(kernel)}
    spatial = "".join(map(str, range(len(kernel))))
    fields = " ".join(f"{key}={'x'.join(map(str, value))}" for key, value in window.items())
    value = text.add(result.type, result.size, f"convolution({names[0]}, {names[1]}), window={{{fields}}}, "
                     f"dim_labels=bf{spatial}_{'io' if transposed else 'oi'}{spatial}->bf{spatial}" + (f", feature_group_count={groups}" if groups != 1 else ""))
    if len(operands) > 2:
        bias = text.add(result.type, result.size, f"broadcast({names[2]}), dimensions={{1}}")
        value = text.add(result.type, result.size, f"add({value}, {bias})")
    return value


KNOWN = {"mm": mm, "bmm": mm, "addmm": addmm, "baddbmm": addmm, "convolution": convolution}


def topk(text, operands, results, more):
    """Values and indices, these s64 as torch has them."""
    k, dim, largest = more["k"], more["dim"], more["largest"]
    values, places = results
    if dim not in (-1, len(values.size) - 1) or not all(view.row_major for view in results):
        return None
    name = text.operand(0, operands[0])
    shape = ",".join(map(str, values.size))
    text.lines.append(f"v{len(text.lines)} = ({values.type}[{shape}], s32[{shape}]) topk({name}), k={k}, largest={str(largest).lower()}")
    made = f"v{len(text.lines) - 1}"
    first = text.add(values.type, values.size, f"get-tuple-element({made}), index=0")
    second = text.add("s64", places.size, f"convert({text.add('s32', places.size, f'get-tuple-element({made}), index=1')})")
    text.lines.append(f"v{len(text.lines)} = ({values.type}[{shape}], s64[{shape}]) tuple({first}, {second})")
    return text.module(f"v{len(text.lines) - 1}")


def computes(name, operands, results, more):
    """(HLO text, whether its last operand is what the result had before), or None where nobody here knows. `more`: other arguments by name."""
    text = Call()
    if name == "topk":
        found = topk(text, operands, results, more)
        return (found, False) if found else None
    if name not in KNOWN or len(results) != 1:
        return None
    value = KNOWN[name](text, operands, results[0], more)
    if value is None:
        return None
    gaps = not results[0].dense
    return text.module(text.result(value, results[0], len(operands) if gaps else None)), gaps
