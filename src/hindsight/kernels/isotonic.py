"""The loops of isotonic regression: order, ties, pools and interpolation.

Points are ordered by one sort of 64-bit numbers, which have the leading bits of z, as an integer that increases with z,
above the index of the point. It is a radix sort, so its time does not depend on the branch predictor. If the leading
bits tie, z itself decides.
"""

import math

import numpy as np

from .compiler import compiled, inlined, kernel

summing = compiled(nogil=True, fastmath={"reassoc", "contract"})  # sums in any order, so that they vectorise

ZERO, ONE, BLOCK = np.uint64(0), np.uint64(1), np.uint64(4096)
DIGIT, LAST = np.uint64(11), np.uint64(2047)  # bits of a digit, and the largest digit
ABS = np.int64(0x7FFFFFFFFFFFFFFF)
SHORT = 32  # points with the same leading bits up to which they are sorted by insertion


@inlined
def key(z):
    """An integer that increases with z; the same for -0.0 and 0.0."""
    u = np.float64(z + 0.0).view(np.int64)
    return u ^ ((u >> np.int64(63)) & ABS)


@kernel
def largest(a):
    """The largest |a|; NaN or infinity if there is one."""
    top = np.int64(0)
    for i in range(a.size):
        top = max(top, np.float64(a[i]).view(np.int64) & ABS)
    return np.int64(top).view(np.float64)


@kernel
def ascending(z):
    """Whether z is in ascending order, and whether strictly so; in blocks, so that the loops vectorise."""
    a, end, ties = ONE, np.uint64(z.size), False
    while a < end:
        falls, b = False, min(end, a + BLOCK)
        for i in range(a, b):
            falls |= z[i] < z[i - ONE]
        if falls:
            return False, False
        for i in range(a, b):
            ties |= z[i] == z[i - ONE]
        a = b
    return True, not ties


@kernel
def key_range(z):
    """The smallest and the largest key."""
    least, most = key(z[0]), key(z[0])
    for i in range(z.size):
        least, most = min(least, key(z[i])), max(most, key(z[i]))
    return least, most


@kernel
def pack(z, least, shift, index_bits, first, out):
    """The leading bits of each z above the index of the point, which starts at `first`."""
    for i in range(z.size):
        out[i] = (np.uint64(key(z[i]) - least) >> shift << index_bits) | np.uint64(first + i)


@kernel
def count_digits(a, low, counts):
    """counts[p, d]: how many numbers have d as their digit p, where digits of DIGIT bits begin at bit `low`."""
    for i in range(a.size):
        x = a[i] >> low
        for p in range(counts.shape[0]):
            counts[p, x & LAST] += ONE
            x >>= DIGIT


@kernel
def by_digit(a, shift, counts, out):
    """Sort the numbers stably by the digit at bit `shift` into `out`."""
    total = ZERO
    for d in range(counts.size):
        here = counts[d]
        counts[d] = total
        total += here
    for i in range(a.size):
        x = a[i]
        d = (x >> shift) & LAST
        out[counts[d]] = x
        counts[d] += ONE


@kernel
def merge(a, b, out):
    """Merge two ascending arrays, without unpredictable branches."""
    i, j, k, ma, mb = ZERO, ZERO, ZERO, np.uint64(a.size), np.uint64(b.size)
    while i < ma and j < mb:
        x, y = a[i], b[j]
        first = x < y
        out[k] = x if first else y
        i += ONE if first else ZERO
        j += ZERO if first else ONE
        k += ONE
    while i < ma:
        out[k] = a[i]
        i, k = i + ONE, k + ONE
    while j < mb:
        out[k] = b[j]
        j, k = j + ONE, k + ONE


@kernel
def split_point(a, b, count):
    """The number of the `count` smallest entries of two ascending arrays, all different, that are in the first one."""
    low, high = max(0, count - b.size), min(count, a.size)
    while low < high:
        i = (low + high) // 2
        if a[i] < b[count - i - 1]:
            low = i + 1
        else:
            high = i
    return low


@kernel
def unpack(packed, z, shift, index_bits, order):
    """Write the indices in order of z; return whether that was possible, and whether no two z are equal.

    It is not possible if too many z share their leading bits and yet differ.
    """
    mask = (np.uint64(1) << index_bits) - np.uint64(1)
    m, strictly, a = packed.size, True, 0
    for k in range(m):
        order[k] = packed[k] & mask
    for k in range(1, m + 1):
        if k < m and packed[k] >> index_bits == packed[a] >> index_bits:
            continue
        for i in range(a + 1, k):  # the points a..k have the same leading bits
            index, j = order[i], i - 1
            if shift > ZERO:
                while j >= a and z[order[j]] > z[index]:
                    if k - a > SHORT:
                        return False, False
                    order[j + 1] = order[j]
                    j -= 1
                order[j + 1] = index
            strictly &= not (j >= a and z[order[j]] == z[index])
        a = k
    return True, strictly


