"""The loop tree as a Numba program: a module that runs with NumPy and Numba alone.

Builds on the printer of text.py, and adds types: Numba would compute 32-bit numbers in 64 bits.
numba_helpers.py has the functions that a program calls. Chapter 24. JAX has no counterpart.
"""

import ast
import base64
import operator
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from minijax.core import Avals, ShapedArray
from minijax.dtypes import BFLOAT16
from minijax.primitives.infix import infix

from . import routines
from .builder import Builder
from .contraction import contracted
from .elementary import FORMULAS
from .instructions import FLOAT16, rounded_to, widened
from .loops import (BOOL, INT64, Address, Assign, Buffer, Call, Constant, For, Kernel, Let,
                    Operand, Scalar, Statement, accesses, origin, walk)
from .outlining import MAX_FUNCTION, Outlined, outlined_loops, split_body
from .scalars import FLOAT32, kind_of
from .text import KernelText, plain
from .vectors import function, functions_in

# How operations are written that are no operators of Python, on a kind of numbers or on all: as
# calls of helpers or of NumPy, or otherwise. {t} is the type, {o} that of the other sign, {w} its
# width in bits, {h} half of it; {d} is f or d, a letter for its floats, and {f} is f or none.
FORMS = {
    "fma": "fma({0}, {1}, {2})", "min f": "minimum({0}, {1})", "max f": "maximum({0}, {1})",
    "div i": "divide({0}, {1})", "div u": "divide_unsigned({0}, {1})",
    "rem i": "remainder({0}, {1})", "rem u": "remainder_unsigned({0}, {1})",
    "halves": "halves({0}, {1}, {h})", "shl": "shift_left({0}, {1}, {w})",
    "shr_arithmetic i": "shift_right({0}, {1}, {w})",
    "shr_arithmetic u": "shift_right({o}({0}), {o}({1}), {w})",
    "shr_logical i": "shift_right_unsigned({o}({0}), {o}({1}), {w})",
    "shr_logical u": "shift_right_unsigned({0}, {1}, {w})",
    "neg u": "{t}(0) - ({0})", "abs u": "{0}", "abs": "abs({0})", "not b": "not ({0})",
    "add b": "({0}) | ({1})", "mul b": "({0}) & ({1})", "min b": "({0}) & ({1})",
    "max b": "({0}) | ({1})", "min": "min({0}, {1})", "max": "max({0}, {1})",
    "select": "({1}) if ({0}) else ({2})", "rem f": "np.fmod({0}, {1})",
    **{name: f"np.{name}({{0}})" for name in ("sqrt", "floor", "ceil", "trunc")},
    "round_even": "np.rint({0})", "copysign": "np.copysign({0}, {1})"}
NARROW = FLOAT16, BFLOAT16  # of which an array is passed as its bits
# Other names of a module, and of Python that it reads: a kernel may be called `main` or `max`.
RESERVED = set("np njit prange intrinsic cuda libdevice base64 zlib main min max abs".split())
# The most that a result can be, by what its operands can be, none of which is negative.
BOUNDS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "mul": operator.mul, "min": min, "max": max,
    "div": lambda x, y: x, "rem": lambda x, y: y}
MOST_WRITTEN = 64  # elements of a constant that is written as a list; others are packed


class NotInNumba(NotImplementedError):
    """A program has a call or a dtype that Numba programs lack."""


def numba_text(kernel: Kernel, in_avals: Avals, out_avals: Avals) -> str:
    """The kernel as a Numba program, with a `main` that calls it on NumPy arrays of these types.

    Raises:
      NotInNumba: for host callbacks, LAPACK, and floats and integers of less than a byte.

    >>> from minijax import jit
    >>> import numpy as np
    >>> text = jit(lambda x: x * 2.0).lower(np.ones(3, np.float32)).as_text("numba")
    >>> print(text[text.index("@njit"):text.index("def main")].rstrip())
    @njit(nogil=True, error_model="numpy")
    def _lambda_(a, b):
        # a: float32[3]
        # b: float32[3], the result
        # ...
        for i in range(3):
            b[i] = a[i] * float32(2.0)
    """
    return Program(kernel).text(in_avals, out_avals)


