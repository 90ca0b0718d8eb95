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

TEST(SshLine, AsItIsPasted) {
  for (const char* text :
       {"$ ssh -p 40022 root@h.example", "root@c1:~# ssh -p 40022 root@h.example",
        "[me@c1 ~]$ ssh -p 40022 root@h.example", "ssh://root@h.example:40022",
        "% /usr/bin/ssh -p 40022 root@h.example   # machine 7", "ssh.exe root@h.example -p 40022",
        "sudo ssh -p 40022 root@h.example", "sshpass -p secret ssh -p 40022 root@h.example"}) {
    ASSERT_TRUE(config::is_ssh_line(text)) << text;
    const SshLine line = parse_ssh_line(text, "x");
    EXPECT_EQ(line.hostname, "h.example") << text;
    EXPECT_EQ(line.username, "root") << text;
    EXPECT_EQ(line.port, 40022) << text;
  }
  EXPECT_THAT(parse_ssh_line("sshpass -p secret ssh root@h.example", "x").left_out, ElementsAre("sshpass"));
  const SshLine windows = parse_ssh_line("ssh -i C:\\Users\\ada\\key root@h.example", "x");
  EXPECT_FALSE(windows.private_key);
  EXPECT_THAT(windows.left_out, ElementsAre("-i with a path of Windows"));
}

TEST(SshLine, OtherProgramsAreNamed) {
  for (const char* text :
       {"scp -P 40022 x root@h.example:/w", "mosh root@h.example", "gcloud compute ssh vm1",
        "$ autossh -M 0 root@h.example", "sudo mosh h.example"}) {
    EXPECT_FALSE(config::is_ssh_line(text)) << text;
    EXPECT_THROW(config::refuse_other_command(text, "x"), Error) << text;
  }
  for (const char* text : {"h.example", "root@h.example:40022", "[2001:db8::1]:22", "", "''", "#"}) {
    EXPECT_FALSE(config::is_ssh_line(text)) << text;
    EXPECT_NO_THROW(config::refuse_other_command(text, "x")) << text;
  }
}

TEST(SshLine, RefusesWhatNamesNoMachine) {
  for (const char* text : {"ssh", "ssh -p 22", "ssh -p", "ssh -p x host", "ssh -p 70000 host", "ssh root@",
                           "ssh host:22", "ssh 'a b'", "ssh -p '' host", "ssh -l"}) {
    EXPECT_THROW(parse_ssh_line(text, "x"), Error) << text;
  }
}

}  // namespace
}  // namespace remote::test
