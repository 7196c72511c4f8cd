"""`python -m minijax.as_jax script.py …` runs an unchanged program for JAX on minijax.

`python -m minijax.as_jax -m module …` runs a module, as Python itself does.
"""

import runpy
import sys


def main() -> None:
    """Run what the command line names, as the main program."""
    match sys.argv[1:]:
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *_] if not script.startswith("-"):
            sys.argv = sys.argv[1:]
            runpy.run_path(script, run_name="__main__")
        case _:
            raise SystemExit("usage: python -m minijax.as_jax (script.py | -m module) [arguments]")


if __name__ == "__main__":
    main()
