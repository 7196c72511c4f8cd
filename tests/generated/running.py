"""A generated program run in several ways, and where their results differ."""

import itertools
import random
import re
import signal
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import ml_dtypes
import numpy as np

import minijax
from minijax import config, core
from minijax.compiler import executable, lowered
from minijax.compiler.loops import Assign, Call, For, Kernel, Statement, walk
from minijax.compiler.targets import coalescing, launches

from tests import ranks, sanitiser
from tests.compiler.scalar_loops import scalar_loops

from .programs import Line, Program

SECONDS = 30  # of the processor's time that a program may take, and a twentieth of its own
POISON = 0x55  # what memory holds that nobody has written
NOISE = {"bfloat16": 2.0 ** -8, "float16": 2.0 ** -11, "float32": 2.0 ** -23, "float64": 2.0 ** -52,
         "complex64": 2.0 ** -23, "complex128": 2.0 ** -52}  # of one rounding
# What only staged programs refuse: in Python a loop is what it has been through, a mask is known,
# and a branch that is not taken needs no derivative.
STAGED = ("Reverse-mode differentiation does not work", "Array boolean indices must be concrete",
          "Differentiation rule for", "scatter_mul gradients are only",
          "Linearization failed to produce known")  # of custom_vmap, whose argument a loop drops
# What only loops in Python refuse, as in JAX: derivatives of what nobody reads.
UNREAD = re.compile("Differentiation rule for|can't apply forward-mode|Betainc gradient with "
                    "respect|linear_call is differentiated by its linear arguments only")
# What JAX raises where it has no rule, a mistake of its own, or is at work for too long.
NO_ORACLE = ("NotImplementedError", "AssertionError", "ZeroDivisionError", "TimeoutError")
ITS_OWN_FAULT = ("INVALID_ARGUMENT: Unsupported", "INTERNAL: ",  # what JAX's own types allow
                 "Cannot lower jaxpr with verifier errors", "Called add with a float0",
                 "Called multiply with a float0",
                 "vmap in_axes must be an int", "at vmap out_axes[",  # none is written here
                 "log does not accept dtype int32",  # of xlogy, which takes it, the derivative
                 "index is out of bounds for axis 0 with size 0",  # of det, of no numbers
                 "Invalid type of idxer: TypedInt",  # of a reference, in a program
                 "Betainc gradient with respect to a and b",  # of what is not read
                 "No constant handler for type: <class 'jax._src.",  # of exp1 the second slope
                 # of references of integers, backwards through a loop
                 "DynamicJaxprTracer has no attribute accum",
                 "Linearization failed to produce known values",  # windows of any function
                 "can't apply forward-mode autodiff (jvp) to a custom_vjp")  # of what is not read
ROWS = tomllib.loads((Path(__file__).parents[1] / "jax_differences.toml").read_text())["difference"]
NARROW = "'float16'"
PROMOTING = re.compile(r"lax\.(cond|switch|scan|while_loop|fori_loop|map)\(")  # weak types, staged


class Raised(NamedTuple):
    """An error in place of a result."""

    kinds: tuple[str, ...]
    text: str


class Difference(NamedTuple):
    """What is wrong with a program: in which way of running it, what, and how it shows."""

    way: str
    kind: str  # "value", "type", "raises"
    text: str


# ── Ways to run ──────────────────────────────────────────────────────────────────────────────

def outcome(call: Callable[[], Any]) -> Any:
    """The leaves of the result, or what was raised."""
    def late(*_: Any) -> None:
        raise TimeoutError(f"longer than {SECONDS} s")

    clocks = {signal.ITIMER_PROF: (signal.SIGPROF, SECONDS),
              signal.ITIMER_REAL: (signal.SIGALRM, 20 * SECONDS)}
    for clock, (number, seconds) in clocks.items():
        signal.signal(number, late)
        signal.setitimer(clock, seconds, 5)  # again, should a callback swallow it
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call()
    except Exception as error:
        return Raised(tuple(kind.__name__ for kind in type(error).__mro__), str(error)[:400])
    finally:
        for clock in clocks:
            signal.setitimer(clock, 0)


