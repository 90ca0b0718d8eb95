#include "cli/show/prepare_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/pip_hints.hpp"

namespace remote::cli {
namespace {
using ::testing::HasSubstr;

TEST(PackageLine, SaysWhichPackage) {
  for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
           {"Collecting torch==2.6.0 (from -r requirements.txt (line 1))", "collecting torch==2.6.0"},
           {"  Downloading torch-2.6.0-cp311-cp311-linux_x86_64.whl (766.7 MB)",
            "downloading torch 2.6.0 (766.7 MB)"},
           {"  Downloading https://host/a/some-1.0.tar.gz (3 kB)", "downloading some-1.0 (3 kB)"},
           {"  Using cached six-1.17.0-py2.py3-none-any.whl (11 kB)", "from the cache: six 1.17.0 (11 kB)"},
           {"Processing ./wheels/six-1.17.0-py2.py3-none-any.whl", "reading six 1.17.0"},
           {"Requirement already satisfied: six in /usr/lib", "there already: six"},
           {"  Building wheel for apex (setup.py): started", "building apex"},
           {"Installing collected packages: a, b, c", "installing 3 packages: a, b, c"},
           {"Downloading ", "Downloading "},
           {"something else", "something else"}}) {
    EXPECT_EQ(package_line(line), words);
  }
}

TEST(PackageLine, TakesAnything) {
  for (const char* line :
       {"Collecting  ", "Downloading .whl", "Downloading -.whl x", "Building wheel for  "}) {
    EXPECT_NO_THROW(package_line(line));
  }
}

TEST(SameFailures, TellsTheServerThatFailedFirst) {
  SameFailures failures;
  const auto failure = [](const char* lines) {
    return ServerFailed{0, Error("update-packages", "pip could not install the packages"), lines, "log"};
  };
  EXPECT_EQ(failures.seen_on("a", failure("no such package")), "");
  EXPECT_EQ(failures.seen_on("b", failure("no such package")), "a");
  EXPECT_EQ(failures.seen_on("c", failure("the disk is full")), "");
  EXPECT_EQ(failures.seen_on("f", failure("WARNING: object at 0x7f1\nERROR: no x")), "");
  EXPECT_EQ(failures.seen_on("g", failure("WARNING: object at 0x7f2\nERROR: no x")), "f");
  EXPECT_EQ(failures.seen_on("d", failure("")), "");
  EXPECT_EQ(failures.seen_on("e", failure("")), "");
}

TEST(PipHint, SaysWhatToTry) {
  using servers::pip_hint;
  EXPECT_THAT(pip_hint("ERROR: No matching distribution found for torhc==2\nmore"),
              HasSubstr("is 'torhc==2' the"));
  EXPECT_THAT(pip_hint("NewConnectionError …\nERROR: No matching distribution found for six"),
              HasSubstr("does not reach the package index"));
  EXPECT_THAT(pip_hint("ERROR: ResolutionImpossible: for help"), HasSubstr("contradict"));
  EXPECT_THAT(pip_hint("OSError: [Errno 28] No space left on device"), HasSubstr("make room"));
  EXPECT_THAT(pip_hint("fatal error: Python.h: No such file or directory"), HasSubstr("compiled"));
  EXPECT_EQ(pip_hint("something else"), "");
}

}  // namespace
}  // namespace remote::cli
