"""Kernels on disk: found again, never trusted blindly, never needed."""

import os
import re
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from minijax import config
from minijax.compiler import cache, cpu, llvm
from minijax.compiler.loops import INT64, Buffer, Call, Constant, For, Kernel, Scalar, Store


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def compilations(monkeypatch):
    """Counts how often machine code is made."""
    texts = []

    def compile(text, stage="object", level=None, original=cpu.compile):
        texts.append(text)
        return original(text, stage, level)

    monkeypatch.setattr(cpu, "compile", compile)
    return texts


def counting(size, note=""):
    """A kernel that writes 0, 1, 2, …"""
    y, i = Buffer("y", INT64, (size,), "output"), Scalar("i", INT64)
    zero, stop = (Constant(np.int64(n), INT64) for n in (0, size))
    loop = For(i, zero, stop, (Store(y, (i,), i),), note=note)
    return Kernel(f"kernel {note}", (), (y,), (), (), 0, {}, (loop,))


def result(kernel):
    out = np.zeros(kernel.outputs[0].shape, np.int64)
    assert cache.compile_or_load(kernel).run([out]) == 0
    return out.tolist()


def entries(place):
    return sorted(place.glob("*.kernel"))


def test_a_kernel_is_compiled_once(place, compilations):
    assert result(counting(3)) == result(counting(3)) == [0, 1, 2]
    assert len(compilations) == len(entries(place)) == 1


def test_equal_kernels_share_code_in_memory_even_without_a_disk(monkeypatch, compilations):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")
    first = cache.compile_or_load(counting(3)).run
    assert cache.compile_or_load(counting(3)).run is first
    assert len(compilations) == 1


def test_moving_the_users_lines_compiles_nothing_again(compilations):
    first = cache.compile_or_load(counting(3, note="model.py:3")).run
    assert cache.compile_or_load(counting(3, note="model.py:4")).run is first


def test_another_shape_is_another_kernel(compilations):
    assert (result(counting(2)), result(counting(4))) == ([0, 1], [0, 1, 2, 3])
    assert len(compilations) == 2


PROGRAM = """
import sys
from minijax.compiler import cache
import numpy as np
from minijax.compiler.loops import INT64, Buffer, Constant, For, Kernel, Scalar, Store
y, i = Buffer("y", INT64, (3,), "output"), Scalar("i", INT64)
loop = For(i, Constant(np.int64(0), INT64), Constant(np.int64(3), INT64), (Store(y, (i,), i),))
out = np.zeros(3, np.int64)
cache.compile_or_load(Kernel("k", (), (y,), (), (), 0, {}, (loop,))).run([out])
assert out.tolist() == [0, 1, 2]
print("numba" in sys.modules)
"""


def test_no_process_imports_numba_to_compile_or_to_find_its_kernel(place):
    outputs = [subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True,
                              text=True).stdout.strip() for _ in range(2)]
    assert outputs == ["False", "False"]


CALLS_PYTHON = """
import minijax, numpy
print(minijax.jit(minijax.numpy.linalg.cholesky)(numpy.eye(2, dtype=numpy.complex64))[1, 1])
"""


def test_the_address_of_a_python_function_is_found_again_in_each_process(place):
    outputs = [subprocess.run([sys.executable, "-c", CALLS_PYTHON], check=True,
                              capture_output=True, text=True).stdout.strip() for _ in range(2)]
    assert outputs == ["(1+0j)"] * 2


def test_code_for_other_processor_features_is_not_used(monkeypatch, place, compilations):
    kept = cache.compile_or_load(counting(3)).run
    host = cpu.host()
    fewer = host._replace(features=host.features.replace("+avx2", "-avx2") + ",-nothing")
    monkeypatch.setattr(cpu, "host", lambda: fewer)
    assert cache.compile_or_load(counting(3)).run is not kept
    assert len(compilations) == len(entries(place)) == 2


def test_another_version_of_the_compiler_is_not_used(monkeypatch, place, compilations):
    kept = cache.compile_or_load(counting(3)).run
    other = cpu.host()._replace(compiler="99")
    monkeypatch.setattr(cpu, "host", lambda: other)
    assert cache.compile_or_load(counting(3)).run is not kept
    assert len(compilations) == 2


