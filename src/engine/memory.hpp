// The memory of an engine's device: tensors, and arenas that are kept between runs; or the host's memory that the device's copies reach.
// When there is none left, spare arenas go first, then tensors move to the host's memory where they may, then everything that is kept for
// later goes, and only then is it an error.
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/residents.hpp"

namespace tandem::engine {

class Memory {
 public:
  enum class Kind : uint8_t { OfDevice, Pinned };
  // `give_back` frees what the owner keeps for later, and is called with no lock of this class held.
  Memory(device::Device& device, std::function<void()> give_back, Kind kind = Kind::OfDevice)
      : device_(device), give_back_(std::move(give_back)), kind_(kind) {}
  device::Device& device() const { return device_; }
  // From now on tensors may wait in the memory of `host` when there is no room for all.
  void let_spill_to(device::Device& host) { residents_.emplace(device_, host); }
  const Residents* residents() const { return residents_ ? &*residents_ : nullptr; }

  device::BufferRef allocate(size_t bytes);        // for a tensor
  device::BufferRef allocate_fixed(size_t bytes);  // for what stays where it is
  // Likewise, or nothing: what is kept for later stays, but for spare arenas.
  device::BufferRef allocate_if_room(size_t bytes);

  // Memory that was an arena, or is one. A device's own may be taken while an earlier run still uses it: both do so in the order of the
  // compute stream. Others have events behind the last run that used them: copies to or from pinned memory may still be on their way, and
  // the halves of a double buffer are used in turn, each by copies that do not wait for the run before.
  struct Spare {
    device::BufferRef buffer = {};
    std::unique_ptr<device::Event> used[2] = {};
    int half = 0;       // that was used last
    void wait() const;  // until nobody uses it
  };

  // An arena for one run, of at least so many bytes, or twice as many for a double buffer. All plans share the spare ones: a run takes the
  // smallest that holds it, and one that is too small goes before a larger one comes. So there are never more than runs at the same time.
  class Arena {
   public:
    Arena(Memory& memory, size_t bytes, bool is_double_buffered = false);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    void* data() const;

   private:
    Memory& memory_;
    const bool is_double_buffered_;
    Spare taken_;
  };

  void drop_spares();  // and what the device keeps

 private:
  using Spares = std::vector<Spare>;  // the smallest first
  Spares& spares(bool is_double_buffered) { return is_double_buffered ? double_buffers_ : spares_; }
  Spare take_spare(size_t bytes, bool is_double_buffered);
  device::BufferRef try_allocate(size_t bytes);  // nothing when there is no memory
  size_t missing(size_t bytes) const;            // so much has to be given back first
  device::BufferRef from_device(size_t bytes) { return kind_ == Kind::Pinned ? device_.allocate_pinned(bytes) : device_.allocate(bytes); }

  device::Device& device_;
  const std::function<void()> give_back_;
  const Kind kind_;
  std::optional<Residents> residents_;
  std::mutex mutex_;
  Spares spares_, double_buffers_;
};

}  // namespace tandem::engine
