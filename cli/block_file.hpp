// Files of blocks to place: comma-separated, with the columns id, lower, upper and size, where [lower, upper) is a block's life.
#pragma once
#include <string>
#include <vector>

#include "plan/allocate.hpp"

namespace tandem::cli {

struct BlockFile {
  std::vector<std::string> ids;
  std::vector<plan::Lifetime> blocks;
};

// ResourceError when it cannot be read; UserError with the number of the line when it says something else than blocks.
BlockFile read_blocks(const std::string& path);
// The same columns, and the offset of each block.
void write_blocks(const std::string& path, const BlockFile& file, const std::vector<size_t>& offsets);

}  // namespace tandem::cli