@pytest.mark.parametrize("damage", [
    lambda entry: b"", lambda entry: entry[:-1], lambda entry: b"x" + entry,
    lambda entry: entry[:200] + bytes([entry[200] ^ 1]) + entry[201:],
], ids=["empty", "cut", "foreign", "one bit"])
def test_a_damaged_entry_is_dropped_and_rebuilt(place, compilations, damage):
    cache.compile_or_load(counting(5))
    [path] = entries(place)
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    assert result(counting(5)) == [0, 1, 2, 3, 4]
    assert len(compilations) == 2
    assert cache.read(path.stem) is not None


def test_an_entry_under_another_kernels_name_is_not_used(place, compilations):
    cache.compile_or_load(counting(3))
    [path] = entries(place)
    other = cache.cache_key(llvm.assembly(counting(4)))
    path.rename(place / f"{other}.kernel")
    assert result(counting(4)) == [0, 1, 2, 3]


def test_an_entry_that_cannot_be_linked_is_dropped_and_rebuilt(place):
    key = cache.cache_key(llvm.assembly(counting(6)))
    cache.write(key, b"sealed in good order, and still no object code")
    assert result(counting(6)) == [0, 1, 2, 3, 4, 5]


BROKEN_PICKLES = """
import pickle
import minijax, numpy
from minijax.compiler import cache
x = numpy.arange(5.0, dtype=numpy.float32)
program = lambda: minijax.jit(lambda x: minijax.numpy.sin(x) * 2)(x).tolist()
before = program()
kept = {path.stem: cache.read(path.stem) for path in cache.directory().glob("*.kernel")}
pickled = {key: entry for key, entry in kept.items() if entry.startswith(pickle.PROTO)}
assert pickled
for damage in (lambda entry: entry[:-5], lambda entry: b"", lambda entry: pickle.dumps([1, 2]),
               lambda entry: pickle.dumps((None, "key", frozenset(), 7, 0))):
    for key, entry in pickled.items():
        cache.write(key, damage(entry))
    minijax.clear_caches()
    assert program() == before
    assert {key: cache.read(key) for key in pickled} == pickled
"""


