// Problems to schedule that are made by rules and chance.
#pragma once
#include <algorithm>
#include <random>

#include "plan/schedule.hpp"

namespace tandem::plan::test {

using Rng = std::mt19937;  // the same numbers everywhere, unlike the library's distributions
inline int32_t below(Rng& rng, int32_t n) { return static_cast<int32_t>(rng() % static_cast<uint32_t>(n)); }

// Each unit makes one value and reads up to `most_inputs` of those before it, mostly near ones.
inline ScheduleProblem random_graph(uint32_t n, uint32_t seed, int32_t most_inputs) {
  Rng rng(seed);
  ScheduleProblem p;
  for (uint32_t i = 0; i < n; ++i) {
    p.values.push_back({.bytes = below(rng, 9), .is_result = i + 1 == n || below(rng, 8) == 0});
    ScheduleUnit u;
    u.cost = below(rng, 10);
    u.outputs = {static_cast<int32_t>(i)};
    if (i > 0) {
      u.inputs = {static_cast<int32_t>(i) - 1 - (below(rng, 3) == 0 ? below(rng, static_cast<int32_t>(i)) : 0)};
      for (int32_t k = below(rng, most_inputs); k > 0; --k)
        if (const int32_t v = below(rng, static_cast<int32_t>(i)); std::find(u.inputs.begin(), u.inputs.end(), v) == u.inputs.end())
          u.inputs.push_back(v);
    }
    p.units.push_back(u);
  }
  return p;
}

// A step of training: `depth` units forwards, with skips, then one or two for each of them backwards that read what it read.
inline ScheduleProblem training_net(int32_t depth, uint32_t seed) {
  Rng rng(seed);
  ScheduleProblem p;
  const auto add = [&](std::vector<int32_t> inputs, int64_t bytes, int64_t cost) {
    ScheduleUnit u;
    u.cost = cost;
    u.inputs = std::move(inputs);
    std::sort(u.inputs.begin(), u.inputs.end());
    u.inputs.erase(std::unique(u.inputs.begin(), u.inputs.end()), u.inputs.end());
    u.outputs = {static_cast<int32_t>(p.values.size())};
    p.values.push_back({.bytes = bytes});
    p.units.push_back(std::move(u));
    return p.units.back().outputs[0];
  };
  std::vector<std::vector<int32_t>> reads;
  for (int32_t i = 0; i < depth; ++i) {
    std::vector<int32_t> in;
    if (i > 0) in.push_back(i - 1);
    if (i > 3 && below(rng, 4) == 0) in.push_back(i - 2 - below(rng, 2));
    reads.push_back(in);
    add(in, 1000 + below(rng, 3000), 5 + below(rng, 40));
  }
  int32_t gradient = add({depth - 1}, 10, 1);
  for (int32_t i = depth; i-- > 0;) {
    std::vector<int32_t> in = reads[static_cast<size_t>(i)];
    in.push_back(gradient);
    if (below(rng, 2) == 0) in.push_back(i);
    add(in, 0, 5 + below(rng, 20));
    gradient = add(in, 1000 + below(rng, 2000), 5 + below(rng, 40));
  }
  p.values.back().is_result = true;
  return p;
}

// A training_net with scratch, units of two outputs, units on other lanes, bytes that are taken over and state that is overwritten.
inline ScheduleProblem graph_with_rules(int32_t depth, uint32_t seed) {
  ScheduleProblem p = training_net(depth, seed);
  Rng rng(seed + 1000);
  for (ScheduleUnit& u : p.units) {
    if (below(rng, 5) == 0) u.scratch = below(rng, 1500);
    if (below(rng, 3) == 0)
      for (int32_t in : u.inputs)
        if (p.values[static_cast<size_t>(in)].bytes > 0 && below(rng, 2) == 0) {
          u.may_replace.push_back(in);
          p.values[static_cast<size_t>(u.outputs[0])].bytes = p.values[static_cast<size_t>(in)].bytes;
          break;
        }
    if (below(rng, 6) == 0) {
      u.outputs.push_back(static_cast<int32_t>(p.values.size()));
      p.values.push_back({.bytes = below(rng, 800), .is_result = below(rng, 3) == 0});
    }
    if (seed % 2 == 0 && below(rng, 12) == 0) u.lane = Lane::Host;
    if (below(rng, 15) == 0) u.once = true;
  }
  // Weights: units forwards and backwards read one, and a last unit writes over it.
  for (int32_t k = 0; k < 3; ++k) {
    const auto weight = static_cast<int32_t>(p.values.size());
    p.values.push_back({.bytes = 500});
    const auto last = static_cast<size_t>(p.units.size()) - 1 - static_cast<size_t>(below(rng, 10));
    for (size_t i = 0; i < last; ++i)
      if (below(rng, 10) == 0) p.units[i].inputs.push_back(weight);
    p.units[last].overwrites.push_back(weight);
    p.units[last].once = true;
  }
  if (seed % 3 != 0) p.link = {.time_per_gib = (int64_t{1} << 30) / 200, .latency = below(rng, 3)};
  return p;
}

}  // namespace tandem::plan::test