def compute_type(dtype: np.dtype) -> str:
    """The name of the type that scalars of a dtype have in the program."""
    if kind_of(dtype) != "n":
        return "bool_" if dtype == BOOL else str(dtype)
    if dtype not in NARROW:
        raise NotInNumba(f"a Numba program has no {dtype}: only float16 and bfloat16 are passed as "
                         "their bits. Compute in float32, or use the compiler llvm.")
    return "uint16"


@cache
def _helpers() -> dict[str, str]:
    """The text of each helper."""
    source = resources.files(__package__).joinpath("numba_helpers.py").read_text("utf-8")
    lines = source.splitlines()
    return {node.name: "\n".join(lines[node.decorator_list[0].lineno - 1:node.end_lineno])
            for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def _words(text: str) -> set[str]:
    """The names that a program reads."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _terms(kernel: Kernel) -> Iterable[Operand]:
    """The terms of sums in any order, of which LLVM may keep several partial sums."""
    for loop in walk(kernel.body):
        if isinstance(loop, For) and loop.vectorize == "reduce":
            sums = {each.value for each in loop.body if isinstance(each, Assign)}
            yield from (x for each in loop.body if isinstance(each, Let) and each.target in sums
                        for x in each.args)


class Return(Statement):
    """The result of a function."""

    value: Operand


class Program:
    """A module: imports, helpers, elementary functions, the kernel, and `main`."""

    def __init__(self, kernel: Kernel, dialect: Any = None) -> None:
        self.dialect = dialect or NumbaText
        self.kernel = kernel = kernel if dialect else contracted(kernel, frozenset(_terms(kernel)))
        self.functions: dict[str, str] = {}  # elementary ones, routines, outlined loops, by name
        self.pieces: dict[Any, str] = {}  # the names of outlined loops
        self.outlined = outlined_loops(kernel)
        self.is_parallel = any(each.blocks for each in self.outlined.values())
        self.private = {x for each in self.outlined.values() for x in each.private}
        names = [f.name for f in {*functions_in(kernel.body)}]
        self.plain_names = {name for name in names if names.count(name) == 1}
        self.printer = self.dialect(kernel, self)
        self.entry = self.printer.entry
        self.body = self.kernel_functions()

    def kernel_functions(self) -> str:
        """The kernel's function; a long one calls its parts, whose only values are buffers."""
        kernel = self.kernel
        bodies = split_body(kernel.body, MAX_FUNCTION)
        if len(bodies) == 1:
            return self.printer.text(self.private)
        calls = []
        for k, body in enumerate(bodies, 1):
            part, name = NumbaText(replace(kernel, body=tuple(body)), self), f"{self.entry}_part{k}"
            buffers = [x for x in dict.fromkeys(accesses(walk(body))) if x not in self.private]
            calls.append(f"{name}({', '.join(map(part.named, buffers))})")
            self.functions[name] = part.function(name, buffers)
        return NumbaText(replace(kernel, body=()), self).text(self.private, calls)

    def piece(self, loop: For) -> str:
        """The name of the function of an outlined loop; equal loops share one."""
        first = self.outlined[loop].first or loop
        if first not in self.pieces:
            name = self.pieces[first] = f"loop{len(self.pieces) + 1}"
            piece = Kernel(name, body=(first,), notes=self.kernel.notes)
            self.add_function(piece, self.outlined[first].captures)
        return self.pieces[first]

    def add_function(self, function: Kernel, parameters: Iterable[Any]) -> None:
        """Add a function to the program, after those that it calls."""
        printer = self.dialect(function, self)
        text = printer.function(function.name, parameters, printer.temps(function.temps))
        self.functions[function.name] = text

    def module(self) -> str:
        """The compiled part of the program: everything but `main`."""
        parts = [text.rstrip("\n") for text in (*self.functions.values(), self.body)]
        helpers, words = _helpers(), _words("\n".join(parts))
        needed: list[str] = []
        for name in reversed(helpers):
            if name in words:
                text = self.helper(helpers[name])
                needed.insert(0, text)
                words |= _words(text)
        return "\n\n\n".join(["\n".join(self.imports(words)), *needed, *parts])

    def helper(self, text: str) -> str:
        """The text of a helper in this dialect."""
        return text

    def imports(self, words: set[str]) -> Iterable[str]:
        yield "import numpy as np"
        yield "from numba import njit" + ", prange" * ("prange" in words)
        if "intrinsic" in words:
            yield "from numba.extending import intrinsic"
        types = [f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)]
        used = [name for name in ("empty", "bool_", *types, "inf", "nan") if name in words]
        if used:
            yield f"from numpy import {', '.join(used)}"

    def text(self, in_avals: Avals, out_avals: Avals) -> str:
        """The program, with a `main` for arrays of these types."""
        kernel = self.kernel
        head = (f'"""{kernel.name}, as the loops that minijax compiles: a program for Numba.\n\n'
                'It needs NumPy and Numba alone. `main` takes and returns NumPy arrays.\n"""')
        return "\n".join([head, "", self.module(), "", *self.constants(), (
            f"\ndef main({', '.join(map(self.printer.named, kernel.inputs))}):"),
            *self.main(in_avals, out_avals)])

    def constants(self) -> Iterable[str]:
        name = self.printer.named
        constants = [f"{name(x).upper()} = {_array(x)}" for x in self.kernel.constants]
        if any("base64" in x for x in constants):
            yield "\nimport base64\nimport zlib\n"
        yield from ["", *constants] if constants else []

    def main(self, in_avals: Avals, out_avals: Avals) -> Iterable[str]:
        """The statements of `main`."""
        kernel, name = self.kernel, self.printer.named
        for x, aval in zip(kernel.inputs, in_avals, strict=True):
            yield f"    {name(x)} = {argument_text(x, aval, name(x))}"
        for x in kernel.outputs:
            yield f"    {name(x)} = np.empty({x.shape}, np.{compute_type(x.dtype)})"
        arguments = [*map(name, (*kernel.inputs, *kernel.outputs)),
                     *(name(x).upper() for x in kernel.constants)]
        yield f"    {self.entry}({', '.join(arguments)})"
        results = [name(x) + result_text(x, aval)
                   for x, aval in zip(kernel.outputs, out_avals, strict=True)]
        yield f"    return {', '.join(results) or '()'}\n"

    def elementary(self, name: str, dtype: np.dtype) -> str:
        """The name of an elementary function of a dtype."""
        f, called = function(name, dtype), name if name in self.plain_names else f"{name}_{dtype}"
        return self.defined(called, f.parameters, lambda b, *args: f.with_branch(b, args))

    def conversion(self, dtype: np.dtype, is_back: bool) -> str:
        """The name of the conversion of a narrow float to float32, or back."""
        x, formula = Scalar("x", FLOAT32 if is_back else dtype), rounded_to if is_back else widened
        called = f"{'to' if is_back else 'from'}_{dtype}"
        return self.defined(called, (x,), infix(lambda x: formula(x, dtype)))

    def defined(self, name: str, parameters: Sequence[Scalar], formula: Callable) -> str:
        """The name of the function of a formula; its text is added to the program."""
        if name not in self.functions:
            b = Builder()
            b.emit(Return(formula(b, *parameters)))
            self.add_function(Kernel(name, body=tuple(b.scopes[0].statements)), parameters)
        return name

    def add_routine(self, name: str) -> None:
        """Add an external routine, if it is a block of a product."""
        if re.fullmatch(routines.BLOCK, name):
            if name not in self.functions:
                parameters, sums, _, body = routines.block(name)
                self.add_function(Kernel(name, temps=tuple(sums), body=tuple(body)), parameters)
            return
        what = "a Python callback" if name.startswith("host") else (
            f"LAPACK's {name.removeprefix(routines.LIBRARY)}")
        raise NotInNumba(f"{self.kernel.name} calls {what}, which a Numba program cannot do: it "
                         "runs without minijax. Compute that outside of the function, or use the "
                         "compiler llvm.")


