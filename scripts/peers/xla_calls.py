"""What the library calls of XLA:GPU compute, as HLO text of its own: operands are parameters as they lie in memory, results the root.

What is not here (backward convolutions, sorts, custom fusions) has no text, and a run of it is refused by its name.
"""

import json
import re

GEMMS = ("__cublas$gemm", "__cublas$lt$matmul")
CONVOLUTIONS = ("__cudnn$convForward", "__cudnn$convBiasActivationForward")


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
    if config is None or epilogue not in ("DEFAULT", "BIAS", "RELU", "BIAS_RELU") or config.get("alpha_imag", 0) != 0:
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
    return text.module(text.to_memory(value, result)), 1


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


def computes(target, one, operands):
    """(HLO text, how many of the results it gives), or None where nobody here knows."""
    if target in GEMMS:
        return gemm(one, operands)
    if target in CONVOLUTIONS:
        return convolution(one, operands)
    return None
