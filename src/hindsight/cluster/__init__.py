"""Learning over more rows than one machine holds, on Dask: ``pip install hindsight-learn[dask]``.

    from hindsight import IsotronRegressor, cluster

    with cluster.start(workers=4) as client:            # or distributed.Client("tcp://...")
        rows = cluster.read("folder/", "y", client=client)
        model = cluster.fit(IsotronRegressor(rounds=50), rows)

`fit` returns the estimator that one machine would fit, computed from sums over partitions of the rows. The workers read
and hold the rows; the driver holds weights, sums and a few sampled rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import ClusterError as ClusterError
    from .engine import start as start
    from .fitting import certify as certify
    from .fitting import fit as fit
    from .rows import ClusterRows as ClusterRows
    from .rows import read as read
    from .scores import corp as corp
    from .scores import density as density
    from .scores import evaluate as evaluate
    from .shards import certify_shards as certify_shards
    from .shards import mix as mix

# Workers load the modules that their work needs alone: with estimators and certificates each takes 130 MB more.
_HOME = {
    "ClusterError": "engine", "ClusterRows": "rows", "certify": "fitting", "certify_shards": "shards", "corp": "scores",
    "density": "scores", "evaluate": "scores", "fit": "fitting", "mix": "shards", "read": "rows", "start": "engine",
}  # fmt: skip

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
