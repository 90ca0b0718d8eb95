#include "servers/facts.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "support/instants.hpp"
#include "support/noise.hpp"

namespace remote::servers {
namespace {

constexpr auto parse_facts = [](std::string_view text) {
  return read_answer(text, FactsAnswer({{"tell_clock"}, {"tell_python", "packages"}})).facts;
};

std::string answer(const std::string& lines) {
  std::string text = "Welcome!\n@remote1 facts clock 1700000000\n@remote1 facts user ada\n";
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    text += "@remote1 facts " + lines.substr(begin, end - begin) + "\n";
    begin = end == std::string::npos ? lines.size() : end + 1;
  }
  if (lines.find("python ") == std::string::npos) {
    text += "@remote1 facts python 3.11.2 /usr/bin/python3\n";
  }
  return text + "@remote1 end\n";
}

TEST(ParseFacts, ReadsTheMachine) {
  const ServerFacts facts = parse_facts(answer(
      "host gpu1\nkernel 6.1.0-18-amd64\nos Debian GNU/Linux 12 (bookworm)\ncpu AMD EPYC 7763\ncores 2 128 "
      "256\n"
      "usable 64\nnuma 8\nuid 1000\nmemory 1056 1000\nmemory_limit 4096\ncpu_limit 150\nload 0.10 0.20 0.30\n"
      "limit nofile 1024\nlimit memlock unlimited\nhas rsync\nhas podman\ndriver 535.104.05\nsession yes\n"
      "kill_user_processes yes\nkill_excluded root bob\nlinger yes\ninfiniband mlx5_0 1 InfiniBand ACTIVE\n"
      "rate mlx5_0 1 200 Gb/sec (4X HDR)"));
  EXPECT_EQ(facts.host, "gpu1");
  EXPECT_EQ(facts.os, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(facts.sockets, 2);
  EXPECT_EQ(facts.cores, 128);
  EXPECT_EQ(facts.threads, 256);
  EXPECT_EQ(facts.usable_threads, 64);
  EXPECT_EQ(facts.numa_nodes, 8);
  EXPECT_EQ(facts.uid, 1000U);
  EXPECT_EQ(facts.memory, 1056U * 1024);
  EXPECT_EQ(facts.memory_available, 1000U * 1024);
  EXPECT_EQ(facts.memory_limit, 4096U);
  EXPECT_EQ(facts.cpu_limit, 1.5);
  EXPECT_EQ(facts.load, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(facts.limits, (LimitFacts{{"memlock", std::nullopt}, {"nofile", 1024}}));
  EXPECT_EQ(facts.programs, (std::set<std::string>{"podman", "rsync"}));
  EXPECT_EQ(facts.driver, "535.104.05");
  EXPECT_TRUE(facts.in_session && facts.kill_user_processes && facts.linger);
  EXPECT_EQ(facts.kill_excluded, (std::vector<std::string>{"root", "bob"}));
  ASSERT_EQ(facts.infiniband.size(), 1U);
  EXPECT_TRUE(facts.infiniband.front().active());
  EXPECT_EQ(facts.infiniband.front().rate, "200 Gb/sec (4X HDR)");
}

TEST(ParseFacts, ReadsDisks) {
  const ServerFacts facts = parse_facts(
      answer("there project\nwritable project\ndisk project 2049 ssd 4096 1000 10 500 400 ext2/ext3\n"
             "path project /home/ada/my proj\ndisk tmp 22 unknown 4096 5 5 0 0 tmpfs\npath tmp /tmp"));
  ASSERT_EQ(facts.disks.size(), 2U);
  const DiskFacts& project = *facts.disk("project");
  EXPECT_TRUE(project.there && project.writable);
  EXPECT_EQ(project.path, "/home/ada/my proj");
  EXPECT_EQ(project.total_bytes, 4096000U);
  EXPECT_EQ(project.free_bytes, 40960U);
  EXPECT_EQ(project.inodes, 500U);
  EXPECT_EQ(project.free_inodes, 400U);
  EXPECT_EQ(project.rotational, false);
  EXPECT_EQ(project.type, "ext2/ext3");
  EXPECT_FALSE(facts.disk("tmp")->rotational);
  EXPECT_FALSE(facts.disk("tmp")->there);
  EXPECT_EQ(facts.disk("shm"), nullptr);
}

TEST(ParseFacts, ReadsPythonAndItsPackages) {
  const ServerFacts facts = parse_facts(
      answer("python 3.11.2 /opt/my env/bin/python3\ntorch 2.1.0+cu121\ncuda 12.1\n"
             "package numpy-1.26.4.dist-info\npackage Foo_Bar.baz-1.0rc1.dist-info\n"
             "package old_thing-2.0-py3.11.egg-info\npackage nvidia_nccl_cu12-2.18.1.dist-info\n"
             "package *.egg-info\npackage ~umpy-1.26.3.dist-info\npackage odd name-1.dist-info\n"
             "package plain.egg-info\npackage numpy-1.20.0.dist-info\ndistribution six-1.16.0.egg-info"));
  EXPECT_EQ(facts.python, "3.11.2");
  EXPECT_EQ(facts.python_program, "/opt/my env/bin/python3");
  EXPECT_EQ(facts.torch, "2.1.0+cu121");
  EXPECT_EQ(facts.cuda, "12.1");
  EXPECT_EQ(facts.nccl, "2.18.1");
  const std::map<std::string, PackageFacts> expected = {{"numpy", {"1.26.4", false}},
                                                        {"foo-bar-baz", {"1.0rc1", false}},
                                                        {"old-thing", {"2.0", false}},
                                                        {"nvidia-nccl-cu12", {"2.18.1", false}},
                                                        {"six", {"1.16.0", true}}};
  EXPECT_EQ(facts.packages, expected);
  EXPECT_EQ(parse_facts(answer("python none")).python, "");
}

TEST(ParseFacts, TextFromAServerMovesNoCursor) {
  EXPECT_EQ(parse_facts(answer("os \x1b[2Jevil")).os, "\\x1b[2Jevil");
  EXPECT_LT(parse_facts(answer("cpu " + std::string(5000, 'x'))).cpu.size(), 300U);
}

TEST(ParseFacts, RefusesWhatItDoesNotUnderstand) {
  for (const char* line :
       {"colour blue", "cores 1 2", "cores 1 2 -3", "memory 1", "memory 99999999999999999999 1", "load 1 2",
        "load 1 2 nan", "uid -1", "session no", "disk project x ssd 4096 1 1 1 1 ext4",
        "disk project 1 floppy 4096 1 1 1 1 ext4", "disk project 1 ssd 0 1 1 1 1 ext4",
        "disk project 1 ssd 4096 99999999999999999 1 1 1 ext4", "has ../../x", "limit nofile many",
        "torch $(reboot)", "infiniband ../x 1 Ethernet ACTIVE", "host a\n@remote1 facts host b"}) {
    EXPECT_THROW(parse_facts(answer(line)), Error) << line;
  }
  EXPECT_THROW(parse_facts("@remote1 end\n"), Error);
  EXPECT_THROW(parse_facts("@remote1 facts clock 1\n"), Error);
  EXPECT_THROW(parse_facts("@remote1 error it cannot start a process there\n"), Error);
}

TEST(Facts, ClocksThatMayAgreeAgree) {
  EXPECT_EQ(clock_difference(instant(100), exact_instant(100'000), exact_instant(100'010)).count(), 0);
  EXPECT_EQ(clock_difference(instant(100), exact_instant(100'990), exact_instant(101'010)).count(), 0);
  EXPECT_EQ(clock_difference(instant(100), exact_instant(90'000), exact_instant(120'000)).count(),
            0);  // a slow answer proves nothing
  EXPECT_EQ(clock_difference(instant(160), exact_instant(100'000), exact_instant(100'500)).count(), 59500);
  EXPECT_EQ(clock_difference(instant(40), exact_instant(100'000), exact_instant(100'500)).count(), -59001);
}

}  // namespace
}  // namespace remote::servers
