// `remote servers`, also with --verbose, which contacts no server.

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

const char* const two_servers =
    "name: proj\n"
    "servers:\n"
    "  first:\n"
    "    hostname: 192.0.2.1\n"
    "    password: hunter2\n"
    "  second:\n"
    "    hostname: 192.0.2.2\n"
    "    username: ada\n"
    "    gpus: 4\n";

class CommandServers : public ::testing::Test {
 protected:
  CommandServers() { world.configure(two_servers); }
  CommandWorld world;
};

TEST_F(CommandServers, EachLineInAPipeNamesItsServer) {
  const CommandResult result = world.run({"-v", "servers"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  std::vector<std::string> lines = result.lines();
  EXPECT_THAT(lines.front(), MatchesRegex("SERVER +SETTING +VALUE +FROM"));
  lines.erase(lines.begin());
  EXPECT_THAT(lines, Each(::testing::AnyOf(StartsWith("first "), StartsWith("second "))));
  EXPECT_THAT(lines, Contains(MatchesRegex("first +host +192\\.0\\.2\\.1 +configs\\.yaml:4")));
  EXPECT_THAT(lines, Contains(MatchesRegex("first +password +\\*+ +configs\\.yaml:5")));
  EXPECT_THAT(lines, Contains(MatchesRegex("second +user +ada +configs\\.yaml:8")));
  EXPECT_THAT(lines, Contains(MatchesRegex("second +gpus +4 +configs\\.yaml:9")));
  EXPECT_THAT(result.out, Not(HasSubstr("hunter2")));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(CommandServers, OnATerminalAServerIsNamedOnce) {
  const CommandResult result = world.run({"-v", "servers"}, screen());
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("\033[36mfirst\033[0m"));
  EXPECT_EQ(result.out.find("first", result.out.find("first") + 1), std::string::npos);
}

TEST_F(CommandServers, JsonHasEverySettingWithItsPlace) {
  const CommandResult result = world.run({"-v", "servers", "--server", "sec*", "--json"});
  EXPECT_EQ(result.code, 0);
  const auto all = result.json();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["server"], "second");
  EXPECT_EQ(all[0]["error"], nullptr);
  EXPECT_EQ(all[0]["cause"], nullptr);
  EXPECT_THAT(all[0]["settings"],
              Contains(nlohmann::json::parse(
                  R"({"name": "user", "value": "ada", "from": "configs.yaml:8", "problem": null})")));
}

TEST_F(CommandServers, AnOptionOfTheUsersSshConfigIsShownWithItsLine) {
  make_folders(world.home() / ".ssh");
  write_file_atomic(world.home() / ".ssh/config", "Host 192.0.2.1\n  Port 2022\n");
  EXPECT_THAT(world.run({"-v", "servers", "--server", "first"}).lines(),
              Contains(MatchesRegex("first +port +2022 +~/\\.ssh/config:2")));
}

TEST_F(CommandServers, OneThatCannotBeResolvedDoesNotHideTheOther) {
  make_folders(world.home() / ".ssh");
  write_file_atomic(world.home() / ".ssh/config", "Host 192.0.2.1\n  ProxyJump 192.0.2.1\n");
  EXPECT_THAT(world.run({"-v", "servers"}), Ends(2, HasSubstr("second "), StartsWith("error: first: ")));
  const CommandResult json = world.run({"-v", "servers", "--json"});
  EXPECT_EQ(json.code, 2);
  EXPECT_THAT(json.json()[0]["error"].get<std::string>(), HasSubstr("circle"));
  EXPECT_EQ(json.json()[0]["cause"], "usage");
  EXPECT_EQ(json.json()[1]["error"], nullptr);
}

TEST_F(CommandServers, AKeyThatIsMissingIsSaid) {
  world.configure("name: proj\nservers:\n  a: {hostname: a, private_key: .remote/none}\n");
  EXPECT_THAT(world.run({"-v", "servers"}).out, HasSubstr("no such file: " + world.project().string()));
}

TEST(CommandServersNow, ATableOfWhatIsReachedItsGpusAndJobs) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n"
      "  b: {hostname: b, gpus: 4}\n  c: {hostname: c}\n");
  world.job("a", "sleep 1000");
  world.servers().add_nvidia_smi(fs::path(source_folder) / "tests/data/gpus/535");
  world.cut_off({"c"});
  const CommandResult table = world.run({"servers"});
  EXPECT_EQ(table.code, 1);
  // Tests that run in parallel have jobs on this machine, too. They count as jobs of other projects.
  EXPECT_THAT(table.lines(),
              ElementsAre(MatchesRegex("SERVER +REACHABLE +GPUS +JOBS +LOAD +GPUS IN USE"),
                          MatchesRegex(
                              "a +yes +2 +1( \\+ .*)? +[0-9.]+ on [0-9]+ CPUs? +1 of 2, 39.6 GiB of 160 GiB"),
                          MatchesRegex("b +yes +2 of 4 +0 .*"), MatchesRegex("c +no +- +0 +- +-")));
  EXPECT_THAT(table.err, AllOf(StartsWith("error: c: "), HasSubstr("injected fault")));
  const auto json = world.run({"servers", "--json"}).json();
  EXPECT_EQ(json[0]["reachable"], true);
  EXPECT_EQ(json[0]["jobs"], 1);
  EXPECT_TRUE(json[1]["gpus"].is_number());
  EXPECT_FALSE(json[1]["settings"].empty());
  EXPECT_GT(json[1]["load"]["cpus"], 0);
  EXPECT_EQ(json[1]["gpu_details"][0]["utilisation"], 97);
  EXPECT_EQ(json[2]["load"], nullptr);
  EXPECT_EQ(json[2]["reachable"], false);
  EXPECT_EQ(json[2]["gpus"], nullptr);
  EXPECT_THAT(json[2]["error"].get<std::string>(), HasSubstr("injected fault"));
  EXPECT_EQ(json[2]["cause"], "unreachable");
}

TEST(CommandServersWait, AServerThatSaysNothingIsWaitedForAloud) {
  CommandWorld world;
  const fs::path go = world.home() / "go";
  world.servers().add_program("nvidia-smi",
                              "until [ -e '" + go.string() + "' ]; do sleep 0.2; done; exit 1\n");
  const auto command = world.start({"servers"}, screen());
  until([&] { return command->err().find("waiting for 2 servers (1 s)") != std::string::npos; }, "the line");
  EXPECT_EQ(command->out(), "");
  write_file_atomic(go, "");
  const CommandResult result = command->wait();
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, Not(HasSubstr("waiting"))) << "stdout is data";
  EXPECT_THAT(result.out, HasSubstr("REACHABLE"));
}

}  // namespace
}  // namespace remote::test
