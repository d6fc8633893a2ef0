"""Records of separated fields: CSV and TSV."""

from ...kernels.compiler import kernel
from .bits import CR, LF, QUOTE, SPACE, TAB
from .lookups import hash_bytes
from .numbers import MAX_WHOLE, parse_number
from .records import DONE, NO_ROOM, SHORT, STATUS, add_bad, add_row, count, defer, is_space

IGNORE, FEATURE, TARGET, WEIGHT, CATEGORY, TEXT = range(6)  # roles of a column; text is always deferred
TOO_FEW, TOO_MANY, OPEN_QUOTE, AFTER_QUOTE = range(4)  # what is wrong with a record


@kernel
def parse_table(
    buf, i, end, final, line, sep, pad, roles, dest, names, scratch, X, y, weight, ids, rows, deferred, bad, counts
):
    """Whole records from buf[i:end].

    pad : whether a record that is too short is taken, with empty fields at its end; these are counted.
    roles, dest : for each column its role and destination: the column of X for a feature, the column of `ids` for a
    category (its namespace in `names` minus 1).
    deferred : row, column, first byte and end of fields that are empty or not plain numbers.
    bad : first byte, end, line, what is wrong, and the number of fields.
    """
    width, r, deferreds, bads, short = roles.size, 0, 0, 0, 0
    blank = SPACE if sep != SPACE else TAB
    known = names.used[0]
    counts[STATUS] = DONE
    while r < rows.shape[0] and deferreds + width <= deferred.shape[0] and bads < bad.shape[0]:
        while i < end and (buf[i] == LF or buf[i] == CR) and (final or buf[i] == LF or i + 1 < end):
            line += buf[i] == LF or buf[i + 1] != LF
            i += 1
        if i >= end or buf[i] == CR:  # a line feed may follow in the next block
            break
        known = names.used[0]
        first, deferreds_before, at, c, wrong = i, deferreds, line, 0, -1
        whole = False
        while True:
            while i < end and (buf[i] == blank or buf[i] == SPACE) and buf[i] != sep:
                i += 1
            role = roles[c] if c < width else IGNORE
            a, b, good, v, doubled = i, i, 0, 0.0, False
            if i < end and buf[i] == QUOTE:
                a, b = i + 1, i + 1
                while b < end:
                    if buf[b] == QUOTE:
                        if b + 1 < end and buf[b + 1] == QUOTE:
                            doubled = True
                            b += 1
                        else:
                            break
                    line += buf[b] == LF or (buf[b] == CR and buf[b + 1] != LF)
                    b += 1
                i = b + 1
                if b >= end:
                    wrong, i = OPEN_QUOTE, end
                while i < end and buf[i] != sep and buf[i] != LF and buf[i] != CR:
                    if buf[i] != SPACE and buf[i] != blank:
                        wrong = AFTER_QUOTE
                    i += 1
                while a < b and is_space(buf[a]):
                    a += 1
                while b > a and is_space(buf[b - 1]):
                    b -= 1
                if IGNORE < role < CATEGORY:
                    v, k, good = parse_number(buf, a)
                    good = good if k == b else 0
            else:
                if IGNORE < role < CATEGORY:
                    v, i, good = parse_number(buf, i)
                if i > end:
                    good, i = 0, a
                if not (i < end and (buf[i] == sep or buf[i] == LF or buf[i] == CR)):
                    good = good if i == end else 0
                    while i < end and buf[i] != sep and buf[i] != LF and buf[i] != CR:
                        i += 1
                b = i
                while b > a and (buf[b - 1] == SPACE or buf[b - 1] == blank):
                    b -= 1
            if not final and (i >= end or (buf[i] == CR and i + 1 >= end)):
                break  # the rest of the record is in the next block
            if role == FEATURE and good:
                X[r, dest[c]] = v
            elif role == CATEGORY:
                k = a
                if a == b:
                    k = -1
                elif doubled:
                    m = 0
                    while k < b:
                        scratch[m] = buf[k]
                        m += 1
                        k += 2 if buf[k] == QUOTE else 1
                    for k in range(m, m + 8):
                        scratch[k] = 0
                    k = names.find_or_add(dest[c] + 1, hash_bytes(dest[c] + 1, scratch, 0, m), scratch, 0, m)
                else:
                    k = names.find_or_add(dest[c] + 1, hash_bytes(dest[c] + 1, buf, a, b), buf, a, b)
                if k < 0 and a < b:
                    counts[STATUS] = NO_ROOM
                    break
                ids[r, dest[c]] = k
                if a == b:
                    deferreds = defer(deferred, deferreds, r, c, a, b)
            elif role != IGNORE:
                if role == TARGET:
                    y[r] = v
                    good = good if abs(v) < MAX_WHOLE else 0
                elif role == WEIGHT:
                    weight[r] = v
                if not good:
                    deferreds = defer(deferred, deferreds, r, c, a, b)
            c += 1
            if i >= end or buf[i] != sep:
                whole = True
                break
            i += 1
        if not whole:
            i, line, deferreds = first, at, deferreds_before
            break
        stop = i
        if i < end:
            i += 2 if buf[i] == CR and buf[i + 1] == LF else 1
            line += 1
        if wrong < 0 and c < width and pad:
            short += 1
            for k in range(c, width):
                if roles[k] == CATEGORY:
                    ids[r, dest[k]] = -1
                if roles[k] != IGNORE:
                    deferreds = defer(deferred, deferreds, r, k, stop, stop)
        elif wrong < 0 and c != width:
            wrong = TOO_FEW if c < width else TOO_MANY
        if wrong >= 0:
            bads = add_bad(bad, bads, first, stop, at, wrong, c, c)
            deferreds = deferreds_before
        else:
            r = add_row(rows, r, first, stop, at)
        known = names.used[0]
    count(counts, r, i, line, deferreds, bads, known)
    counts[SHORT] = short
