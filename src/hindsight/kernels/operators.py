"""Rows as a linear operator: the compiled loops."""

from .compiler import kernel
from .rows import add, inner


@kernel
def margins(rows, v, out):  # type: ignore[no-untyped-def]
    for t in range(out.size):
        out[t] = inner(v[0], rows, t)[0]


@kernel
def combine(rows, r, v):  # type: ignore[no-untyped-def]
    for t in range(r.size):
        if r[t] != 0.0:
            add(v[0], rows, t, r[t])


@kernel
def residual_gradient(rows, v, y, a, out, g):  # type: ignore[no-untyped-def]
    for t in range(out.size):
        out[t] = inner(v[0], rows, t)[0]
        if a[t] != 0.0:
            add(g[0], rows, t, a[t] * (out[t] - y[t]))


@kernel
def norms(rows, v, q, top):  # type: ignore[no-untyped-def]
    for t in range(q.size):
        _, q[t], top[t] = inner(v[0], rows, t)


@kernel
def outer(rows, a, gram):  # type: ignore[no-untyped-def]
    for t in range(a.size):
        first, last = rows.span(t)
        for k in range(first, last):
            scaled = a[t] * rows.entry(t, k)
            for j in range(k, last):
                gram[rows.index(k), rows.index(j)] += scaled * rows.entry(t, j)
