// Each test makes one mistake and compares the whole message; then the engine must still work.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include <tandem/tandem.hpp>

namespace tandem {

// `wanted` with each @ replaced by "at file:line".
inline std::string located(std::string wanted, const char* file, int line) {
  const std::string path(file);
  const std::string place = "at " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
  for (size_t at = wanted.find('@'); at != std::string::npos; at = wanted.find('@', at + place.size())) wanted.replace(at, 1, place);
  return wanted;
}

inline void expect_works() {
  const Tensor x = Tensor::of({1.f, 2.f});
  EXPECT_EQ((x * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5}));
  Tape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(sum(x * x), x).to_vector<float>(), (std::vector<float>{2, 4}));
  Function f([](Tensor y) { return y - 1; });
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{0, 1}));
}

template <class E, class F> void expect_error(F&& f, const std::string& wanted) {
  try {
    f();
    ADD_FAILURE() << "no error; wanted: " << wanted;
  } catch (const E& e) {
    EXPECT_EQ(std::string(e.what()), wanted);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another kind of error: " << e.what();
  }
  expect_works();
}

}  // namespace tandem

// The statement stands on the line of the macro, which is the line that the message names.
#define EXPECT_USER_ERROR(statement, wanted) \
  ::tandem::expect_error<::tandem::UserError>([&] { (void)(statement); }, ::tandem::located(wanted, __FILE__, __LINE__))
#define EXPECT_RESOURCE_ERROR(statement, wanted) \
  ::tandem::expect_error<::tandem::ResourceError>([&] { (void)(statement); }, ::tandem::located(wanted, __FILE__, __LINE__))
