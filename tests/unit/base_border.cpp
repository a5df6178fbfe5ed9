// Exceptions at the border: what passes, and what becomes a ResourceError.
#include "base/border.hpp"

#include <filesystem>
#include <ios>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include <tandem/error.hpp>

namespace tandem {
namespace {

template <class Thrown> std::string text_of(const Thrown& thrown) {
  try {
    at_border("load", [&]() -> int { throw thrown; });
  } catch (const ResourceError& e) {
    return e.what();
  }
  return "no ResourceError";
}

TEST(Border, WhatTheStandardLibraryThrowsIsAResourceError) {
  EXPECT_EQ(text_of(std::bad_alloc()), "load: the host has no memory left\n  hint: smaller batches, fewer things kept, or more memory");
  EXPECT_EQ(text_of(std::length_error("vector")), "load: a size that no memory can hold (vector)");
  const std::filesystem::filesystem_error file("cannot copy", "a", std::make_error_code(std::errc::no_such_file_or_directory));
  EXPECT_EQ(text_of(file), std::string("load: ") + file.what());
  EXPECT_TRUE(text_of(std::ios_base::failure("read")).starts_with("load: read"));
}

TEST(Border, OurErrorsAndTheUsersPassAsTheyAre) {
  EXPECT_THROW(at_border("load", [] { throw UserError("mine"); }), UserError);
  EXPECT_THROW(at_border("load", [] { throw std::runtime_error("a callback's"); }), std::runtime_error);
  EXPECT_THROW(at_border("load", [] { throw 7; }), int);
  int x = 1;
  EXPECT_EQ(&at_border("load", [&]() -> int& { return x; }), &x);
}

}  // namespace
}  // namespace tandem
