// The printed form of a place in the user's program.
#include <tandem/error.hpp>

#include <string_view>

namespace tandem {

// Only the last part of the path: messages stay short, and the same wherever the program was built.
std::string Location::str() const {
  if (!file) return {};
  const std::string_view path = file;
  std::string text(path.substr(path.rfind('/') + 1));  // npos + 1 == 0: no folder, the whole name
  if (line != 0) text += ':' + std::to_string(line);
  return text;
}

}  // namespace tandem
