"""What the benchmarks have in common: options, means, and where tables and pictures are kept."""

import argparse
import json
import math
import os
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "build" / "bench"
CAP = 4.0  # in the second mean, no single row carries the rest


def options(what: str) -> argparse.Namespace:
    """Words that a row's name must hold one of, and whether few repetitions will do."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("words", nargs="*", help="only rows whose name holds one of these")
    parser.add_argument("--quick", action="store_true", help="few repetitions, and their minima")
    return parser.parse_args()


def chosen(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean of factors; nan of none."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def print_means(ratios: list[float], width: int) -> None:
    """Both means, at the right of a table."""
    print(f"{'geometric mean':{width}}{geometric_mean(ratios):8.2f}")
    print(f"{f'… with each row at most {CAP:.0f}':{width}}"
          f"{geometric_mean(min(ratio, CAP) for ratio in ratios):8.2f}")


def save(name: str, results: Any, picture: str) -> None:
    """Keep a benchmark's numbers and its picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
    where = os.path.relpath(FOLDER)
    print(f"numbers: {where}/{name}.json   picture: {where}/{name}.svg")