@kernel
def gather(a, order, out):
    """a in order."""
    for k in range(order.size):
        out[k] = a[order[k]]


@inlined
def cuts(top, count):
    """Three powers of two; if `count` numbers up to `top` are cut at these, the parts add up without rounding."""
    room = math.frexp(float(count))[1] + 1
    at = math.frexp(top)[1] + room
    return math.ldexp(1.0, at), math.ldexp(1.0, at - 53 + room), math.ldexp(1.0, at - 106 + 2 * room)


@kernel
def tie(z, y, w, mask, i, sign):
    """Pool the points with the z of point i: their mean, their weight, and the index of the next z.

    The weight of point i is w[i & mask]; with mask 0 all weights are equal. Sums do not depend on the order of the
    points, because each number is cut at the same powers of two.
    """
    j, least, most, heavy, top = i + ONE, y[i], y[i], w[i & mask], abs(w[i & mask] * y[i])
    while j < np.uint64(z.size) and z[j] == z[i]:
        least, most = min(least, y[j]), max(most, y[j])
        heavy, top = max(heavy, w[j & mask]), max(top, abs(w[j & mask] * y[j]))
        j += ONE
    w1, w2, w3 = cuts(heavy, j - i)
    y1, y2, y3 = cuts(top, j - i)
    c1, c2, c3, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(i, j):
        x = w[k & mask]
        piece = (w1 + x) - w1
        c1 += piece
        x -= piece
        piece = (w2 + x) - w2
        c2 += piece
        c3 += (w3 + (x - piece)) - w3
        x = w[k & mask] * y[k]
        piece = (y1 + x) - y1
        s1 += piece
        x -= piece
        piece = (y2 + x) - y2
        s2 += piece
        s3 += (y3 + (x - piece)) - y3
    weight = c1 + (c2 + c3)
    mean = (s1 + (s2 + s3)) / weight
    return sign * min(most, max(least, mean)), weight, j


@inlined
def point(z, y, w, mask, i, sign):
    """The value and weight at the z of point i, and the index of the next z; z may be empty if no two are equal."""
    if i + ONE < np.uint64(z.size) and z[i + ONE] == z[i]:
        return tie(z, y, w, mask, i, sign)
    return sign * y[i], w[i & mask], i + ONE


@kernel
def points(z, y, w, mask, sign, at, value, weight, start):
    """Write the points with ties pooled, and return their number."""
    b, i, m = ZERO, ZERO, np.uint64(z.size)
    while i < m:
        x, c, j = point(z, y, w, mask, i, sign)
        at[b], value[b], weight[b], start[b] = z[i], x, c, i
        b, i = b + ONE, j
    start[b] = m
    return b


@kernel
def pav(z, y, w, mask, sign, value, weight, start):
    """Pool adjacent violators for ascending z; write values, weights and first indices of the pools; return how many.

    Equal neighbours are pooled without arithmetic, so the fit of a fit is the same, bit for bit.
    """
    m, b, i = np.uint64(y.size), ZERO, ZERO
    x, c, j = point(z, y, w, mask, i, sign)  # the next point, at i..j
    while i < m:
        at, v, mass, i = i, x, c, j
        if i < m:
            x, c, j = point(z, y, w, mask, i, sign)
        while i < m and x == v:
            mass, i = mass + c, j
            if i < m:
                x, c, j = point(z, y, w, mask, i, sign)
        if (i < m and x < v) or (b > ZERO and value[b - ONE] >= v):
            total = v * mass
            while True:
                while i < m and x * mass <= total:
                    total, mass, i = total + x * c, mass + c, j
                    if i < m:
                        x, c, j = point(z, y, w, mask, i, sign)
                v = total / mass
                if b == ZERO or value[b - ONE] < v:
                    break
                while b > ZERO and value[b - ONE] >= v:
                    b -= ONE
                    total, mass, at = total + value[b] * weight[b], mass + weight[b], start[b]
                    v = total / mass
        value[b], weight[b], start[b] = v, mass, at
        b += ONE
    start[b] = m
    return b


@inlined
def last_rank(rank):
    """The largest rank."""
    top = rank[0]
    for i in range(rank.size):
        top = max(top, rank[i])
    return top


