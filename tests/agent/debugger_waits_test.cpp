#include "agent/job/debugger_waits.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DebuggerWaits : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) { jobs.put(id, "debug/" + name, text + "\n"); }
  std::vector<DebuggerWait> find() { return find_debugger_waits(jobs.host(), jobs.record(id)); }
  std::size_t count_of(const std::string& text) {
    put("1.7", text);
    return find().size();
  }

  test::JobFolders jobs;
  const std::string id = jobs.make_running();
  const std::string me = jobs.this_process() + " ";
};

TEST_F(DebuggerWaits, AreFound) {
  EXPECT_THAT(find(), IsEmpty());
  put("1.7", me + "3 88 - my train.py");
  put("12.7", me + "- 90 ValueError |");
  put("2.7", me + "0 1 my_errors.Bad-? a\033b");
  EXPECT_THAT(find(), ElementsAre(DebuggerWait{"1.7", 3, "my train.py", 88, ""},
                                  DebuggerWait{"12.7", std::nullopt, "|", 90, "ValueError"},
                                  DebuggerWait{"2.7", 0, "a\\x1bb", 1, "my_errors.Bad-?"}));
}

TEST_F(DebuggerWaits, OfDeadProcessesAreNot) {
  EXPECT_EQ(count_of(me + "3 88 - x"), 1U);
  EXPECT_EQ(count_of(std::to_string(::getpid()) + " 1 3 88 - x"), 0U);
  EXPECT_EQ(count_of("999999999 1 3 88 - x"), 0U);
  // A container has its own pids.
  jobs.put(id, "container", "docker");
  EXPECT_EQ(count_of("999999999 1 3 88 - x"), 1U);
}

TEST_F(DebuggerWaits, WrongRecordsAreSkipped) {
  for (const std::string& wrong : std::vector<std::string>{
           "", "x", me, me + "3", me + "3 88", me + "x 88 - x", me + "3 x - x", me + "-3 88 - x",
           me + "3 -8 - x", me + "1234567890 1 - x", me + "1 1234567890 - x", me + "3 88 a/b x",
           me + "3 88 $(id) x", "-1 1 3 88 - x", me + "3 88 - " + std::string(4001, 'x')}) {
    EXPECT_EQ(count_of(wrong), 0U) << wrong;
  }
  put("1.7", me + "3 88 - x");
  jobs.put(id, "debug/2.7", me + "3 88 - x");  // half-written
  for (const std::string& name : {std::string("1x"), std::string(".1.8"), std::string("1.7.sock"),
                                  std::string("a"), std::string(70, '1')}) {
    put(name, me + "3 88 - x");
  }
  fs::create_directory(jobs.folder(id) / "debug/3.7");
  ASSERT_EQ(::mkfifo((jobs.folder(id) / "debug/4.7").c_str(), 0600), 0);
  fs::create_symlink("1.7", jobs.folder(id) / "debug/5.7");
  EXPECT_EQ(find().size(), 1U);
}

TEST_F(DebuggerWaits, AreBounded) {
  for (int i = 0; i < 100; ++i) {
    put(std::to_string(i) + ".7", me + "3 88 - x");
  }
  EXPECT_EQ(find().size(), 64U);
}

}  // namespace
}  // namespace remote::agent
