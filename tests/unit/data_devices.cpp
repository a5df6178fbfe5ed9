// Pipelines beside a device with memory of its own: they run on the CPU, and feed it.
#include <tandem/device.hpp>
#include <tandem/ops.hpp>

#include "data_support.hpp"
#include "frontend/memory.hpp"
#include "late/late_device.hpp"

namespace tandem::data {
namespace {

class DataDevices : public ::testing::Test {
 protected:
  DataDevices() : preferred_(engine::default_engine().devices().preferred) {
    static const bool once = [] {
      engine::default_engine().add({late::make_device({.longest_delay_us = 20, .name = "late:1"}).release()});
      return true;
    }();
    (void)once;
    const engine::Devices& all = engine::default_engine().devices();
    cpu_ = all.at(all.host).info().name;
    engine::default_engine().prefer(all.host);
  }
  ~DataDevices() override { engine::default_engine().prefer(preferred_ >= 0 ? preferred_ : engine::default_engine().devices().host); }
  std::string cpu_;

 private:
  const int32_t preferred_;
};

TEST_F(DataDevices, APipelineRunsOnTheCpuWhereverItIsMade) {
  const DeviceScope there("late:1");
  const Tensor x = Tensor::arange<float>(12).reshape({6, 2});  // a tensor of that device
  EXPECT_EQ(x.device(), "late:1");
  const Dataset d = Dataset::from_slices({x}).map([](const Tensor& t) { return t * 2.0f; }).shuffle(6, {.seed = 1}).batch(3);
  std::vector<float> found;
  for (const Element& e : all_of(d)) {
    EXPECT_EQ(e[0].device(), cpu_);
    for (const float f : e[0].to_vector<float>()) found.push_back(f);
  }
  std::ranges::sort(found);
  std::vector<float> wanted;
  for (int i = 0; i < 12; ++i) wanted.push_back(2.0f * static_cast<float>(i));
  EXPECT_EQ(found, wanted);
}

TEST_F(DataDevices, ElementsGoToADeviceAheadOfTheirReader) {
  const Dataset batches = Dataset::from_slices({Tensor::arange<float>(200).reshape({50, 4})}).batch(10);
  const Dataset ahead = [&] {
    const DeviceScope there("late:1");
    return batches.prefetch_to_device(2);
  }();
  const std::vector<Element> found = all_of(ahead);
  ASSERT_EQ(found.size(), 5u);
  for (const Element& e : found) EXPECT_EQ(e[0].device(), "late:1");
  EXPECT_EQ(values<float>(found), values<float>(batches));
  // What reads them runs there.
  EXPECT_EQ((found[0][0] + 1.0f).device(), "late:1");
}

}  // namespace
}  // namespace tandem::data
