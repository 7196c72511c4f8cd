"""Compiled kernels, in memory and on disk: made once per text, processor and compiler.

Stands on cpu.py, pool.py, and on llvm.py for the text that stands for a kernel. Chapter 26.
In JAX: the persistent compilation cache (jax/_src/compilation_cache.py).
"""

import contextlib
import hashlib
import importlib.util
import itertools
import os
import stat
import time
import warnings
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from minijax import config
from minijax.lazily import importing

from . import cpu, entry, llvm, pool
from .library import runtime_addresses
from .loops import Call, Kernel, Statement, walk
from .routines import symbols

T = TypeVar("T")
MAGIC = b"minijax kernel 3\n"  # counts the changes to how cpu.py compiles a text
_loaded: WeakValueDictionary[str, cpu.Loaded] = WeakValueDictionary()


def compile_or_load(kernel: Kernel) -> cpu.Loaded:
    """Return the kernel as machine code: from memory, else from disk, else compiled now.

    Numba is imported only where neither has it. Equal kernels share one piece of code.
    """
    text = llvm.assembly(kernel)
    key = cache_key(text)

    def obtained() -> cpu.Loaded:
        loaded = _loaded.get(key)
        if loaded is None:
            externals = external_names(kernel.body)
            externals |= {"threads"} if "@minijax_" in text else set()
            loaded = machine_code(text, lambda code: load(code, entry.SYMBOL, externals))
            _loaded[key] = loaded
        return loaded
    return cpu.undisturbed(obtained)


def machine_code(text: str, use: Callable[[bytes], T]) -> T:
    """Return what `use` makes of the object code of a text, from disk where that can be linked.

    Call it within cpu.undisturbed.
    """
    key = cache_key(text)
    code = read(key)
    if code is not None:
        with contextlib.suppress(cpu.UnresolvedSymbol):
            return use(code)
    code = cpu.compile(text)
    made = use(code)
    write(key, code)
    return made


def load(code: bytes, symbol: str, externals: Collection[str]) -> cpu.Loaded:
    """Return a callable from object code, whose calls go to library externals of these names."""
    return cpu.Loaded(cpu.link(code, (symbol,), addresses(externals)), symbol, externals)


def addresses(names: Collection[str]) -> dict[str, int]:
    """Return where each symbol is that a kernel calling these externals may refer to.

    "threads" is no external but the pool, for a kernel that calls any of its functions.
    """
    found = dict(runtime_addresses())
    for name in names:
        found |= pool.symbols(machine_code) if name == "threads" else symbols(name)
    return found


def external_names(body: tuple[Statement, ...]) -> frozenset[str]:
    """Return the names of the library functions that statements call, at any depth."""
    return frozenset(each.external for each in walk(body) if isinstance(each, Call))


# The key


def cache_key(text: str) -> str:
    """Return what names a kernel on disk: a digest of its text, the processor and the compilers.

    The text holds operations, dtypes and shapes; code for other CPU features has another key.
    """
    material = "\0".join((text, *cpu.host(), *compilers()))
    return hashlib.sha256(material.encode()).hexdigest()


@cache
def compilers() -> tuple[str, ...]:
    """Return the versions of everything between the text and the object code."""
    with importing:
        import llvmlite

    # Numba's is read from its files: importing it would cost all that this cache saves.
    found = importlib.util.find_spec("numba")
    files = Path(found.origin).parent.glob("_version.py") if found and found.origin else ()
    return MAGIC.decode(), f"llvmlite {llvmlite.__version__}", *(x.read_text() for x in files)


# The directory

MOST = 1 << 29  # bytes of kernels on disk: some 40,000; what was not used for longest goes first
SEALED_FOR = 3600  # seconds after which what a writer left unfinished is nobody's
_written = itertools.count()


def directory() -> Path | None:
    """Return where kernels are kept: a directory that only this user can write, or None.

    The flag `compilation_cache_dir` names it, or else `MINIJAX_CACHE_DIR` (empty: keep nothing on
    disk); otherwise it is `minijax` in the user's cache directory, as the XDG specification has
    it.  With the flag `enable_compilation_cache` off nothing is kept.
    """
    given = config.compilation_cache_dir.value or os.environ.get("MINIJAX_CACHE_DIR")
    if given == "" or not config.enable_compilation_cache.value:
        return None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    path = Path(given or os.path.join(base, "minijax")).expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if _is_private(path.stat()):
            return path
    except OSError:
        return None
    warnings.warn(f"compiled kernels are not kept: other users can write {path}; "
                  "make it yours (chmod 700) or set MINIJAX_CACHE_DIR", stacklevel=2)
    return None


def _is_private(found: os.stat_result) -> bool:
    """Whether no other user can change it; Windows keeps them out of the whole profile."""
    return not hasattr(os, "geteuid") or (
        found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _opener(path: str, flags: int) -> int:
    """Open a file itself, not what a link in its place leads to; a new one is for us alone."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


# An entry: MAGIC, the digest of key and code, the code. What is looked at is what is read, so that
# another directory that takes the place of ours meanwhile has nothing that would be believed.


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()


def read(key: str) -> bytes | None:
    """Return the object code kept under a key; None for a damaged or foreign entry too."""
    folder, found = directory(), b""
    if folder is None:
        return None
    with contextlib.suppress(OSError), open(folder / f"{key}.kernel", "rb", opener=_opener) as file:
        if _is_private(os.fstat(file.fileno())):
            found = file.read()
            os.utime(file.name)  # when it was last of use
    head, code = found[:len(MAGIC) + 32], found[len(MAGIC) + 32:]
    return code if head == MAGIC + _digest(key, code) else None


def write(key: str, code: bytes) -> None:
    """Keep object code under a key; readers see the whole or nothing. Failing is no error."""
    folder = directory()
    if folder is None:
        return
    unfinished = folder / f"{key}.kernel.{os.urandom(8).hex()}"
    try:
        with open(unfinished, "xb", opener=_opener) as file:
            file.write(MAGIC + _digest(key, code) + code)
        os.replace(unfinished, folder / f"{key}.kernel")
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    if next(_written) % 64 == 0:
        _trim(folder)


def _trim(folder: Path) -> None:
    """Remove the oldest files until the others have no more than MOST bytes."""
    files = []
    for path in folder.glob("*.kernel*"):
        with contextlib.suppress(OSError):  # another process may trim as well
            found = path.lstat()
            files.append((found.st_mtime, found.st_size, path))
    now, kept = time.time(), 0
    for changed, size, path in sorted(files, reverse=True):
        kept += size
        if kept > MOST or path.suffix != ".kernel" and changed < now - SEALED_FOR:
            with contextlib.suppress(OSError):
                path.unlink()
