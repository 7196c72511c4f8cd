"""Compiles the launches of a GPU with Numba and NVIDIA's NVVM: the second compiler, on a GPU.

Builds on numba_cuda.py; Numba's CUDA target is imported at the first use. A launch has the
parameters that ptx.py gives it, so that one launcher serves both. Chapter 27.
JAX has no counterpart.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

from minijax.util import caches

from .. import cpu
from ..loops import Buffer, Kernel, Launch
from ..numba_text import compute_type
from .numba_cuda import CudaProgram
from .ptx import BLOCKS, on_disk, parameters

COMPILERS = ("numba", "numba-cuda", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc-cu13")
ENTRY = re.compile(r"([.]visible [.]entry ([\w$.]+)\([^)]*\))")


def compile_cached(kernel: Kernel, processor: str) -> list[str]:
    """PTX of each launch, named launch_0 and so on: from the disk cache, else compiled.

    Raises:
      NotInNumba: for floats and integers that Numba programs lack.
      ImportError: without Numba's compiler for NVIDIA's GPUs.
    """
    program = CudaProgram(kernel)
    module = program.module().replace("@cuda.jit\n", "@cuda.jit(device=True)\n")
    entries = [_entry(kernel, launch, *printed) for launch, printed in program.launches.items()]
    if not entries:
        return []
    words = "\0".join((processor, _versions(), module, *map("\0".join, entries)))
    code = on_disk(words, lambda: cpu.undisturbed(
        lambda: "\0".join(_compiled(module, entries, processor))))
    return [_launchable(text, f"launch_{k}", launch.threads) for k, (text, launch) in enumerate(
        zip(code.split("\0"), program.launches, strict=True))]


@functools.cache
def _versions() -> str:
    """What is installed of the compilers."""
    return " ".join(f"{name} {each.version}" for name in COMPILERS
                    for each in metadata.distributions(name=name))


def _entry(kernel: Kernel, launch: Launch, printed: str, arguments: Sequence) -> tuple[str, str]:
    """A function of addresses that calls a printed one with arrays there: its types, its text."""
    buffers, has_temps, scalars = parameters(kernel, launch)
    names = {x: f"x{k}" for k, x in enumerate([*buffers, *scalars])}
    types = [*(f"CPointer({compute_type(x.dtype)})" for x in buffers),
             *(compute_type(x.dtype) for x in scalars)]

    def passed(x: Any) -> str:
        if not isinstance(x, Buffer):
            return names[x]
        place = f"{names[x]}, 0" if x in names else f"workspace, {kernel.offsets[x]}"
        return f"array_at({place}, {max(x.size, 1)}, np.{compute_type(x.dtype)})"
    call = f"{printed}({', '.join(map(passed, arguments))})"
    workspace = ["workspace"] * has_temps
    return (f"void({', '.join(types + ['CPointer(uint8)'] * has_temps)})",
            f"def entry({', '.join([*names.values(), *workspace])}):\n    {call}\n")


def _compiled(module: str, entries: Sequence[tuple[str, str]], processor: str) -> Iterator[str]:
    """PTX of each entry, as NVVM makes it.

    Raises:
      ImportError: where Numba's CUDA target or NVVM is missing, with advice.
    """
    try:
        from numba.cuda import compile_ptx
        from numba.cuda.cudadrv import nvvm
        nvvm.NVVM()
    except (ImportError, RuntimeError) as error:
        raise ImportError("On a GPU the compiler numba needs numba-cuda and NVIDIA's NVVM: pip "
                          "install 'minijax[numba-cuda]', or use the compiler llvm.") from error
    names: dict[str, Any] = {"__name__": "minijax_program", "array_at": _array_at()}
    exec(compile(module, "<minijax program>", "exec"), names)
    cc = int(processor[3:-1]), int(processor[-1])
    for types, text in entries:
        yield compile_ptx(caches.written(text, "entry", names), types, cc=cc)[0]


def _array_at() -> Any:
    """What kernels call for the array at an address, with an offset in bytes, a size and a dtype.
    """
    import numba
    from numba.cuda.extending import intrinsic

    @intrinsic
    def array_at(_: Any, address: Any, offset: Any, size: Any, dtype: Any) -> Any:
        array = numba.types.Array(dtype.instance_type, 1, "C")

        def build(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
            made = context.make_array(array)(context, builder)
            first = builder.gep(arguments[0], [arguments[1]])  # the workspace has bytes
            itemsize = context.get_constant(numba.types.intp, context.get_abi_sizeof(
                context.get_data_type(array.dtype)))
            context.populate_array(made, data=builder.bitcast(first, made.data.type),
                                   shape=[arguments[2]], strides=[itemsize], itemsize=itemsize,
                                   meminfo=None)
            return made._getvalue()
        return array(address, offset, size, dtype), build
    return array_at


def _launchable(text: str, name: str, threads: int) -> str:
    """PTX whose one entry has this name, and registers for so many threads of a block."""
    [(head, own_name)] = ENTRY.findall(text)
    bounds = f"{head}\n.maxntid {threads}, 1, 1\n.minnctapersm {BLOCKS}"
    return text.replace(head, bounds).replace(own_name, name)
