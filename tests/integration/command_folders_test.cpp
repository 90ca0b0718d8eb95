// A project's folder on a server records who filled it. Tests other folders and laptops with the same
// project, copies of a folder, and servers whose disk is empty again.

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::IsEmpty;

class CommandFolders : public ::testing::Test {
 protected:
  CommandFolders() {
    world.configure(config("system"));
    write_file_atomic(world.project() / "train.py", "1\n");
  }
  static std::string config(const std::string& manager) {
    return "name: proj\npython: {manager: " + manager +
           "}\nservers:\n"
           "  a: {hostname: a, internal_address: 127.0.0.1}\n"
           "  b: {hostname: b, internal_address: 127.0.0.1}\n";
  }
  // A second clone of the same project in another folder.
  fs::path second(const std::string& train) const {
    const fs::path folder = world.project().parent_path() / "second project";
    make_folders(folder / ".remote");
    fs::copy_file(world.project() / ".remote/configs.yaml", folder / ".remote/configs.yaml");
    write_file_atomic(folder / "train.py", train);
    return folder;
  }
  // The server's record of who sent the project last.
  std::string sender(const std::string& server) {
    return read_file_if_there(world.there(server) / ".remote-scripts/source.json").value_or("");
  }
  static auto names(const fs::path& folder) { return HasSubstr("\"" + folder.string() + "\""); }
  CommandResult launch(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"launch", "--nproc-per-node", "1", "--on-failure", "leave"});
    return world.run(more);
  }
  CommandWorld world;
};

TEST_F(CommandFolders, WhoFilledAServerIsSaid) {
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("the project there was sent")));
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("the project there was sent"))) << "its own";
  const fs::path other = second("of the second folder\n");
  const CommandResult sent = world.run_in(other, {"rsync", "--overwrite"});
  EXPECT_EQ(sent.code, 0) << sent;
  EXPECT_THAT(sent.err, AllOf(HasSubstr("the project there was sent from " + world.project().string() + ", "),
                              Not(HasSubstr("not started from here"))));
  EXPECT_THAT(launch({"--cmd", "true"}).err,
              AllOf(HasSubstr("warning: a, b have other code, sent from " + other.string() + ", "),
                    HasSubstr(" ago: train.py; `remote rsync --overwrite` replaces it")));
}

TEST_F(CommandFolders, ATransferThatChangesNothingThereLeavesTheSender) {
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  const fs::path other = second("of the second folder\n");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(other / "train.py", long_ago);
  const CommandResult refused = world.run_in(other, {"rsync"});
  EXPECT_EQ(refused.code, 0) << refused;
  EXPECT_THAT(refused.out + refused.err, HasSubstr("not changed, newer on the server:"));
  EXPECT_THAT(sender("a"), names(world.project()));
  EXPECT_THAT(sender("b"), names(world.project()));
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("the project there was sent")));
  // A folder there that cannot make way for a file.
  write_file_atomic(other / "z.py", "1\n");
  make_folders(world.there("a") / "z.py/full");
  fs::last_write_time(world.there("a") / "z.py", long_ago);
  EXPECT_EQ(world.run_in(other, {"rsync", "--server", "a"}).code, 1);
  EXPECT_THAT(sender("a"), names(world.project()));
  write_file_atomic(other / "b.py", "1\n");
  EXPECT_EQ(world.run_in(other, {"rsync", "--server", "a"}).code, 1);
  EXPECT_TRUE(fs::exists(world.there("a") / "b.py"));
  EXPECT_THAT(sender("a"), names(other)) << "a part of it has arrived";
}

TEST_F(CommandFolders, AMachineWithANewAddressIsTheSameOneOrNot) {
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  const auto forget_address = [&] {
    const fs::path record = world.project() / ".remote/sent/.state.a";
    write_file_atomic(record, "elsewhere" + read_file_if_there(record).value_or(""));
    fs::remove(world.project() / ".remote/sent/a");
  };
  forget_address();
  EXPECT_THAT(world.run({"rsync"}).err,
              HasSubstr("a: its address is new, and its disk is the same as before"));
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("its address is new")));
  forget_address();
  fs::remove_all(world.there("a"));
  EXPECT_THAT(world.run({"rsync"}).err,
              HasSubstr("a: its address, user or folder is new, and nothing was sent there from here"));
}

