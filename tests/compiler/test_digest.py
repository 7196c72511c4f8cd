"""A program's name on disk: the same for the same program, another for any other."""

import collections
import enum
import functools
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.util import caches
from minijax import core
from minijax import lax
from minijax.compiler import cache, cpu, digest, llvm, lowered
from minijax.compiler.digest import Unnameable, canonical, digest_of
from minijax.primitives import analytic
from tests.generated.programs import generate

COUNT = int(os.environ.get("GENERATED", "8")) * 5
X = np.ones(3, np.float32)
package = digest.package  # before tests do without


@pytest.fixture(autouse=True)
def named(monkeypatch):
    """Programs are known by name, as they are everywhere but in tests."""
    monkeypatch.setattr(digest, "package", lambda: "this package")


@pytest.fixture
def built(monkeypatch):
    """The names of the programs whose loops were built."""
    names = []

    def lower(closed, name, *args, honest=lowered.lower_to_kernel):
        names.append(name)
        return honest(closed, name, *args)

    monkeypatch.setattr(lowered, "lower_to_kernel", lower)
    return names


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def program(f, *args):
    return jax.make_jaxpr(f)(*args)


# -- the law ---------------------------------------------------------------------------------------


def test_a_program_has_the_same_loops_where_its_caller_runs_in_python():
    def f(x):
        total, least = lax.reduce((x, x * 2), (0.0, 9.0), lambda a, b: (
            a[0] + b[0], jnp.minimum(a[1], b[1])), (0,))
        return least
    texts = []
    for in_python in (False, True):
        closed = program(lambda x: f(x), X)
        with jax.disable_jit(in_python):
            texts.append(llvm.assembly(lowered.Lowered(closed, "f").kernel))
    assert texts[0] == texts[1]


def test_a_program_that_has_other_loops_than_its_entry_is_compiled_by_itself(place):
    """The entry says which arrays a call passes; those of other loops would be read as addresses.
    """
    x, out = np.arange(300, dtype=np.float32)[::-1].copy(), np.zeros(300, np.float32)
    sorts, doubles = (program(f, x) for f in (lambda x: jnp.sort(x * 2), lambda x: x * 2))
    name = cache.cache_key(digest_of(doubles))
    plain = cache.code_of(doubles, lambda: lowered.lower_to_kernel(doubles, "f"))
    assert cache.read(name, place) and not plain.workspace
    for path in set(place.glob("*.kernel")) - {place / f"{name}.kernel"}:
        path.unlink()  # the code, not the entry
    del plain
    gc.collect()
    code = cache.code_of(doubles, lambda: lowered.lower_to_kernel(sorts, "g"))
    assert code.workspace
    work = np.zeros(code.workspace, np.uint8)
    assert code.run([x, out, work]) == 0 and out.tolist() == sorted(2 * x)


def test_programs_of_one_name_have_one_text_and_a_program_written_again_has_its_name():
    texts = collections.defaultdict(set)
    for seed in range(COUNT):
        made = generate(seed)
        for in_python in (False, True):
            try:
                closed = program(made.load(jax), *made.arguments())
            except (TypeError, ValueError, NotImplementedError):  # which is what some do
                continue
            name = digest_of(closed)
            # a policy is a function of Python's: what it says tomorrow is not known
            calls_python = ("policy=", "printed(", "callback(")
            assert name or any(word in made.function() for word in calls_python), made.function()
            if name is not None:
                with jax.disable_jit(in_python):
                    texts[name].add(llvm.assembly(lowered.Lowered(closed, "f").kernel))
    assert len(texts) > COUNT / 2
    assert all(len(each) == 1 for each in texts.values())


def twice_called(rule):
    @jax.custom_jvp
    def f(x):
        return rule(x)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f


