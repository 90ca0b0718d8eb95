// `remote job-pull` and `remote job-rsync`.

#include <csignal>

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandJobPull : public ::testing::Test {
 protected:
  CommandJobPull() {
    std::vector<Job> job = {old_record("wrote files")};
    world.store().add(job);
    make_folders(world.there("a") / "out/a b");
    write_file_atomic(world.there("a") / "out/a b/x [1].pt", "one\n");
    fs::create_symlink("a b/x [1].pt", world.there("a") / "out/latest");
    write_file_atomic(world.there("a") / "odd *.txt", "two\n");
  }
  CommandResult pull(std::vector<std::string> words) {
    words.insert(words.begin(), {"job-pull", "--to", to.string()});
    return world.run(words);
  }
  std::string here(const std::string& name) { return read_file_if_there(to / name).value_or("(none)"); }
  CommandWorld world;
  fs::path to = world.home() / "pulled here";
};

TEST_F(CommandJobPull, BringsFilesAndFoldersByTheirNames) {
  EXPECT_THAT(pull({"--job", "1", "out", "odd *.txt"}),
              Ends(0, "", "3 files (20 bytes) from a in " + to.string() + "\n"));
  EXPECT_EQ(here("out/a b/x [1].pt"), "one\n");
  EXPECT_EQ(here("odd *.txt"), "two\n");
  EXPECT_TRUE(fs::is_symlink(to / "out/latest"));
  EXPECT_THAT(pull({"--job", "1", "out", "odd *.txt"}), Ends(0, "", "already up to date\n"));
}

TEST_F(CommandJobPull, WhatALinkLeadsToComesAndSoDoesAFoldersContent) {
  EXPECT_EQ(pull({"--job", "1", "out/latest", "out/a b/"}).code, 0);
  EXPECT_FALSE(fs::is_symlink(to / "latest"));
  EXPECT_EQ(here("latest"), "one\n");
  EXPECT_EQ(here("x [1].pt"), "one\n");
}