def argument_text(x: Buffer, aval: ShapedArray, name: str) -> str:
    """The expression of an argument in `main`: an array of its dtype, or of its bits or parts."""
    if aval.dtype.kind == "c":
        return (f"np.asarray({name}, np.{aval.dtype}, order='C').reshape(-1).view(np.{x.dtype})"
                f".reshape({x.shape})")
    dtype = f"np.{'bool_' if x.dtype == BOOL else x.dtype}, " * (x.dtype != BFLOAT16)
    return f"np.asarray({name}, {dtype}order='C')" + ".view(np.uint16)" * (x.dtype in NARROW)


def result_text(x: Buffer, aval: ShapedArray) -> str:
    """The expression of a result, from the array of its buffer."""
    if aval.dtype.kind == "c":
        return f".reshape(-1).view(np.{aval.dtype}).reshape({aval.shape})"
    return ".view(np.float16)" if x.dtype == FLOAT16 else ""


def _array(x: Buffer) -> str:
    """The text of a constant."""
    values = np.ascontiguousarray(np.asarray(x.value).reshape(x.shape))
    if kind_of(x.dtype) == "n":
        values = values.view(compute_type(x.dtype))
    if values.size <= MOST_WRITTEN and np.isfinite(values).all():
        return f"np.array({values.tolist()}, np.{compute_type(x.dtype)})"
    packed = base64.b64encode(zlib.compress(values.tobytes())).decode()
    return (f"np.frombuffer(zlib.decompress(base64.b64decode(\n    {packed!r})), "
            f"np.{compute_type(x.dtype)}).reshape({x.shape})")


