#include "agent/host/login_path.hpp"

#include "agent/gpu_host.hpp"
#include "agent/host/files.hpp"

namespace remote::agent {
namespace {

using LoginPath = test::GpuHost;

TEST_F(LoginPath, IsWhatTheStartFilesMakeOfIt) {
  put(host.home / ".profile", "echo welcome\nPATH=$HOME/site:$PATH\n");
  const std::string before = host.variable("PATH");
  const std::string path = read_login_path(host);
  EXPECT_TRUE(path.starts_with((host.home / "site").string() + ":/")) << path;
  EXPECT_EQ(add_login_path(host).variable("PATH"), before + ":" + path);
}

TEST_F(LoginPath, IsNotAddedTwice) {
  put(host.home / ".profile", "PATH=/usr/bin\n");
  const Host once = add_login_path(host);
  EXPECT_EQ(once.variable("PATH"), host.variable("PATH") + ":/usr/bin");
  EXPECT_EQ(add_login_path(once).variable("PATH"), once.variable("PATH"));
}

TEST_F(LoginPath, IsUnknownForAShellThatDoesNotAnswer) {
  const std::string before = host.variable("PATH");
  add_program("odd-shell", "echo '@path relative'\n");
  host.environment["SHELL"] = (folder / "bin/odd-shell").string();
  EXPECT_EQ(add_login_path(host).variable("PATH"), before);
  host.environment["SHELL"] = (folder / "bin/no-such-shell").string();
  EXPECT_EQ(read_login_path(host), "");
  host.environment["SHELL"] = "";
  put(host.home / ".profile", "PATH=/a\n");
  EXPECT_EQ(read_login_path(host), "/a") << "/bin/sh is asked";
}

TEST_F(LoginPath, IsAskedOnce) {
  put(host.home / ".profile", "echo x >>\"$HOME/asked\"\nPATH=/a\n");
  EXPECT_EQ(read_login_path(host), "/a");
  EXPECT_EQ(read_login_path(host), "/a");
  EXPECT_EQ(read_lines(host.home / "asked").size(), 1U);
}

}  // namespace
}  // namespace remote::agent
