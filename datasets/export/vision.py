"""Vision Transformer and a diffusion model's U-Net block, as Hugging Face defines them in Flax."""

import jax
import jax.numpy as jnp
from diffusers.models.unets.unet_2d_blocks_flax import FlaxCrossAttnDownBlock2D
from transformers import FlaxViTForImageClassification, ViTConfig

import fill
from graphs import Dataset, f32, normal


def _vit(name, title, config, batch, golden=False):
    shape = (batch, config.num_channels, config.image_size, config.image_size)
    model = FlaxViTForImageClassification(config, input_shape=(1, *shape[2:], shape[1]), _do_init=False)
    params = model.params_shape_tree

    def function(params, pixel_values):
        return model(pixel_values, params=params).logits

    keys = ("image_size", "patch_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    return Dataset(
        name,
        title,
        f"Vision Transformer, {config.num_hidden_layers} layers, images of {config.image_size} x {config.image_size} in "
        f"patches of {config.patch_size}, batch {batch}; inference",
        "transformers.FlaxViTForImageClassification (Dosovitskiy et al., ICLR 2021)",
        function,
        (params, f32(*shape)),
        {"pixel_values": normal()} | fill.parameters(params),
        {"batch": batch, "num_labels": config.num_labels} | {key: getattr(config, key) for key in keys},
        golden,
        large=not golden,
        kind="inference",
    )


def _unet(name, title, channels, size, heads, context, embedding, groups, golden=False):
    """Two residual blocks (group norm, SiLU, convolution, time embedding), each with a Transformer block; downsampling."""
    module = FlaxCrossAttnDownBlock2D(*channels, num_layers=2, num_attention_heads=heads)
    arguments = f32(2, size, size, channels[0]), f32(2, embedding), f32(2, *context)
    params = jax.eval_shape(lambda key, values: module.init(key, *values), jax.random.PRNGKey(0), arguments)["params"]

    def function(params, hidden_states, time_embedding, encoder_hidden_states):
        return module.apply({"params": params}, hidden_states, time_embedding, encoder_hidden_states)

    return Dataset(
        name,
        title,
        f"Down block of a diffusion model's U-Net, {channels[0]} to {channels[1]} channels at {size} x {size}, batch 2: group "
        "norms, convolutions, self-attention and cross-attention to the prompt, GEGLU, downsampling; inference",
        "diffusers' FlaxCrossAttnDownBlock2D (Rombach et al., CVPR 2022)" + ", Stable Diffusion 1.5's second" * (not golden),
        function,
        (params, *arguments),
        {"hidden_states": normal(), "time_embedding": normal(), "encoder_hidden_states": normal()}
        | fill.parameters(params),
        {"batch": 2, "channels": list(channels), "size": size, "heads": heads, "context": list(context)}
        | {"time_embedding": embedding, "norm_groups": groups},
        golden,
        large=not golden,
        packages=("diffusers",),
    )


def datasets():
    tiny = ViTConfig(
        hidden_size=12,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=20,
        image_size=8,
        patch_size=4,
        num_labels=5,
    )
    return [
        _vit("vit_b16", "ViT-B/16", ViTConfig(num_labels=1000), 1),
        _vit("vit_b16_tiny", "Small vision Transformer", tiny, 2, golden=True),
        _unet("unet_block", "U-Net block of Stable Diffusion", (320, 640), 32, 8, (77, 768), 1280, 32),
        _unet("unet_block_tiny", "Small U-Net block", (32, 32), 4, 2, (3, 6), 8, 32, golden=True),
    ]
