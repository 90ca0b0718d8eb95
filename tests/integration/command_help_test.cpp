// `remote help TOPIC`, and the pages written by the hidden __manual command.

#include <filesystem>

#include "base/files.hpp"
#include "cli/topics.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

TEST(CommandHelp, ATopicIsAPageOfTheDocs) {
  CommandWorld world;
  const std::string root_help = world.run({"--help"}).out;
  for (const cli::Topic& one : cli::all_topics()) {
    const std::string topic(one.name);
    const CommandResult help = world.run({"help", topic});
    EXPECT_EQ(help.code, 0) << topic << help;
    EXPECT_GT(help.lines().size(), 10U) << topic;
    EXPECT_THAT(help.out, Not(HasSubstr("```"))) << topic;
    EXPECT_THAT(root_help, HasSubstr("\n  " + topic + " ")) << "a row of its own";
    EXPECT_LE(26 + one.about.size(), 80U) << topic << ": more than a line";
    if (!one.command.empty()) {
      EXPECT_THAT(world.run({"help", std::string(one.command)}).out,
                  AllOf(HasSubstr("\nSee also: "), HasSubstr("remote help " + topic)));
    }
    EXPECT_EQ(world.run({topic, "--help"}).out, root_help) << topic << " is a command's name, too";
  }
  EXPECT_THAT(world.run({"help", "configs"}).out, HasSubstr("\n  hostname\n"));
  EXPECT_THAT(world.run({"help", "run"}).out, Not(HasSubstr("See also")));
}

TEST(CommandHelp, AnUnknownWordIsRefusedWithTheNearest) {
  CommandWorld world;
  EXPECT_THAT(
      world.run({"help", "securty"}),
      Ends(2, "", AllOf(HasSubstr("there is no command or topic 'securty'"), HasSubstr("'security'"))));
}

TEST(CommandHelp, TheManualHasAPageForEveryCommand) {
  CommandWorld world;
  TempFolder temp{"remote-manual-"};
  const std::filesystem::path folder = temp.path() / "pages";
  EXPECT_THAT(world.run({"__manual", folder.string()}), Ends(0, "", ""));
  const std::string root = read_file(folder / "man1" / "remote.1");
  std::size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "man1")) {
    const std::string name = entry.path().stem().string();
    ++pages;
    EXPECT_THAT(read_file(entry.path()), HasSubstr(".SH NAME\n")) << name;
    if (name != "remote") {
      std::string escaped;
      for (const char c : name) {
        escaped += c == '-' ? "\\-" : std::string(1, c);
      }
      EXPECT_THAT(root, HasSubstr(".BR " + escaped + " (1)\n"));
    }
  }
  EXPECT_GT(pages, 25U);
  EXPECT_THAT(root, AllOf(HasSubstr(".SH TOPICS\n"), HasSubstr("\n.B checking\n"),
                          HasSubstr("\n.B when\\-it\\-hangs\n")));
  EXPECT_THAT(read_file(folder / "man1" / "remote-torch-launch.1"),
              HasSubstr("\\-\\-nproc\\-per\\-node N|auto\n"));
  EXPECT_THAT(read_file(folder / "man5" / "remote-configs.yaml.5"),
              HasSubstr("\\fBhostname\\fR (type: text"));
}

}  // namespace
}  // namespace remote::test
