"""Test the wheel as users install it: the lowest versions on Python 3.11, and the newest on the newest Python.

    python tests/installed.py             a choice of the tests, both installs at once
    python tests/installed.py --quick     the wheel has every file and learns, beside the packages of this Python
    python tests/installed.py --all       the whole suite, one after the other
    python tests/installed.py --lock      pin the versions of both installs anew

The environments stay in .venv-lowest and .venv-newest, and are made anew when the pins or the Python change.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)
PINS = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
CHOICE = ("package", "dicts", "installs", "sources", "charts", "estimators")  # the edges to other packages
SKIPPED = (  # take minutes, or add little here
    "contract or without_a_cache or sparse_forms or digest or ascii or survives_a_copy or failed_fit or docstrings "
    "or long_pipe or cannot_show or alphabets"
)
COMPILE = (
    "--quiet", "--strip-extras", "--allow-unsafe", "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links",
    "--no-emit-trusted-host", "--no-header", "--no-annotate", "--upgrade", "--extra", "charts", "--extra", "serve",
    "--extra", "test",
)  # fmt: skip


def call(*words: object, path: Path | None = None, **options: object) -> subprocess.CompletedProcess:
    """Run a command outside the repository's own environment; its output comes back as text."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {} if path is None else {"PYTHONPATH": str(path)}
    return subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        env=environment, **options,
    )  # fmt: skip


def need(done: subprocess.CompletedProcess) -> str:
    """The output of a command that had to succeed."""
    if done.returncode:
        raise SystemExit(f"{' '.join(done.args)}\n{done.stdout}")
    return done.stdout


def pythons() -> dict[tuple[int, int], str]:
    """The Pythons of this machine with the interpreter's lock, by version: those on PATH, then pyenv's."""
    found: dict[tuple[int, int], str] = {}
    names = [sys.executable, *(f"python3.{minor}" for minor in range(OLDEST[1], 30)), "python3"]
    names += map(str, sorted(Path(os.path.expanduser("~/.pyenv/versions")).glob("3.*/bin/python"), reverse=True))
    ask = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    for name in names:
        try:
            done = call(name, "-c", ask)
        except OSError:
            continue
        seen = re.fullmatch(r"(\d+) (\d+) 0\s*", done.stdout)
        if done.returncode == 0 and seen and (int(seen[1]), int(seen[2])) >= OLDEST:
            found.setdefault((int(seen[1]), int(seen[2])), name)
    return found


@dataclass(frozen=True)
class Install:
    """An environment with the pins of one file and the wheel."""

    name: str
    python: str

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-{self.name}"

    @property
    def pins(self) -> Path:
        return ROOT / "requirements" / f"{self.name}.txt"

    def run(self, *words: object) -> subprocess.CompletedProcess:
        return call(self.folder / "bin" / "python", *words)

    def pip(self, *words: object) -> subprocess.CompletedProcess:
        return self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *words)

    def is_marked(self, name: str, mark: str) -> bool:
        """Whether a step was done for what this mark stands for."""
        file = self.folder / name
        return file.is_file() and file.read_text() == mark

    def make(self) -> str:
        """Make the environment, unless it is there; returns what went wrong."""
        mark = hashlib.sha256(self.pins.read_bytes() + self.python.encode()).hexdigest()
        if self.is_marked("pins", mark):
            return ""
        need(call(self.python, "-m", "venv", "--clear", self.folder))
        done = self.pip(*PINS, "-r", self.pins)
        if done.returncode:
            return done.stdout
        (self.folder / "pins").write_text(mark)
        return ""

    def put(self, wheel: Path) -> None:
        """Install the wheel, unless it is the one that is there: a new one compiles all kernels again."""
        mark = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if not self.is_marked("wheel", mark):
            need(self.pip("--no-deps", "--no-index", "--force-reinstall", wheel))
            need(self.run("-m", "pip", "check"))
            (self.folder / "wheel").write_text(mark)
        home = need(self.run("-c", "import hindsight; print(hindsight.__file__)")).strip()
        if not Path(home).is_relative_to(self.folder):
            raise SystemExit(f"{self.name}: the tests would import {home}, not the wheel")

    def test(self, whole: bool) -> tuple[bool, str]:
        """Run tests with the installed package; whether they passed, and what they printed."""
        words = ["-m", "pytest", "--nightly", "-p", "no:cacheprovider", "--durations", "5"]
        if whole:
            words += ["--numprocesses", "auto", "--dist", "loadfile", "tests", "--pyargs", "hindsight"]
        else:
            words += ["-k", f"not ({SKIPPED})", *(f"tests/test_{name}.py" for name in CHOICE)]
        done = self.run(*words)
        return done.returncode == 0, done.stdout


