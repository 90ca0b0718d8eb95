// `remote init`: without a terminal, and its dialogue on a terminal.

#include <sys/stat.h>

#include "base/files.hpp"
#include "config/config.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandInit : public ::testing::Test {
 protected:
  CommandInit() { fs::remove_all(world.project() / ".remote"); }
  CommandResult init(std::vector<std::string> words, const Terminals& terminals = {}) {
    words.insert(words.begin(), "init");
    return world.run(words, terminals);
  }
  bool written() const { return fs::exists(world.project() / ".remote"); }
  config::Config config() const { return config::load(world.project()); }
  CommandWorld world;
};

TEST_F(CommandInit, MakesAProjectFromItsOptions) {
  const CommandResult result = init({"--server", "first=ada@10.0.0.1:2222", "--server", "second=[::1]",
                                     "--name", "my model", "--key", (world.project() / "key").string()});
  EXPECT_THAT(
      result,
      Ends(0, "",
           "warning: there is no file " + (world.project() / "key").string() +
               " yet\ncreated .remote/.gitignore\ncreated .remote/exclude.txt\ncreated "
               ".remote/configs.yaml\nuser on second: the one in ~/.ssh/config, else ubuntu; to change it, "
               "set username in .remote/configs.yaml\nnext: remote prepare\n"));
  EXPECT_EQ(config().name, "my model");
  ASSERT_EQ(config().servers.size(), 2U);
  EXPECT_EQ(config().servers[0].name, "first");
  EXPECT_EQ(config().servers[0].username, "ada");
  EXPECT_EQ(config().servers[0].hostname, "10.0.0.1");
  EXPECT_EQ(config().servers[0].port, 2222);
  EXPECT_EQ(config().servers[1].hostname, "::1");
  EXPECT_EQ(config().servers[1].private_key, world.project() / "key");
  struct stat status {};
  ASSERT_EQ(::stat((world.project() / ".remote/configs.yaml").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);  // it may contain a password
}

TEST_F(CommandInit, WithoutServersSaysWhereTheyGo) {
  EXPECT_THAT(init({}), Ends(0, "",
                             HasSubstr("next: add your servers to .remote/configs.yaml, or run `remote "
                                       "sandbox up`\n")));
  EXPECT_EQ(config().name, "my project");
  EXPECT_TRUE(config().servers.empty());
}

TEST_F(CommandInit, TakesTheAnswersToLabmlRemotesQuestionsFromAPipe) {
  const CommandResult result = init({}, piped("mnist\n10.0.0.1\nada\n~/.ssh/id\n"));
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(config().name, "mnist");
  ASSERT_EQ(config().servers.size(), 1U);
  EXPECT_EQ(config().servers[0].name, "default");
  EXPECT_EQ(config().servers[0].hostname, "10.0.0.1");
  EXPECT_EQ(config().servers[0].username, "ada");
  EXPECT_EQ(config().servers[0].private_key, world.home() / ".ssh/id");
}

TEST_F(CommandInit, TakesTheLineOfAProvider) {
  const CommandResult result = init({"--server", "rented=ssh -p 40022 root@192.0.2.7 -L 8080:localhost:8080",
                                     "--server", "ssh ada@192.0.2.8"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, HasSubstr("not taken over: -L 8080:localhost:8080\n"));
  ASSERT_EQ(config().servers.size(), 2U);
  EXPECT_EQ(config().servers[0].name, "rented");
  EXPECT_EQ(config().servers[0].hostname, "192.0.2.7");
  EXPECT_EQ(config().servers[0].username, "root");
  EXPECT_EQ(config().servers[0].port, 40022);
  EXPECT_EQ(config().servers[1].name, "server-2");
  EXPECT_EQ(config().servers[1].username, "ada");
}

TEST_F(CommandInit, AnswersThatAreMissingInThePipeAreTheUsualOnes) {
  EXPECT_EQ(init({}, piped("\n10.0.0.1\n")).code, 0);
  EXPECT_EQ(config().name, "my project");
  EXPECT_FALSE(config().servers.at(0).username);
}

TEST_F(CommandInit, WrongOptionsAreRefusedAndNothingIsWritten) {
  for (const char* server :
       {"noequals", "../x=h", "a=h:0", "a=h h", "a=", "=h", "a=-oProxyCommand=id", "a=[::1"}) {
    EXPECT_THAT(init({"--server", server}), Refused("error: ")) << server;
  }
  EXPECT_THAT(init({"--server", "a=h", "--server", "a=i"}),
              Refused("--server a: two servers have this name"));
  EXPECT_THAT(init({"--name", "a/b"}), Refused("--name a/b: it must be the name of one folder"));
  EXPECT_THAT(init({"--name", ""}), Refused("it is empty"));
  EXPECT_THAT(init({"--key", "k"}), Refused("there is no server to use it for"));
  EXPECT_FALSE(written());
}

TEST_F(CommandInit, AFolderThatIsNotThereIsRefused) {
  fs::remove_all(world.project());
  EXPECT_THAT(init({}), Refused("there is no folder " + world.project().string()));
  EXPECT_FALSE(fs::exists(world.project()));
}

TEST_F(CommandInit, WhatIsThereIsKept) {
  ASSERT_EQ(init({"--server", "a=h"}).code, 0);
  const std::string before = read_file(world.project() / ".remote/configs.yaml");
  fs::remove(world.project() / ".remote/exclude.txt");
  EXPECT_THAT(init({"--server", "b=h"}),
              Refused("exists already\n hint: edit that file: it is never overwritten"));
  EXPECT_FALSE(fs::exists(world.project() / ".remote/exclude.txt"));
  EXPECT_THAT(init({}), Ends(0, "",
                             AllOf(HasSubstr("created .remote/exclude.txt\n"),
                                   HasSubstr("kept .remote/configs.yaml: it exists already\n"))));
  EXPECT_EQ(read_file(world.project() / ".remote/configs.yaml"), before);
}

TEST_F(CommandInit, AProjectInsideAnotherIsTold) {
  make_folders(world.project().parent_path() / ".remote");
  write_file_atomic(world.project().parent_path() / ".remote/configs.yaml", "name: outer\n");
  EXPECT_THAT(
      init({}),
      Ends(0, "", StartsWith("note: " + world.project().parent_path().string() + " is a project too; ")));
}

TEST_F(CommandInit, QuietSaysNothing) {
  EXPECT_THAT(world.run({"--quiet", "init", "--server", "a=h"}), Ends(0, "", ""));
  EXPECT_TRUE(written());
}

TEST_F(CommandInit, AsksOnATerminalUntilTheAnswersAreRight) {
  const CommandResult result =
      init({}, screen("a/b\nmodel\n../x\nfirst\nu@h:0\nu@h:22\nfirst\nsecond\n[::1]\n\n"
                      "~/none\npoetry\nsystem\n"));
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("Name of the project [my project]: "));
  for (const char* words :
       {"warning:\033[0m this cannot be the name: ",
        "Name of the first server, such as first-server (Enter: none yet): ",
        "warning:\033[0m a server's name has letters", "Its address, [USER@]HOST[:PORT] (USER: ubuntu, ",
        "enter one of these four words", "error:\033[0m server 'first'",
        "Name of the next server (Enter: no more): ", "there is a server of this name already",
        "Private key file (Enter: the agent and the keys in ~/.ssh): ", "there is no file ~/none yet",
        "next: remote prepare\n"}) {
    EXPECT_THAT(result.err, HasSubstr(words));
  }
  EXPECT_EQ(config().name, "model");
  ASSERT_EQ(config().servers.size(), 2U);
  EXPECT_EQ(config().servers[0].username, "u");
  EXPECT_EQ(config().servers[1].hostname, "::1");
  EXPECT_EQ(config().servers[0].private_key, world.home() / "none");
}

TEST_F(CommandInit, EnterTakesTheFoldersNameAndNoServers) {
  EXPECT_EQ(init({}, screen("\n\n\n")).code, 0);
  EXPECT_EQ(config().name, "my project");
  EXPECT_TRUE(config().servers.empty());
}

TEST_F(CommandInit, WhatTheOptionsSayIsNotAsked) {
  const CommandResult result = init({"--name", "model", "--server", "a=h", "--key", "~/none"}, screen());
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, Not(HasSubstr(": \n")));
  EXPECT_THAT(result.err, Not(HasSubstr("Name of")));
}

TEST_F(CommandInit, TheEndOfTheInputWritesNothing) {
  const CommandResult result = init({}, screen("name\nfirst\n\x04"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("the input ended before all questions were answered"),
                                HasSubstr("nothing was written")));
  EXPECT_FALSE(written());
}

TEST_F(CommandInit, WithStderrInAFileNobodyIsAsked) {
  EXPECT_EQ(init({}, {.in = true, .typed = "model\n"}).code, 0);
  EXPECT_EQ(config().name, "my project");
}

}  // namespace
}  // namespace remote::test
