"""A service as a process of its own, for tests from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hindsight.kernels.state import fields_of

ROOT = Path(__file__).parent.parent


def bits_of(live):
    """All that rows change, and their names; what is scratch holds nothing from one row to the next."""
    run = live.state.runs[0][0]
    flat = [
        getattr(state, name).tobytes()
        for state in run.states()
        for name, field in fields_of(type(state)).items()
        if not field.scratch
    ]
    flat += [] if getattr(run, "cells", None) is None else [values.tobytes() for values in run.cells.state[:-2]]
    flat += [] if run.coverage is None else [values.tobytes() for values in run.coverage.snapshot()]
    return flat, run.tally.tobytes(), list(live.rows.names)


class Process:
    """`hindsight serve` at a free port of the loopback interface."""

    def __init__(self, folder, *options, environment=None, program=("-m", "hindsight")):
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed when the process ends)
        command = [sys.executable, *program, "serve", str(folder), "--port", "0", *options]
        source = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))}
        environment = os.environ | source | {"PYTHONFAULTHANDLER": "1"} | (environment or {})
        self.process = subprocess.Popen(command, stderr=self.said, stdout=subprocess.DEVNULL, env=environment)
        try:
            self.url = self._address()
        except RuntimeError:
            self.said.close()
            raise

    def _address(self):
        until = time.monotonic() + 120.0
        while time.monotonic() < until:
            found = re.search(r" at (http://\S+)", self.text())
            if found:
                return found[1]
            if self.process.poll() is not None:
                raise RuntimeError(f"the service ended with {self.process.returncode}: {self.text()}")
            time.sleep(0.02)
        self.process.send_signal(signal.SIGABRT)  # which prints where each thread stands
        self.process.wait(30)
        raise RuntimeError(f"the service did not start: {self.text()}")

    def text(self):
        """What it has printed on standard error."""
        size = os.fstat(self.said.fileno()).st_size
        return os.pread(self.said.fileno(), size, 0).decode()

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def kill(self):
        """End it as the power does: at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.said.close()

    def stop(self):
        """End it as systemd does; what it printed."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        text = self.text()
        self.said.close()
        return text

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.kill()
