// Shared by all commands: help, the version, the global options, and messages about usage errors.

#include "base/strings.hpp"
#include "support/command_world.hpp"
#include "ui/terminal.hpp"

namespace remote::test {
namespace {

TEST(CommandUsage, HelpAndVersionGoToStdout) {
  CommandWorld world;
  EXPECT_THAT(world.run({"--version"}), Ends(0, "remote " REMOTE_VERSION "\n", ""));
  EXPECT_THAT(world.run({"job-list", "--help"}), Ends(0, HasSubstr("job-list [OPTIONS]"), ""));
}

TEST(CommandUsage, HelpNamesEveryCommandButTheHiddenOne) {
  CommandWorld world;
  const CommandResult help = world.run({"--help"});
  EXPECT_THAT(help, Ends(0, Not(HasSubstr("__complete")), ""));
  for (const char* name :
       {"init",      "servers",   "setup",      "rsync",        "update-packages",    "prepare",
        "run",       "shell",     "job-run",    "launch",       "job-list",           "job-tail",
        "job-kill",  "job-rsync", "job-wait",   "job-clean",    "job-pull",           "job-stacks",
        "authorize", "sandbox",   "completion", "torch-launch", "helper-torch-launch"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + name + " ")) << name;
    EXPECT_THAT(world.run({name, "--help"}), Ends(0, HasSubstr(name), "")) << name;
  }
}

// The words of a text, each preceded by one space.
std::string words_of(const std::string& text) {
  std::string words;
  for (const std::string& word : split_words(text)) {
    words += " " + word;
  }
  return words;
}

TEST(CommandUsage, HelpStaysWithin80ColumnsAndHasGroupsAndExamples) {
  CommandWorld world;
  const CommandResult all = world.run({"help"});
  EXPECT_EQ(all.out, world.run({"--help"}).out);
  EXPECT_THAT(words_of(all.out),
              AllOf(HasSubstr(" Prepare the servers: prepare Run setup, rsync and update-packages on all "
                              "servers setup "),
                    HasSubstr(" Jobs: ")));
  EXPECT_THAT(words_of(all.out), HasSubstr(" --project DIR Project folder"));
  std::vector<std::vector<std::string>> commands = {
      {"sandbox", "up"}, {"sandbox", "down"}, {"sandbox", "status"}};
  for (const std::string& line : split(all.out.substr(0, all.out.find("Topics of remote help:")), '\n')) {
    if (line.size() > 2 && line.starts_with("  ") && line[2] >= 'a' && line[2] <= 'z') {
      commands.push_back({split_words(line).front()});
    }
  }
  EXPECT_GT(commands.size(), 25U);
  for (std::vector<std::string> words : commands) {
    const bool of_root = words.size() == 1;
    words.insert(words.begin(), "help");
    const CommandResult help = world.run(words);
    EXPECT_EQ(help.code, 0) << help;
    for (const std::string& line : help.lines()) {
      EXPECT_LE(ui::display_width(line), 80U) << line;
    }
    EXPECT_EQ(help.out.find("\n  remote ") != std::string::npos, of_root) << help;  // an example
    EXPECT_THAT(help.out, Not(HasSubstr("--project DIR"))) << help;
    words.erase(words.begin());
    words.push_back("--help");
    EXPECT_EQ(world.run(words).out, help.out);
  }
  EXPECT_THAT(world.run({"help", "completion"}).out, HasSubstr(".zfunc/_remote"));
  EXPECT_THAT(world.run({"help", "jbo-list"}), Refused("did you mean 'job-list'?"));
}

TEST(CommandUsage, WrongUsageSaysWhatWasMeant) {
  CommandWorld world;
  EXPECT_THAT(
      world.run({"job-lits"}),
      Ends(2, "",
           "error: remote has no command 'job-lits'\n hint: did you mean 'job-list'? see `remote --help`\n"));
  EXPECT_THAT(world.run({"job-tail", "--jbo", "1"}),
              Refused("remote job-tail has no option --jbo\n hint: did "
                      "you mean '--job'?"));
  EXPECT_THAT(world.run({"status", "word"}), Refused("remote status takes no 'word'"));
  EXPECT_THAT(world.run({"job-list", "word"}), Refused("no job 'word'"));
  EXPECT_THAT(world.run({"sandbox"}), Refused("remote sandbox needs a command: up, down, status"));
  EXPECT_THAT(world.run({"--color", "pink", "job-list"}), Refused("--color"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandUsage, DashesAndQuotesOfTextEditorsAreNamed) {
  CommandWorld world;
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"torch-launch", "\u2014nproc-per-node", "2", "train.py"},
                             Words{"torch-launch", "\u2013\u2013follow"},
                             Words{"torch-launch", "--follow", "\u2014nproc-per-node", "2", "train.py"}}) {
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 2) << result;
    EXPECT_THAT(result.err, AllOf(HasSubstr("begins with a long dash"), HasSubstr("hint: type --")));
  }
  EXPECT_THAT(world.run({"job-list", "\u2212v"}).err, HasSubstr("hint: type -v"));
  const CommandResult quotes = world.run({"run", "--cmd", "\u201cnvidia-smi", "-L\u201d"});
  EXPECT_EQ(quotes.code, 2) << quotes;
  EXPECT_THAT(quotes.err, HasSubstr("begins with a typographic quote"));
  EXPECT_THAT(world.run({"run", "--", "echo", "\u2014x", "\u201cy\u201d"}).out,
              HasSubstr("\u2014x \u201cy\u201d"));
  EXPECT_THAT(world.run({"run", "echo", "\u2014x"}).out, HasSubstr("\u2014x"));
}

