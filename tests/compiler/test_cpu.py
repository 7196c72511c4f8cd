"""Object code: made and loaded by LLVM, called from many threads."""

import _thread
import gc
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import minijax
from minijax.compiler import cache, cpu, llvm


def array(name, k):
    """LLVM text: the address of the elements of the k-th array that a kernel is given."""
    header = object.__basicsize__
    return f"""
  %{name}.items.at = getelementptr i8, ptr %list, i64 {header + 8}
  %{name}.items = load ptr, ptr %{name}.items.at
  %{name}.array.at = getelementptr ptr, ptr %{name}.items, i64 {k}
  %{name}.array = load ptr, ptr %{name}.array.at
  %{name}.data.at = getelementptr i8, ptr %{name}.array, i64 {header}
  %{name} = load ptr, ptr %{name}.data.at"""


# y[i] = x[i] + 1 for 1000 doubles.
ADD_ONE = f"""
define i32 @kernel(ptr %list) {{{array("x", 0)}{array("y", 1)}
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %from = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %from
  %w = fadd double %v, 1.0
  %to = getelementptr double, ptr %y, i64 %i
  store double %w, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 1000
  br i1 %more, label %loop, label %end
end:
  ret i32 0
}}
"""
CALLS_NOBODY = """
declare void @nobody_there()
define i32 @kernel(ptr %list) {
  call void @nobody_there()
  ret i32 0
}
"""
REMAINDER = f"""
define i32 @kernel(ptr %list) {{{array("x", 0)}
  %v = load double, ptr %x
  %w = frem double %v, 3.0
  store double %w, ptr %x
  ret i32 0
}}
"""


def load(code):
    return cpu.loaded(cpu.link(code, (llvm.SYMBOL,), {}), llvm.SYMBOL)


@pytest.fixture(scope="module")
def add_one():
    return cpu.compile(ADD_ONE)


def test_compiled_code_runs(add_one):
    x, y = np.arange(1000.0), np.zeros(1000)
    assert load(add_one)([x, y]) == 0
    np.testing.assert_array_equal(y, x + 1)


def test_an_array_that_is_read_only_or_empty_can_be_passed(add_one):
    x, y = np.arange(1000.0), np.zeros(1000)
    x.flags.writeable = False
    assert load(add_one)([x, y, np.empty(0)]) == 0
    assert y[-1] == 1000


