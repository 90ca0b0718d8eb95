// `remote uninstall`.

#include <fstream>

#include <unistd.h>

#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandUninstall : public ::testing::Test {
 protected:
  CommandResult uninstall(std::vector<std::string> words, const Terminals& terminals = {}) {
    words.insert(words.begin(), "uninstall");
    return world.run(words, terminals);
  }
  bool is_installed(const std::string& server) {
    return fs::exists(world.servers().home(server) / ".cache/remote");
  }
  CommandWorld world;
};

TEST_F(CommandUninstall, NeedsAYesWhereNobodyCanBeAsked) {
  EXPECT_THAT(uninstall({}), Refused("uninstall: that would remove what remote has installed on 2 servers\n "
                                     "hint: add --yes\n"));
  EXPECT_TRUE(is_installed("a"));
}

TEST_F(CommandUninstall, ADryRunListsAndRemovesNothing) {
  const Job job = world.ended_job("a", "echo out");
  const CommandResult result = uninstall({"--dry-run", "--server", "a"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("a: " + (world.there("a") / ".jobs/.bin").string() + "\n"));
  EXPECT_THAT(uninstall({"-n", "--json"}).json()[0]["found"].size(), ::testing::Ge(2U));
  EXPECT_TRUE(is_installed("a"));
}

TEST_F(CommandUninstall, RemovesAndSaysWhatItKeeps) {
  const Job job = world.ended_job("a", "echo out");
  // Another test's installation, in a folder that all users share, may be reported for a minute.
  CommandResult result;
  until(
      [&] {
        result = uninstall({"--yes"});
        return result.code == 0 && result.out.find("; nothing of remote is left\n") != std::string::npos;
      },
      "nothing is left");
  EXPECT_THAT(result.out, AllOf(HasSubstr("; nothing of remote is left\n"), HasSubstr("\nb: ")));
  EXPECT_THAT(result.err,
              HasSubstr("kept: the project's files, its Python environment, and the folders of its jobs"));
  EXPECT_FALSE(is_installed("a") || is_installed("b") || fs::exists(world.there("a") / ".jobs/.bin"));
  EXPECT_TRUE(fs::exists(world.there("a") / ".jobs" / job.id.text() / "job.out"));
  world.ended_job("a", "true");
}

TEST_F(CommandUninstall, DoesNotSayThatNothingIsLeftBesideWhatItKeeps) {
  const std::string lease = ".remote-lease." + std::to_string(::geteuid()) + ".0123456789abcdef";
  std::ofstream(world.servers().home("a") / lease) << "";
  world.servers().set_variable("XDG_RUNTIME_DIR", world.servers().home("a"));
  const CommandResult result = uninstall({"--yes", "--server", "a"});
  EXPECT_THAT(result.err, HasSubstr(lease + ": a lease that is in use or ended less than a minute ago"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("removed\n"), Not(HasSubstr("nothing of remote is left"))));
}

TEST_F(CommandUninstall, AsksOnATerminal) {
  EXPECT_THAT(uninstall({"--color", "never", "--server", "a"}, screen("n\n")),
              Ends(1, "",
                   AllOf(HasSubstr("  a: " + (world.servers().home("a") / ".cache/remote").string()),
                         HasSubstr("Remove what remote has installed on 1 server? [y/N] error: nothing was "
                                   "removed: not confirmed\n"))));
  EXPECT_TRUE(is_installed("a"));
  uninstall({"--server", "a"}, screen("y\n"));
  EXPECT_FALSE(is_installed("a"));
}

TEST_F(CommandUninstall, RefusesWhileAJobRunsAndRemovesFromTheOthers) {
  const Job job = world.job("a", "sleep 1000");
  const CommandResult result = uninstall({"--yes"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("error: a: cannot uninstall: a job of yours runs there: " +
                                          job.id.text().substr(0, 8) + " (pid "),
                                HasSubstr("hint: stop it with `remote job-kill` in its project, or wait\n")));
  EXPECT_TRUE(is_installed("a"));
  EXPECT_FALSE(is_installed("b"));
  const CommandResult json = uninstall({"--yes", "--json", "--server", "a"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.json()[0]["ok"], false);
  EXPECT_EQ(json.json()[0]["running"][0]["id"], job.id.text());
}

TEST_F(CommandUninstall, AServerThatIsNotReachedFailsAlone) {
  world.cut_off({"b"});
  const CommandResult result = uninstall({"--yes"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("error: b: "), ::testing::EndsWith("`remote job-clean` removes these)\n")));
  EXPECT_FALSE(is_installed("a"));
}

}  // namespace
}  // namespace remote::test
