"""Compiled parsers of text: numbers, names, CSV, svmlight and Vowpal Wabbit lines.

A block of text is a uint8 array with at least PAD zero bytes after its `end`, so that eight bytes can be read at once
from any position. A parser consumes whole rows and returns where it stopped. Fields that are not plain numbers are
listed by position (`deferred`) and left to Python, so every number equals Python's `float` of the same text, bit for
bit. With `NUMBA_DISABLE_JIT=1` everything runs as plain Python, which checks each index.
"""
