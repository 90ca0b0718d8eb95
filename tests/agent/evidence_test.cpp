#include "agent/launch/evidence.hpp"

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/waiting.hpp"

namespace remote::agent {
namespace {

class TakeEvidence : public ::testing::Test {
 protected:
  // `text`: the program that replaces the agent.
  Evidence take(const std::string& text) {
    test::FakeHost::put_program(fake.folder() / "agent", text);
    return take_evidence(fake.host, {fake.folder() / "agent", "/p/.jobs", "/p/.jobs/.bin/x"},
                         std::chrono::seconds(2), {"j", "k"});
  }

  test::FakeHost fake;
};

TEST_F(TakeEvidence, HasTheWholeLines) {
  const Evidence evidence = take("echo \"$*\"; echo no >&2; cat; printf half; exit 1");
  EXPECT_EQ(evidence.text, "why /p/.jobs /p/.jobs/.bin/x 2 j k\n");
  EXPECT_FALSE(evidence.all_wait);
  EXPECT_EQ(take("printf half").text, "");
  EXPECT_EQ(take("yes | head -c 9000000").text.size(), std::size_t{8} << 20U);
}

TEST_F(TakeEvidence, ShowsThatAllWaitByTheExitStatus) {
  EXPECT_TRUE(take("echo; exit 42").all_wait);
  EXPECT_FALSE(take("echo; exit 0").all_wait);
  EXPECT_FALSE(take("kill -TERM $$").all_wait);
}

TEST_F(TakeEvidence, LeavesNoProcess) {
  const std::string pid = take("sleep 1000 >/dev/null & echo $!").text;
  EXPECT_TRUE(test::eventually([&] { return ::kill(std::stoi(pid), 0) != 0; }));
}

}  // namespace
}  // namespace remote::agent
