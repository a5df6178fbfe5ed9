// Seeing what ran where: a profile records, for each device and stream, what ran when, memory, copies and waiting, and writes a page to
// read
// (.html), a trace for ui.perfetto.dev (.json), or both.
//
//   tandem::Profile profile("step.html");
//   for (…) train_step(…);
//   profile.stop();
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tandem {

class Profile {
 public:
  // Begins. `file` ends in .html or .json; with another ending, both are written, with theirs added. One at a time in a process: UserError.
  explicit Profile(const std::string& file, const std::string& title = "Profile");
  ~Profile();  // stops; what goes wrong then is said on stderr
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  std::vector<std::string> stop();  // writes the files and says which; none the second time. ResourceError when they cannot be written
  void abandon();                   // ends and writes nothing

 private:
  bool runs_ = true;
};

// A step of a loop of one's own, while it lives: the page counts and shows them. fit() has its own.
class ProfiledStep {
 public:
  explicit ProfiledStep(int64_t number);
  ~ProfiledStep();
  ProfiledStep(const ProfiledStep&) = delete;
  ProfiledStep& operator=(const ProfiledStep&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // null: nobody looks
};

}  // namespace tandem
