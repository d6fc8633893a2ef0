"""How many functions are compiled: counted, never timed.

From an empty cache every function costs about 0.1 s, every loop more than a second, so each limit is a budget: what
exceeds it must be folded into what is there, or raise the limit in the open.
"""

import pytest

from commands import python
from conftest import nightly

LEARN = 57  # functions for `learn` of a dense table with the default learner
REPORT = 73  # with a certificate and a report

COUNT = """
import sys
from numba.core import event
from hindsight.kernels import side_by_side
side_by_side.PROCESSORS = 1  # another process would count for itself

class Count(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__.partition("-")[0])
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
"""


def test_the_default_learner_its_certificate_and_its_report_compile_few_functions(tmp_path):
    code = f"""{COUNT}
from hindsight.__main__ import main

def learn(*more):
    sys.argv = ["hindsight", "learn", "sample:diabetes", "--progress", "none", *more]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    return len(Count.names)

print(learn(), learn("--report", {str(tmp_path / "r.html")!r}), Count.names.count("play"))
"""
    unoptimised = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "0"}  # as many functions, in less time
    alone, with_report, loops = map(int, python(code, **unoptimised).splitlines()[-1].split())
    assert 0 < alone <= LEARN
    assert alone <= with_report <= REPORT
    assert loops == 1  # a certificate plays the same loop again


WAYS = """
import numpy as np, scipy.sparse as sp
import hindsight
from hindsight.kernels.online import play

X = np.random.default_rng(0).standard_normal((40, 3))
y = X[:, 0] > 0.0 if MODEL.endswith("Classifier") else X[:, 0]
new = lambda: getattr(hindsight, MODEL)()
sealed, weight = y.copy(), np.ones(40)
sealed.flags.writeable = weight.flags.writeable = False
wide, rows = np.repeat(y, 2)[::2], X.copy()
rows.flags.writeable = False
found = []
for given, target, c in ((X, y, None), (rows, sealed, weight), (X, wide, np.ones(80)[::2]), (X, y.tolist(), None)):
    model = new().fit(given, target, sample_weight=c)
    model.certify(given, target, sample_weight=c)
    model.predict(given)
found.append(len(play.overloads))
for given in (np.asfortranarray(X), X[::-1], X[:, ::-1], np.repeat(X, 2, 1)[:, ::2]):
    new().fit(given, y)
found.append(len(play.overloads))
for given in (X[::2], np.repeat(X, 2, 1)[:, :3]):
    new().fit(given, y[: len(given)])
found.append(len(play.overloads))
sparse = sp.csr_matrix(X)
model = new().fit(sparse, y)
model.certify(sparse, y)
found.append(len(play.overloads))
one = new()
for x, target in zip(X, y):
    one.learn_one(x, target)
named = new()
for x, target in zip(X, y):
    named.learn_one(dict(zip("abc", x)), target)
found.append(len(play.overloads))
print(*found)
"""


@nightly(but=["WidrowHoffRegressor"])
@pytest.mark.parametrize("model", ["WidrowHoffRegressor", "PerceptronClassifier"])
def test_a_loop_is_compiled_once_for_each_kind_of_rows(model):
    """Dense, of any strides, contiguous each, and sparse, which rows given as dicts are too; nothing else matters."""
    assert python(f"MODEL = {model!r}\n{WAYS}").splitlines()[-1] == "1 2 3 4 4"
