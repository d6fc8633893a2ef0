"""From the name of a feature to its column: a dictionary, a hash, or an index.

A lookup is a NamedTuple of arrays. `lookup.used[0]` is its number of columns so far.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.compiler import inlined, kernel, part
from ...kernels.simd import prefetch
from .bits import ALL, B32, BACKSLASH, CARET, NONE, ONE, ZERO, U, byte, word

LOW32, HIGH32 = U(0xFFFFFFFF), U(0xFFFFFFFF00000000)
SPREAD = U(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
FNV_START, FNV_PRIME = U(0xCBF29CE484222325), U(0x100000001B3)
SHARED = 0xFFFE  # the fingerprint of a column that several names are mapped to


@inlined
def fnv(h, buf, a, b):
    """The 64-bit FNV-1a hash of buf[a:b], continued from the hash h."""
    for i in range(a, b):
        h = (h ^ U(byte(buf, i))) * FNV_PRIME
    return h


@inlined
def first_word(buf, a, b):
    """The first eight bytes of buf[a:b], zeros after its end."""
    if b - a >= 8:
        return word(buf, a)
    return word(buf, a) & (ALL >> U((64 - 8 * (b - a)) & 63)) if b > a else NONE


@inlined
def hash_bytes(space, buf, a, b):
    """A hash of buf[a:b] within a namespace, eight bytes at a time; it never leaves the dictionary."""
    h = (first_word(buf, a, b) ^ (U(space) * SPREAD) ^ U(b - a)) * SPREAD
    i = a + 8
    while i < b:
        h = (h ^ (h >> B32) ^ first_word(buf, i, b)) * SPREAD
        i += 8
    return h ^ (h >> B32)


@kernel
def equals_item(ends, text, k, buf, a, b):
    """Whether item k of the text is buf[a:b]."""
    i = ends[k]
    if ends[k + 1] - i != b - a:
        return False
    for j in range(a, b):
        if text[i] != byte(buf, j):
            return False
        i += 1
    return True


@part
class NameLookup(NamedTuple):
    """A dictionary of names within namespaces, numbered in order of first appearance.

    A slot holds the first eight bytes of a name and its mark: the namespace, the length and the number plus 1 (24, 8
    and 32 bits); 0 is empty. `text` holds the names one after another, name k from `ends[k]` to `ends[k + 1]`; likewise
    the namespaces, of which number 0 is empty and means none. `used` holds the counts of names and of namespaces.
    """

    slots: np.ndarray
    hashes: np.ndarray
    marks: np.ndarray
    ends: np.ndarray
    text: np.ndarray
    space_ends: np.ndarray
    space_text: np.ndarray
    used: np.ndarray

    def namespace(self, buf, a, b):
        """The number of a namespace, added if it is new; -1 if there is no room."""
        n = self.used[1]
        for k in range(n):
            if equals_item(self.space_ends, self.space_text, k, buf, a, b):
                return k
        i = self.space_ends[n]
        if n + 1 >= self.space_ends.size or i + b - a > self.space_text.size:
            return -1
        for j in range(a, b):
            self.space_text[i] = byte(buf, j)
            i += 1
        self.space_ends[n + 1], self.used[1] = i, n + 1
        return n

    def hash_space(self, buf, a, b):
        """Return a dummy value, because hashing a name needs only the number of its namespace."""
        return NONE

    def hash_name(self, space, h, buf, a, b):
        """The hash of the name buf[a:b] in a namespace; its slot is prefetched for `find_or_add`."""
        code = hash_bytes(space, buf, a, b)
        prefetch(self.slots, 16 * np.int64(code & U(self.slots.shape[0] - 1)))
        return code

    def find_or_add(self, space, code, buf, a, b):
        """The column of the name with this hash, added if it is new; -1 if there is no room."""
        mask = self.slots.shape[0] - 1
        key = first_word(buf, a, b)
        mark = (U(space) << U(40)) | (U(min(b - a, 255)) << B32)
        slot = np.int64(code & U(mask))
        seen = self.slots[slot, 1]
        while seen != NONE:
            if self.slots[slot, 0] == key and seen & HIGH32 == mark:
                k = np.int64(seen & LOW32) - 1
                if b - a <= 8 or equals_item(self.ends, self.text, k, buf, a, b):
                    return k
            slot = (slot + 1) & mask
            seen = self.slots[slot, 1]
        n = self.used[0]
        i = self.ends[n]
        if n >= self.hashes.size or i + b - a > self.text.size:
            return -1
        for j in range(a, b):
            self.text[i] = byte(buf, j)
            i += 1
        mark = mark | U(n + 1)
        self.slots[slot, 0], self.slots[slot, 1], self.hashes[n], self.marks[n] = key, mark, code, mark
        self.ends[n + 1], self.used[0] = i, n + 1
        return n


@part
class HashLookup(NamedTuple):
    """Columns by hash: the low bits of h ^ (h >> 32), h the FNV-1a hash of the name.

    `fingerprints` holds 16 other bits of the hash of the first name in a column, or SHARED after a name with different
    bits; `used` holds the number of columns, of columns in use, and of shared columns.
    """

    fingerprints: np.ndarray
    used: np.ndarray

    def namespace(self, buf, a, b):
        """Always 0: the hash alone tells namespaces apart."""
        return 0

    def hash_space(self, buf, a, b):
        """The hash of a namespace and the caret after it, escaped as in `NameDictionary`; NONE if it is empty."""
        h = FNV_START
        for i in range(a, b):
            if byte(buf, i) == CARET or byte(buf, i) == BACKSLASH:
                h = (h ^ U(BACKSLASH)) * FNV_PRIME
            h = (h ^ U(byte(buf, i))) * FNV_PRIME
        return (h ^ U(CARET)) * FNV_PRIME if b > a else NONE

    def hash_name(self, space, h, buf, a, b):
        """The hash of the name buf[a:b], continued from the hash h of the namespace, which is NONE if it is empty."""
        if h == NONE:
            h = FNV_START
            for i in range(a, b):
                if byte(buf, i) == CARET:
                    h = (FNV_START ^ U(CARET)) * FNV_PRIME
        h = fnv(h, buf, a, b)
        prefetch(self.fingerprints, 2 * np.int64((h ^ (h >> B32)) & U(self.fingerprints.size - 1)))
        return h

    def find_or_add(self, space, code, buf, a, b):
        """The column of the name with this hash."""
        k = np.int64((code ^ (code >> B32)) & U(self.fingerprints.size - 1))
        fingerprint = (code >> U(40)) & U(0x7FFF) | ONE
        if self.fingerprints[k] != fingerprint:
            if self.fingerprints[k] == 0:
                self.fingerprints[k] = fingerprint
                self.used[1] += 1
            elif self.fingerprints[k] != SHARED:
                self.fingerprints[k] = SHARED
                self.used[2] += 1
        return k

    def column_of_index(self, index, buf, a, b):
        """The column of an index, by its digits."""
        while a + 1 < b and buf[a] == ZERO:
            a += 1
        return self.find_or_add(0, fnv(FNV_START, buf, a, b), buf, a, b)


@part
class IndexLookup(NamedTuple):
    """Columns by index, the first index being `base`. `used` is not counted here: a row may yet be rejected."""

    base: int
    used: np.ndarray

    def column_of_index(self, index, buf, a, b):
        """The column of an index."""
        return index - self.base


@kernel
def column_of_name(lookup, space, name, size):
    """The column of the name name[:size], added if it is new; zeros must follow it."""
    return lookup.find_or_add(space, lookup.hash_name(space, FNV_START, name, 0, size), name, 0, size)


@kernel
def rehash(names):
    """Put every name of a `NameLookup` into its emptied slots."""
    mask = names.slots.shape[0] - 1
    for k in range(names.used[0]):
        slot = np.int64(names.hashes[k] & U(mask))
        while names.slots[slot, 1] != NONE:
            slot = (slot + 1) & mask
        names.slots[slot, 0] = first_word(names.text, names.ends[k], names.ends[k + 1])
        names.slots[slot, 1] = names.marks[k]
