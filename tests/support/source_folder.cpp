#include "support/source_folder.hpp"

namespace tandem::test {

std::string source_file(const char* path) { return std::string(TANDEM_SOURCE_DIR "/") + path; }

}  // namespace tandem::test
