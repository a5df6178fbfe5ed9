// Real cards, by what their makers' data sheets say: for planning on one that is not there.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "device/device.hpp"

namespace tandem::device {

struct Card {
  std::string_view name;
  double memory_gib;                 // as it is sold
  double gigabytes_per_second;       // of its memory
  double teraflops;                  // float32, on the ordinary units, at the clock that the maker names
  double link_gigabytes_per_second;  // to the host, each way
  double launch_microseconds;        // what giving it one kernel costs. No data sheet says it
  std::string_view link;             // "PCIe 4.0 x16"
  std::string_view source;
};

std::span<const Card> cards();
// By name, whatever the case, spaces, dashes and a maker's name in front: "rtx3060". UserError with near names.
const Card& card(std::string_view name);

// What a plan may use of it. A driver, its context and, on many cards, the correction of memory errors keep the rest.
size_t usable_bytes(const Card& card);
// What kernels and copies are reckoned to reach: parts of what the data sheet gives, which no real kernel reaches whole.
inline constexpr double kReachedArithmetic = 0.5, kReachedMemory = 0.8, kReachedLink = 0.8;
Rates rates_of(const Card& card);
// Our assumption for the host, which updates state that waits there: some cores and two channels of memory.
inline constexpr Rates kHostBesideACard{.flops_per_second = 1e11, .bytes_per_second = 2e10, .launch_seconds = 1e-5};

}  // namespace tandem::device