TEST_F(CommandFolders, AFileThatNamesTheSenderMayBeAnything) {
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  const fs::path file = world.there("a") / ".remote-scripts/source.json";
  ASSERT_TRUE(fs::exists(file));
  write_file_atomic(file, "[[[[");
  write_file_atomic(world.there("b") / ".remote-scripts/source.json",
                    "{\"folder_id\":\"0123456789abcdef0123456789abcdef\",\"user\":\"\\u001b[2J\","
                    "\"folder\":\"/x\",\"at\":-1}\n");
  const CommandResult again = world.run({"rsync"});
  EXPECT_EQ(again.code, 0) << again;
  EXPECT_THAT(again.err, Not(HasSubstr("the project there was sent")));
}

TEST_F(CommandFolders, JobsOfAnotherFolderAreCounted) {
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  const Job job = world.job("a", "exec sleep 1000");
  const fs::path other = second("1\n");
  const auto servers = world.run_in(other, {"servers", "--json"}).json();
  EXPECT_EQ(servers[0]["jobs"], 0);
  EXPECT_EQ(servers[0]["load"]["unrecorded_jobs"], 1);
  EXPECT_EQ(servers[1]["load"]["unrecorded_jobs"], 0);
  EXPECT_THAT(world.run_in(other, {"servers"}).out,
              HasSubstr(" 0 + 1 job of this project, not started from here"));
  const int commands = world.servers().commands();
  EXPECT_THAT(world.run_in(other, {"status"}).err,
              HasSubstr("nothing started here runs on 2 servers (jobs from elsewhere: remote servers)\n"));
  EXPECT_EQ(world.servers().commands(), commands) << "no server is asked";
  EXPECT_THAT(world.run_in(other, {"top", "--once"}).out,
              HasSubstr("1 job of this project, not started from here"));
  EXPECT_THAT(world.run_in(other, {"rsync"}).err,
              HasSubstr("1 job that was not started from here runs in its folder"));
  EXPECT_EQ(world.run({"servers", "--json"}).json()[0]["load"]["unrecorded_jobs"], 0);
  EXPECT_EQ(world.run({"job-kill", "--job", std::to_string(job.key)}).code, 0);
}

TEST_F(CommandFolders, ACopyDoesNotEndOrRemoveTheJobsOfItsOriginal) {
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  world.ended_job("a", "true");
  world.job("a", "exec sleep 1000");
  const fs::path copy = world.project().parent_path() / "copy";
  fs::copy(world.project(), copy, fs::copy_options::recursive);
  EXPECT_THAT(world.run_in(copy, {"job-list"}).out,
              AllOf(HasSubstr("started from another folder"), Not(HasSubstr("folder, started"))));
  EXPECT_THAT(world.run({"job-list"}).out, Not(HasSubstr("another folder")));
  const CommandResult all = world.run_in(copy, {"job-kill", "--yes"});
  EXPECT_EQ(all.code, 0) << all;
  EXPECT_THAT(all.err, HasSubstr("1 job that was started from another folder skipped"));
  EXPECT_THAT(world.run_in(copy, {"job-clean", "--yes"}).err,
              HasSubstr("1 job that was started from another folder skipped"));
  const CommandResult named = world.run_in(copy, {"job-kill", "--job", "2"});
  EXPECT_EQ(named.code, 2) << named;
  EXPECT_THAT(named.err, HasSubstr("add --yes"));
  EXPECT_EQ(world.run_in(copy, {"job-clean", "--job", "1"}).code, 2);
  EXPECT_THAT(world.run({"job-list", "--job", "2"}).out, HasSubstr("running"));
  // A folder stays the same when it is moved.
  const fs::path moved = world.project().parent_path() / "moved";
  fs::rename(world.project(), moved);
  EXPECT_THAT(world.run_in(moved, {"job-list"}).out, Not(HasSubstr("another folder")));
  fs::rename(moved, world.project());
  EXPECT_EQ(world.run_in(copy, {"job-kill", "--job", "2", "--yes"}).code, 0);
}

