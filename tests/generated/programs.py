"""Programs made by chance: lines of array code, written one by one while their values are known.

A program is data: `Line`s, some of them functions with lines of their own, so that it can be
printed, run on minijax and on JAX, and made smaller. `grammar.py` has the table of what a line
can be; here is what chooses among it, runs it at once, and keeps what does not raise.
"""

import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import minijax
from tests.public.draw import DTYPES, FULL, RICH, SHAPES, Call, Draw, Of

KINDS = {np.dtype(dtype).name: kind for kind, dtype in DTYPES.items()} | {
    "float64": "f", "int64": "i", "complex128": "c"}
SOME, MANY = 600, 1 << 20  # elements of an array: of most programs, and of a few
HIGHEST = 1e4  # numbers beyond are avoided: all that follows from them is inf or nan


class Line(NamedTuple):
    """`target = text`; or `def target(text)` with a body; or `return text`."""

    target: str
    text: str
    body: tuple["Line", ...] | None = None

    def print(self, indent: str = "    ") -> Iterator[str]:
        if self.body is not None:
            yield f"{indent}def {self.target}({self.text}):"
            for line in self.body:
                yield from line.print(indent + "    ")
        elif self.target == "return":
            yield f"{indent}return {self.text}"
        else:
            yield f"{indent}{self.target} = {self.text}"


class Input(NamedTuple):
    """An argument: numbers that are far from one another, and from where functions jump."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    salt: int

    def value(self) -> np.ndarray:
        step = (np.arange(np.prod(self.shape, dtype=int)) * 29 + self.salt) % 79
        kind = KINDS[self.dtype]
        x = (step - 38) / 16 if self.is_float else step % 2 if kind == "b" else (
            step % 5 if kind in "uw" else step % 9 - 4)
        return x.reshape(self.shape).astype(self.dtype)

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype or "complex" in self.dtype

    def print(self) -> str:
        x = self.value()
        if x.size > 64:
            return (f"jnp.asarray(((np.arange({x.size}) * 29 + {self.salt}) % 79 - 38) / 16, "
                    f"{self.dtype!r}).reshape({self.shape})")
        return f"jnp.asarray({x.tolist()}, {self.dtype!r}).reshape({self.shape})"


class Flags(NamedTuple):
    """What a program, or the writing of it, runs under."""

    enable_x64: bool = False
    numpy_rank_promotion: str = "allow"
    numpy_dtype_promotion: str = "standard"

    def on(self, lib: Any) -> ExitStack:
        with ExitStack() as stack:
            for name, value in self._asdict().items():
                stack.enter_context(getattr(lib, name)(value))
            return stack.pop_all()

    def print(self) -> str:
        return "".join(f'jax.config.update("jax_{name}", {value!r})\n'
                       for name, value in self._asdict().items()
                       if value != self._field_defaults[name])


class Program(NamedTuple):
    """A function `f(x, n)` of floats and of other arrays, and the functions around it."""

    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    layers: tuple[str, ...] = ()
    flags: Flags = Flags()

    def arguments(self) -> tuple[list, list]:
        return ([x.value() for x in self.inputs if x.is_float],
                [x.value() for x in self.inputs if not x.is_float])

    def function(self) -> str:
        """The program's text; its last function takes `x` and `n`."""
        from .grammar import LAYERS

        names = [", ".join(i.name for i in self.inputs if i.is_float == floats)
                 for floats in (True, False)]
        lines = ["def f(x, n):", *(f"    [{name}] = {whole}" for name, whole in zip(
            names, "xn", strict=True) if name), *(t for line in self.lines for t in line.print())]
        inner = "f"
        for k, layer in enumerate(self.layers):
            lines.append(f"def f{k}(x, n, f={inner}):")
            lines.append(f"    return {LAYERS[layer]}")
            inner = f"f{k}"
        text = "\n".join(lines)
        return helpers_of(text) + text + f"\nprogram = {inner}\n"

    def print(self) -> str:
        """A file that runs, on either library."""
        lists = [", ".join(i.print() for i in self.inputs if i.is_float == floats)
                 for floats in (True, False)]
        imports = "".join(f"import minijax.{module}\n" for module in MODULES)
        return (f"import numpy as np\nimport minijax as jax\n{imports}from minijax import lax, nn, "
                "numpy as jnp\nfrom minijax.experimental import sparse\n"
                "from numpy import inf, nan\n"
                f"{self.flags.print()}{self.function()}x = [{lists[0]}]\nn = [{lists[1]}]\n"
                "print(jax.jit(program)(x, n))\nwith jax.disable_jit():\n"
                "    print(program(x, n))\n")

    def load(self, lib: Any, text: str | None = None, **names: Any) -> Callable:
        """The program as a function of a library's arrays."""
        names = names_of(lib) | names
        exec(compile(text or self.function(), "<generated>", "exec"), names)
        return names["program"]


