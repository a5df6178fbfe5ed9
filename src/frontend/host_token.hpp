// The token that goes through all host calls of a trace: state like a variable's, so that calls keep their order, are made exactly as often
// as they are asked for, and work inside branches and loops. It holds nothing: it is never locked and never stored.
#pragma once
#include <algorithm>

#include <tandem/variable.hpp>

#include "frontend/tracer.hpp"

namespace tandem::frontend {

const Variable& host_token();
inline bool is_host_token(const Variable& v) { return v.defined() && v.impl() == host_token().impl(); }
inline bool makes_host_calls(const Tracer& t) {
  return std::ranges::any_of(t.externals(), [](const Tracer::External& e) { return e.written && is_host_token(e.variable); });
}

}  // namespace tandem::frontend
