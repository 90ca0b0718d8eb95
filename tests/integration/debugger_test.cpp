#include "base/subprocess.hpp"
#include "jobs/stacks.hpp"
#include "support/paths.hpp"
#include "support/script_test.hpp"

// Jobs that wait in a debugger: debugger.py and attach.py themselves, and the agent's report about them.

namespace remote::jobs {
namespace {

TEST(Debugger, WaitsForAttach) {
  SubprocessSpec spec;
  spec.argv = {"python3", "-B", test::source_folder + std::string("/tests/python/test_debugger.py")};
  const ExecResult result = run_subprocess(std::move(spec));
  EXPECT_TRUE(result.status.success()) << result.err;
}

class DebuggerStatus : public test::ScriptTest {
 protected:
  void record(const JobId& id, const std::string& name, const std::string& text) {
    fs::create_directories(folder(id) / "debug");
    std::ofstream(folder(id) / "debug" / name) << text << "\n";
  }
};

TEST_P(DebuggerStatus, TellsOfWhatWaits) {
  const JobId id = start_with_stacks(
      "exec /usr/bin/python3 -c 'def step():\n  breakpoint()\n  print(1)\nstep()'", {{"RANK", "3"}});
  until([&] { return !status(id).waits.empty(); }, "it waits");
  const std::vector<DebuggerWait> waits = status(id).waits;
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].id, "1." + std::to_string(*status(id).pid));
  EXPECT_EQ(waits[0].rank, 3);
  EXPECT_EQ(waits[0].file, "<string>");
  EXPECT_EQ(waits[0].line, 2);
  EXPECT_EQ(waits[0].error, "");
  kill(id);
  EXPECT_TRUE(status(id).waits.empty());
}

// Files written there by other programs do not break an answer.
TEST_P(DebuggerStatus, PassesOverWhatIsNoRecord) {
  const JobId id = start("exec sleep 1000");
  const std::string pid = std::to_string(*status(id).pid);
  const std::string start_time =
      file(id, "pid").substr(pid.size() + 1, file(id, "pid").find('\n') - pid.size() - 1);
  const std::string alive = pid + " " + start_time + " ";
  record(id, "1.1", alive + "- 88 ValueError a b\x1b[2J.py");
  record(id, "2.1", "1 1 - 88 - dead.py");
  record(id, "3.1", alive + "x 88 - rank.py");
  record(id, "4.1", alive + "- 99999999999999999999 - line.py");
  record(id, "5.1", alive + "- 8 a;b error.py");
  record(id, "6.1", "");
  record(id, "7.1", alive + "1:2 8 - colon.py");
  record(id, "8.x", alive + "- 8 - name.py");
  const std::vector<DebuggerWait> waits = status(id).waits;
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0], (DebuggerWait{"1.1", std::nullopt, "a b\\x1b[2J.py", 88, "ValueError"}));
  kill(id);
}

INSTANTIATE_TEST_SUITE_P(Shells, DebuggerStatus, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
