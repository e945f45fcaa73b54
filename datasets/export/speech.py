"""Speech recognition as Hugging Face transformers defines it in Flax (Whisper's structure), with ESPnet's sizes."""

import jax
import jax.numpy as jnp
from transformers import FlaxWhisperForConditionalGeneration, WhisperConfig

import fill
from graphs import Dataset, f32, i32, index, normal

_KEYS = (
    "vocab_size",
    "num_mel_bins",
    "d_model",
    "encoder_layers",
    "decoder_layers",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "activation_function",
    "max_source_positions",
)


def _config(vocabulary, mel, width, encoder, decoder, heads, inner, frames, tokens):
    return WhisperConfig(
        vocab_size=vocabulary,
        num_mel_bins=mel,
        d_model=width,
        encoder_layers=encoder,
        decoder_layers=decoder,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        activation_function="relu",
        max_source_positions=frames // 2,
        max_target_positions=tokens,
        **{f"{token}_token_id": 0 for token in ("pad", "bos", "eos", "decoder_start")},
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )


def _recognise(name, title, config, tokens, dtype=jnp.float32, golden=False):
    """Speech features and a hypothesis in, log-probabilities of its tokens out: the attention decoder rescoring it."""
    model = FlaxWhisperForConditionalGeneration(config, dtype=dtype, _do_init=False)
    params = model.params_shape_tree
    frames = 2 * config.max_source_positions

    def function(params, input_features, decoder_input_ids):
        logits = model(input_features, decoder_input_ids, params=params).logits
        return jax.nn.log_softmax(logits.astype(jnp.float32))

    return Dataset(
        name,
        title,
        f"Speech to text: {frames} frames through two convolutions and {config.encoder_layers} encoder layers, and a "
        f"hypothesis of {tokens} tokens scored by {config.decoder_layers} decoder layers; batch 1, inference",
        "transformers.FlaxWhisperForConditionalGeneration with the sizes of ESPnet's LibriSpeech Transformer (Watanabe et "
        "al., ESPnet, INTERSPEECH 2018; Karita et al., ASRU 2019)",
        function,
        (params, f32(1, config.num_mel_bins, frames), i32(1, tokens)),
        {"input_features": normal(), "decoder_input_ids": index(0, config.vocab_size)}
        | fill.parameters(params, embedding=config.d_model**-0.5),
        {"batch": 1, "frames": frames, "tokens": tokens} | {key: getattr(config, key) for key in _KEYS},
        golden,
        large=not golden,
        dtype=dtype,
        kind="inference",
        paper="AStitch (ASPLOS 2022), Table 2: ASR, inference, batch 1",
        substitution="The paper's is an unpublished port of an ESPnet model: here Whisper's Flax code in ESPnet's sizes.",
    )


def datasets():
    espnet = _config(5000, 80, 256, 12, 6, 4, 2048, 800, 24)
    tiny = _config(17, 6, 12, 1, 1, 3, 20, 10, 4)
    half = jnp.float16
    return [
        _recognise("asr", "Speech recognition, encoder and decoder", espnet, 24),
        _recognise("asr_tiny", "Small speech recognition", tiny, 4, golden=True),
        _recognise("asr_fp16", "Speech recognition, mixed precision", espnet, 24, half),
        _recognise("asr_fp16_tiny", "Small speech recognition, mixed precision", tiny, 4, half, golden=True),
    ]
