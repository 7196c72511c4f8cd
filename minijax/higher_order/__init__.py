"""Primitives whose operands are functions or programs."""
