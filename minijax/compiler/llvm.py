"""The loop tree as LLVM assembly: a kernel's module of functions.

Builds on function_text.py and vector_text.py; imports no compiler. Chapter 24.
In JAX this role is played by XLA's IR emitters (xla/service/cpu, xla/service/llvm_ir).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from .arithmetic import Arithmetic
from .calls import table_of_calls, with_runs
from .contraction import contracted
from .cpu import vector_registers
from .delinearization import delinearize
from .duplicates import transformed_once
from .function_text import FunctionText, llvm_type
from .index_set_splitting import split_loops
from .integer_order import order_as_integers
from .interrupts import sites
from .loop_coalescing import coalesce_loops
from .loop_unrolling import unroll_loops
from .loop_unswitching import unswitch_loops
from .loops import (INT64, Buffer, For, Kernel, Scalar, Statement, accesses, cached_on_node,
                    walk)
from .memory import WORD
from .outer_loop_vectorization import put_rows_in_lanes
from .outlining import (MAX_FUNCTION, Outlined, callable_duplicates, outlined_loops,
                        split_body)
from .routines import microkernel
from .vector_text import VectorText
from .vectors import Function, called_in

SYMBOL = "kernel"
POLL = "minijax_poll"  # polls for signals outside of parallel loops
PURE = "noinline nounwind willreturn memory(none)"


def assembly(kernel: Kernel) -> str:
    """Return the kernel as one LLVM module that defines `int32 kernel(PyObject* list)`.

    Equal kernels give equal text, whatever lines of the user's program they came from: the text is
    what the cache on disk is keyed by.
    """
    return ModuleText(transformed(kernel)).text()


@cached_on_node
def transformed(kernel: Kernel, once: bool = True) -> Kernel:
    """The kernel with its loops transformed for a processor; equal loops once, as duplicates."""
    body = contracted(kernel).body
    if not once:
        return replace(kernel, body=_transformed(body))
    return callable_duplicates(
        replace(kernel, body=tuple(transformed_once(body, _transformed))))


def _transformed(body: tuple[Statement, ...], shared: Collection[Buffer] = ()
                 ) -> tuple[Statement, ...]:
    body = coalesce_loops(unswitch_loops(delinearize(split_loops(body))))
    return unroll_loops(order_as_integers(put_rows_in_lanes(body, shared)))


def microkernel_assembly(name: str) -> str:
    """A microkernel as a module of its own. Its rows are vectors, which stay in registers."""
    parameters, _, lanes, body = microkernel(name)
    module = ModuleText(Kernel(name))  # with nothing to outline
    inner = module.printer(lanes)
    inner.names |= {x: f"%argument.{k}" for k, x in enumerate(parameters)}
    inner.body(body)
    signature = ", ".join(map(inner.typed, parameters))
    return module.assembled(inner.text(f"void @{name}({signature})"))


class ModuleText:
    """Prints one kernel: its function, the outlined loops, the helpers that they call."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.outlined = outlined_loops(kernel)
        self.names_by_text: dict[str, str] = {}  # texts of outlined functions → their names
        self.function_names: dict[tuple[Statement, str], str] = {}  # a loop, its poll → the name
        self.interruptible: set[str] = set()  # functions that return whether they were interrupted
        self.functions: dict[str, str] = {}
        self.called = called_in(kernel.body)
        # The vector length of these functions: a register full of the widest dtype.
        self.lanes = vector_registers()[1] // max(
            (f.dtype.itemsize for f in self.called), default=1)
        self.sites = sites(kernel)

    def printer(self, lanes: int = 0) -> FunctionText:
        """A printer of one function."""
        return FunctionText(self, lanes)

    def in_vectors(self, text: FunctionText, lanes: int) -> VectorText:
        """A printer of vectors that goes on with the lines of a printer of scalars."""
        return VectorText(text, lanes)

    def text(self) -> str:
        """The module: helpers in use, and the functions."""
        bodies = split_body([*with_runs(self.kernel.body, self.is_plain_call)], MAX_FUNCTION)
        names = [f"i32 @{SYMBOL}", *(f"i32 @stretch.{k}" for k in range(1, len(bodies))), ""]
        parts = [*map(self.kernel_part, names, bodies, names[1:])]
        return self.assembled(*parts)

    def assembled(self, *parts: str) -> str:
        """The module of some functions, with the helpers in use."""
        return "\n".join([*self.functions.values(), *parts]) + "\n"

    def is_plain_call(self, x: Statement) -> bool:
        """Whether a statement is printed as a call with buffers, which always returns."""
        call = self.outlined.get(x)
        return call is not None and not call.blocks and all(
            isinstance(capture, Buffer) and capture.role != "local" for capture in call.captures
        ) and self.function(x, POLL) not in self.interruptible

    def calls(self, loops: Sequence[Statement]) -> str:
        """The name of a function that calls those of loops."""
        symbol = f"@calls.{sum(name.startswith('@calls') for name in self.functions) + 1}"
        self.functions[symbol] = table_of_calls(
            symbol, self.kernel, [self.function(x, POLL) for x in loops],
            [self.outlined[x] for x in loops])
        return symbol

    def kernel_part(self, name: str, body: Sequence[Statement], following: str) -> str:
        """One part of the kernel as a function that tail-calls the next."""
        buffers = dict.fromkeys(accesses(walk(body)))
        inner = self.printer()
        inner.load_buffer_addresses(self.kernel, buffers)
        inner.poll = POLL
        inner.body(body)
        if following:
            inner.emit(f"%status = tail call {following}(ptr %list)")
        status = "i32 %status" if following else "i32 0"
        return inner.text(f"{name}(ptr noundef %list) noinline", status)

    def function(self, loop: Statement, poll: str) -> str:
        """The name of an outlined loop's function, which polls for signals with `poll`."""
        first = self.outlined[loop].first or loop
        key = first, poll
        if key not in self.function_names:
            self.function_names[key] = self.print_function(first, self.outlined[first], poll)
        return self.function_names[key]

    def print_function(self, loop: Statement, outlined: Outlined, poll: str) -> str:
        """The name of an outlined function; equal texts share one."""
        inner = self.printer()
        inner.poll, inner.is_outlined, inner.is_shared = poll, True, bool(outlined.blocks)
        for position, operand in enumerate(outlined.captures):
            t = llvm_type(operand.dtype) if isinstance(operand, Scalar) else "ptr"
            inner.names[operand] = inner.field("%frame", WORD * position, t)
        inner.allocate_private(outlined.private)
        if not isinstance(loop, For):
            inner.body((loop,))
        elif outlined.blocks:
            b, number = Arithmetic(), Scalar("", INT64)
            inner.names[number] = "%block"
            start = b.add(loop.start, b.mul(number, outlined.step))
            stop = b.min(b.add(start, outlined.step), loop.stop)
            inner.body(b.scopes[0].statements)
            inner.polling_loop(loop, start, stop, outlined.step)
        else:
            inner.polling_loop(loop, loop.start, loop.stop, loop.trip_count)
        interruptible = inner.returns_early and not inner.is_shared
        kind, status = ("i32", "i32 0") if interruptible else ("void", "void")
        text = inner.text(f"internal {kind} @loop(ptr noundef %frame, i64 %block) noinline", status)
        if text not in self.names_by_text:
            name = self.names_by_text[text] = f"@loop.{len(self.names_by_text) + 1}"
            self.functions[name] = text.replace("@loop", name, 1)
            self.interruptible |= {name} if interruptible else set()
        return self.names_by_text[text]

    def elementary_function(self, f: Function) -> str:
        """The name of an elementary function of vectors."""
        t, name = llvm_type(f.dtype, self.lanes), f"@{f.name}.{self.lanes}.{llvm_type(f.dtype)}"
        if name not in self.functions:
            inner = self.printer()
            vectors = self.in_vectors(inner, self.lanes)
            for k, x in enumerate(f.parameters):
                vectors.vectors[x], vectors.steps[x] = f"%x{k}", None
            signature = ", ".join(map(vectors.typed, f.parameters))
            result = f"{t} {vectors.function(f)}"
            self.functions[name] = inner.text(f"internal {t} {name}({signature}) {PURE}", result)
        return name
