"""Whether a promotion is the user's own: promotion flags do not apply inside the package.

Builds on `tracebacks`; loaded when such a flag is set.  Chapter 20, *Precision*.
In JAX: its functions allow what they need, each by itself.
"""

import os
import sys
from types import FrameType

from minijax.util import tracebacks

# The names of the package's functions that wrap a public function or an operator.
_WRAPPERS = ("boundary", "of_one", "of_two", "of_arrays", "of_operands", "on_device",
             "__call__", "_checked")
# Folders and files of transformations, which call the functions that users pass to them.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PASSING = tuple(os.path.join(_PACKAGE, *place.split("/")) for place in (
    "control_flow/", "core/", "custom/", "placement/", "transforms/", "util/",
    "extend/vmappable.py", "experimental/sparse/transform.py"))


def is_asked_by_user() -> bool:
    """Whether a promotion happens in a public function that the user called, or passed to a
    transformation, and not in a public function that the package itself calls.

    The stack decides: between a wrapper and the user's frame there is no other frame of the
    package, except of transformations.

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
