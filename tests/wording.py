"""Messages as they are compared: JAX lists some words in an order that depends on addresses."""

import re


def wording(message: object) -> str:
    """The text of an error, in which kinds of dtypes are listed in the order of the alphabet.

    From Python 3.13 on a line of a program that is given to `python -c` has a text.
    """
    message = str(message).replace(": import sys;exec(eval(sys.stdin.readline()))", "")
    return re.sub(r"(?<=subtypes of )[\w, ]+(?=\.)|(?<=of the types )[\w, ]+",
                  lambda kinds: ", ".join(sorted(kinds[0].split(", "))), message)
