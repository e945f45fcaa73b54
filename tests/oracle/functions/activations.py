"""Activations, norms, softmax families and losses, and their gradients."""

import jax
import jax.numpy as jnp
from jax import nn

from cases import add, case

ACTIVATIONS = ("relu", "relu6", "sigmoid", "softplus", "sparse_plus", "sparse_sigmoid", "soft_sign", "silu", "log_sigmoid", "leaky_relu",
               "hard_sigmoid", "hard_silu", "hard_tanh", "elu", "celu", "selu", "gelu", "glu", "squareplus", "mish", "identity",
               "log1mexp", "standardize", "softmax", "log_softmax", "logsumexp", "tanh")
for name in ACTIVATIONS:
    activation = getattr(nn, name) if hasattr(nn, name) else getattr(jnp, name)
    add(f"activation_{name}", activation, "f32[6,34]")
    add(f"gradient_{name}", lambda x, f=activation: jax.grad(lambda x: (f(x) * jnp.cos(x[..., : f(x).shape[-1]] if f(x).ndim else x)).sum())(x)
        if f(x).ndim == x.ndim else jax.grad(lambda x: f(x).sum())(x), "f32[4,10]")
for kind in ("f16", "bf16", "f64"):
    for name in ("gelu", "silu", "softmax", "log_softmax", "softplus", "mish", "tanh"):
        add(f"activation_{name}_{kind}", getattr(nn, name) if hasattr(nn, name) else getattr(jnp, name), f"{kind}[5,33]")
add("gelu_exact", lambda x: nn.gelu(x, approximate=False), "f32[7,19]")
add("gelu_exact_gradient", jax.grad(lambda x: nn.gelu(x, approximate=False).sum()), "f32[7,19]")
add("softmax_first_axis", lambda x: nn.softmax(x, axis=0), "f32[37,6]")
add("softmax_two_axes", lambda x: nn.softmax(x, axis=(0, 2)), "f32[5,6,7]")
add("softmax_where", lambda x, m: nn.softmax(x, axis=-1, where=m), "f32[6,20]", "pred[6,20]")
add("softmax_temperature", lambda x, t: nn.softmax(x / (jnp.abs(t) + 0.1)), "f32[4,65]", "f32[]")
add("softmin_sharp", lambda x: nn.softmax(-80 * x), "f32[4,65]")


@case("f32[4,8,32]", "f32[32]", "f32[32]")
def layer_norm(x, g, b):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * g + b


add("layer_norm_gradient", jax.grad(lambda x, g, b: (layer_norm(x, g, b) ** 3).sum(), argnums=(0, 1, 2)), "f32[6,32]", "f32[32]", "f32[32]")
add("layer_norm_bf16", lambda x, g, b: layer_norm(x.astype(jnp.float32), g, b).astype(jnp.bfloat16), "bf16[6,48]", "f32[48]", "f32[48]")
add("layer_norm_in_f16", layer_norm, "f16[6,48]", "f16[48]", "f16[48]")


@case("f32[6,40]", "f32[40]")
def rms_norm(x, g):
    return x * jax.lax.rsqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * g


@case("f32[2,6,5,5]", "f32[6]", "f32[6]")
def group_norm(x, g, b):
    y = x.reshape(2, 3, -1)
    y = (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1e-5)
    return y.reshape(x.shape) * g[:, None, None] + b[:, None, None]


@case("f32[4,3,6,5]", "f32[3]", "f32[3]")
def batch_norm_training(x, g, b):
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    y = (x - mean[:, None, None]) / jnp.sqrt(var[:, None, None] + 1e-5) * g[:, None, None] + b[:, None, None]
    return y, 0.9 * mean, 0.9 * var


@case("f32[8,16]", "f32[16,8]")
def weight_norm(x, v):
    return x @ (v / jnp.linalg.norm(v, axis=0))


add("l2_normalize", lambda x: x / jnp.maximum(jnp.sqrt((x * x).sum(-1, keepdims=True)), 1e-6), "f32[9,21]")
add("cosine_similarity", lambda x, y: (x * y).sum(-1) / (jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1) + 1e-8), "f32[9,21]", "f32[9,21]")


@case("f32[12,10]", "s32[12]")
def cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1).mean()


add("cross_entropy_gradient", jax.grad(cross_entropy), "f32[12,10]", "s32[12]")
add("cross_entropy_smoothed", lambda z, y: -((0.9 * nn.one_hot(y, 10) + 0.01) * nn.log_softmax(z)).sum(-1).mean(), "f32[12,10]", "s32[12]")
add("binary_cross_entropy", lambda z, y: (jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean(), "f32[50]", "f32[50]")
add("focal_loss", lambda z, y: (-((1 - nn.sigmoid(z)) ** 2) * nn.log_sigmoid(z) * y).sum(), "f32[50]", "f32[50]")
add("huber_loss", lambda x, y: jnp.where(jnp.abs(x - y) < 1, 0.5 * (x - y) ** 2, jnp.abs(x - y) - 0.5).mean(), "f32[61]", "f32[61]")
add("hinge_loss", lambda x, y: jnp.maximum(0, 1 - x * jnp.sign(y)).mean(), "f32[61]", "f32[61]")
add("kl_divergence", lambda x, y: (nn.softmax(x) * (nn.log_softmax(x) - nn.log_softmax(y))).sum(-1), "f32[7,13]", "f32[7,13]")
add("contrastive_loss", lambda x, y: -jnp.diag(nn.log_softmax((x @ y.T) / 0.07)).mean(), "f32[8,16]", "f32[8,16]")
add("triplet_loss", lambda a, p, n: nn.relu(((a - p) ** 2).sum(-1) - ((a - n) ** 2).sum(-1) + 0.2).mean(), "f32[8,16]", "f32[8,16]", "f32[8,16]")
add("log_cosh_gradient", jax.grad(lambda x: jnp.logaddexp(x, -x).sum()), "f32[99]")
add("log_sum_exp_gradient", jax.grad(lambda x: nn.logsumexp(x, axis=-1).sum()), "f32[5,17]")
