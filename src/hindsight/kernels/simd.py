"""Several numbers at a time: the vector operations the kernels are written in, for processors of any width.

A `Lanes` value is 8, 4, 2 or 1 float64 numbers. In compiled code each operation is one or a few instructions of the
processor (LLVM splits lanes wider than its registers); in plain Python it is a numpy operation on a small array.
"""

import inspect
import operator
import sys

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import lower_builtin, register_model, type_callable

DOUBLE, WORD, INT, BYTE = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(8)
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to the nearest whole number
LN2 = 0.6931471805599453
FUSED = ("contract",)  # a multiplication and the addition after it may become one instruction, with one rounding


class Lanes(types.Type):
    """A vector of 8, 4, 2 or 1 float64 numbers."""

    def __init__(self, width):
        super().__init__(f"Lanes({width})")
        self.width = width


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, ir.VectorType(DOUBLE, lanes.width))


def compiles(function, result):
    """Have numba compile calls of `function` by the decorated builder; `result` tells their type."""
    names = ", ".join(inspect.signature(function).parameters)

    def attach(build):
        type_callable(function)(eval(f"lambda context: lambda {names}: result({names})", {"result": result}))

        @lower_builtin(function, types.VarArg(types.Any))
        def lower(context, builder, signature, arguments):
            return build(context, builder, signature.args, *arguments)

        return build

    return attach


def address(context, builder, array, value, at, kind):
    """A pointer to element `at` of an array's memory, of type `kind`."""
    data = context.make_array(array)(context, builder, value).data
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def declare(builder, name, result, arguments):
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def each(kind, values):
    """A constant with these lanes."""
    return ir.Constant(ir.VectorType(kind, len(values)), list(values))


def copies(builder, x, width):
    """`width` lanes of one value."""
    first = builder.insert_element(ir.Constant(ir.VectorType(x.type, width), ir.Undefined), x, INT(0))
    return builder.shuffle_vector(first, first, each(INT, [0] * width))


def below(builder, count, width):
    """The mask of the first `count` of `width` lanes."""
    return builder.icmp_signed("<", each(count.type, range(width)), copies(builder, count, width))


def fetch(builder, pointer, kind, count):
    """The first `count` lanes of `kind` at a pointer; the others are 0, and their memory is not read."""
    width, flag = kind.count, ir.VectorType(ir.IntType(1), kind.count)
    name = f"llvm.masked.load.v{width}{'i' if isinstance(kind.element, ir.IntType) else 'f'}{size(kind) * 8}.p0"
    load = declare(builder, name, kind, [kind.as_pointer(), INT, flag, kind])
    return builder.call(load, [pointer, INT(size(kind)), below(builder, count, width), ir.Constant(kind, [0] * width)])


def size(kind):
    """Bytes of one lane."""
    return kind.element.width // 8 if isinstance(kind.element, ir.IntType) else (8 if kind.element == DOUBLE else 4)


def widened(builder, lanes, like):
    """Lanes of float32 as float64."""
    return lanes if lanes.type == like.type else builder.fpext(lanes, like.type)


