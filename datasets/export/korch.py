"""The convolutional models that Korch is evaluated with, as its export script builds them: channels first, batch norms
folded into the convolutions before them, as ONNX exporters do."""

import flax.linen
import jax
import jax.numpy as jnp

from graphs import f32, normal
from transformer import module_dataset

_PAPER = "Hu et al., Optimal Kernel Orchestration for Tensor Programs with Korch, ASPLOS 2024: "


class _Conv(flax.linen.Module):
    """A convolution of images [batch, channels, height, width], padded by half of its kernel unless told otherwise."""

    channels: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    bias: bool = False
    pad: bool = True

    @flax.linen.compact
    def __call__(self, x):
        inner = x.shape[1] // self.groups
        weight = self.param(
            "kernel", flax.linen.initializers.zeros, (self.kernel, self.kernel, inner, self.channels), x.dtype
        )
        half = (self.kernel - 1) // 2 if self.pad else 0
        y = jax.lax.conv_general_dilated(
            x,
            weight,
            (self.stride, self.stride),
            [(half, half)] * 2,
            dimension_numbers=("NCHW", "HWIO", "NCHW"),
            feature_group_count=self.groups,
        )
        if not self.bias:
            return y
        return y + self.param("bias", flax.linen.initializers.zeros, (self.channels,), x.dtype)[:, None, None]


class _InstanceNorm(flax.linen.Module):
    epsilon: float = 1e-5

    @flax.linen.compact
    def __call__(self, x):
        scale = self.param("scale", flax.linen.initializers.ones, (x.shape[1],), x.dtype)[:, None, None]
        bias = self.param("bias", flax.linen.initializers.zeros, (x.shape[1],), x.dtype)[:, None, None]
        mean = x.mean(axis=(2, 3), keepdims=True)
        variance = jnp.square(x - mean).mean(axis=(2, 3), keepdims=True)
        return (x - mean) / jnp.sqrt(variance + self.epsilon) * scale + bias


def _upsample(x, factor=2):
    """Nearest neighbours."""
    return jnp.repeat(jnp.repeat(x, factor, axis=2), factor, axis=3)


def _max_pool(x, size):
    half = (size - 1) // 2
    window = (1, 1, size, size)
    return jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, window, (1, 1, 1, 1), [(0, 0), (0, 0), (half, half), (half, half)]
    )


# Candy: fast neural style transfer (Johnson et al., ECCV 2016), pytorch/examples' TransformerNet.


class _Reflected(flax.linen.Module):
    channels: int
    kernel: int
    stride: int = 1

    @flax.linen.compact
    def __call__(self, x):
        half = self.kernel // 2
        x = jnp.pad(x, ((0, 0), (0, 0), (half, half), (half, half)), mode="reflect")
        return _Conv(self.channels, self.kernel, self.stride, bias=True, pad=False)(x)


class _Candy(flax.linen.Module):
    width: int
    blocks: int

    @flax.linen.compact
    def __call__(self, x):
        relu, width = jax.nn.relu, self.width
        x = relu(_InstanceNorm()(_Reflected(width, 9)(x)))
        x = relu(_InstanceNorm()(_Reflected(2 * width, 3, 2)(x)))
        x = relu(_InstanceNorm()(_Reflected(4 * width, 3, 2)(x)))
        for _ in range(self.blocks):
            y = relu(_InstanceNorm()(_Reflected(4 * width, 3)(x)))
            x = x + _InstanceNorm()(_Reflected(4 * width, 3)(y))
        x = relu(_InstanceNorm()(_Reflected(2 * width, 3)(_upsample(x))))
        x = relu(_InstanceNorm()(_Reflected(width, 3)(_upsample(x))))
        return _Reflected(3, 9)(x)


# EfficientViT (Cai et al., 2022): inverted residuals, and attention by ReLU, linear in the tokens.


class _InvertedResidual(flax.linen.Module):
    """mbv2_e@4_k@5: a widening, a depthwise and a narrowing convolution."""

    channels: int
    stride: int = 1
    expand: int = 4
    kernel: int = 5

    @flax.linen.compact
    def __call__(self, x):
        inner = self.expand * x.shape[1]
        y = jax.nn.relu(_Conv(inner, bias=True)(x))
        y = jax.nn.relu(_Conv(inner, self.kernel, self.stride, inner, bias=True)(y))
        y = _Conv(self.channels, bias=True)(y)
        return x + y if y.shape == x.shape else y


