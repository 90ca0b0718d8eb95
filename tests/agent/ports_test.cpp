#include "agent/facts/ports.hpp"

#include <cerrno>
#include <set>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "wire/json.hpp"

namespace remote::agent {
namespace {

// A listening socket on a free port of 127.0.0.1 or ::1. The destructor closes it.
class Listener {
 public:
  explicit Listener(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage address{};
    auto* any = reinterpret_cast<sockaddr*>(&address);
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    socklen_t size = family == AF_INET ? sizeof *v4 : sizeof *v6;
    address.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
      v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      v6->sin6_addr = in6addr_loopback;
    }
    good_ = fd_ >= 0 && ::bind(fd_, any, size) == 0 && ::listen(fd_, 1) == 0 &&
            ::getsockname(fd_, any, &size) == 0;
    port_ = ntohs(family == AF_INET ? v4->sin_port : v6->sin6_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(); }
  bool good() const { return good_; }
  int port() const { return port_; }
  void close() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = -1;
  }

 private:
  int fd_;
  bool good_ = false;
  int port_ = 0;
};

class AgentPorts : public ::testing::Test {
 protected:
  static constexpr const char* header =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
  static std::string make_line(int port, const char* state, int uid, int inode) {
    return fmt::format(
        "   0: 00000000:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000 {:5} 0 {} 1 x 100 0 0 "
        "10 0\n",
        port, state, uid, inode);
  }
  void put(const std::string& path, const std::string& text) { fake.put(fake.root() / path, text); }
  test::FakeHost fake;
};

TEST_F(AgentPorts, FindsTheProcessThatHoldsAPort) {
  const Host host = Host::of_this_process();
  for (const int family : {AF_INET, AF_INET6}) {
    Listener listener(family);
    if (!listener.good()) {
      continue;  // no IPv6 here
    }
    const wire::PortFacts taken = look_at_port(host, listener.port());
    EXPECT_EQ(taken.is_free, false);
    ASSERT_TRUE(taken.holder);
    EXPECT_EQ(taken.holder->pid, ::getpid());
    EXPECT_EQ(taken.holder->program, std::string(program_invocation_short_name).substr(0, 15));
    EXPECT_NE(taken.holder->user, "");
    ASSERT_TRUE(taken.suggested);
    EXPECT_NE(*taken.suggested, listener.port());
    listener.close();
    EXPECT_EQ(look_at_port(host, listener.port()).is_free, true);
  }
}

TEST_F(AgentPorts, SuggestsTwoOutsideTheKernelsRange) {
  const wire::PortFacts facts = look_at_port(Host::of_this_process(), 0);
  EXPECT_FALSE(facts.is_free);
  ASSERT_TRUE(facts.suggested);
  EXPECT_GE(*facts.suggested, 20000);
  EXPECT_LE(*facts.suggested, 32767);
  ASSERT_TRUE(facts.second);
  EXPECT_GE(*facts.second, 20000);
  EXPECT_NE(*facts.second, *facts.suggested);
}

TEST_F(AgentPorts, ReadsTheSocketsOfTheKernel) {
  put("proc/net/tcp", header + make_line(29500, "01", 1000, 5) + make_line(29500, "0A", 1000, 77));
  put("proc/net/tcp6", header + make_line(29501, "01", 1000, 6));
  put("etc/passwd", "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n");
  fake.put(fake.root() / "proc/4121/comm", "my\x1b[2Jserver\n");
  fs::create_directories(fake.root() / "proc/4121/fd");
  fs::create_symlink("socket:[77]", fake.root() / "proc/4121/fd/3");
  fs::create_directories(fake.root() / "proc/4120/fd");
  fs::create_symlink("socket:[5]", fake.root() / "proc/4120/fd/3");
  wire::PortFacts facts = look_at_port(fake.host, 29500);
  EXPECT_EQ(facts.is_free, false);
  ASSERT_TRUE(facts.holder);
  EXPECT_EQ(facts.holder->user, "ada");
  EXPECT_EQ(facts.holder->pid, 4121);
  EXPECT_EQ(facts.holder->program, "my\\x1b[2Jserver");
  fs::remove(fake.root() / "proc/4121/comm");
  EXPECT_EQ(look_at_port(fake.host, 29500).holder->program, "unknown");
  fs::remove_all(fake.root() / "proc/4121/fd");
  facts = look_at_port(fake.host, 29500);
  EXPECT_EQ(facts.holder->user, "ada");
  EXPECT_FALSE(facts.holder->pid);
  EXPECT_EQ(facts.holder->program, "");
  // A connection does not occupy a port.
  EXPECT_EQ(look_at_port(fake.host, 29501).is_free, true);
  EXPECT_NO_THROW(wire::from_json<wire::PortFacts>(wire::to_json(facts)));
}

TEST_F(AgentPorts, NamesAUserWithoutANameByNumber) {
  put("proc/net/tcp", header + make_line(29500, "0A", 123456, 77));
  EXPECT_EQ(look_at_port(fake.host, 29500).holder->user, "123456");
  put("etc/passwd", "a b:x:123456:0::/:/bin/sh\n");
  EXPECT_EQ(look_at_port(fake.host, 29500).holder->user, "123456");
  fake.put_program(fake.programs() / "getent",
                   "[ \"$1 $2\" = 'passwd 123456' ] && echo eve:x:123456:0::/:/bin/sh");
  fs::remove(fake.root() / "etc/passwd");
  EXPECT_EQ(look_at_port(fake.host, 29500).holder->user, "eve");
}

TEST_F(AgentPorts, SuggestsOnlyUnusedPorts) {
  std::string lines = header;
  for (int port = 20000; port <= 32767; ++port) {
    if (port != 20005 && port != 31000 && port != 31001) {
      lines += make_line(port, "06", 0, 1);
    }
  }
  put("proc/net/tcp", lines);
  put("proc/sys/net/ipv4/ip_local_port_range", "20000\t30000\n");
  wire::PortFacts facts = look_at_port(fake.host, 0);
  EXPECT_EQ((std::set{*facts.suggested, *facts.second}), (std::set{31000, 31001}));
  facts = look_at_port(fake.host, 31000);
  EXPECT_EQ(facts.suggested, 31001);
  EXPECT_EQ(facts.second, 20005) << "one of the kernel's range if there is no other";
  put("proc/sys/net/ipv4/ip_local_port_range", "1024\t65535\n");
  EXPECT_TRUE(look_at_port(fake.host, 0).second);
  put("proc/net/tcp6", header + make_line(20005, "06", 0, 1) + make_line(31001, "06", 0, 1));
  facts = look_at_port(fake.host, 31000);
  EXPECT_FALSE(facts.suggested);
  EXPECT_FALSE(facts.second);
}

TEST_F(AgentPorts, NothingIsKnownWithoutTheKernelsList) {
  EXPECT_FALSE(look_at_port(fake.host, 29500).is_free);
  EXPECT_TRUE(look_at_port(fake.host, 29500).suggested);
  put("proc/net/tcp",
      "rubbish\n 0: :0A x 0A\n   1: 0:zzzz 0 0A 0 0 0 0 0 0\n  2: 0:12345 0 0A 0 0 0 0 0 0 0\n");
  EXPECT_EQ(look_at_port(fake.host, 29500).is_free, true);
}

}  // namespace
}  // namespace remote::agent
