"""Learning over more rows than one machine holds, on Dask: ``pip install hindsight-learn[dask]``.

    from hindsight import IsotronRegressor, cluster

    with cluster.start(workers=4) as client:            # or distributed.Client("tcp://...")
        rows = cluster.read("folder/", "y", client=client)
        model = cluster.fit(IsotronRegressor(rounds=50), rows)

`fit` returns the estimator that one machine would fit, computed from sums over partitions of the rows. The workers read
and hold the rows; the driver holds weights, sums and a few sampled rows.
"""

from .engine import ClusterError, start
from .fitting import certify, fit
from .rows import ClusterRows, read
from .scores import corp, density, evaluate
from .shards import certify_shards, mix

__all__ = [
    "ClusterError", "ClusterRows", "certify", "certify_shards", "corp", "density", "evaluate", "fit", "mix", "read",
    "start",
]  # fmt: skip