TEST_F(CommandFolders, ACopyRemovesNoFilesOfItsOriginalAndNamesItsJobs) {
  write_file_atomic(world.project() / "only_a.py", "1\n");
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  const Job job = world.job("a", "exec sleep 1000");
  const fs::path copy = world.project().parent_path() / "copy";
  fs::copy(world.project(), copy, fs::copy_options::recursive);
  fs::remove(copy / "only_a.py");
  const CommandResult compared = world.run_in(copy, {"rsync", "--delete", "--dry-run"});
  EXPECT_EQ(compared.code, 0) << compared;
  EXPECT_THAT(compared.out + compared.err, Not(HasSubstr("only_a.py")));
  write_file_atomic(copy / "train.py", "of the copy\n");
  for (const char* who : {"sent from the original", "sent from the copy"}) {
    const CommandResult sent = world.run_in(copy, {"rsync", "--delete"});
    EXPECT_EQ(sent.code, 0) << sent;
    EXPECT_THAT(sent.err, HasSubstr("a: 1 job that was not started from here runs in its folder")) << who;
  }
  EXPECT_TRUE(fs::exists(world.there("a") / "only_a.py"));
  const CommandResult own = world.run({"rsync"});
  EXPECT_THAT(own.err, AllOf(HasSubstr("the project there was sent from " + copy.string() + ", "),
                             Not(HasSubstr("not started from here"))));
  fs::remove(world.project() / "only_a.py");
  EXPECT_EQ(world.run({"rsync", "--delete"}).code, 0);
  EXPECT_FALSE(fs::exists(world.there("a") / "only_a.py"));
  EXPECT_EQ(world.run({"job-kill", "--job", std::to_string(job.key)}).code, 0);
}

TEST_F(CommandFolders, LinksToNothingAndEnvironmentsStayHere) {
  write_file_atomic(world.project() / "old.py", "1\n");
  make_folders(world.project() / "myenv/bin");
  write_file_atomic(world.project() / "myenv/pyvenv.cfg", "home = /usr/bin\n");
  fs::create_symlink("/usr/bin/python3", world.project() / "myenv/bin/python");
  make_folders(world.project() / "sub/conda/conda-meta");
  write_file_atomic(world.project() / "sub/conda/conda-meta/history", "");
  fs::create_symlink("ada@laptop.1:2", world.project() / ".#train.py");
  fs::create_symlink("/mnt/nas/none", world.project() / "data");
  fs::create_symlink("loop", world.project() / "loop");
  const CommandResult sent = world.run({"rsync"});
  EXPECT_EQ(sent.code, 0) << sent;
  EXPECT_THAT(sent.err,
              AllOf(HasSubstr("the link data is not sent: it points to /mnt/nas/none, which does not exist"),
                    HasSubstr("the link loop is not sent"), Not(HasSubstr(".#")),
                    HasSubstr("2 Python environments of this machine are not sent: "), HasSubstr("myenv"),
                    HasSubstr("sub/conda"), Not(HasSubstr("referent"))));
  EXPECT_EQ(sent.err.find("Python environments"), sent.err.rfind("Python environments")) << "said once";
  EXPECT_TRUE(fs::exists(world.there("a") / "old.py"));
  EXPECT_FALSE(fs::exists(world.there("a") / "myenv"));
  EXPECT_FALSE(fs::exists(world.there("a") / "sub/conda"));
  fs::remove(world.project() / "old.py");
  EXPECT_EQ(world.run({"rsync", "--delete"}).code, 0);
  EXPECT_FALSE(fs::exists(world.there("a") / "old.py"));
  EXPECT_THAT(launch({"--cmd", "true"}).err, HasSubstr("same on 2 servers"));
}

