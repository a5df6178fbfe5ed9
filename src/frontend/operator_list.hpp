// The ops that C++ has operators for, with the names of their rows: tensors (operators.cpp) and symbols (nn/op_layer.cpp) have them alike.
// == and != are not here: two symbols are compared as objects.
#pragma once

#define TANDEM_BINARY_OPERATORS(X) \
  X(+, "add")                      \
  X(-, "subtract")                 \
  X(*, "multiply")                 \
  X(/, "divide")                   \
  X(%, "remainder")                \
  X(<, "less")                     \
  X(<=, "less_equal")              \
  X(>, "greater")                  \
  X(>=, "greater_equal")           \
  X(&, "bitwise_and")              \
  X(|, "bitwise_or")               \
  X(^, "bitwise_xor")

#define TANDEM_UNARY_OPERATORS(X) \
  X(-, "negative")                \
  X(!, "logical_not")             \
  X(~, "bitwise_not")
