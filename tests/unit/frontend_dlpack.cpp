// DLPack in and out: layouts, lifetimes, refusals.
#include "frontend_support.hpp"

namespace tandem {
namespace {

struct Owner {
  std::vector<float> memory{0, 1, 2, 3, 4, 5, 6};
  std::vector<int64_t> shape{2, 2}, strides{3, 1};
  int deleted = 0;
  dlpack::Managed managed{};
  dlpack::ManagedVersioned versioned{};

  dlpack::View view() {
    return {memory.data(), {dlpack::kCpu, 0}, 2, {dlpack::kFloat, 32, 1}, shape.data(), strides.data(), sizeof(float)};
  }
  dlpack::Managed* make() {
    managed = {view(), this, [](dlpack::Managed* m) { ++static_cast<Owner*>(m->context)->deleted; }};
    return &managed;
  }
  dlpack::ManagedVersioned* make_versioned() {
    versioned = {{1, 3}, this, [](dlpack::ManagedVersioned* m) { ++static_cast<Owner*>(m->context)->deleted; }, dlpack::kReadOnly, view()};
    return &versioned;
  }
};

TEST(DLPack, ImportsStridedMemoryWithAnOffset) {
  Owner owner;
  {
    const Tensor t = dlpack::import_tensor(owner.make());
    EXPECT_EQ(t.raw_data(), &owner.memory[1]);
    EXPECT_EQ(floats(t), (F{1, 2, 4, 5}));
    const Tensor sum = t + t;
    EXPECT_EQ(floats(sum), (F{2, 4, 8, 10}));
    EXPECT_EQ(owner.deleted, 0);
  }
  EXPECT_EQ(owner.deleted, 1);
  {
    const Tensor t = dlpack::import_tensor(owner.make_versioned());
    const Tensor kept = t.reshape({4});  // may be a view of the same memory
    EXPECT_EQ(floats(kept), (F{1, 2, 4, 5}));
  }
  EXPECT_EQ(owner.deleted, 2);
}

TEST(DLPack, ImportsScalarsAndRowMajorWithoutStrides) {
  Owner owner;
  dlpack::Managed* m = owner.make();
  m->tensor.strides = nullptr;
  EXPECT_EQ(floats(dlpack::import_tensor(m)), (F{1, 2, 3, 4}));
  m = owner.make();
  m->tensor.ndim = 0;
  EXPECT_EQ(dlpack::import_tensor(m).item<float>(), 1);
}

TEST(DLPack, ExportsAndKeepsAlive) {
  dlpack::ManagedVersioned* m = nullptr;
  const void* place = nullptr;
  {
    const Tensor t = Tensor::of({{1, 2, 3}, {4, 5, 6}});
    place = t.raw_data();
    m = dlpack::export_versioned(t);
  }
  EXPECT_EQ(m->version.major, 1u);
  EXPECT_EQ(m->flags, dlpack::kReadOnly);
  EXPECT_EQ(m->tensor.data, place);
  EXPECT_EQ(m->tensor.ndim, 2);
  EXPECT_EQ(m->tensor.shape[1], 3);
  EXPECT_EQ(m->tensor.strides[0], 3);
  EXPECT_EQ(m->tensor.dtype.code, dlpack::kInt);
  EXPECT_EQ(m->tensor.dtype.bits, 32);
  EXPECT_EQ(static_cast<const int32_t*>(m->tensor.data)[5], 6);
  // There and back again.
  const Tensor back = dlpack::import_tensor(m);
  EXPECT_EQ(ints(back), (I{1, 2, 3, 4, 5, 6}));
  dlpack::Managed* old = dlpack::export_tensor(back.cast(DType::BF16));
  EXPECT_EQ(old->tensor.dtype.code, dlpack::kBfloat);
  old->deleter(old);
}

TEST(DLPack, EveryElementTypeGoesBothWays) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const Tensor t = Tensor::ones({2}, static_cast<DType>(i));
    EXPECT_EQ(dlpack::import_tensor(dlpack::export_versioned(t)).dtype(), t.dtype());
  }
}

TEST(DLPack, RefusesWhatItCannotTakeAndLeavesItToTheCaller) {
  Owner owner;
  dlpack::Managed* m = owner.make();
  m->tensor.device.type = 2;
  EXPECT_EQ(error_of([&] { dlpack::import_tensor(m); }), "dlpack: the tensor lies on device type 2, only memory of the CPU (1) is taken");
  m = owner.make();
  m->tensor.dtype.lanes = 4;
  EXPECT_EQ(error_of([&] { dlpack::import_tensor(m); }), "dlpack: elements of 4 lanes are not taken, only of 1");
  m = owner.make();
  m->tensor.dtype = {dlpack::kComplex, 64, 1};
  EXPECT_EQ(error_of([&] { dlpack::import_tensor(m); }), "dlpack: there is no element type for code 5 with 64 bits");
  m = owner.make();
  m->tensor.byte_offset = 2;
  EXPECT_EQ(error_of([&] { dlpack::import_tensor(m); }),
            "Tensor::view: the memory of float32 elements must begin at a multiple of 4 bytes\n  hint: copy it with Tensor::from_bytes");
  dlpack::ManagedVersioned* v = owner.make_versioned();
  v->version.major = 2;
  EXPECT_EQ(error_of([&] { dlpack::import_tensor(v); }), "dlpack: the tensor has version 2.3, version 1.x is taken");
  EXPECT_EQ(error_of([&] { dlpack::import_tensor(static_cast<dlpack::Managed*>(nullptr)); }), "dlpack: a null pointer");
  EXPECT_EQ(owner.deleted, 0);
}

}  // namespace
}  // namespace tandem
