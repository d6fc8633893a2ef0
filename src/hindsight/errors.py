"""Exceptions, whose messages say where the error is and what to do."""


class RowError(ValueError):
    """A row that cannot be played. `row` is its index in the call, from 0."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(f"row {row}{message}")
        self.row, self.message = row, message


class MismatchError(ValueError):
    """The rows are not those the model was trained on."""


class ModelError(ValueError):
    """A model file or a checkpoint that cannot be read or written. The message names it and says what is wrong."""


class NewLabelError(ValueError):
    """A label that was not among the two of the first chunk; `label` is the label."""

    def __init__(self, message: str, label: str = "") -> None:
        super().__init__(message)
        self.label = label


class SourceError(ValueError):
    """Data that cannot be read.

    The message is one line that says where (the file, the row or line, the column), what is wrong, and the value seen.

    Examples
    --------
    >>> from hindsight import open_source
    >>> next(open_source([{"x": "a", "y": 1}], "y").chunks())
    Traceback (most recent call last):
        ...
    hindsight.errors.SourceError: data, row 0, column 'x': 'a' is not a number (row: "{'x': 'a', 'y': 1}")
    """


class NoRowsError(SourceError):
    """Data without a single row."""


class DisprovedError(SourceError):
    """A row that contradicts what was inferred about its column from the first rows."""


class AssumptionWarning(UserWarning):
    """The data so far violates an assumption of the theorem or the geometry."""


class OptionError(ValueError):
    """An invalid option, or one that is incompatible with the others; the command spells its name ``--name``.

    Parameters
    ----------
    option : str
        The name of the option.
    message : str
        What is wrong with it; the message of the error is the name followed by this text.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option} {message}")
        self.option = option