def run(program: Program, lib: Any = minijax, jit: bool = False, text: str | None = None,
        **names: Any) -> Any:
    """The leaves of the program's result in one library, and the lines that it printed."""
    def load() -> Callable:
        f = program.load(lib, text, **names)
        return lib.jit(f) if jit else f
    return run_function(program, lib, load)


def run_function(program: Program, lib: Any, load: Callable[[], Callable]) -> Any:
    """The leaves of what a function gives of the program's arguments, and the lines it printed."""
    def call() -> list:
        with program.flags.on(lib), redirect_stdout(StringIO()) as printed:
            f = load()
            x, n = lib.device_put(program.arguments())  # for which JAX compiles nothing
            leaves = lib.tree.leaves(f(x, n))
            lib.effects_barrier()
            leaves = [np.asarray(x) if x.is_deleted() else x for x in leaves]  # which raises
        # Their order is open, and a transformation may run a print several times.
        lines = "\n".join(sorted(set(printed.getvalue().splitlines())))
        return leaves + [np.frombuffer(lines.encode(), np.uint8)] * bool(lines)
    return outcome(call)


def uncompiled(program: Program, **options: Any) -> Any:
    with minijax.disable_jit():
        return run(program, **options)


def on_a_gpu(program: Program, platform: str = "emulator") -> Any:
    """On an emulated one, where in every other program nearly all loops are launches, and a thread
    takes some iterations.
    """
    usual = launches.WIDE, coalescing.MIN_MEMORY_BOUND
    launches.WIDE, coalescing.MIN_MEMORY_BOUND = (64, 64) if len(program.lines) % 2 else usual
    try:
        with minijax.default_device(minijax.devices(platform)[0]):
            return run(program, jit=True)
    finally:
        launches.WIDE, coalescing.MIN_MEMORY_BOUND = usual


def as_ptx(program: Program) -> Any:
    """By the PTX of its launches."""
    from tests.compiler.targets.ptx_machine import PtxDevice
    PtxDevice.register()
    return on_a_gpu(program, "ptx")


def on_ranks(program: Program) -> Any:
    """On four pretended ranks, its arguments in layouts made by chance; of some compiled."""
    chance = random.Random(repr(program.inputs))

    def layout(x: Any) -> tuple:
        names, cut = chance.sample("ij", 2), []
        for size in x.shape:
            own = names[:chance.choice([0, 1, 1, 2])]
            cut.append(tuple(own) if size and size % 2 ** len(own) == 0 else ())
            names = names[len(cut[-1]):]
        return tuple(cut)

    def call() -> list:
        with program.flags.on(minijax), redirect_stdout(StringIO()) as printed:
            args = [[minijax.numpy.asarray(y) for y in some] for some in program.arguments()]
            closed = minijax.make_jaxpr(program.load(minijax))(*args)
            flat = minijax.tree.leaves(args)
            once = chance.random() < .1
            with nullcontext() if once else minijax.disable_jit():
                _, leaves = ranks.run(closed, ranks.mesh_of(2, 2), list(map(layout, flat)), flat,
                                      compiled_once=once)
            leaves = [core.array_from_buffer(x, aval)
                      for x, aval in zip(leaves, closed.out_avals, strict=True)]
        lines = "\n".join(sorted(set(printed.getvalue().splitlines())))
        return leaves + [np.frombuffer(lines.encode(), np.uint8)] * bool(lines)
    return outcome(call)


LONG_FOR_NUMBA = 1000  # statements: longer programs take Numba minutes


def by_numba(program: Program) -> Any:
    """Compiled by Numba, from the program that `as_text("numba")` shows."""
    with config.compiler("numba"):
        return run(program, jit=True)


def in_vectors(program: Program) -> Iterator[Any]:
    """What the program gives by loops in vectors, and by the same loops of scalars."""
    for loops in (nullcontext, scalar_loops):
        with loops():
            yield run(program, jit=True)


def statements(program: Program) -> list[Statement]:
    """The statements of the program's kernels."""
    kernels: list[Kernel] = []
    usual = lowered.lower_to_kernel

    def noted(*args: Any, **options: Any) -> Kernel:
        kernels.append(usual(*args, **options))
        return kernels[-1]
    with mock.patch.object(lowered, "lower_to_kernel", noted):
        run(program, jit=True)
    return [each for kernel in kernels for each in walk(kernel.body)]


