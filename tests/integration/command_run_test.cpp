// `remote run`.

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

TEST(CommandRun, OneServersOutputIsPassedOnAsItIsAndItsCodeIsTheEnd) {
  CommandWorld world;
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "echo here; echo there >&2; exit 3"}),
              Ends(3, "here\n", "there\n"));
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "printf 'no newline'"}), Ends(0, "no newline", ""));
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "kill -KILL $$"}), Ends(137, "", ""));
}

TEST(CommandRun, ASignalEndsItWithItsNumberAlsoIfSshHasNoNameForIt) {
  CommandWorld world;
  for (const auto& [signal, code] :
       {std::pair{"BUS", 135}, {"TRAP", 133}, {"SYS", 159}, {"XCPU", 152}, {"SEGV", 139}, {"TERM", 143}}) {
    EXPECT_THAT(
        world.run({"run", "--server", "a", "--cmd", std::string("echo here; kill -") + signal + " $$"}),
        Ends(code, "here\n", ""))
        << signal;
  }
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "exit 139"}), Ends(139, "", ""));
  const CommandResult result = world.run({"--json", "run", "--server", "a", "--cmd", "kill -BUS $$"});
  EXPECT_EQ(result.json()[0]["signal"], "SIGBUS");
}

TEST(CommandRun, AScriptOnStdinIsRefused) {
  CommandWorld world;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"run", "--server", "a", "--", "bash", "-s"}, {"run", "--server", "a", "--cmd", "python3 -"}}) {
    const CommandResult refused = world.run(words, piped("echo hello\n"));
    EXPECT_EQ(refused.code, 2) << refused;
    EXPECT_THAT(refused.err, HasSubstr("does not send its standard input"));
  }
  EXPECT_THAT(world.run({"run", "--server", "a", "--", "echo", "x"}, piped("echo hello\n")),
              Ends(0, "x\n", ""));
}

TEST(CommandRun, WhatPythonPrintsComesAtOnce) {
  CommandWorld world;
  // The command never ends, so only unbuffered output is seen.
  const auto running = world.start(
      {"run", "--server", "a", "--cmd", "python3 -c 'import time; print(\"now\"); time.sleep(1000)'"});
  until([&] { return running->out() == "now\n"; }, "the first line");
  running->interrupt();
  running->wait();
  EXPECT_THAT(
      world.run({"run", "--server", "a", "-e", "PYTHONUNBUFFERED=", "--cmd", "echo \"<$PYTHONUNBUFFERED>\""}),
      Ends(0, "<>\n", ""));
  world.ended_job("a", "echo \"<$PYTHONUNBUFFERED>\"");
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--job", "1"}), Ends(0, "<1>\n", ""));
}

TEST(CommandRun, ACommandThatSaysNothingIsWaitedForAloudUntilItDoes) {
  CommandWorld world;
  const auto running =
      world.start({"run", "--cmd", "until [ -e ../go ]; do sleep 0.2; done; echo here"}, screen());
  until([&] { return running->err().find("waiting for a, b (1 s)") != std::string::npos; }, "the line");
  EXPECT_EQ(running->out(), "");
  write_file_atomic(world.there("a") / "../go", "");
  write_file_atomic(world.there("b") / "../go", "");
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, AllOf(HasSubstr("here"), Not(HasSubstr("waiting"))));
  EXPECT_THAT(result.err, MatchesRegex("(.|\n)*\r\033\\[J")) << "the line does not stay";
}

TEST(CommandRun, AServerThatHasNoRoomForTheAgentSaysSo) {
  CommandWorld world;
  world.servers().add_program("dd", "exit 1\n");
  const CommandResult result = world.run({"run", "--server", "a", "--cmd", "echo here"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot start the agent"), Not(HasSubstr("start files"))));
}

TEST(CommandRun, SeveralServersHaveTheirNamesBeforeWholeLines) {
  CommandWorld world;
  const CommandResult result = world.run({"run", "--cmd", "basename ~; printf end"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.lines(), UnorderedElementsAre("a | a", "a | end", "b | b", "b | end"));
  EXPECT_EQ(result.err, "");
}

TEST(CommandRun, SeveralServersEndWithOneWhenTheCommandFailsOnOne) {
  CommandWorld world;
  const CommandResult result = world.run({"run", "--cmd", "test $(basename ~) = a || exit 7"});
  EXPECT_THAT(result, Ends(1, "", "b: exit 7\nfailed on 1 of 2 servers\n"));
}

TEST(CommandRun, AServerThatIsNotReachedFailsAloneAndIsNamed) {
  CommandWorld world;
  world.cut_off({"b"});
  const CommandResult both = world.run({"run", "--cmd", "echo here"});
  EXPECT_THAT(both, Ends(1, "a | here\n",
                         AllOf(HasSubstr("error: b: "), HasSubstr("injected fault"),
                               HasSubstr("failed on 1 of 2 servers\n"))));
  const CommandResult one = world.run({"run", "--server", "b", "--cmd", "echo here"});
  EXPECT_THAT(one, Ends(1, "", AllOf(HasSubstr("error: b: "), Not(HasSubstr("failed on")))));
}

TEST(CommandRun, WhatGoesWrongInTheSameWayOnSeveralServersIsToldOnce) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n"
      "  c: {hostname: c}\n  d: {hostname: d}\n  e: {hostname: e}\n");
  for (const char* server : {"c", "d", "e"}) {
    make_folders(world.there(server));
  }
  EXPECT_THAT(world.run({"run", "--cmd", "test $(basename ~) != c || exit 4; exit 7"}),
              Ends(1, "", "c: exit 4\na, b and 2 more: exit 7\nfailed on 5 of 5 servers\n"));
  world.cut_off({"b", "c", "d", "e"});
  for (const char* command : {"run", "servers", "top"}) {
    std::vector<std::string> words = {command};
    if (words.front() == "run") {
      words.insert(words.end(), {"--cmd", "true"});
    }
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 1) << result;
    EXPECT_THAT(result.err, HasSubstr("error: b, c and 2 more: "));
    EXPECT_EQ(result.err.find("error: "), result.err.rfind("error: ")) << result;
  }
  const CommandResult stream = world.run({"run", "--jsonl", "--cmd", "true"});
  for (const char* server : {"b", "c", "d", "e"}) {
    EXPECT_THAT(stream.out,
                HasSubstr(std::string("\"what\":\"cannot connect\",\"server\":\"") + server + "\""));
  }
}

