"""Compiled parsers of text: numbers, names, CSV, svmlight and Vowpal Wabbit lines.

A block of text is a uint8 array with at least PAD zero bytes after its `end`, so that eight bytes can be read at once
from any position. A parser takes whole rows from it and says where it stopped. It never judges what is not plain: such
fields are listed by position (`deferred`) and left to Python, so every number equals Python's `float` of the same text,
bit for bit. Everything also runs as plain Python, where each index is checked (`NUMBA_DISABLE_JIT=1`).
"""

from .bits import PAD, QUOTE
from .json_lines import parse_number_lines
from .lookups import HashLookup, IndexLookup, NameLookup, column_of_name, rehash
from .numbers import parse_any_number
from .records import BAD, DEFERRED, DONE, LINE, NO_ROOM, NO_SPACE, ROWS, SHORT, STATUS, STOP, WIDTH
from .sorting import sort_and_sum
from .sparse import (
    BAD_SCALE,
    IMPORTANCE,
    INDEX_TOO_HIGH,
    INDEX_TOO_LOW,
    INITIAL_PREDICTION,
    LABEL,
    NO_BAR,
    NO_NAME,
    NO_NAMESPACE,
    NOT_A_PAIR,
    NOT_ASCENDING,
    REPEATED_INDEX,
    SparseRows,
    parse_sparse,
)
from .svmlight import SvmlightGrammar
from .table import (
    AFTER_QUOTE,
    CATEGORY,
    FEATURE,
    IGNORE,
    OPEN_QUOTE,
    TARGET,
    TEXT,
    WEIGHT,
    parse_table,
)
from .vowpal_wabbit import VowpalWabbitGrammar

__all__ = [
    "AFTER_QUOTE", "BAD", "BAD_SCALE", "CATEGORY", "DEFERRED", "DONE", "FEATURE", "IGNORE", "IMPORTANCE",
    "INDEX_TOO_HIGH",
    "INDEX_TOO_LOW", "INITIAL_PREDICTION", "LABEL", "LINE", "NOT_ASCENDING", "NOT_A_PAIR", "NO_BAR", "NO_NAME",
    "NO_NAMESPACE", "NO_ROOM", "NO_SPACE", "OPEN_QUOTE", "PAD", "QUOTE", "REPEATED_INDEX", "ROWS", "SHORT",
    "STATUS", "STOP",
    "TARGET", "TEXT",
    "WEIGHT", "WIDTH", "HashLookup", "IndexLookup", "NameLookup", "SparseRows", "SvmlightGrammar",
    "VowpalWabbitGrammar", "column_of_name", "parse_any_number", "parse_number_lines", "parse_sparse", "parse_table",
    "rehash", "sort_and_sum",
]  # fmt: skip