def has_free_order(each: Statement) -> bool:
    """Whether the order of additions is open: of a sum, of a library's product."""
    return isinstance(each, Call) or isinstance(each, For) and each.vectorize == "reduce" and any(
        x.value.dtype.kind == "f" for x in each.body if isinstance(x, Assign))


WAYS: dict[str, Callable[[Program], Any]] = {
    "disable_jit": uncompiled,
    "jit": lambda program: run(program, jit=True),
    "eager": run,
    "gpu": on_a_gpu,
    "ptx": as_ptx,
    "numba": by_numba,
    "ranks": on_ranks,
}


def against(kind: str) -> tuple[Callable, list[str]]:
    """How the results are made that count, and which ways of running are compared with them."""
    if kind == "jax":
        import jax

        return lambda program: run(program, jax, jit=True), ["eager", "jit"]
    if kind in ("gpu", "ptx", "numba"):
        return WAYS["jit"], [kind]
    return uncompiled, ["ranks"] if kind == "ranks" else ["jit", "eager"]


# ── Comparing ────────────────────────────────────────────────────────────────────────────────

def check(program: Program, kind: str, ways: list[str] | None = None) -> Difference | None:
    """The first difference between a program's results."""
    if kind == "sanitiser":
        return sanitise(program)
    if kind == "scalars":
        vectors, scalars = in_vectors(program)
        return compare(kind, vectors, scalars, lambda: []) or same_bits(kind, vectors, scalars)
    if kind == "numba" and len(kernels := statements(program)) > LONG_FOR_NUMBA:
        return None
    reference, usual = against(kind)
    wanted = reference(program)
    if kind == "jax" and isinstance(wanted, Raised) and (
            wanted.kinds[0] in NO_ORACLE or wanted.text.startswith(ITS_OWN_FAULT)):
        return None
    if kind == "ranks" and isinstance(wanted, Raised):
        return None  # whether staging is refused, too, is for the comparison with jit
    for way in ways or usual:
        if ways is None and way == "eager" and kind == "eager" and not worth_eager(program):
            continue
        found = WAYS[way](program)
        if way in ("gpu", "ptx", "numba") and isinstance(found, Raised) and (
                found.kinds[0] == "TimeoutError"):
            return None  # the emulator takes a while, and so does Numba
        if way == "numba" and isinstance(found, Raised) and found.kinds[0] == "NotInNumba":
            return None
        staged = wanted if kind == "jax" else found  # where of two only one is staged
        if (kind, way) != ("jax", "jit") and isinstance(staged, Raised) and (
                staged.text.startswith(STAGED)):
            continue
        if kind == "eager" and isinstance(wanted, Raised) and not isinstance(found, Raised) and (
                UNREAD.match(wanted.text)):
            continue
        strict = kind == "jax" or not PROMOTING.search(program.function())
        difference = compare(way, found, wanted, lambda: noisy(program), strict)
        if difference is None and way == "numba" and not any(map(has_free_order, kernels)):
            difference = same_bits(way, found, wanted)
        if difference is not None and kind == "jax":
            for other in others(program, way, difference):
                again = compare(way, found, other, lambda: noisy(program), strict)
                difference = difference and again
        if difference is not None:
            return difference
    return None


def others(program: Program, way: str, difference: Difference) -> Iterator[Any]:
    """What JAX makes of a program in other ways, which will do, too.

    Types may be others without jit, or without stages; and eagerly one may do what jit refuses.
    """
    import jax

    without_jit = [nullcontext] if way == "eager" or difference.kind == "type" else []
    without_stages = [jax.disable_jit] if difference.kind == "type" else []
    for without in (*without_jit, *without_stages):
        with without():
            result = run(program, jax)
        if not isinstance(result, Raised) or difference.kind == "raises":
            yield result


def row_of(program: Program, difference: Difference) -> str | None:
    """The behaviour that is known to differ from JAX, if this is an instance of one."""
    for row in ROWS:
        written, said = row.get("generated", ("(?!)", ""))
        if re.search(written, program.function()) and re.search(said, difference.text):
            return row["behaviour"]
    return None


