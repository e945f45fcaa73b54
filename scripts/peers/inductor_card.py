"""A card that is not there, as torch, Inductor and Triton ask for it. Import before anything of torch._inductor, once a process."""

import os
import tempfile

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp(prefix="inductor_"))
import cards  # noqa: E402
import dump  # noqa: E402

try:
    import torch
    import torch._dynamo.device_interface
except ImportError as absent:
    raise dump.NotUnderstood(f"{absent}: install scripts/peers/inductor-requirements.txt") from absent
import triton_kernels  # noqa: E402


class Properties:
    """Of a CUDA device, as far as Inductor reads them."""

    warp_size = 32
    max_threads_per_block = 1024
    max_threads_per_multi_processor = 2048
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    gcnArchName = ""
    uuid = "0"
    memory_bus_width = 5120

    def __init__(self, card):
        self.name = card["name"]
        self.major, self.minor = card["cc"]
        self.total_memory = card["memory"]
        self.multi_processor_count = card["sms"]
        self.L2_cache_size = card["l2"]
        self.shared_memory_per_block_optin = card["opt_in"]
        self.shared_memory_per_multiprocessor = card["shared"]
        self.clock_rate = round(card["ghz"] * 1e6)
        self.memory_clock_rate = 1215000


def stand_in(target):
    """Every question about the GPU gets the card's answer, in this process from now on."""
    card = cards.CARDS[target]
    properties, capability = Properties(card), card["cc"]
    cuda = torch.cuda
    for name, answer in {"is_available": True, "device_count": 1, "current_device": 0, "get_device_properties": properties, "get_device_capability": capability,
                         "_lazy_init": None, "_exchange_device": 0, "_maybe_exchange_device": 0, "set_device": None, "synchronize": None,
                         "is_bf16_supported": capability[0] >= 8, "get_device_name": properties.name, "set_rng_state": None}.items():
        setattr(cuda, name, lambda *_, answer=answer, **__: answer)
    cuda.get_rng_state = lambda *_, **__: torch.zeros(16, dtype=torch.uint8)
    torch._C._cuda_getCurrentRawStream = lambda *_: 0
    interface = torch._dynamo.device_interface.CudaInterface
    for name, answer in {"is_available": True, "device_count": 1, "current_device": 0, "get_device_properties": properties,
                         "get_compute_capability": 10 * capability[0] + capability[1], "is_triton_capable": True, "raise_if_triton_unavailable": None,
                         "get_raw_stream": 0, "synchronize": None, "is_bf16_supported": capability[0] >= 8}.items():
        setattr(interface, name, staticmethod(lambda *_, answer=answer, **__: answer))
    interface.Worker.get_device_properties = staticmethod(lambda *_: properties)
    interface.Worker.current_device = staticmethod(lambda: 0)
    triton_kernels.triton.runtime.driver.set_active(triton_kernels.Driver(target))
