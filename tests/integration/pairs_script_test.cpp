#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/pairs.hpp"

// pairs.sh on the shells there are, on a server without python3: what sh can tell is told. With python3,
// tests/e2e has it.

namespace remote::servers {
namespace {

class PairsScript : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_program(split(GetParam(), ' ').front())) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
  }
};

TEST_P(PairsScript, WithoutPythonItTellsNamesAndWays) {
  const PairsRequest request{.own = 0,
                             .token = "abc",
                             .addresses = {"127.0.0.1", "nobody.invalid", "localhost"},
                             .python = "no-such-python"};
  SubprocessSpec spec;
  spec.argv = split(GetParam(), ' ');
  spec.argv.emplace_back("-s");
  const ExecResult result = run_subprocess(spec, pairs_script(request).open_input());
  EXPECT_EQ(result.err, "");
  const auto answer = read_answer<PairsAnswer>(result.out, PairsAnswer(request));
  EXPECT_FALSE(answer.has_python);
  EXPECT_FALSE(answer.listening);
  EXPECT_THAT(answer.pairs[0].addresses, ::testing::ElementsAre("127.0.0.1"));
  EXPECT_THAT(answer.pairs[1].addresses, ::testing::IsEmpty());
  EXPECT_THAT(answer.pairs[2].addresses, ::testing::Not(::testing::IsEmpty()));
  if (find_program("ip")) {
    EXPECT_EQ(answer.pairs[0].interface, "lo");
    EXPECT_EQ(answer.pairs[0].source, "127.0.0.1");
  }
}

INSTANTIATE_TEST_SUITE_P(Shells, PairsScript, ::testing::Values("dash", "bash", "busybox ash"),
                         [](const auto& shell) { return split(shell.param, ' ').back(); });

}  // namespace
}  // namespace remote::servers
