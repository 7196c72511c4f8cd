"""Launches as PTX, the assembly language of NVIDIA's processors: another target of llvm.py.

Builds on llvm.py and llvmlite, whose LLVM has this target too. Buffers are passed as addresses, in
the order of the kernel's; temps lie in a workspace. Chapter 27. In JAX: XLA's NVPTX backend.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
import functools
from typing import Any

import numpy as np

from .. import cache, cpu
from ..builder import Builder
from ..instructions import plain, shifted
from ..function_text import FunctionText, _stored_type
from ..llvm import ModuleText
from ..loops import (MMA, Atomic, Barrier, Buffer, Constant, For, Kernel, Launch, Let, Load,
                     Operand, Scalar, Shuffle, Statement, Store, accesses, defined, used, walk)
from ..remainder import remainder
from ..scalars import FLOAT32, kind_of
from ..vectors import Function
from .aliases import Aliases, Metadata
from .coalescing import ALIGNMENT
from .special_functions import FORMULAS, quotient
from .thread_block import WARP

TRIPLE = "nvptx64-nvidia-cuda"
BLOCKS = 2  # at least, on a processor: while one waits, another runs; they share its registers
FENCE = "call void @llvm.nvvm.membar.gl()"
BARRIER = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
ADDRESS = f"ptr align {ALIGNMENT} noundef"
FOUR_FLOATS = "{float, float, float, float}"
EXTREMUM = "call {{t}} @llvm.{}imum.{{m}}({{s}} {{x}}, {{s}} {{y}})"


def has_inexact_reciprocal(x: Any) -> bool:
    """Whether a divisor is a constant that is no power of two, nor an extreme one."""
    value = abs(x.value) if isinstance(x, Constant) else 0.0
    return 2.0**-60 < value < 2.0**60 and np.frexp(value)[0] != 0.5


def limited_shift(op: str, x: Any, y: Any) -> Any:
    """A shift of 64 bits, by no more than 64."""
    count = plain("call {t} @llvm.umin.{m}({s} {x}, {s} {y})", y, y.const(64, y.dtype))
    return shifted({"shl": "shl", "shr_logical": "lshr"}[op], x, count)


def launches_of(body: Sequence[Statement]) -> list[Launch]:
    """The distinct launches of a scheduled kernel."""
    return [each for each in walk(body) if isinstance(each, Launch)]


def assembly(kernel: Kernel) -> str:
    """A scheduled kernel as an LLVM module with a function for each launch."""
    module = LaunchesText(kernel)
    functions = [module.launch(f"launch_{k}", x) for k, x in enumerate(launches_of(kernel.body))]
    return "\n".join([*module.functions.values(), *functions, *module.metadata.lines]) + "\n"


def parameters(kernel: Kernel, launch: Launch) -> tuple[list[Buffer], bool, list[Scalar]]:
    """The arguments of a launch: buffers, whether it takes the workspace, and scalars of the host.
    """
    every = list(walk(launch.body))
    buffers = set(accesses(every))
    passed = [x for x in (*kernel.inputs, *kernel.outputs, *kernel.constants) if x in buffers]
    inside = {launch.block, launch.thread, *map(defined, every)}
    numbers = dict.fromkeys(x for each in every for x in used(each)
                            if isinstance(x, Scalar) and x not in inside)
    return passed, not buffers.isdisjoint(kernel.temps), list(numbers)


class LaunchesText(ModuleText):
    """Prints the launches of one kernel; elementary functions are inlined."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(replace(kernel, body=()))
        self.kernel, self.metadata = kernel, Metadata()

    def launch(self, name: str, launch: Launch) -> str:
        """A launch as a function."""
        buffers, workspace, numbers = parameters(self.kernel, launch)
        every = dict.fromkeys(accesses(walk(launch.body)))
        inner = LaunchText(self)
        inner.aliases = Aliases(self.metadata, every, self.kernel.offsets)
        arguments: list[Any] = [*buffers, *numbers]
        inner.names |= {x: f"%argument.{k}" for k, x in enumerate(arguments)}
        types = (ADDRESS if isinstance(x, Buffer) else inner.type_of(x.dtype) for x in arguments)
        signature = [f"{t} {inner.names[x]}" for t, x in zip(types, arguments, strict=True)]
        if workspace:
            signature.append(f"{ADDRESS} %workspace")
        for x in every:
            kind = f"[{max(x.size, 1)} x {_stored_type(x.dtype)}]"
            if x.role == "shared":
                place = f"@shared.{len(self.functions)}"
                self.functions[place] = (f"{place} = internal addrspace(3) global {kind} undef, "
                                         "align 16")
                inner.names[x] = place
            elif x.role == "local":
                inner.names[x] = inner.at_entry(f"alloca {kind}, align 16")
            elif x in self.kernel.offsets:
                inner.names[x] = inner.at_entry("getelementptr inbounds i8, ptr %workspace, i64 "
                                                f"{self.kernel.offsets[x]}")
        for number, register, n in ((launch.block, "ctaid", launch.blocks),
                                    (launch.thread, "tid", launch.threads)):
            word = inner.at_entry(f"call range(i32 0, {n}) i32 "
                                  f"@llvm.nvvm.read.ptx.sreg.{register}.x()")
            inner.names[number] = inner.at_entry(f"zext i32 {word} to i64")
        inner.body(launch.body)
        return inner.text(f"ptx_kernel void @{name}({', '.join(signature)}) "
                          f'"nvvm.maxntid"="{launch.threads}" "nvvm.minctasm"="{BLOCKS}"')


