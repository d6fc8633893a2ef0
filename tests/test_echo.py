"""Echo cancellation: the same rule as Widrow-Hoff, how much it cancels, WAV files, and what is refused."""

import contextlib
import json
import struct
import sys
import tracemalloc
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy.io import wavfile
from typer.testing import CliRunner

from conftest import many
from hindsight import EGRegressor, WidrowHoffRegressor, charts, echo
from hindsight.cli import app
from hindsight.echo import wav
from hindsight.echo.canceller import samples
from hindsight.echo.result import FILTERS
from hindsight.errors import SourceError
from hindsight.kernels.rows import Dense, Spaced, Strided
from hindsight.rows.matrices import rows_of

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))


def signals(size=4000, taps=24, seed=0):
    """A far end, and a microphone that hears its echo and noise."""
    rng = np.random.default_rng(seed)
    far = 0.1 * rng.standard_normal(size)
    mic = np.convolve(far, rng.standard_normal(taps) * 0.8 ** np.arange(taps))[:size]
    return far, mic + 0.001 * rng.standard_normal(size)


def delay_line(far, taps):
    """The rows written out: the oldest sample first."""
    return np.ascontiguousarray(sliding_window_view(np.concatenate((np.zeros(taps - 1), far)), taps))


# ---------------------------------------------------------------- the rule


@pytest.mark.parametrize("taps", [1, 3, 24, 100])
def test_it_is_widrow_hoff_over_the_delay_line_bit_for_bit(taps):
    far, mic = signals()
    canceller = echo.EchoCanceller(taps, eta=2.0)
    clean = canceller.process(far, mic)
    model = WidrowHoffRegressor(2.0, "implicit", fit_intercept=False, keep_margins=True)
    model.fit(delay_line(far, taps), mic)
    assert (canceller.run.weights == model.coef_).all()
    assert (clean == mic - model.margins_).all()
    assert (canceller.room == model.coef_[::-1]).all()


