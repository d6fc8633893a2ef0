"""Cancel the echo of a room, as in telephone networks: the use Widrow-Hoff was made for.

Run ``python examples/echo.py [FOLDER]``; it writes far.wav, mic.wav, clean.wav and the chart echo.png there, by default
to a temporary folder. The same from a shell: ``hindsight echo far.wav mic.wav -o clean.wav --chart echo.png``.

The far end's sound leaves a loudspeaker, goes through a simulated room and enters the microphone, with noise 40 dB
below the echo. A filter of 1,024 taps learns the room, predicts the echo and subtracts it. In the second recording
somebody at the near end talks from second 6 to 8: that must stay, and must not disturb the filter.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.io import wavfile
from scipy.signal import fftconvolve, lfilter

from hindsight import charts, echo

RATE, TAPS, SECONDS = 16_000, 1_024, 10
NEAR = (6.0, 8.0)


def room(rng: np.random.Generator, decay: float = 0.08, late: float = 0.004, gain: float = 0.5) -> np.ndarray:
    """An impulse response: some time to travel, then a tail that is 60 dB down after `decay` seconds."""
    size = int(decay * RATE)
    response = rng.standard_normal(size) * 10.0 ** (-3.0 * np.arange(size) / size)
    response[: int(late * RATE)] = 0.0
    return gain * response / np.linalg.norm(response)


def syllable(rng: np.random.Generator, size: int, pitch: float) -> np.ndarray:
    """Pulses at the pitch of a voice, or a hiss, through three formants."""
    rise = 1.0 + 0.1 * np.linspace(0.0, rng.normal(), size)
    phase = np.cumsum(pitch * rng.uniform(0.8, 1.25) * rise / RATE)
    hiss = rng.standard_normal(size)
    voiced = np.diff(np.floor(phase), prepend=0.0) + 0.05 * hiss
    sound = voiced if rng.random() < 0.75 else 0.3 * hiss
    for low, high, width in ((300, 900, 80), (900, 2400, 120), (2400, 3600, 180)):
        r, place = np.exp(-np.pi * width / RATE), rng.uniform(low, high)
        sound = lfilter([1.0 - r], [1.0, -2.0 * r * np.cos(2.0 * np.pi * place / RATE), r * r], sound)
    sound = lfilter([1.0, -0.9], [1.0], sound)
    return sound * np.hanning(size) / np.sqrt(np.mean(sound**2))


def speech(rng: np.random.Generator, seconds: float, pitch: float) -> np.ndarray:
    """Syllables and pauses: coloured, loud and soft by turns, as speech is."""
    out, at = np.zeros(int(seconds * RATE)), 0
    while at < out.size:
        size = int(RATE * rng.uniform(0.12, 0.3))
        part = out[at : at + size]
        part += syllable(rng, size, pitch)[: part.size]
        at += size + int(RATE * rng.choice([0.0, 0.02, 0.05, 0.25], p=[0.4, 0.3, 0.2, 0.1]))
    return 0.1 * out


def record(far: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What the microphone hears of the far end: its echo, and noise 40 dB below."""
    heard = fftconvolve(far, room(rng))[: far.size]
    return heard + 0.01 * np.sqrt(np.mean(heard**2)) * rng.standard_normal(far.size)


def noise_and_speech(seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What is played and what is recorded: white noise, and speech-like sound with near-end talk."""
    rng = np.random.default_rng(seed)
    noise, talk = 0.1 * rng.standard_normal(SECONDS * RATE), speech(rng, SECONDS, 120.0)
    near = np.zeros(talk.size)
    near[int(NEAR[0] * RATE) : int(NEAR[1] * RATE)] = 0.5 * speech(rng, NEAR[1] - NEAR[0], 210.0)
    return {"white noise": (noise, record(noise, rng)), "speech-like": (talk, record(talk, rng) + near)}


def scene(
    kind: str, seed: int = 0, decay: float = 0.12, noise: float = 1e-4
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The far end, its echo, and what else the microphone hears: noise, so much quieter, and talk at the near end.

    The kinds are "white noise" and "speech", "talk" (speech with near-end talk) and "moved" (speech in a room that
    changes in second 5).
    """
    rng, size = np.random.default_rng(seed), SECONDS * RATE
    far = 0.1 * rng.standard_normal(size) if kind == "white noise" else speech(rng, SECONDS, 120.0)
    heard = fftconvolve(far, room(rng, decay))[:size]
    other = noise * np.sqrt(np.mean(heard**2)) * rng.standard_normal(size)
    if kind == "talk":
        other[int(NEAR[0] * RATE) : int(NEAR[1] * RATE)] += 0.5 * speech(rng, NEAR[1] - NEAR[0], 210.0)
    if kind == "moved":
        heard = np.where(np.arange(size) < 5 * RATE, heard, fftconvolve(far, room(rng, decay))[:size])
    return far, heard, other


def cancelled(echo: np.ndarray, left: np.ndarray, start: float, end: float) -> float:
    """How much quieter the echo is between two times, in dB, where the echo itself and what is left of it are known."""
    part = slice(int(start * RATE), int(end * RATE))
    return float(10.0 * np.log10(np.sum(echo[part] ** 2) / np.sum(left[part] ** 2)))


def main(path: str) -> None:
    """Simulate, cancel, print how much was cancelled, and draw."""
    found = {}
    for name, (far, mic) in noise_and_speech().items():
        found[name] = one = echo.cancel(far, mic, RATE, taps=TAPS)
        parts = ", ".join(f"{a:g} to {b:g} s {one.erle_between(a, b):.1f} dB" for a, b in ((0, 1), (1, 2), (2, 6)))
        print(f"{name}: {parts}; {one.real_time_factor:.0f} times faster than real time")
    one, where = found["speech-like"], Path(path).parent
    for name, signal in (("far", one.far), ("mic", one.mic), ("clean", one.clean)):
        wavfile.write(where / f"{name}.wav", RATE, signal.astype(np.float32))
    print(f"sound: {where}/far.wav, mic.wav, clean.wav")
    title = f"An echo of speech, {one.erle_between(2.0, 6.0):.0f} dB quieter from second 2 on"
    chart = charts.echo(one, title, near=NEAR, between=(2.0, NEAR[0]))
    charts.save(charts.styled(chart), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "echo.png"))