def test_object_code_runs_in_a_process_that_never_imports_numba(add_one, tmp_path):
    path = tmp_path / "code.o"
    path.write_bytes(add_one)
    program = """if True:
        import sys, numpy as np
        from minijax.compiler import cache, cpu, llvm
        x, y = np.arange(1000.0), np.zeros(1000)
        code = cpu.link(open(sys.argv[1], "rb").read(), (llvm.SYMBOL,), {})
        cpu.loaded(code, llvm.SYMBOL)([x, y])
        assert y[-1] == 1000
        assert "numba" not in sys.modules and "scipy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


def test_importing_the_module_loads_no_compiler():
    program = """if True:
        import minijax.compiler.cache, sys
        assert not {"numba", "llvmlite", "scipy"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_call_to_nobody_is_refused():
    code = cpu.compile(CALLS_NOBODY)
    with pytest.raises(RuntimeError, match="kernel"):
        load(code)


def test_what_llvm_calls_of_its_own_accord_is_found():
    x = np.array([7.5])
    load(cpu.compile(REMAINDER))([x])
    assert x[0] == 1.5


@pytest.mark.parametrize("damage", [lambda code: b"", lambda code: b"no object code at all",
                                    lambda code: code[:len(code) // 2]])
def test_what_is_no_object_code_is_refused(add_one, damage):
    with pytest.raises(RuntimeError):
        load(damage(add_one))


def test_malformed_assembly_is_refused():
    with pytest.raises(RuntimeError):
        cpu.compile("define i32 @kernel(ptr %buffers) noinline { ret i64 0 }")


def test_code_is_unloaded_with_its_last_reference(add_one):
    loaded = load(add_one)
    gone = weakref.ref(loaded)
    del loaded
    gc.collect()
    assert gone() is None


def test_nothing_of_llvm_happens_in_the_callers_thread(monkeypatch):
    """Its locks are taken in Python: an interrupt would leave one taken for ever."""
    from llvmlite.binding import ffi

    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")
    seen, take = set(), ffi._LLVMLock.__enter__

    def watched(self):
        seen.add(threading.get_ident())
        return take(self)

    monkeypatch.setattr(ffi._LLVMLock, "__enter__", watched)
    cpu._host.cache_clear()
    f = minijax.jit(lambda x: x * 12345.5)
    f(np.ones(3, np.float32))
    assert seen and threading.get_ident() not in seen
    seen.clear()
    with pytest.raises(RuntimeError) as broken:
        cpu.undisturbed(lambda: cpu.compile("define i32 @kernel() { ret i64 0 }"))
    code, loaded = f.lower(np.ones(3, np.float32)).compile(), len(cpu._linked)
    del f, broken, code
    gc.collect()
    cpu.undisturbed(lambda: None)  # the worker has come so far
    assert len(cpu._linked) < loaded
    assert seen and threading.get_ident() not in seen


def test_the_texts_after_llvms_passes_can_be_read():
    assert "fadd" in cpu.compile(ADD_ONE, "llvm")
    assert "kernel:" in cpu.compile(ADD_ONE, "asm")


def test_without_most_optimizations_code_is_longer_and_a_kernel_has_another_name():
    optimised = cpu.compile(ADD_ONE, "asm")
    with minijax.config.disable_most_optimizations(True):
        assert len(cpu.compile(ADD_ONE, "asm").splitlines()) > len(optimised.splitlines())
        quick, name = minijax.jit(lambda x: x + 2)(np.arange(99.0)), cache.cache_key(ADD_ONE)
    np.testing.assert_array_equal(quick, np.arange(99.0) + 2)
    assert name != cache.cache_key(ADD_ONE)


def test_threads_compile_load_and_call_at_once():
    failures = []

    def work(seed):
        try:
            x, y = np.full(1000, float(seed)), np.zeros(1000)
            for _ in range(3):
                loaded = cpu.undisturbed(
                    lambda: load(cpu.compile(ADD_ONE)))
                for _ in range(50):
                    y[:] = 0
                    assert loaded([x, y]) == 0
                    assert (y == seed + 1).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_native_work_gives_its_result_or_its_error():
    assert cpu.undisturbed(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        cpu.undisturbed(lambda: 1 / 0)


def test_native_work_is_done_even_when_no_thread_can_start(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert cpu.undisturbed(lambda: 3) == 3


def test_an_interrupt_stops_the_waiting_and_not_the_work():
    done = threading.Event()

    def work():
        _thread.interrupt_main()
        time.sleep(0.05)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        cpu.undisturbed(work)
        time.sleep(1)
    assert done.wait(5)
    assert cpu.undisturbed(lambda: 4) == 4


@pytest.mark.parametrize("program", [
    lambda x: x @ x, minijax.numpy.linalg.eigvalsh, minijax.numpy.linalg.cholesky,
    lambda x: (minijax.debug.callback(lambda v: None, x), x)[1], lambda x: x.sum()],
    ids=["product", "eigvalsh", "cholesky", "host call", "sum"])
def test_no_kernel_has_tables_for_unwinding(program):
    """Thousands of kernels come and go; registering such tables in between ends in an abort."""
    x = np.eye(80, dtype=np.float32)
    kernel = minijax.jit(program).lower(x)._lowered.kernel
    code = cpu.undisturbed(lambda: cpu.compile(llvm.assembly(kernel)))
    assert b".eh_frame" not in code


@pytest.mark.skipif(not cpu.host().triple.startswith("x86_64"), reason="relocations of x86-64")
def test_a_kernel_finds_its_constants_wherever_they_are_loaded():
    """No address that the loader fills in is relative: 32 bits do not span a full process."""
    from minijax.compiler import llvm

    x = np.eye(80, dtype=np.float32)
    lowered = minijax.jit(lambda x: minijax.numpy.tanh(x @ x)).lower(x)
    assembly = cpu.compile(llvm.assembly(lowered._lowered.kernel), "asm")
    assert "movabsq" in assembly and "(%rip)" not in assembly


def test_threads_go_on_when_the_functions_of_atexit_ran_early():
    program = ("import atexit, threading, minijax\n"
               "atexit._run_exitfuncs()\n"
               "thread = threading.Thread(target=lambda: minijax.jit(lambda x: x * 3)(1.))\n"
               "thread.start(); thread.join(60)\n"
               "assert not thread.is_alive()")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


LEVELS = [*cpu.LEVELS] if cpu.host().triple.startswith("x86_64") else []


@pytest.mark.parametrize("level", LEVELS)
def test_code_for_a_level_uses_the_vectors_of_that_level(level):
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    try:
        with minijax.config.cpu(level):
            program = minijax.jit(lambda x: minijax.numpy.tanh(x) * 2).lower(x).compile()
            text = program.as_text("asm")
    except minijax.errors.JaxRuntimeError as error:
        pytest.skip(str(error).partition("ValueError: ")[2])
    np.testing.assert_allclose(program(x), np.tanh(x) * 2, rtol=1e-6)
    wide = any(name in text for name in ("ymm", "zmm"))  # registers of 256 and 512 bits
    assert wide == (level in ("x86-64-v3", "x86-64-v4"))


def test_a_level_that_the_processor_does_not_have_is_refused_by_what_is_missing():
    with pytest.raises(ValueError, match="jax_cpu is 'x86-64-v3', but this processor lacks fma"):
        cpu._features("x86-64-v3", [
            f"+{name}" for level in cpu.LEVELS for name in cpu.LEVELS[level].split()
            if name != "fma"])
