// The registry with folders of the test's own: which are asked, when, and how often.
#include <gtest/gtest.h>

#include <tandem/error.hpp>

#include "device/device.hpp"
#include "device/host_buffer.hpp"
#include "device/immediate.hpp"

namespace tandem::device {
namespace {

// One that is only there to be made.
class Empty final : public Device {
 public:
  explicit Empty(const Part& part) : part(part), memory_(part.name, part.limit_bytes) { info_.name = part.name; }
  const DeviceInfo& info() const override { return info_; }
  BufferRef allocate(size_t bytes) override { return BufferRef(new HostBuffer(*this, memory_, bytes)); }
  BufferRef allocate_pinned(size_t bytes) override { return allocate(bytes); }
  Account& memory() override { return memory_; }
  Account& pinned_memory() override { return memory_; }
  Stream& stream(StreamKind) override { std::abort(); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<ImmediateEvent>(); }
  std::shared_ptr<const Program> load(const codegen::Kernel&) override { return nullptr; }
  const Part part;

 private:
  DeviceInfo info_;
  Account memory_;
};

int first_asked = 0, second_asked = 0;
std::vector<Candidate> third() {
  const auto divide = [](const Part& p) { return std::make_unique<Empty>(p); };
  return {{"cpu", [] { return std::make_unique<Empty>(Part{.name = "cpu"}); }, "", divide},
          {"gpu:0", [] { return std::make_unique<Empty>(Part{.name = "gpu:0"}); }, "", divide},
          {"whole", [] { return std::make_unique<Empty>(Part{.name = "whole"}); }}};
}
std::vector<Candidate> first() {
  ++first_asked;
  return {{"near", {}, "it is switched off"}};
}
std::vector<Candidate> second() {
  if (++second_asked == 1) throw UserError("the variable makes no sense");
  return {{"far:0", {}, "its driver is too old"}, {"far:1", {}, "its driver is too old"}};
}

template <class F> std::string error_in(F f) {
  try {
    f();
    return "no error";
  } catch (const std::exception& e) {
    return e.what();
  }
}
std::string error_of(std::string_view name) {
  return error_in([&] { get(name); });
}
std::string error_of_configure(std::string_view name, std::vector<size_t> limits) {
  return error_in([&] { configure(name, limits); });
}
const Part& part_of(std::string_view name) { return static_cast<Empty&>(get(name)).part; }

}  // namespace

std::span<const Factory> factories() {
  static constexpr Factory kList[] = {{"first", first}, {"second", second}, {"third", third}};
  return kList;
}

TEST(Registry, AsksAFolderOnlyWhenThoseBeforeItHaveNotWhatIsWanted) {
  EXPECT_EQ(error_of("near"), "near: it is switched off");
  EXPECT_EQ(first_asked, 1);
  EXPECT_EQ(second_asked, 0);
  EXPECT_EQ(error_of("far:1"), "the variable makes no sense");
  EXPECT_EQ(error_of("near"), "near: it is switched off");
  EXPECT_EQ(error_of("far:1"), "far:1: its driver is too old");
  EXPECT_EQ(error_of("abacus"), "device: there is no device 'abacus'; there are near, far:0, far:1, cpu, gpu:0, whole");
  EXPECT_EQ(names(), (std::vector<std::string>{"near", "far:0", "far:1", "cpu", "gpu:0", "whole"}));
  EXPECT_EQ(first_asked, 1);
  EXPECT_EQ(second_asked, 2);
}

// In one test, for what is made stays: the process has one registry.
TEST(Registry, DevicesAreDividedBeforeTheirFirstUse) {
  error_in([] { names(); });  // a folder that cannot say what it has is asked again
  EXPECT_EQ(error_of_configure("abacus", {1}).substr(0, 43), "device: there is no device 'abacus'; there ");
  EXPECT_EQ(error_of_configure("whole", {1}), "device: whole takes no limits and cannot be divided");
  EXPECT_EQ(error_of_configure("gpu:0", {}), "device: gpu:0 needs at least one limit, 0 for none");
  set_threads(7);
  configure("cpu", std::vector<size_t>{0});
  configure("cpu", std::vector<size_t>{0, 0});  // nobody has used it yet
  configure("gpu:0", std::vector<size_t>{1000, 2000});
  EXPECT_EQ(names(), (std::vector<std::string>{"near", "far:0", "far:1", "cpu:0", "cpu:1", "gpu:0:0", "gpu:0:1", "whole"}));
  EXPECT_FALSE(is_made("gpu:0"));
  Device& second = get("gpu:0:1");
  EXPECT_FALSE(is_made("gpu:0"));  // whose first part has not been used
  EXPECT_EQ(second.memory().limit(), 2000u);
  EXPECT_EQ(second.info().name, "gpu:0:1");
  EXPECT_EQ(part_of("gpu:0:1").index, 1);
  EXPECT_EQ(part_of("gpu:0:1").count, 2);
  EXPECT_EQ(&get("gpu:0"), &get("gpu:0:0")) << "the device's own name is that of its first part";
  EXPECT_NE(&get("gpu:0"), &second);
  EXPECT_EQ(get("gpu:0").memory().limit(), 1000u);
  EXPECT_TRUE(is_made("gpu:0"));
  EXPECT_EQ(part_of("cpu:1").threads, 3) << "they share seven";
  EXPECT_EQ(error_of_configure("gpu:0", {5}),
            "device: gpu:0 is in use already and stays as it is\n  hint: configure devices before the first tensor is made");
  EXPECT_EQ(error_of_configure("cpu", {0}).substr(0, 31), "device: cpu is in use already a");
  EXPECT_EQ(error_in([] { set_threads(2); }),
            "threads: the cpu is in use already and keeps its threads\n  hint: set their number before the first tensor is made");
  EXPECT_EQ(error_in([] { set_threads(-1); }), "threads: -1 is not from 0 to 4096");
}

}  // namespace tandem::device
