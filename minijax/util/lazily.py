"""What is made when first asked for, among threads and forks: attributes, modules.

Stands on nothing.  Chapter 26, *Threads, caches and dispatch*.
JAX uses `functools.cached_property`, and imports everything at once.
"""

import functools
import os
import sys
import threading
from typing import Any, TypeVar

T = TypeVar("T")


def hold_over_forks(*locks: Any) -> None:
    """Let no process fork while another thread holds one of the locks; a child finds them free.

    Before a fork they are taken from the last to the first, those of earlier calls after them. No
    step is made of Python, where a signal could interrupt it.
    """
    if hasattr(os, "register_at_fork"):
        for lock in locks:
            os.register_at_fork(before=lock.acquire, after_in_parent=lock.release,
                                after_in_child=lock._at_fork_reinit)


# Held while a part of the package is imported: a child forked meanwhile would wait for ever for
# the module that a thread of its parent was importing.
importing = threading.RLock()
hold_over_forks(importing)


class cached_property(functools.cached_property[T]):
    """`functools.cached_property` without the lock that Python 3.11 holds while it computes.

    That lock is one for all instances: no two threads would compile at a time, and a process
    forked meanwhile would wait for ever. Here threads that meet compute the same value twice.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self):
    ...         return "computed"
    >>> Circle().area
    'computed'
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.attrname] = self.func(instance)
        return value


class LastResort:
    """Comes when nobody found a module: says of those of JAX's that are not built what to do."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.startswith("minijax."):
            with importing:
                from minijax.util import absent
            if said := absent.sentence(fullname):
                raise ImportError(said, name=fullname)


sys.meta_path.append(LastResort)