TEST_F(CommandJobPull, JsonNamesTheFiles) {
  const CommandResult result = pull({"--job", "1", "odd *.txt", "--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  const auto value = result.json();
  EXPECT_EQ(value["job"], 1);
  EXPECT_EQ(value["server"], "a");
  EXPECT_EQ(value["to"], to.string());
  EXPECT_EQ(value["files"], nlohmann::json({"odd *.txt"}));
  EXPECT_EQ(value["newer_here"], nlohmann::json::array());
  EXPECT_EQ(value["bytes"], 4);
}

TEST_F(CommandJobPull, WhatIsNewerHereStaysUnlessForced) {
  ASSERT_EQ(pull({"--job", "1", "odd *.txt"}).code, 0);
  write_file_atomic(to / "odd *.txt", "mine\n");
  fs::last_write_time(to / "odd *.txt", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_THAT(pull({"--job", "1", "odd *.txt"}),
              Ends(1, "",
                   "warning: odd *.txt: not changed, it is newer here (--force replaces it)\nnothing was "
                   "copied\n"));
  EXPECT_EQ(here("odd *.txt"), "mine\n");
  EXPECT_EQ(pull({"--job", "1", "odd *.txt", "--force"}).code, 0);
  EXPECT_EQ(here("odd *.txt"), "two\n");
}

TEST_F(CommandJobPull, AMissingPathIsNamedAndNothingIsMade) {
  EXPECT_THAT(pull({"--job", "1", "out", "nowhere"}),
              Ends(1, "",
                   "error: a: cannot copy 'nowhere': there is no such file or folder on the server\n hint: "
                   "paths are relative to ~/proj\n"));
  EXPECT_FALSE(fs::exists(to));
}

TEST_F(CommandJobPull, WrongUsageIsRefused) {
  EXPECT_THAT(pull({"out"}), Refused("job-pull: no path is given\n hint: remote job-pull KEY PATH…"));
  EXPECT_THAT(pull({"--job", "1"}), Refused("remote job-pull: words is required"));
  EXPECT_THAT(pull({"out", "odd *.txt"}), Refused("no job 'out': a job is named by its key"));
  EXPECT_THAT(pull({"--job", "7", "out"}), Refused("no job '7'"));
  EXPECT_THAT(pull({"--job", "1", ""}), Refused("a path is empty"));
  EXPECT_THAT(pull({"--job", "1", "x/out", "y/out"}),
              Refused("two of the paths would both become 'out' here"));
  EXPECT_FALSE(fs::exists(to));
}

TEST_F(CommandJobPull, AServerThatIsNotReachedIsAnError) {
  world.cut_off({"a"});
  EXPECT_THAT(pull({"--job", "1", "out"}), Ends(1, "", StartsWith("error: a: ")));
}

TEST_F(CommandJobPull, AnInterruptIs130AndTheHintSaysHowToGoOn) {
  world.servers().add_program("rsync", "touch ~/began\nexec sleep 1000\n");
  const auto running = world.start({"job-pull", "--job", "1", "out", "--to", to.string()});
  until([&] { return fs::exists(world.servers().home("a") / "began"); }, "the transfer's beginning");
  running->interrupt();
  EXPECT_THAT(running->wait(),
              Ends(130, "", "interrupted: the same command again continues where this one stopped\n"));
}

TEST_F(CommandJobPull, TheKeyMayStandBeforeThePaths) {
  EXPECT_EQ(pull({"1", "out", "odd *.txt"}).code, 0);
  EXPECT_EQ(here("out/a b/x [1].pt"), "one\n");
  EXPECT_EQ(here("odd *.txt"), "two\n");
}

TEST_F(CommandJobPull, PatternsStandForWhatFitsThem) {
  for (const char* name : {"out/b1.pt", "out/b2.pt", "out/.hidden.pt", "out/b\n3.pt"}) {
    write_file_atomic(world.there("a") / name, name);
  }
  EXPECT_THAT(pull({"1", "out/*.pt"}), Ends(0, "", HasSubstr("2 files")));
  EXPECT_EQ(here("b1.pt") + here("b2.pt"), "out/b1.ptout/b2.pt");
  EXPECT_EQ(pull({"1", "~/proj/out/a*/x ?1[]].pt"}).code, 0) << "a blank, a '?' and a class";
  EXPECT_EQ(here("x [1].pt"), "one\n");
  // If a file has exactly this name, it is not a pattern.
  write_file_atomic(world.there("a") / "odd 1.txt", "no\n");
  EXPECT_EQ(pull({"1", "odd *.txt"}).code, 0);
  EXPECT_EQ(here("odd *.txt"), "two\n");
  EXPECT_EQ(here("odd 1.txt"), "(none)");
  EXPECT_THAT(pull({"1", "out/*.zip"}),
              Ends(1, "", HasSubstr("cannot copy 'out/*.zip': there is no such file")));
}

TEST_F(CommandJobPull, ATagNamesTheNewest) {
  std::vector<Job> more = {old_record("older"), old_record("newer")};
  more[0].tags = more[1].tags = {"x"};
  more[1].server = "b";
  more[1].created_at += std::chrono::seconds(1);
  world.store().add(more);
  write_file_atomic(world.there("b") / "result", "newer\n");
  EXPECT_THAT(pull({"--tag", "x", "result"}), Ends(0, "", HasSubstr(" from b in ")));
  EXPECT_EQ(here("result"), "newer\n");
  EXPECT_THAT(pull({"--tag", "nobody's", "result"}), Refused("no job has the tag"));
  EXPECT_THAT(pull({"--job", "2", "--job", "3", "result"}), Refused("several jobs are named"));
}

TEST(CommandJobRsync, ADelayOfNothingIsOnce) {
  CommandWorld world;
  world.ended_job("a", "echo one");
  EXPECT_THAT(
      world.run({"job-rsync", "--delay", "0"}),
      Ends(0, "",
           "--delay 0 has no effect: the output is copied once\nthe output of 1 job is in .remote/jobs\n"));
}

TEST(CommandJobRsync, WithoutJobsSaysSo) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-rsync"}), Ends(0, "", "no jobs\n"));
  EXPECT_THAT(world.run({"--quiet", "job-rsync"}), Ends(0, "", ""));
}

TEST(CommandJobRsync, BringsTheOutputOfTheServersThatAreNamed) {
  CommandWorld world;
  const auto first = world.ended_job("a", "echo one; echo err >&2");
  const auto second = world.ended_job("b", "echo two");
  EXPECT_THAT(world.run({"job-rsync", "--server", "a"}),
              Ends(0, "", "the output of 1 job is in .remote/jobs\n"));
  EXPECT_EQ(read_file(world.brought(first, "job.out")), "one\n");
  EXPECT_EQ(read_file(world.brought(first, "job.err")), "err\n");
  EXPECT_FALSE(fs::exists(world.brought(second, "job.out")));
  EXPECT_THAT(world.run({"job-rsync"}), Ends(0, "", "the output of 2 jobs is in .remote/jobs\n"));
  EXPECT_EQ(read_file(world.brought(second, "job.out")), "two\n");
}

TEST(CommandJobRsync, WhatItTakesForCompleteIsThereAndOfAJobThatHasEnded) {
  CommandWorld world;
  const auto ended = world.ended_job("a", "echo out");
  const auto lost = world.job("a", "echo begun; exec sleep 1000");
  const fs::path folder = world.there("a") / ".jobs" / lost.id.text();
  until([&] { return read_file_if_there(folder / "job.out") == "begun\n"; }, "its output");
  const fs::path elsewhere = world.there("a") / "elsewhere";
  fs::rename(folder, elsewhere);
  for (const int pid : world.servers().processes()) {
    ::kill(pid, SIGKILL);
  }
  until([&] { return world.servers().processes().empty(); }, "its end");
  EXPECT_THAT(world.run({"job-rsync"}).code, 0);
  EXPECT_EQ(world.stored(lost.key).state, JobState::lost);
  EXPECT_TRUE(fs::exists(world.brought(ended, "complete")));
  EXPECT_FALSE(fs::exists(world.brought(lost, "complete")));
  fs::rename(elsewhere, folder);
  EXPECT_THAT(world.run({"job-rsync"}).code, 0);
  EXPECT_EQ(read_file(world.brought(lost, "job.out")), "begun\n");
}

TEST(CommandJobRsync, AJobThatIsCleanedMeanwhileLeavesNothingHere) {
  CommandWorld world;
  const auto kept = world.ended_job("a", "echo kept");
  const auto cleaned = world.ended_job("a", "echo cleaned");
  const fs::path folder = world.brought(cleaned, "job.out").parent_path();
  world.servers().add_program("rsync", "rm -rf '" + folder.string() + "'\nexec /usr/bin/rsync \"$@\"\n");
  EXPECT_THAT(world.run({"job-rsync"}).code, 0);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(world.brought(kept, "complete")));
}

TEST(CommandJobRsync, AServerThatIsNotReachedFailsAlone) {
  CommandWorld world;
  const auto first = world.job("a", "echo one; sleep 1000");
  world.job("b", "sleep 1000");
  until(
      [&] { return read_file_if_there(world.there("a") / ".jobs" / first.id.text() / "job.out") == "one\n"; },
      "the job's output");
  world.cut_off({"b"});
  EXPECT_THAT(world.run({"job-rsync"}),
              Ends(1, "", AllOf(HasSubstr("error: b: "), Not(HasSubstr("is in .remote")))));
  EXPECT_EQ(read_file(world.brought(first, "job.out")), "one\n");
}

TEST(CommandJobRsync, WithADelayItGoesOnUntilItIsInterrupted) {
  CommandWorld world;
  const auto job = world.job("a", "echo one; until test -e go; do sleep 0.2; done; echo two; sleep 1000");
  const auto running = world.start({"job-rsync", "--delay", "1"});
  const auto out = [&] { return read_file_if_there(world.brought(job, "job.out")).value_or(""); };
  until([&] { return out() == "one\n"; }, "the output");
  write_file_atomic(world.there("a") / "go", "");
  until([&] { return out() == "one\ntwo\n"; }, "the rest of the output");
  running->interrupt();
  EXPECT_EQ(running->wait().code, 130);
}

TEST(CommandJobRsync, AWrongDelayIsRefused) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-rsync", "--delay", "-1"}), Refused("--delay"));
  EXPECT_THAT(world.run({"job-rsync", "--delay", "now"}), Refused("--delay"));
}

}  // namespace
}  // namespace remote::test
