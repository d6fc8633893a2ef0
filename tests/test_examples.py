"""The examples: each has a picture, and says what it shows; those that nothing else runs are run here, smaller."""

import importlib.util
import re
from pathlib import Path

import pytest

from conftest import nightly

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(file.stem for file in (ROOT / "examples").glob("*.py") if file.stem != "pictures")
SMALLER = {
    "additive_multiplicative": {"SIZES": (10, 100), "ROWS": 200},
    "echo": {"SECONDS": 9},
    "from_peers": {"ROWS": 100},
    "intervals": {"LAST": 40},
    "online_to_batch": {"SIZES": (10, 100, 2000), "STREAMS": 4},
    "poster": {"STOPS": 3},
    "risk": {"SPLITS": 4},
}
SAYS = {
    "additive_multiplicative": "3 of n features matter",
    "echo": "times faster than real time",
    "from_peers": ": descent on a convex loss",
    "intervals": "HOLDS: intervals cover",
    "online_to_batch": "the mean of the weights",
    "poster": "guaranteed at most",
    "risk": "of 4",
}


def example(name):
    """The example as a module, smaller where that is known."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for constant, value in SMALLER.get(name, {}).items():
        assert hasattr(module, constant)
        setattr(module, constant, value)
    return module


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_takes_a_folder_and_draws_its_picture_there(name):
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert f"python examples/{name}.py [FOLDER]" in text
    assert f'main(str(folder() / "{name}.png"))' in text
    assert name in (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


@nightly(only=["additive_multiplicative"])
@pytest.mark.parametrize("name", SMALLER)
def test_examples_draw_what_they_say(name, tmp_path, capsys):
    example(name).main(str(tmp_path / "picture.svg"))
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")
    assert SAYS[name] in capsys.readouterr().out


def test_a_peer_that_is_missing_is_shown_and_skipped(tmp_path, capsys):
    module = example("from_peers")
    module.PEERS = {"Nobody": ("no_such_package", module.river)}
    module.main(str(tmp_path / "picture.svg"))
    told = capsys.readouterr().out
    assert "from river import" in told and "Nobody is not installed: skipped" in told


def test_peers_predict_what_we_predict():
    module = example("from_peers")
    X, y = module.stream()
    ours = module.whole(X, y)
    assert abs(module.one_by_one(X, y) - ours).max() < 1e-12
    assert abs(module.scikit_learn(X, y) - ours).max() < 1e-12


@nightly
def test_few_features_favour_multiplying_and_many_adding():
    module = example("additive_multiplicative")
    module.SIZES, module.ROWS = (1000,), 1000  # as many rows as the example itself has
    lost = {(p["task"], p["learner"], p["rate"]): p["lost"] for p in module.curves()}
    few, many = "3 of n features matter", "all n features matter"
    for rate in ("theorem's rate", "best rate"):
        assert lost[few, "EG", rate] < 0.3 * lost[few, "Widrow-Hoff", rate]
        assert lost[many, "EG", rate] > 1.3 * lost[many, "Widrow-Hoff", rate]
    assert lost[few, "Winnow", "theorem's rate"] < 0.5 * lost[few, "perceptron", "theorem's rate"]


def test_pictures_of_the_documentation_are_small_and_shown():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert picture.stat().st_size <= 100_000, picture.name
        assert f"pictures/{picture.name})" in pages


def test_code_on_the_page_about_echoes_runs():
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "echo.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in code:
        exec(block, names)
    assert names["found"].erle_between(1.0, 2.0) > 25.0 and abs(names["clean"]).max() < 0.01
