"""`python -m minijax.as_jax script.py …` runs an unchanged program for JAX on minijax.

`python -m minijax.as_jax -m module …` runs a module, as Python itself does.
"""

import os
import runpy
import sys


def main() -> None:
    """Run what the command line names, as the main program."""
    match sys.argv[1:]:
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *_] if not script.startswith("-"):
            sys.argv, script = sys.argv[1:], os.path.abspath(script)
            if not sys.flags.safe_path:  # as Python, which looks for modules beside the script
                sys.path[0] = os.path.dirname(script)
            runpy.run_path(script, run_name="__main__")
        case _:
            raise SystemExit("usage: python -m minijax.as_jax (script.py | -m module) [arguments]")


if __name__ == "__main__":
    main()