class NumbaText(KernelText):
    """Prints one function of a program."""

    decorator = '@njit(nogil=True, error_model="numpy")'
    forms = FORMS
    name_of = staticmethod(compute_type)

    def __init__(self, kernel: Kernel, program: Program) -> None:
        super().__init__(kernel, {*_helpers(), *FORMULAS, *RESERVED})
        self.program = program
        self.reassociable: set[Any] = set()
        loops = [each for each in walk(kernel.body)
                 if isinstance(each, For) and isinstance(each.start, Constant)]
        self.counters = {each.index for each in loops if not self.blocks_of(each)}
        # Integers that are not negative, and the most that they can be.
        self.bounds: dict[Any, int] = {each.index: int(each.stop.value) for each in loops
                                       if isinstance(each.stop, Constant)}

    def blocks_of(self, loop: Any) -> int:
        """The number of blocks of a loop that threads share; 0 for other statements."""
        return outlined.blocks if (outlined := self.program.outlined.get(loop)) else 0

    def function(self, name: str, parameters: Iterable[Any], first: Sequence[str] = ()) -> str:
        parallel = any(self.blocks_of(each) for each in walk(self.kernel.body))
        self.write(self.decorator.replace("(", "(parallel=True, " if parallel else "(", 1))
        return super().function(name, parameters, first)

    # -- expressions ---------------------------------------------------------------------------

    def operand(self, x: Any, typed: bool = False) -> str:
        """A constant has its type, but for indices, float64 and booleans."""
        if isinstance(x, Address):
            flat = ".reshape(-1)" * (len(x.buffer.shape) != 1)
            return plain(f"{self.named(x.buffer)}{flat}[{self.position(x)}:]")
        if isinstance(x, Constant) and kind_of(x.dtype) == "n":
            return f"{compute_type(x.dtype)}({int(x.value.view('u2'))})"
        return super().operand(x, x.dtype not in (INT64, BOOL, np.dtype(np.float64)))

    def position(self, x: Address) -> str:
        """The position of an element in row-major order."""
        text, sizes = "", x.buffer.shape[len(x.buffer.shape) - len(x.index):]
        for i, n in zip(x.index, sizes, strict=True):
            part = "" if isinstance(i, Constant) and not i.value else f"({self.operand(i)})"
            text = " + ".join(filter(None, [f"({text}) * {n}" * bool(text), part]))
        return plain(text or "0")

    def subscript(self, x: Operand) -> str:
        """Numba tests whether an index is negative, which prevents vectorisation, unless it is the
        counter of a loop with a constant start, or its type is unsigned.
        """
        text = self.operand(x)
        return text if isinstance(x, Constant) or x in self.counters else f"uint64({text})"

    def bound(self, let: Let) -> int | None:
        """The upper bound of an index; None for other numbers, and if it may be negative."""
        if let.target.dtype != INT64 or let.op not in BOUNDS:
            return None
        x, y = (int(x.value) if isinstance(x, Constant) else self.bounds.get(x, -1)
                for x in let.args)
        is_divided = let.op in ("div", "rem")
        if min(x, y) < 0 or is_divided and not (isinstance(let.args[1], Constant) and y):
            return None
        most = BOUNDS[let.op](x, y)
        return self.bounds.setdefault(let.target, most) if most < 1 << 63 else None

    def expression(self, let: Let, texts: Sequence[str]) -> str:
        """64-bit results of Numba are truncated to the dtype."""
        op, target, last, bound = let.op, let.target, let.args[-1], self.bound(let)
        dtype, kind = last.dtype, kind_of(last.dtype)
        if op in ("convert", "bitcast"):
            return getattr(self, op)(texts[0], dtype, target.dtype)
        if op in ("add", "mul") and target in self.reassociable and kind == "f":
            return f"{'plus' if op == 'add' else 'times'}({', '.join(texts)})"
        if op in FORMULAS:
            return f"{self.program.elementary(op, dtype)}({', '.join(texts)})"
        if op in ("div", "rem") and bound is not None:
            return f"({texts[0]}) {'//' if op == 'div' else '%'} {texts[1]}"
        bits, letter = 8 * dtype.itemsize, "f" if dtype.itemsize == 4 else "d"
        is_short_shift = op.startswith("sh") and isinstance(last, Constant) and last.value < bits
        form = self.forms.get(f"{op} {kind}") or self.forms.get(op)
        if form is None or is_short_shift and self.symbol(let):
            text = KernelText.expression(self, let, texts)
        else:
            other = f"u{dtype}" if kind == "i" else dtype.name.removeprefix("u")
            text = form.format(*texts, t=dtype, o=other, w=bits, h=bits // 2, d=letter,
                               f=letter.strip("d"))
        is_choice = form is not None and " if " in form
        is_wide = dtype == INT64 and op != "shr_logical" or target.dtype != dtype
        return text if kind not in "iu" or is_choice or is_wide else f"{dtype}({text})"

    def convert(self, x: str, source: np.dtype, target: np.dtype) -> str:
        if source in NARROW:
            wide = f"{self.program.conversion(source, is_back=False)}({x})"
            return wide if target == FLOAT32 else self.convert(wide, FLOAT32, target)
        if target in NARROW:
            return f"{self.program.conversion(target, is_back=True)}({x})"
        if target == BOOL:
            return f"({x}) != 0"
        if kind_of(source) == "f" and kind_of(target) in "iu":
            limits = np.iinfo(target)
            return f"saturated({x}, {target}, {limits.min}, {limits.max})"
        compute_type(source), compute_type(target)  # which refuse
        return f"{target}({x})"

    def bitcast(self, x: str, source: np.dtype, target: np.dtype) -> str:
        types = compute_type(source), compute_type(target)
        if types[0] == types[1]:
            return x
        if "float" in types[0] + types[1]:
            return f"bitcast({x}, {types[1]})"
        return f"{types[1]}({x})"

    # -- statements ----------------------------------------------------------------------------

    def print_return(self, result: Return) -> None:
        text = self.operand(result.value)
        self.flush()
        self.write(f"return {text}")

    def print_call(self, call: Call) -> None:
        if call.external != routines.ALONE:
            self.program.add_routine(call.external)
            super().print_call(call)

    def print_for(self, loop: For) -> None:
        if loop.vectorize == "reduce":
            self.reassociable |= {each.value for each in loop.body if isinstance(each, Assign)}
        outlined = self.program.outlined.get(loop)
        if outlined is None or loop in self.kernel.body and not self.kernel.buffers:
            return super().print_for(loop)
        if outlined.blocks:
            return self.print_shared(loop, outlined)
        self.flush()  # Numba takes no conditional expressions among many arguments
        captures = ", ".join(map(self.operand, outlined.captures))
        self.write(f"{self.program.piece(loop)}({captures})")

    def print_shared(self, loop: For, outlined: Outlined) -> None:
        """Blocks of iterations for threads, each with temps of its own."""
        self.flush()
        self.note(f"{self.note_lines.get(origin(loop), '')}\n{loop.note}")
        start, stop, step = (int(x) for x in (
            loop.start.value, loop.stop.value, outlined.step))  # type: ignore[union-attr]
        block, first, last = self.unused("block"), Scalar("", INT64), Scalar("", INT64)
        begin = f"{start} + {block} * {step}" if start else f"{block} * {step}"
        end = f"{begin} + {step}"
        self.pending |= {first: begin, last: end if (stop - start) % step == 0 else (
            f"min({end}, {stop})")}
        self.inner(f"for {block} in prange({outlined.blocks}):", [
            replace(loop, start=first, stop=last)], self.temps(outlined.private))
