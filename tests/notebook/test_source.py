"""Where definitions stand, and their text."""

import ast
import inspect

import pytest

import minijax.core
import minijax.core.jvp
from minijax.notebook import source


def test_a_definition_is_found_letter_by_letter() -> None:
    found = source.find("minijax.core.jvp.JVPTrace")
    assert found.text + "\n" == inspect.getsource(minijax.core.jvp.JVPTrace)
    assert (found.owner, found.short) == ("minijax.core.jvp", "JVPTrace")


def test_a_method_stands_without_its_indentation() -> None:
    text = source.find("minijax.core.primitive.Primitive.bind").text
    assert text.startswith("def bind(self, *args: Any, **params: Any) -> Any:\n    ")
    assert ast.parse(text)


def test_of_a_docstring_a_cell_has_the_first_line() -> None:
    text = source.cell_text(["minijax.core.conversion.as_value"])
    assert "Raises:" in source.find("minijax.core.conversion.as_value").text
    assert "Raises:" not in text
    whole = inspect.getdoc(minijax.core.conversion.as_value)
    assert ast.get_docstring(ast.parse(text).body[0]) == whole.partition("\n")[0]


def test_decorators_and_the_comment_that_touches_it_belong_to_a_definition() -> None:
    lines = source.find("minijax.core.conversion._scalar_array").text.splitlines()
    assert lines[0].startswith("# Scalars are converted")
    assert lines[1].startswith("@caches.remembered")


def test_a_ruled_heading_does_not_belong_to_what_follows() -> None:
    assert source.find("minijax.core.types.ShapedArray").text.startswith("class ShapedArray")


def test_a_block_is_found_under_the_primitive_and_under_its_function() -> None:
    text = source.find("minijax.primitives.algebra.sub_p").text
    assert text == source.find("minijax.primitives.algebra.sub").text
    assert text.startswith("sub_p, sub = binary(")


def test_neighbours_of_one_name_are_one_definition() -> None:
    text = """
@property
def f(self): ...
@f.setter
def f(self, x): ...
def g(self): ...
"""
    found = source._defining(ast.parse(text).body, "f")
    assert [ast.unparse(node).partition("def ")[2] for node in found] == [
        "f(self):\n    ...", "f(self, x):\n    ..."]


@pytest.mark.parametrize("name", [
    "minijax.core.nothing", "minijax.core.primitive.Primitive.nothing", "minijax.core",
    "minijax.nowhere.f"])
def test_an_unknown_name_is_an_error_that_says_which(name: str) -> None:
    with pytest.raises(LookupError, match=name.split(".")[1]):
        source.find(name)


def test_a_name_that_a_module_only_imports_is_sought_at_home() -> None:
    with pytest.raises(LookupError, match="minijax.core.types does not define Any; typing does"):
        source.find("minijax.core.types.Any")


def test_a_cell_may_hold_neighbours_with_the_lines_between_them() -> None:
    text = source.cell_text(["minijax.core.types.Zero", ".Undefined"])
    whole = inspect.getsource(minijax.core.types)
    assert text in whole and text.count("class ") == 2


def test_the_definitions_of_a_cell_have_one_home() -> None:
    with pytest.raises(LookupError, match="one module or class"):
        source.cell_text(["minijax.core.types.Zero", "minijax.core.primitive.Primitive.bind"])


def test_a_long_class_is_to_be_shown_method_by_method() -> None:
    names = [definition.name for definition in source.definitions("minijax.core.primitive")]
    assert "minijax.core.primitive.Primitive.bind" in names
    assert "minijax.core.primitive.Primitive" not in names
    names = [definition.name for definition in source.definitions("minijax.core.trace")]
    assert "minijax.core.trace.EvalTrace" in names and "minijax.core.trace.run_with" in names
    assert len(names) == len(set(names))
