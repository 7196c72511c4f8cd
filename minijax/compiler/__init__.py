"""From a program to loops, to text and to machine code: `lowered.py` has the stages in their order.

Nothing is imported here: a block may need one formula of this folder, and no compiler.
"""
