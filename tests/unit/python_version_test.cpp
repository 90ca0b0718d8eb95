#include "rules/python_version.hpp"

#include <gtest/gtest.h>

namespace remote::rules {
namespace {

TEST(PythonVersion, IsUsableFromTheOldestOneOn) {
  const std::string oldest = "3." + std::to_string(oldest_python_minor);
  EXPECT_EQ(usable_python, "Python " + oldest + " or newer");
  for (const std::string& version : {oldest, oldest + ".1", std::string("3.11.2"), std::string("4.0")}) {
    EXPECT_TRUE(is_usable_python(version)) << version;
  }
  EXPECT_TRUE(is_usable_python("")) << "unknown";
  for (const char* version : {"2.7.18", "3", "3.5.9", "x"}) {
    EXPECT_FALSE(is_usable_python(version)) << version;
  }
}

}  // namespace
}  // namespace remote::rules
