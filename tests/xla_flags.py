"""How the oracle's XLA compiles for tests; it ends the process at a flag that it does not know."""

import importlib.metadata
import importlib.util
import mmap
from collections.abc import Sequence
from pathlib import Path

PINNED = "0.10.2"  # JAX's version, which knows all of these
# The oracle runs each of its programs once: XLA should not take long to make them fast. That halves
# what compiling them costs; where it changes the last bits, a test asks for `as_users_compile`.
QUICK = ("--xla_backend_optimization_level=0", "--xla_cpu_use_fusion_emitters=false",
         "--xla_llvm_disable_expensive_passes=true", "--xla_cpu_parallel_codegen_split_count=1")


def quick() -> Sequence[str]:
    """The flags that the XLA here knows."""
    if importlib.metadata.version("jaxlib") == PINNED:
        return QUICK
    place = importlib.util.find_spec("jaxlib")
    folder = Path((place.submodule_search_locations or ["."])[0] if place else ".")
    return known(QUICK, max(folder.glob("*.so"), key=lambda file: file.stat().st_size))


def known(flags: Sequence[str], library: Path) -> list[str]:
    """Those flags whose names stand in a library."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return [flag for flag in flags
                if text.find(flag.removeprefix("--").partition("=")[0].encode()) >= 0]
