"""tf.types."""


class experimental:
    """Names for annotations."""

    from inspect import Signature as FunctionType
    from typing import Any as TensorLike

    from tandem._function import ConcreteFunction
    from tandem._function import Function as GenericFunction
    from tandem._function import Function as PolymorphicFunction
    from tandem._function import Function as Callable

    class SupportsTracingProtocol:
        pass

    class TraceType:
        pass

    AtomicFunction = ConcreteFunction