CLOSED_OVER = jnp.arange(3.0)
FAMILIES = {
    "literals": [lambda x, c=c: x + c for c in (0.0, -0.0, 1.0, 2.0, np.nan, -np.nan, np.inf)],
    "dtypes": [lambda x, d=d: x.astype(d) for d in ("int8", "int32", "float16", "bfloat16")],
    "weak types": [lambda x: (x, jnp.float32(1)), lambda x: (x, 1.0)],
    "parameters": [lambda x, a=a: jax.lax.broadcast_in_dim(x, (3, 3), (a,)) for a in (0, 1)],
    "operations": [jnp.sin, jnp.cos, lambda x: x],
    "the order of operands": [lambda x, y=CLOSED_OVER: x - y, lambda x, y=CLOSED_OVER: y - x],
    "the order of results": [lambda x: (x, x + 1), lambda x: (x + 1, x)],
    "constants": [lambda x, c=c, d=d: x + np.array(c, d)
                  for c in ([0, 1, 2], [0, 1, 3]) for d in ("float32", "int32")],
    "nans that differ": [lambda x, n=n: x + np.array([n] * 3, np.uint32).view(np.float32)
                         for n in (0x7fc00000, 0x7fc00001)],
    "programs inside": [lambda x, g=g: jax.lax.fori_loop(0, 9, lambda i, y: g(y), x)
                        for g in (jnp.sin, jnp.cos)],
    "lengths": [lambda x, n=n: jax.lax.scan(lambda c, _: (c + 1, c), x, length=n)
                for n in (3, 4)],
    "functions of one name with rules of their own": list(map(twice_called, (jnp.sin, jnp.cos))),
    "keys": [lambda x, s=s: jax.random.uniform(jax.random.key(s), (3,)) + x for s in (0, 1)],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_that_differ_have_other_names(family):
    names = [digest_of(program(f, X)) for f in FAMILIES[family]]
    assert None not in names and len(set(names)) == len(names)


def test_arguments_and_flags_are_part_of_the_name():
    f = lambda x: x * 2
    arguments = [X, X.astype(int), np.ones(4, np.float32), np.ones((3, 1), np.float32), 1.0,
                 np.float32(1)]
    names = {digest_of(program(f, x)) for x in arguments}
    with jax.enable_x64(True):
        names.add(digest_of(program(f, X)))
    assert len(names) == len(arguments) + 1


def test_what_is_called_or_differentiated_elsewhere_changes_no_name():
    value = digest_of(program(jax.jit(lambda x: twice_called(jnp.sin)(x)), X))

    def other_name(x):
        @jax.custom_jvp
        def g(y):
            return jnp.sin(y)
        g.defjvp(lambda primals, tangents: (g(*primals), 2 * tangents[0]))
        return g(x)
    assert digest_of(program(jax.jit(other_name), X)) == value


def test_values_that_compare_equal_are_told_apart():
    class Color(enum.Enum):
        RED = 1

    values = [1, True, 1.0, np.float32(1), np.float64(1), np.int32(1), np.array(1), np.array([1]),
              "1", (1,), [1], ((1,),), 0.0, -0.0, np.nan, -np.nan, None, Color.RED, np.dtype("f4"),
              "float32", np.dtype("bool"), 1j, core.ShapedArray((), np.float32),
              core.ShapedArray((), np.float32, True), jax.random.key(0).dtype]
    assert len({repr(canonical(value)) for value in values}) == len(values)


@pytest.mark.parametrize("value", [
    len, lambda: 0, functools.partial(max, 1), object(), type("Odd", (int,), {})(1),
    np.array([None])], ids=lambda value: type(value).__name__)
def test_what_is_known_by_its_address_alone_has_no_name(value):
    with pytest.raises(Unnameable):
        canonical(value)


def test_an_operation_of_the_users_has_no_name(monkeypatch):
    mine = core.Primitive(
        "sin", impl=analytic.sin_p.impl, abstract_eval=analytic.sin_p.abstract_eval,
        element=analytic.sin_p.element)
    assert digest_of(program(mine.bind, X)) is None
    assert digest_of(program(analytic.sin_p.bind, X)) is not None
    monkeypatch.setattr(analytic.sin_p, "element", lambda b, at, x: b.neg(x(at)))
    assert digest_of(program(lambda x: analytic.sin_p.bind(x), X)) is None


def test_a_package_that_changed_since_it_was_loaded_has_no_name(monkeypatch):
    assert package.__wrapped__() == package.__wrapped__()
    monkeypatch.setattr(caches, "loaded_at", 0.0)
    with pytest.raises(Unnameable):
        package.__wrapped__()


# -- what is found by it ---------------------------------------------------------------------------


W = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32))
PROGRAMS = {
    "elements": lambda x: jnp.tanh(x) * 2,
    "a constant of the user's": lambda x: W @ x + W[0],
    "constants in a loop": lambda x: jax.lax.scan(lambda c, w: (W @ c + w, c), x, W),
    "a workspace": lambda x: jnp.cumsum(jnp.sort(jnp.outer(x, x), 0), 1),
    "complex constants": lambda x: (x + 1j * W).imag,
    "keys": lambda x: jax.random.normal(jax.random.key(3), (3,)) + x,
    "a library": lambda x: jnp.linalg.eigh(jnp.outer(x, x))[0],
    "many threads": lambda x: jnp.sin(jnp.ones((600, 1000)) * x[0]).sum(1),
    "nothing": lambda x: x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_found_is_not_built_and_gives_the_same(name, built):
    f = PROGRAMS[name]
    first = jax.jit(lambda x: f(x))(X)
    assert len(built) == 1
    jax.clear_caches()
    again = jax.jit(lambda x: f(x))
    jax.tree.map(np.testing.assert_array_equal, first, again(X))
    assert len(built) == 1
    compiled = again.lower(X).compile()
    assert len(built) == 1
    assert "@kernel" in compiled.as_text("llvm") and compiled.memory_analysis() and len(built) == 2
    jax.tree.map(np.testing.assert_array_equal, first, compiled(X))


def test_equal_programs_share_their_code():
    for f in (lambda x: x * 3 + 1, lambda x: x * 3 + 1):
        jax.jit(f)(X)
    linked = len(cpu._linked)
    jax.jit(lambda x: x * 3 + 1)(X)
    assert len(cpu._linked) == linked


def test_what_calls_python_is_built_each_time_and_calls_what_is_meant(built):
    seen = []
    for k in range(2):
        jax.jit(lambda x, k=k: jax.debug.callback(lambda y: seen.append((k, float(y))), x))(2.0)
    assert seen == [(0, 2.0), (1, 2.0)] and len(built) == 2


@pytest.mark.parametrize("damaged", ["its name's", "its code's", "both"])
def test_a_program_whose_entries_are_damaged_is_built_again(place, built, damaged):
    expected = jax.jit(PROGRAMS["a workspace"])(X)
    for entry in place.iterdir():
        if damaged == "both" or (b"ELF" in entry.read_bytes()) == (damaged == "its code's"):
            entry.write_bytes(entry.read_bytes()[:-1])
    jax.clear_caches()
    again = jax.jit(lambda x: PROGRAMS["a workspace"](x))(X)
    np.testing.assert_array_equal(expected, again)
    assert len(built) == 2


OTHER_PROCESS = """if True:
    import sys, numpy as np, minijax as jax
    from minijax.compiler import digest, lowered
    built, honest = [], lowered.lower_to_kernel
    lowered.lower_to_kernel = lambda *args: built.append(1) or honest(*args)
    f = jax.jit(lambda x: {"b": jax.numpy.tanh(x) @ x, "a": jax.random.uniform(jax.random.key(0))})
    out = f(np.arange(5, dtype=np.float32))
    print(len(built), digest.digest_of(f.trace(np.arange(5, dtype=np.float32)).program),
          {k: float(v) for k, v in out.items()})
"""


def test_another_process_finds_a_program_by_the_same_name():
    found = [subprocess.run([sys.executable, "-c", OTHER_PROCESS], check=True, text=True,
                            capture_output=True, env={**os.environ, "PYTHONHASHSEED": str(k)}
                            ).stdout.split(" ", 1) for k in range(2)]
    assert [int(count) > 0 for count, _ in found] == [True, False]
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("moment", ["cpu.compile", "os.replace"])
def test_one_that_is_killed_and_processes_at_once_leave_what_others_can_use(place, moment):
    def start(before=""):
        return subprocess.Popen([sys.executable, "-c", before + OTHER_PROCESS], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    killed = start("import os\nfrom minijax.compiler import cpu\n"
                   f"{moment} = lambda *args, **options: os.kill(os.getpid(), 9)\n")
    killed.communicate()
    assert killed.returncode == -9
    at_once = [start(), start()]
    found = [each.communicate() for each in at_once]
    found.append(start().communicate())
    assert len({out.split(" ", 1)[1] for out, _ in found}) == 1, found
    assert found[-1][0].startswith("0 ")
