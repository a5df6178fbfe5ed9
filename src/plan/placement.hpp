// Where work runs that may run on either of two devices: the cheapest cut between them. Plain data, as everything that plans.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace tandem::plan {

struct PlacementProblem {
  struct Node {
    std::array<double, 2> seconds{};  // on each of the two
    int32_t fixed = -1;               // the one where it has to be; -1: either
  };
  // What one node makes and others read. It crosses once, however many read it on the other side.
  struct Value {
    int32_t from = 0;
    std::vector<int32_t> readers;
    double seconds = 0;  // to cross
  };
  std::vector<Node> nodes;
  std::vector<Value> values;
};

struct Placement {
  std::vector<int8_t> side;  // of each node: 0 or 1
  double seconds = 0;        // of all work and crossings, one after the other
};

// The least sum of all there are: a minimum cut (Ford and Fulkerson, 1956), found by Dinic's algorithm. Of equal ones the one with most
// nodes on side 0.
Placement place_between(const PlacementProblem& problem);

}  // namespace tandem::plan
