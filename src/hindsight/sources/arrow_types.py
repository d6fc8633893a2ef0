"""Which Arrow types hold numbers, text or labels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

PANDAS_INDEX = re.compile(r"^__index_level_\d+__$")  # the column in which pandas keeps an index without a name
VIEW = np.dtype((np.uint64, 2))  # a view of text


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


def validated(batch: Any) -> Any:
    """The batch, once its offsets, lengths and text are validated, with text instead of views of text."""
    import pyarrow as pa

    batch.validate(full=True)
    for k, field in enumerate(batch.schema):
        kind, column = field.type, batch.column(k)
        if pa.types.is_string_view(kind):
            batch = batch.set_column(k, field.name, without_views(column))
        elif pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
            plain = pa.DictionaryArray.from_arrays(column.indices, without_views(column.dictionary))
            batch = batch.set_column(k, field.name, plain)
    return batch


def without_views(column: Any) -> Any:
    """Views of text as text. A cast would also read the views of missing values, which are never validated."""
    import pyarrow as pa
    import pyarrow.compute as pc

    there, (_, views, *texts) = column.is_valid(), column.buffers()
    entries = (
        np.frombuffer(views, VIEW, len(column), column.offset * VIEW.itemsize) if len(column) else np.empty(0, VIEW)
    )
    shown = np.where(np.asarray(there)[:, None], entries, 0)
    whole = pa.Array.from_buffers(column.type, len(column), [None, pa.py_buffer(shown), *texts])
    return pc.if_else(there, whole.cast(pa.string()), None)