def sanitise(program: Program) -> Difference | None:
    """What the sanitiser finds in the program's kernel."""
    def call() -> int | None:
        with program.flags.on(minijax):
            arguments = [[minijax.numpy.asarray(y) for y in xs] for xs in program.arguments()]
            return sanitiser.check(program.load(minijax), *arguments, loads=100_000)

    found = outcome(call)
    if not isinstance(found, Raised) or found.text.startswith(STAGED):
        return None
    if found.kinds[0] == "Found":
        return Difference("sanitiser", "value", found.text)
    return compare("sanitiser", found, WAYS["jit"](program), lambda: [])


def worth_eager(program: Program) -> bool:
    """Whether something in it is compiled; and only some, for each such thing takes its time."""
    return sum(x.salt for x in program.inputs) % 4 == 0 and (
        bool(program.layers) or any(line.body is not None for line in program.lines))


def compare(way: str, found: Any, wanted: Any, rerun: Callable[[], list],
            weak_types: bool = True) -> Difference | None:
    if isinstance(found, Raised) or isinstance(wanted, Raised):
        if isinstance(found, Raised) and isinstance(wanted, Raised) and (
                wanted.kinds[0] in found.kinds or found.kinds[0] in wanted.kinds):
            return None
        return Difference(way, "raises", f"{shown(found)}\nwanted {shown(wanted)}")
    types = [[type_of(x, weak_types) for x in leaves] for leaves in (found, wanted)]
    if types[0] != types[1]:
        return Difference(way, "type", f"{types[0]}\nwanted {types[1]}")
    runs = None
    for k, (x, y) in enumerate(zip(map(np.asarray, found), map(np.asarray, wanted), strict=True)):
        bad = differs(x, y)
        if bad.any():
            runs = rerun() if runs is None else runs
            bad &= firm(y, [np.asarray(r[k]) for r in runs if len(r) == len(wanted)], x)
        if bad.any():
            return Difference(way, "value", f"output {k} {type_of(found[k])}: {x[bad].ravel()[:6]} "
                              f"wanted {y[bad].ravel()[:6]}, {bad.sum()} of {bad.size}")
    return None


def same_bits(way: str, found: Any, wanted: Any) -> Difference | None:
    """The first output whose elements are not the same, to the last bit."""
    if isinstance(found, Raised):
        return None
    for k, (x, y) in enumerate(zip(map(np.asarray, found), map(np.asarray, wanted), strict=True)):
        bad = ~((x == y) & (signs(x) == signs(y)) | (x != x) & (y != y))
        if bad.any():
            return Difference(way, "value", f"bits of output {k} {type_of(found[k])}: "
                              f"{x[bad].ravel()[:6]} wanted {y[bad].ravel()[:6]}, "
                              f"{bad.sum()} of {bad.size}")
    return None


def signs(x: np.ndarray) -> np.ndarray:
    """The signs of elements, of zeros too; of complex numbers both."""
    if x.dtype.kind == "c":
        return np.signbit(x.real) + 2 * np.signbit(x.imag)
    return np.signbit(x) if x.dtype.kind == "f" or x.dtype == ml_dtypes.bfloat16 else x >= 0


def shown(result: Any) -> str:
    return f"{result.kinds[0]}: {result.text}" if isinstance(result, Raised) else "results"


def type_of(x: Any, weak_types: bool = True) -> str:
    weak = weak_types and getattr(x, "weak_type", False) and str(x.dtype) != "bool"
    return f"{x.dtype}{list(x.shape)}{' weak' * bool(weak)}"