// As when a file sync service merges .remote/jobs of two laptops.
TEST_F(CommandFolders, MergedRecordsHaveOneKeyEach) {
  const fs::path other = second("1\n");
  EXPECT_EQ(launch({"--cmd", "echo one", "--name", "first", "--follow"}).code, 0);
  std::vector<std::string> words{"launch",   "--nproc-per-node", "1",      "--cmd",
                                 "echo two", "--name",           "second", "--follow"};
  EXPECT_EQ(world.run_in(other, words).code, 0);
  fs::copy(other / ".remote/jobs", world.project() / ".remote/jobs",
           fs::copy_options::recursive | fs::copy_options::skip_existing);
  const auto jobs = world.run({"--json", "job-list", "--stopped"}).json();
  ASSERT_EQ(jobs.size(), 4U);
  std::map<std::string, std::set<int>> keys;  // by command
  for (const auto& job : jobs) {
    keys[job["command"]].insert(job["key"].get<int>());
  }
  EXPECT_EQ(keys["echo one"], (std::set<int>{1, 2}));
  EXPECT_EQ(keys["echo two"], (std::set<int>{3, 4}));
  EXPECT_THAT(world.run({"history"}).out, AllOf(HasSubstr("1-2"), HasSubstr("3-4")));
  EXPECT_THAT(world.run({"show", "3"}).out, HasSubstr("echo two"));
  EXPECT_THAT(world.run({"show", "1"}).out, HasSubstr("echo one"));
  EXPECT_THAT(world.run({"rerun", "3", "--code", "now", "--yes", "--follow"}).out, HasSubstr("two\n"));
  EXPECT_THAT(world.run({"rerun", "1", "--code", "now", "--yes", "--follow"}).out, HasSubstr("one\n"));
}

TEST_F(CommandFolders, TheSameLaunchTwiceIsNamed) {
  EXPECT_THAT(launch({"--cmd", "exec sleep 1000"}).err, Not(HasSubstr("already")));
  EXPECT_THAT(launch({"--cmd", "exec sleep 1000", "--server", "b"}).err,
              HasSubstr("warning: launch 1 runs the same command on b already; to end it: remote job-kill "
                        "--launch 1\n"));
  EXPECT_THAT(launch({"--cmd", "exec sleep 1001"}).err, Not(HasSubstr("already")));
  EXPECT_EQ(world.run({"job-kill", "--yes"}).code, 0);
  EXPECT_THAT(launch({"--cmd", "exec sleep 1000"}).err, Not(HasSubstr("already")));
  EXPECT_EQ(world.run({"job-kill", "--yes"}).code, 0);
}

TEST_F(CommandFolders, TwoEqualLaunchesAtTheSameMomentAreNamed) {
  const std::vector<std::string> words = {"launch", "--nproc-per-node", "1", "--on-failure", "leave",
                                          "--cmd",  "exec sleep 1000"};
  for (int round = 1; round <= 3; ++round) {
    const auto one = world.start(words);
    const CommandResult other = world.run(words);
    const CommandResult first = one->wait();
    EXPECT_THAT(first.err + other.err, HasSubstr("runs the same command on a, b already"))
        << "round " << round << "\n"
        << first << other;
    EXPECT_EQ(world.run({"job-kill", "--yes"}).code, 0);
  }
}

TEST_F(CommandFolders, AServerWhoseDiskIsEmptyAgainStartsNothing) {
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  fs::remove_all(world.there("b"));
  const CommandResult refused = launch({"--cmd", "true"});
  EXPECT_EQ(refused.code, 1) << refused;
  EXPECT_THAT(
      refused.err,
      AllOf(HasSubstr("b: it cannot run there: the project was sent there from here, but its files are gone"),
            HasSubstr("remote prepare"), Not(HasSubstr("error: a:"))));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"job-run", "--server", "b", "--cmd", "true"},
                                             {"sweep", "--param", "x=1,2", "--cmd", "echo {x}"}}) {
    const CommandResult same = world.run(words);
    EXPECT_EQ(same.code, 1) << same;
    EXPECT_THAT(
        same.err,
        AllOf(
            HasSubstr("b: it cannot run there: the project was sent there from here, but its files are gone"),
            HasSubstr("remote prepare")));
  }
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  const std::string advice =
      "proj: nothing started here runs on 2 servers (jobs from elsewhere: remote servers)\n"
      "the project's files are gone from b; to send them again: remote prepare --server b\n";
  EXPECT_EQ(world.run({}).err, advice);
  EXPECT_THAT(launch({"--no-check", "--follow", "--cmd", "true"}).err, HasSubstr("its files are gone there"));
  EXPECT_THAT(world.run({"show"}).out,
              AllOf(ContainsRegex("\na [^\n]*  [0-9a-f]{12}"), ContainsRegex("\nb [^\n]*  gone")));
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  EXPECT_THAT(world.run({}).err, Not(HasSubstr("are gone from b")));
  EXPECT_EQ(launch({"--follow", "--cmd", "true"}).code, 0);
  EXPECT_THAT(world.run({"show"}).out, Not(HasSubstr("gone")));
}

