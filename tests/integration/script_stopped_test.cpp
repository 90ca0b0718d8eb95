#include <csignal>
#include <fstream>

#include "base/subprocess.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"

namespace remote::jobs {
namespace {

class JobStopped : public test::ScriptTest {};

// A stopped lifeline (SIGSTOP) cannot notice that its ranks have ended.
TEST_P(JobStopped, ALifelineIsWokenByAKill) {
  const JobId id = start("exec sleep 1000");
  SubprocessSpec spec;
  spec.argv = {"sleep", "1000"};  // replaces it
  const Subprocess lifeline(spec);
  const auto field = [&](std::size_t at) {
    return split(test::read_proc(lifeline.pid(), "stat"), ' ').at(at);
  };
  ASSERT_EQ(::kill(lifeline.pid(), SIGSTOP), 0);
  until([&] { return field(2) == "T"; }, "it is stopped");
  std::ofstream(folder(id) / "lifeline.pid") << lifeline.pid() << " " << field(21) << " boot\n";
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
  until([&] { return field(2) == "S"; }, "it goes on");
  // the remaining files of the job are removed by one call, with those of other jobs in the same clean
  EXPECT_EQ(clean(id).outcome, CleanOutcome::removed);
  EXPECT_FALSE(fs::exists(folder(id)));
}

INSTANTIATE_TEST_SUITE_P(Shells, JobStopped, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
