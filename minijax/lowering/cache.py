"""Compiled kernels, in memory and on disk: made once per text, processor and compiler.

Stands on cpu.py, pool.py, and on llvm.py for the text that stands for a kernel. Chapter 26.
In JAX: the persistent compilation cache (jax/_src/compilation_cache.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import os
import secrets
import stat
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar
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
    loaded = _loaded.get(key)
    return loaded if loaded is not None else cpu.undisturbed(lambda: _obtain(key, text, kernel))


def _obtain(key: str, text: str, kernel: Kernel) -> cpu.Loaded:
    """Load the kernel from disk or compile it; runs in one thread at a time."""
    loaded = _loaded.get(key)
    if loaded is None:
        externals = external_names(kernel.body)
        externals |= {"threads"} if "@minijax_" in text else set()
        loaded = machine_code(text, lambda code: load(code, entry.SYMBOL, externals))
        _loaded[key] = loaded
    return loaded


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

    return MAGIC.decode(), f"llvmlite {llvmlite.__version__}", f"numba {_numba_version()}"


def _numba_version() -> str:
    """Read from Numba's files: importing it would cost all that this cache saves."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        return "not installed"
    try:
        return Path(found.origin).with_name("_version.py").read_text()
    except OSError:
        from importlib.metadata import version

        return version("numba")


# The directory

MOST = 1 << 29  # bytes of kernels on disk: some 40,000; what was not used for longest goes first
SEALED_FOR = 3600  # seconds after which what a writer left unfinished is nobody's


def directory() -> Path | None:
    """Return where kernels are kept: a directory that only this user can write, or None.

    The flag `compilation_cache_dir` names it, or else `MINIJAX_CACHE_DIR` (empty: keep nothing on
    disk); otherwise it is `minijax` in the user's cache directory, as the XDG specification has
    it.  With the flag `enable_compilation_cache` off nothing is kept.
    """
    with _opened() as folder:
        return folder.path if folder is not None else None


@contextlib.contextmanager
def _opened() -> Iterator[Folder | None]:
    """The directory, made where there was none, for as long as the context is open."""
    given = config.compilation_cache_dir.value or os.environ.get("MINIJAX_CACHE_DIR")
    folder = None
    if given != "" and config.enable_compilation_cache.value:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        with contextlib.suppress(OSError):
            folder = _open(Path(given or os.path.join(base, "minijax")).expanduser())
    try:
        yield folder
    finally:
        if folder is not None and folder.handle is not None:
            os.close(folder.handle)


def _open(path: Path) -> Folder | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if os.open not in os.supports_dir_fd:  # Windows keeps other users out of the profile directory
        return Folder(path, None)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    if _is_private(handle):
        return Folder(path, handle)
    os.close(handle)
    warnings.warn(f"compiled kernels are not kept: other users can write {path}; "
                  "make it yours (chmod 700) or set MINIJAX_CACHE_DIR", stacklevel=2)
    return None


def _is_private(handle: int) -> bool:
    """Whether nobody else can change what is open, or put another in its place."""
    if not hasattr(os, "geteuid"):
        return True
    found = os.fstat(handle)
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class Folder(NamedTuple):
    """The directory, open: what is looked at is what is read, whatever its name means by then."""

    path: Path
    handle: int | None

    def open(self, name: str, flags: int) -> int:
        """Open a file of its own: no link is followed."""
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self.place(name), flags, 0o600, dir_fd=self.handle)

    def place(self, name: str) -> str:
        return name if self.handle is not None else str(self.path / name)

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is none, or where somebody else could change it."""
        try:
            with os.fdopen(self.open(name, os.O_RDONLY), "rb") as file:
                if not _is_private(file.fileno()):
                    return None
                content = file.read()
        except OSError:
            return None
        with contextlib.suppress(OSError):  # when it was last of use
            os.utime(self.place(name), dir_fd=self.handle, follow_symlinks=self.handle is None)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Readers see the whole file or none."""
        temporary = f".{secrets.token_hex(8)}"
        try:
            handle = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(self.place(temporary), self.place(name), src_dir_fd=self.handle,
                       dst_dir_fd=self.handle)
        except OSError:
            self.remove(temporary)

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.place(name), dir_fd=self.handle)

    def trim(self, most: int) -> None:
        """Remove the oldest files until the others have no more than so many bytes."""
        files = []
        with contextlib.suppress(OSError), os.scandir(self.handle or self.path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process may trim as well
                    found = entry.stat(follow_symlinks=False)
                    files.append((found.st_mtime, found.st_size, entry.name))
        now, kept = time.time(), 0
        for changed, size, name in sorted(files, reverse=True):
            kept += size
            if kept > most or name.startswith(".") and changed < now - SEALED_FOR:
                self.remove(name)


# Entries: MAGIC, the digest of key and code, the code.

_written = itertools.count()


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()


def read(key: str) -> bytes | None:
    """Return the object code kept under a key; None for a damaged or foreign entry too."""
    with _opened() as folder:
        found = folder.read(f"{key}.kernel") if folder is not None else None
    head, code = (found or b"")[:len(MAGIC) + 32], (found or b"")[len(MAGIC) + 32:]
    return code if head == MAGIC + _digest(key, code) else None


def write(key: str, code: bytes) -> None:
    """Keep object code under a key. Failing is no error."""
    with _opened() as folder:
        if folder is not None:
            folder.write(f"{key}.kernel", MAGIC + _digest(key, code) + code)
            if next(_written) % 64 == 0:
                folder.trim(MOST)
