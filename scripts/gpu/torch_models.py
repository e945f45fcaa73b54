"""The micro graphs and some layers as PyTorch writes them, by dataset or by family of graphs.py. Parameters are in the HLO file's order."""

import torch
import torch.nn.functional as F


def softmax(x):
    return F.softmax(x, dim=-1)


def layer_norm(x, scale, bias):
    return F.layer_norm(x, x.shape[-1:], scale, bias, 1e-6)


def layer_norm_grad(x, scale, bias, dy):
    """y, dx, dscale, dbias; torch.compile traces through this form."""
    y, pull = torch.func.vjp(layer_norm, x, scale, bias)
    return y, *pull(dy)


def bias_residual_layer_norm(x, residual, offset, scale, bias):
    return layer_norm(x + offset + residual, scale, bias)


def gelu(x):
    return F.gelu(x)


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def row_sum(x):
    return x.sum(-1)


def column_sum(x):
    return x.sum(0)


def adam(weight, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return weight - 0.001 * (first / (second.sqrt() + 1e-8)), first, second


def softmax_block(x, scores, values):
    return F.softmax(x @ scores, dim=-1) @ values


def attention(query, key, value, mask):
    """As flax.linen.dot_product_attention: batch, token, head, feature; products and softmax written out, not a fused kernel."""
    scores = torch.einsum("bqhd,bkhd->bhqk", query / query.shape[-1] ** 0.5, key)
    scores = torch.where(mask[:, None, None, :] > 0, scores, torch.finfo(scores.dtype).min)
    return torch.einsum("bhqk,bkhd->bqhd", F.softmax(scores, dim=-1), value)


def _angles(positions, dimension):
    frequency = 1.0 / (10000.0 ** (torch.arange(0, dimension, 2, dtype=torch.float32, device=positions.device) / dimension))
    return positions[..., None].to(torch.float32) * frequency


def _rotated(x, sin, cos):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rotary(query, key, positions):
    angles = _angles(positions, query.shape[-1])
    angles = torch.cat((angles, angles), dim=-1)[:, :, None, :]
    return _rotated(query, angles.sin(), angles.cos()), _rotated(key, angles.sin(), angles.cos())


def _pairs_rotated(x, sin, cos):
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    return x * cos + turned * sin


def rotary_interleaved(query, key, positions):
    """The first quarter of each head, in pairs of neighbours."""
    part = query.shape[-1] // 4
    angles = _angles(positions, part)
    sin, cos = (torch.repeat_interleave(value, 2, dim=-1)[:, :, None, :] for value in (angles.sin(), angles.cos()))
    return tuple(torch.cat((_pairs_rotated(x[..., :part], sin, cos), x[..., part:]), dim=-1) for x in (query, key))


def fig7(first, second, third, exponent):
    row = ((first + second[:, None]).sum(1) / second) ** exponent
    return row * (row + third).sum(1)[:, None]


MODELS = {function.__name__: function for function in (softmax, layer_norm, layer_norm_grad, bias_residual_layer_norm, gelu, gelu_tanh,
                                                       column_sum, adam, softmax_block, attention, rotary, rotary_interleaved, fig7)}
MODELS |= {"row_sum": row_sum, "row": row_sum, "row_750000x32": row_sum, "row_64x30000": row_sum}


def find(name):
    """The function of a dataset (softmax_tiny), of a graph (softmax_16384x1024), or None."""
    import graphs
    parts = graphs.split(name)
    return MODELS.get(name) or MODELS.get(name.removesuffix("_tiny")) or (MODELS.get(parts[0]) if parts else None)
