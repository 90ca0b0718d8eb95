#include "sandbox/processes.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/subprocess.hpp"
#include "support/waiting.hpp"

namespace remote::sandbox {
namespace {

Subprocess start(std::vector<std::string> argv, std::map<std::string, std::string> set_env = {}) {
  SubprocessSpec spec;
  spec.argv = std::move(argv);
  spec.set_env = std::move(set_env);
  Subprocess child(spec);
  // For a moment after execve(2) the kernel shows neither arguments nor environment.
  EXPECT_TRUE(test::eventually([&] {
    const auto process = find_process(child.pid());
    return process && !process->command.empty();
  }));
  return child;
}

TEST(Processes, FindsItselfAndNotTheDead) {
  const auto self = find_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->start, find_process(::getpid())->start);

  Subprocess child = start({"sleep", "300"});
  const auto found = find_process(child.pid());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->command, "sleep 300");
  EXPECT_EQ(found->parent, ::getpid());
  child.kill(SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(find_process(child.pid())) << "a zombie is dead";
  child.wait();
  EXPECT_FALSE(find_process(child.pid()));
}

#ifdef __linux__
TEST(Processes, MarkIsAWholeEntryOfTheEnvironment) {
  const Subprocess marked = start({"sleep", "300"}, {{"PROCESSES_TEST", "a b"}});
  const Subprocess longer = start({"sleep", "300"}, {{"PROCESSES_TEST", "a b c"}});
  std::vector<pid_t> found;
  for (const Process& process : list_processes("PROCESSES_TEST=a b")) {
    if (process.marked) {
      found.push_back(process.pid);
    }
  }
  EXPECT_THAT(found, ::testing::ElementsAre(marked.pid()));
}
#endif

TEST(Processes, ReadsWhatPsPrints) {
  const auto list = parse_ps(
      "    1     0 Ss   Fri Nov 20 09:00:01 2026 /sbin/launchd\n"
      "  412     1 S+   Sat Nov 21 10:25:39 2026 sshd: /usr/sbin/sshd -D  [listener]\n"
      "  413   412 Z    Sat Nov 21 10:25:40 2026 (sshd)\n"
      "error: something else\n");
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[1].pid, 412);
  EXPECT_EQ(list[1].parent, 1);
  EXPECT_EQ(list[1].start, "Sat Nov 21 10:25:39 2026");
  EXPECT_EQ(list[1].command, "sshd: /usr/sbin/sshd -D [listener]");
  EXPECT_FALSE(list[1].zombie);
  EXPECT_TRUE(list[2].zombie);
}

TEST(Processes, DescendantsHoldTheRootsAndWhatComesFromThem) {
  const auto process = [](pid_t pid, pid_t parent) {
    Process result;
    result.pid = pid;
    result.parent = parent;
    return result;
  };
  const std::vector<Process> all = {process(9, 7), process(5, 1), process(7, 5), process(6, 1)};
  std::vector<pid_t> pids;
  for (const Process& found : with_descendants(all, {5})) {
    pids.push_back(found.pid);
  }
  EXPECT_THAT(pids, ::testing::UnorderedElementsAre(5, 7, 9));
}

TEST(Processes, EndsStoppedAndStubbornOnes) {
  Subprocess stopped = start({"sleep", "300"});
  Subprocess stubborn = start({"sh", "-c", "trap '' TERM; while :; do sleep 300; done"});
  // Only output after the trap shows that the trap is set.
  ASSERT_TRUE(
      test::eventually([&] { return with_descendants(list_processes(), {stubborn.pid()}).size() == 2; }));
  stopped.kill(SIGSTOP);
  const std::vector<pid_t> roots = {stopped.pid(), stubborn.pid()};
  end_processes(
      [&] {
        auto found = with_descendants(list_processes(), roots);
        std::erase_if(found, [](const Process& process) { return process.zombie; });
        return found;
      },
      std::chrono::milliseconds(200));
  EXPECT_EQ(stopped.wait(), ExitStatus::signalled(SIGTERM));
  EXPECT_EQ(stubborn.wait(), ExitStatus::signalled(SIGKILL));
}

}  // namespace
}  // namespace remote::sandbox
