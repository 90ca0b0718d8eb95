// Forwards ports of a server to this machine, over real connections.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <remote/forward.hpp>
#include <remote/project.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/loopback.hpp"
#include "base/threads.hpp"
#include "support/cut_proxy.hpp"
#include "support/ssh_job_world.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

UniqueFd connect_to(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback(port);
  timeval limit{30, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

void send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return;
    }
    data.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string receive_all(int fd) {
  std::string all;
  std::array<char, 65536> piece{};
  for (ssize_t count = 0; (count = ::recv(fd, piece.data(), piece.size(), 0)) > 0;) {
    all.append(piece.data(), static_cast<std::size_t>(count));
  }
  return all;
}

// Listens on a port of 127.0.0.1; each connection has its own thread.
class TcpServer {
 public:
  explicit TcpServer(std::function<void(int fd)> serve, const char* place = "127.0.0.1")
      : serve_(std::move(serve)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    ::inet_pton(AF_INET, place, &address.sin_addr);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 500) != 0) {
      throw Error("no port", "for the test");
    }
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepting_ = JoiningThread([this] {
      for (;;) {
        const int fd = ::accept(listener_.get(), nullptr, nullptr);
        if (fd < 0) {
          return;
        }
        ++taken_;
        const std::lock_guard lock(mutex_);
        threads_.emplace_back([this, fd] {
          const UniqueFd owner(fd);
          serve_(fd);
          ++done_;
        });
      }
    });
  }
  ~TcpServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
  }
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;
  int port() const { return port_; }
  int taken() const { return taken_; }
  int done() const { return done_; }

 private:
  std::function<void(int)> serve_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> taken_ = 0;
  std::atomic<int> done_ = 0;
  std::mutex mutex_;
  std::vector<JoiningThread> threads_;
  JoiningThread accepting_;
};

// After the peer has sent everything, answers with its digest and these bytes.
void answer_at_end(int fd, std::string_view answer) {
  const std::string got = receive_all(fd);
  send_all(fd, sha256_hex(got));
  send_all(fd, answer);
}

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::minstd_rand random(static_cast<unsigned>(size));
  std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
  return bytes;
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// Project::forward() on a thread; the destructor cancels it.
class RunningForward {
 public:
  RunningForward(Project& project, ForwardRequest request, std::size_t ports = 1)
      : request_(std::move(request)) {
    request_.on_listening = [this](std::size_t index, const Listening& one) {
      const std::lock_guard lock(mutex_);
      listening_[index] = one;
    };
    request_.on_refused = [this](std::size_t, const Error& error) {
      const std::lock_guard lock(mutex_);
      refused_.push_back(error.message());
    };
    request_.on_ended = [this](const Job& job) {
      const std::lock_guard lock(mutex_);
      ended_ = job;
    };
    thread_ = JoiningThread([this, &project] {
      try {
        project.forward(request_, cancel_);
        result_ = "ended";
      } catch (const Interrupted&) {
        result_ = "interrupted";
      } catch (const Error& error) {
        result_ = error.message();
      }
      over_ = true;
    });
    EXPECT_TRUE(test::eventually([&] { return over_ || listening().size() == ports; }));
  }
  ~RunningForward() { stop(); }
  RunningForward(const RunningForward&) = delete;
  RunningForward& operator=(const RunningForward&) = delete;

  std::string stop() {
    cancel_.cancel();
    return wait();
  }
  std::string wait() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return result_;
  }
  std::map<std::size_t, Listening> listening() {
    const std::lock_guard lock(mutex_);
    return listening_;
  }
  int port(std::size_t index = 0) { return listening()[index].local; }
  std::vector<std::string> refused() {
    const std::lock_guard lock(mutex_);
    return refused_;
  }
  std::optional<Job> ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

 private:
  ForwardRequest request_;
  std::mutex mutex_;
  std::map<std::size_t, Listening> listening_;
  std::vector<std::string> refused_;
  std::optional<Job> ended_;
  Cancel cancel_;
  std::atomic<bool> over_ = false;
  std::string result_;
  JoiningThread thread_;
};

class ForwardTest : public testing::Test {
 protected:
  // A project whose server is reached through this port.
  Project project(int port) {
    write_file_atomic(world.client.folder() / ".remote/configs.yaml",
                      fmt::format("name: proj\npython: {{manager: system}}\nservers:\n  one: {{hostname: "
                                  "127.0.0.1, port: {}, username: {}, private_key: {}, known_hosts: {}}}\n",
                                  port, test::own_user(), world.client.key().string(),
                                  world.client.known_hosts().string()));
    Hooks hooks;
    hooks.allow = [](const std::vector<Demand>&) { return true; };
    hooks.on_event = [this](const Event& event) {
      const std::lock_guard lock(mutex);
      lost += std::holds_alternative<LinkLost>(event) ? 1 : 0;
      back += std::holds_alternative<LinkBack>(event) ? 1 : 0;
    };
    return Project(world.client.folder(), std::move(hooks));
  }
  int count(const int& what) {
    const std::lock_guard lock(mutex);
    return what;
  }
  static ForwardRequest to(int port, int local = 0) {
    return {.ports = {{.server = "one", .local = local, .port = port}}};
  }
  test::SshJobWorld world;
  std::mutex mutex;
  int lost = 0;
  int back = 0;
};

