"""The exercises of the course, one file for each chapter; every file here is found by itself.

Builds on `minijax.notebook.checks`.  It holds the solutions, too: look there last.
"""

import importlib
import pkgutil

from minijax.errors import count_as_internal

count_as_internal(__path__[0])  # of an error it is the reader's line that counts, not a grader's
for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
