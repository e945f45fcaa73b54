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
    memory_format = torch._C._conv_determine_backend_memory_format

    def convolution_format(value, kernel, backend):
        """Where torch asks which cuDNN is there: channels last where an operand is."""
        try:
            return memory_format(value, kernel, backend)
        except RuntimeError:
            last = torch.channels_last if value.dim() == 4 else torch.channels_last_3d
            return last if any(t.is_contiguous(memory_format=last) and not t.is_contiguous() for t in (value, kernel)) else torch.contiguous_format

    torch._C._conv_determine_backend_memory_format = convolution_format
    # Python's own ways of these ask the GPU's driver; ATen's ops do not.
    dense, get, put = torch.Tensor.contiguous, torch.Tensor.__getitem__, torch.Tensor.__setitem__

    def contiguous(tensor, memory_format=torch.contiguous_format):
        if not tensor.is_cuda:
            return dense(tensor, memory_format=memory_format)
        return tensor if tensor.is_contiguous(memory_format=memory_format) else torch.clone(tensor, memory_format=memory_format)

    torch.Tensor.contiguous = contiguous
    torch.Tensor.__getitem__ = lambda tensor, index: items(tensor, index) if tensor.is_cuda else get(tensor, index)
    torch.Tensor.__setitem__ = lambda tensor, index, value: set_items(tensor, index, value) if tensor.is_cuda else put(tensor, index, value)
    triton_kernels.triton.runtime.driver.set_active(triton_kernels.Driver(target))


def items(tensor, index):
    """tensor[index] by ATen's ops."""
    index = index if isinstance(index, tuple) else (index,)
    taken = sum(1 for one in index if one is not None and one is not Ellipsis)
    whole = [slice(None)] * (tensor.dim() - taken)
    at = next((i for i, one in enumerate(index) if one is Ellipsis), len(index))
    index = (*index[:at], *whole, *index[at + 1:])
    d, tensors = 0, {}
    for one in index:
        if one is None:
            tensor = tensor.unsqueeze(d)
        elif isinstance(one, slice):
            if one != slice(None):
                tensor = torch.ops.aten.slice.Tensor(tensor, d, one.start, one.stop, one.step or 1)
        elif isinstance(one, (torch.Tensor, list)):
            tensors[d] = one if isinstance(one, torch.Tensor) else torch.tensor(one, device=tensor.device)
        else:
            tensor = tensor.select(d, one)
            continue
        d += 1
    return torch.ops.aten.index.Tensor(tensor, [tensors.get(i) for i in range(max(tensors) + 1)]) if tensors else tensor


def set_items(tensor, index, value):
    index = index if isinstance(index, tuple) else (index,)
    value = value if isinstance(value, torch.Tensor) else torch.full([], value, dtype=tensor.dtype, device=tensor.device)
    if any(isinstance(one, torch.Tensor) for one in index):
        tensor.index_put_(index, value)
    else:
        items(tensor, index).copy_(value)
