#include "base/shell_quote.hpp"

#include <gtest/gtest.h>

#include "base/subprocess.hpp"

namespace remote {
namespace {

// The word as sh parses it.
std::string through_sh(const std::string& word) {
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", "printf '%s.' " + word};
  std::string out = run_subprocess(spec).out;
  EXPECT_FALSE(out.empty());
  out.pop_back();
  return out;
}

TEST(ShellQuoteThroughSh, EveryValueArrivesExactly) {
  const std::vector<std::string> values = {"",
                                           " ",
                                           "plain",
                                           "two words",
                                           "it's",
                                           "\"quoted\"",
                                           "$HOME `id` $(id)",
                                           "back\\slash",
                                           "line\nbreak",
                                           "trailing newline\n",
                                           "tab\there",
                                           "*?[a-z]",
                                           "~",
                                           "~root",
                                           "-n",
                                           "a=b",
                                           "!history",
                                           "#comment",
                                           "ä€😀",
                                           "'",
                                           "''",
                                           "\\'",
                                           "a;b&c|d>e<f",
                                           "{a,b}",
                                           "\x01\x7f"};
  for (const std::string& value : values) {
    EXPECT_EQ(through_sh(shell_quote(value)), value);
  }
}

TEST(ShellQuoteThroughSh, RemotePathsAreUnderHomeUnlessAbsolute) {
  const SubprocessSpec base{.argv = {"sh", "-c", ""},
                            .directory = {},
                            .set_env = {{"HOME", "/h o"}},
                            .unset_env = {},
                            .pass_fds = {}};
  const auto expand = [&](const std::string& path) {
    SubprocessSpec spec = base;
    spec.argv[2] = "printf %s " + remote_path_word(path);
    return run_subprocess(spec).out;
  };
  EXPECT_EQ(expand("~"), "/h o");
  EXPECT_EQ(expand("~/my project"), "/h o/my project");
  EXPECT_EQ(expand("x/$y"), "/h o/x/$y");
  EXPECT_EQ(expand("/srv/it's"), "/srv/it's");
}

}  // namespace
}  // namespace remote
