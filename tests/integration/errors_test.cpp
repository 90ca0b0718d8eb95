// The errors that users see: what failed, where, why, and a hint. The tests cause real errors by running
// commands, as far as that is cheap. tests/lint/errors.py finds all places that make an error, and checks
// only their form.

#include <functional>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

struct Wrong {
  const char* name;
  std::vector<std::string> words;
  int code;
  const char* where;                             // a server, a position in a file, an option, a name
  std::function<void(CommandWorld&)> make = {};  // causes the error
  bool hint = true;                              // false: the reason itself states the fix
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.name;
}

std::function<void(CommandWorld&)> config(const std::string& yaml) {
  return [yaml](CommandWorld& world) { world.configure(yaml); };
}

const std::string a_server = "servers:\n  a: {hostname: a}\n";

std::vector<Wrong> wrongs() {
  const auto unreachable = [](CommandWorld& world) { world.cut_off({"a"}); };
  const auto job = [](CommandWorld& world) { world.ended_job("a", "true"); };
  const auto no_project = [](CommandWorld& world) { fs::remove(world.project() / ".remote/configs.yaml"); };
  std::vector<Wrong> all = {
      // the command line
      {"UnknownCommand", {"job-lits"}, 2, "job-lits"},
      {"UnknownOption", {"job-tail", "--jbo", "1"}, 2, "--jbo"},
      {"WordTooMuch", {"job-list", "word"}, 2, "word"},
      {"OptionWithoutValue", {"run", "--cmd"}, 2, "--cmd"},
      {"NumberOutOfRange", {"launch", "--master-port", "70000", "--cmd", "x"}, 2, "--master-port"},
      {"OptionsThatExclude", {"job-tail", "--all", "--rank", "1"}, 2, "--rank"},
      {"NoCommandToRun", {"run"}, 2, "--cmd"},
      {"NoCommandToLaunch", {"launch"}, 2, "--cmd"},
      {"EmptyCommandOfAJob", {"job-run", "--server", "a", "--cmd", " "}, 2, ""},
      {"UnknownServer", {"run", "--cmd", "true", "--server", "c"}, 2, "'c'"},
      {"GlobOfTwoServers", {"job-run", "--cmd", "true", "--server", "*"}, 2, "'*'"},
      {"NoServerNamed", {"job-run", "--cmd", "true"}, 2, "server"},
      {"VariableWithoutValue", {"run", "--cmd", "true", "-e", "A"}, 2, "A"},
      {"VariableThatBashKeeps", {"run", "--cmd", "true", "--env", "UID", "1"}, 2, "'UID'"},
      {"VariableOfARank", {"launch", "--cmd", "x", "--env", "RANK", "1"}, 2, "RANK"},
      {"WrongNumberOfRanks", {"launch", "--cmd", "x", "--nproc-per-node", "few"}, 2, "'few'", {}, false},
      {"WrongLauncher", {"launch", "--cmd", "x", "--launcher", "rockets"}, 2, "rockets"},
      {"InitDirWithoutItsMethod",
       {"launch", "--cmd", "x", "--init-method", "tcp", "--init-dir", "/x"},
       2,
       "--init-dir"},
      {"AgentOfAnotherLauncher", {"launch", "--cmd", "x", "--mpi-agent", "ssh"}, 2, "ranks"},
      {"TwoValuesOnStdout", {"launch", "--cmd", "x", "--follow", "--json"}, 2, "--json"},
      {"TerminalAsJson", {"run", "--cmd", "x", "--tty", "--json", "--server", "a"}, 2, "--json"},
      {"TerminalOfTwoServers", {"run", "--cmd", "x", "--tty"}, 2, "2 servers"},
      {"ShellAsJson", {"shell", "a", "--json"}, 2, "--json"},
      {"NoHostfile", {"launch", "--cmd", "x", "--hostfile", "nowhere"}, 2, "nowhere"},
      {"AllHostsExcluded", {"launch", "--cmd", "x", "-H", "a:1", "--exclude", "a"}, 2, "exclude"},
      {"ImportOfNothing", {"init", "--from", "nowhere"}, 2, "nowhere", no_project},
      {"ImportOfAnEmptyFile", {"init", "--from", "/dev/null"}, 2, "/dev/null", no_project},
      {"SvgOfOneServer", {"check", "--server", "a", "--bandwidth", "--svg", "x.svg"}, 2, "two servers"},
      {"SvgInNoFolder", {"check", "--bandwidth", "--svg", "no/x.svg"}, 2, "no/x.svg"},
      {"PageAsJson", {"report", "--watch", "--json"}, 2, "--json", job},
      {"UnknownTopic", {"help", "securty"}, 2, "'securty'"},
      // jobs
      {"NoJobs", {"job-tail"}, 2, "job"},
      {"UnknownJob", {"job-tail", "--job", "77"}, 2, "77", job},
      {"UnknownLaunch", {"report", "--launch", "77"}, 2, "77", job},
      {"LaunchThatIsAJob", {"job-kill", "--launch", "1"}, 2, "1", job},
      {"KillWithoutAQuestion", {"job-kill", "--tag", "x"}, 2, "", job},
      {"UnknownSignal", {"job-kill", "--job", "1", "--signal", "HELLO"}, 2, "HELLO", job},
      {"NothingToPull", {"job-pull", "--job", "1", ""}, 2, "path", job},
      {"PullOfWhatIsNotThere", {"job-pull", "--job", "1", "nowhere"}, 1, "a: ", job},
      {"StacksOfAnEndedJob", {"job-stacks", "--job", "1"}, 2, "job-stacks", job},
      // Servers. The error of a simulated server has no hint; tests/e2e/test_first_contact.sh tests the real
      // one.
      {"ServerOutOfReach", {"run", "--cmd", "true"}, 1, "a: ", unreachable, false},
      {"ServerOutOfReachAtLaunch", {"launch", "--cmd", "true"}, 1, "a: ", unreachable, false},
      {"ServerOutOfReachAtServers", {"servers"}, 1, "a: ", unreachable, false},
      {"NoPython",
       {"torch-launch", "--cmd", "python train.py", "--server", "a"},
       1,
       "a: ",
       config("name: proj\npython: {manager: venv}\nservers:\n  a: {hostname: a, internal_address: "
              "127.0.0.1}\n")},
  };
  // configs.yaml: each error names the file, the line and the column.
  const std::pair<const char*, std::string> texts[] = {
      {"ConfigThatIsNoYaml", "servers: [\n"},
      {"ConfigWithATab", "servers:\n\ta: {hostname: a}\n"},
      {"ConfigThatIsAList", "- a\n"},
      {"ConfigWithAKeyTwice", "name: x\nname: y\n"},
      {"ConfigWithAnAliasOfNothing", "name: *x\n"},
      {"ConfigWithServersAsAText", "servers: many\n"},
      {"ConfigWithoutAnAddress", "servers:\n  a: {username: ann}\n"},
      {"ConfigWithAWrongAddress", "servers:\n  a: {hostname: -oProxyCommand=id}\n"},
      {"ConfigWithAWrongPort", "servers:\n  a: {hostname: a, port: many}\n"},
      {"ConfigWithAWrongName", "name: ../x\n" + a_server},
      {"ConfigWithAWrongServerName", "servers:\n  '../x': {hostname: a}\n"},
      {"ConfigWithAHomeOfSomebody", "servers:\n  a: {hostname: a, private_key: ~bob/key}\n"},
      {"ConfigWithTwoPasswords", "servers:\n  a: {hostname: a, password: x, password_env: Y}\n"},
      {"ConfigWithWrongGpus", "servers:\n  a: {hostname: a, gpus: all}\n"},
      {"ConfigWithAWrongVariable", "servers:\n  a: {hostname: a, env: {1A: b}}\n"},
      {"ConfigWithAWrongManager", a_server + "python: {manager: condo}\n"},
      {"ConfigWithAWrongVersion", a_server + "python: {version: new}\n"},
      {"ConfigWithAnOptionAsPackage", a_server + "python: {index_url: --evil}\n"},
      {"ConfigWithAWrongDigest", a_server + "python: {miniconda_sha256: {x86_64: 12}}\n"},
      {"ConfigWithWrongHostKeys", a_server + "host_keys: maybe\n"},
      {"ConfigWithAWrongTimeout", a_server + "connect_timeout: 0\n"},
      {"ConfigWithAWrongFlag", a_server + "launch: {rsync: perhaps}\n"},
      {"ConfigWithAWrongLauncher", a_server + "launch: {launcher: rockets}\n"},
      {"ConfigWithAnUnknownEngine", a_server + "container: {engine: lxc, image: x}\n"},
      {"ConfigWithAnAbsoluteJobsFolder", a_server + "remote_jobs_folder_name: /x\n"},
  };
  for (const auto& [name, text] : texts) {
    all.push_back({name, {"torch-launch", "--dry-run", "--cmd", "true"}, 2, "configs.yaml:", config(text)});
  }
  return all;
}

