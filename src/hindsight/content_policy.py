"""Content security policy of HTML pages: only their own scripts run, and nothing is loaded or sent.

So names in the data that contain markup can do no harm.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def policy_tag(scripts: Sequence[str] = (), styles: Sequence[str] = ()) -> str:
    """Return the tag for the head of a page that allows these scripts and style sheets, and nothing else.

    Parameters
    ----------
    scripts, styles : sequence of str
        The exact text of each script or style sheet between its tags.

    Returns
    -------
    str
        A meta tag, which must come before the scripts and style sheets.

    Examples
    --------
    >>> policy_tag().split("; ")[1]
    "script-src 'none'"
    """
    rules = (
        "default-src 'none'",
        f"script-src {hashes(scripts)}",
        f"style-src-elem {hashes(styles)}",
        "style-src-attr 'unsafe-inline'",  # such attributes run nothing, and hold nothing that comes from data
        "base-uri 'none'",
        "form-action 'none'",
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def hashes(texts: Sequence[str]) -> str:
    """The hashes of texts as sources in a content security policy."""
    each = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{value}'" for value in each) or "'none'"
