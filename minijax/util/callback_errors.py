"""The error of a program in which a callback has raised one.

Builds on `errors`.  Chapter 21, *The errors, one by one*.
In JAX: jaxlib's callbacks, which put the traceback into the message.
"""

import traceback

from minijax import errors


def raised_by_callback(error: BaseException) -> BaseException:
    """Return the error of a program in which a callback has raised an error.

    A finding of a check, or an interrupt, is returned unchanged.

    >>> told = raised_by_callback(KeyError("boom"))
    >>> print(told)
    INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):
    KeyError: 'boom'
    """
    if hasattr(error, "finding") or not isinstance(error, Exception):
        return error
    places = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
              for frame in traceback.extract_tb(error.__traceback__)
              if not errors.is_internal(frame.filename)]
    shown = traceback.TracebackException(type(error), error, None)
    shown.__notes__ = None  # the notes stay with the cause
    told = errors.JaxRuntimeError("\n".join([
        "INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):",
        *places, "".join(shown.format_exception_only()).strip()]))
    told.__cause__ = error
    return told
