// A recording as a page that people read, and the files of a profile.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "profile/recording.hpp"

namespace tandem::profile {

std::string report_html(const Recording& recording, std::string_view title);

// By its ending: a page for .html, a trace for .json, and both, with these endings added, for any other. What was written.
std::vector<std::filesystem::path> files_for(const std::filesystem::path& file);
std::vector<std::filesystem::path> write(const Recording& recording, const std::filesystem::path& file, std::string_view title);

}  // namespace tandem::profile
