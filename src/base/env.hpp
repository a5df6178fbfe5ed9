// The one table of environment variables: every TANDEM_* variable that exists, its default and what it does.
// docs/env.md is generated from it. A variable that is not in the table is not read anywhere.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::env {

struct Variable {
  std::string_view name;           // "TANDEM_THREADS"
  std::string_view default_value;  // as text, for the docs
  std::string_view doc;
};
std::span<const Variable> variables();

// The value, or the table's default. Asking for a name that is not in the table is an InternalError. Read afresh each call.
std::string get(std::string_view name);
// UserError names the variable and the text when it is not a whole number from 0 to `most`.
int64_t get_count(std::string_view name, int64_t most);
// A size such as 512MiB, 1.5GiB or 2GB, in bytes; 0 when it is empty. UserError says what is wrong.
size_t get_bytes(std::string_view name);
bool get_flag(std::string_view name);  // "", "0", "false", "off" are false
// Names with commas between. UserError lists the known ones when one is not among them.
std::vector<std::string> get_names(std::string_view name, std::span<const std::string_view> known);

std::string cache_dir();  // TANDEM_CACHE_DIR; empty when it is switched off or there is no home folder to put it in
std::string markdown();   // docs/env.md

}  // namespace tandem::env
