"""Compiled kernels, in memory and on disk: made once per text, processor and compiler.

Stands on cpu.py, and on llvm.py for the text that stands for a kernel. Chapter 26.
In JAX: the persistent compilation cache (jax/_src/compilation_cache.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

from minijax import config
from minijax.lazily import importing

from . import cpu, entry, llvm
from .loops import Call, For, If, Kernel, Statement, While

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
        externals = external_names(kernel.body) | shared_names(text)
        loaded = _load_from_disk(key, externals) or _compile(key, text, externals)
        _loaded[key] = loaded
    return loaded


def _load_from_disk(key: str, externals: frozenset[str]) -> cpu.Loaded | None:
    code = read(key)
    if code is None:
        return None
    try:
        return cpu.load(code, entry.SYMBOL, externals)
    except cpu.UnresolvedSymbol:
        remove(key)
        return None


def _compile(key: str, text: str, externals: frozenset[str]) -> cpu.Loaded:
    code = cpu.compile(text)
    loaded = cpu.load(code, entry.SYMBOL, externals)
    write(key, code)
    return loaded


def machine_code(text: str) -> bytes:
    """Return the object code of a text that is no kernel; call it within cpu.undisturbed."""
    key = cache_key(text)
    code = read(key)
    if code is None:
        code = cpu.compile(text)
        write(key, code)
    return code


def external_names(body: tuple[Statement, ...]) -> frozenset[str]:
    """Return the names of the library functions that statements call, at any depth."""
    names: set[str] = set()
    for statement in body:
        match statement:
            case Call(name, _):
                names.add(name)
            case For():
                names |= external_names(statement.body)
            case While():
                names |= external_names(statement.condition + statement.body)
            case If():
                names |= external_names(statement.then + statement.orelse)
    return frozenset(names)


def shared_names(text: str) -> frozenset[str]:
    """Return what a kernel needs whose loops are shared by threads."""
    return frozenset({"threads"} if "@minijax_share" in text else ())


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
        return path if _is_private(path) else None
    except OSError:
        return None


def _is_private(path: Path) -> bool:
    """Whether nobody else can plant code here; the user is told if somebody can."""
    if not hasattr(os, "geteuid"):  # Windows keeps other users out of the profile directory.
        return True
    found = path.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    warnings.warn(f"compiled kernels are not kept: other users can write {path}; "
                  "make it yours (chmod 700) or set MINIJAX_CACHE_DIR", stacklevel=2)
    return False


def _path(key: str) -> Path | None:
    place = directory()
    return place / f"{key}.kernel" if place is not None else None


# Entries: MAGIC, the digest of key and code, the code.


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()


def read(key: str) -> bytes | None:
    """Return the object code kept under a key; a damaged or foreign entry is dropped."""
    path = _path(key)
    if path is None:
        return None
    try:
        entry = path.read_bytes()
    except OSError:
        return None
    head, code = entry[:len(MAGIC) + 32], entry[len(MAGIC) + 32:]
    if head == MAGIC + _digest(key, code):
        return code
    remove(key)
    return None


def write(key: str, code: bytes) -> None:
    """Keep object code under a key; readers see the whole entry or none. Failing is no error."""
    # JAX: bounds the size of the directory and drops what was not used for long; here it grows.
    path = _path(key)
    if path is None:
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".kernel")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + _digest(key, code) + code)
        os.replace(temporary, path)
    except OSError:
        _unlink(temporary)


def remove(key: str) -> None:
    """Forget what is kept under a key."""
    path = _path(key)
    if path is not None:
        _unlink(path)


def _unlink(path: str | Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