// As when the environment is lost with its disk and the project has been sent again.
TEST_F(CommandFolders, AModuleThatRequirementsNameNeedsPrepareAlone) {
  write_file_atomic(world.project() / "requirements.txt", "--no-index\ndemo-lib==1.0  # ours\n");
  const auto hint_for = [&](const std::string& module) {
    return launch({"--no-check", "--follow", "--server", "a", "--cmd",
                   "echo \"ModuleNotFoundError: No module named '" + module + "'\" >&2; exit 1"})
        .err;
  };
  EXPECT_THAT(hint_for("demo_lib"),
              HasSubstr(" hint: requirements.txt names demo_lib, and Python there does not have it: `remote "
                        "prepare`, or `remote update-packages --force` if it is already done\n"));
  EXPECT_THAT(hint_for("other"), HasSubstr("add its package to requirements.txt"));
}

TEST_F(CommandFolders, PackagesOfAnEnvironmentThatIsGoneAreMissedBeforeTheStart) {
  world.configure(config("venv"));
  write_file_atomic(world.project() / "requirements.txt", "# none\n");
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  const CommandResult refused = launch({"--cmd", "python3 train.py"});
  EXPECT_EQ(refused.code, 1) << refused;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("a, b: it cannot run there: the project's Python environment, with its "
                              "packages, is not there"),
                    HasSubstr("remote prepare")));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"job-run", "--server", "a", "--", "python3", "train.py"}, {"update-packages"}}) {
    EXPECT_THAT(world.run(words).err,
                AllOf(HasSubstr("the project's Python environment, with its packages, is not there"),
                      HasSubstr("remote prepare")));
  }
  EXPECT_EQ(launch({"--cmd", "true"}).code, 0) << "it needs no Python";
  fs::remove(world.project() / "requirements.txt");
  EXPECT_EQ(launch({"--cmd", "python3 -c 1"}).code, 0) << "it has no packages";
}

TEST_F(CommandFolders, PackagesOlderThanTheFilesAreNamedByAllThatStarts) {
  world.configure(config("venv"));
  write_file_atomic(world.project() / "requirements.txt", "# none\n");
  EXPECT_EQ(world.run({"rsync"}).code, 0);
  for (const char* server : {"a", "b"}) {
    const fs::path environment = world.there(server) / ".venv";
    make_folders(environment / "bin");
    write_file_atomic(environment / "bin/python", "#!/bin/sh\n", 0700);
    write_file_atomic(environment / ".remote-setup", "made\n");
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"launch", "--nproc-per-node", "1", "--cmd", "true"},
                                             {"job-run", "--server", "a", "--cmd", "true"},
                                             {"sweep", "--param", "x=1", "--cmd", "echo {x}"}}) {
    const CommandResult warned = world.run(words);
    EXPECT_EQ(warned.code, 0) << warned;
    EXPECT_THAT(warned.err, HasSubstr("they are older than the project's files: remote prepare")) << words[0];
  }
  EXPECT_EQ(world.run({"job-wait", "--launch", "last"}).code, 0);
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--no-check", "--cmd", "true"}).err,
              Not(HasSubstr("they are older")));
}

}  // namespace
}  // namespace remote::test