def candidates(name: str, found: dict[tuple[int, int], str]) -> list[Install]:
    """The installs of one name that this machine has a Python for, the one wanted most first."""
    if name == "lowest":
        return [Install(name, python) for version, python in found.items() if version == OLDEST]
    return [Install(name, found[version]) for version in sorted(found, reverse=True) if version > OLDEST]


def try_install(name: str, found: dict[tuple[int, int], str], wheel: Path, whole: bool) -> tuple[bool, str]:
    """Install and test; whether nothing failed, and what to print."""
    told = ""
    for install in candidates(name, found):
        missing = install.make()
        if missing and name == "lowest":
            return False, missing
        if missing:
            told += f"{name} versions: {install.python} has no wheels of them\n{missing}"
            continue
        install.put(wheel)
        version = need(install.run("-c", "import platform; print(platform.python_version())")).strip()
        passed, output = install.test(whole)
        return passed, f"{told}{name} versions, Python {version}: {'passed' if passed else 'FAILED'}\n{output}"
    python = "Python 3.11" if name == "lowest" else "Python after 3.11 that they run on"
    return True, f"{told}{name} versions: not tested, there is no {python} here\n"


def build(folder: str) -> Path:
    """Build the wheel."""
    pip = ("-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    need(call(sys.executable, *pip, "--wheel-dir", folder, "."))
    return next(Path(folder).glob("*.whl"))


def test(whole: bool) -> int:
    """Test both installs; the exit status."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1 if whole else 2) as pool:
        wheel, found = build(folder), pythons()
        results = list(pool.map(lambda name: try_install(name, found, wheel, whole), ("lowest", "newest")))
    print("\n".join(told for _, told in results))
    return 0 if all(passed for passed, _ in results) else 1


def quick() -> int:
    """Whether the wheel has every file of the package and learns; the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        wheel, home = build(folder), Path(folder, "site")
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
        need(call(sys.executable, *pip, "--target", home, wheel))
        source = ROOT / "src" / "hindsight"
        files = {file.relative_to(source) for file in source.rglob("*") if file.is_file()}
        missing = sorted(
            str(f) for f in files if "__pycache__" not in f.parts and not (home / "hindsight" / f).exists()
        )
        if missing:
            raise SystemExit(f"the wheel lacks {', '.join(missing)}")
        where = need(call(sys.executable, "-c", "import hindsight; print(hindsight.__file__)", path=home)).strip()
        if not Path(where).is_relative_to(home):
            raise SystemExit(f"{where} would be run, not the wheel")
        words = ("learn", "sample:diabetes", "--learner", "widrow-hoff", "--eta", "0.1")
        told = need(call(sys.executable, "-m", "hindsight", *words, path=home))
        if "442 rows" not in told:
            raise SystemExit(f"the wheel learnt nothing:\n{told}")
    print("the wheel has every file of the package, and learns")
    return 0


def lowest() -> str:
    """The lower bounds of pyproject.toml as pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["charts"], *extras["serve"], *extras["test"]]
    return "".join(f"{name}=={bound}\n" for name, bound in re.findall(r"([\w-]+)>=([\w.]+)", "\n".join(wanted)))


def lock() -> None:
    """Write the pins of both installs."""
    found = pythons()
    with tempfile.TemporaryDirectory() as folder:
        bounds = Path(folder, "bounds.txt")
        bounds.write_text(lowest())
        for name, version, inputs in (
            ("lowest", OLDEST, ("--constraint", bounds, "requirements/lowest.in", "pyproject.toml")),
            ("newest", max(found), ("pyproject.toml",)),
        ):
            if version not in found:
                raise SystemExit(
                    f"the {name} versions are pinned with Python {version[0]}.{version[1]}, which is not here"
                )
            home = Path(folder, name)
            need(call(found[version], "-m", "venv", home))
            need(call(home / "bin" / "python", "-m", "pip", "install", "--quiet", "pip-tools"))
            output = ROOT / "requirements" / f"{name}.txt"
            need(call(home / "bin" / "pip-compile", *COMPILE, "--output-file", output, *inputs))
            print(f"{output}: pinned with Python {version[0]}.{version[1]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="run the whole suite")
    parser.add_argument("--quick", action="store_true", help="learn with the wheel beside the packages of this Python")
    parser.add_argument("--lock", action="store_true", help="pin the versions anew")
    args = parser.parse_args()
    if args.lock:
        lock()
        return 0
    return quick() if args.quick else test(args.all)


if __name__ == "__main__":
    sys.exit(main())
