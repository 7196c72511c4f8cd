"""The compiler: from jaxprs to loops, text and machine code. `lowered.py` has the stages in order.

Nothing is imported here: blocks of primitives import formulas without the compiler.
"""