def test_an_entry_of_a_program_that_cannot_be_unpickled_is_rebuilt(place):
    """In a process of its own: here programs have no names on disk."""
    subprocess.run([sys.executable, "-c", BROKEN_PICKLES], check=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_in_place_of_an_entry_is_not_waited_for(place, compilations):
    cache.compile_or_load(counting(3))
    [path] = entries(place)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert result(counting(3)) == [0, 1, 2]
    assert len(compilations) == 2 and path.is_file()


def test_nothing_half_written_is_ever_left(place, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert result(counting(3)) == [0, 1, 2]
    assert list(place.iterdir()) == []


def test_the_directory_is_made_private(place):
    cache.compile_or_load(counting(3))
    assert place.stat().st_mode & 0o777 == 0o700
    assert entries(place)[0].stat().st_mode & 0o077 == 0


def test_a_directory_that_others_can_write_is_not_used(place):
    place.mkdir()
    place.chmod(0o777)
    with pytest.warns(UserWarning, match="others can write"):
        assert cache.directory() is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert result(counting(3)) == [0, 1, 2]
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes of folders")
def test_a_directory_that_others_can_rename_is_not_used(place):
    """Whoever writes its parent may put another in its place; a sticky bit keeps them from it."""
    place.mkdir(mode=0o700)
    place.parent.chmod(0o777)
    with pytest.warns(UserWarning, match=re.escape(f"others can write to {place.parent};")):
        assert cache.directory() is None
    place.parent.chmod(0o1777)
    assert cache.directory() == place


@pytest.mark.parametrize("cache_home", ["", "relative", "./here"])
def test_no_folder_is_made_where_the_program_runs(monkeypatch, tmp_path, cache_home):
    """XDG_CACHE_HOME must be absolute, or does not count; without a home nothing is kept."""
    monkeypatch.delenv("MINIJAX_CACHE_DIR")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    monkeypatch.setenv("HOME", "home")
    with pytest.warns(UserWarning, match="HOME is not an absolute path"):
        assert cache.directory() is None
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.directory() == tmp_path / "home" / ".cache" / "minijax"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_directory_of_another_user_is_not_used(place, monkeypatch):
    place.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    with pytest.warns(UserWarning, match="others can write"):
        assert cache.directory() is None


needs_links = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="no symbolic links")


@needs_links
def test_a_link_in_place_of_an_entry_is_not_followed(place, compilations, tmp_path):
    cache.compile_or_load(counting(3))
    [path] = entries(place)
    path.rename(tmp_path / "planted")
    path.symlink_to(tmp_path / "planted")
    assert cache.read(path.stem) is None
    assert result(counting(3)) == [0, 1, 2]
    assert len(compilations) == 2 and not path.is_symlink()


@needs_links
@pytest.mark.parametrize("planted", [lambda path: path.chmod(0o666),
                                     lambda path: os.chown(path, 12345, -1)],
                         ids=["others can write it", "of another user"])
def test_an_entry_that_is_not_ours_alone_is_not_read(place, planted):
    cache.compile_or_load(counting(3))
    [path] = entries(place)
    assert cache.read(path.stem) is not None
    try:
        planted(path)
    except PermissionError:
        pytest.skip("only root gives files away")
    assert cache.read(path.stem) is None


@needs_links
def test_what_was_looked_at_is_what_is_read(place, tmp_path, monkeypatch):
    """Another directory takes the name's place between the check and the reading."""
    cache.compile_or_load(counting(3))
    [path] = entries(place)
    evil, opened = tmp_path / "evil", os.open
    evil.mkdir()
    (evil / path.name).write_bytes(path.read_bytes())
    (evil / path.name).chmod(0o666)

    def swapping(name, *args, **kwargs):
        if str(name).endswith(".kernel") and not place.is_symlink():
            place.rename(tmp_path / "moved")
            place.symlink_to(evil)
        return opened(name, *args, **kwargs)

    assert cache.read(path.stem)
    monkeypatch.setattr(os, "open", swapping)
    assert cache.read(path.stem) is None and place.is_symlink()


def test_the_directory_is_bounded_and_what_is_of_use_stays(place, monkeypatch):
    for size in range(1, 6):
        cache.compile_or_load(counting(size))
    for age, path in enumerate(entries(place)):
        os.utime(path, (1000 + age, 1000 + age))
    unfinished = place / "0.kernel.unfinished"
    unfinished.write_bytes(b"")
    os.utime(unfinished, (1000, 1000))
    first, *_, last = entries(place)
    cache.read(first.stem)  # it is the newest now
    sizes = sum(path.stat().st_size for path in (first, last))
    new = cache.compile_or_load(counting(6)).run
    monkeypatch.setattr(cache, "MOST", sizes + 2 * len(last.read_bytes()))
    cache.write("1" * 64, b"")
    assert unfinished.exists()  # few writes look through the directory: it may be large
    cache.write("0" * 64, b"")
    kept = entries(place)
    assert new and first in kept and last in kept and len(kept) < 8
    assert not unfinished.exists()


def test_a_directory_that_cannot_be_made_does_no_harm(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINIJAX_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    assert cache.directory() is None
    assert result(counting(3)) == [0, 1, 2]


def test_the_default_directory_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("MINIJAX_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "minijax"


def test_flags_name_another_directory_or_none(place, tmp_path):
    with config.compilation_cache_dir(str(tmp_path / "elsewhere")):
        result(counting(3, "kept elsewhere"))
        assert len(entries(tmp_path / "elsewhere")) == 1
    with config.enable_compilation_cache(False):
        result(counting(3, "kept nowhere"))
    assert not entries(place)


def test_threads_asking_for_one_kernel_compile_it_once(compilations, strikes):
    for turn in range(strikes(1)):
        found, kernel = [], counting(7 + turn)

        def ask(found=found, kernel=kernel):
            found.append(cache.compile_or_load(kernel).run)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8 and len(set(map(id, found))) == 1
        assert len(compilations) == turn + 1


def test_an_interrupt_at_any_line_leaves_the_cache_right():
    """Interrupt the n-th line executed in the package, for many n up to the end, and ask again."""
    kernel = counting(8)
    cache.compile_or_load(kernel)
    for line in range(0, 5000, 7):
        left = line

        def interrupt(frame, event, argument):
            nonlocal left
            if event == "line" and "compiler" in frame.f_code.co_filename:
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            cache.compile_or_load(kernel)
            finished = True
        except KeyboardInterrupt:
            finished = False
        finally:
            sys.settrace(None)
        while cpu._starting._is_owned():  # `with` ends with a line, and no interrupt
            cpu._starting.release()
        assert result(counting(8)) == list(range(8))
        if finished:
            break
    assert finished


def test_what_a_text_calls_besides_its_own_is_found():
    i, zero = Scalar("i", INT64), Constant(np.int64(0), INT64)
    y = Buffer("y", INT64, (3,), "output")
    called = Call("blas_spotrf", (zero, y, zero, y))
    made = Kernel("k", (), (y,), (), (), 0, {}, (For(i, zero, zero, (called,)),))
    assert set(re.findall(cache.EXTERNAL, llvm.assembly(made))) == {"blas_spotrf"}
