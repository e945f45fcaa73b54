"""What the library calls of XLA:GPU compute, as HLO text of its own: operands are parameters as they lie in memory, results the root.

What is not here (sorts, custom fusions) has no text, and a run of it is refused by its name.
"""

import json
import re

GEMMS = ("__cublas$gemm", "__cublas$lt$matmul")
EPILOGUES = ("DEFAULT", "BIAS", "RELU", "BIAS_RELU", "GELU", "BIAS_GELU")
CONVOLUTIONS = ("__cudnn$convForward", "__cudnn$convBiasActivationForward")
GRADIENTS = {"__cudnn$convBackwardInput": "input", "__cudnn$convBackwardFilter": "filter"}


class Text:
    """Lines of an entry computation, numbered names."""

    def __init__(self):
        self.lines = []

    def add(self, kind, dims, expression):
        self.lines.append(f"v{len(self.lines)} = {kind}[{','.join(map(str, dims))}] {expression}")
        return f"v{len(self.lines) - 1}"

    def operand(self, number, shape):
        """Of its logical shape, from how it lies in memory."""
        name = self.add(shape.type, shape.in_memory, f"parameter({number})")
        if shape.row_major:
            return name
        order = ",".join(str(shape.physical.index(d)) for d in range(len(shape.dims)))
        return self.add(shape.type, shape.dims, f"transpose({name}), dimensions={{{order}}}")

    def to_memory(self, name, shape):
        if shape.row_major:
            return name
        return self.add(shape.type, shape.in_memory, f"transpose({name}), dimensions={{{','.join(map(str, shape.physical))}}}")

    def constant(self, shape, value):
        one = self.add(shape.type, (), f"constant({value})")
        return self.add(shape.type, shape.dims, f"broadcast({one}), dimensions={{}}")

    def transposed(self, kind, dims, name, order):
        return self.add(kind, [dims[d] for d in order], f"transpose({name}), dimensions={{{','.join(map(str, order))}}}")

    def scaled(self, name, shape, by):
        return name if by == 1 else self.add(shape.type, shape.dims, f"multiply({name}, {self.constant(shape, by)})")

    def module(self, root):
        lines = [f"  {'ROOT ' if line.startswith(root + ' ') else ''}{line}" for line in self.lines]
        return "HloModule call\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


def backend_config(one):
    found = re.search(r"backend_config=(\{.*\})", one.attributes)
    try:
        return json.loads(found[1]) if found else {}
    except ValueError:
        return {}


def dimension_list(numbers, key):
    return "{" + ",".join(numbers.get(key, [])) + "}"


def gemm(one, operands):
    config = backend_config(one).get("gemm_backend_config")
    epilogue = (config or {}).get("epilogue", "DEFAULT")
    if config is None or epilogue not in EPILOGUES or config.get("alpha_imag", 0) != 0:
        return None
    result, text = one.shapes[0], Text()
    names = [text.operand(i, shape) for i, shape in enumerate(operands[:2])]
    dims = config["dot_dimension_numbers"]
    contraction = ", ".join(f"{short}={dimension_list(dims, key)}" for short, key in
                            (("lhs_batch_dims", "lhs_batch_dimensions"), ("rhs_batch_dims", "rhs_batch_dimensions"),
                             ("lhs_contracting_dims", "lhs_contracting_dimensions"), ("rhs_contracting_dims", "rhs_contracting_dimensions")))
    value = text.add(result.type, result.dims, f"dot({names[0]}, {names[1]}), {contraction}")
    value = text.scaled(value, result, config.get("alpha_real", 1))
    rest = 2
    if config.get("beta", 0) != 0:
        added = text.scaled(text.operand(rest, operands[rest]), result, config["beta"])
        value = text.add(result.type, result.dims, f"add({value}, {added})")
        rest += 1
    if epilogue.startswith("BIAS"):
        # A vector along the innermost dimensions of the result as it lies in memory.
        bias = operands[rest]
        inner = result.physical[len(result.dims) - len(bias.dims):]
        vector = text.add(bias.type, bias.in_memory, f"parameter({rest})")
        order = sorted(inner)
        if list(inner) != order:
            vector = text.add(bias.type, [result.dims[d] for d in order], f"transpose({vector}), dimensions={{{','.join(str(inner.index(d)) for d in order)}}}")
        spread = text.add(result.type, result.dims, f"broadcast({vector}), dimensions={{{','.join(map(str, order))}}}")
        value = text.add(result.type, result.dims, f"add({value}, {spread})")
        rest += 1
    if rest != len(operands):
        return None
    if epilogue.endswith("RELU"):
        value = text.add(result.type, result.dims, f"maximum({value}, {text.constant(result, 0)})")
    elif epilogue.endswith("GELU"):
        value = gelu(text, value, result)
    return text.module(text.to_memory(value, result)), 1


