// DLPack 1.x: tensors to and from other libraries without copying. The structs have the layout of dlpack.h; a program that includes that
// header too may cast between the two.
#pragma once
#include <cstdint>

#include <tandem/tensor.hpp>

namespace tandem::dlpack {

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 0;
inline constexpr int32_t kCpu = 1;  // the only device type taken
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kIsCopied = 2;

struct Version {
  uint32_t major, minor;
};
struct Device {
  int32_t type, id;
};
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kOpaque = 3, kBfloat = 4, kComplex = 5, kBool = 6 };
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct View {  // DLTensor
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct Managed {  // DLManagedTensor
  View tensor;
  void* context;
  void (*deleter)(Managed* self);
};
struct ManagedVersioned {  // DLManagedTensorVersioned
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  View tensor;
};

// Takes the tensor over: its deleter is called when nothing uses the memory any more. When these throw, it has not been taken over.
Tensor import_tensor(Managed* tensor);
Tensor import_tensor(ManagedVersioned* tensor);
// The receiver calls the deleter. The versioned one says that it is read-only, for a Tensor never changes.
Managed* export_tensor(const Tensor& t);
ManagedVersioned* export_versioned(const Tensor& t);

}  // namespace tandem::dlpack
