#include "device/cards.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/names.hpp"
#include "base/text.hpp"

namespace tandem::device {
namespace {

// PCI Express of 16 lanes, each way, after its line code (128b/130b): 8, 16 and 32 GT/s a lane.
constexpr double kPcie3x16 = 15.75, kPcie4x16 = 31.5, kPcie4x8 = 15.75, kPcie5x16 = 63.0;
// Our assumption for all: a launch out of a queue that is not empty.
constexpr double kLaunch = 5;

// Where a maker gives no float32 rate, the source says what it was computed from: lanes x 2 x clock.
constexpr Card kCards[] = {
    {"GTX 1080", 8, 320, 8.87, kPcie3x16, kLaunch, "PCIe 3.0 x16", "NVIDIA GeForce GTX 1080 whitepaper (2016): 2560 cores, 1733 MHz boost"},
    {"GTX 1650", 4, 128, 2.98, kPcie3x16, kLaunch, "PCIe 3.0 x16",
     "NVIDIA GeForce GTX 1650 specifications, GDDR5: 896 cores, 1665 MHz boost"},
    {"RTX 2080 Ti", 11, 616, 13.4, kPcie3x16, kLaunch, "PCIe 3.0 x16",
     "NVIDIA Turing architecture whitepaper (2018), reference clock: 4352 cores, 1545 MHz boost"},
    {"RTX 3050", 8, 224, 9.1, kPcie4x8, kLaunch, "PCIe 4.0 x8", "NVIDIA GeForce RTX 3050 8 GB specifications: 2560 cores, 1777 MHz boost"},
    {"RTX 3060", 12, 360, 12.7, kPcie4x16, kLaunch, "PCIe 4.0 x16",
     "NVIDIA GeForce RTX 3060 12 GB specifications: 3584 cores, 1777 MHz boost"},
    {"RTX 3080", 10, 760, 29.8, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA Ampere GA102 architecture whitepaper (2020)"},
    {"RTX 3090", 24, 936, 35.6, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA Ampere GA102 architecture whitepaper (2020)"},
    {"RTX 4060", 8, 272, 15.1, kPcie4x8, kLaunch, "PCIe 4.0 x8", "NVIDIA GeForce RTX 4060 specifications: 3072 cores, 2460 MHz boost"},
    {"RTX 4060 Ti 16GB", 16, 288, 22.1, kPcie4x8, kLaunch, "PCIe 4.0 x8",
     "NVIDIA GeForce RTX 4060 Ti specifications: 4352 cores, 2535 MHz boost"},
    {"RTX 4070", 12, 504, 29.1, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA GeForce RTX 4070 specifications: 5888 cores, 2475 MHz boost"},
    {"RTX 4090", 24, 1008, 82.6, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA Ada GPU architecture whitepaper (2022)"},
    {"RTX 5090", 32, 1792, 104.8, kPcie5x16, kLaunch, "PCIe 5.0 x16", "NVIDIA RTX Blackwell GPU architecture whitepaper (2025)"},
    {"RTX A2000", 12, 288, 8.0, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA RTX A2000 12 GB datasheet"},
    {"RTX A6000", 48, 768, 38.7, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA RTX A6000 datasheet"},
    {"T4", 16, 320, 8.1, kPcie3x16, kLaunch, "PCIe 3.0 x16", "NVIDIA T4 datasheet"},
    {"V100", 16, 900, 14.0, kPcie3x16, kLaunch, "PCIe 3.0 x16", "NVIDIA V100 datasheet, PCIe 16 GB"},
    {"L4", 24, 300, 30.3, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA L4 datasheet"},
    {"A10", 24, 600, 31.2, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA A10 datasheet"},
    {"A100 40GB", 40, 1555, 19.5, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA A100 datasheet, PCIe 40 GB"},
    {"A100 80GB", 80, 1935, 19.5, kPcie4x16, kLaunch, "PCIe 4.0 x16", "NVIDIA A100 datasheet, PCIe 80 GB"},
    {"H100", 80, 2000, 51.0, kPcie5x16, kLaunch, "PCIe 5.0 x16", "NVIDIA H100 datasheet, PCIe 80 GB"},
    {"RX 7600", 8, 288, 21.5, kPcie4x8, kLaunch, "PCIe 4.0 x8", "AMD Radeon RX 7600 specifications"},
    {"RX 7900 XTX", 24, 960, 61.0, kPcie4x16, kLaunch, "PCIe 4.0 x16", "AMD Radeon RX 7900 XTX specifications"},
    {"W7900", 48, 864, 61.3, kPcie4x16, kLaunch, "PCIe 4.0 x16", "AMD Radeon PRO W7900 datasheet"},
    {"MI210", 64, 1638, 22.6, kPcie4x16, kLaunch, "PCIe 4.0 x16", "AMD Instinct MI210 datasheet, vector rate"},
    {"Arc A750", 8, 512, 14.7, kPcie4x16, kLaunch, "PCIe 4.0 x16", "Intel ARK, Arc A750: 3584 lanes, 2050 MHz graphics clock"},
    {"Arc A770", 16, 560, 17.2, kPcie4x16, kLaunch, "PCIe 4.0 x16", "Intel ARK, Arc A770 16 GB: 4096 lanes, 2100 MHz graphics clock"},
};

// Letters and digits in lower case, without a maker's words in front.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view word : {"nvidia", "amd", "intel", "geforce", "radeon", "tesla", "instinct", "pro"})
    if (text.starts_with(word)) text.erase(0, word.size());
  return text;
}

}  // namespace

std::span<const Card> cards() { return kCards; }

const Card& card(std::string_view name) {
  const std::string wanted = plain(name);
  for (const Card& c : kCards)
    if (plain(c.name) == wanted) return c;
  std::vector<std::string> near;
  for (const Card& c : kCards)
    if (!wanted.empty() && (plain(c.name).starts_with(wanted) || wanted.starts_with(plain(c.name)))) near.emplace_back(c.name);
  std::vector<std::string> all;
  for (const Card& c : kCards) all.emplace_back(c.name);
  user_error(ErrorCode::NotFound, "card: there is none named \"", name, "\" in the catalogue",
             near.empty() ? "; there are " : "; near it are ", joined(near.empty() ? all : near),
             "\n  hint: tandem plan --cards lists them");
}

size_t usable_bytes(const Card& card) {
  constexpr double kKept = 1.0 / 16, kLeastKeptGib = 0.5;
  return static_cast<size_t>((card.memory_gib - std::max(card.memory_gib * kKept, kLeastKeptGib)) * 0x1p30);
}

Rates rates_of(const Card& card) {
  return {.flops_per_second = card.teraflops * 1e12 * kReachedArithmetic,
          .bytes_per_second = card.gigabytes_per_second * 1e9 * kReachedMemory,
          .link_bytes_per_second = card.link_gigabytes_per_second * 1e9 * kReachedLink,
          .launch_seconds = card.launch_microseconds * 1e-6};
}

}  // namespace tandem::device