class LaunchText(FunctionText):
    """Prints one launch."""

    invariant: Collection[Any] = ()  # what the innermost loop does not change
    aliases: Aliases

    def pointer(self, buffer: Buffer) -> str:
        """Shared memory has an address space of its own: cast to the generic one, LLVM optimises
        less.
        """
        return "ptr addrspace(3)" if buffer.role == "shared" else "ptr"

    def access(self, x: Load | Store, t: str, value: str = "") -> str:
        return super().access(x, t, value) + self.aliases.access(x.buffer)

    def print_let(self, let: Let) -> None:
        """LLVM has no exact remainder of floats for this target, and takes 32 bits of the count of
        a shift of 64, which is limited first; an extremum is one instruction.
        """
        dtype = let.target.dtype
        if let.op == "rem" and kind_of(dtype) == "f":
            b = Builder()
            return self.inline(let, b, remainder(b, *let.args))
        if dtype == FLOAT32 and let.op in FORMULAS:
            return self.write_formula(let, FORMULAS[let.op])
        if dtype == FLOAT32 and let.op == "div" and (
                let.args[1] in self.invariant or has_inexact_reciprocal(let.args[1])):
            return self.write_formula(let, quotient)
        if dtype == FLOAT32 and let.op in ("min", "max"):
            return super().print_let(replace(let, op=EXTREMUM.format(let.op)))
        if let.op in ("shl", "shr_logical") and dtype.itemsize == 8:
            return self.write_formula(let, lambda x, y: limited_shift(let.op, x, y))
        super().print_let(let)

    def elementary(self, let: Let, f: Function) -> None:
        """Inline an elementary function; its rare case is a branch."""
        if not f.formulas[1:]:
            return super().elementary(let, f)
        b = Builder()
        self.inline(let, b, f.with_branch(b, let.args))

    def inline(self, let: Let, b: Builder, result: Operand) -> None:
        """The statements of a formula in place of an operation."""
        self.body(b.scopes[0].statements)
        self.names[let.target] = self.value(result)

    def print_for(self, loop: For) -> None:
        before, self.invariant = self.invariant, frozenset(self.names)
        self.loop(loop, loop.start, loop.stop)
        self.invariant = before

    def print_barrier(self, barrier: Barrier) -> None:
        self.emit(BARRIER)

    def print_atomic(self, atomic: Atomic) -> None:
        """A fence on both sides of one that is ordered, as the target has no other order, or only
        after one that reads.
        """
        kind, is_read = atomic.value.dtype.kind.strip("i"), atomic.op == "read"
        op = {"turn": "uinc_wrap", "add": kind.strip("u") + "add"}.get(atomic.op, kind + atomic.op)
        if atomic.ordered and not is_read:
            self.emit(FENCE)
        place = f"{self.pointer(atomic.buffer)} {self.address(atomic.buffer, atomic.index)}"
        access = (f"load atomic {self.type_of(atomic.target.dtype)}, {place}" if is_read
                  else f"atomicrmw {op} {place}, {self.typed(atomic.value)}")
        self.define(atomic.target, f"{access} monotonic, align {atomic.buffer.dtype.itemsize}")
        if atomic.ordered:
            self.emit(FENCE)

    def print_shuffle(self, shuffle: Shuffle) -> None:
        mask = shuffle.mask - (1 << 32) * (shuffle.mask >> 31)  # as LLVM reads an i32
        self.define(shuffle.target, f"call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 {mask}, "
                    f"{self.typed(shuffle.value)}, i32 {shuffle.lane_mask}, i32 {WARP - 1})")

    def print_mma(self, mma: MMA) -> None:
        """One instruction, whose operands are words of 32 bits."""
        words, kind = len(mma.y) // 2, mma.x[0].dtype
        of_kind, word = {"float32": ("tf32", "i32"), "bfloat16": ("bf16", "i32"),
                         "float16": ("f32.f32", "<2 x half>")}[kind.name]
        factors = [f"{word} {self.packed(part[k:k + words], word)}"
                   for part in (mma.x, mma.y) for k in range(0, len(part), words)]
        sums = [self.computed("%sum", f"load float, ptr {self.names[x]}") for x in mma.sums]
        name = f"@llvm.nvvm.mma.m16n8k{8 * words}.row.col.{of_kind}"
        arguments = ", ".join([*factors, *(f"float {x}" for x in sums)])
        results = self.computed("%sums", f"call {FOUR_FLOATS} {name}({arguments}) convergent")
        for k, variable in enumerate(mma.sums):
            total = self.computed("%sum", f"extractvalue {FOUR_FLOATS} {results}, {k}")
            self.emit(f"store float {total}, ptr {self.names[variable]}")

    def packed(self, numbers: Sequence[Any], word: str) -> str:
        """A float32, or two shorter numbers, as one word."""
        vector, packed = f"<{len(numbers)} x {self.type_of(numbers[0].dtype)}>", "poison"
        for k, x in enumerate(numbers):
            packed = self.computed(
                "%word", f"insertelement {vector} {packed}, {self.typed(x)}, i64 {k}")
        return self.computed("%word", f"bitcast {vector} {packed} to {word}")


@functools.cache
def _machine(processor: str) -> Any:
    binding = cpu._llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE).create_target_machine(cpu=processor, opt=3)


def on_disk(words: str, work: Callable[[], str]) -> str:
    """The text that is made of some words: from the disk cache, else by `work`."""
    key = cache.cache_key(words)
    code = cache.read(key)
    if code is None:
        code = work().encode()
        cache.write(key, code)
    return code.decode()


def compile_cached(text: str, processor: str) -> str:
    """The PTX of a text: from the disk cache, else compiled."""
    return on_disk(f"{processor}\0{text}", lambda: compile(text, processor))


def compile(text: str, processor: str = "sm_80") -> str:
    """PTX for a processor, from the text of `assembly`."""
    def work() -> str:
        machine, binding = _machine(processor), cpu._llvm()
        module = cpu.parsed(text, TRIPLE, machine)
        options = binding.create_pipeline_tuning_options(3)
        options.loop_vectorization = options.slp_vectorization = False
        cpu.run_passes(binding.create_pass_builder(machine, options).getModulePassManager(),
                       module, machine)
        return machine.emit_assembly(module)
    return cpu.undisturbed(work)
