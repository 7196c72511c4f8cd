"""Whether a promotion is the user's own: flags that forbid some concern no call of the package.

Builds on `tracebacks`; loaded when such a flag is set.  Chapter 20, *Precision*.
In JAX: its functions allow what they need, each by itself.
"""

import os
import sys
from types import FrameType

from minijax.util import tracebacks

# The innermost frames of the call of a public function: what wraps it.
_WRAPPERS = ("boundary", "of_one", "of_two", "of_arrays", "of_operands", "__call__", "_checked")
# What may call a function for the user, who has passed it.
_PASSING = tuple(os.path.abspath(os.path.join(__file__, "../..", folder)) + os.sep for folder in (
    "control_flow", "core", "custom", "placement", "transforms", "util"))


def is_asked_by_user() -> bool:
    """Whether what runs is part of the function that the user called or passed, of none inside it.

    What the user has forbidden is no law for the calls of the package.

    >>> is_asked_by_user(), tracebacks.api_boundary(is_asked_by_user)()
    (True, True)
    """
    frame: FrameType | None = sys._getframe(1)
    is_inside = False
    while frame is not None and not tracebacks.is_user_frame(frame):
        if frame.f_code.co_name in _WRAPPERS:
            is_inside = True
        elif is_inside and not frame.f_code.co_filename.startswith(_PASSING):
            return False
        frame = frame.f_back
    return True
