#include "base/shell_quote.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote {
namespace {

TEST(ShellQuote, PlainWordsStayReadable) {
  EXPECT_EQ(shell_quote("train.py"), "train.py");
  EXPECT_EQ(shell_quote("--lr"), "--lr");
}

TEST(ShellQuote, NulIsRefused) {
  EXPECT_THROW(shell_quote(std::string_view("a\0b", 3)), Error);
}

TEST(ShellQuote, NamesOfVariables) {
  for (const char* name : {"A", "_", "a_1", "HOME"}) {
    EXPECT_NO_THROW(check_variable(name)) << name;
  }
  for (const char* name : {"", "1A", "A-B", "A B", "A=B", "\u00e4", "A\n", "$(id)", "UID"}) {
    EXPECT_THROW(check_variable(name), Error) << name;
  }
}

}  // namespace
}  // namespace remote