TEST(CommandRun, ServersAreChosenByNameAndGlob) {
  CommandWorld world;
  EXPECT_THAT(world.run({"run", "--server", "[b-z]", "--cmd", "basename ~"}), Ends(0, "b\n", ""));
  const CommandResult both = world.run({"run", "--server", "b", "--server", "a", "--cmd", "basename ~"});
  EXPECT_THAT(both.lines(), UnorderedElementsAre("a | a", "b | b"));
}

TEST(CommandRun, RunsInTheProjectsFolderWithTheVariablesGiven) {
  CommandWorld world;
  const CommandResult result = world.run({"run", "--server", "a", "--env", "FIRST", "$HOME [x]", "-e",
                                          "SECOND=a=b", "--cmd", "pwd; echo \"$FIRST|$SECOND\""});
  EXPECT_THAT(result, Ends(0, world.there("a").string() + "\n$HOME [x]|a=b\n",
                           HasSubstr("FIRST is set to the text with its '$'")));
}

TEST(CommandRun, JsonHasOutputCodeSignalAndErrorOfEachServer) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n  c: "
      "{hostname: "
      "c}\n");
  world.cut_off({"c"});
  const CommandResult result =
      world.run({"run", "--json", "--cmd", "echo out; echo err >&2; test $(basename ~) = a || kill -9 $$"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("error: c: "), HasSubstr("failed on 2 of 3 servers")));
  const auto all = result.json();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0], nlohmann::json::parse(
                        R"({"server": "a", "exit_code": 0, "signal": null, "stdout": "out\n",
                            "stderr": "err\n", "error": null, "cause": null})"));
  EXPECT_EQ(all[1]["server"], "b");
  EXPECT_EQ(all[1]["exit_code"], nullptr);
  EXPECT_EQ(all[1]["signal"], "SIGKILL");
  EXPECT_EQ(all[1]["stdout"], "out\n");
  EXPECT_EQ(all[2]["exit_code"], nullptr);
  EXPECT_EQ(all[2]["stdout"], "");
  EXPECT_THAT(all[2]["error"].get<std::string>(), HasSubstr("injected fault"));
  EXPECT_EQ(all[2]["cause"], "unreachable");
}

TEST(CommandRun, JsonOfOneServerKeepsTheCommandsCode) {
  CommandWorld world;
  const CommandResult result =
      world.run({"--json", "run", "--server", "a", "--cmd", "printf '\\377'; exit 5"});
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.json()[0]["exit_code"], 5);
}

TEST(CommandRun, OptionsThatAreWrongAreRefusedBeforeAnyServerIsAsked) {
  CommandWorld world;
  EXPECT_THAT(world.run({"run"}), Refused("remote run: --cmd is required"));
  EXPECT_THAT(world.run({"run", "--cmd", ""}), Refused("--cmd is empty"));
  EXPECT_THAT(world.run({"run", "--cmd", "true", "-e", "NAME"}),
              Refused("-e NAME: there is no such variable here"));
  EXPECT_THAT(world.run({"run", "--cmd", "true", "--env", "A-B", "1"}), Refused("A-B"));
  EXPECT_THAT(world.run({"run", "--cmd", "true", "--env", "A"}), Refused("--env"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandRun, OnATerminalTheNamesAreColoured) {
  CommandWorld world;
  const CommandResult result = world.run({"run", "--cmd", "echo here"}, screen());
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.lines(), UnorderedElementsAre("\033[36ma |\033[0m here", "\033[32mb |\033[0m here"));
}

TEST(CommandRun, EachServersOutputIsKeptInALog) {
  CommandWorld world;
  EXPECT_EQ(world.run({"run", "--server", "a", "--cmd", "echo kept; exit 4"}).code, 4);
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(world.project() / ".remote/logs")) {
    if (entry.path().filename() == "stdout.log" || entry.path().filename() == "exit_code") {
      found.push_back(read_file(entry.path()));
    }
  }
  EXPECT_THAT(found, UnorderedElementsAre("kept\n", "4\n"));
}

TEST(CommandRun, AnInterruptIsExitCode130) {
  CommandWorld world;
  const auto running = world.start({"run", "--cmd", "echo up; sleep 1000"});
  until([&] { return running->out().find("up") != std::string::npos; }, "the command's first words");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err,
              ::testing::EndsWith(
                  "interrupted: the command is ended on a, b; its background processes may keep running\n"));
}

}  // namespace
}  // namespace remote::test
