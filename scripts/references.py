"""References of docstrings as Markdown: ``[1]_`` in the text, and the works that ``.. [1]`` lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

MARK = re.compile(r"\[(\d+)\]_")
WORK = re.compile(r"^\.\. \[(\d+)\] ", re.MULTILINE)


class References(griffe.Extension):
    """Rewrites the docstring of every object before it is parsed."""

    def on_instance(self, *, obj: Any, **options: Any) -> None:
        """One object was read."""
        if obj.docstring is not None:
            obj.docstring.value = plain_marks(obj.docstring.value)


def plain_marks(text: str) -> str:
    """The same with marks that Markdown shows as they are, and works as a list; brackets alone may begin a formula.

    Examples
    --------
    >>> plain_marks("As in [1]_.")
    'As in &#91;1&#93;.'
    """
    return MARK.sub(r"&#91;\1&#93;", WORK.sub(r"- &#91;\1&#93; ", text))