def test_it_is_normalised_least_mean_squares():
    """With the regularisation 1/eta and the step 1, written out sample by sample."""
    far, mic = signals(1500)
    taps, eta = 24, 3.0
    w, left = np.zeros(taps), []
    for x, d in zip(delay_line(far, taps), mic, strict=True):
        e = d - w @ x
        left.append(e)
        w += e * x / (1.0 / eta + x @ x)
    np.testing.assert_allclose(echo.EchoCanceller(taps, eta).process(far, mic), left, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_the_size_of_blocks_changes_nothing(block):
    far, mic = signals(1500)
    whole, pieces = echo.EchoCanceller(24), echo.EchoCanceller(24)
    at_once = whole.process(far, mic)
    parts = [pieces.process(far[k : k + block], mic[k : k + block]) for k in range(0, far.size, block)]
    assert (np.concatenate(parts) == at_once).all()
    assert (pieces.room == whole.room).all() and pieces.samples == 1500
    assert pieces.process([], np.zeros(0)).size == 0


def test_rows_that_are_contiguous_each_are_read_in_place():
    X = np.random.default_rng(0).standard_normal((60, 12))
    views = [sliding_window_view(X.ravel(), 30), X[:, 2:7], X[::2], np.broadcast_to(X[3], (5, 12))]
    for view in views:
        rows = rows_of(view, 0.0)
        assert isinstance(rows, Spaced) and np.shares_memory(rows.memory, X)
        for t in range(len(view)):
            memory, first, size = rows.line(t)
            assert (memory[first : first + size] == view[t]).all()
    assert isinstance(rows_of(X, 0.0), Dense)
    for view in (X.T, X[:, ::2], X[::-1], X[:, ::-1]):
        assert isinstance(rows_of(view, 0.0), Strided)
    packed = np.zeros(60, [("a", np.int32), ("x", np.float64, 3)])["x"]  # 28 bytes apart: no whole number of values
    assert isinstance(rows_of(packed, 0.0), Dense)  # a copy
    for model, view in (
        (WidrowHoffRegressor, X[:, 2:7]),
        (WidrowHoffRegressor, X[::2]),
        *many([], [(EGRegressor, X[:, 2:7])]),  # a loop of its own
    ):
        y = np.linspace(-0.5, 0.5, len(view))
        one, other = (model(0.01).fit(rows, y) for rows in (view.copy(), view))
        assert (one.coef_ == other.coef_).all() and one.intercept_ == other.intercept_


def test_the_delay_line_is_not_copied():
    far, mic = signals(20_000)
    canceller = echo.EchoCanceller(512)
    canceller.process(far[:10], mic[:10])
    tracemalloc.start()
    canceller.process(far, mic)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * far.nbytes  # the rows written out would be 512 times as large


# ---------------------------------------------------------------- how much


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_and_speech_are_cancelled_within_two_seconds(seed):
    from echo import RATE, TAPS, noise_and_speech

    asked = {"white noise": 30.0, "speech-like": 20.0}
    for (name, (far, mic)), kind in product(noise_and_speech(seed).items(), FILTERS):
        until = 6 * RATE  # before anybody talks at the near end
        found = echo.cancel(far[:until], mic[:until], RATE, taps=TAPS, filter=kind)
        assert found.erle_between(1.0, 2.0) >= asked[name] - 10.0 * (kind == "kalman"), (name, kind)
        assert found.erle_between(2.0) >= asked[name], (name, kind)
        for far_too in (1.0, 3.0):  # neither the volume of both nor that of the room matters
            loud = echo.cancel(far_too * far[:until], 3.0 * mic[:until], RATE, taps=TAPS, filter=kind)
            assert loud.erle_between(2.0) == pytest.approx(found.erle_between(2.0), abs=1e-6)


def echo_left(kind, settings, noise=1e-2, taps=2048, seed=0):
    """How much quieter the echo is, in dB, between two times."""
    from echo import RATE, cancelled, scene

    far, heard, other = scene(kind, seed, noise=noise)
    left = echo.cancel(far, heard + other, RATE, taps=taps, **settings).clean - other
    return lambda start, end: cancelled(heard, left, start, end)


def test_near_end_talk_does_not_disturb_the_kalman_filter():
    """A room of 1,920 taps, speech, and talk at the near end from second 6 to 8."""
    kalman, nlms = (echo_left("talk", settings) for settings in ({}, {"filter": "nlms"}))
    assert kalman(2.0, 6.0) > 25.0 and kalman(6.0, 8.0) > 20.0 and kalman(8.0, 10.0) > 25.0
    assert nlms(6.0, 8.0) < 5.0 and nlms(8.0, 10.0) < 20.0  # which is what docs/echo.md says


def test_the_default_step_of_nlms_is_not_beaten_by_full_steps():
    """padasip's filter at mu = 1 takes full steps, with eps = 0.001; where nothing else is heard it goes far."""
    for kind, noise in (("white noise", 1e-4), ("white noise", 1e-2), ("speech", 1e-4), ("speech", 1e-2)):
        ours, full = (echo_left(kind, {"filter": "nlms", **more}, noise) for more in ({}, {"eta": 1e3}))
        assert ours(2.0, 5.0) > full(2.0, 5.0)
    assert echo_left("white noise", {}, 1e-4)(2.0, 5.0) + 10.0 < echo_left("white noise", {"filter": "nlms"}, 1e-4)(
        2.0, 5.0
    )


def test_a_room_that_changes_is_learnt_anew():
    kalman, nlms = (echo_left("moved", settings) for settings in ({}, {"filter": "nlms"}))
    assert nlms(6.0, 7.0) > kalman(6.0, 7.0) and kalman(9.0, 10.0) > 15.0


def naive_kalman(far, mic, taps, gain):
    """The diagonal Kalman filter with every part written out, block by block; all samples are whole blocks."""
    B, parts = 128, -(-taps // 128)
    X, W = [np.zeros(B + 1, complex)] * parts, [np.zeros(B + 1, complex) for _ in range(parts)]
    C, S, past, out = [np.full(B + 1, gain) for _ in range(parts)], np.zeros(B + 1), np.zeros(B), []
    for a in range(0, far.size, B):
        now = far[a : a + B]
        X, past = [np.fft.rfft(np.append(past, now)), *X[:-1]], now
        e = mic[a : a + B] - sum(np.fft.irfft(x * w)[B:] for x, w in zip(X, W, strict=True))
        out.append(e)
        E = np.fft.rfft(np.append(np.zeros(B), e))
        S = 0.5 * S + 0.5 * abs(E) ** 2
        D = sum(abs(x) ** 2 * c for x, c in zip(X, C, strict=True)) + 2 * S
        for p in range(parts):
            step = np.fft.irfft(C[p] / D * X[p].conj() * E)
            step[min(B, taps - p * B) :] = 0.0
            W[p] = W[p] + np.fft.rfft(step)
            C[p] = 0.999**2 * C[p] * (1 - 0.5 * C[p] / D * abs(X[p]) ** 2) + (1 - 0.999**2) * abs(W[p]) ** 2
    return np.concatenate(out), np.concatenate([np.fft.irfft(w)[:B] for w in W])[:taps]


@pytest.mark.parametrize("taps", [1, 100, 128, 300])
def test_the_kalman_filter_is_its_definition_and_blocks_change_nothing(taps):
    far, mic = signals(128 * 20)
    want, room = naive_kalman(far, mic, taps, 0.7)
    for block in (far.size, 128, 1, 77):
        canceller = echo.KalmanCanceller(taps, 0.7)
        parts = [canceller.process(far[k : k + block], mic[k : k + block]) for k in range(0, far.size, block)]
        np.testing.assert_allclose(np.concatenate(parts), want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(canceller.room, room, rtol=0, atol=1e-12)
        assert canceller.samples == far.size and canceller.room.size == taps
    assert echo.KalmanCanceller(taps).process(np.zeros(300), mic[:300]).tolist() == mic[:300].tolist()


def test_figures_are_those_of_the_signals():
    far, mic = signals(4100)
    found = echo.cancel(far, mic, 8000, taps=24)
    assert found.times.tolist() == [0.25, 0.5, 4100 / 8000]
    assert found.erle[1] == 10 * np.log10(np.mean(mic[2000:4000] ** 2) / np.mean(found.clean[2000:4000] ** 2))
    assert found.erle_between(0.25, 0.5) == found.erle[1]
    hz, before, after = found.spectra(0.25)
    assert hz[-1] == 4000 and before.sum() > 100 * after.sum()
    plain = found.to_dict()
    assert plain["erle"] == found.erle.tolist() and json.loads(json.dumps(plain)) == plain
    assert found.real_time_factor == pytest.approx(4100 / 8000 / found.seconds)
    with pytest.raises(ValueError, match="there are no samples from 9 s"):
        found.spectra(9.0)


def test_a_run_is_certified_on_its_windows():
    far, mic = signals()
    with pytest.raises(ValueError, match="no theorem for the Kalman filter: cancel with filter='nlms'"):
        echo.cancel(far, mic, taps=24).certify()
    found = echo.cancel(far, mic, taps=24, filter="nlms")
    certificate = found.certify()
    assert certificate.verdict.value == "HOLDS" and certificate.rounds == far.size
    assert certificate.measured == pytest.approx(float((found.clean**2).sum()), rel=1e-12)
    X = delay_line(far, 24)
    best = np.linalg.solve(X.T @ X + np.eye(24) / found.canceller.eta, X.T @ mic)
    np.testing.assert_allclose(certificate.comparator.u, best, rtol=1e-6)
    assert certificate.comparator.loss == pytest.approx(float(((X @ best - mic) ** 2).sum()))


def test_sixteen_bits_are_the_same_as_their_fractions():
    far, mic = (np.rint(20_000 * s / np.abs(s).max()).astype(np.int16) for s in signals())
    whole, fractions = echo.cancel(far, mic, taps=24), echo.cancel(far / 32768, mic / 32768, taps=24)
    assert whole.clean.dtype == np.float32 and (whole.clean == fractions.clean.astype(np.float32)).all()
    assert (samples(far.astype(">i2"), "far") == far / 32768).all()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("far", "mic", "words"),
    [
        (np.zeros(9), np.ones(9), "far is silent"),
        (np.ones(9), np.zeros(9), "mic is silent"),
        (np.zeros(0), np.zeros(0), "far is silent"),
        (np.ones(9), np.ones(8), "as many samples as each other, got 9 and 8"),
        (np.ones((9, 2)), np.ones(9), r"far must be one channel.*\(9, 2\)"),
        (np.array([1.0, np.nan]), np.ones(2), "far, sample 1: nan is not a finite number"),
        (np.ones(5000), np.append(np.ones(4999), np.inf), "mic, sample 4,999: inf is not a finite number"),
        (np.ones(9, np.int32), np.ones(9), "far must hold floating-point numbers or 16-bit integers, got int32"),
        (np.full(9, 1e200), np.ones(9), "far is too loud"),
    ],
)
def test_signals_that_cannot_be_used_are_refused(far, mic, words):
    with pytest.raises(ValueError, match=words):
        echo.cancel(far, mic, taps=4)


def test_settings_that_cannot_be_used_are_refused():
    far, mic = signals(100)
    for taps in (0, -1, 2.5, True, "8"):
        with pytest.raises(ValueError, match="taps must be a whole number, at least 1"):
            echo.cancel(far, mic, taps=taps)
    for eta in (0.0, -1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="eta must be a number above 0"):
            echo.cancel(far, mic, filter="nlms", eta=eta)
    for gain in (0.0, -1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="gain must be a number above 0"):
            echo.KalmanCanceller(gain=gain)
    with pytest.raises(ValueError, match="filter must be one of 'kalman', 'nlms'; got 'wiener'"):
        echo.cancel(far, mic, filter="wiener")
    with pytest.raises(ValueError, match="eta is for filter='nlms'"):
        echo.cancel(far, mic, eta=0.1)
    for rate in (0, 8000.5, None):
        with pytest.raises(ValueError, match="rate must be a whole number"):
            echo.cancel(far, mic, rate)


@pytest.mark.parametrize("kind", [echo.EchoCanceller, echo.KalmanCanceller])
def test_a_block_that_is_refused_changes_nothing(kind):
    far, mic = signals(1000)
    canceller, other = kind(24), kind(24)
    for each in (canceller, other):
        each.process(far[:500], mic[:500])
    with pytest.raises(ValueError, match="as many samples as each other, got 2 and 3"):
        canceller.process(far[:2], mic[:3])
    with pytest.raises(ValueError, match="far, sample 501: nan"):
        canceller.process([0.0, np.nan], [0.0, 0.0])
    with pytest.raises(ValueError, match="sample 502 cannot be learnt: the numbers are too large"):
        canceller.process([0.1, 0.1, 1e200], [0.1, 0.1, 0.1])
    assert (canceller.process(far[500:], mic[500:]) == other.process(far[500:], mic[500:])).all()


# ---------------------------------------------------------------- files and the command


def run(*args):
    result = CliRunner().invoke(app, ["echo", *(str(a) for a in args)], env={"COLUMNS": "200", "NO_COLOR": "1"})
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def files(tmp_path):
    """far.wav, mic.wav and where to write."""
    far, mic = signals()
    for name, signal in (("far", far), ("mic", mic)):
        wavfile.write(tmp_path / f"{name}.wav", 16_000, signal.astype(np.float32))
    return tmp_path / "far.wav", tmp_path / "mic.wav", tmp_path / "clean.wav"


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
@pytest.mark.parametrize("rate", [8_000, 48_000])
def test_files_of_each_kind_are_read_and_written(files, dtype, rate):
    scale = 20_000 if dtype == np.int16 else 1
    far, mic = ((scale * s / np.abs(s).max()).astype(dtype) for s in signals())
    for path, signal in zip(files, (far, mic), strict=False):
        wavfile.write(path, rate, signal)
    code, out, err = run(files[0], files[1], "-o", files[2], "--taps", 24)
    assert code == 0 and not err and "times faster than real time" in out
    seen, clean = wavfile.read(files[2])
    want = echo.cancel(far, mic, rate, taps=24).clean
    assert seen == rate and clean.dtype == dtype
    if dtype == np.int16:
        assert (clean == np.rint(want * 32768)).all()
    else:
        assert (clean == want).all()


def test_the_command_says_how_much_when(files):
    code, out, _ = run(*files[:2], "-o", files[2], "--taps", 24)
    assert code == 0 and "24 taps (1.5 ms), Kalman filter" in out
    code, out, _ = run(*files[:2], "-o", files[2], "--taps", 24, "--filter", "nlms", "--certify")
    rate, far = wavfile.read(files[0])
    found = echo.cancel(far, wavfile.read(files[1])[1], rate, taps=24, filter="nlms")
    assert code == 0 and f"24 taps (1.5 ms), η = {found.canceller.eta:.4g}" in out
    assert f"0.00 to   0.25 s: echo return loss enhancement {found.erle_between():6.2f} dB" in out
    assert ": implicit Widrow-Hoff" in out
    code, out, _ = run(*files[:2], "-o", files[2], "--taps", 24, "--filter", "nlms", "--eta", 3, "--json")
    plain = json.loads(out)
    assert code == 0 and plain["eta"] == 3.0 and plain["erle"] == echo.cancel(
        far, wavfile.read(files[1])[1], rate, taps=24, filter="nlms", eta=3.0
    ).erle.tolist()  # fmt: skip


def test_samples_that_do_not_fit_are_counted_and_floats_keep_them(files):
    far, mic = signals(500)
    mic[:] = 0.9
    mic[1::2] = -0.9  # learnt at first as if the echo had the opposite sign, so that what is left is louder
    far = np.tile([0.5, 0.5, -0.5, -0.5], 125)
    for path, signal in zip(files, (far, mic), strict=False):
        wavfile.write(path, 16_000, np.rint(32_000 * signal).astype(np.int16))
    code, out, _ = run(*files[:2], "-o", files[2], "--taps", 1, "--filter", "nlms", "--eta", 1e3)
    loud = echo.cancel(*(wavfile.read(f)[1] for f in files[:2]), taps=1, filter="nlms", eta=1e3).clean
    over = int((np.abs(loud) > 1.0).sum())
    assert code == 0 and over > 0
    assert f"warning: {over} samples did not fit into 16 bits and were saturated; --float keeps them" in out
    code, out, _ = run(*files[:2], "-o", files[2], "--taps", 1, "--filter", "nlms", "--eta", 1e3, "--float")
    clean = wavfile.read(files[2])[1]
    assert code == 0 and "warning" not in out and clean.dtype == np.float32 and np.abs(clean).max() > 1.0


def write_wav(path, rate=16_000, signal=None):
    wavfile.write(path, rate, np.ones(4000, np.int16) if signal is None else signal)


BAD = {
    "another rate": (lambda p: write_wav(p, 8_000), "far.wav has 16,000 samples per second, but {mic} has 8,000"),
    "too slow": (lambda p: write_wav(p, 4_000), "{mic}: 4,000 samples per second, which must be 8,000 to 48,000"),
    "too fast": (lambda p: write_wav(p, 96_000), "{mic}: 96,000 samples per second"),
    "shorter": (lambda p: write_wav(p, signal=np.ones(3999, np.int16)), "has 4,000 samples, but {mic} has 3,999"),
    "stereo": (lambda p: write_wav(p, signal=np.ones((4000, 2), np.int16)), "{mic}: 2 channels, where one is needed"),
    "8 bits": (lambda p: write_wav(p, signal=np.ones(4000, np.uint8)), "{mic}: 8-bit uint8 samples"),
    "32 bits": (lambda p: write_wav(p, signal=np.ones(4000, np.int32)), "{mic}: 32-bit int32 samples"),
    "silence": (lambda p: write_wav(p, signal=np.zeros(4000, np.int16)), "{mic} is silent"),
    "not a number": (
        lambda p: write_wav(p, signal=np.full(4000, np.nan)),
        "{mic}, sample 0: nan is not a finite number",
    ),
    "no samples": (lambda p: write_wav(p, signal=np.zeros(0, np.int16)), "{mic}: "),
    "text": (lambda p: p.write_text("hello"), "{mic}: not a WAV file"),
    "nothing": (lambda p: p.write_bytes(b""), "{mic}: not a WAV file"),
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:1000]), "{mic}: not a WAV file, or cut short"),
    "no file": (lambda p: p.unlink(), "{mic}: No such file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_get_one_line_and_nothing_is_written(files, kind):
    make, words = BAD[kind]
    make(files[1])
    code, out, err = run(*files[:2], "-o", files[2])
    assert code == 2 and not out and err.count("\n") == 1
    assert words.format(mic=files[1]) in err and not files[2].exists()


def test_options_that_cannot_be_used_get_one_line(files):
    for options, words in (
        (["--taps", 0], "--taps must be at least 1, got 0"),
        (["--filter", "nlms", "--eta", -1], "--eta must be a number above 0, got -1.0"),
        (["--eta", 1], "--eta is for --filter nlms"),
        (["--certify"], "--certify is for --filter nlms"),
        (["--filter", "wiener"], "--filter must be one of kalman, nlms; got wiener"),
        (["--chart", "x.pdf"], "a chart must end in .png, .svg, .html"),
        (["--chart", files[2]], "--chart"),
    ):
        code, _, err = run(*files[:2], "-o", files[2], *options)
        assert code == 2 and words in err and err.count("\n") == 1 and not files[2].exists()
    code, _, err = run(*files[:2], "-o", files[1])
    assert code == 2 and "would be overwritten" in err


def test_wav_files_cut_anywhere_are_refused_in_one_line(files):
    whole = files[1].read_bytes()
    for size in [*range(60), 100, len(whole) - 1]:
        files[1].write_bytes(whole[:size])
        with pytest.raises(SourceError, match=r"mic\.wav: ") as caught:
            wav.read(files[1])
        assert "\n" not in str(caught.value)
    rng = np.random.default_rng(0)
    for _ in range(300):  # a damaged header is read as something, or refused
        damaged = bytearray(whole)
        damaged[rng.integers(0, 60)] = rng.integers(0, 256)
        files[1].write_bytes(damaged)
        with contextlib.suppress(SourceError):
            rate, found = wav.read(files[1])
            assert 8_000 <= rate <= 48_000 and found.ndim == 1 and found.size


def test_big_endian_files_are_read(files):
    body = np.arange(1, 101, dtype=">i2").tobytes()
    head = struct.pack(
        ">4sI4s4sIHHIIHH4sI", b"RIFX", 36 + 200, b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", 200
    )
    files[0].write_bytes(head + body)
    rate, found = wav.read(files[0])
    assert rate == 8000 and (samples(found, "far") == np.arange(1, 101) / 32768).all()


def test_the_chart_shows_the_numbers(files):
    far, mic = signals(16_000)
    found = echo.cancel(far, mic, taps=24)
    drawn = charts.echo(found, near=(0.5, 0.6), between=(0.1, 0.4)).to_dict()
    top, below = drawn["vconcat"]
    assert [v["erle"] for v in top["layer"][1]["data"]["values"]] == found.erle.tolist()
    levels = below["hconcat"][0]["data"]["values"]
    assert [v["level"] for v in levels] == (10 * np.log10([*found.mic_power, *found.clean_power])).tolist()
    spectra = below["hconcat"][1]["data"]["values"]
    assert [v["level"] for v in spectra[:512]] == (10 * np.log10(found.spectra(0.1, 0.4)[1][1:])).tolist()
    picture = files[2].with_suffix(".svg")
    code, out, _ = run(*files[:2], "-o", files[2], "--taps", 24, "--chart", picture)
    assert code == 0 and f"chart: {picture}" in out and "Spectra, seconds 0.125 to 0.25" in picture.read_text()
