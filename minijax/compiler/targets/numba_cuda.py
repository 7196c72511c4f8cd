"""The launches of a GPU as a program for Numba's CUDA target: a self-contained module.

Builds on numba_text.py, as a dialect of it: kernels with blocks, threads, shared memory,
barriers and shuffles, and a `main` that launches them. Chapter 27. JAX has no counterpart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..loops import (MMA, Address, Assign, Atomic, Barrier, Buffer, Call, Constant, Declare, For,
                     Index, Kernel, Launch, Let, Load, Operand, Shuffle, accesses, walk)
from ..numba_text import (FORMS, Avals, NotInNumba, NumbaText, Program, Return, argument_text,
                          compute_type, result_text)
from ..scalars import kind_of
from ..text import KernelText
from .ptx import parameters

# What CUDA's library has for what NumPy has on the CPU.
LIBRARY = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rem f": "fmod", "abs f": "fabs",
           "round_even": "rint"}
CUDA_FORMS = FORMS | {op: f"libdevice.{name}{{f}}({{0}}{', {1}' * (name == 'fmod')})"
                      for op, name in LIBRARY.items()} | {
    "sqrt": "libdevice.{d}sqrt_rn({0})", "rounded product": "libdevice.{d}mul_rn({0}, {1})",
    "copysign": "-abs({0}) if libdevice.signbit{d}({1}) else abs({0})",
    **{f"{op} {kind}": f"({{0}}) if ({{0}}) {test} ({{1}}) else ({{1}})"
       for op, test in (("min", "<"), ("max", ">")) for kind in "iu"}}


def numba_cuda_text(kernel: Kernel, in_avals: Avals, out_avals: Avals) -> str:
    """The launches as a program for Numba's CUDA target, with a `main` on arrays of these types.

    Raises:
      NotInNumba: where the host calls a library or Python between launches.

    >>> from minijax import jit
    >>> import numpy as np
    >>> text = jit(lambda x: x * 2.0).lower(np.ones(256, np.float32)).as_text("numba.cuda")
    >>> print(text[text.index("@cuda.jit"):text.index("def main")].rstrip())
    @cuda.jit
    def launch1(a, b):
        block, thread = cuda.blockIdx.x, cuda.threadIdx.x
        b[thread] = a[thread] * float32(2.0)
    >>> print(text[text.index("    launch1["):])
        launch1[...](a, b)
        return b.copy_to_host().reshape((256,))
    <BLANKLINE>
    """
    return CudaProgram(kernel).text(in_avals, out_avals)


def factors(let: Let) -> tuple[Operand, ...]:
    """The factors of a product, or of a quotient by a power of two, which NVVM makes one."""
    if let.op == "div" and isinstance(y := let.args[1], Constant):
        with np.errstate(all="ignore"):
            reciprocal = y.dtype.type(1) / y.value
        if abs(np.frexp(y.value)[0]) == 0.5 and np.isfinite(reciprocal):
            return let.args[0], Constant(reciprocal, y.dtype)
    return let.args if let.op == "mul" else ()


class CudaProgram(Program):
    """A module: imports, helpers, a kernel for each launch, and `main`, the host's part."""

    def __init__(self, kernel: Kernel) -> None:
        self.launches: dict[Launch, tuple[str, list[Any]]] = {}
        super().__init__(kernel, CudaText)

    def kernel_functions(self) -> str:
        self.outlined = {}
        texts = []
        for launch in (each for each in walk(self.kernel.body) if isinstance(each, Launch)):
            printer = CudaText(replace(self.kernel, body=launch.body), self)
            own = dict.fromkeys(accesses(walk(launch.body)))
            arguments = [*(x for x in own if x.role not in ("shared", "local")),
                         *parameters(self.kernel, launch)[2]]
            name = f"launch{len(self.launches) + 1}"
            self.launches[launch] = name, arguments
            texts.append(printer.launch(name, launch, arguments, own))
        return "\n\n".join(texts)

    def imports(self, words: set[str]) -> Iterable[str]:
        yield from (line.replace("from numba import njit", "from numba import cuda").replace(
            "numba.extending", "numba.cuda.extending") for line in super().imports(words))
        if "libdevice" in words:
            yield "from numba.cuda import libdevice"

    def helper(self, text: str) -> str:
        text = text.replace("@njit", "@cuda.jit(device=True)")
        for sign, negative in (("< 0.0", ""), ("> 0.0", "not ")):
            text = text.replace(f"np.copysign(1.0, x) {sign}",
                                f"{negative}libdevice.signbitd(np.float64(x))")
        return text

    def main(self, in_avals: Avals, out_avals: Avals) -> Iterable[str]:
        kernel, name = self.kernel, self.printer.named
        for x, aval in zip(kernel.inputs, in_avals, strict=True):
            yield f"    {name(x)} = cuda.to_device({argument_text(x, aval, name(x))}.reshape(-1))"
        for x in (*kernel.outputs, *kernel.temps):
            yield f"    {name(x)} = cuda.device_array({max(x.size, 1)}, np.{compute_type(x.dtype)})"
        for x in kernel.constants:
            yield f"    {name(x)} = cuda.to_device({name(x).upper()}.reshape(-1))"
        host = HostText(replace(kernel, notes={}), self)
        host.names |= self.printer.names
        host.indent = 1
        host.body(kernel.body)
        yield from host.lines
        results = [f"{name(x)}.copy_to_host()" + f"[:{x.size}]" * (not x.size)
                   + f".reshape({x.shape}){result_text(x, aval)}"
                   for x, aval in zip(kernel.outputs, out_avals, strict=True)]
        yield f"    return {', '.join(results) or '()'}\n"


