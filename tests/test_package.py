"""The public names: one table, which type checkers see too, and nothing imported before it is used."""

import ast
from pathlib import Path

import hindsight
from commands import python


def test_every_public_name_is_there():
    assert len(set(hindsight.__all__)) == len(hindsight.__all__)
    for name in hindsight.__all__:
        found = getattr(hindsight, name)
        assert found.__name__ == name and found.__doc__
    assert set(dir(hindsight)) >= {*hindsight.__all__, "density", "forecast"}


def test_type_checkers_see_the_names_of_the_table():
    """Each as `from .module import Name as Name`, which marks it as exported."""
    tree = ast.parse(Path(hindsight.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {(alias.name, node.module) for node in block.body for alias in node.names if alias.asname == alias.name}
    assert seen == set(hindsight._HOME.items())


def test_a_name_is_listed_with_the_module_or_package_that_defines_it():
    for name, module in hindsight._HOME.items():
        assert getattr(hindsight, name).__module__.startswith(f"hindsight.{module}")


def test_importing_the_package_imports_nothing_else():
    script = "import sys, hindsight; print(sorted(m for m in sys.modules if m.startswith(('hindsight.', 'numpy'))))"
    assert python(script) == "[]\n"