def gelu(text, name, shape):
    """cuBLASLt's, the approximation by tanh: XLA's GemmRewriter puts that in its place."""
    def binary(op, a, b):
        return text.add(shape.type, shape.dims, f"{op}({a}, {b})")

    cube = binary("multiply", binary("multiply", name, name), name)
    inner = binary("add", name, binary("multiply", cube, text.constant(shape, 0.044715)))
    tanh = text.add(shape.type, shape.dims, f"tanh({binary('multiply', inner, text.constant(shape, 0.7978845608028654))})")
    return binary("multiply", name, binary("multiply", binary("add", tanh, text.constant(shape, 1)), text.constant(shape, 0.5)))


def convolution(one, operands):
    config = backend_config(one).get("cudnn_conv_backend_config", {})
    labels = one.attribute(r"dim_labels=([\w?]+_[\w?]+->[\w?]+)")
    activation = config.get("activation_mode", "kNone")
    if labels is None or activation not in ("kNone", "kRelu"):
        return None
    result, text = one.shapes[0], Text()
    names = [text.operand(i, shape) for i, shape in enumerate(operands[:2])]
    window = one.attribute(r"(window=\{[^}]*\})")
    groups = one.attribute(r"(feature_group_count=\d+)")
    attributes = ", ".join(part for part in (window, f"dim_labels={labels}", groups) if part)
    value = text.add(result.type, result.dims, f"convolution({names[0]}, {names[1]}), {attributes}")
    value = text.scaled(value, result, config.get("conv_result_scale", 1))
    if len(operands) > 3:
        side = text.scaled(text.operand(3, operands[3]), result, config.get("side_input_scale", 0))
        value = text.add(result.type, result.dims, f"add({value}, {side})")
    if len(operands) > 2:
        bias = text.operand(2, operands[2])
        feature = labels.split("->")[1].index("f")
        spread = text.add(result.type, result.dims, f"broadcast({bias}), dimensions={{{feature}}}")
        value = text.add(result.type, result.dims, f"add({value}, {spread})")
    if activation == "kRelu":
        value = text.add(result.type, result.dims, f"maximum({value}, {text.constant(result, 0)})")
    return text.module(text.to_memory(value, result)), 1


class Window:
    """Of a forward convolution: a size, stride, padding in front, and dilation for each spatial dimension."""

    def __init__(self, one, rank):
        found = re.search(r"window=\{([^}]*)\}", one.attributes)
        given = dict(part.split("=") for part in found[1].split()) if found else {}
        self.known = set(given) <= {"size", "stride", "pad", "rhs_dilate"}

        def numbers(key, default):
            return [int(x.split("_")[0]) for x in given[key].split("x")] if key in given else [default] * rank
        self.size, self.stride, self.pad, self.dilation = numbers("size", 1), numbers("stride", 1), numbers("pad", 0), numbers("rhs_dilate", 1)


def window_text(**given):
    """Lists of numbers, padding in pairs."""
    fields = [f"{key}={'x'.join('_'.join(map(str, x)) if isinstance(x, tuple) else str(x) for x in values)}" for key, values in given.items() if values]
    return "window={" + " ".join(fields) + "}" if fields else ""


