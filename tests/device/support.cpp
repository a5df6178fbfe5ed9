#include "support.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/half.hpp"
#include "base/text.hpp"
#include "ir/attr.hpp"

namespace tandem::testing {
namespace {

// The row of kernels that tests write themselves; its loops are those of the kernel being made.
thread_local const ir::Loops* current_loops = nullptr;

const ir::OpDef& test_row() {
  static const ir::OpDef row{
      .name = "test", .sig = "(xs: own...) -> custom", .doc = "", .loops = [](const ir::OpCall&, std::span<const ir::TensorType>) {
        return *current_loops;
      }};
  return row;
}

double draw(DType t, std::mt19937_64& random, Values values) {
  static const double kSpecial[] = {0.0,
                                    -0.0,
                                    1,
                                    -1,
                                    0.5,
                                    3,
                                    1e-3,
                                    65504,
                                    7e4,
                                    1e-7,
                                    3e38,
                                    -3e38,
                                    1e-40,
                                    5e300,
                                    1e-310,
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(),
                                    std::nan("")};
  if (values == Values::Special && random() % 3 == 0) return kSpecial[random() % std::size(kSpecial)];
  if (t == DType::Bool) return static_cast<double>(random() % 2);
  if (is_float(t)) return std::uniform_real_distribution<double>(-2, 2)(random);
  return static_cast<double>(static_cast<int64_t>(random() % 11) - (is_signed(t) ? 5 : 0));
}

}  // namespace

std::string missing(const std::string& device_name) {
  try {
    device::get(device_name);
    return "";
  } catch (const ResourceError& e) {
    return e.what();
  }
}

std::string test_name(const std::string& device_name) {
  std::string name = device_name;
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

const std::vector<DType>& all_types() {
  static const std::vector<DType> types = [] {
    std::vector<DType> all;
    for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
    return all;
  }();
  return types;
}

void fill(HostTensor& t, std::mt19937_64& random, Values values) {
  const DType type = t.layout.dtype;
  const size_t width = size_of(type);
  for (size_t i = 0; i < t.bytes.size(); i += width) {
    if (is_int(type) && values == Values::Special && random() % 2) {
      const uint64_t bits = random() % 4 ? random() : random() % 2 ? uint64_t{1} << (width * 8 - 1) : ~uint64_t{0};
      std::memcpy(t.bytes.data() + i, &bits, width);
    } else {
      ir::store_number(type, t.bytes.data() + i, draw(type, random, values));
    }
  }
}

HostTensor dense(DType t, const Shape& s) { return {codegen::Layout::dense(t, s), std::vector<std::byte>(byte_size(s, t)), 0}; }

HostTensor dense(DType t, const Shape& s, std::mt19937_64& random, Values values) {
  HostTensor x = dense(t, s);
  fill(x, random, values);
  return x;
}

HostTensor scattered(DType t, const Shape& s, std::mt19937_64& random, Values values) {
  HostTensor x{{t, s, Strides(s)}, {}, 0};
  std::vector<size_t> order(s.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  int64_t span = 1;
  for (size_t j = order.size(); j-- > 0;) {
    const size_t d = order[j];
    if (random() % 8 == 0) {
      x.layout.strides[d] = 0;
      continue;
    }
    const int64_t step = random() % 4 == 0 ? span * 2 : span;
    x.layout.strides[d] = step;
    span = step * std::max<int64_t>(s[d], 1);
    if (random() % 4 == 0) {
      x.layout.strides[d] = -step;
      x.first += step * (std::max<int64_t>(s[d], 1) - 1);
    }
  }
  x.bytes.resize(static_cast<size_t>(span) * size_of(t));
  fill(x, random, values);
  return x;
}

codegen::Kernel kernel_of(const ir::Loops& loops, const std::vector<HostTensor>& in) {
  std::vector<ir::TensorType> in_types, out_types;
  std::vector<codegen::Layout> layouts;
  for (const HostTensor& x : in) {
    in_types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  for (const ir::Scalar& r : loops.results) out_types.push_back({r.dtype(), loops.extents});
  current_loops = &loops;
  return codegen::make_kernel(test_row(), {}, in_types, out_types, {}, layouts);
}

std::vector<HostTensor> outputs_of(const codegen::Kernel& k) {
  std::vector<HostTensor> out;
  for (const codegen::Layout& o : k.out) out.push_back(dense(o.dtype, o.shape));
  return out;
}

std::vector<HostTensor> interpreted(const ir::Loops& loops, std::vector<HostTensor>& in) {
  std::vector<HostTensor> out;
  std::vector<codegen::HostOperand> from, to;
  for (HostTensor& x : in) from.push_back({x.layout, x.data()});
  for (const ir::Scalar& r : loops.results) out.push_back(dense(r.dtype(), bind(loops.extents, {})));
  for (HostTensor& x : out) to.push_back({x.layout, x.data()});
  codegen::interpret(loops, {}, from, to);
  return out;
}

std::vector<HostTensor> launched(device::Device& d, const codegen::Kernel& k, std::vector<HostTensor>& in) {
  const auto program = d.load(k);
  device::Stream& stream = d.stream(device::StreamKind::Compute);
  std::vector<device::BufferRef> buffers;
  std::vector<void*> pointers;
  for (HostTensor& x : in) {
    buffers.push_back(d.allocate(x.bytes.size()));
    stream.upload(buffers.back()->data(), x.bytes.data(), x.bytes.size());
    pointers.push_back(static_cast<std::byte*>(buffers.back()->data()) + x.first * static_cast<int64_t>(size_of(x.layout.dtype)));
  }
  // A guard behind every output: code that writes too far is caught here and not by whoever comes next.
  constexpr size_t kGuard = 64;
  std::vector<HostTensor> out = outputs_of(k);
  for (HostTensor& x : out) {
    buffers.push_back(d.allocate(x.bytes.size() + kGuard));
    stream.fill(buffers.back()->data(), 0xa5, x.bytes.size() + kGuard);
    pointers.push_back(buffers.back()->data());
  }
  const device::BufferRef scratch = d.allocate(program->scratch_bytes());
  stream.fill(scratch->data(), 0xa5, program->scratch_bytes());
  stream.launch(program, {pointers, scratch->data()});
  for (size_t i = 0; i < out.size(); ++i) {
    std::vector<std::byte> all(out[i].bytes.size() + kGuard);
    stream.download(all.data(), buffers[in.size() + i]->data(), all.size());
    stream.synchronize();
    std::copy_n(all.begin(), out[i].bytes.size(), out[i].bytes.begin());
    if (!d.info().executes) continue;
    for (size_t j = out[i].bytes.size(); j < all.size(); ++j) EXPECT_EQ(all[j], std::byte{0xa5}) << "written behind output " << i;
  }
  return out;
}

double number(const HostTensor& t, int64_t element) {
  return ir::load_number(t.layout.dtype, t.bytes.data() + element * static_cast<int64_t>(size_of(t.layout.dtype)));
}

Allowed sum_tolerance(DType t, int64_t terms) {
  const double n = static_cast<double>(std::max<int64_t>(terms, 1));
  switch (t) {
    case DType::F16: return {2e-3 + n * 3e-7, n * 1e-6};
    case DType::BF16: return {1.6e-2 + n * 3e-7, n * 1e-6};
    case DType::F32: return {n * 3e-7, n * 1e-6};
    case DType::F64: return {n * 1e-15, n * 1e-14};
    default: return {};
  }
}

::testing::AssertionResult near(const HostTensor& got, const HostTensor& expected, Allowed allowed) {
  const DType t = expected.layout.dtype;
  const size_t width = size_of(t);
  if (got.bytes.size() != expected.bytes.size())
    return ::testing::AssertionFailure() << got.bytes.size() << " bytes, expected " << expected.bytes.size();
  for (size_t i = 0; i < expected.bytes.size() / width; ++i) {
    const auto at = static_cast<int64_t>(i);
    bool good = std::memcmp(got.bytes.data() + i * width, expected.bytes.data() + i * width, width) == 0;
    if (!good && is_float(t)) {
      const double a = number(got, at), b = number(expected, at);
      good = (std::isnan(a) && std::isnan(b)) || a == b ||
             (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= allowed.abs + allowed.rel * std::fabs(b));
    }
    if (!good)
      return ::testing::AssertionFailure() << "element " << i << " of " << expected.bytes.size() / width << " (" << name(t) << "): got "
                                           << cat(number(got, at)) << ", expected " << cat(number(expected, at));
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tandem::testing
