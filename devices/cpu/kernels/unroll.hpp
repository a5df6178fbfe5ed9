// For loops over registers: they have to vanish.
#pragma once

#define TANDEM_UNROLL _Pragma("GCC unroll 32")
