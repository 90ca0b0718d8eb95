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

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/probe.hpp"
#include "support/paths.hpp"

// probe.sh on the shells there are.

namespace remote::servers {
namespace {

namespace fs = std::filesystem;

constexpr auto parse_probe = [](std::string_view text) { return read_answer<ProbeAnswer>(text); };

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

class ProbeScript : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_program(split(GetParam(), ' ').front())) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
  }
  static ProbeAnswer ask(const ProbeRequest& request) {
    SubprocessSpec spec;
    spec.argv = split(GetParam(), ' ');
    spec.argv.insert(spec.argv.end(), {"-c", ". \"$remote_program/main.sh\""});
    spec.set_env = {{"remote_program", test::source_folder + std::string("/src/server")}};
    const ExecResult result = run_subprocess(spec, probe_action(request).script.open_input());
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(result.status.success()) << result.status.describe();
    return parse_probe(result.out);
  }
};

TEST_P(ProbeScript, OnlyANewPythonCountsAndTheEnvironmentsFirst) {
  const TempFolder temp("remote-probe-");
  const auto put = [&](const char* name, const char* version) {
    write_file_atomic(temp.path() / name, std::string("#!/bin/sh\necho Python ") + version + "\n");
    fs::permissions(temp.path() / name, fs::perms::owner_all);
  };
  const auto python = [&] {
    return ask({.master_addr = "127.0.0.1", .activate = "PATH='" + temp.path().string() + "'"}).python;
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

TEST_P(ProbeScript, LooksForWhatWouldHarmALaunch) {
  const TempFolder temp("remote-probe-");
  const fs::path root = temp.path() / "the root";
  const fs::path env = temp.path() / "my env";
  fs::create_directories(root / "run/systemd/system");
  fs::create_directories(root / "etc/systemd/logind.conf.d");
  fs::create_directories(env / "lib/python3.9/site-packages/torch");
  write_file_atomic(env / "lib/python3.9/site-packages/torch/version.py",
                    "__all__ = ['__version__', 'cuda']\n__version__ = '2.1.0+cu121'\n"
                    "cuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n");
  write_file_atomic(env / "pyvenv.cfg", "home = /usr/bin\nversion = 3.9.18\n");
  fs::create_directories(root / "sys/module/nvidia");
  write_file_atomic(root / "sys/module/nvidia/version", "550.54.15\n");
  write_file_atomic(root / "etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 7 (seven)\"\nID=x\n");
  ProbeRequest request{.master_addr = "127.0.0.1"};
  EXPECT_FALSE(ask(request).room);
  request.project = temp.path() / "not" / "there";
  request.environment = env;
  request.root = root;
  const ProbeAnswer answer = ask(request);
  ASSERT_TRUE(answer.room);
  struct statvfs info {};
  ASSERT_EQ(::statvfs(temp.path().c_str(), &info), 0);
  EXPECT_EQ(answer.room->inodes, info.f_files);
  EXPECT_NEAR(static_cast<double>(*answer.clock), static_cast<double>(std::time(nullptr)), 60);
  EXPECT_EQ(answer.torch, "2.1.0+cu121");
  EXPECT_EQ(answer.cuda, "12.1");
  EXPECT_EQ(answer.hip, "");
  EXPECT_EQ(answer.env_python, "3.9.18");
  EXPECT_EQ(answer.driver, "550.54.15");
  EXPECT_EQ(answer.os, "Some Linux 7 (seven)");
  EXPECT_FALSE(answer.kernel.empty());
  const auto ends_at_logout = [&] { return ask(request).logout.ends_jobs_of("ada"); };
  EXPECT_FALSE(ends_at_logout());
  fs::create_directories(root / "proc/self");
  write_file_atomic(root / "proc/self/cgroup",
                    "1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/\n");
  write_file_atomic(root / "etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_FALSE(ends_at_logout());
  write_file_atomic(root / "etc/systemd/logind.conf.d/a.conf",
                    "[Login]\n KillUserProcesses\t= Yes \nKillExcludeUsers=nobody x");
  EXPECT_TRUE(ends_at_logout());
  EXPECT_EQ(ask(request).logout.excluded, (std::vector<std::string>{"nobody", "x"}));
  write_file_atomic(root / "proc/self/cgroup", "0::/system.slice/docker-1.scope\n");
  EXPECT_FALSE(ends_at_logout()) << "the login is in no session of logind";
  write_file_atomic(root / "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-c1.scope/part\n");
  EXPECT_TRUE(ends_at_logout());
  write_file_atomic(root / "etc/systemd/logind.conf.d/b.conf", "[Login]\nKillOnlyUsers=nobody\n");
  EXPECT_FALSE(ends_at_logout()) << "it is for another user";
  // What a file of a server holds is told only where it can be printed, and once.
  write_file_atomic(root / "etc/os-release", "PRETTY_NAME='a\x1b[31m'\n");
  write_file_atomic(env / "pyvenv.cfg", "version_info = 3.10.4.final.0\nversion = 9\n");
  EXPECT_EQ(ask(request).os, "");
  EXPECT_EQ(ask(request).env_python, "3.10.4");
  fs::remove(env / "pyvenv.cfg");
  fs::create_directories(env / "conda-meta");
  write_file_atomic(env / "conda-meta/python-3.11.5-h955ad1f_0.json", "{}");
  EXPECT_EQ(ask(request).env_python, "3.11.5");
}

TEST_P(ProbeScript, SaysWhetherAJobWouldFindTheProgram) {
  const TempFolder temp("remote-probe-");
  const fs::path env = temp.path() / "my env";
  const std::string program = "no-such-python";
  ProbeRequest request{.master_addr = "127.0.0.1"};
  EXPECT_EQ(ask(request).missing, "");
  request.program = program;
  EXPECT_EQ(ask(request).missing, program);
  fs::create_directories(env / "bin");
  write_file_atomic(env / "bin" / program, "#!/bin/sh\n", 0755);
  request.environment = env;
  EXPECT_EQ(ask(request).missing, "");
  request.environment = "";
  request.activate = "PATH='" + (env / "bin").string() + "':$PATH";
  EXPECT_EQ(ask(request).missing, "");
}

TEST_P(ProbeScript, TellsAboutThisMachine) {
  const ProbeAnswer answer = ask({.master_addr = "127.0.0.1"});
  EXPECT_FALSE(answer.host.empty());
  EXPECT_EQ(answer.cpus, std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(answer.interface, "lo");
  EXPECT_EQ(answer.master_address, "127.0.0.1");
  EXPECT_FALSE(answer.port_free);
  EXPECT_FALSE(answer.suggested_port);
}

TEST_P(ProbeScript, FindsTheWayAlsoWithoutIp) {
  EXPECT_EQ(ask({.master_addr = "127.0.0.9", .ip_program = "no-such-ip"}).interface, "lo");
  EXPECT_FALSE(ask({.master_addr = "::1", .ip_program = "no-such-ip"}).interface);
  const std::string outside = "198.51.100.7";
  const ProbeAnswer with = ask({.master_addr = outside});
  const ProbeAnswer without = ask({.master_addr = outside, .ip_program = "no-such-ip"});
  EXPECT_EQ(with.interface, without.interface);
  if (!with.source.empty()) {
    // The master's own address: the interface that has it, not lo, which the others could not reach.
    EXPECT_EQ(ask({.master_addr = with.source}).interface, with.interface);
  }
}

TEST_P(ProbeScript, ResolvesNamesOrSaysSo) {
  EXPECT_EQ(ask({.master_addr = "localhost"}).interface, "lo");
  EXPECT_FALSE(ask({.master_addr = "no-such-host.invalid"}).resolved);
  EXPECT_FALSE(ask({.master_addr = "'; echo @remote1 end; '"}).resolved);
}

TEST_P(ProbeScript, SeesWhoHoldsAPort) {
  for (const int family : {AF_INET, AF_INET6}) {
    Listener listener(family);
    if (!listener.good()) {
      continue;  // no IPv6 here
    }
    const ProbeAnswer taken = ask({.master_addr = "127.0.0.1", .master_port = listener.port()});
    EXPECT_EQ(taken.port_free, false);
    ASSERT_TRUE(taken.holder);
    EXPECT_EQ(taken.holder->pid, ::getpid());
    EXPECT_EQ(taken.holder->program, std::string(program_invocation_short_name).substr(0, 15));
    ASSERT_TRUE(taken.suggested_port);
    EXPECT_NE(*taken.suggested_port, listener.port());
    listener.close();
    EXPECT_EQ(ask({.master_addr = "127.0.0.1", .master_port = listener.port()}).port_free, true);
  }
}

TEST_P(ProbeScript, SuggestsAPortOutsideTheKernelsRange) {
  const ProbeAnswer answer = ask({.master_addr = "127.0.0.1", .master_port = 0});
  EXPECT_FALSE(answer.port_free);
  ASSERT_TRUE(answer.suggested_port);
  EXPECT_GE(*answer.suggested_port, 20000);
  EXPECT_LE(*answer.suggested_port, 32767);
  ASSERT_TRUE(answer.second_port);
  EXPECT_GE(*answer.second_port, 20000);
  EXPECT_NE(*answer.second_port, *answer.suggested_port);
}

INSTANTIATE_TEST_SUITE_P(Shells, ProbeScript, ::testing::Values("sh", "dash", "bash", "busybox sh"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find(' '));
                         });

}  // namespace
}  // namespace remote::servers
