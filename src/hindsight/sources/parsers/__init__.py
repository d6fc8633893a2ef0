"""Compiled parsers of text: numbers, names, CSV, svmlight and Vowpal Wabbit lines.

A block of text is a uint8 array with at least PAD zero bytes after its `end`, so that eight bytes can be read at once
from any position. A parser takes whole rows from it and says where it stopped. It never judges what is not plain: such
fields are listed by position (`deferred`) and left to Python, so every number equals Python's `float` of the same text,
bit for bit. Everything also runs as plain Python, where each index is checked (`NUMBA_DISABLE_JIT=1`).
"""
