"""Access to text eight bytes at a time, and operations on 64-bit words that numba lacks.

Each operation is a plain Python function, which checks its indices, and an intrinsic that replaces it in compiled code,
which does not check them unless `NUMBA_BOUNDSCHECK=1` is set. This is safe because text is always followed by PAD zero
bytes.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic, overload

from ...kernels.compiler import INLINE

PAD = 32  # zero bytes after the end of a text, so that eight bytes can be read from any position

LF, CR, TAB, SPACE, QUOTE, HASH, PLUS, MINUS, DOT, ZERO, NINE, COLON, BAR, E = (ord(c) for c in '\n\r\t "#+-.09:|e')
APOSTROPHE, CARET, BACKSLASH = (ord(c) for c in "'^\\")

U = np.uint64
NONE, ALL = U(0), U(0xFFFFFFFFFFFFFFFF)
ONE, THREE, EIGHT, TEN, B16, B32, B63 = (U(v) for v in (1, 3, 8, 10, 16, 32, 63))
HIGH = U(0x8080808080808080)  # the highest bit of each byte


def word(buf, i):
    """Eight bytes from position i, the first one lowest."""
    return U(int.from_bytes(bytes(buf[i : i + 8]).ljust(8, b"\0"), "little") if 0 <= i <= len(buf) - 8 else len(buf[i]))


def byte(buf, i):
    """The byte at position i, without numba's test for positions counted from the end."""
    return int(buf[i]) if i >= 0 else len(buf[i])


def float_from_bits(bits):
    """The float with these bits."""
    return np.array(bits, np.uint64).view(np.float64)[()]


def trailing_zeros(bits):
    """Zero bits below the lowest one."""
    return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64


def leading_zeros(bits):
    """Zero bits above the highest one."""
    return 64 - int(bits).bit_length()


def high_product(a, b):
    """The upper half of the product."""
    return U(int(a) * int(b) >> 64)


@intrinsic
def _word(typingctx, buf, i):
    def build(context, builder, signature, args):
        array = context.make_array(buf)(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(buf, types.int64), build


@intrinsic
def _byte(typingctx, buf, i):
    def build(context, builder, signature, args):
        array = context.make_array(buf)(context, builder, args[0])
        return builder.zext(builder.load(builder.gep(array.data, [args[1]])), ir.IntType(64))

    return types.int64(buf, types.int64), build


@intrinsic
def _float_from_bits(typingctx, bits):
    def build(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), build


@intrinsic
def _trailing_zeros(typingctx, bits):
    def build(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), build


@intrinsic
def _leading_zeros(typingctx, bits):
    def build(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), build


@intrinsic
def _high_product(typingctx, a, b):
    def build(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), build


def _checked_word(buf, i):
    if i < 0 or i + 8 > buf.size:
        raise IndexError("a word outside the text")
    return _word(buf, i)


def _checked_byte(buf, i):
    if i < 0 or i >= buf.size:
        raise IndexError("a byte outside the text")
    return _byte(buf, i)


CHECKED = bool(config.BOUNDSCHECK)
overload(word, jit_options=INLINE)(lambda buf, i: _checked_word if CHECKED else lambda buf, i: _word(buf, i))
overload(byte, jit_options=INLINE)(lambda buf, i: _checked_byte if CHECKED else lambda buf, i: _byte(buf, i))
overload(float_from_bits, jit_options=INLINE)(lambda bits: lambda bits: _float_from_bits(bits))
overload(trailing_zeros, jit_options=INLINE)(lambda bits: lambda bits: _trailing_zeros(bits))
overload(leading_zeros, jit_options=INLINE)(lambda bits: lambda bits: _leading_zeros(bits))
overload(high_product, jit_options=INLINE)(lambda a, b: lambda a, b: _high_product(a, b))
