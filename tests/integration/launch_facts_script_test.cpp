#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/facts.hpp"
#include "support/paths.hpp"

// What a launch asks of its servers: facts.sh on the shells there are.

namespace remote::servers {
namespace {

namespace fs = std::filesystem;

// A socket that listens on a free port of 127.0.0.1 (or ::1), and is closed with the object.
class Listener {
 public:
  explicit Listener(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage address{};
    socklen_t size = 0;
    if (family == AF_INET) {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
      v4->sin_family = AF_INET;
      v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof *v4;
    } else {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
      v6->sin6_family = AF_INET6;
      v6->sin6_addr = in6addr_loopback;
      size = sizeof *v6;
    }
    good_ = fd_ && ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
            ::listen(fd_.get(), 1) == 0 &&
            ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
    port_ = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in*>(&address)->sin_port
                                    : reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  }
  bool good() const { return good_; }
  int port() const { return port_; }
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  bool good_ = false;
  int port_ = 0;
};

class LaunchFactsScript : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_program(split(GetParam(), ' ').front())) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
  }
  static FactsAnswer ask(const FactsRequest& request) {
    SubprocessSpec spec;
    spec.argv = split(GetParam(), ' ');
    spec.argv.insert(spec.argv.end(), {"-c", ". \"$remote_program/main.sh\""});
    spec.set_env = {{"remote_program", test::source_folder + std::string("/src/server")}};
    const ExecResult result = run_subprocess(spec, facts_action(request).script.open_input());
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(result.status.success()) << result.status.describe();
    return read_answer(result.out, FactsAnswer(request.parts));
  }
  static FactsAnswer way(const std::string& address, const char* ip = "ip") {
    return ask({.parts = {{"tell_route", address, ip}}});
  }
};

TEST_P(LaunchFactsScript, OnlyANewPythonCountsAndTheEnvironmentsFirst) {
  const TempFolder temp("remote-facts-");
  const auto put = [&](const char* name, const char* version) {
    write_file_atomic(temp.path() / name, std::string("#!/bin/sh\necho Python ") + version + "\n");
    fs::permissions(temp.path() / name, fs::perms::owner_all);
  };
  const auto python = [&] {
    return ask({.parts = {{"tell_python"}}, .activate = "PATH='" + temp.path().string() + "'"}).facts.python;
  };
  const auto of_the_server = python();
  put("python", "2.7.18");
  EXPECT_EQ(python(), of_the_server);
  put("python3", "3.5.10");
  EXPECT_EQ(python(), of_the_server);
  put("python3", "3.6.1");
  EXPECT_EQ(python(), "3.6.1");
  put("python3", "3.13.0");
  EXPECT_EQ(python(), "3.13.0");
}