// The defect in the displayed error; "" if none.
std::string fault(const Wrong& wrong, const std::string& err) {
  bool error = false;
  bool hint = false;
  for (const std::string& line : split(err, '\n')) {
    const bool is_error = line.starts_with("error: ");
    hint = hint || line.starts_with(" hint: ");
    if (is_error && error && !hint && wrong.hint) {
      return "an error has no hint";
    }
    if (is_error) {
      error = true;
      hint = false;
    }
    if (line.ends_with('.') || line.ends_with(' ') || line.ends_with(": ") || line.ends_with(':')) {
      return "a line ends with rubbish: " + line;
    }
    if (std::ranges::any_of(line, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
      return "a line has a control character: " + line;
    }
    for (const char* internal :
         {"std::", "std:", "basic_string", "errno", "CLI::", "YAML::", "yaml-cpp", "what():", "nullopt"}) {
      if (line.find(internal) != std::string::npos) {
        return fmt::format("a line has the name {}: {}", internal, line);
      }
    }
  }
  if (!error) {
    return "there is no error";
  }
  return wrong.hint && !hint ? "the last error has no hint" : "";
}

class CommandErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(CommandErrors, SaysWhatWhereWhyAndWhatToTry) {
  CommandWorld world;
  const Wrong& wrong = GetParam();
  if (wrong.make) {
    wrong.make(world);
  }
  const CommandResult result = world.run(wrong.words);
  EXPECT_EQ(result.code, wrong.code) << result;
  EXPECT_EQ(fault(wrong, result.err), "") << result;
  EXPECT_THAT(result.err, HasSubstr(wrong.where)) << "where it is";
  // "what: why", both non-empty
  EXPECT_THAT(result.err, ::testing::ContainsRegex("error: [^\n]*[a-z]")) << result;
}

INSTANTIATE_TEST_SUITE_P(All, CommandErrors, ::testing::ValuesIn(wrongs()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(CommandErrorsToo, WhatAServerOrAFileSaysReachesTheTerminalAsText) {
  CommandWorld world;
  world.configure("servers:\n  a: {hostname: \"x\\e]0;evil\\a\", port: 1}\n");
  const CommandResult result = world.run({"run", "--cmd", "true"});
  EXPECT_EQ(result.code, 2) << result;
  EXPECT_THAT(result.err, Not(HasSubstr("\033")));
}

TEST(CommandErrorsToo, AServerThatDoesNotAnswerFailsWhatIsAskedOfItAndNoList) {
  CommandWorld world;
  world.job("a", "exec sleep 1000");
  world.cut_off({"a"});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"servers"},
                                             {"top", "--once"},
                                             {"run", "--cmd", "true"},
                                             {"check"},
                                             {"rsync"},
                                             {"job-kill", "--job", "1"}}) {
    EXPECT_EQ(world.run(words).code, 1) << words.front();
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"status"}, {"job-list"}, {"report"}}) {
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 0) << words.front() << result;
    EXPECT_THAT(result.err, HasSubstr("a: "))
        << "which server does not answer is told all the same: " << words.front();
  }
}

