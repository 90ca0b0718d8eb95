#include <sys/stat.h>
#include <unistd.h>

#include "jobs/keep_program.hpp"
#include "jobs/stacks.hpp"
#include "servers/agent.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"

// Other users on a server, and other jobs, that try to pass as a job, or to be run by a query about it.

namespace remote::jobs {
namespace {

constexpr const char* python_that_waits = "import time; print(\"up\", flush=True); time.sleep(1000)";

class HostileJobs : public test::ScriptTest {
 protected:
  // A process with these variables, of the test's user or of the user nobody. Runs until it is destroyed.
  static Subprocess process(const std::vector<std::string>& variables, bool nobody = false,
                            const fs::path& python = "/usr/bin/python3") {
    std::vector<std::string> argv = {"env"};
    if (nobody) {
      argv = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"};
    }
    argv.insert(argv.end(), variables.begin(), variables.end());
    argv.insert(argv.end(), {python.string(), "-c", python_that_waits});
    return test::started(std::move(argv));
  }
  // A py-spy that leaves a mark when it runs; returns its folder.
  fs::path traitor() {
    const fs::path folder = servers.home("a") / "traitor";
    make_folders(folder);
    std::ofstream(folder / "py-spy") << "#!/bin/sh\necho run >>'" << (folder / "run").string()
                                     << "'\necho 'Thread 1 (idle): \"MainThread\"'\n";
    fs::permissions(folder / "py-spy", fs::perms::all);
    return folder;
  }
  bool was_run() { return fs::exists(servers.home("a") / "traitor/run"); }
};

std::string cookie(const JobId& id) {
  return "REMOTE_JOB_ID=" + id.text();
}

TEST_P(HostileJobs, ProcessesOfOtherUsersAreNobodys) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start(std::string("exec /usr/bin/python3 -c '") + python_that_waits + "'");
  until_out(id, "up");
  const Subprocess stranger = process({cookie(id), "PATH=" + traitor().string()}, true);
  // A process that became this user through a setuid program also belongs to another user.
  const TempFolder open;
  fs::permissions(open.path(), fs::perms(0755));
  fs::copy_file(fs::canonical("/usr/bin/python3"), open.path() / "su");
  fs::permissions(open.path() / "su", fs::perms(04755));
  const Subprocess raised = process({cookie(id)}, true, open.path() / "su");
  const auto stacks = ask_stacks(agent(), jobs_folder, {id});
  EXPECT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks.at(0).pid, status(id).pid);
  EXPECT_FALSE(was_run());
  const wire::StopResult reply = kill(id);
  EXPECT_EQ(reply.outcome, StopOutcome::killed);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_TRUE(test::lives(stranger.pid()));
  EXPECT_TRUE(test::lives(raised.pid()));
  EXPECT_EQ(status(id).phase, Phase::ended);
  EXPECT_EQ(clean(id).outcome, CleanOutcome::removed);
}

TEST_P(HostileJobs, NoProgramIsTakenFromAProcesssEnvironment) {
  const JobId id = start(std::string("exec /usr/bin/python3 -c '") + python_that_waits + "'",
                         {{"PATH", traitor().string() + ":/usr/bin:/bin"}});
  until_out(id, "up");
  auto stacks = ask_stacks(agent(), jobs_folder, {id});
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_TRUE(stacks[0].threads.empty());
  EXPECT_FALSE(was_run());
  // programs named in the project's configuration are trusted
  stacks = ask_stacks(agent(), jobs_folder, {id}, "PATH=~/traitor:$PATH; echo entered");
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].threads.size(), 1U);
  EXPECT_TRUE(was_run());
}

TEST_P(HostileJobs, OnlyTheWholeVariableIsTheCookie) {
  for (const bool old_grep : {false, true}) {
    SCOPED_TRACE(old_grep ? "a grep without -z" : "grep");
    if (old_grep) {
      servers.add_program("grep", "case $1 in *z*) exit 2 ;; esac\nexec /usr/bin/grep \"$@\"\n");
    }
    const JobId id = start("setsid sleep 1000 & echo up; exec sleep 1000");
    until_out(id, "up");
    const Subprocess before = process({"PREVIOUS_" + cookie(id)});
    const Subprocess within = process({"NOTE=see " + cookie(id)});
    const Subprocess lines = process({"NOTE=first\n" + cookie(id) + "\nlast"});
    const Subprocess longer = process({cookie(id) + "0"});
    const wire::StopResult reply = kill(id);
    EXPECT_EQ(reply.outcome, StopOutcome::killed);
    EXPECT_EQ(reply.signalled, 2);
    EXPECT_EQ(servers.processes().size(), 0U);
    for (const Subprocess* one : {&before, &within, &lines, &longer}) {
      EXPECT_TRUE(test::lives(one->pid()));
    }
    EXPECT_EQ(status(id).phase, Phase::ended);
  }
}

// The programs in .bin run for every job.
TEST_P(HostileJobs, ProgramsThatSomebodyElseMadeAreMadeAnewOrRefused) {
  const JobId first = start("true");
  wait_end(first);
  expect_nothing_left();
  const fs::path bin = place() / ".jobs/.bin";
  const fs::path script = bin / server_program().digest / "lib/job.sh";
  const std::string text = read_file(script);
  const fs::path mark = servers.home("a") / "mark";
  const std::string evil = "touch '" + mark.string() + "'\n";
  const auto expect_it_is_made_anew = [&](const char* what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(result_of(wait_end(start("exit 3"))), ExitStatus::exited(3));
    EXPECT_FALSE(fs::exists(mark));
    EXPECT_FALSE(fs::is_symlink(script));
    EXPECT_EQ(read_file(script), text);
    for (const fs::path& path : {bin, script}) {
      EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_write | fs::perms::others_write),
                fs::perms::none);
    }
  };
  const auto expect_refusal = [&](const std::string& reason) {
    const JobId id = JobId::random();
    try {
      start_all({{id, "true", "", {}}});
      ADD_FAILURE() << "it started a job";
    } catch (const servers::Refused& error) {
      EXPECT_NE(error.reason().find(reason), std::string::npos) << error.reason();
    }
    EXPECT_FALSE(fs::exists(folder(id)));
  };
  std::ofstream(script) << evil;
  expect_it_is_made_anew("another text");
  fs::permissions(script, fs::perms::others_write, fs::perm_options::add);
  expect_it_is_made_anew("a file that others may write to");
  fs::permissions(bin, fs::perms::group_write, fs::perm_options::add);
  expect_it_is_made_anew("a folder that others may write to");
  fs::rename(script, bin / "other");
  fs::create_symlink("other", script);
  expect_it_is_made_anew("a link");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(script.c_str(), 65534, 65534), 0);
    expect_it_is_made_anew("another user's file");
    ASSERT_EQ(::chown(bin.c_str(), 65534, 65534), 0);
    expect_refusal(bin.string() + " belongs to another user");
    ASSERT_EQ(::chown(bin.c_str(), ::geteuid(), ::getegid()), 0);
  }
  fs::rename(bin, servers.home("a") / "bin elsewhere");
  fs::create_symlink(servers.home("a") / "bin elsewhere", bin);
  expect_refusal(bin.string() + " is a symbolic link");
}

INSTANTIATE_TEST_SUITE_P(Shells, HostileJobs, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
