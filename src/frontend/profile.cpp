#include <tandem/profile.hpp>

#include <cstdio>

#include <tandem/error.hpp>

#include "profile/profile.hpp"
#include "profile/recorder.hpp"

namespace tandem {

Profile::Profile(const std::string& file, const std::string& title) { profile::begin(file, title); }

Profile::~Profile() {
  try {
    stop();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "profile: %s\n", e.what());
  }
}

std::vector<std::string> Profile::stop() {
  std::vector<std::string> names;
  if (!std::exchange(runs_, false)) return names;
  for (const std::filesystem::path& f : profile::end()) names.push_back(f.string());
  return names;
}

void Profile::abandon() {
  if (std::exchange(runs_, false)) profile::abandon();
}

struct ProfiledStep::Impl {
  explicit Impl(int64_t number) : span(profile::Kind::Step, "step", static_cast<uint64_t>(number)) {}
  profile::Span span;
};
ProfiledStep::ProfiledStep(int64_t number) {
  if (profile::Recorder::is_on()) impl_ = std::make_unique<Impl>(number);
}
ProfiledStep::~ProfiledStep() = default;

}  // namespace tandem
