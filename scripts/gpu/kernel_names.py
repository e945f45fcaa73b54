"""What a kernel of a trace is, judged by its name."""

import re

# cuBLAS, cuBLASLt, cuDNN, CUTLASS and FlashAttention; Triton's and XLA's own matrix products; sorts of CUB and Thrust.
_LIBRARY = re.compile(r"gemm|gemv|cutlass|cublas|cudnn|sm\d\d_xmma|nvjet|conv(?!ert)|implicit|winograd|flash|fmha|attention_kernel|triton_mm|"
                      r"triton_tem|splitK|DeviceRadixSort|DeviceSegmentedSort|cub::|bitonicSort|scaled_dot", re.IGNORECASE)
_COPY = re.compile(r"^(memcpy|memset)|\bMem(cpy|set)", re.IGNORECASE)


def kind(name):
    """"library", "copy" or "memory": what is neither is generated, memory-intensive."""
    return "copy" if _COPY.search(name) else "library" if _LIBRARY.search(name) else "memory"
