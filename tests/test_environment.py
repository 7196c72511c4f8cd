"""pyproject.toml, environment.yml and the files around them say the same."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Left out of environment.yml: wheels of NVIDIA's; libraries that only tests run on minijax.
CONDA_EXTRAS = ["course", "book", "dev"]


def normalized(requirement):
    """(name, bound) of a requirement; `-`, `_` and `.` mean the same in a name."""
    pattern = r"([A-Za-z0-9_.-]+?)(?:\[\w+\])?\s*([<>=!~].*)?"
    name, bound = re.fullmatch(pattern, requirement.partition(";")[0]).groups()
    return re.sub(r"[-_.]+", "-", name).lower(), (bound or "").replace(" ", "")


def conda_requirements():
    """The packages of environment.yml: the lines of its one flat list."""
    text = (ROOT / "environment.yml").read_text()
    listed = text.split("dependencies:")[1]
    return [line[4:].strip() for line in listed.splitlines() if re.match(r"  - [^:]*$", line)]


def test_conda_environment_is_the_one_of_pyproject():
    wanted = [*PROJECT["dependencies"], *sum((EXTRAS[extra] for extra in CONDA_EXTRAS), [])]
    wanted = {normalized(requirement) for requirement in wanted}
    wanted |= {("python", PROJECT["requires-python"]), ("pip", "")}
    assert {normalized(requirement) for requirement in conda_requirements()} == wanted


def test_no_package_is_listed_twice():
    names = [normalized(requirement)[0] for requirement in conda_requirements()]
    assert len(names) == len(set(names))


def test_extras_are_those_that_the_readme_names():
    assert sorted(EXTRAS) == ["assembler", "book", "course", "cuda", "dev", "libraries", "live",
                              "mpi", "numba-cuda"]


def test_runtime_needs_four_packages():
    names = {normalized(requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == {"numpy", "ml-dtypes", "numba", "scipy"}


@pytest.mark.parametrize("requirement", sum(EXTRAS.values(), PROJECT["dependencies"]))
def test_every_requirement_has_a_bound(requirement):
    name, bound = normalized(requirement)
    exact = name.startswith(("jax", "jupyterlite")) or requirement in EXTRAS["libraries"]
    assert re.fullmatch(r"==[\d.]+(dev\d)?" if exact else r">=[\d.]+", bound)


def test_oracle_is_the_version_that_is_installed():
    import jax

    assert ("jax", f"=={jax.__version__}") in map(normalized, EXTRAS["dev"])


def test_the_package_knows_its_version():
    import minijax

    assert minijax.__version__ == PROJECT["version"]


def test_license_is_apache_and_whole():
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text


def test_make_has_the_targets_that_the_readme_names():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_ci_runs_make_test():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, "the script must be executable"
    assert "set -euo pipefail" in script.read_text() and "make test" in script.read_text()
