"""`python -m tests.processors x86-64-v2`: the environment in which LLVM, NumPy and OpenBLAS make do
with that level of x86-64, as on an older processor. `make test CPU=x86-64-v2` runs in it.

JAX is not told: it has no float16 where the processor has no instruction for it.
"""

import sys

from numpy._core import _multiarray_umath as numpy_build

# The OpenBLAS in NumPy 2.5 crashes with its kernels for Haswell where the processor has AVX-512.
KERNELS = {"x86-64-v2": "Nehalem", "x86-64-v3": "Sandybridge", "x86-64-v4": "SkylakeX"}


def beyond(level: str, feature: str) -> bool:
    """Whether NumPy's code for a feature needs more than a level; its names differ by version."""
    if "512" in feature or feature == "X86_V4":
        return level != "x86-64-v4"
    return level == "x86-64-v2" and feature in ("AVX", "F16C", "FMA3", "AVX2", "X86_V3")


def environment(level: str) -> dict[str, str]:
    present = [feature for feature in numpy_build.__cpu_dispatch__
               if numpy_build.__cpu_features__.get(feature)]
    return {"MINIJAX_CPU": level, "OPENBLAS_CORETYPE": KERNELS[level],
            "NPY_DISABLE_CPU_FEATURES": ",".join(x for x in present if beyond(level, x))}


if __name__ == "__main__":
    print(*(f"{name}={value}" for name, value in environment(sys.argv[1]).items()))
