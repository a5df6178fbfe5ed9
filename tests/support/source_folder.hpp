// Where tests/data and docs are. Its .cpp alone knows the path, so that a compiler cache serves several checkouts.
#pragma once
#include <string>

namespace tandem::test {

// "tests/data/x" below the folder that this was built from.
std::string source_file(const char* path);

}  // namespace tandem::test
