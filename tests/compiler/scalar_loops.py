"""Machine code without vectors: what code in vectors is compared with, bit for bit."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from minijax.compiler import function_text, loop_unrolling


@contextmanager
def scalar_loops() -> Iterator[None]:
    """Meanwhile no loop is printed in vectors, and lanes of sums are in memory."""
    with mock.patch.object(function_text, "lanes_in", lambda *_: 0), mock.patch.object(
            function_text, "pays", lambda *_: False), mock.patch.object(
            loop_unrolling, "lanes_in", lambda *_: 0):
        yield
