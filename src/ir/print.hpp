// Graphs as text, exact enough that parse() gives the same graph back:
//
//   graph step(%0: float32[b,784] "x", %1: float32[784,10] "w") {
//     %2 = matmul(%0, %1; transpose_x=false, transpose_y=false) : float32[b,10]  # at model.cpp:42
//     return %2
//   }
//
// %4.1 is the second result of node 4. Graphs that are attributes are nested. Locations keep the last part of the file's name.
#pragma once
#include <string>

#include "ir/graph.hpp"

namespace tandem::ir {

std::string print(const Graph& g);

}  // namespace tandem::ir
