#include "ssh/ssh_config.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::ssh {
namespace {

ConfigQuery query(const std::string& host) {
  return {.host = host, .user = "", .local_user = "me", .home = "/home/me", .exec = {}};
}

HostOptions read(const std::string& text, const std::string& host) {
  return read_ssh_config({{"/home/me/.ssh/config", text, "/home/me/.ssh"}}, query(host));
}

std::string value(const HostOptions& options, const std::string& key) {
  const ConfigValue* found = options.find(key);
  return found == nullptr ? "(none)" : found->text;
}

TEST(SshConfig, TheFirstValueWinsAndKnowsItsLine) {
  const auto options = read("Host a\n  Port 1\n\nHost *\n  Port 2\n  User u\n", "a");
  EXPECT_EQ(value(options, "port"), "1");
  EXPECT_EQ(options.find("port")->origin, "~/.ssh/config:2");
  EXPECT_EQ(options.find("user")->origin, "~/.ssh/config:6");
  EXPECT_EQ(value(options, "hostname"), "(none)");
}

TEST(SshConfig, HostPatternsAndNegation) {
  const std::string text = "Host *.example.com !bad.example.com x?\n  User u\n";
  EXPECT_EQ(value(read(text, "a.example.com"), "user"), "u");
  EXPECT_EQ(value(read(text, "bad.example.com"), "user"), "(none)");
  EXPECT_EQ(value(read(text, "xy"), "user"), "u");
  EXPECT_EQ(value(read(text, "xyz"), "user"), "(none)");
  EXPECT_EQ(value(read("Host !a\n User u\n", "b"), "user"), "(none)");  // only a negation matches nothing
}

TEST(SshConfig, EqualsSignsQuotesAndComments) {
  const auto options = read(
      "# c\nhost=a\n\tHOSTNAME = \"h h\"\r\n IdentityFile \"/a b/c\"\n  User=me # not me\n"
      " ProxyCommand nc \"%h\" %p # kept\n Port\t22\n",
      "a");
  EXPECT_EQ(value(options, "hostname"), "h h");
  EXPECT_EQ(value(options, "identityfile"), "/a b/c");
  EXPECT_EQ(value(options, "user"), "me");
  EXPECT_EQ(value(options, "proxycommand"), "nc \"%h\" %p # kept");
  EXPECT_EQ(value(options, "port"), "22");
}

TEST(SshConfig, IdentityFilesAddUp) {
  const auto options = read("Host a\n IdentityFile x\nHost *\n IdentityFile y\n IdentityFile x\n", "a");
  ASSERT_EQ(options.all("identityfile").size(), 2U);
  EXPECT_EQ(options.all("identityfile")[1].text, "y");
  EXPECT_EQ(options.all("identityfile")[1].origin, "~/.ssh/config:4");
}

TEST(SshConfig, MatchCriteria) {
  const std::string text =
      "Host alias\n  HostName real.example.com\n"
      "Match host real.* originalhost alias\n  Port 1\n"
      "Match host alias\n  User wrong\n"
      "Match !host real.* \n  User wrong\n"
      "Match localuser you,me user me\n  ProxyJump j\n"
      "Match user=me all\n  ConnectTimeout 3\n"
      "Match tagged x\n  User wrong\n";
  const auto options = read(text, "alias");
  EXPECT_EQ(value(options, "port"), "1");
  EXPECT_EQ(value(options, "user"), "(none)");
  EXPECT_EQ(value(options, "proxyjump"), "j");
  EXPECT_EQ(value(options, "connecttimeout"), "3");
  ASSERT_EQ(options.warnings().size(), 1U);
  EXPECT_NE(options.warnings()[0].find("config:13"), std::string::npos);
}

TEST(SshConfig, MatchExecRunsOnlyWhereItCanMatter) {
  std::vector<std::string> ran;
  ConfigQuery asked = query("a");
  asked.exec = [&](const std::string& command) {
    ran.push_back(command);
    return command == "yes a me";
  };
  const auto options = read_ssh_config({{"/f",
                                         "Match host b exec \"never\"\n User 1\nMatch exec \"no\"\n User "
                                         "2\nMatch exec \"yes %n %u\"\n User 3\n",
                                         "/"}},
                                       asked);
  EXPECT_EQ(value(options, "user"), "3");
  EXPECT_EQ(ran, (std::vector<std::string>{"no", "yes a me"}));
}

TEST(SshConfig, MatchFinalIsReadLast) {
  const auto options =
      read("Match final\n  User late\nHost a\n  User early\nMatch final host a\n Port 5\n", "a");
  EXPECT_EQ(value(options, "user"), "early");
  EXPECT_EQ(value(options, "port"), "5");
}

TEST(SshConfig, ProxyJumpAndProxyCommandExcludeEachOther) {
  EXPECT_EQ(value(read("ProxyJump j\nProxyCommand c\n", "a"), "proxycommand"), "(none)");
  EXPECT_EQ(value(read("ProxyCommand c\nProxyJump j\n", "a"), "proxyjump"), "(none)");
}

TEST(SshConfig, IncludeIsPartOfItsBlock) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "one.conf", "User included\nHost other\n  Port 9\n");
  write_file_atomic(folder.path() / "two.conf", "Port 7\n");
  const std::string text = "Host a\n  Include *.conf missing.conf\n  ConnectTimeout 4\n";
  const auto at = [&](const std::string& host) {
    return read_ssh_config({{folder.path() / "config", text, folder.path()}}, query(host));
  };
  EXPECT_EQ(value(at("a"), "user"), "included");
  EXPECT_EQ(value(at("a"), "port"), "7");
  EXPECT_EQ(value(at("a"), "connecttimeout"), "4");  // the block continues after the Include
  EXPECT_EQ(value(at("other"), "port"), "(none)");   // a block inside an Include that does not apply
  EXPECT_EQ(at("a").find("port")->origin, (folder.path() / "two.conf").string() + ":1");
}

TEST(SshConfig, ALoopOfIncludesEnds) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "loop.conf", "Include loop.conf\nInclude loop.conf\nUser u\n");
  const auto options =
      read_ssh_config({{folder.path() / "config", "Include loop.conf\n", folder.path()}}, query("a"));
  EXPECT_EQ(value(options, "user"), "u");
  EXPECT_FALSE(options.warnings().empty());
}

TEST(SshConfig, Tokens) {
  const Tokens tokens{{'h', "host"}, {'p', "22"}};
  EXPECT_EQ(expand_tokens("nc %h %p 100%% %z %", tokens), "nc host 22 100% %z %");
  EXPECT_EQ(expand_path("~/%h", tokens, "/home/me"), "/home/me/host");
  ::setenv("REMOTE_TEST_VARIABLE", "v", 1);
  EXPECT_EQ(expand_path("/x/${REMOTE_TEST_VARIABLE}/${NO_SUCH_VARIABLE}y", tokens, "/"), "/x/v/y");
}

TEST(SshConfig, OddInputIsPassedBy) {
  for (const char* text : {"", "\n\n", "Host", "Host \"", "=", "Match", "Match host", "Match !", "Include",
                           "Include \"", "User", "\"", "Host a\n\"User\" u", "Match exec", "Host =", "\\"}) {
    EXPECT_NO_THROW(read(text, "a")) << text;
  }
}

}  // namespace
}  // namespace remote::ssh
