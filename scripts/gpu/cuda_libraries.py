"""Prints where the machine's Python packages keep NVRTC, cuBLAS and cuDNN, joined by ":"; nothing where they are not."""

import importlib.util
import os


def folders():
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations if spec else ()
    found = (os.path.join(root, part) for root in roots for part in ("cu13/lib", "cuda_nvrtc/lib", "cublas/lib", "cudnn/lib"))
    return [folder for folder in found if os.path.isdir(folder)]


if __name__ == "__main__":
    print(":".join(folders()))
