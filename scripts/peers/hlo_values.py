"""What attributes of HLO say, and what ops of HLO that torch has no name for are of tensors."""

import math
import re

import torch

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "s8": torch.int8, "s16": torch.int16, "s32": torch.int32,
         "s64": torch.int64, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "pred": torch.bool}


def hlo_type(tensor):
    return next(name for name, kind in TYPES.items() if kind == tensor.dtype)


def list_of(one, key):
    found = re.search(key + r"=\{([\d,\s]*)\}", one.attributes)
    return [int(x) for x in found[1].split(",") if x.strip()] if found else []


def number_of(one, key, default=None):
    found = re.search(rf"\b{key}=(-?\d+)", one.attributes)
    return int(found[1]) if found else default


def window(one, rank):
    """By spatial dimension: size, stride, (low, high), lhs and rhs dilation, whether the kernel is reversed."""
    text = one.attribute(r"window=\{([^}]*)\}", "")
    fields = dict(part.split("=") for part in text.split())

    def each(key, default):
        return [int(x) for x in fields[key].split("x")] if key in fields else [default] * rank

    pads = [tuple(int(x) for x in pair.split("_")) for pair in fields["pad"].split("x")] if "pad" in fields else [(0, 0)] * rank
    return list(zip(each("size", 1), each("stride", 1), pads, each("lhs_dilate", 1), each("rhs_dilate", 1), each("rhs_reversal", 0)))


def padded(x, low_high_interior, value):
    """lax.pad; negative amounts cut."""
    for d, (low, high, interior) in enumerate(low_high_interior):
        if interior and x.shape[d] > 1:
            n = x.shape[d]
            x = torch.constant_pad_nd(x.unsqueeze(d + 1), [0, 0] * (x.dim() - d - 1) + [0, interior], value)
            x = x.flatten(d, d + 1).narrow(d, 0, n + (n - 1) * interior)
        if low < 0 or high < 0:
            x = x.narrow(d, max(0, -low), x.shape[d] - max(0, -low) - max(0, -high))
    amounts = [max(0, amount) for low, high, _ in reversed(low_high_interior) for amount in (low, high)]
    return torch.constant_pad_nd(x, amounts, value) if any(amounts) else x


def reduced(kind, x, dims):
    """Over dims, which go."""
    if not dims:
        return x
    if x.dtype == torch.bool:
        return torch.any(x, dims) if kind in ("or", "add", "maximum") else torch.all(x, dims)
    if kind == "add":
        return torch.sum(x, dims, dtype=x.dtype)
    if kind == "multiply":
        for d in sorted(dims, reverse=True):
            x = torch.prod(x, d, dtype=x.dtype)
        return x
    if kind in ("maximum", "minimum"):
        return (torch.amax if kind == "maximum" else torch.amin)(x, dims)
    return None


def is_identity(kind, value, dtype):
    if value is None:
        return False
    least = -math.inf if dtype.is_floating_point else (False if dtype == torch.bool else torch.iinfo(dtype).min)
    most = math.inf if dtype.is_floating_point else (True if dtype == torch.bool else torch.iinfo(dtype).max)
    return value == {"add": 0, "or": False, "multiply": 1, "and": True, "maximum": least, "minimum": most}.get(kind)
