"""Flags on the command line, read by absl: `--jax_enable_x64=True`.

Builds on `config`; `minijax/__init__.py` adds its functions there.  In JAX: `jax/_src/config.py`.
"""

import importlib
import sys
from typing import Any

from minijax import config


def config_with_absl() -> None:
    """Declare every flag to absl, so that ``absl.app.run`` reads ``--jax_enable_x64=True``.

    Raises ImportError where absl is not installed.
    """
    absl_flags = _absl("flags")
    for flag in config.flags.values():
        define_flag = (absl_flags.DEFINE_bool if flag.kind is config.boolean
                       else absl_flags.DEFINE_string)
        for name in config.spellings(flag):
            if name not in absl_flags.FLAGS:
                define_flag(name, None, flag.__doc__)
    _absl("app").call_after_init(_take_from_absl)


def parse_flags_with_absl() -> None:
    """Read ``--jax_…`` and ``--minijax_…`` flags from the command line now, and no others.

    Raises ImportError where absl is not installed.
    """
    config_with_absl()
    ours = [word for word in sys.argv[1:]
            if word.lstrip("-").removeprefix("no").startswith(config.PREFIXES)]
    _absl("flags").FLAGS(sys.argv[:1] + ours, known_only=True)
    _take_from_absl()


def _absl(module: str) -> Any:
    try:
        return importlib.import_module(f"absl.{module}")
    except ImportError:
        raise ImportError(
            "Command-line flags are read by absl, which is not installed (pip install absl-py). "
            "Without it, use config.update or an environment variable such as "
            "JAX_ENABLE_X64=True.") from None


def _take_from_absl() -> None:
    given = _absl("flags").FLAGS
    for flag in config.flags.values():
        said = [name for name in config.spellings(flag) if given[name].value is not None]
        if said:
            flag.set(flag.check(str(given[said[0]].value), f"--{said[0]}"))
