"""Compiled kernels, in memory and on disk: made once per text, processor and compiler.

Builds on cpu.py, pool.py, and on llvm.py for the text by which kernels are cached. Chapter 26.
In JAX: the persistent compilation cache (jax/_src/compilation_cache.py).
"""

import contextlib
import hashlib
import os
import pickle
import re
import stat
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from minijax import config
from minijax.core.jaxpr import ClosedJaxpr

from . import cpu, host, llvm, pool, routines
from .digest import constants_of, digest_of
from .executable import WIDE, Code
from .library import blas
from .loops import Kernel
from .memory import ALIGNMENT
from .tiers import QuickCode, is_short

MAGIC = b"minijax kernel 7\n"  # counts the changes to how cpu.py compiles a text
SYMBOLS = (llvm.SYMBOL,)
EXTERNAL = r"@((?:blas|block|transpose|minijax)_\w+)"  # external symbols of a kernel
_microkernels: dict[Any, Any] = {}  # by name and processor; kernels have their addresses
_loaded: WeakValueDictionary[str, Callable] = WeakValueDictionary()


class OtherLoopsError(Exception):
    """A program has other loops than when its entry was written: it takes other arguments."""


def code_of(closed: ClosedJaxpr, kernel: Callable[[], Kernel], in_tiers: bool = True) -> Code:
    """The machine code of a program, with its constants and workspace size; without tiers it is
    optimised code from the first call on.

    The disk cache maps the digest of a program to the key of its kernel and the arguments that it
    takes. On a hit no loops are built.
    """
    digest = digest_of(closed)
    name, folder = digest and cache_key(digest), directory()  # checked once for both entries
    if name and (kept := _unpickled(read(name, folder), closed)):
        key = kept.key

        def text() -> str:  # for code that is not on disk any more, or in its first tier only
            assembly = llvm.assembly(kernel())
            if cache_key(assembly) != key:
                raise OtherLoopsError
            return assembly
        with contextlib.suppress(OtherLoopsError):
            return kept._replace(run=loaded(key, kept.externals, text, folder))
    code = compile_or_load(kernel(), folder, in_tiers)
    if name and not any(isinstance(x.base, host.Table) for x in code.constants):
        places = {id(x): place for place, x in enumerate(constants_of(closed))}
        constants: list[Any] = [places.get(id(x), x) for x in code.constants]
        entry = pickle.dumps(code._replace(run=None, constants=constants))
        cpu.undisturbed(lambda: write(name, entry, folder))
    return code


def _unpickled(entry: bytes | None, closed: ClosedJaxpr) -> Code | None:
    """The cache entry of a program, with its constants; None if it is damaged."""
    if entry is None:
        return None
    try:
        kept = Code(*pickle.loads(entry))
        constants: Sequence[Any] = kept.constants
        own = [*constants_of(closed)] if any(isinstance(x, int) for x in constants) else ()
        return kept._replace(constants=[own[x] if isinstance(x, int) else x for x in constants])
    except Exception:  # a broken pickle raises whatever its bytes spell
        return None


def compile_or_load(kernel: Kernel, folder: Path | None = None, in_tiers: bool = True) -> Code:
    """The kernel as machine code: from memory, else from disk, else compiled now."""
    is_wide = len(kernel.inputs) + len(kernel.outputs) > WIDE
    is_quick = (in_tiers and cpu.effort() > 0 and not is_wide
                and is_short(llvm.transformed(kernel)))
    text = llvm.assembly(kernel)
    key, externals = cache_key(text), frozenset(re.findall(EXTERNAL, text))
    return Code(loaded(key, externals, lambda: text, folder, is_quick), key, externals,
                [np.asarray(buffer.value) for buffer in kernel.constants],
                kernel.workspace_size + ALIGNMENT if kernel.temps else 0)


def loaded(key: str, externals: Collection[str], text: Callable[[], str],
           folder: Path | None = None, is_quick: bool = False) -> Any:
    """The function of a kernel: from memory, else linked. Equal kernels share one. If it is not on
    disk, it may come in its first tier.
    """
    return _loaded.get(key) or cpu.undisturbed(lambda: _loaded.get(key) or _loaded.setdefault(
        key, _in_tiers(key, externals, text, folder, is_quick)))


def _in_tiers(key: str, externals: Collection[str], text: Callable[[], str], folder: Path | None,
              is_quick: bool) -> Any:
    """The function of a kernel in the tier that is on disk, else in the first one, if it has one.
    """
    def function(of_tier: str, level: int | None = None) -> Callable:
        return cpu.loaded(linked(text, SYMBOLS, addresses_of(externals), of_tier, folder, level),
                          llvm.SYMBOL)

    of_first_tier = f"{key}.quick"
    if is_on_disk(key, folder) or not (is_quick or is_on_disk(of_first_tier, folder)):
        return function(key)
    processor = cpu.host()

    def second() -> Any:
        if cpu.host() != processor:
            raise RuntimeError("a flag has changed the processor since the first call")
        run = _loaded[key] = cpu.undisturbed(lambda: function(key, level=1))
        return run
    return QuickCode(function(of_first_tier, level=0), second)


def addresses_of(externals: Collection[str]) -> dict[str, int]:
    """The addresses of what a kernel calls."""
    return {name: pool.symbols(linked, {name})[name] if name.startswith("minijax_")
            else microkernel(name) if routines.is_microkernel(name)
            else blas(name.removeprefix("blas_")) for name in externals}


def microkernel(name: str) -> int:
    """The address of a microkernel, which programs share."""
    key = name, cpu.host()
    if key not in _microkernels:
        text = llvm.microkernel_assembly(name)
        _microkernels[key] = linked(lambda: text, (name,), {}, level=1)
    return _microkernels[key][name]


