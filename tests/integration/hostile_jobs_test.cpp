#include <sys/stat.h>
#include <unistd.h>

#include "jobs/stacks.hpp"
#include "server/program.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"

// Others on a server, and other jobs, that want to be taken for a job, or to be run by one who asks about it.

namespace remote::jobs {
namespace {

constexpr const char* python_that_waits = "import time; print(\"up\", flush=True); time.sleep(1000)";

class HostileJobs : public test::ScriptTest {
 protected:
  // A process of the test's user, or of the user nobody, with these variables, until it is destroyed.
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
  // A py-spy that tells that it was run; its folder.
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
  // One whom a setuid program has made this user is another user, too.
  const TempFolder open;
  fs::permissions(open.path(), fs::perms(0755));
  fs::copy_file(fs::canonical("/usr/bin/python3"), open.path() / "su");
  fs::permissions(open.path() / "su", fs::perms(04755));
  const Subprocess raised = process({cookie(id)}, true, open.path() / "su");
  const auto dumps = run(stacks_action(jobs_folder, {id})).dumps;
  EXPECT_EQ(dumps.size(), 1U);
  EXPECT_EQ(dumps.at(0).pid, status(id).pid);
  EXPECT_FALSE(was_run());
  const KillReply reply = kill(id);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_TRUE(test::lives(stranger.pid()));
  EXPECT_TRUE(test::lives(raised.pid()));
  EXPECT_EQ(status(id).phase, Phase::ended);
  EXPECT_EQ(run(clean_action(jobs_folder, {id})).jobs.at(0).outcome, CleanReply::Outcome::removed);
}

TEST_P(HostileJobs, NoProgramIsTakenFromAProcesssEnvironment) {
  const JobId id = start(std::string("exec /usr/bin/python3 -c '") + python_that_waits + "'",
                         {{"PATH", traitor().string() + ":/usr/bin:/bin"}});
  until_out(id, "up");
  auto dumps = run(stacks_action(jobs_folder, {id})).dumps;
  ASSERT_EQ(dumps.size(), 1U);
  EXPECT_EQ(dumps[0].method, ProcessDump::Method::kernel);
  EXPECT_FALSE(was_run());
  // what the project's configuration names is the project's own
  dumps = run(stacks_action(jobs_folder, {id}, "PATH=~/traitor:$PATH; echo entered")).dumps;
  ASSERT_EQ(dumps.size(), 1U);
  EXPECT_EQ(dumps[0].method, ProcessDump::Method::py_spy);
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
    const KillReply reply = kill(id);
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
    EXPECT_EQ(reply.signalled, 2);
    EXPECT_EQ(servers.processes().size(), 0U);
    for (const Subprocess* one : {&before, &within, &lines, &longer}) {
      EXPECT_TRUE(test::lives(one->pid()));
    }
    EXPECT_EQ(status(id).phase, Phase::ended);
  }
}

// What stands in .bin is run for every job.
TEST_P(HostileJobs, ProgramsThatSomebodyElseMadeAreMadeAnewOrRefused) {
  const JobId first = start("true");
  wait_end(first);
  expect_nothing_left();
  const fs::path bin = place() / ".jobs/.bin";
  const fs::path supervisor = bin / server::program_digest() / "lib/supervisor.sh";
  const std::string text = read_file(supervisor);
  const fs::path mark = servers.home("a") / "mark";
  const std::string evil = "touch '" + mark.string() + "'\n";
  const auto expect_it_is_made_anew = [&](const char* what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(wait_end(start("exit 3")).result(), ExitStatus::exited(3));
    EXPECT_FALSE(fs::exists(mark));
    EXPECT_FALSE(fs::is_symlink(supervisor));
    EXPECT_EQ(read_file(supervisor), text);
    for (const fs::path& path : {bin, supervisor}) {
      EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_write | fs::perms::others_write),
                fs::perms::none);
    }
  };
  std::ofstream(supervisor) << evil;
  expect_it_is_made_anew("another text");
  fs::permissions(supervisor, fs::perms::others_write, fs::perm_options::add);
  expect_it_is_made_anew("a file that others may write to");
  fs::permissions(bin, fs::perms::group_write, fs::perm_options::add);
  expect_it_is_made_anew("a folder that others may write to");
  fs::rename(supervisor, bin / "other");
  fs::create_symlink("other", supervisor);
  expect_it_is_made_anew("a link");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(supervisor.c_str(), 65534, 65534), 0);
    expect_it_is_made_anew("another user's file");
    ASSERT_EQ(::chown(bin.c_str(), 65534, 65534), 0);
    EXPECT_THROW(start_all({{JobId::random(), "true", "", {}}}), Error);
    ASSERT_EQ(::chown(bin.c_str(), ::geteuid(), ::getegid()), 0);
  }
  fs::rename(bin, servers.home("a") / "bin elsewhere");
  fs::create_symlink(servers.home("a") / "bin elsewhere", bin);
  EXPECT_THROW(start_all({{JobId::random(), "true", "", {}}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Shells, HostileJobs, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
