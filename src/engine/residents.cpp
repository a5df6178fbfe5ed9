#include "engine/residents.hpp"

#include <utility>
#include <vector>

#include <tandem/error.hpp>

#include "profile/recorder.hpp"

namespace tandem::engine {

ResidentBuffer::ResidentBuffer(Residents& residents, device::BufferRef memory)
    : Buffer(memory->device(), memory->data(), memory->bytes()), residents_(residents), memory_(std::move(memory)) {
  std::lock_guard lock(residents_.mutex_);
  place_ = residents_.used_.insert(residents_.used_.end(), this);
}

ResidentBuffer::~ResidentBuffer() {
  std::lock_guard lock(residents_.mutex_);
  residents_.used_.erase(place_);
}

Residents::Moves Residents::moves() const {
  std::lock_guard lock(mutex_);
  return moves_;
}

// The old memory stays until the copy is done: if that fails, it still has the bytes.
class Residents::MovesToHost {
 public:
  explicit MovesToHost(Residents& all) : all_(all) {}
  ~MovesToHost() {
    for (const Move& m : moves_) m.buffer->lie_at(all_.device_, m.old->data()), m.buffer->memory_ = m.old;
  }
  MovesToHost(const MovesToHost&) = delete;
  MovesToHost& operator=(const MovesToHost&) = delete;

  void add(ResidentBuffer& b) {
    const profile::Doing doing("a tensor goes to the host, to make room");
    device::BufferRef there = all_.device_.allocate_pinned(b.bytes());
    moves_.reserve(moves_.size() + 1);
    all_.device_.stream(device::StreamKind::Compute).download(there->data(), b.data(), b.bytes());
    moves_.push_back({&b, std::exchange(b.memory_, there)});
    b.lie_at(all_.host_, there->data());
  }
  void finish() {
    if (moves_.empty()) return;
    all_.device_.finish();  // the host may read them from now on
    for (const Move& m : moves_) {
      ++all_.moves_.spills;
      all_.moves_.spilled_bytes += m.buffer->bytes();
    }
    moves_.clear();
  }

 private:
  struct Move {
    ResidentBuffer* buffer;
    device::BufferRef old;
  };
  Residents& all_;
  std::vector<Move> moves_;
};

size_t Residents::spill(size_t bytes) {
  std::lock_guard lock(mutex_);
  MovesToHost moves(*this);
  size_t given = 0;
  std::exception_ptr failed;
  for (ResidentBuffer* b : used_) {
    if (given >= bytes) break;
    if (b->pins_ > 0 || b->is_on_host() || b->bytes() == 0) continue;
    try {
      moves.add(*b);
    } catch (const ResourceError&) {  // the host has no memory either
      failed = std::current_exception();
      break;
    }
    given += device::Account::counted(b->bytes());
  }
  moves.finish();
  if (given == 0 && failed) std::rethrow_exception(failed);
  return given;
}

void Residents::to_host(ResidentBuffer& b) {
  std::lock_guard lock(mutex_);
  MovesToHost moves(*this);
  moves.add(b);
  moves.finish();
}

void Residents::to_device(ResidentBuffer& b, device::BufferRef memory) {
  std::lock_guard lock(mutex_);
  const profile::Doing doing("a tensor comes back to the device");
  device_.stream(device::StreamKind::Compute).upload(memory->data(), b.data(), b.bytes());
  // Pinned memory is read when the stream comes to it; it is kept until then.
  device_.finish();
  b.lie_at(device_, memory->data());
  b.memory_ = std::move(memory);
  ++moves_.returns;
  moves_.returned_bytes += b.bytes();
}

void Residents::Pins::add(device::Buffer& buffer) {
  auto* b = dynamic_cast<ResidentBuffer*>(&buffer);
  if (!b) return;
  Residents& all = b->residents_;
  std::lock_guard lock(all.mutex_);
  ++b->pins_;
  all.used_.splice(all.used_.end(), all.used_, b->place_);
  pinned_.push_back(b);
}

Residents::Pins::~Pins() {
  for (ResidentBuffer* b : pinned_) {
    std::lock_guard lock(b->residents_.mutex_);
    --b->pins_;
  }
}

}  // namespace tandem::engine
