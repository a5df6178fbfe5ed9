"""tf.errors: what goes wrong in the engine, by kind."""

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(8, 17)


class OpError(Exception):
    """The base of all of them. `message` says what, where, and what to do."""

    _code = UNKNOWN

    def __init__(self, node_def=None, op=None, message=None, *args):
        if message is None:  # raised with the message alone
            node_def, message = None, "" if node_def is None else str(node_def)
        super().__init__(message)
        self._node_def, self._op, self._message = node_def, op, message

    @property
    def message(self):
        return self._message

    @property
    def error_code(self):
        return self._code

    @property
    def op(self):
        return self._op

    @property
    def node_def(self):
        return self._node_def

    @property
    def experimental_payloads(self):
        return {}

    def __str__(self):
        return self._message

    def __reduce__(self):
        return type(self), (self._node_def, self._op, self._message)


def _kind(name, code, *bases):
    return type(name, (OpError, *bases), {"_code": code, "__module__": __name__, "__doc__": f"Code {code}."})


CancelledError = _kind("CancelledError", CANCELLED)
UnknownError = _kind("UnknownError", UNKNOWN)
InvalidArgumentError = _kind("InvalidArgumentError", INVALID_ARGUMENT, ValueError)
DeadlineExceededError = _kind("DeadlineExceededError", DEADLINE_EXCEEDED)
NotFoundError = _kind("NotFoundError", NOT_FOUND)
AlreadyExistsError = _kind("AlreadyExistsError", ALREADY_EXISTS)
PermissionDeniedError = _kind("PermissionDeniedError", PERMISSION_DENIED)
ResourceExhaustedError = _kind("ResourceExhaustedError", RESOURCE_EXHAUSTED, MemoryError)
FailedPreconditionError = _kind("FailedPreconditionError", FAILED_PRECONDITION)
AbortedError = _kind("AbortedError", ABORTED)
OutOfRangeError = _kind("OutOfRangeError", OUT_OF_RANGE)
UnimplementedError = _kind("UnimplementedError", UNIMPLEMENTED)
InternalError = _kind("InternalError", INTERNAL)
UnavailableError = _kind("UnavailableError", UNAVAILABLE)
DataLossError = _kind("DataLossError", DATA_LOSS)
UnauthenticatedError = _kind("UnauthenticatedError", UNAUTHENTICATED)

_by_code = {k._code: k for k in list(globals().values()) if isinstance(k, type) and issubclass(k, OpError)}


def exception_type_from_error_code(code):
    return _by_code[code]


def error_code_from_exception_type(kind):
    return kind._code


class _IndexError(InvalidArgumentError, OutOfRangeError, IndexError):
    """An index beyond the end. TensorFlow calls it an invalid argument, the engine out of range, and Python's own protocols know IndexError."""


_engine_kinds = {**_by_code, OUT_OF_RANGE: _IndexError}


class DoesNotFitError(ResourceExhaustedError):
    """A step for which no plan stays within a device's memory. Nothing of it ran."""


class InaccessibleTensorError(InvalidArgumentError, TypeError):
    """A traced tensor that has left its function."""


class OperatorNotAllowedInGraphError(TypeError):
    """A traced tensor where Python wants a value of its own."""


def _raise(code, message, no_plan_fits=False):
    """What the engine calls: `code` is the code of a C++ error, which has TensorFlow's numbers."""
    kind = InaccessibleTensorError if "is used outside the function that it was traced in" in message else _engine_kinds[code]
    if no_plan_fits:
        kind = DoesNotFitError
    raise kind(None, None, message)
