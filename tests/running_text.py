"""The text of a kernel, run as Python: what its loops mean, in NumPy."""

import re

import numpy as np

from minijax.lowering.loops import Call, Kernel, walk
from minijax.lowering.text import kernel_text
from minijax.lowering.text_names import runtime


def run_text(kernel: Kernel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Run the text of a kernel; returns the outputs.

    Raises:
      RuntimeError: where a check of the kernel fails.
    """
    text = kernel_text(kernel)
    namespace = runtime(s.external for s in walk(kernel.body) if isinstance(s, Call))
    exec(compile(text, f"<minijax {kernel.name}>", "exec"), namespace)
    function = namespace[re.match(r"def (\w+)", text)[1]]
    outputs = [np.zeros(buffer.shape, buffer.dtype) for buffer in kernel.outputs]
    with np.errstate(all="ignore"):
        status = function(*inputs, *outputs, *[buffer.value for buffer in kernel.constants])
    if status:
        raise RuntimeError(f"{kernel.name}: check {status} failed")
    return outputs