def names_of(lib: Any) -> dict[str, Any]:
    """What a program may mention."""
    for module in MODULES:
        importlib.import_module(f"{lib.__name__}.{module}")
    return {"jax": lib, "jnp": lib.numpy, "lax": lib.lax, "nn": lib.nn, "np": np,
            "sparse": lib.experimental.sparse, "nan": np.nan, "inf": np.inf}


MODULES = ("ad_checkpoint", "custom_batching", "experimental.sparse", "ref", "scipy.special")

# What the table's rows and layers stand on; each is printed where it is used.
HELPERS = {
    "along": "def along(x):\n    return jax.tree.map(jnp.cos, x)\n",
    "floats": ("def floats(out):\n    return [y for y in jax.tree.leaves(out) "
               "if jnp.issubdtype(y.dtype, jnp.floating)]\n"),
    "total": ("def total(out):\n    return sum([jnp.sum(y * jnp.cos(y)).astype('float32') "
              "for y in floats(out)], jnp.float32(0))\n"),
    "batch": ("def batch(x, axis=0):\n    return jax.tree.map("
              "lambda y: jnp.stack([y, y[::-1] if y.ndim else y, y], axis), x)\n"),
    "own_jvp": ("def own_jvp(g):\n    h = jax.custom_jvp(g)\n"
                "    h.defjvp(lambda xs, ts: jax.jvp(g, xs, known(xs, ts)))\n    return h\n"),
    "known": ("def known(xs, ts):\n    return jax.tree.map(lambda x, t: t * (x == x) if "
              "jnp.issubdtype(t.dtype, jnp.floating) else t, xs, ts)\n"),
    "own_vjp": ("def own_vjp(g):\n    h = jax.custom_vjp(g)\n    h.defvjp(lambda *xs: (g(*xs), xs),"
                " lambda xs, ct: jax.vjp(g, *xs)[1](ct))\n    return h\n"),
    "own_vmap": ("def own_vmap(g):\n    h = jax.custom_batching.custom_vmap(g)\n"
                 "    h.def_vmap(lambda _, axes, *xs: (jax.vmap("
                 "g, [0 if a else None for a in axes])(*xs), True))\n    return h\n"),
    "kept": ("def kept(x, change):\n    ref = jax.new_ref(x)\n    change(ref)\n"
             "    return jax.freeze(ref)\n"),
    "both": ("def both(x, y, change):\n    refs = jax.new_ref(x), jax.new_ref(y)\n"
             "    change(*refs)\n    return [jax.freeze(r) for r in refs]\n"),
    "boxed": ("def boxed(x, depth):\n    for _ in range(depth):\n        x = [x]\n"
              "    return x\n"),
    "nested": ("def nested(g, depth, around):\n    for _ in range(depth):\n"
               "        g = around(lambda *a, g=g: g(*a))\n    return g\n"),
    "printed": "def printed(key):\n    jax.debug.print('{}', key)\n    return key\n",
    "named": "def named(x):\n    return jax.ad_checkpoint.checkpoint_name(x, 'kept')\n",
}


def helpers_of(text: str) -> str:
    wanted = {name for name in HELPERS if re.search(rf"\b{name}\(", text)}
    wanted |= {other for name in wanted for other in HELPERS if f"{other}(" in HELPERS[name]}
    return "".join(HELPERS[name] for name in HELPERS if name in wanted)


# ── Writing a program ────────────────────────────────────────────────────────────────────────

class Rejected(Exception):
    """This line cannot be written here; another one may."""


class Named(np.ndarray):
    """A value of the program, and the expression for it."""

    name = ""

    def __format__(self, spec: str) -> str:
        if not self.name:
            raise Rejected
        return self.name

    def __str__(self) -> str:
        return format(self)


def named(name: str, x: Any) -> Named:
    found = np.asarray(x).view(Named)
    found.name = name
    return found


