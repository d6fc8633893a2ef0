"""Lipschitz isotonic regression: least weighted squares subject to 0 <= f_{i+1} - f_i <= L (z_{i+1} - z_i), exactly.

Dynamic programming over the points in order. V_i(f) is the least cost of the first i points with f_i = f; its
derivative is an increasing polyline with one zero g_i. From point i to the next, the part right of g_i is shifted right
by d = L (z_{i+1} - z_i), with a segment of zeros in the gap, and then the line 2w(f - y) is added::

    V'_{i+1}(f) = V'_i(min(f, max(g_i, f - d))) + 2 w_{i+1} (f - y_{i+1}),    f_i = clip(g_i, f_{i+1} - d, f_{i+1})

The corners (p, D) of the polyline are kept in a B-tree, in order. New corners are inserted only at the zero; an update
of all corners of a subtree is deferred at its root as one map p += s, D += a p + b; the zero is found by the signs of
D. So a point costs O(log m) whatever the data. An entry of an inner node repeats the last corner of its child. Along
the path from the root to the zero, updates of all entries left and of all entries right of it are deferred as one map
each, until the path changes at that level: most points touch only a leaf.
"""

from typing import NamedTuple

import numpy as np

from .compiler import inlined, kernel

WIDTH = 32  # entries of a node
DEPTH = 16  # levels; more than any memory holds
FULL, HALF = np.uint64(WIDTH), np.uint64(WIDTH // 2)
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
# A leaf is WIDTH numbers p, then WIDTH numbers D; an inner node also has the deferred s, a and b of each child. A node
# is contiguous, at fixed offsets, so that its loops vectorise.
LEAF, INNER = np.uint64(2 * WIDTH), np.uint64(5 * WIDTH)
D, S, A, B = (np.uint64(k * WIDTH) for k in (1, 2, 3, 4))


class Tree(NamedTuple):
    """The nodes, and the path from the root to the zero. Unused entries have D = infinity: loops run over all."""

    leaf: np.ndarray
    size: np.ndarray
    nodes: np.ndarray
    child: np.ndarray
    inner_size: np.ndarray
    node: np.ndarray  # the node of the path at each level,
    slot: np.ndarray  # and the entry it continues at; in the leaf, the first corner with D >= 0
    deferred: np.ndarray  # at each level of the path: a for both sides, s for the right, b for the left and the right


def tree(points: int) -> Tree:
    """Return a tree with room for the corners of `points` points: two per point, in nodes at least half full."""
    leaves = 2 * points // (WIDTH // 2) + 2
    inner = leaves // (WIDTH // 2 - 1) + DEPTH
    corners, entries = np.empty(leaves * 2 * WIDTH), np.empty(inner * 5 * WIDTH)
    corners[:WIDTH], corners[WIDTH : 2 * WIDTH] = 0.0, np.inf
    sizes = np.zeros(leaves, np.uint64), np.zeros(inner, np.uint64)
    path = np.zeros((2, DEPTH), np.uint64)
    return Tree(corners, sizes[0], entries, np.empty(inner * WIDTH, np.uint64), sizes[1], *path, np.zeros((DEPTH, 4)))


@inlined
def below(x, base):
    """The number of entries of a node with D < 0, which come first."""
    count = 0
    for j in range(FULL):
        count += 1 if x[base + D + j] < 0.0 else 0
    return np.uint64(count)


@inlined
def push(t, node, slot, leaf):
    """Apply the deferred map of an entry to its child, whose last entry then equals the entry, and return the child."""
    k, child, x = node * INNER + slot, t.child[node * FULL + slot], t.nodes
    s, a, b = x[k + S], x[k + A], x[k + B]
    if s == 0.0 and a == 0.0 and b == 0.0:
        return child
    if leaf:
        y, base = t.leaf, child * LEAF
        for j in range(FULL):
            y[base + D + j] += a * y[base + j] + b
            y[base + j] += s
        last = base + t.size[child] - ONE
        y[last], y[last + D] = x[k], x[k + D]
    else:
        base = child * INNER
        for j in range(FULL):
            x[base + D + j] += a * x[base + j] + b
            x[base + j] += s
            x[base + B + j] += b + a * x[base + S + j]
            x[base + A + j] += a
            x[base + S + j] += s
        last = base + t.inner_size[child] - ONE
        x[last], x[last + D] = x[k], x[k + D]
    x[k + S], x[k + A], x[k + B] = 0.0, 0.0, 0.0
    return child


@inlined
def flush(t, level, depth):
    """Apply the deferred maps of a level of the path to its entries, except to the node below, which is up to date."""
    node, slot, x = t.node[level], t.slot[level], t.nodes
    base, under = node * INNER, t.node[level + 1]
    a, s, left, right = t.deferred[level, 0], t.deferred[level, 1], t.deferred[level, 2], t.deferred[level, 3]
    if a != 0.0:
        for j in range(FULL):
            c = a if j != slot else 0.0
            d = s if j > slot else 0.0
            b = (left if j < slot else right) if j != slot else 0.0
            x[base + D + j] += c * x[base + j] + b
            x[base + j] += d
            x[base + B + j] += b + c * x[base + S + j]
            x[base + A + j] += c
            x[base + S + j] += d
        for j in range(4):
            t.deferred[level, j] = 0.0
    k = base + slot
    if level + 1 == depth:
        last = under * LEAF + t.size[under] - ONE
        x[k], x[k + D] = t.leaf[last], t.leaf[last + D]
    else:
        last = under * INNER + t.inner_size[under] - ONE
        x[k], x[k + D] = x[last], x[last + D]


@inlined
def encloses(t, level, first, last):
    """Whether the zero is between the first and the last entry of a level's node, or beyond an end of the polyline."""
    if first >= 0.0:
        for above in range(level):
            if t.slot[above] > ZERO:
                return False
    if last < 0.0:
        for above in range(level):
            if t.slot[above] + ONE < t.inner_size[t.node[above]]:
                return False
    return True


@inlined
def find(t, depth, total):
    """The zero of the polyline, whose slope beyond its ends is `total`; the path to it is kept."""
    x, y, level = t.nodes, t.leaf, depth
    node = t.node[depth]
    base = node * LEAF + D
    if not encloses(t, depth, y[base], y[base + t.size[node] - ONE]):
        while level > 0:
            level -= 1
            flush(t, level, depth)
            node = t.node[level]
            base = node * INNER + D
            if encloses(t, level, x[base], x[base + t.inner_size[node] - ONE]):
                break
    has, p0, d0 = False, 0.0, 0.0
    while level < depth:
        node = t.node[level]
        base = node * INNER
        slot = min(below(x, base), t.inner_size[node] - ONE)
        if slot > ZERO:
            has, p0, d0 = True, x[base + slot - ONE], x[base + D + slot - ONE]
        t.slot[level] = slot
        level += 1
        t.node[level] = push(t, node, slot, level == depth)
    node = t.node[depth]
    base = node * LEAF
    slot = below(y, base)
    t.slot[depth] = slot
    if slot > ZERO:
        has, p0, d0 = True, y[base + slot - ONE], y[base + D + slot - ONE]
    if slot == t.size[node]:
        return p0 - d0 / total
    p1, d1 = y[base + slot], y[base + D + slot]
    if not has:
        return p1 - d1 / total
    run = (p1 - p0) / (d1 - d0)
    at = p0 - d0 * run if -d0 <= d1 else p1 - d1 * run
    return min(p1, max(p0, at))


@inlined
def advance(t, depth, g, d, w, y):
    """Insert a segment of length d at the zero g, shift what is right of it by d, and add the line w (f - y)."""
    left, right, x = -w * y, w * d - w * y, t.leaf
    for level in range(depth):
        t.deferred[level, 3] += right + w * t.deferred[level, 1]
        t.deferred[level, 2] += left
        t.deferred[level, 1] += d
        t.deferred[level, 0] += w
    leaf = t.node[depth]
    base, slot, j = leaf * LEAF, t.slot[depth], t.size[leaf]
    for i in range(base, base + slot):
        x[i + D] += w * x[i] + left
    while j > slot:
        j -= ONE
        i = base + j
        x[i + TWO], x[i + D + TWO] = x[i] + d, x[i + D] + (w * x[i] + right)
    i = base + slot
    x[i], x[i + D] = g, w * (g - y)
    x[i + ONE], x[i + D + ONE] = g + d, w * (g + d - y)
    t.size[leaf] += TWO


@inlined
def new_inner(t, node):
    for j in range(INNER):
        t.nodes[node * INNER + j] = 0.0
    for j in range(FULL):
        t.nodes[node * INNER + D + j] = np.inf


@inlined
def copy_entry(t, i, j, k, to):
    """Entry j of inner node i to entry `to` of inner node k."""
    for c in range(5):
        t.nodes[k * INNER + np.uint64(c) * FULL + to] = t.nodes[i * INNER + np.uint64(c) * FULL + j]
    t.child[k * FULL + to] = t.child[i * FULL + j]


@kernel
def make_room(t, depth, leaves, inner):
    """Split the full leaf at the end of the path, and the full nodes above it; depth, leaves and inner nodes in use."""
    x, y = t.nodes, t.leaf
    for level in range(depth - 1, -1, -1):
        flush(t, level, depth)
    split = depth  # the highest level to split
    while split > 0 and t.inner_size[t.node[split - 1]] == FULL:
        split -= 1
    if split == 0:  # a new root above the old one
        for level in range(depth + 1, 0, -1):
            t.node[level], t.slot[level] = t.node[level - 1], t.slot[level - 1]
        depth, split = depth + 1, 1
        new_inner(t, inner)
        t.node[0], t.slot[0], t.inner_size[inner], t.child[inner * FULL] = inner, ZERO, ONE, t.node[1]
        flush(t, 0, depth)
        inner += ONE
    for level in range(split, depth + 1):
        old, above, at = t.node[level], t.node[level - 1], t.slot[level - 1]
        j = t.inner_size[above]
        while j > at:
            copy_entry(t, above, j - ONE, above, j)
            j -= ONE
        t.inner_size[above] += ONE
        k = above * INNER + at
        if level == depth:
            new = leaves
            leaves += ONE
            for j in range(HALF):
                i, to = old * LEAF + HALF + j, new * LEAF + j
                y[to], y[to + D], y[to + HALF], y[to + D + HALF] = y[i], y[i + D], 0.0, np.inf
                y[i], y[i + D] = 0.0, np.inf
            t.size[new], t.size[old] = t.size[old] - HALF, HALF
            i = old * LEAF + HALF - ONE
            x[k], x[k + D] = y[i], y[i + D]
        else:
            new = inner
            inner += ONE
            new_inner(t, new)
            for j in range(HALF):
                copy_entry(t, old, HALF + j, new, j)
                x[old * INNER + HALF + j], x[old * INNER + D + HALF + j] = 0.0, np.inf
            t.inner_size[new], t.inner_size[old] = t.inner_size[old] - HALF, HALF
            i = old * INNER + HALF - ONE
            x[k], x[k + D] = x[i], x[i + D]
        t.child[above * FULL + at + ONE] = new
        if t.slot[level] >= HALF:
            t.node[level] = new
            t.slot[level] -= HALF
            t.slot[level - 1] += ONE
    return depth, leaves, inner


@kernel
def fit_in_order(z, y, w, constant, span, t, g, d):
    """Write the fit to g. `span` is the range of y, which no two values of the fit differ by more than."""
    depth, leaves, inner = 0, ONE, ZERO
    m, total = z.size, w[0]
    g[0] = y[0]
    for i in range(1, m):
        d[i - 1] = min(constant * (z[i] - z[i - 1]), span)
        if t.size[t.node[depth]] + TWO > FULL:
            depth, leaves, inner = make_room(t, depth, leaves, inner)
        advance(t, depth, g[i - 1], d[i - 1], w[i], y[i])
        total += w[i]
        g[i] = find(t, depth, total)
    for i in range(m - 2, -1, -1):
        g[i] = min(g[i + 1], max(g[i], g[i + 1] - d[i]))


def lipschitz_fit(z: np.ndarray, y: np.ndarray, w: np.ndarray, constant: float) -> np.ndarray:
    """Return the nondecreasing fit of Lipschitz constant `constant` at strictly ascending z.

    The middle of the range of y is subtracted and weights are divided by a power of two, so that sums do not overflow.
    """
    least, most = float(y.min()), float(y.max())
    middle = 0.5 * least + 0.5 * most
    weight = np.ldexp(w, -np.frexp(w.max())[1])
    g, d = np.empty(z.size), np.empty(z.size)
    fit_in_order(z, y - middle, weight, constant, most - least, tree(z.size), g, d)
    fit: np.ndarray = np.clip(g + middle, least, most)
    return fit
