// What the device tests share: tensors in host memory, kernels of loops written in a test, running them, and comparing.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "codegen/interpret.hpp"
#include "device/device.hpp"

namespace tandem::testing {

// Bytes and how a tensor lies in them. `first` is the element at which index 0 is: strides may be negative.
struct HostTensor {
  codegen::Layout layout;
  std::vector<std::byte> bytes;
  int64_t first = 0;
  std::byte* data() { return bytes.data() + first * static_cast<int64_t>(size_of(layout.dtype)); }
};

enum class Values { Small, Special };
void fill(HostTensor& t, std::mt19937_64& random, Values values = Values::Small);  // every byte that the layout reaches
HostTensor dense(DType t, const Shape& s);                                         // zeros
HostTensor dense(DType t, const Shape& s, std::mt19937_64& random, Values values = Values::Small);
// A tensor of that shape whose axes lie in another order, with gaps, reversed or repeated.
HostTensor scattered(DType t, const Shape& s, std::mt19937_64& random, Values values = Values::Small);

// A kernel of loops that no op row has. The returned kernel refers to a row that lives as long as the process.
codegen::Kernel kernel_of(const ir::Loops& loops, const std::vector<HostTensor>& in);
std::vector<HostTensor> outputs_of(const codegen::Kernel& k);  // zeros, dense

std::vector<HostTensor> interpreted(const ir::Loops& loops, std::vector<HostTensor>& in);
// Uploads, launches, downloads; outputs are poisoned before.
std::vector<HostTensor> launched(device::Device& d, const codegen::Kernel& k, std::vector<HostTensor>& in);

struct Allowed {
  double rel = 0, abs = 0;
};
// NaN equals NaN; 0 and -0 are equal; otherwise |a-b| <= abs + rel*|b|. Integers and bools must be equal.
::testing::AssertionResult near(const HostTensor& got, const HostTensor& expected, Allowed allowed);
double number(const HostTensor& t, int64_t element);
Allowed sum_tolerance(DType t, int64_t terms);

const std::vector<DType>& all_types();
// Why a device cannot be used on this machine; empty when it can.
std::string missing(const std::string& device_name);
std::string test_name(const std::string& device_name);  // "gpu:0" -> "gpu_0"

}  // namespace tandem::testing