TEST(CommandErrorsToo, AStreamTellsThemWithTheSameWords) {
  CommandWorld world;
  world.cut_off({"a"});
  const CommandResult result = world.run({"launch", "--jsonl", "--cmd", "true"});
  EXPECT_EQ(result.code, 1);
  std::vector<nlohmann::json> errors;
  for (const std::string& line : result.lines()) {
    if (const auto event = nlohmann::json::parse(line); event["event"] == "error") {
      errors.push_back(event);
    }
  }
  ASSERT_EQ(errors.size(), 2U) << result;
  EXPECT_EQ(errors[0]["server"], "a");
  EXPECT_EQ(errors[0]["what"], "cannot connect");
  EXPECT_EQ(errors[1]["what"], "nothing was started");
  EXPECT_EQ(errors[1]["reason"], "a launch needs all of its servers");
  EXPECT_THAT(result.err, HasSubstr("\n hint: " + errors[1]["hint"].get<std::string>() + "\n"));
}

TEST(CommandErrorsToo, AStreamTellsOfAServerThatCannotBePreparedWithTheSameWords) {
  CommandWorld world;
  world.servers().add_program("rsync", "echo no >&2; exit 5");
  const CommandResult result = world.run({"rsync", "--server", "a", "--jsonl"});
  EXPECT_EQ(result.code, 1);
  std::string hint;
  for (const std::string& line : result.lines()) {
    if (const auto event = nlohmann::json::parse(line); event["event"] == "server_failed") {
      hint = event["hint"].get<std::string>();
    }
  }
  EXPECT_EQ(hint, "`remote check --server a` shows what is wrong there") << result;
  EXPECT_THAT(result.err, HasSubstr(" hint: a: " + hint + "\n"));
}

}  // namespace
}  // namespace remote::test
