#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "ssh/ssh_config.hpp"

namespace remote::ssh {
namespace {

// Compares with OpenSSH's own interpretation of a configuration.
class Oracle : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("ssh")) {
      GTEST_SKIP() << "no ssh to compare with";
    }
  }
  // The values that `ssh -G` prints for a keyword.
  std::vector<std::string> openssh(const std::string& text, const std::string& host, const std::string& key) {
    write_file_atomic(folder.path() / "config", text);
    SubprocessSpec spec;
    spec.argv = {"ssh", "-G", "-F", (folder.path() / "config").string(), host};
    const ExecResult result = run_subprocess(std::move(spec));
    EXPECT_TRUE(result.status.success()) << result.err;
    std::vector<std::string> values;
    for (const std::string& line : split(result.out, '\n')) {
      if (line.starts_with(key + " ")) {
        values.push_back(line.substr(key.size() + 1));
      }
    }
    return values;
  }
  std::vector<std::string> ours(const std::string& text, const std::string& host, const std::string& key) {
    ConfigQuery asked;
    asked.host = host;
    asked.local_user = "me";
    asked.home = "/home/me";
    asked.exec = [](const std::string& command) {
      SubprocessSpec spec;
      spec.argv = {"sh", "-c", command};
      return run_subprocess(std::move(spec)).status.success();
    };
    const auto options = read_ssh_config({{folder.path() / "config", text, folder.path()}}, asked);
    std::vector<std::string> values;
    for (const ConfigValue& found : options.all(key)) {
      values.push_back(key == "hostname" ? expand_tokens(found.text, {{'h', host}}) : found.text);
    }
    return values;
  }
  TempFolder folder;
};

TEST_F(Oracle, AgreesWithOpenSsh) {
  const std::string text =
      "Host alpha beta\n"
      "  HostName %h.example.com\n"
      "  IdentityFile /k/first\n"
      "Host \"quoted\" gamma*\n"
      "  User = \"name\"\n"
      "  Port=2200\n"
      "Match host *.example.com\n"
      "  User matched\n"
      "  ProxyJump jump@gate:2222,second\n"
      "Match originalhost gamma1 exec \"test %n = gamma1\"\n"
      "  ProxyCommand nc -x proxy:1080 \"%h\" %p\n"
      "  IdentitiesOnly yes\n"
      "Match !originalhost alpha,quoted\n"
      "  ConnectTimeout 17\n"
      "Match final host alpha.*\n"
      "  Port 4444\n"
      "Host *\n"
      "  Port 3333\n"
      "  IdentityFile /k/second\n"
      "  CertificateFile /k/cert\n"
      "  ConnectTimeout 5\n"
      "  StrictHostKeyChecking accept-new\n";
  for (const std::string host :
       {"alpha", "beta", "quoted", "gamma1", "gamma2", "delta.example.com", "other"}) {
    for (const std::string key : {"port", "identityfile", "proxyjump", "certificatefile", "connecttimeout"}) {
      EXPECT_EQ(ours(text, host, key), openssh(text, host, key)) << host << " " << key;
    }
    for (const std::string key : {"hostname", "user", "proxycommand"}) {
      const auto found = ours(text, host, key);
      if (!found.empty()) {
        EXPECT_EQ(found, openssh(text, host, key)) << host << " " << key;
      }
    }
    const auto only = ours(text, host, "identitiesonly");
    EXPECT_EQ(only.empty() ? "no" : only[0], openssh(text, host, "identitiesonly").at(0)) << host;
  }
}

}  // namespace
}  // namespace remote::ssh
