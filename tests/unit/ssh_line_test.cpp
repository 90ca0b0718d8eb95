#include "config/ssh_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote::test {
namespace {

using config::parse_ssh_line;
using config::SshLine;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SshLine, OfProviders) {
  const SshLine vast =
      parse_ssh_line("ssh -p 40022 root@ssh5.example -i ~/.ssh/id_ed25519 -L 8080:localhost:8080", "x");
  EXPECT_EQ(vast.hostname, "ssh5.example");
  EXPECT_EQ(vast.username, "root");
  EXPECT_EQ(vast.port, 40022);
  EXPECT_EQ(vast.private_key, "~/.ssh/id_ed25519");
  EXPECT_THAT(vast.left_out, ElementsAre("-L 8080:localhost:8080"));
  const SshLine plain = parse_ssh_line("ssh ubuntu@192.0.2.7", "x");
  EXPECT_EQ(plain.hostname, "192.0.2.7");
  EXPECT_FALSE(plain.port);
  EXPECT_THAT(plain.left_out, IsEmpty());
}

TEST(SshLine, EachFormOfAnOption) {
  const SshLine line = parse_ssh_line(
      "ssh -NTp2222 -l ada -J me@gate:22 -o StrictHostKeyChecking=no -oIdentityFile=/k -A -- host.example",
      "x");
  EXPECT_EQ(line.port, 2222);
  EXPECT_EQ(line.username, "ada");
  EXPECT_EQ(line.proxy_jump, "me@gate:22");
  EXPECT_EQ(line.private_key, "/k");
  EXPECT_EQ(line.hostname, "host.example");
  EXPECT_THAT(line.left_out, ElementsAre("-N", "-T", "-o StrictHostKeyChecking=no", "-A"));
  EXPECT_EQ(parse_ssh_line("ssh -o 'HostName 192.0.2.1' -o Port=3 alias", "x").hostname, "192.0.2.1");
  const SshLine uri = parse_ssh_line("ssh ssh://root@[2001:db8::1]:40022/", "x");
  EXPECT_EQ(uri.hostname, "2001:db8::1");
  EXPECT_EQ(uri.port, 40022);
  EXPECT_THAT(parse_ssh_line("ssh h.example -p 3 nvidia-smi -L", "x").left_out,
              ElementsAre("the command nvidia-smi -L"));
}

TEST(SshLine, RefusesWhatNamesNoMachine) {
  for (const char* text : {"ssh", "ssh -p 22", "ssh -p", "ssh -p x host", "ssh -p 70000 host", "ssh root@",
                           "ssh host:22", "ssh 'a b'", "ssh -p '' host", "ssh -l"}) {
    EXPECT_THROW(parse_ssh_line(text, "x"), Error) << text;
  }
}

}  // namespace
}  // namespace remote::test