TEST_F(ForwardTest, ManyConnectionsAtOnceEachGetTheirOwnBytesAndTheEndOfEachDirectionPasses) {
  TcpServer server([](int fd) { answer_at_end(fd, "done"); });
  Project project = this->project(world.sshd.port());
  RunningForward forward(project, to(server.port()));
  std::atomic<int> right = 0;
  {
    std::vector<JoiningThread> clients;
    for (std::size_t i = 0; i < 100; ++i) {
      clients.emplace_back([&, i] {
        const std::string data = random_bytes(1000 + i);
        const UniqueFd fd = connect_to(forward.port());
        send_all(fd.get(), data);
        ::shutdown(fd.get(), SHUT_WR);  // the answer comes later: the other direction stays open
        right += receive_all(fd.get()) == sha256_hex(data) + "done" ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(right, 100);
  EXPECT_EQ(server.taken(), 100);
  EXPECT_EQ(forward.stop(), "interrupted");
}

TEST_F(ForwardTest, MuchGoesBothWaysAndASlowReaderHoldsTheServerBack) {
  const std::string down = random_bytes(std::size_t{24} << 20U);
  const std::string up = random_bytes(std::size_t{8} << 20U);
  std::atomic<std::size_t> sent = 0;
  std::atomic<bool> right = false;
  TcpServer server([&](int fd) {
    for (std::size_t at = 0; at < down.size(); at += 65536) {
      send_all(fd, std::string_view(down).substr(at, 65536));
      sent += 65536;
    }
    ::shutdown(fd, SHUT_WR);
    right = sha256_hex(receive_all(fd)) == sha256_hex(up);
  });
  Project project = this->project(world.sshd.port());
  RunningForward forward(project, to(server.port()));
  const UniqueFd fd = connect_to(forward.port());
  // No process reads here. The buffers of sockets and the window may fill, but not with all of it.
  std::size_t before = 0;
  EXPECT_TRUE(test::eventually([&] {
    std::this_thread::sleep_for(500ms);  // poll interval
    return std::exchange(before, sent.load()) == sent && sent > 0;
  }));
  EXPECT_LT(sent, down.size());
  EXPECT_EQ(sha256_hex(receive_all(fd.get())), sha256_hex(down));
  send_all(fd.get(), up);
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_TRUE(test::eventually([&] { return right.load(); })) << "what came up is not what was sent";
}

TEST_F(ForwardTest, HundredsOfShortConnectionsLeaveNothingOpen) {
  TcpServer server([](int fd) { send_all(fd, "x"); });
  Project project = this->project(world.sshd.port());
  RunningForward forward(project, to(server.port()));
  const auto use = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const UniqueFd fd = connect_to(forward.port());
      ::shutdown(fd.get(), SHUT_WR);
      ASSERT_EQ(receive_all(fd.get()), "x");
    }
  };
  use(20);
  std::size_t before = 0;
  EXPECT_TRUE(test::eventually([&] { return std::exchange(before, open_files()) == open_files(); }));
  use(400);
  EXPECT_TRUE(test::eventually([&] { return open_files() <= before + 2; }))
      << open_files() << " of " << before;
}

TEST_F(ForwardTest, ARefusedConnectionIsClosedAndToldOnce) {
  Project project = this->project(world.sshd.port());
  const int nobody = test::free_port();
  RunningForward forward(project, to(nobody, test::free_port()));  // not a forward to itself
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(receive_all(connect_to(forward.port()).get()), "");
  }
  EXPECT_TRUE(test::eventually([&] { return !forward.refused().empty(); }));
  EXPECT_THAT(forward.refused(), ElementsAre(fmt::format("one: nothing listens on port {}", nobody)));
}

TEST_F(ForwardTest, AProgramThatListensOnAnotherAddressIsNamed) {
  TcpServer server([](int fd) { send_all(fd, "there"); }, "127.0.0.2");
  Project project = this->project(world.sshd.port());
  const int local = test::free_port();
  RunningForward forward(project, to(server.port(), local));
  EXPECT_EQ(receive_all(connect_to(local).get()), "");
  EXPECT_TRUE(test::eventually([&] { return !forward.refused().empty(); }));
  EXPECT_THAT(forward.refused(),
              ElementsAre(fmt::format("one: nothing listens on 127.0.0.1:{0}: port {0} is open on 127.0.0.2",
                                      server.port())));
  RunningForward named(project, {.ports = {{.server = "one", .host = "127.0.0.2", .port = server.port()}}});
  EXPECT_EQ(receive_all(connect_to(named.port()).get()), "there");
}

TEST_F(ForwardTest, ATakenPortGetsAnotherAndOnlyLoopbackIsBound) {
  TcpServer server([](int fd) { send_all(fd, "here"); });
  Project project = this->project(world.sshd.port());
  RunningForward forward(project, to(server.port(), server.port()));
  EXPECT_NE(forward.port(), server.port());
  EXPECT_EQ(receive_all(connect_to(forward.port()).get()), "here");
  const std::string listeners = read_file("/proc/net/tcp") + read_file("/proc/net/tcp6");
  EXPECT_THAT(listeners, HasSubstr(fmt::format(" 0100007F:{:04X} 00000000:0000 0A", forward.port())));
  EXPECT_THAT(listeners, testing::Not(HasSubstr(fmt::format("00000000:{:04X} 0000", forward.port()))));
}

TEST_F(ForwardTest, ACutIsToldAndComesBackOnTheSamePort) {
  TcpServer server([](int fd) { answer_at_end(fd, "again"); });
  test::CutProxy proxy(world.sshd.port());
  Project project = this->project(proxy.port());
  RunningForward forward(project, to(server.port()));
  const auto ask = [&] {
    const UniqueFd fd = connect_to(forward.port());
    ::shutdown(fd.get(), SHUT_WR);
    return receive_all(fd.get());
  };
  const std::string right = sha256_hex("") + "again";
  EXPECT_EQ(ask(), right);
  const UniqueFd open = connect_to(forward.port());
  EXPECT_TRUE(test::eventually([&] { return server.taken() == 2; }));
  proxy.cut();
  EXPECT_EQ(receive_all(open.get()), "") << "a connection through the broken link was left open";
  EXPECT_TRUE(test::eventually([&] { return count(back) == 1; }));
  EXPECT_EQ(count(lost), 1);
  EXPECT_EQ(ask(), right);
}

TEST_F(ForwardTest, EndsWithItsJob) {
  const std::filesystem::path go = world.client.folder() / "go";
  const Job job = world.run_all({"until [ -e '" + go.string() + "' ]; do sleep 0.1; done"}).front();
  Project project = this->project(world.sshd.port());
  ForwardRequest request = to(test::free_port());
  request.job = job;
  RunningForward forward(project, request);
  write_file_atomic(go, "");
  EXPECT_EQ(forward.wait(), "ended");
  ASSERT_TRUE(forward.ended());
  EXPECT_EQ(forward.ended()->state, JobState::succeeded);
}

TEST_F(ForwardTest, ReverseReachesTheNamedPortHereAndComesBackToo) {
  TcpServer here([](int fd) { answer_at_end(fd, "from here"); });
  test::CutProxy proxy(world.sshd.port());
  Project project = this->project(proxy.port());
  const int there = test::free_port();
  RunningForward forward(
      project, {.ports = {{.server = "one", .local = here.port(), .port = there, .reverse = true}}});
  const auto ask = [&] {
    const UniqueFd fd = connect_to(there);
    if (!fd) {
      return std::string("no connection");
    }
    send_all(fd.get(), "abc");
    ::shutdown(fd.get(), SHUT_WR);
    return receive_all(fd.get());
  };
  const std::string right = sha256_hex("abc") + "from here";
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ask(), right);
  }
  proxy.cut();
  EXPECT_TRUE(test::eventually([&] { return ask() == right; }));
  EXPECT_EQ(forward.stop(), "interrupted");
  EXPECT_TRUE(test::eventually([&] { return ask() == "no connection"; })) << "the server listens yet";
}

