"""Dicts from names to numbers, read by compiled code through the public functions of Python's C API.

In Python, looking up 75 names one by one takes longer than learning from them. Here one compiled call iterates over the
dict, looks up each name in a separate hash table, and writes the row in ascending columns.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from . import private
from .compiler import compiled

READABLE = private.dicts_readable()  # whether dicts may be read here; plain Python reads them otherwise

held = compiled()  # with the interpreter's lock, which its functions need

DONE, FALLBACK = range(2)
POSITION = 32  # bits of a place in a row, below those of its column

# Types whose values and hashes come from C code alone: nothing they do can change the dict that is being walked.
NUMBERS = (float, int, bool, np.float64, np.float32, np.int64, np.int32)
NAMES = (str, int)
KINDS = np.array([id(kind) for kind in (*NAMES, *NUMBERS)])
FLOATS = len(NAMES)  # the first of KINDS that is a number's
FEW = 128  # names of a row that are put in order by counting those before each

# Python's functions, on addresses as whole numbers.
WORD, REAL, TRUTH = types.int64, types.float64, types.int32
PyDict_Next = types.ExternalFunction("PyDict_Next", TRUTH(WORD, WORD, WORD, WORD))
PyDict_Size = types.ExternalFunction("PyDict_Size", WORD(WORD))
PyDict_SetItem = types.ExternalFunction("PyDict_SetItem", TRUTH(WORD, WORD, WORD))
PyObject_Hash = types.ExternalFunction("PyObject_Hash", WORD(WORD))
PyObject_RichCompareBool = types.ExternalFunction("PyObject_RichCompareBool", TRUTH(WORD, WORD, TRUTH))
PyLong_FromLongLong = types.ExternalFunction("PyLong_FromLongLong", WORD(WORD))
PyFloat_AsDouble = types.ExternalFunction("PyFloat_AsDouble", REAL(WORD))
PyObject_Type = types.ExternalFunction("PyObject_Type", WORD(WORD))
PyErr_Occurred = types.ExternalFunction("PyErr_Occurred", WORD())
PyErr_Clear = types.ExternalFunction("PyErr_Clear", types.void())
Py_DecRef = types.ExternalFunction("Py_DecRef", types.void(WORD))
EQUAL = np.int32(2)


@intrinsic
def address(typing, array):
    """The address of an array's memory."""

    def build(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return WORD(array), build


@intrinsic
def fetch(typing, place):
    """Prefetch the cache line at an address."""

    def build(context, builder, signature, arguments):
        line, code = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, code, code, code])
        touch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(touch, [line, code(0), code(3), code(1)])
        return context.get_dummy_value()

    return types.void(WORD), build


@held
def advance(mapping, cursor):
    """Whether a dict has a next item; cursor[0] moves past it, and cursor[1] and cursor[2] are its key and value."""
    place = address(cursor)
    return PyDict_Next(mapping, place, place + 8, place + 16) != 0


@held
def same(one, other):
    """Whether two names are equal."""
    return PyObject_RichCompareBool(one, other, EQUAL) == 1


@held
def kind_of(thing):
    """The address of an object's type. It stays valid for builtin types; others are only compared."""
    kind = PyObject_Type(thing)
    Py_DecRef(kind)
    return kind


@held
def is_name(thing, kinds):
    """Whether an object is a plain name."""
    kind = kind_of(thing)
    return kind == kinds[0] or kind == kinds[1]


@held
def join(column, name):
    """Give a name the next column, and return it."""
    place = PyDict_Size(column)
    boxed = PyLong_FromLongLong(place)
    PyDict_SetItem(column, name, boxed)
    Py_DecRef(boxed)
    return place


@held
def failed():
    """Whether a function of Python raised an exception, which is cleared."""
    if PyErr_Occurred() == 0:
        return False
    PyErr_Clear()
    return True