def convolution_gradient(one, operands, of):
    """Labels and window are those of the forward convolution, whose input, filter or output gradient an operand is. Both gradients are convolutions again:
    of the filter turned around, over the strides' gaps; and of the input, whose features are the batch, by the gradient, dilated by the strides."""
    config = backend_config(one).get("cudnn_conv_backend_config", {})
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", one.attributes)
    if labels is None or len(operands) != 2 or config.get("activation_mode", "kNone") != "kNone":
        return None
    inputs, filters, outputs = labels.groups()
    spatial = [c for c in inputs if c.isdigit()]
    window, groups = Window(one, len(spatial)), int(one.attribute(r"feature_group_count=(\d+)", "1"))
    if not window.known:
        return None
    result, text = one.shapes[0], Text()
    names = [text.operand(i, shape) for i, shape in enumerate(operands)]
    gradient = operands[0] if of == "input" else operands[1]
    source = result if of == "input" else operands[0]
    filter_shape = operands[1] if of == "input" else result
    x, y = ([shape.dims[where.index(c)] for c in spatial] for shape, where in ((source, inputs), (gradient, outputs)))
    reach = [(k - 1) * d for k, d in zip((filter_shape.dims[filters.index(c)] for c in spatial), window.dilation)]
    spread = [(n - 1) * s + 1 for n, s in zip(y, window.stride)]  # the gradient over the strides' gaps
    if of == "input":
        kernel, kernel_labels = turned_filter(text, names[1], filter_shape, filters, spatial, groups)
        front = [r - p for r, p in zip(reach, window.pad)]
        pad = [(f, n + r - f - g) for f, n, r, g in zip(front, x, reach, spread)]
        attributes = [window_text(size=[filter_shape.dims[filters.index(c)] for c in spatial], pad=pad, lhs_dilate=window.stride, rhs_dilate=window.dilation),
                      f"dim_labels={outputs}_{kernel_labels}->{inputs}", f"feature_group_count={groups}"]
        operands_text = f"{names[0]}, {kernel}"
    else:
        pad = [(p, r + g - n - p) for p, n, r, g in zip(window.pad, x, reach, spread)]
        swapped = inputs.translate(str.maketrans("bf", "fb"))
        kernel_labels, result_labels = outputs.translate(str.maketrans("bf", "io")), filters.translate(str.maketrans("io", "bf"))
        attributes = [window_text(size=y, stride=window.dilation, pad=pad, rhs_dilate=window.stride),
                      f"dim_labels={swapped}_{kernel_labels}->{result_labels}", f"batch_group_count={groups}"]
        operands_text = f"{names[0]}, {names[1]}"
    value = text.add(result.type, result.dims, f"convolution({operands_text}), " + ", ".join(part for part in attributes if part))
    value = text.scaled(value, result, config.get("conv_result_scale", 1))
    return text.module(text.to_memory(value, result)), 1


def turned_filter(text, name, shape, labels, spatial, groups):
    """Turned around in space; what it gave it takes, group by group. (Name, its labels.)"""
    order = [labels.index(c) for c in spatial] + [labels.index("i"), labels.index("o")]
    dims, rank = [shape.dims[d] for d in order], len(spatial)
    name = text.transposed(shape.type, shape.dims, name, order)
    if rank:
        name = text.add(shape.type, dims, f"reverse({name}), dimensions={{{','.join(map(str, range(rank)))}}}")
    taken, given = dims[rank], dims[rank + 1]
    split = dims[:rank] + [taken, groups, given // groups]
    name = text.add(shape.type, split, f"reshape({name})")
    name = text.transposed(shape.type, split, name, [*range(rank), rank + 2, rank + 1, rank])
    name = text.add(shape.type, dims[:rank] + [given // groups, groups * taken], f"reshape({name})")
    return name, "".join(spatial) + "io"


def computes(target, one, operands):
    """(HLO text, how many of the results it gives), or None where nobody here knows."""
    if target in GEMMS:
        return gemm(one, operands)
    if target in CONVOLUTIONS:
        return convolution(one, operands)
    if target in GRADIENTS:
        return convolution_gradient(one, operands, GRADIENTS[target])
    return None