TEST(CommandUsage, NoCommandAtAllNeedsAProject) {
  CommandWorld world;
  std::filesystem::remove(world.project() / ".remote/configs.yaml");
  EXPECT_THAT(world.run({}), Refused("there is no .remote/configs.yaml in it"));
}

TEST(CommandUsage, AProjectThatIsNoneIsWrongUsage) {
  CommandWorld world;
  std::filesystem::remove(world.project() / ".remote/configs.yaml");
  EXPECT_THAT(world.run({"job-list"}), Refused("there is no .remote/configs.yaml in it\n hint: run `remote "
                                               "init` there first"));
}

TEST(CommandUsage, AWrongConfigurationIsWrongUsageWithItsPlace) {
  CommandWorld world;
  world.configure("name: proj\nservers:\n  a: {hostname: a, port: many}\n");
  EXPECT_THAT(world.run({"run", "--cmd", "true"}), Refused("configs.yaml:3:"));
}

TEST(CommandUsage, AnUnknownKeyIsAWarningAlsoWhenQuiet) {
  CommandWorld world;
  world.configure("name: proj\nservers:\n  a: {hostname: a, prot: 22}\n");
  const auto warned = AllOf(StartsWith("warning: "), HasSubstr("prot"), HasSubstr("port"));
  EXPECT_THAT(world.run({"job-list", "--offline"}), Ends(0, "", warned));
  EXPECT_THAT(world.run({"--quiet", "job-list", "--offline"}), Ends(0, "", warned));
}

TEST(CommandUsage, AProjectWithoutServersSaysSo) {
  CommandWorld world;
  world.configure("name: proj\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "--cmd", "true"},
                                             {"launch", "--cmd", "true"},
                                             {"job-run", "--cmd", "true", "--server", "a"},
                                             {"prepare"},
                                             {"servers"},
                                             {"authorize"}}) {
    EXPECT_THAT(world.run(words),
                Refused("add one under 'servers:'; for practice servers, run `remote sandbox up`"))
        << words.front();
  }
}

TEST(CommandUsage, AnUnknownServerIsWrongUsageForEveryCommandThatTakesOne) {
  CommandWorld world;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "--cmd", "true"},
                                             {"job-run", "--cmd", "true"},
                                             {"launch", "--cmd", "true"},
                                             {"torch-launch", "--cmd", "true", "--dry-run"},
                                             {"setup"},
                                             {"rsync"},
                                             {"update-packages"},
                                             {"prepare"},
                                             {"job-rsync"},
                                             {"servers"},
                                             {"authorize"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--server", "c"});
    EXPECT_THAT(world.run(all), Refused("no server 'c': there are a, b")) << words.front();
  }
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandUsage, ColourIsForTerminalsUnlessItIsAskedFor) {
  CommandWorld world;
  const std::vector<std::string> unknown = {"job-tail", "--job", "7"};
  const auto red = HasSubstr("\033[31merror:\033[0m");
  const auto plain = StartsWith("error:");
  const auto with = [&](std::vector<std::string> words, const Terminals& terminals) {
    words.insert(words.end(), unknown.begin(), unknown.end());
    return world.run(words, terminals);
  };
  EXPECT_THAT(with({}, screen()), Ends(2, "", red));
  EXPECT_THAT(with({}, {}), Ends(2, "", plain));
  EXPECT_THAT(with({"--color", "always"}, {}), Ends(2, "", red));
  EXPECT_THAT(with({"--color", "never"}, screen()), Ends(2, "", plain));
  const Variable no_color("NO_COLOR", "1");
  EXPECT_THAT(with({}, screen()), Ends(2, "", plain));
}

TEST(CommandUsage, VerboseTellsOnStderrWhatIsDone) {
  CommandWorld world;
  const std::vector<std::string> words = {"run", "--server", "a", "--cmd", "echo data"};
  EXPECT_THAT(world.run(words), Ends(0, "data\n", ""));
  std::vector<std::string> verbose = {"-vv"};
  verbose.insert(verbose.end(), words.begin(), words.end());
  EXPECT_THAT(world.run(verbose), Ends(0, "data\n", HasSubstr(" a: ")));
}

TEST(CommandUsage, QuietLeavesOutNoticesOnly) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-list"}), Ends(0, "", Not(IsEmpty())));
  EXPECT_THAT(world.run({"--quiet", "job-list"}), Ends(0, "", ""));
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--job", "7"}), Refused("error: no job '7'"));
}

}  // namespace
}  // namespace remote::test
