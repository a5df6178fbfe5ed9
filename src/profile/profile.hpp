// A profile from its beginning to its files.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::profile {

// UserError when one is being recorded already, or the file has no name. Where the files go is looked at now: a folder that cannot be
// written to is told before and not after the work.
void begin(const std::filesystem::path& file, std::string title);
std::vector<std::filesystem::path> end();  // writes them, and says which; none when nothing was begun
void abandon();                            // writes none

// TANDEM_PROFILE: from now until the process ends.
void begin_as_environment_says();

}  // namespace tandem::profile
