"""Evaluation runs the checks whose flags are on, and loads none of them before."""

import os
import re
import subprocess
import sys
from pathlib import Path

import minijax
from minijax import config, core
from minijax.sharp_bits import checking
from minijax.sharp_bits.findings import SHARP_BITS

PACKAGE = Path(minijax.__file__).parent


def test_checks_are_loaded_when_a_flag_is_on():
    program = ("import sys; import minijax as jax; from minijax import core\n"
               "x = jax.numpy.ones(3)\n"
               "jax.jit(jax.grad(lambda x: (x * x).sum()))(x)\n"
               "assert not core.base_trace.checks\n"
               "assert 'minijax.sharp_bits.checking' not in sys.modules\n"
               "with jax.debug_nans(True):\n"
               "    assert core.base_trace.checks and x + 1 is not None\n"
               "    assert 'minijax.sharp_bits.checking' in sys.modules\n"
               "assert not core.base_trace.checks")
    environment = {k: v for k, v in os.environ.items() if "SHARP" not in k and "DEBUG" not in k}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_what_evaluation_is_told_of_is_what_the_checks_look_at():
    told = {moment for path in PACKAGE.rglob("*.py") for moment in
            re.findall(r'base_trace\.(?:notify|wrap)\(\s*"(\w+)"', path.read_text())}
    assert told | {"operation"} == set(checking.CHECKS)


def test_each_check_has_a_flag_of_the_switch_for_all():
    flags = {flag for looking in checking.CHECKS.values() for _, *of_one in looking
             for flag in of_one}
    of_jax = {config.explain_cache_misses, config.profiling, config.no_tracing,
              config.no_execution, config.transfer_guard_host_to_device}
    assert flags - of_jax == set(SHARP_BITS)


def test_under_no_flag_a_moment_is_what_happens_then():
    assert not core.base_trace.checks
    assert core.base_trace.wrap("call", lambda *args: args)(1, 2) == (1, 2)
    assert checking.wrap("call", lambda *args: args)(1, 2) == (1, 2)
