"""Private parts of numba and Python: their plain paths take over by themselves, and give the same results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from conftest import nightly
from hindsight.kernels import compiler, private

SWIFT, PLAIN = ({**os.environ, "HINDSIGHT_PLAIN": text} for text in ("0", "1"))
swift_only = pytest.mark.skipif(private.PLAIN, reason="HINDSIGHT_PLAIN is set")

LEARN = """
import sys
from pathlib import Path
import numpy as np
import scipy.sparse as sp
from hindsight import WidrowHoffRegressor
from hindsight.kernels import compiler, dicts, private

rng = np.random.default_rng(7)
X = rng.normal(size=(200, 6))
X[rng.random(X.shape) < 0.4] = 0.0
y = X @ rng.normal(size=6)
found = [WidrowHoffRegressor(0.1).fit(sp.csr_matrix(X), y).coef_]  # dicts are sparse rows too: one loop to compile
model = WidrowHoffRegressor(0.1)
for x, target in zip(X.tolist(), y.tolist(), strict=True):
    model.learn_one({f"name {j}": v for j, v in enumerate(x)}, target)
found.append(model.coef_)
np.save(sys.argv[1], np.vstack(found))
print(private.numba_known(), dicts.READABLE, sorted(compiler.INLINE))
"""


@swift_only
def test_the_private_parts_of_this_numba_are_known():
    """Where this fails, try the parts that docs/private_parts.md lists with the new version, then raise LAST."""
    assert private.numba_known()


@pytest.mark.parametrize("version", ["0.60.0", "0.69.0", "0.69.0dev0", "1.0", "unknown", ""])
def test_an_unknown_numba_is_used_by_the_plain_path(version):
    assert not private.numba_known(version)


@swift_only
def test_dicts_are_read_by_plain_python_without_the_lock_or_outside_cpython():
    assert not private.dicts_readable(free_threaded=1)
    assert not private.dicts_readable("pypy")
    assert private.dicts_readable("cpython", 0)


def learnt(tmp_path, env) -> tuple[np.ndarray, str]:
    file = tmp_path / "weights.npy"
    command = [sys.executable, "-W", "ignore", "-c", LEARN, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return np.load(file), done.stdout.strip()


def test_all_plain_paths_learn_the_same(tmp_path):
    swift, plain = learnt(tmp_path, SWIFT), learnt(tmp_path, PLAIN)
    assert swift[1] == "True True ['_nrt', 'error_model', 'forceinline', 'no_cfunc_wrapper']"
    assert plain[1] == "False False ['error_model', 'no_cfunc_wrapper']"
    np.testing.assert_allclose(plain[0], swift[0], rtol=1e-12, atol=1e-12)


@nightly
def test_the_command_prints_the_same_by_the_plain_paths():
    words = ["-m", "hindsight", "learn", "sample:diabetes", "--learner", "widrow-hoff", "--eta", "0.1"]
    both = [
        subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, timeout=300)
        for env in (SWIFT, PLAIN)
    ]
    assert both[0].returncode == 0, both[0].stderr
    told, plain = (done.stdout.splitlines()[:-1] for done in both)  # the last line has the seconds
    assert told == plain and len(told) > 3


@swift_only
def test_an_entry_point_gives_what_the_dispatcher_gives(monkeypatch):
    double = numba.njit(lambda values, k: values[k] * 2.0)
    args = (np.array([1.0, 2.5]), 1)
    swift = compiler.entry_point(double, args)
    assert swift is not double and swift(*args) == 5.0
    monkeypatch.setattr(private, "numba_known", lambda: False)
    assert compiler.entry_point(double, args) is double


def test_compiled_code_is_cached_under_a_stamp_of_the_folder_and_the_options(monkeypatch):
    def triple(x):
        return 3 * x

    found = compiler.compiled()(triple)
    assert compiler.stamp(triple) in found._cache._impl.filename_base
    marks = {compiler.stamp(triple)}
    for name, value in (("INLINE", {}), ("BARE", {})):
        monkeypatch.setattr(compiler, name, value)
    compiler.stamp_of.cache_clear()
    marks.add(compiler.stamp(triple))
    monkeypatch.setattr(compiler.config, "BOUNDSCHECK", 1)
    compiler.stamp_of.cache_clear()
    marks.add(compiler.stamp(triple))
    monkeypatch.undo()
    compiler.stamp_of.cache_clear()
    assert len(marks) == 3


def test_a_numba_that_names_its_cache_otherwise_gets_no_cache(monkeypatch):
    """It would not see that a part in another file was edited."""
    from numba.core import caching

    monkeypatch.setattr(caching.CacheImpl, "filename_base", property(lambda self: "another name"))

    def triple(x):
        return 3 * x

    found = compiler.compiled()(triple)
    assert isinstance(found._cache, caching.NullCache) and found(2) == 6
    assert "-" not in found.py_func.__qualname__


def test_private_parts_are_used_where_the_list_says_and_nowhere_else():
    listed = (Path(__file__).parents[1] / "docs" / "private_parts.md").read_text(encoding="utf-8")
    package = Path(private.__file__).parents[1]
    texts = {file.relative_to(package).as_posix(): file.read_text("utf-8") for file in package.rglob("*.py")}
    words = r"_nrt\b|forceinline|\.entry_point|_load_overload|filename_base"
    used = {(word, file) for file, text in texts.items() for word in re.findall(words, text)}
    compiler_words = ("_nrt", "forceinline", ".entry_point", "filename_base")
    assert used == {*((word, "kernels/compiler.py") for word in compiler_words), ("_load_overload", "__main__.py")}
    for word, file in used:
        assert word in listed and f"`{file}`" in listed
    for file, text in texts.items():
        assert not re.search(r"from sklearn[\w.]* import .*\b_\w|sklearn[\w.]*\._|from sklearn\._", text), file
