"""Films and stages are worked by keys alone, in a Chromium, where there is one."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook import explain, step, widgets

BOOK = Path(__file__).parents[2] / "book"


def film_of(kind: str) -> Any:
    """A small film of each kind: with and without choices, of two frames and of many."""
    return {
        "step": lambda: step(lambda x: jax.jvp(lambda y: jnp.sin(y) * y, (x,), (1.0,)), 0.5),
        "tangent": lambda: widgets.tangent(jnp.sin, -1.0, 1.0, places=5),
        "confusion": widgets.confusion,
        "keys": widgets.keys,
        "lattice": widgets.lattice,
        "reverse": lambda: widgets.reverse(lambda x: jnp.sin(x) * x, 0.5),
        "checkpointing": widgets.checkpointing,
    }[kind]()


def module_of_the_book(name):
    """One of the scripts in book/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, BOOK / f"{name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def keyboard():
    return module_of_the_book("keyboard")


@pytest.fixture(scope="module")
def tab(keyboard):
    pytest.importorskip("websocket", reason="needs websocket-client, which comes with Jupyter")
    check = module_of_the_book("check")
    if not (executable := check.chromium()):
        pytest.skip("needs a Chromium; CHROMIUM may say where it is")
    with check.browser(executable) as tab:
        tab.resize(check.WIDE)
        yield tab


def opened(tab: Any, folder: Path, figure: str) -> str:
    """A page of a figure between two buttons is shown; what finds the figure there."""
    page = folder / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><button>a</button>{figure}"
                    "<button>b</button>")
    assert tab.open(page.as_uri()) == []
    return "document.querySelector('figure')"


@pytest.mark.parametrize("kind", ["step", "tangent", "confusion", "keys", "lattice", "reverse",
                                  "checkpointing"])
def test_a_film_is_worked_by_keys_alone(keyboard, tab, tmp_path, kind):
    figure = opened(tab, tmp_path, film_of(kind)._repr_html_())
    assert [*keyboard.film(tab, figure)] == []


def stages() -> str:
    return explain(lambda x: jnp.sin(x) * 2.0 + 1.0, jnp.ones(8)).html


def test_the_stages_of_a_function_are_worked_by_keys_alone(keyboard, tab, tmp_path):
    figure = opened(tab, tmp_path, stages())
    assert [*keyboard.stages(tab, figure)] == []


# The theme of the book takes `pre` elements that need no scrolling out of the order of Tab.
def test_stages_stay_in_the_order_of_tab_under_the_theme_of_the_book(keyboard, tab, tmp_path):
    figure = opened(tab, tmp_path, stages())
    tab.run("document.querySelectorAll('pre').forEach(pre => { pre.tabIndex = "
            "pre.scrollWidth > pre.clientWidth || pre.scrollHeight > pre.clientHeight ? 0 : -1 })")
    assert [*keyboard.stages(tab, figure)] == []


@pytest.mark.parametrize("old, new, complaint", [
    ("slider.value = place;", "slider.value = place; slider.tabIndex = -1;", "Tab reaches"),
    ("slider.max = last;", "slider.max = last; slider.style.outline = 'none';", "not seen"),
    ('controls.role = "group";', 'controls.role = "group"; slider.onkeydown = event => '
     'event.key !== "Tab" || event.shiftKey || event.preventDefault();', "does not lead out"),
    ('matchMedia("(prefers-reduced-motion: reduce)").matches', "false", "less motion"),
    ("stop(); show(place - 1);", "stop(); show(place - 2);", "the button back"),
    ("forth.ariaDisabled = place === last", "forth.disabled = place === last", "loses the focus"),
    ("oninput: () => { stop(); show(+slider.value); }", "oninput: () => {}", "after 1 steps"),
    ("caption.innerHTML = words;", "caption.innerHTML ||= words;", "step 2 says"),
    ('parts.join("")', '""', "no step changes"),
    ("timer ? stop() : run()", "run()", "does not stop"),
])
def test_what_a_film_does_not_do_by_keys_is_found(keyboard, tab, tmp_path, old, new, complaint):
    page = film_of("tangent")._repr_html_()
    assert old in page
    figure = opened(tab, tmp_path, page.replace(old, new))
    assert any(complaint in said for said in keyboard.film(tab, figure))
