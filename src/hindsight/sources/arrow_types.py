"""Which Arrow types hold numbers, text or labels."""

from __future__ import annotations

import re
from typing import Any

PANDAS_INDEX = re.compile(r"^__index_level_\d+__$")  # the column in which pandas keeps an index without a name


def is_number(kind: Any) -> bool:
    """Whether values of a type are numbers."""
    from pyarrow import types

    return is_plain_number(kind) or bool(types.is_decimal(kind))


def is_plain_number(kind: Any) -> bool:
    """Whether values of a type are numbers or booleans, but not decimals."""
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def is_text(kind: Any) -> bool:
    """Whether values of a type are text, or all missing."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    view = getattr(types, "is_string_view", lambda kind: False)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind) or view(kind))


def label_type_of(kind: Any) -> str | None:
    """The label type for an Arrow type; None for decimals, which are kept as written."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return label_type_of(kind.value_type)
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind):
        return "integer" if types.is_integer(kind) else "float"
    return None if types.is_decimal(kind) else "text"