TEST_P(LaunchFactsScript, LooksForWhatWouldHarmALaunch) {
  const TempFolder temp("remote-facts-");
  const fs::path root = temp.path() / "the root";
  const fs::path env = temp.path() / "my env";
  fs::create_directories(root / "run/systemd/system");
  fs::create_directories(root / "etc/systemd/logind.conf.d");
  fs::create_directories(env / "lib/python3.9/site-packages/torch");
  write_file_atomic(env / "lib/python3.9/site-packages/torch/version.py",
                    "__all__ = ['__version__', 'cuda']\n__version__ = '2.1.0+cu121'\n"
                    "cuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n");
  write_file_atomic(env / "pyvenv.cfg", "home = /usr/bin\nversion = 3.9.18\n");
  fs::create_directories(env / "bin");
  write_file_atomic(env / "bin/python3", "#!/bin/sh\necho Python 3.9.18\n", 0755);
  fs::create_directories(root / "sys/module/nvidia");
  write_file_atomic(root / "sys/module/nvidia/version", "550.54.15\n");
  write_file_atomic(root / "etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 7 (seven)\"\nID=x\n");
  fs::create_directories(root / "proc/self");
  write_file_atomic(root / "proc/self/status", "Cpus_allowed_list:\t0-3\n");
  const FactsRequest request{.parts = {{"tell_clock"},
                                       {"tell_machine"},
                                       {"tell_logind"},
                                       {"tell_disks", "project"},
                                       {"tell_python"}},
                             .project = temp.path() / "not" / "there",
                             .environment = env,
                             .activate = "PATH='" + (env / "bin").string() + "':$PATH",
                             .root = root};
  const FactsAnswer answer = ask(request);
  const DiskFacts* disk = answer.facts.disk("project");
  ASSERT_NE(disk, nullptr);
  struct statvfs info {};
  ASSERT_EQ(::statvfs(temp.path().c_str(), &info), 0);
  EXPECT_EQ(disk->inodes, info.f_files);
  EXPECT_LE(std::chrono::abs(now_seconds() - answer.clock), std::chrono::minutes(1));
  EXPECT_EQ(answer.facts.torch, "2.1.0+cu121");
  EXPECT_EQ(answer.facts.cuda, "12.1");
  EXPECT_EQ(answer.facts.hip, "");
  EXPECT_EQ(answer.facts.python, "3.9.18");
  EXPECT_TRUE(answer.facts.packages.empty());
  EXPECT_EQ(answer.facts.driver, "550.54.15");
  EXPECT_EQ(answer.facts.os, "Some Linux 7 (seven)");
  const auto ends_at_logout = [&] { return logout_ends_jobs(ask(request).facts, "ada"); };
  EXPECT_FALSE(ends_at_logout());
  write_file_atomic(root / "proc/self/cgroup",
                    "1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/\n");
  write_file_atomic(root / "etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_FALSE(ends_at_logout());
  write_file_atomic(root / "etc/systemd/logind.conf.d/a.conf",
                    "[Login]\n KillUserProcesses\t= Yes \nKillExcludeUsers=nobody x");
  EXPECT_TRUE(ends_at_logout());
  EXPECT_EQ(ask(request).facts.kill_excluded, (std::vector<std::string>{"nobody", "x"}));
  write_file_atomic(root / "proc/self/cgroup", "0::/system.slice/docker-1.scope\n");
  EXPECT_FALSE(ends_at_logout()) << "the login is in no session of logind";
  write_file_atomic(root / "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-c1.scope/part\n");
  EXPECT_TRUE(ends_at_logout());
  write_file_atomic(root / "etc/systemd/logind.conf.d/b.conf", "[Login]\nKillOnlyUsers=nobody\n");
  EXPECT_FALSE(ends_at_logout()) << "it is for another user";
  write_file_atomic(root / "etc/os-release", "PRETTY_NAME='a\x1b[31m'\n");
  EXPECT_EQ(ask(request).facts.os, "a\\x1b[31m");
}

TEST_P(LaunchFactsScript, SaysWhetherAJobWouldFindTheProgram) {
  const TempFolder temp("remote-facts-");
  const fs::path env = temp.path() / "my env";
  const std::string program = "no-such-python";
  FactsRequest request{.parts = {{"tell_program", program}}};
  EXPECT_EQ(ask(request).missing, program);
  fs::create_directories(env / "bin");
  write_file_atomic(env / "bin" / program, "#!/bin/sh\n", 0755);
  request.environment = env;
  EXPECT_EQ(ask(request).missing, "");
  request.environment = "";
  request.activate = "PATH='" + (env / "bin").string() + "':$PATH";
  EXPECT_EQ(ask(request).missing, "");
}

TEST_P(LaunchFactsScript, TellsAboutThisMachine) {
  const FactsAnswer answer = ask({.parts = {{"tell_machine"}, {"tell_route", "127.0.0.1", "ip"}}});
  EXPECT_FALSE(answer.facts.host.empty());
  EXPECT_EQ(answer.cpus(), std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(answer.interface, "lo");
  EXPECT_EQ(answer.master_address, "127.0.0.1");
  EXPECT_FALSE(answer.port_free);
  EXPECT_FALSE(answer.suggested_port);
}

TEST_P(LaunchFactsScript, FindsTheWayAlsoWithoutIp) {
  EXPECT_EQ(way("127.0.0.9", "no-such-ip").interface, "lo");
  EXPECT_FALSE(way("::1", "no-such-ip").interface);
  const std::string outside = "198.51.100.7";
  const FactsAnswer with = way(outside);
  const FactsAnswer without = way(outside, "no-such-ip");
  EXPECT_EQ(with.interface, without.interface);
  if (!with.source.empty()) {
    // The master's own address: the interface that has it, not lo, which the others could not reach.
    EXPECT_EQ(way(with.source).interface, with.interface);
  }
}

TEST_P(LaunchFactsScript, ResolvesNamesOrSaysSo) {
  EXPECT_EQ(way("localhost").interface, "lo");
  EXPECT_FALSE(way("no-such-host.invalid").resolved);
  EXPECT_FALSE(way("'; echo @remote1 end; '").resolved);
}

TEST_P(LaunchFactsScript, SeesWhoHoldsAPort) {
  for (const int family : {AF_INET, AF_INET6}) {
    Listener listener(family);
    if (!listener.good()) {
      continue;  // no IPv6 here
    }
    const FactsAnswer taken = ask({.parts = {{"tell_port", std::to_string(listener.port())}}});
    EXPECT_EQ(taken.port_free, false);
    ASSERT_TRUE(taken.holder);
    EXPECT_EQ(taken.holder->pid, ::getpid());
    EXPECT_EQ(taken.holder->program, std::string(program_invocation_short_name).substr(0, 15));
    ASSERT_TRUE(taken.suggested_port);
    EXPECT_NE(*taken.suggested_port, listener.port());
    listener.close();
    EXPECT_EQ(ask({.parts = {{"tell_port", std::to_string(listener.port())}}}).port_free, true);
  }
}

TEST_P(LaunchFactsScript, SuggestsAPortOutsideTheKernelsRange) {
  const FactsAnswer answer = ask({.parts = {{"tell_port", std::to_string(0)}}});
  EXPECT_FALSE(answer.port_free);
  ASSERT_TRUE(answer.suggested_port);
  EXPECT_GE(*answer.suggested_port, 20000);
  EXPECT_LE(*answer.suggested_port, 32767);
  ASSERT_TRUE(answer.second_port);
  EXPECT_GE(*answer.second_port, 20000);
  EXPECT_NE(*answer.second_port, *answer.suggested_port);
}

INSTANTIATE_TEST_SUITE_P(Shells, LaunchFactsScript, ::testing::Values("sh", "dash", "bash", "busybox sh"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find(' '));
                         });

}  // namespace
}  // namespace remote::servers
