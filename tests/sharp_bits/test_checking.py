"""The checks are an evaluation of their own, which takes the place of the ordinary one."""

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


def test_evaluation_is_the_ordinary_one_until_a_flag_is_on():
    program = ("import minijax as jax; from minijax import core; x = jax.numpy.ones(3)\n"
               "jax.jit(jax.grad(lambda x: (x * x).sum()))(x)\n"
               "assert type(core.base_trace) is core.EvalTrace and core.base_trace.goes_straight\n"
               "with jax.debug_nans(True):\n"
               "    assert not core.base_trace.goes_straight\n"
               "assert core.base_trace.goes_straight")
    environment = {k: v for k, v in os.environ.items() if "SHARP" not in k and "DEBUG" not in k}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_what_evaluation_is_told_of_is_what_the_checks_look_at():
    told = {moment for path in PACKAGE.rglob("*.py") for moment in
            re.findall(r'base_trace\.(?:notify|wrap)\(\s*"(\w+)"', path.read_text())}
    assert told | {"operation"} == set(checking.CHECKS)


def test_each_check_has_a_flag_of_the_switch_for_all():
    flags = {flag for looking in checking.CHECKS.values() for of_one, _ in looking
             for flag in of_one}
    of_jax = {config.explain_cache_misses, config.profiling, config.no_tracing,
              config.transfer_guard_host_to_device}
    assert flags - of_jax == set(SHARP_BITS)


def test_under_no_flag_a_checking_evaluation_only_evaluates():
    checking.begin()
    assert isinstance(core.base_trace, checking.CheckingTrace) and core.base_trace.goes_straight
    assert core.base_trace.wrap("call", lambda *args: args)(1, 2) == (1, 2)