class CudaText(NumbaText):
    """Prints one launch; arrays are flat."""

    decorator = "@cuda.jit(device=True)"
    forms = CUDA_FORMS

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # NVIDIA's compiler joins a product and a sum to one fma, which rounds once, unless the
        # product is the library's.
        self.summands = set[Any]()
        for each in walk(self.kernel.body):
            if isinstance(each, Let) and each.op in ("add", "sub", "neg"):
                self.summands.update(each.args)
            elif isinstance(each, Assign | Declare | Return):
                self.summands.add(each.value)

    def launch(self, name: str, launch: Launch, arguments: Sequence, own: Iterable[Buffer]) -> str:
        """The text of a kernel."""
        block, thread = (self.unused(word) for word in ("block", "thread"))
        self.names |= {launch.block: block, launch.thread: thread}
        self.bounds |= {launch.block: launch.blocks, launch.thread: launch.threads}
        first = [f"{block}, {thread} = cuda.blockIdx.x, cuda.threadIdx.x"]
        first += [f"{self.named(x)} = cuda.{x.role}.array({max(x.size, 1)}, "
                  f"{self.name_of(x.dtype)})"
                  for x in own if x.role in ("shared", "local")]
        self.decorator = "@cuda.jit"
        return self.function(name, arguments, first)

    def place(self, buffer: Buffer, index: Index) -> str:
        return f"{self.named(buffer)}[{self.position(Address(buffer, index))}]"

    def print_let(self, let: Let) -> None:
        is_rounded = let.target in self.summands and kind_of(let.target.dtype) == "f"
        args = factors(let) if is_rounded else ()
        super().print_let(replace(let, op="rounded product", args=args) if args else let)

    def print_barrier(self, barrier: Barrier) -> None:
        self.flush()
        self.write("cuda.syncthreads()")

    def print_atomic(self, atomic: Atomic) -> None:
        place = self.position(Address(atomic.buffer, atomic.index))
        value = "0" if atomic.op == "read" else self.operand(atomic.value)
        text = f"{self.named(atomic.buffer)}, {place}, {value}"
        name = {"turn": "inc", "read": "add"}.get(atomic.op, atomic.op)
        self.flush()
        fence = ["cuda.threadfence()"] * atomic.ordered
        for line in (*fence, f"{self.named(atomic.target)} = cuda.atomic.{name}({text})", *fence):
            self.write(line)

    def print_shuffle(self, shuffle: Shuffle) -> None:
        value = f"int32({self.operand(shuffle.value)})"  # Numba shuffles no unsigned numbers
        self.define(shuffle.target, f"{compute_type(shuffle.target.dtype)}(cuda.shfl_xor_sync("
                    f"{shuffle.mask:#x}, {value}, {shuffle.lane_mask}))")
        self.name(shuffle.target)

    def print_call(self, call: Call) -> None:
        raise NotInNumba(f"{self.program.kernel.name} calls {call.external} between its launches, "
                         "which a Numba program cannot do. Compute that outside of the function.")

    def print_mma(self, mma: MMA) -> None:
        raise NotInNumba(f"{self.program.kernel.name} multiplies on tensor cores, which Numba does "
                         "not know. Schedule it with has_tensor_cores=False.")

    def print_for(self, loop: For) -> None:
        KernelText.print_for(self, loop)


class HostText(CudaText):
    """Prints the host's part: launches, and the loops and branches around them."""

    def print_launch(self, launch: Launch) -> None:
        self.flush()
        name, arguments = self.program.launches[launch]  # type: ignore[attr-defined]
        self.write(f"{name}[{launch.blocks}, {launch.threads}]"
                   f"({', '.join(map(self.operand, arguments))})")

    def print_load(self, load: Load) -> None:
        self.write(f"{self.named(load.target)} = {self.place(load.buffer, load.index)}")
