"""`hindsight echo`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..training.options import option
from .application import verb
from .text import check_chart, print_lines, print_title, status_of, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..echo import Cancelled

SOUND = "one channel of 16-bit or floating-point samples, 8 to 48 kHz"


@dataclass(frozen=True)
class EchoOptions:
    """Which signals, the filter, and what is written."""

    far: str = option(f"What the loudspeaker played: {SOUND}.", argument=True, metavar="FAR.wav")
    mic: str = option("What the microphone heard meanwhile.", argument=True, metavar="MIC.wav")
    out: str = option("Where to write what is left of it.", "--out", "-o", default=..., metavar="CLEAN.wav")
    taps: int = option("Length of the filter in samples: how long an echo is cancelled.", default=512)
    kind: str = option(
        "kalman holds through near-end talk; nlms learns faster, and has a certificate.", "--filter", default="kalman"
    )
    eta: float | None = option("Learning rate of nlms, above 0.  [10 over the mean |x|² of the far end]")
    as_float: bool = option(
        "Write 32-bit floating-point samples, whatever the microphone's are.", "--float", default=False
    )
    certify: bool = option("Print the certificate of nlms: takes far longer than the run.", "--certify", default=False)
    chart: str | None = option("Draw a chart: a path that ends in .png, .svg or .html.", metavar="PICTURE")
    as_json: bool = option("Print the result as JSON instead of text.", "--json", default=False)


@verb()
def echo(how: EchoOptions) -> int:
    """Cancel the echo of the far end in a microphone's signal, and say how much was cancelled when.

    A filter predicts each sample of the microphone from the far end's last samples, before it learns from it; the
    prediction, which is the echo, is subtracted. Near-end talk stays.
    """
    import numpy as np

    from .. import charts
    from ..echo import wav
    from ..training.outputs import check_outputs

    check_outputs({"out": how.out, "chart": how.chart}, how.far, how.mic)
    check_chart(how.chart)
    if how.certify and how.kind != "nlms":
        raise OptionError("certify", "is for --filter nlms: there is no theorem for the Kalman filter")
    found = cancelled(how)
    samples = np.dtype(np.float32) if how.as_float else found.mic.dtype.newbyteorder("=")
    over = wav.write(how.out, found.rate, found.clean, samples)
    if how.chart is not None:
        charts.save(charts.styled(charts.echo(found)), how.chart)
    certificate = found.certify() if how.certify else None
    if how.as_json:
        more: dict[str, Any] = {"file": how.mic, "saturated": over}
        more["certificate"] = None if certificate is None else certificate.to_dict()
        print(json.dumps(found.to_dict() | more, ensure_ascii=False))
    else:
        print_title(how.mic, f"{found.duration:,.2f} s at {found.rate:,} Hz")
        files = (f"  {line}" for line in written(clean=how.out, chart=how.chart))
        print_lines([*attenuation_lines(found), *saturated(over), *files])
        if certificate is not None:
            print_lines(["", *certificate.lines()])
    return status_of(certificate)


def cancelled(how: EchoOptions) -> Cancelled:
    """Read both files and cancel the echo; an error names the file."""
    from ..echo import cancel, wav
    from ..echo.result import FILTERS

    far, mic, eta = how.far, how.mic, how.eta
    rate, x = wav.read(far)
    other, y = wav.read(mic)
    if rate != other:
        raise ValueError(f"{far} has {rate:,} samples per second, but {mic} has {other:,}: resample one of them")
    if x.size != y.size:
        raise ValueError(f"{far} has {x.size:,} samples, but {mic} has {y.size:,}: cut them to the same length")
    if how.taps < 1:
        raise OptionError("taps", f"must be at least 1, got {how.taps}")
    if how.kind not in FILTERS:
        raise OptionError("filter", f"must be one of {', '.join(FILTERS)}; got {how.kind}")
    if eta is not None and how.kind != "nlms":
        raise OptionError("eta", "is for --filter nlms: the Kalman filter chooses its steps")
    if eta is not None and not 0.0 < eta < float("inf"):
        raise OptionError("eta", f"must be a number above 0, got {eta}")
    try:
        return cancel(x, y, rate, taps=how.taps, filter=how.kind, eta=eta)
    except ValueError as error:
        text = str(error)
        for name, path in (("far", far), ("mic", mic)):
            if text.startswith((f"{name},", f"{name} ")):
                raise ValueError(path + text.removeprefix(name)) from None
        raise


def attenuation_lines(found: Cancelled) -> Iterator[str]:
    """The attenuation over time, and the speed."""
    taps = found.canceller.taps
    yield f"  {taps:,} taps ({1000.0 * taps / found.rate:.3g} ms), {found.canceller.setting}"
    edges = [t for t in (0.0, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0) if t < found.duration]
    for start, end in zip(edges, [*edges[1:], found.duration], strict=True):
        yield f"  {start:6.2f} to {end:6.2f} s: echo return loss enhancement {found.erle_between(start, end):6.2f} dB"
    yield f"  {found.seconds:.3f} s, {found.real_time_factor:,.1f} times faster than real time"


def saturated(over: int) -> list[str]:
    """A warning if samples were clipped."""
    if not over:
        return []
    return [f"  warning: {over:,} samples did not fit into 16 bits and were saturated; --float keeps them as they are"]
