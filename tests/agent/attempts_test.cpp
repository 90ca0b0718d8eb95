#include "agent/job/attempts.hpp"

#include <gmock/gmock.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::ProcessEnd;

TEST(Attempts, ALineIsParsed) {
  auto attempt = parse_attempt("1 1000 2500 3000 exit 7 3 0 my%20gpu");
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->number, 1);
  EXPECT_EQ(attempt->began_at, milliseconds(1000));
  EXPECT_EQ(attempt->failed_at, milliseconds(2500));
  EXPECT_EQ(attempt->next_at, milliseconds(3000));
  EXPECT_EQ(attempt->cause, RestartCause::exit);
  EXPECT_EQ(attempt->end, ProcessEnd::exited(7));
  EXPECT_EQ(attempt->rank, 3);
  EXPECT_FALSE(attempt->left_out);
  EXPECT_EQ(attempt->server, "my gpu");
  EXPECT_THAT(attempt->without, IsEmpty());

  attempt = parse_attempt("1 1000 2500 3000 oom 9 3 1 my%20gpu -");
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->cause, RestartCause::oom);
  EXPECT_EQ(attempt->end, ProcessEnd::signalled(9));
  EXPECT_TRUE(attempt->left_out);

  attempt = parse_attempt("2 1000 2000 3000 lost - - 0 b b,my%20gpu,%1b");
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->cause, RestartCause::lost);
  EXPECT_FALSE(attempt->end);
  EXPECT_FALSE(attempt->rank);
  EXPECT_THAT(attempt->without, ElementsAre("b", "my gpu", "\\x1b"));

  for (const std::string cause : {"signal", "hang", "lifeline"}) {
    EXPECT_TRUE(parse_attempt("2 1000 2000 3000 " + cause + " - - 0 -")) << cause;
  }
}

TEST(Attempts, AWrongLineIsNot) {
  for (const char* line :
       {"", "0 1 2 3 lost - - 0 b", "-1 1 2 3 lost - - 0 b", "1 x 2 3 lost - - 0 b", "1 -1 2 3 lost - - 0 b",
        "1 1 2 3 boredom - - 0 b", "1 1 2 3 exit 256 0 0 b", "1 1 2 3 exit -1 0 0 b",
        "1 1 2 3 signal 0 0 0 b", "1 1 2 3 signal 65 0 0 b", "1 1 2 3 lost - - 0", "1 1 2 3 lost - - 0 %zz",
        "1 1 2 3 lost - - 0 %4", "1 1 2 3 lost - - 0 b c d", "1 1 2 3 lost - - 0 b %zz",
        "1 1 2 3 lost - -1 0 b", "1 1 2 3 lost - - x b", "1 1 2 999999999999999 lost - - 0 b",
        "99999999999 1 2 3 lost - - 0 b"}) {
    EXPECT_FALSE(parse_attempt(line)) << line;
  }
}

class AttemptsFile : public ::testing::Test {
 protected:
  std::vector<int> read(const std::string& text) const {
    test::HostFolder::put(host.path() / "attempts", text);
    std::vector<int> numbers;
    for (const wire::AttemptRecord& attempt : read_attempts(host.path())) {
      numbers.push_back(attempt.number);
    }
    return numbers;
  }
  test::HostFolder host;
};

TEST_F(AttemptsFile, MalformedLinesAreSkipped) {
  EXPECT_THAT(read_attempts(host.path()), IsEmpty());
  EXPECT_THAT(read(""), IsEmpty());
  EXPECT_THAT(read("1 1 2 3 lost - - 0 b\nx\n\n2 1 2 3 lost - - 0 $(id)\n3 1 2 3 lost - - 0 b\n4 1 2 3 lo"),
              ElementsAre(1, 2, 3));
}

TEST_F(AttemptsFile, TheyAreBounded) {
  std::string text;
  for (int i = 1; i <= 2000; ++i) {
    text += std::to_string(i) + " 1 2 3 lost - - 0 b\n";
  }
  EXPECT_EQ(read(text).size(), wire::max_attempts);
  // Must fit into a message of 1 MiB.
  text.clear();
  for (int i = 1; i <= 100; ++i) {
    text += std::to_string(i) + " 1 2 3 lost - - 0 b ";
    for (int name = 0; name < 100; ++name) {
      text += "x" + std::string(90, 'y') + ",";
    }
    text += "z\n";
  }
  EXPECT_LT(read(text).size(), 50U);
  EXPECT_GT(read(text).size(), 40U);
}

}  // namespace
}  // namespace remote::agent
