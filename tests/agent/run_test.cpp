#include "agent/host/run.hpp"

#include <csignal>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/waiting.hpp"

namespace remote::agent {
namespace {

TEST(Run, ReturnsWhatAShellWouldSay) {
  const Host host = Host::of_this_process();
  EXPECT_EQ(run(host, {.argv = {"sh", "-c", "echo a; echo b >&2; exit 3"}}).out, "a\n");
  EXPECT_EQ(run(host, {.argv = {"sh", "-c", "echo a; echo b >&2"}, .with_stderr = true}).out, "a\nb\n");
  EXPECT_EQ(run(host, {.argv = {"sh", "-c", "exit 3"}}).code, 3);
  EXPECT_EQ(run(host, {.argv = {"sh", "-c", "kill -9 $$"}}).code, 137);
  EXPECT_EQ(run(host, {.argv = {"no-such-program"}}).code, 127);
}

TEST(Run, RunsInTheFolder) {
  const Host host = Host::of_this_process();
  EXPECT_EQ(run(host, {.argv = {"sh", "-c", "pwd"}, .folder = "/usr"}).out, "/usr\n");
  const RunResult result = run(host, {.argv = {"sh", "-c", "echo a"}, .folder = "/no/such/folder"});
  EXPECT_EQ(result.code, 127);
  EXPECT_EQ(result.out, "");
}

TEST(Run, KillsWhatTakesTooLong) {
  const Host host = Host::of_this_process();
  const RunResult result =
      run(host, {.argv = {"sh", "-c", "echo a; sleep 100; echo b"}, .limit = std::chrono::milliseconds(50)});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.out, "a\n");
}

TEST(Run, DoesNotWaitForABackgroundProcess) {
  const Host host = Host::of_this_process();
  const RunResult result = run(host, {.argv = {"sh", "-c", "sleep 3 & echo $!"}});
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(::kill(std::stoi(result.out), SIGKILL), 0) << "it runs on";
}

TEST(Run, KillsTheBackgroundProcessesOfItsGroupIfAsked) {
  const Host host = Host::of_this_process();
  const RunResult result =
      run(host, {.argv = {"sh", "-c", "sleep 1000 >/dev/null & echo $!; exit 3"}, .ends_group = true});
  EXPECT_EQ(result.code, 3);
  const int pid = std::stoi(result.out);
  EXPECT_TRUE(test::eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST(Run, PassesOnBothOutputsAsTheyCome) {
  std::string out;
  std::string errors;
  RunRequest request{
      .argv = {"sh", "-c", "echo a; exec >&-; head -c 300000 /dev/zero >&2; exec 2>&-; sleep 0.2; exit 3"}};
  request.on_output = [&](std::string_view text) { out += text; };
  request.on_errors = [&](std::string_view text) { errors += text; };
  const RunResult result = run(Host::of_this_process(), request);
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(out, "a\n");
  EXPECT_EQ(errors, std::string(300'000, '\0'));
}

TEST(Run, DoesNotWaitForAChildThatKeepsStderr) {
  std::string errors;
  RunRequest request{.argv = {"sh", "-c", "sleep 1000 & echo $! >&2"}, .ends_group = true};
  request.on_errors = [&](std::string_view text) { errors += text; };
  EXPECT_EQ(run(Host::of_this_process(), request).code, 0);
  EXPECT_NE(errors, "");
}

TEST(Run, GivesTheProgramItsInput) {
  const Host host = Host::of_this_process();
  const int file = ::open("/proc/sys/kernel/ostype", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(run(host, {.argv = {"cat"}, .input = file}).out, "Linux\n");
  ::close(file);
  EXPECT_EQ(run(host, {.argv = {"cat"}}).out, "");
}

}  // namespace
}  // namespace remote::agent
