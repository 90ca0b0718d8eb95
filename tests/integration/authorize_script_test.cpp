#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "servers/authorize.hpp"
#include "support/script_test.hpp"

// authorize.sh on the local shell, without ssh, under every sh that servers have.

namespace remote::servers {
namespace {

using State = AuthorizeReport::State;

const std::string blob = "AAAAC3NzaC1lZDI1NTE5AAAAIBgE0p0Q9n9mR8yq6b3zHnYH0C9JwXc0cGx4nR2vQqgk";
const std::string key_text = "ssh-ed25519 " + blob;

class AuthorizeScript : public testing::TestWithParam<test::ServerShell> {
 protected:
  // Runs it on a home folder whose authorized_keys is `before`; returns what it is then.
  std::string run(const std::string& before) {
    const auto file = servers_.home("one") / ".ssh/authorized_keys";
    make_folders(file.parent_path());
    write_file_atomic(file, before, 0666);
    report_ = run_action(*servers_.connect("one"),
                         authorize_action(parse_public_key(key_text + " ann", "k.pub")), Cancel());
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
    EXPECT_EQ(std::filesystem::status(file.parent_path()).permissions(), std::filesystem::perms(0700));
    return read_file(file);
  }
  test::LocalServers servers_{GetParam()};
  AuthorizeReport report_;
};

TEST_P(AuthorizeScript, AddsTheKeyOnce) {
  const std::string line = key_text + " ann\n";
  EXPECT_EQ(run(""), line);
  EXPECT_EQ(report_.state, State::added);
  EXPECT_EQ(run(line), line);
  EXPECT_EQ(report_.state, State::present);
  EXPECT_EQ(run("ssh-rsa AAAA other"), "ssh-rsa AAAA other\n" + line);  // a last line without its end
  EXPECT_EQ(run("# " + line), "# " + line + line);
  const std::string command = "command=\"echo " + key_text + " \" ssh-rsa AAAA other\n";
  EXPECT_EQ(run(command), command + line);
}

TEST_P(AuthorizeScript, FindsTheKeyUnderAnotherCommentOrOptions) {
  for (const std::string& there : {key_text, key_text + " other\r\n", " ssh-ed25519\t" + blob + "\tx\n"}) {
    EXPECT_EQ(run(there), there);
    EXPECT_EQ(report_.state, State::present) << there;
  }
  const std::string limited = "from=\"10.* x\\\"y\",no-pty " + key_text + "\n";
  EXPECT_EQ(run(limited), limited);
  EXPECT_EQ(report_.state, State::restricted);
  EXPECT_EQ(run(limited + key_text + "\n"), limited + key_text + "\n");
  EXPECT_EQ(report_.state, State::present);
}

TEST_P(AuthorizeScript, SaysWhyItCannot) {
  std::filesystem::create_directories(servers_.home("one") / ".ssh/authorized_keys");
  try {
    run_action(*servers_.connect("one"), authorize_action(parse_public_key(key_text, "k.pub")), Cancel());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("is not a file"));
  }
}

INSTANTIATE_TEST_SUITE_P(Shells, AuthorizeScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::servers
