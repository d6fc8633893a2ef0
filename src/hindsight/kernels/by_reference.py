"""States in compiled code, held by reference, so that a call passes only one address.

By default numba passes all fields of a NamedTuple, seven numbers per vector, and unpacks and packs them at every call.
Most of the time to compile a loop was spent on that.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)

ADDRESS = ir.IntType(8).as_pointer()


class Reference(types.Type):
    """The address of a NamedTuple of arrays and numbers."""

    def __init__(self, record):
        super().__init__(f"Reference({record})")
        self.record = record


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager, reference):
        super().__init__(manager, reference, ADDRESS)


def by_reference(kind):
    """Let compiled code hold values of this NamedTuple class by reference."""

    @typeof_impl.register(kind)
    def _typeof(value, context):
        return Reference(types.BaseTuple.from_types([typeof_impl(v, context) for v in value], kind))

    return kind


@unbox(Reference)
def _unbox(reference, value, c):
    found = c.unbox(reference.record, value)
    place = c.builder.bitcast(cgutils.alloca_once_value(c.builder, found.value), ADDRESS)
    # The optimiser must not see where the address comes from: to it, what lies there never changes.
    hidden = c.builder.asm(ir.FunctionType(ADDRESS, [ADDRESS]), "", "=r,0,~{memory}", [place], True)
    return NativeValue(hidden, is_error=found.is_error, cleanup=found.cleanup)


@infer_getattr
class ReferenceAttributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference, name):
        record = reference.record
        return record[record.fields.index(name)] if name in record.fields else None


def constant_load(builder, pointer):
    """Load a value that never changes while compiled code runs."""
    found = builder.load(pointer)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


@lower_getattr_generic(Reference)
def _field(context, builder, reference, value, name):
    place = reference.record.fields.index(name)
    kind, record = reference.record[place], context.get_value_type(reference.record)
    pointer = cgutils.gep_inbounds(builder, builder.bitcast(value, record.as_pointer()), 0, place)
    if not isinstance(kind, types.Array):
        return constant_load(builder, pointer)
    return array_at(context, builder, kind, pointer)


def array_at(context, builder, kind, pointer):
    """The array whose descriptor is at a pointer; for contiguous arrays only address and shape are loaded."""
    model, array = context.data_model_manager[kind], context.make_array(kind)(context, builder)
    word = context.get_value_type(types.intp)

    def read(field):
        return constant_load(builder, cgutils.gep_inbounds(builder, pointer, 0, model.get_field_position(field)))

    shape = cgutils.unpack_tuple(builder, read("shape"), kind.ndim) if kind.ndim > 1 else [read("nitems")]
    size = ir.Constant(word, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    if kind.layout == "C":
        strides = [size]
        for extent in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], extent))
    else:
        strides = cgutils.unpack_tuple(builder, read("strides"), kind.ndim)
    array.data, array.itemsize = read("data"), size
    array.nitems = shape[0] if kind.ndim == 1 else read("nitems")
    array.shape, array.strides = (cgutils.pack_array(builder, v, word) for v in (shape, strides))
    array.meminfo = array.parent = context.get_constant_null(types.voidptr)
    return array._getvalue()