@held
def enter(name, place, cursor, table):
    """Enter the hash, address and column of a name; the caller ensures that there is room."""
    mask = len(table) - 1
    code = PyObject_Hash(name)
    k = code & mask
    while table[k, 1] != 0:
        k = (k + 1) & mask
    table[k, 0], table[k, 1], table[k, 2] = code, name, place
    cursor[3] += 1


@held
def fill(column, kinds, cursor, table):
    """Enter every name of the dict at address `column`; return False if one is not a plain name."""
    cursor[0] = cursor[3] = 0
    while advance(column, cursor):
        if not is_name(cursor[1], kinds):
            return False
        enter(cursor[1], np.int64(PyFloat_AsDouble(cursor[2])), cursor, table)
    return True


@held
def lay(x, column, grow, kinds, cursor, items, numbers, order, table, data, indices, indptr):
    """Write the dict at address x as a row, with values in data and their columns in indices, ascending.

    `table` has the hash, address and column of each of the cursor[3] names in the dict at address `column`. An unknown
    name is added to both if `grow`, and left out otherwise. Returns DONE, or FALLBACK if there is no room for the row
    or its new names, a name is neither str nor int, or a value is not a plain number; then nothing but names changes.

    The data is scattered over memory, and waiting for it is most of the work. Therefore every loop prefetches what the
    next one needs.
    """
    if cursor[3] != PyDict_Size(column):
        return FALLBACK
    size = cursor[0] = 0
    while advance(x, cursor):
        if size == order.size:
            return FALLBACK
        items[0, size], items[1, size] = cursor[1], cursor[2]
        fetch(cursor[1])
        fetch(cursor[2])
        size += 1
    mask = len(table) - 1
    first = address(table)
    for i in range(size):
        name, value = items[0, i], items[1, i]
        if not is_name(name, kinds):
            return FALLBACK
        kind = kind_of(value)
        if kind != kinds[FLOATS]:
            plain = False
            for k in range(FLOATS, kinds.size):
                plain |= kind == kinds[k]
            if not plain:
                return FALLBACK
        numbers[i] = PyFloat_AsDouble(value)
        if numbers[i] == -1.0 and failed():
            return FALLBACK
        items[2, i] = PyObject_Hash(name)
        fetch(first + 24 * (items[2, i] & mask))
    for i in range(size):
        k = items[2, i] & mask
        while table[k, 1] != 0 and table[k, 0] != items[2, i]:
            k = (k + 1) & mask
        items[3, i] = k
        if table[k, 1] != 0:
            fetch(table[k, 1])
    count, ascending = 0, True
    for i in range(size):
        name, k = items[0, i], items[3, i]
        while table[k, 1] != 0 and not (
            table[k, 1] == name or (table[k, 0] == items[2, i] and same(table[k, 1], name))
        ):
            k = (k + 1) & mask
        if table[k, 1] == 0:
            if not grow:
                continue
            if 2 * cursor[3] > mask:
                return FALLBACK
            place = join(column, name)
            if failed():
                return FALLBACK
            cursor[3] += 1
            table[k, 0], table[k, 1], table[k, 2] = items[2, i], name, place
        order[count] = table[k, 2] << POSITION | i
        ascending &= count == 0 or order[count - 1] < order[count]
        count += 1
    if count > FEW and not ascending:
        sort(order, count)
    for i in range(count):
        k = i
        if count <= FEW and not ascending:
            k = 0
            for other in range(count):
                k += order[other] < order[i]
        data[k], indices[k] = numbers[order[i] & ((1 << POSITION) - 1)], order[i] >> POSITION
    indptr[1] = count
    return DONE


@held
def sort(keys, count):
    """Sort the first `count` keys by Shell's sort, since they are few and usually almost in order."""
    gap = count
    while gap > 0:
        gap = gap // 2 if gap != 2 else 1
        for i in range(gap, count if gap > 0 else 0):
            key, k = keys[i], i
            while k >= gap and keys[k - gap] > key:
                keys[k] = keys[k - gap]
                k -= gap
            keys[k] = key
