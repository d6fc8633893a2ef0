"""The slow, obvious version of cells: quantiles by sorting, a dict of cells; nothing here knows the package.

A row is a list of numbers, one per column, and becomes a dict: ("bin", column, k) and ("cell", columns, k, l) with the
value 1, and ("column", j) with what was there.
"""

PLACES, PAIRS, HELD = 32, 60, 512


def held(past, column, since):
    """The values of a column in the rows held, of those since the column is watched."""
    stride = 1
    while len(past) > HELD * stride:
        stride *= 4
    return [row[column] for t, row in enumerate(past) if t % stride == 0 and t >= since]


def bin_of(value, cuts):
    return sum(1 for cut in cuts if cut < value)


class Naive:
    """What rows become, one after another."""

    def __init__(self):
        self.past, self.epoch, self.last = [], 8, 0
        self.places, self.since = [None] * PLACES, {}
        self.cuts, self.pairs = {}, []

    def row(self, x):
        """The row as a dict of features."""
        out = {}
        for j, cuts in self.cuts.items():
            out["bin", j, bin_of(x[j], cuts)] = 1.0
        for i, j in self.pairs:
            out["cell", (i, j), bin_of(x[i], self.cuts[i]) // 2, bin_of(x[j], self.cuts[j]) // 2] = 1.0
        for j, value in enumerate(x):
            if value != 0.0:
                out["column", j] = value
        return out

    def note(self, x):
        """Count a row, after it was predicted."""
        self.past.append(x)
        if len(self.past) < self.epoch:
            return
        recent, watched = self.past[self.last :], [j for j in self.places if j is not None]
        dense = [
            j
            for j in range(len(x))
            if j not in watched and 4 * sum(1 for row in recent if row[j] != 0.0) >= len(recent)
        ]
        fresh = []
        for p, j in enumerate(self.places):
            if j is None:
                continue
            values = sorted(held(self.past, j, self.since[j]))
            if j not in self.cuts and len(set(values)) <= 6:
                self.places[p] = None
                continue
            if j not in self.cuts:
                fresh.append(j)
            self.cuts[j] = [values[k * len(values) // 16] for k in range(1, 16)]
        order = [j for j in self.places if j in self.cuts]
        new = [(i, j) for k, i in enumerate(order) for j in order[k + 1 :] if i in fresh or j in fresh]
        size = min(len(new), PAIRS - len(self.pairs))
        self.pairs += [new[k * len(new) // size] for k in range(size)]
        for j in dense:
            if None in self.places:
                self.places[self.places.index(None)] = j
                self.since[j] = len(self.past)
        self.last, self.epoch = len(self.past), 4 * self.epoch


def expand(rows, c):
    """All rows as dicts; those of weight 0 are not counted."""
    naive, out = Naive(), []
    for x, weight in zip(rows, c, strict=True):
        out.append(naive.row(x))
        if weight > 0.0:
            naive.note(x)
    return out


def columns_of(dicts):
    """The same rows as lists, one number for each feature that some row has."""
    names = sorted({name for row in dicts for name in row}, key=repr)
    return [[row.get(name, 0.0) for name in names] for row in dicts]