def widened(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 or x.dtype == np.float16 else x


def differs(x: np.ndarray, y: np.ndarray, spread: Any = 0) -> np.ndarray:
    """Which elements are not the same, but for some roundings."""
    if x.dtype.kind in "biu" and x.dtype != ml_dtypes.bfloat16:
        return x != y
    unit = NOISE[x.dtype.name]
    x, y = widened(x), widened(y)
    with np.errstate(all="ignore"):
        near = np.isfinite(y) & (np.abs(x - y) <= 64 * unit * (np.abs(y) + 1) + spread)
    return ~(near | (x == y) | (np.isnan(x) & np.isnan(y)))


def firm(y: np.ndarray, runs: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Which elements small changes on the way cannot have made so different."""
    same = [r for r in runs if r.shape == y.shape]
    if not same:
        return np.ones(y.shape, bool)
    if y.dtype.kind in "biu" and y.dtype != ml_dtypes.bfloat16:
        return np.full(y.shape, all((r == y).all() for r in same))  # what counts moves elsewhere
    stack = np.stack([widened(r) for r in same])
    with np.errstate(all="ignore"):
        spread = np.max(np.abs(stack - widened(y)), axis=0)
    firm = np.all(np.isfinite(stack) == np.isfinite(widened(y)), axis=0)
    # of terms beyond the largest number, their order says whether the sum is infinite or nan
    firm &= np.isfinite(widened(x)) | np.isfinite(widened(y))
    return firm & differs(x, y, 30 * np.nan_to_num(spread, posinf=0))


def noisy(program: Program) -> list:
    """The results of runs where each line's numbers are a little off: what is ill-conditioned?

    And of runs where those of each operation are, of derivatives too, which stand on no line.
    """
    rng = np.random.default_rng(0)

    def off(x: Any) -> Any:
        unit = NOISE.get(str(getattr(x, "dtype", "")))
        if unit is None:
            return x
        signs = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], x.shape)
        return x * np.asarray(1 + signs * unit, x.dtype)

    def noise(tree: Any) -> Any:
        return minijax.tree.map(off, tree)

    text = program._replace(lines=tuple(map(with_noise, program.lines))).function()
    text = re.sub(r"^( +\[[xn\d, ]+\]) = ([xn])$", r"\1 = noise(\2)", text, flags=re.M)
    runs = [uncompiled(program, text=text, noise=noise) for _ in range(5)]
    with operations_that_are(off):
        runs += [uncompiled(program) for _ in range(3)]
    if NARROW in text:  # where numbers grow too large for it, the order of sums tells inf from nan
        runs.append(uncompiled(program, text=program.function().replace(NARROW, "'float32'")))
    return [r for r in runs if not isinstance(r, Raised)]


@contextmanager
def operations_that_are(off: Callable[[Any], Any]) -> Iterator[None]:
    """Meanwhile each result of an operation that computes new numbers is a little off."""
    def evaluated(primitive: core.Primitive, args: Sequence[Any], params: core.Params) -> list:
        with mock.patch.object(core.Primitive, "eager_dispatch", usual):
            outs = primitive.evaluate(args, params)
        numbers = [np.asarray(x).ravel() for x in args if not core.has_key_dtype(x.aval)]
        return [x if core.has_key_dtype(x.aval) or any(
            np.isin(np.asarray(x), y).all() for y in numbers) else
            core.ArrayImpl(np.asarray(off(np.asarray(x)), x.dtype), x.aval) for x in outs]

    class Off:
        """The usual one in everything else."""

        def __getattr__(self, name: str) -> Any:
            return evaluated if name == "evaluated" else getattr(usual, name)

    usual = core.Primitive.eager_dispatch
    # a call that is prepared would repeat its NumPy calls, and bind nothing
    with mock.patch.object(core.Primitive, "eager_dispatch", Off()), config.prepared_calls(False):
        yield


def with_noise(line: Line) -> Line:
    if line.body is not None:
        return line._replace(body=tuple(map(with_noise, line.body)))
    return line if line.target == "return" else line._replace(text=f"noise({line.text})")


# ── Memory and compiler ──────────────────────────────────────────────────────────────────────

@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Kernels find a pattern in their outputs and workspaces, never what happens to be right."""
    written = executable.callable_of

    def poisoned(code: executable.Code, *rest: Any) -> Callable:
        takes, gives, *_ = rest

        def run(arrays: list[np.ndarray]) -> int:
            work = arrays[-1:] if code.workspace else []
            for x in (*arrays[takes:takes + len(gives)], *work):
                x.reshape(-1).view(np.uint8).fill(POISON)
            return code.run(arrays)

        return written(code._replace(run=run), *rest)

    executable.callable_of = poisoned
    try:
        yield
    finally:
        executable.callable_of = written


@contextmanager
def quick_compiler(on: bool = True) -> Iterator[None]:
    """LLVM without its optimiser: a tenth of the time, and the mistakes of loops are the same."""
    before = config.disable_most_optimizations.value
    config.update("jax_disable_most_optimizations", on)
    try:
        yield
    finally:
        config.update("jax_disable_most_optimizations", before)


# ── Making programs smaller ──────────────────────────────────────────────────────────────────

def minimise(program: Program, kind: str, difference: Difference, tries: int = 250) -> Program:
    """A smaller program with a difference of the same kind."""
    left = itertools.count(tries, -1)
    ways = [difference.way]

    def fails(candidate: Program) -> bool:
        if next(left) <= 0:
            return False
        found = check(candidate, kind, ways)
        return found is not None and found.kind == difference.kind and (
            found.kind != "raises" or classes(found) == classes(difference))

    smaller = True
    while smaller:
        smaller = False
        for candidate in reductions(program):
            if next(left) <= 0:
                return program
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def classes(difference: Difference) -> list[str]:
    """Of the errors that came and were wanted."""
    return re.findall(r"(?:^|\nwanted )(\w+)", difference.text)


def reductions(program: Program) -> Iterator[Program]:
    """Programs with something less."""
    for name in program.lines[-1].text[1:-1].split(", "):
        one = read(program._replace(lines=(*program.lines[:-1], Line("return", f"[{name}]"))))
        if one != program:
            yield one
    for k in range(len(program.layers)):
        yield program._replace(layers=program.layers[:k] + program.layers[k + 1:])
    for lines in fewer(program.lines):
        yield program._replace(lines=lines)
    for k in range(len(program.inputs)):
        yield program._replace(inputs=program.inputs[:k] + program.inputs[k + 1:])
    for size in sorted({n for x in program.inputs for n in x.shape if n > 1}, reverse=True):
        for less in sorted({1, 2, size // 2, size - 1} - {0, size}):
            yield resized(program, size, less)
    for lines in plainer(program.lines):
        yield program._replace(lines=lines)


def read(program: Program) -> Program:
    """Without the lines of which nothing that is returned depends."""
    lines: list[Line] = []
    names: set[str] = set()
    for line in reversed(program.lines):
        if line.target == "return" or names & set(re.findall(r"\w+", line.target)):
            lines.insert(0, line)
            names |= set(re.findall(r"\w+", "\n".join(line.print())))
    return program._replace(lines=tuple(lines))


def fewer(lines: tuple[Line, ...]) -> Iterator[tuple[Line, ...]]:
    """Without one line, or without one of what is returned; the later lines first."""
    for k in reversed(range(len(lines))):
        before, line, after = lines[:k], lines[k], lines[k + 1:]
        if line.target != "return":
            yield before + after
        elif line.text.startswith("[") and "," in line.text:
            names = line.text[1:-1].split(", ")
            for name in names:
                rest = ", ".join(n for n in names if n != name)
                yield (*before, line._replace(text=f"[{rest}]"), *after)
        if line.body is not None:
            for body in fewer(line.body):
                yield (*before, line._replace(body=body), *after)


def plainer(lines: tuple[Line, ...]) -> Iterator[tuple[Line, ...]]:
    """With something that an expression mentions in its place."""
    for k, line in enumerate(lines):
        before, after = lines[:k], lines[k + 1:]
        if line.body is not None:
            for body in plainer(line.body):
                yield (*before, line._replace(body=body), *after)
        elif line.target != "return":
            for name in dict.fromkeys(re.findall(r"\b[axnv]\d+\b", line.text)):
                yield before + tuple(renamed(later, line.target, name) for later in after)


def renamed(line: Line, old: str, new: str) -> Line:
    body = None if line.body is None else tuple(renamed(x, old, new) for x in line.body)
    return Line(line.target, re.sub(rf"\b{re.escape(old)}\b", new, line.text), body)


def resized(program: Program, size: int, less: int) -> Program:
    """With another number in place of a size, wherever it stands."""
    def swap(line: Line) -> Line:
        body = None if line.body is None else tuple(map(swap, line.body))
        return Line(line.target, re.sub(rf"\b{size}\b", str(less), line.text), body)

    inputs = tuple(x._replace(shape=tuple(less if n == size else n for n in x.shape))
                   for x in program.inputs)
    return program._replace(inputs=inputs, lines=tuple(map(swap, program.lines)))
