"""Learning over more rows than one machine holds, on Dask: ``pip install hindsight-learn[dask]``.

    from hindsight import IsotronRegressor, cluster

    with cluster.start(workers=4) as client:            # or distributed.Client("tcp://...")
        rows = cluster.read("folder/", "y", client=client)
        model = cluster.fit(IsotronRegressor(rounds=50), rows)

`fit` gives the estimator that one machine would fit, from sums over partitions of the rows. The rows are read by the
workers and stay there; the driver holds weights, sums and a few sampled rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certifying import certify as certify
    from .dask_engine import start as start
    from .engine import ClusterError as ClusterError
    from .evaluating import evaluate as evaluate
    from .fitting import fit as fit
    from .rows import ClusterRows as ClusterRows
    from .rows import read as read
    from .scores import corp as corp
    from .scores import density as density
    from .shards import certify_shards as certify_shards
    from .shards import mix as mix

_HOME = {
    "ClusterError": "engine", "ClusterRows": "rows", "certify": "certifying", "certify_shards": "shards",
    "corp": "scores", "density": "scores", "evaluate": "evaluating",
    "fit": "fitting", "mix": "shards", "read": "rows", "start": "dask_engine",
}  # fmt: skip

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