def source(x: Any) -> str:
    """The Python text of an argument."""
    match x:
        case Named() if x.name:
            return x.name
        case Of():
            raise Rejected
        case np.ndarray():
            if x.size > 64 or x.dtype == ml_dtypes.bfloat16:
                raise Rejected
            return f"np.array({x.tolist()}, {x.dtype.name!r}).reshape({x.shape})"
        case np.generic():
            return f"np.{x.dtype.name}({x.item()!r})"
        case type():
            return x.__name__ if x in (bool, int, float) else f"jnp.{x.__name__}"
        case list():
            return f"[{', '.join(map(source, x))}]"
        case tuple():
            return f"({' '.join(source(y) + ',' for y in x)})"
        case dict():
            return "{" + ", ".join(f"{k!r}: {source(y)}" for k, y in x.items()) + "}"
        case bool() | int() | float() | str() | slice() | None:
            return repr(x)
    raise Rejected


def call_text(name: str, call: Call) -> str:
    args = [source(x) for x in (*call.first, *call.args, *call.static)]
    return f"{name}({', '.join(args + [f'{k}={source(x)}' for k, x in call.options.items()])})"


class Writer(Draw):
    """Writes a program line by line; draws arguments from what there is already."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.complex_numbers = self.random() < 0.1
        self.kinds = "ffffffiiib" + self.choice(["", "", "he", "pu", "w", "hepuw"]) + (
            "cc" if self.complex_numbers else "")
        self.large = self.random() < 0.06
        self.rows = 65 if seed % 8 == 0 else 0  # of some arrays: their rows are in vectors' lanes
        self.flags = Flags(self.random() < 0.08, self.choices(["allow", "raise"], [9, 1])[0],
                           self.choices(["standard", "strict"], [9, 1])[0])
        self.beside_jax = False
        self.sizes = self.choices([1, 1, 2, 3, 4], k=self.choice([1, 2, 2, 3]))  # few: loops merge
        self.depth = 0
        self.count = 0
        self.inputs: list[Input] = []
        self.lines: list[Line] = []
        self.values: list[Named] = []
        self.names = names_of(minijax)
        exec("".join(HELPERS.values()), self.names)

    # -- running at once ------------------------------------------------------------------------

    def fresh(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def run(self, text: str) -> Any:
        try:
            with warnings.catch_warnings(), minijax.disable_jit():
                warnings.simplefilter("ignore")
                return eval(text, self.names)
        except Exception as error:
            raise Rejected(text) from error

    def write(self, text: str) -> list[Named]:
        """A line `v1, … = text`, and its values."""
        result = self.run(text)
        several = isinstance(result, tuple | list)
        found = list(result) if several else [result]
        if not found or not all(isinstance(x, minijax.Array) for x in found):
            raise Rejected
        self.check(found)
        names = [self.fresh() for _ in found]
        self.lines.append(Line(f"[{', '.join(names)}]" if several else names[0], text))
        return [self.add(name, x) for name, x in zip(names, found, strict=True)]

    def add(self, name: str, x: Any) -> Named:
        self.names[name] = x
        self.values.append(named(name, x))
        return self.values[-1]

    def check(self, found: list) -> None:
        """Not too large, nor numbers of which nothing can be told."""
        for x in found:
            kind = KINDS.get(x.dtype.name)
            if (kind is None or (kind == "c" and not self.complex_numbers) or x.ndim > 5
                    or x.size > (MANY if self.large else SOME)):
                raise Rejected
            if kind in "fheci" and self.random() < 0.95:
                with np.errstate(all="ignore"):
                    small = np.abs(np.asarray(x).astype("complex64")) < HIGHEST
                if not small.all():
                    raise Rejected

    # -- drawing --------------------------------------------------------------------------------

    def choice(self, seq: Any) -> Any:
        """Where the table of public functions asks for a shape, one that there is."""
        if any(seq is shapes for shapes in (SHAPES, RICH, FULL)) and self.values:
            shapes = [x.shape for x in self.values if x.size <= SOME and not (
                (seq is not SHAPES and not x.ndim) or (seq is FULL and not x.size))]
            if shapes and self.random() < 0.9:
                return super().choice(shapes)
        return super().choice(seq)

    def pair(self) -> tuple:
        shapes = [x.shape for x in self.values if x.size <= SOME]
        one = self.choice(shapes)
        return self.choice([(one, other) for other in shapes if broadcast(one, other)])

    def pick(self, kinds: str = "", where: Callable = lambda x: True) -> Named:
        """A value of one of these kinds, the later ones sooner."""
        found = [x for x in self.values if (not kinds or KINDS[x.dtype.name] in kinds) and where(x)]
        if not found:
            raise Rejected
        return found[max(self.randrange(len(found)), self.randrange(len(found)))]

    def array(self, kinds: str = "f", shape: Any = None, domain: str = "any") -> Any:
        kinds = kinds if self.complex_numbers else kinds.replace("c", "")
        if not kinds:
            raise Rejected
        common = [k for k in kinds if k in self.kinds + "snt"]
        kind = self.choice(common or kinds)
        if kind in "snt":
            return super().array(kind, shape, domain)
        found = [x for x in self.values if KINDS[x.dtype.name] == kind
                 and (shape is None or x.shape == shape)]
        if found and self.random() < 0.9:
            x = self.choice(found)
        elif shape is not None and self.random() < 0.6:
            x = self.fitted(kind, shape)
        else:
            x = self.input(kind, shape)
        return self.within(x, kind, domain)

    def far_from_singular(self, x: Any, positive: bool) -> Any:
        n = x.shape[-1]
        [x] = self.write(f"{x} @ {x}.mT.conj() + 3 * jnp.eye({n}, dtype={x}.dtype)" if positive
                         else f"{x} + 3 * jnp.eye({n}, dtype={x}.dtype)")
        return x

    def within(self, x: Named, kind: str, domain: str) -> Named:
        """A value in the domain of a function, made from any."""
        if kind in "fhe":
            text = {"positive": "jnp.abs({}) + 0.5", "unit": "jnp.sin({}) * 0.9",
                    "above one": "jnp.abs({}) + 1.25"}.get(domain, "")
        else:
            text = {"positive": "jnp.abs({}) % 4 + 1", "unit": "jnp.abs({}) % 5"}.get(domain, "")
        return self.write(text.format(x.name))[0] if text and kind not in "bc" else x

    def fitted(self, kind: str, shape: tuple) -> Named:
        """A value of this shape and kind, made from another."""
        x = self.pick(where=lambda x: x.size > 0 and KINDS[x.dtype.name] != "c")
        if KINDS[x.dtype.name] != kind:
            [x] = self.write(f"{x}.astype({np.dtype(DTYPES[kind]).name!r})")
        size = int(np.prod(shape, dtype=int))
        if x.ndim == len(shape) and all(n >= m for n, m in zip(x.shape, shape, strict=True)):
            text = f"{x}[{', '.join(f':{m}' for m in shape) or '...'}]"
        elif broadcast(x.shape, shape) == shape:
            text = f"jnp.broadcast_to({x}, {shape})"
        else:
            text = f"jnp.tile({x}.ravel(), {-(-size // x.size)})[:{size}].reshape({shape})"
        return self.write(text)[0]

    def input(self, kind: str, shape: Any = None) -> Named:
        """A new argument of the program."""
        if shape is None:
            shape = self.shape()
        dtype = np.dtype(DTYPES[kind]).name
        if self.flags.enable_x64 and self.random() < 0.6:
            dtype = {"float32": "float64", "int32": "int64"}.get(dtype, dtype)
        name = f"{'x' if kind in 'fhec' else 'n'}{len(self.inputs)}"
        made = Input(name, dtype, tuple(shape), self.randrange(1, 60))
        with self.flags.on(minijax):
            value = minijax.numpy.asarray(made.value())
        self.inputs.append(made)
        return self.add(name, value)

    def shape(self) -> tuple[int, ...]:
        """Of an argument: mostly small, one rather often; where it is large, beyond a limit."""
        if self.large and self.random() < 0.5:
            return self.choice([(5000,), (4097,), (70, 71), (300, 20), (20, 300), (33, 16, 17),
                                (1030, 600), (2, 4100), (4100, 2), (257, 17), (64, 65)])
        rank = self.choice([0, 1, 1, 2, 2, 3])
        sizes = [self.choice([1, *self.sizes, *self.sizes]) for _ in range(rank)]
        if self.rows and self.random() < 0.8:
            sizes = [self.rows, *(sizes or [1])[-2:]]
        if sizes and self.random() < 0.04:
            sizes[0] = 0
        return tuple(sizes)

    # -- functions and whole programs -----------------------------------------------------------

    def function(self, args: list, like: list | None = None, outs: int = 1, lines: int = 0,
                 closed: bool = False) -> str:
        """Write a function of arguments such as these; its name.

        `like`: its results' types; `closed`: it reads nothing but its arguments.
        """
        if self.depth >= 2:
            raise Rejected
        before = self.lines, self.values, len(self.inputs)
        params = [self.fresh("a") for _ in args]
        name = self.fresh("g")
        self.depth += 1
        self.lines = []
        self.values = self.values[-3:] if self.random() < 0.4 and not closed else []
        try:
            for param, x in zip(params, args, strict=True):
                self.add(param, self.names[x.name] if isinstance(x, Named) else x)
            self.some_lines(lines or self.choice([1, 1, 2, 3]))
            wanted = [self.as_type(x) for x in like] if like is not None else [
                self.pick().name for _ in range(outs)]
            text = wanted[0] if like is None and outs == 1 else f"({', '.join(wanted)},)"
            line = Line(name, ", ".join(params), (*self.lines, Line("return", text)))
        finally:
            self.depth -= 1
            self.lines, self.values = before[:2]
        if closed and len(self.inputs) > before[2]:
            raise Rejected
        self.values += list(map(self.input_value, self.inputs[before[2]:]))
        self.lines.append(line)
        exec("\n".join(line.print("")), self.names)
        return name

    def input_value(self, made: Input) -> Named:
        return named(made.name, self.names[made.name])

    def as_type(self, x: Any) -> str:
        """An expression of the type of `x`."""
        same = [y for y in self.values if y.shape == x.shape and y.dtype == x.dtype]
        later = [y for y in same if y.name.startswith("v")]
        if same and self.random() < 0.9:
            y = self.choice(later or same if self.random() < 0.6 else same)
            return self.choice([f"{y}", f"{y}", f"{y}[::-1]" if y.ndim else f"{y}"])
        other = self.pick(where=lambda y: KINDS[y.dtype.name] != "c")
        base = self.choice(same).name if same else None
        cast = f"jnp.sum({other}).astype({x.dtype.name!r})"
        if base is None:
            return f"jnp.full({x.shape}, {cast})"
        return f"{base} | {cast}" if x.dtype == bool else f"{base} + {cast}"

    def some_lines(self, count: int) -> None:
        """Lines of the table, as many as asked for or nearly so."""
        from .grammar import write_line

        written = tries = 0
        while written < count and tries < 6 * count:
            tries += 1
            before = len(self.lines), list(self.values), len(self.inputs)
            try:
                write_line(self)
                written += 1
            except (Rejected, IndexError, ValueError, TypeError):
                self.lines[before[0]:], self.values = [], before[1]
                self.inputs[before[2]:] = []


def broadcast(one: tuple, other: tuple) -> tuple | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def generate(seed: int, against: str = "eager") -> Program:
    """The program of a seed; what it may hold depends on what it is run against."""
    from .grammar import LAYERS

    d = Writer(seed)
    d.large &= against not in ("sanitiser", "gpu", "ptx", "numba")
    d.beside_jax = against == "jax"
    d.complex_numbers = seed % 20 == 0 or seed % 16 == 0
    if against == "ranks":  # whose axes are cut in two or in four
        d.sizes = d.choices([2, 4, 4, 8, 3], k=len(d.sizes))
    # Mostly written under its flags, so that all of it runs; or its first promotion raises.
    with (d.flags if d.random() < 0.8 else Flags(d.flags.enable_x64)).on(minijax):
        for kind in (d.choice("ffffi"), d.choice("ffi"), d.choice(d.kinds))[:d.choice([1, 2, 3])]:
            d.input(kind)
        d.some_lines(d.choice([3, 4, 5, 6, 8, 12, 16]))
        made = [x for x in d.values if x.name[0] == "v"] or d.values
        wanted = {made[-1].name, *(d.pick().name for _ in range(d.choice([0, 1, 2, 4, 6])))}
    count = d.choice([0, 0, 0, 1] if d.large else [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4])
    layers = tuple(d.choices(list(LAYERS), k=count))
    lines = (*d.lines, Line("return", f"[{', '.join(sorted(wanted))}]"))
    return Program(tuple(d.inputs), lines, layers, d.flags)
