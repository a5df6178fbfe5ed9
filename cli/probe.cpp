// One small plan, made and run on a device.
#include "probe.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "ir/builder.hpp"
#include "ops/table.hpp"

namespace tandem::cli {
namespace {

// x + x for a few numbers. Every device must get such sums exactly right.
void add_numbers(device::Device& device) {
  constexpr int64_t kCount = 1000;
  constexpr size_t kBytes = kCount * sizeof(float);
  ir::Builder builder(ops::table());
  const ir::Value x = builder.input({DType::F32, Dims{kCount}});
  engine::Engine engine(device);
  const auto sum = engine.compile(builder.finish({builder.op("add", {x, x})}));
  std::vector<float> numbers(kCount);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  device::Stream& stream = device.stream(device::StreamKind::Compute);
  const engine::TensorRef input{engine.allocate(kBytes), codegen::Layout::dense(DType::F32, {kCount}), 0};
  stream.upload(input.data(), numbers.data(), kBytes);
  const engine::TensorRef* inputs[] = {&input};
  std::vector<engine::TensorRef> outputs;
  sum->run(inputs, outputs);
  std::vector<float> sums(kCount, -1.0f);
  stream.download(sums.data(), outputs.at(0).data(), kBytes);
  stream.synchronize();
  if (!device.info().executes) return;
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != 2 * numbers[i]) internal_error(device.info().name, ": ", numbers[i], " + ", numbers[i], " gave ", sums[i]);
}

std::string in_one_line(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) text.replace(at, text.find_first_not_of(" \n", at) - at, "; ");
  return text;
}

}  // namespace

std::string why_not(std::string_view device_name) {
  try {
    add_numbers(device::get(device_name));
    return "";
  } catch (const std::exception& e) {
    return in_one_line(e.what());
  }
}

}  // namespace tandem::cli