def half(builder, lanes, first):
    """Half of the lanes, from this one on."""
    return builder.shuffle_vector(lanes, lanes, each(INT, range(first, first + lanes.type.count // 2)))


# ---------------------------------------------------------------- operations


def spread(x):
    """Eight lanes of one number."""
    return np.full(8, x)


@compiles(spread, lambda x: Lanes(8))
def _spread(context, builder, kinds, x):
    return copies(builder, x, 8)


def beside(numbers):
    """As many lanes as a tuple has numbers."""
    return np.array(numbers)


@compiles(beside, lambda numbers: Lanes(numbers.count))
def _beside(context, builder, kinds, numbers):
    lanes = ir.Constant(ir.VectorType(DOUBLE, kinds[0].count), ir.Undefined)
    for k in range(kinds[0].count):
        lanes = builder.insert_element(lanes, builder.extract_value(numbers, k), INT(k))
    return lanes


def where_less(a, b, x, y):
    """x where a < b, otherwise y, lane by lane."""
    return np.where(a < b, x, y)[()]


@compiles(where_less, lambda a, b, x, y: x)
def _where_less(context, builder, kinds, a, b, x, y):
    return builder.select(builder.fcmp_ordered("<", a, b), x, y)


def any_less(a, b):
    """Whether a < b in any lane."""
    return bool(np.any(a < b))


@compiles(any_less, lambda a, b: types.boolean)
def _any_less(context, builder, kinds, a, b):
    found = builder.fcmp_ordered("<", a, b)
    if not isinstance(a.type, ir.VectorType):
        return found
    mask = ir.IntType(a.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(found, mask), mask(0))


def rough_log(a):
    """ln a of positive numbers, to 0.06: the exponent, and between powers of two a straight line."""
    high = (np.asarray(a, np.float64).view(np.uint64) >> np.uint64(32)).astype(np.float64)
    return (high * (LN2 / 2**20) - 1023.0 * LN2)[()]


@compiles(rough_log, lambda a: a)
def _rough_log(context, builder, kinds, a):
    word = ir.VectorType(WORD, a.type.count) if isinstance(a.type, ir.VectorType) else WORD
    high = builder.lshr(builder.bitcast(a, word), sized(builder, a, WORD(32)))
    number = builder.bitcast(builder.or_(high, sized(builder, a, WORD(0x4330000000000000))), a.type)  # 2^52 + high
    high = builder.fsub(number, sized(builder, a, DOUBLE(2.0**52)))
    scaled = builder.fmul(high, sized(builder, a, DOUBLE(LN2 / 2**20)))
    return builder.fsub(scaled, sized(builder, a, DOUBLE(1023.0 * LN2)))


def alike(like, x):
    """A number as `like` is: one, or as many lanes of it."""
    return np.full(like.size, float(x)) if isinstance(like, np.ndarray) else float(x)


@compiles(alike, lambda like, x: like)
def _alike(context, builder, kinds, like, x):
    return sized(builder, like, builder.sitofp(x, DOUBLE) if isinstance(kinds[1], types.Integer) else x)


def load(like, array, at):
    """As many numbers as `like` has, from place `at` of an array's memory on."""
    return array.reshape(-1)[at : at + like.size].astype(np.float64)


@compiles(load, lambda like, array, at: like)
def _load(context, builder, kinds, like, array, at):
    kind = ir.VectorType(context.get_data_type(kinds[1].dtype), kinds[0].width)
    found = builder.load(address(context, builder, kinds[1], array, at, kind), align=size(kind))
    return widened(builder, found, like)


def load_some(like, array, at, count):
    """The same for the first `count` of them; the others are 0, and the memory they would come from is not read."""
    out = np.zeros(like.size)
    out[:count] = array.reshape(-1)[at : at + count]
    return out


@compiles(load_some, lambda like, array, at, count: like)
def _load_some(context, builder, kinds, like, array, at, count):
    kind = ir.VectorType(context.get_data_type(kinds[1].dtype), kinds[0].width)
    return widened(builder, fetch(builder, address(context, builder, kinds[1], array, at, kind), kind, count), like)


def gather(like, array, base, indices, at):
    """The numbers array[base + indices[at + k]], as many as `like` has."""
    return array.reshape(-1)[base + indices[at : at + like.size].astype(np.int64)]


@compiles(gather, lambda like, array, base, indices, at: like)
def _gather(context, builder, kinds, like, array, base, indices, at):
    return collect(context, builder, kinds[1], array, base, places(context, builder, kinds[3], indices, at), like)


def gather_some(like, array, base, indices, at, count):
    """The same for the first `count` of them; the others are array[base], and their indices are not read."""
    places = np.zeros(like.size, np.int64)
    places[:count] = indices[at : at + count]
    return array.reshape(-1)[base + places]


@compiles(gather_some, lambda like, array, base, indices, at, count: like)
def _gather_some(context, builder, kinds, like, array, base, indices, at, count):
    kind = ir.VectorType(context.get_data_type(kinds[3].dtype), kinds[0].width)
    found = fetch(builder, address(context, builder, kinds[3], indices, at, kind), kind, count)
    places = [builder.extract_element(found, INT(k)) for k in range(kind.count)]
    places = [place if place.type == WORD else builder.zext(place, WORD) for place in places]
    return collect(context, builder, kinds[1], array, base, places, like)


def places(context, builder, array, value, at):
    """Eight indices of an array; where they are of 32 bits, two of them are read at a time."""
    kind = context.get_data_type(array.dtype)
    first = address(context, builder, array, value, at, kind)
    if kind.width == 64:
        return [builder.load(builder.gep(first, [INT(k)])) for k in range(8)]
    pairs = builder.bitcast(first, WORD.as_pointer())
    found = [builder.load(builder.gep(pairs, [INT(k)]), align=4) for k in range(4)]
    halves = [(builder.and_(pair, WORD(0xFFFFFFFF)), builder.lshr(pair, WORD(32))) for pair in found]
    return [place for low, high in halves for place in ((low, high) if sys.byteorder == "little" else (high, low))]


def collect(context, builder, array, value, base, places, like):
    """The numbers of an array at base + place, one by one: where a processor has an instruction for it, it is slow."""
    for k, place in enumerate(places):
        number = builder.load(address(context, builder, array, value, builder.add(base, place), DOUBLE))
        like = builder.insert_element(like, number, INT(k))
    return like


def store(array, at, lanes):
    """Write the lanes to an array's memory from place `at` on."""
    array.reshape(-1)[at : at + lanes.size] = lanes


@compiles(store, lambda array, at, lanes: types.none)
def _store(context, builder, kinds, array, at, lanes):
    builder.store(lanes, address(context, builder, kinds[0], array, at, lanes.type), align=8)
    return context.get_dummy_value()


def fuse(a, b, c):
    """a b + c, rounded once where the processor can."""
    return a * b + c


@compiles(fuse, lambda a, b, c: a)
def _fuse(context, builder, kinds, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=FUSED), c, flags=FUSED)


def doubled(a, k, shift):
    """a 2^(k - shift) for whole k and shift: 0 where that is 2^-1022 or less, infinite where it is 2^1024 or more."""
    return raised(a, k - shift)


def halved(a, k, shift):
    """The same with -k."""
    return raised(a, -k - shift)


def raised(a, power):
    """What both do in plain Python."""
    out = np.ldexp(a, np.clip(power, -1023, 1023).astype(np.int64))
    return np.where(power > -1022, np.where(power < 1024, out, np.inf), 0.0)[()]


@compiles(doubled, lambda a, k, shift: a)
def _doubled(context, builder, kinds, a, k, shift):
    limit, low = builder.fadd(shift, DOUBLE(1024.0)), builder.fsub(shift, DOUBLE(1022.0))
    limit, low, base = (sized(builder, a, x) for x in (limit, low, builder.fsub(DOUBLE(ROUND + 1023.0), shift)))
    power = builder.fadd(builder.select(builder.fcmp_ordered("<", k, limit), k, limit), base)
    return lifted(builder, a, power, builder.fcmp_ordered(">", k, low))


@compiles(halved, lambda a, k, shift: a)
def _halved(context, builder, kinds, a, k, shift):
    limit, high = builder.fsub(DOUBLE(-1024.0), shift), builder.fsub(DOUBLE(1022.0), shift)
    limit, high, base = (sized(builder, a, x) for x in (limit, high, builder.fsub(DOUBLE(ROUND + 1023.0), shift)))
    power = builder.fsub(base, builder.select(builder.fcmp_ordered(">", k, limit), k, limit))
    return lifted(builder, a, power, builder.fcmp_ordered("<", k, high))


def sized(builder, a, x):
    """A number as `a` is: one, or as many lanes of it."""
    return copies(builder, x, a.type.count) if isinstance(a.type, ir.VectorType) else x


def lifted(builder, a, power, here):
    """a 2^n where `here` says so, else 0, for `power` = ROUND + 1023 + n: its low bits are 1023 + n."""
    word = ir.VectorType(WORD, a.type.count) if isinstance(a.type, ir.VectorType) else WORD
    bits = builder.shl(builder.bitcast(power, word), sized(builder, a, WORD(52)))
    return builder.select(here, builder.fmul(a, builder.bitcast(bits, a.type)), sized(builder, a, DOUBLE(0.0)))


def peak(a, x):
    """The larger of a and |x|, lane by lane; a NaN in x is passed over."""
    return np.where(np.abs(x) > a, np.abs(x), a)


@compiles(peak, lambda a, x: a)
def _peak(context, builder, kinds, a, x):
    size = builder.call(declare(builder, f"llvm.fabs.v{x.type.count}f64", x.type, [x.type]), [x])
    return builder.select(builder.fcmp_ordered(">", size, a), size, a)


def pairwise(plain, instruction):
    """An operation on two numbers or on lanes of them: in plain Python, and as an instruction of the processor."""

    def operation(a, b):
        return plain(a, b)

    @compiles(operation, lambda a, b: a)
    def _operation(context, builder, kinds, a, b):
        return instruction(builder, a, b)

    return operation


def chosen(sign):
    """The instructions for b where it compares so with a, otherwise a."""
    return lambda builder, a, b: builder.select(builder.fcmp_ordered(sign, b, a), b, a)


# The builtins max and min would be compiled as functions of their own in each loop. Both are a where b is NaN.
larger = pairwise(lambda a, b: np.where(b > a, b, a)[()], chosen(">"))
smaller = pairwise(lambda a, b: np.where(b < a, b, a)[()], chosen("<"))
plus, minus = pairwise(operator.add, ir.IRBuilder.fadd), pairwise(operator.sub, ir.IRBuilder.fsub)
times, over = pairwise(operator.mul, ir.IRBuilder.fmul), pairwise(operator.truediv, ir.IRBuilder.fdiv)


def root(a):
    """The square root of each lane."""
    return np.sqrt(a)


@compiles(root, lambda a: a)
def _root(context, builder, kinds, a):
    return builder.call(declare(builder, f"llvm.sqrt.v{a.type.count}f64", a.type, [a.type]), [a])


def lane(a, k):
    """The number in lane k; fast if k is a compile-time constant."""
    return a[k]


@compiles(lane, lambda a, k: types.float64)
def _lane(context, builder, kinds, a, k):
    return builder.extract_element(a, k)


def lower(a):
    """The lower half of the lanes."""
    return a[: a.size // 2]


@compiles(lower, lambda a: Lanes(a.width // 2))
def _lower(context, builder, kinds, a):
    return half(builder, a, 0)


def upper(a):
    """The upper half of the lanes."""
    return a[a.size // 2 :]


@compiles(upper, lambda a: Lanes(a.width // 2))
def _upper(context, builder, kinds, a):
    return half(builder, a, a.type.count // 2)


def only(a):
    """The number in the first lane."""
    return a[0]


@compiles(only, lambda a: types.float64)
def _only(context, builder, kinds, a):
    return builder.extract_element(a, INT(0))


def ascending(array, at, count):
    """Whether the whole numbers at..at + count of an array, at most nine of them, ascending without a repetition."""
    return bool((array[at : at + count] < array[at + 1 : at + count + 1]).all())


@compiles(ascending, lambda array, at, count: types.boolean)
def _ascend(context, builder, kinds, array, at, count):
    kind = ir.VectorType(context.get_data_type(kinds[0].dtype), 8)
    one = count.type(1)
    here = fetch(builder, address(context, builder, kinds[0], array, at, kind), kind, count)
    there = fetch(builder, address(context, builder, kinds[0], array, builder.add(at, one), kind), kind, count)
    falls = builder.and_(builder.icmp_unsigned(">=", here, there), below(builder, count, 8))
    return builder.icmp_unsigned("==", builder.bitcast(falls, BYTE), BYTE(0))


def prefetch(array, offset):
    """Prefetch the cache line at this offset in bytes. A step waits for its margin, so loads do not run far ahead."""


@compiles(prefetch, lambda array, offset: types.none)
def _prefetch(context, builder, kinds, array, offset):
    data = builder.bitcast(context.make_array(kinds[0])(context, builder, array).data, BYTE.as_pointer())
    touch = declare(builder, "llvm.prefetch.p0i8", ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
    builder.call(touch, [builder.gep(data, [offset]), INT(0), INT(3), INT(1)])
    return context.get_dummy_value()


def wide():
    """Let LLVM use the processor's widest registers in the function that calls this."""


@compiles(wide, lambda: types.none)
def _wide(context, builder, kinds):
    set.add(builder.function.attributes, '"prefer-vector-width"="512"')  # llvmlite's own list does not know it
    return context.get_dummy_value()