class _LinearAttention(flax.linen.Module):
    """linearvit_hr@2_k@16: keys of 16, heads for twice the channels; sums come with the product, by a row of ones."""

    width: int = 16

    @flax.linen.compact
    def __call__(self, x):
        batch, channels, height, width = x.shape
        heads = 2 * channels // self.width
        qkv = _Conv(3 * heads * self.width)(x).reshape(batch, heads, 3 * self.width, height * width)
        query, key, value = jnp.split(qkv, 3, axis=2)
        query, key = jax.nn.relu(query), jax.nn.relu(key)
        value = jnp.pad(value, ((0, 0), (0, 0), (0, 1), (0, 0)), constant_values=1.0)
        context = jnp.einsum("bhvn,bhkn->bhvk", value, key)
        mixed = jnp.einsum("bhvk,bhkn->bhvn", context, query)
        mixed = mixed[:, :, :-1] / (mixed[:, :, -1:] + 1e-6)
        mixed = mixed.reshape(batch, heads * self.width, height, width)
        return x + _Conv(channels, bias=True)(mixed)


class _EfficientVit(flax.linen.Module):
    widths: tuple
    blocks: tuple  # of the four stages; the last two have attention in each but their first
    head: tuple
    classes: int

    @flax.linen.compact
    def __call__(self, x):
        x = jax.nn.relu(_Conv(self.widths[0] // 2, 3, 2, bias=True)(x))
        for stage, (width, blocks) in enumerate(zip(self.widths, self.blocks)):
            x = _InvertedResidual(width, 2)(x)
            for _ in range(blocks):
                if stage >= 2:
                    x = _LinearAttention()(x)
                x = _InvertedResidual(width)(x)
        x = jax.nn.relu(_Conv(self.head[0], bias=True)(x))
        x = x.mean(axis=(2, 3), keepdims=True)
        x = jax.nn.relu(_Conv(self.head[1], bias=True)(x))
        return flax.linen.Dense(self.classes)(x.reshape(x.shape[0], -1))


# YOLOX (Ge et al., 2021), its nano: depthwise convolutions, SiLU, a decoupled head.


class _Cbs(flax.linen.Module):
    """Convolution, SiLU."""

    channels: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1

    @flax.linen.compact
    def __call__(self, x):
        return jax.nn.silu(_Conv(self.channels, self.kernel, self.stride, self.groups, bias=True)(x))


class _Depthwise(flax.linen.Module):
    channels: int
    kernel: int = 3
    stride: int = 1

    @flax.linen.compact
    def __call__(self, x):
        return _Cbs(self.channels)(_Cbs(x.shape[1], self.kernel, self.stride, x.shape[1])(x))


class _CspLayer(flax.linen.Module):
    channels: int
    depth: int
    shortcut: bool = True

    @flax.linen.compact
    def __call__(self, x):
        hidden = self.channels // 2
        left, right = _Cbs(hidden)(x), _Cbs(hidden)(x)
        for _ in range(self.depth):
            y = _Depthwise(hidden)(_Cbs(hidden)(left))
            left = left + y if self.shortcut else y
        return _Cbs(self.channels)(jnp.concatenate([left, right], axis=1))


class _Yolox(flax.linen.Module):
    width: int  # of the stem
    depth: int
    classes: int

    def _backbone(self, x):
        width, depth = self.width, self.depth
        corners = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        x = _Cbs(width, 3)(jnp.concatenate(corners, axis=1))
        x = _CspLayer(2 * width, depth)(_Depthwise(2 * width, 3, 2)(x))
        x8 = _CspLayer(4 * width, 3 * depth)(_Depthwise(4 * width, 3, 2)(x))
        x16 = _CspLayer(8 * width, 3 * depth)(_Depthwise(8 * width, 3, 2)(x8))
        x = _Cbs(8 * width)(_Depthwise(16 * width, 3, 2)(x16))
        x = _Cbs(16 * width)(jnp.concatenate([x, *(_max_pool(x, size) for size in (5, 9, 13))], axis=1))
        return x8, x16, _CspLayer(16 * width, depth, shortcut=False)(x)

    def _pyramid(self, x8, x16, x32):
        width, depth = self.width, self.depth
        lateral = _Cbs(8 * width)(x32)
        x = _CspLayer(8 * width, depth, False)(jnp.concatenate([_upsample(lateral), x16], axis=1))
        reduced = _Cbs(4 * width)(x)
        out8 = _CspLayer(4 * width, depth, False)(jnp.concatenate([_upsample(reduced), x8], axis=1))
        x = jnp.concatenate([_Depthwise(4 * width, 3, 2)(out8), reduced], axis=1)
        out16 = _CspLayer(8 * width, depth, False)(x)
        x = jnp.concatenate([_Depthwise(8 * width, 3, 2)(out16), lateral], axis=1)
        return out8, out16, _CspLayer(16 * width, depth, False)(x)

    @flax.linen.compact
    def __call__(self, x):
        outputs = []
        for level in self._pyramid(*self._backbone(x)):
            level = _Cbs(4 * self.width)(level)
            classes, boxes = level, level
            for _ in range(2):
                classes, boxes = _Depthwise(4 * self.width)(classes), _Depthwise(4 * self.width)(boxes)
            scores = jax.nn.sigmoid(_Conv(self.classes, bias=True)(classes))
            corners, object_ = _Conv(4, bias=True)(boxes), jax.nn.sigmoid(_Conv(1, bias=True)(boxes))
            level = jnp.concatenate([corners, object_, scores], axis=1)
            outputs.append(level.reshape(*level.shape[:2], -1))
        return jnp.concatenate(outputs, axis=2).transpose(0, 2, 1)


# YOLOv4 (Bochkovskiy et al., 2020): a CSP Darknet with Mish, spatial pyramid pooling, a path aggregation network.


def _mish(x):
    return x * jnp.tanh(jax.nn.softplus(x))


def _leaky(x):
    return jax.nn.leaky_relu(x, 0.1)


class _Cba(flax.linen.Module):
    """Convolution, activation."""

    channels: int
    kernel: int = 1
    stride: int = 1
    mish: bool = False

    @flax.linen.compact
    def __call__(self, x):
        x = _Conv(self.channels, self.kernel, self.stride, bias=True)(x)
        return _mish(x) if self.mish else _leaky(x)


class _DarknetStage(flax.linen.Module):
    channels: int
    blocks: int
    first: bool = False  # its halves are as wide as the whole

    @flax.linen.compact
    def __call__(self, x):
        half = self.channels if self.first else self.channels // 2
        x = _Cba(self.channels, 3, 2, True)(x)
        beside, x = _Cba(half, mish=True)(x), _Cba(half, mish=True)(x)
        for _ in range(self.blocks):
            x = x + _Cba(half, 3, mish=True)(_Cba(half // 2 if self.first else half, mish=True)(x))
        return _Cba(self.channels, mish=True)(jnp.concatenate([_Cba(half, mish=True)(x), beside], axis=1))


_ANCHORS = ((12, 16, 19, 36, 40, 28), (36, 75, 76, 55, 72, 146), (142, 110, 192, 243, 459, 401))


class _Yolov4(flax.linen.Module):
    width: int
    blocks: tuple
    classes: int

    def _alternate(self, x, narrow, kernels):
        for kernel in kernels:
            x = _Cba(narrow if kernel == 1 else 2 * narrow, kernel)(x)
        return x

    def _decode(self, x, stride, anchors, scale):
        """Boxes as fractions of the image, and the confidences of their classes."""
        batch, _, height, width = x.shape
        x = x.reshape(batch, 3, 5 + self.classes, height, width)
        grid_x, grid_y = jnp.arange(width, dtype=x.dtype), jnp.arange(height, dtype=x.dtype)[:, None]
        sizes = jnp.asarray(anchors, x.dtype).reshape(3, 2) / stride
        centre = jax.nn.sigmoid(x[:, :, :2]) * scale - 0.5 * (scale - 1)
        centre_x, centre_y = (centre[:, :, 0] + grid_x) / width, (centre[:, :, 1] + grid_y) / height
        extent = jnp.exp(x[:, :, 2:4]) * sizes[None, :, :, None, None]
        extent_x, extent_y = extent[:, :, 0] / width, extent[:, :, 1] / height
        left, top = centre_x - 0.5 * extent_x, centre_y - 0.5 * extent_y
        boxes = jnp.stack([left, top, left + extent_x, top + extent_y], axis=-1).reshape(batch, -1, 1, 4)
        confidence = jax.nn.sigmoid(x[:, :, 5:]) * jax.nn.sigmoid(x[:, :, 4:5])
        return boxes, confidence.transpose(0, 1, 3, 4, 2).reshape(batch, -1, self.classes)

    def _backbone(self, x):
        width = self.width
        x = _Cba(width, 3, mish=True)(x)
        x = _DarknetStage(2 * width, self.blocks[0], first=True)(x)
        x = _DarknetStage(4 * width, self.blocks[1])(x)
        x8 = _DarknetStage(8 * width, self.blocks[2])(x)
        x16 = _DarknetStage(16 * width, self.blocks[3])(x8)
        return x8, x16, _DarknetStage(32 * width, self.blocks[4])(x16)

    @flax.linen.compact
    def __call__(self, x):
        width = self.width
        x8, x16, x = self._backbone(x)
        x = self._alternate(x, 16 * width, (1, 3, 1))
        x = jnp.concatenate([*(_max_pool(x, size) for size in (13, 9, 5)), x], axis=1)
        x32 = self._alternate(x, 16 * width, (1, 3, 1))
        x = jnp.concatenate([_Cba(8 * width)(x16), _upsample(_Cba(8 * width)(x32))], axis=1)
        x16 = self._alternate(x, 8 * width, (1, 3, 1, 3, 1))
        x = jnp.concatenate([_Cba(4 * width)(x8), _upsample(_Cba(4 * width)(x16))], axis=1)
        x8 = self._alternate(x, 4 * width, (1, 3, 1, 3, 1))
        x = jnp.concatenate([_Cba(8 * width, 3, 2)(x8), x16], axis=1)
        x16 = self._alternate(x, 8 * width, (1, 3, 1, 3, 1))
        x = jnp.concatenate([_Cba(16 * width, 3, 2)(x16), x32], axis=1)
        x32 = self._alternate(x, 16 * width, (1, 3, 1, 3, 1))
        boxes, confidences = [], []
        for level, stride, anchors, scale in zip((x8, x16, x32), (8, 16, 32), _ANCHORS, (1.2, 1.1, 1.05)):
            level = _Cba(2 * level.shape[1], 3)(level)
            level = _Conv(3 * (5 + self.classes), bias=True)(level)
            box, confidence = self._decode(level, stride, anchors, scale)
            boxes.append(box)
            confidences.append(confidence)
        return jnp.concatenate(boxes, axis=1), jnp.concatenate(confidences, axis=1)


def _model(name, title, what, module, size, paper, golden=False, substitution=None, **configuration):
    return module_dataset(
        name,
        title,
        f"{what}, images of {size} x {size}, batch 1; inference",
        "flax.linen modules put together as in Korch's cases/onnx-export/export.py (humuyan/Korch)",
        module,
        {"x": f32(1, 3, size, size)},
        {"x": normal()},
        {"batch": 1, "size": size, **configuration},
        golden,
        paper=_PAPER + paper,
        substitution=substitution,
    )


_CANDY = "Style transfer: reflection padding, instance norms, nearest-neighbour upsampling"
_VIT = "EfficientViT: inverted residuals, attention by ReLU in linear time"
_YOLOX = "YOLOX: depthwise convolutions, SiLU, spatial pyramid pooling, decoupled heads"
_YOLOV4 = "YOLOv4: CSP Darknet with Mish, path aggregation, boxes decoded"
_WIDTHS = "Korch's script takes the widths from a package that is not public: here 24, 48, 96 and 192, of which it says the last."


def datasets():
    return [
        _model("candy", "Candy style transfer", _CANDY, _Candy(32, 5), 224, "Candy", width=32, blocks=5),
        _model("candy_tiny", "Small style transfer", _CANDY, _Candy(4, 1), 12, "Candy", True, width=4, blocks=1),
        _model(
            "efficientvit",
            "EfficientViT",
            _VIT,
            _EfficientVit((24, 48, 96, 192), (1, 2, 5, 2), (1152, 1280), 1000),
            2048,
            "EfficientViT",
            substitution=_WIDTHS,
            widths=[24, 48, 96, 192],
            blocks=[1, 2, 5, 2],
        ),
        _model(
            "efficientvit_tiny",
            "Small EfficientViT",
            _VIT,
            _EfficientVit((4, 8, 16, 16), (1, 0, 1, 1), (8, 12), 5),
            64,
            "EfficientViT",
            True,
            widths=[4, 8, 16, 16],
            blocks=[1, 0, 1, 1],
        ),
        _model("yolox_nano", "YOLOX-nano", _YOLOX, _Yolox(16, 1, 80), 416, "YOLOX", width=16, depth=1, classes=80),
        _model(
            "yolov4",
            "YOLOv4",
            _YOLOV4,
            _Yolov4(32, (1, 2, 8, 8, 4), 1000),
            416,
            "YOLOv4",
            width=32,
            blocks=[1, 2, 8, 8, 4],
            classes=1000,
        ),
    ]