// sshd would accept a listener on ::1 only, and programs there would reach another program on 127.0.0.1.
TEST_F(ForwardTest, ReverseAtAPortThatAnotherProgramHasIsAnError) {
  TcpServer other([](int fd) { send_all(fd, "other"); });
  Project project = this->project(world.sshd.port());
  RunningForward forward(
      project,
      {.ports = {{.server = "one", .local = test::free_port(), .port = other.port(), .reverse = true}}});
  EXPECT_THAT(forward.wait(), HasSubstr("the server does not listen on its port"));
}

TEST_F(ForwardTest, ReverseToNobodyIsClosedAndToldOnce) {
  Project project = this->project(world.sshd.port());
  const int there = test::free_port();
  RunningForward forward(
      project, {.ports = {{.server = "one", .local = test::free_port(), .port = there, .reverse = true}}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(receive_all(connect_to(there).get()), "");
  }
  EXPECT_TRUE(test::eventually([&] { return !forward.refused().empty(); }));
  EXPECT_THAT(forward.refused(), ElementsAre(HasSubstr("of this machine")));
}

TEST(ForwardForbiddenTest, IsRefusedInWordsAndNothingListensOnTheServer) {
  test::SshJobWorld world({"AllowTcpForwarding no"});
  Hooks hooks;
  hooks.allow = [](const std::vector<Demand>&) { return true; };
  Project project(world.client.folder(), hooks);
  RunningForward forward(project, {.ports = {{.server = "one", .port = 1}}});
  EXPECT_EQ(receive_all(connect_to(forward.port()).get()), "");
  EXPECT_TRUE(test::eventually([&] { return !forward.refused().empty(); }));
  forward.stop();
  RunningForward reverse(project, {.ports = {{.server = "one", .port = test::free_port(), .reverse = true}}});
  EXPECT_THAT(reverse.wait(), HasSubstr("the server does not listen on its port"));
}

}  // namespace
}  // namespace remote