def linked(text: Callable[[], str], symbols: Sequence[str], addresses: Mapping[str, int],
           key: str = "", folder: Path | None = None, level: int | None = None) -> Any:
    """Link the object code of a text: from the disk cache if possible, else compiled."""
    key = key or cache_key(text())
    code = read(key, folder)
    if code is not None:
        with contextlib.suppress(RuntimeError):
            return cpu.link(code, symbols, addresses)
    code = cpu.compile(text(), level=level)
    tracker = cpu.link(code, symbols, addresses)
    write(key, code, folder)
    return tracker


# The key


def cache_key(text: str) -> str:
    """Return the cache key of a kernel: a digest of its text, the processor and the compilers.

    The text holds operations, dtypes and shapes. Code for other CPU features, or for another
    optimisation level, has another key.
    """
    material = "\0".join((text, *cpu.host(), str(cpu.effort()), MAGIC.decode()))
    return hashlib.sha256(material.encode()).hexdigest()


# The directory

MOST = 1 << 29  # bytes of kernels on disk, some 40,000; the least recently used go first
TRIMMING = "00"  # where a key starts so, one in 256, its writing looks through the directory
NO_DIRECTORY = Path(os.devnull)  # where nothing can be read or written


def directory() -> Path | None:
    """Return where kernels are kept: a directory that only this user can write, or None.

    The flag `compilation_cache_dir` names it, or else `MINIJAX_CACHE_DIR` (empty: keep nothing on
    disk); otherwise it is `minijax` in the user's cache directory, as the XDG specification has
    it.  With the flag `enable_compilation_cache` off nothing is kept.
    """
    setting = config.compilation_cache_dir.value or os.environ.get("MINIJAX_CACHE_DIR")
    if setting == "" or not config.enable_compilation_cache.value:
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else "~/.cache"  # the specification ignores relative paths
    path = os.path.expanduser(setting or os.path.join(base, "minijax"))
    if not setting and not os.path.isabs(path):
        warnings.warn("compiled kernels are not cached: HOME is not an absolute path; "
                      "set it, or MINIJAX_CACHE_DIR", stacklevel=2)
        return None
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        open_to_others = [] if _is_private(os.stat(path)) else [path]
        inner = os.path.realpath(path)
        while (outer := os.path.dirname(inner)) != inner:
            open_to_others += [] if _prevents_renames(os.stat(outer)) else [outer]
            inner = outer
    except OSError:
        return None
    if open_to_others:
        warnings.warn(f"compiled kernels are not cached: others can write to {open_to_others[0]}; "
                      "make it private (chmod 700) or set MINIJAX_CACHE_DIR", stacklevel=2)
        return None
    return Path(path)


def _is_private(status: os.stat_result) -> bool:
    """Whether no other user can change it; Windows keeps them out of the whole profile."""
    return not hasattr(os, "geteuid") or (
        status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _prevents_renames(status: os.stat_result) -> bool:
    """Whether no other user can rename our files in this folder: its sticky bit is set, or only
    root and we may write it, and our login group (many systems give each user one).
    """
    if not hasattr(os, "geteuid") or status.st_mode & stat.S_ISVTX:
        return True
    open_to = stat.S_IWOTH if status.st_gid in (0, os.getegid()) else stat.S_IWOTH | stat.S_IWGRP
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & open_to


def _opener(path: str, flags: int) -> int:
    """Open without following symbolic links or blocking on a pipe; a new file is private."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600)


# An entry: MAGIC, the digest of key and code, the code. The permissions of the opened file are
# checked, not of its path, so nothing is trusted in a directory that replaces ours meanwhile.


def _head(key: str, code: bytes) -> bytes:
    checksum = hashlib.sha256(key.encode())
    checksum.update(code)
    return MAGIC + checksum.digest()


def is_on_disk(key: str, folder: Path | None = None) -> bool:
    """Whether the directory has a file for a key; it may be damaged."""
    return os.path.exists(os.path.join(folder or directory() or NO_DIRECTORY, f"{key}.kernel"))


def read(key: str, folder: Path | None = None) -> bytes | None:
    """Return the object code under a key, in this directory or the usual one; None if the entry is
    missing, damaged or foreign.
    """
    path, entry = os.path.join(folder or directory() or NO_DIRECTORY, f"{key}.kernel"), b""
    with contextlib.suppress(OSError), open(path, "rb", opener=_opener) as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and _is_private(status):
            entry = file.read()
            os.utime(path)  # the time of its last use
    size = len(_head(key, b""))
    code = entry[size:]
    return code if entry[:size] == _head(key, code) else None


def write(key: str, code: bytes, folder: Path | None = None) -> None:
    """Store object code under a key, atomically. Failing is no error."""
    folder = folder or directory() or NO_DIRECTORY
    unfinished = folder / f"{key}.kernel.{os.urandom(8).hex()}"
    try:
        with open(unfinished, "xb", opener=_opener) as file:
            file.writelines((_head(key, code), code))
        os.replace(unfinished, folder / f"{key}.kernel")
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    if key.startswith(TRIMMING):
        _trim(folder)


def _trim(folder: Path) -> None:
    """Remove the oldest files until the rest has at most MOST bytes; unfinished files go in time,
    too.
    """
    files, kept = [], 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may trim as well
                if ".kernel" in entry.name:
                    status = entry.stat(follow_symlinks=False)
                    files.append((status.st_mtime, status.st_size, entry.path))
    for _, size, path in sorted(files, reverse=True):
        kept += size
        if kept > MOST:
            with contextlib.suppress(OSError):
                os.unlink(path)
