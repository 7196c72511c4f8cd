"""Mistakes to be planted in the planner: generated programs must find each of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager

MISTAKES: dict[str, Callable[[], AbstractContextManager]] = {}
