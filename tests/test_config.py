"""Flags: their values, where they come from, and that nothing leaves one changed."""

import importlib
import os
import subprocess
import sys
import threading

import jax
import pytest

import minijax
from minijax import config
from minijax.sharp_bits.findings import checking_sharp_bits, is_collecting


def in_new_process(program, arguments=(), **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "MINIJAX_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"from minijax import config\n{program}", *arguments],
        env={**clean, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_flags_that_jax_has_too_have_its_default():
    ours_on_purpose = {"jax_threefry_partitionable", "jax_platforms", "jax_explicit_x64_dtypes"}
    for name in set(config.names()) - ours_on_purpose:
        if hasattr(jax.config, name):
            assert config.read(name) == getattr(jax.config, name), name


@pytest.mark.parametrize("name", ["jax_debug_nans", "minijax_debug_nans", "debug_nans"])
def test_update_takes_every_spelling_and_reading_shows_it(name):
    assert config.jax_debug_nans is False
    config.update(name, True)
    try:
        assert config.jax_debug_nans is True and config.debug_nans.value is True
    finally:
        config.update(name, False)


def test_an_unknown_name_is_refused_with_the_near_ones():
    for attempt in (lambda: config.update("jax_enable_x46", True), lambda: config.jax_enable_x46):
        with pytest.raises(AttributeError, match="Unrecognized.*jax_enable_x46.*jax_enable_x64"):
            attempt()


@pytest.mark.parametrize("name, value", [
    ("jax_enable_x64", "yes"), ("jax_enable_x64", None), ("jax_enable_x64", 2),
    ("jax_numpy_rank_promotion", "maybe"), ("jax_random_seed_offset", 1.5),
    ("jax_default_device", []), ("jax_platforms", 3)])
def test_a_value_of_the_wrong_kind_is_refused_and_changes_nothing(name, value):
    before = config.read(name)
    with pytest.raises(ValueError, match=f"{name} takes "):
        config.update(name, value)
    assert config.read(name) == before


def test_assigning_to_a_flag_is_refused_with_the_cure():
    with pytest.raises(AttributeError, match=r"config.update\('jax_enable_x64', True\)"):
        config.jax_enable_x64 = True
    with pytest.raises(AttributeError, match="config.update"):
        config.debug_nans = True


def test_with_changes_a_flag_and_puts_it_back():
    with config.numpy_rank_promotion("warn"):
        with config.numpy_rank_promotion("raise"):
            assert config.numpy_rank_promotion.value == "raise"
        assert config.numpy_rank_promotion.value == "warn"
    assert config.numpy_rank_promotion.value == "allow"


def test_a_switch_without_a_value_means_on_and_other_flags_need_one():
    with config.checking_leaks(), config.disable_jit(), config.enable_x64():
        assert config.check_tracer_leaks.value and config.disable_jit.value
    with pytest.raises(TypeError, match="numpy_rank_promotion needs a value"):
        config.numpy_rank_promotion()


def test_a_context_may_be_entered_again_and_decorate_as_in_jax():
    def seen(lib):
        wide, widths = lib.enable_x64(True), []

        def look():
            widths.append(lib.numpy.arange(2.0).dtype)
        for _ in range(2):
            with wide:
                look()
                with lib.enable_x64(False):
                    look()
                look()
            look()
        wide(look)()
        look()
        return widths
    assert seen(minijax) == seen(jax)


def test_an_exception_inside_with_puts_the_flag_back():
    with pytest.raises(RuntimeError), config.debug_nans(True):
        raise RuntimeError
    assert config.debug_nans.value is False


def test_contexts_that_end_in_another_order_do_not_disturb_each_other():
    def paused():
        with config.enable_x64(True):
            yield
    with config.debug_nans(True):
        generator = paused()
        next(generator)
    assert config.enable_x64.value and not config.debug_nans.value
    generator.close()
    assert not config.enable_x64.value and not config.debug_nans.value


def test_with_is_seen_by_its_own_thread_only_and_update_by_all():
    seen = []

    def look():
        seen.append((config.enable_x64.value, config.debug_infs.value, config.trace_key()))
    global_key = config.trace_key()
    config.update("jax_debug_infs", True)
    try:
        with config.enable_x64(True):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
    finally:
        config.update("jax_debug_infs", False)
    assert seen == [(False, True, global_key)]


def test_the_trace_key_changes_with_flags_that_change_tracing_and_no_others():
    before = config.trace_key()
    for flag, value in ((config.enable_x64, True), (config.numpy_rank_promotion, "raise"),
                        (config.threefry_partitionable, True), (config.checking_leaks, True)):
        with flag(value):
            assert config.trace_key() != before, flag
    for flag in (config.debug_nans, config.log_compiles, config.disable_jit):
        with flag(True):
            assert config.trace_key() == before, flag
    assert config.trace_key() is before and isinstance(hash(before), int)


def test_the_trace_key_follows_update():
    before = config.trace_key()
    config.update("jax_random_seed_offset", 3)
    assert config.trace_key() != before
    config.update("jax_random_seed_offset", 0)
    assert config.trace_key() == before


def interrupt_at_line(number, action):
    """Run `action`; at the `number`-th line executed in config.py, raise KeyboardInterrupt."""
    passed = 0

    def trace(frame, event, argument):
        nonlocal passed
        if frame.f_code.co_filename != config.__file__:
            return None
        if event == "line":
            passed += 1
            if passed == number:
                raise KeyboardInterrupt
        return trace
    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(previous)
    return False


@pytest.mark.parametrize("context", [
    lambda: config.enable_x64(True), lambda: checking_sharp_bits(collect=True)])
def test_an_interrupt_at_any_line_leaves_no_flag_changed(context):
    def action():
        with context():
            config.trace_key()
    before, number = config.trace_key(), 1
    while interrupt_at_line(number, action):
        assert config.trace_key() is before, number
        assert not any(config.read(n) for n in ("enable_x64", "debug_nans", "debug_purity"))
        assert not is_collecting()
        number += 1
    assert number > 8


def test_an_interrupt_during_update_leaves_the_key_and_the_values_in_agreement():
    number = 1
    while interrupt_at_line(number, lambda: config.update("jax_enable_x64", True)):
        assert config.trace_key()[0] == config.enable_x64.value
        config.update("jax_enable_x64", False)
        number += 1
    config.update("jax_enable_x64", False)


@pytest.mark.parametrize("prefix", ["JAX_", "MINIJAX_"])
def test_the_environment_sets_flags(prefix):
    texts = {"enable_x64": "True", "debug_nans": "1", "debug_infs": "on", "disable_jit": "0",
             "enable_compilation_cache": "False", "log_compiles": ""}
    program = f"print([config.read('jax_' + name) for name in {list(texts)}])"
    environment = {prefix + name.upper(): text for name, text in texts.items()}
    assert in_new_process(program, **environment) == "[True, True, True, False, False, False]"


def test_our_own_prefix_goes_before_jaxs():
    program = "print(config.jax_numpy_rank_promotion)"
    both = {"JAX_NUMPY_RANK_PROMOTION": "warn", "MINIJAX_NUMPY_RANK_PROMOTION": "raise"}
    assert in_new_process(program, **both) == "raise"


@pytest.mark.parametrize("variable, text", [
    ("JAX_ENABLE_X64", "maybe"), ("MINIJAX_NUMPY_RANK_PROMOTION", "loud"),
    ("JAX_RANDOM_SEED_OFFSET", "x")])
def test_a_bad_value_in_the_environment_stops_the_import_and_names_the_variable(variable, text):
    said = in_new_process("", **{variable: text})
    assert f"The environment variable {variable} takes" in said and repr(text) in said


def test_one_variable_starts_with_every_check_on():
    program = "print(config.jax_debug_nans, config.jax_debug_purity, config.jax_enable_x64)"
    assert in_new_process(program, MINIJAX_SHARP_BITS="1") == "True True False"


FAKE_ABSL = """
import sys, types
class Flag:
    value = None
class Values(dict):
    def __call__(self, argv, known_only=False):
        for word in argv[1:]:
            name, _, value = word.lstrip("-").partition("=")
            self[name].value = value or "true"
absl = types.ModuleType("absl")
flags = types.ModuleType("absl.flags")
flags.FLAGS = Values()
flags.DEFINE_bool = flags.DEFINE_string = lambda name, *_: flags.FLAGS.__setitem__(name, Flag())
app = types.ModuleType("absl.app")
waiting = []
app.call_after_init = waiting.append
sys.modules.update({"absl": absl, "absl.flags": flags, "absl.app": app})
"""


def test_the_command_line_is_read_through_absl():
    program = FAKE_ABSL + (
        "config.parse_flags_with_absl()\n"
        "print(config.jax_enable_x64, config.jax_numpy_rank_promotion, config.jax_debug_nans)")
    arguments = ["--jax_enable_x64", "--jax_numpy_rank_promotion=warn", "--other=3"]
    assert in_new_process(program, arguments) == "True warn False"
    arguments = ["--minijax_debug_nans=on", "--jax_enable_x64=0", "--minijax_enable_x64=1"]
    assert in_new_process(program, arguments) == "True allow True"


def test_flags_declared_to_absl_are_taken_over_once_it_has_parsed():
    program = FAKE_ABSL + (
        "config.config_with_absl()\n"
        "flags.FLAGS(sys.argv)\n"
        "waiting[0]()\n"
        "print(config.jax_debug_infs)")
    assert in_new_process(program, ["--jax_debug_infs=True"]) == "True"


def test_without_absl_the_error_names_it_and_the_other_ways():
    program = "import sys; sys.modules['absl'] = None\nconfig.parse_flags_with_absl()"
    said = in_new_process(program)
    assert "ImportError" in said and "absl" in said and "config.update" in said


def test_a_flag_that_jax_gives_as_a_context_manager_is_one_here():
    flags = [name.removeprefix("jax_") for name in config.names()]
    public = [name for name in flags if hasattr(jax, name) or (
        name.startswith("debug_") and "changes nothing" not in config.flags[name].__doc__)]
    assert len(public) > 15
    public.remove("disable_jit")  # in JAX a function, whose parameter has a name
    for name in public:
        assert getattr(minijax, name) is getattr(config, name)
    assert minijax.checking_leaks is config.check_tracer_leaks


def test_every_flag_says_what_it_means():
    for name in config.names():
        flag = getattr(config, name.removeprefix("jax_"))
        assert flag.name == name.removeprefix("jax_") and len(flag.__doc__) > 30
        assert flag.check(flag.default) == flag.default


def test_x64_enabled_says_which_width_holds_here():
    for lib in (minijax, jax):
        assert lib.config.x64_enabled is False
        with lib.enable_x64(True):
            assert lib.config.x64_enabled is True


@pytest.mark.parametrize("place", ["the object", "the module"])
def test_flags_are_read_and_not_assigned(place):
    where = minijax.config if place == "the object" else importlib.import_module("minijax.config")
    assert where.jax_enable_x64 is minijax.config.enable_x64.value
    assert where.use_simplified_jaxpr_constants.value is False
    with pytest.raises(AttributeError, match="Flags are not assigned"):
        where.jax_enable_x64 = True
    with pytest.raises(AttributeError):
        where.no_such_flag  # noqa: B018