@kernel
def quantile_fit(rank, w, mask, begins, level, upper, slack, todo, fit):
    """The isotonic fit of a quantile, as ranks of the outcomes: the largest one if `upper`, otherwise the least.

    `rank` are the ranks of the outcomes in order of z, from 0; `begins` marks the first of points with the same z. The
    fit is found by bisection. Of points a..b whose fit lies between two ranks, those above the middle rank are a final
    segment: the one for which raising it from the middle rank to the next costs least. Both segments are then fitted
    separately. Costs that differ by at most `slack` count as equal. `todo` is workspace, of shape (4, 128).
    """
    todo[0, 0], todo[1, 0], todo[2, 0], todo[3, 0] = 0, rank.size, 0, last_rank(rank)
    count = 1
    while count > 0:
        count -= 1
        a, b, low, high = todo[0, count], todo[1, count], todo[2, count], todo[3, count]
        if a == b:
            continue
        if low == high:
            for i in range(a, b):
                fit[i] = low
            continue
        middle = (low + high) // 2
        below, total, least, cut = 0.0, 0.0, 0.0, b
        for i in range(b - 1, a - 1, -1):
            c = w[np.uint64(i) & mask]
            total += c
            below += c if rank[i] <= middle else 0.0
            if begins[i]:
                cost = below - level * total
                if cost < least - slack or (upper and cost <= least + slack):
                    cut = i
                least = min(least, cost)
        todo[0, count], todo[1, count], todo[2, count], todo[3, count] = a, cut, low, middle
        count += 1
        todo[0, count], todo[1, count], todo[2, count], todo[3, count] = cut, b, middle + 1, high
        count += 1


@kernel
def spread(value, start, pools, sign, fit):
    """Write the value of each pool to its points. `value` may share memory with `fit`: the last pool is first."""
    for k in range(pools - 1, -1, -1):
        v = sign * value[k]
        for i in range(start[k], start[k + 1]):
            fit[i] = v


@kernel
def scatter(a, order, out):
    """Write a[k] to out[order[k]]."""
    for k in range(order.size):
        out[order[k]] = a[k]


@kernel
def interpolate(x, at, value, out):
    """The fit at each x: linear between the knots, constant beyond the first and the last."""
    last = at.size - 1
    for i in range(x.size):
        low, high = 0, last
        if not x[i] > at[0]:
            high = 0
        elif not x[i] < at[last]:
            low = last
        while low + 1 < high:
            middle = (low + high) // 2
            if at[middle] <= x[i]:
                low = middle
            else:
                high = middle
        if high <= low:
            out[i] = value[low if x[i] > at[0] else 0]
            continue
        t = (x[i] - at[low]) / (at[high] - at[low])
        if not t <= 1.0:  # the gap overflows
            t = (0.5 * x[i] - 0.5 * at[low]) / (0.5 * at[high] - 0.5 * at[low])
        a, b = value[low], value[high]
        out[i] = min(max(a, b), max(min(a, b), a + t * (b - a)))


@kernel
def join(value, weight, start, count):
    """Merge neighbours of equal value into one pool, in place, and return the number of pools."""
    b = 0
    for k in range(1, count):
        if value[k] == value[b]:
            weight[b] += weight[k]
        else:
            b += 1
            value[b], weight[b], start[b] = value[k], weight[k], start[k]
    start[b + 1] = start[count]
    return b + 1


@kernel
def ranks(a, order, out):
    """Ranks minus their mean; ties share their mean."""
    m, i = order.size, 0
    while i < m:
        j = i + 1
        while j < m and a[order[j]] == a[order[i]]:
            j += 1
        for k in range(i, j):
            out[order[k]] = 0.5 * (i + j - m)
        i = j


@summing
def residuals(y, mean, proportion, out):
    """Write proportion (y - mean), and return Sigma proportion (y - mean)^2, without the threads of BLAS."""
    total = 0.0
    for i in range(y.size):
        error = y[i] - mean[i]
        out[i] = proportion[i] * error
        total += out[i] * error
    return total


@summing
def weighted_sum(weight, values):
    """Sigma weight values."""
    total = 0.0
    for i in range(values.size):
        total += weight[i] * values[i]
    return total


@summing
def square_parts(y, said, fit, mean, weight):
    """Sums of weighted square losses: of the forecasts, and what the fit saves relative to them and to the mean."""
    lost, over, under, base = 0.0, 0.0, 0.0, 0.0
    for i in range(y.size):
        one, two, three = (said[i] - y[i]) ** 2, (fit[i] - y[i]) ** 2, (mean - y[i]) ** 2
        lost += weight[i] * one
        over += weight[i] * (one - two)
        under += weight[i] * (three - two)
        base += weight[i] * three
    return lost, over, under, base
