"""What every test stands on: JAX on the CPU as the oracle, and guards around compiled code."""

import contextlib
import ctypes
import gc
import os
import signal
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests import xla_flags
from tests.wording import wording

# Read once, when JAX and minijax are imported; both know these names.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_THREEFRY_PARTITIONABLE"] = "0"

os.environ["XLA_FLAGS"] = " ".join((*xla_flags.quick(), os.environ.get("XLA_FLAGS", "")))

# A shell's background work ignores interrupts, which some tests send to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MANY_MAPPINGS = 40_000  # of memory, of the 65,530 that Linux grants a process
MUCH_MEMORY = 4 << 30  # bytes; most of them are JAX's programs, which no later file runs again


# All that the tests and JAX keep alive is searched at each full collection: fewer of them.
gc.set_threshold(20_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector from searching all these tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# What takes longest begins first, so that two workers end together.
LONGEST = [f"tests/{name}.py" for name in (
    # The first ones search the heap for references, which grows with each file.
    "sharp_bits/test_leaks", "sharp_bits/test_no_false_alarms", "sharp_bits/test_traps",
    "notebook/test_live", "sharp_bits/test_nans", "notebook/test_gallery",
    "test_laws", "compiler/targets/test_every_primitive", "test_public_functions",
    "generated/test_generated", "compiler/targets/test_ptx_machine", "libraries/test_libraries",
    "tutorials/test_tutorials", "compiler/test_llvm", "random/test_families",
    "notebook/test_checks", "test_corners", "test_rims", "test_book")]

TURNS = 6  # at one commit in so many, each test of tests runs: `make test` says which, in TURN


def name_in_turn(item):
    """The name by which a test takes turns, if it does: its own, or that of its group."""
    group = item.get_closest_marker("in_turn")
    return item.nodeid if item.get_closest_marker("of_tests") else group and group.args[0]


def pytest_collection_modifyitems(config, items):
    turn = os.environ.get("TURN")
    waiting = {item for item in items if turn and (name := name_in_turn(item)) and
               (zlib.crc32(name.encode()) + int(turn)) % TURNS}
    config.hook.pytest_deselected(items=[*waiting])
    order = {name: place for place, name in enumerate(LONGEST)}
    items[:] = sorted((item for item in items if item not in waiting),
                      key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


@pytest.fixture
def strikes():
    """How often to try what may go wrong now and then: the usual number, or what STRIKES says."""
    return lambda usual: int(os.environ.get("STRIKES", usual))


def unload():
    """Let go of all compiled code, and of the many objects that JAX keeps beside it."""
    import jax

    import minijax
    minijax.clear_caches()
    jax.clear_caches()
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError, AttributeError):  # the memory goes back, where glibc is
        ctypes.CDLL(None).malloc_trim(0)


def is_full():
    """Whether this process maps, or holds, more memory than is good for the files to come."""
    try:
        mappings = Path("/proc/self/maps").read_bytes().count(b"\n")
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return False
    return mappings > MANY_MAPPINGS or pages * os.sysconf("SC_PAGESIZE") > MUCH_MEMORY


@pytest.fixture(autouse=True, scope="module")
def room_for_the_next_file():
    """Unload compiled code after a file that left much of it: each kernel maps its own memory.

    What else a file has left is set aside: no later collection of garbage goes through it.
    """
    yield
    gc.freeze()
    if is_full():
        unload()


@pytest.fixture(autouse=True)
def a_context_left_as_it_was():
    """After every test, whatever it raised, no trace, line or step of a run is current any more."""
    yield
    from minijax import core
    from minijax.sharp_bits import findings
    assert core.current_trace.get() is core.base_trace
    assert core.current_source.get() is None and not findings.current_steps.get()


@pytest.fixture(autouse=True, scope="session")
def memory_that_tells():
    """Kernels are built, well formed, and find a pattern where nobody has written, never what is
    right.

    With SANITISE=1 in the environment all small ones run in the sanitiser too.
    """
    from tests import checker, sanitiser
    from tests.generated.planted import programs_without_names
    from tests.generated.running import poisoned_memory

    watching = sanitiser.watching() if os.environ.get("SANITISE") else contextlib.nullcontext()
    with programs_without_names(), poisoned_memory(), checker.watching(), watching:
        yield


# Whose subject is the machine code that users run; elsewhere LLVM takes a tenth of the time.
OF_MACHINE_CODE = ("compiler", "test_compositions.py", "test_precision.py", "test_tracing.py")


@pytest.fixture(autouse=True, scope="module")
def little_effort(request):
    """Kernels are compiled with LLVM's optimiser where that is what a file is about."""
    from tests.generated.running import quick_compiler
    inside = request.path.relative_to(Path(__file__).parent)
    with quick_compiler(not {*inside.parts} & {*OF_MACHINE_CODE}):
        yield


@pytest.fixture(scope="module")
def few_objects():
    """For a file whose tests search all objects that there are."""
    unload()


@pytest.fixture
def as_users_compile():
    """`as_users_compile(f)`: JAX's `jit`, with what XLA does unless it is told to be quick."""
    def jitted(f):
        import jax
        return jax.jit(f, compiler_options={
            "xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True,
            "xla_llvm_disable_expensive_passes": False})
    return jitted


@pytest.fixture
def refused_alike():
    """`check(call)`: what `call(jax)` raises, `call(minijax)` raises in the same words."""
    def check(call):
        import jax

        import minijax
        with pytest.raises(Exception) as theirs:
            call(jax)
        with pytest.raises(type(theirs.value)) as ours:
            call(minijax)
        assert wording(ours.value) == wording(theirs.value)
    return check


MARGIN = 256  # bytes before and after a buffer


def guarded(x: np.ndarray, pattern: int) -> tuple[np.ndarray, np.ndarray]:
    """A copy of an array inside of memory full of a pattern, and that memory."""
    memory = np.full(x.nbytes + 2 * MARGIN + 64, pattern, np.uint8)
    start = MARGIN + -(memory.ctypes.data + MARGIN) % 64
    inner = memory[start:start + x.nbytes].view(x.dtype).reshape(x.shape)
    inner[...] = x
    return inner, memory


def outside_bytes(inner: np.ndarray, memory: np.ndarray) -> np.ndarray:
    start = inner.ctypes.data - memory.ctypes.data
    return np.concatenate([memory[:start], memory[start + inner.nbytes:]])


class Guards:
    """Runs kernels between guards: what they write there is seen, and what they read there too.

    Each runs twice, between bytes of two patterns; the results must not depend on them.
    """

    def __init__(self):
        self.calls = 0

    def around(self, run):
        """`run`, a kernel's call with all of its buffers, between guards."""
        def guarded_run(arrays):
            found = []
            for pattern in (0x5A, 0x01):
                pairs = [guarded(x, pattern) for x in arrays]
                status = run([inner for inner, _ in pairs])
                for inner, memory in pairs:
                    assert (outside_bytes(inner, memory) == pattern).all(), "written outside"
                found.append([inner for inner, _ in pairs])
            for x, one, other in zip(arrays, *found, strict=True):
                assert one.tobytes() == other.tobytes(), "read outside"
                if x.flags.writeable:
                    x[...] = one
            self.calls += 1
            return status

        return guarded_run


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> Guards:
    """Guards around all kernels that are loaded from here on; those from before run as ever."""
    from minijax.compiler import cpu

    found = Guards()
    load = cpu.loaded
    monkeypatch.setattr(cpu, "loaded", lambda *args: found.around(load(*args)))
    return found


def calls_left():
    """How many calls may still stand inside one another."""
    def deeper(k):
        try:
            return deeper(k + 1)
        except RecursionError:
            return k
    return deeper(0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call):
    """Give back the room for calls that JAX loses.

    Each time that it refuses a tree, it keeps one call open for each container around the culprit.
    """
    if call.when == "teardown" and calls_left() < 600:
        sys.setrecursionlimit(sys.getrecursionlimit() + 400)


from tests.oracle import (  # noqa: E402, F401
    agrees_with_64_bits, agrees_with_jax, answers, beside_jax, jax_says, oracle,
)

if os.environ.get("DEVICE") == "ptx":
    from tests.compiler.targets.ptx_machine import PtxDevice
    PtxDevice.register()
