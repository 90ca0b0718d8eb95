#include "agent/facts/listeners.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/job/sick_mark.hpp"
#include "agent/job/web_port.hpp"

// The process that listens on a port, and the port of a job with web pages.

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AgentListeners : public ::testing::Test {
 protected:
  static constexpr const char* header =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
  static constexpr const char* id = "0123456789abcdef0123456789abcdef";

  // A line of the kernel's list of sockets.
  static std::string make_line(const std::string& address, const std::string& state = "0A",
                               int uid = static_cast<int>(::getuid())) {
    return "   0: " + address + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000 " +
           std::to_string(uid) + " 0 77 1 x 100 0 0 10 0\n";
  }
  void put_sockets(const std::string& four, const std::string& six = "") const {
    fake.put(fake.root() / "proc/net/tcp", header + four);
    fake.put(fake.root() / "proc/net/tcp6", header + six);
  }
  std::vector<std::string> list(int port) const { return list_listeners(fake.host, {port}).addresses; }
  wire::WebPortReply find_web() const { return find_web_port(fake.host, {place(), id}); }
  wire::JobsPlace place() const { return {"~/my proj", ".jobs"}; }
  std::filesystem::path jobs() const { return fake.home() / "my proj/.jobs"; }

  test::FakeHost fake;
};

TEST_F(AgentListeners, ListsAddressesOnce) {
  EXPECT_THAT(list(8888), IsEmpty());
  put_sockets(make_line("0100007F:22B8") + make_line("0200000A:22B8") + make_line("0100007F:22B8") +
                  make_line("0300000A:22B9") + make_line("0400000A:22B8", "01"),
              make_line("00000000000000000000000001000000:22B8") +
                  make_line("0000000000000000FFFF00000500000A:22B8") +
                  make_line("00000000000000000000000000000000:22B8"));
  EXPECT_THAT(list(8888), ElementsAre("127.0.0.1", "10.0.0.2", "::1", "10.0.0.5", "::"));
  EXPECT_THAT(list(8889), ElementsAre("10.0.0.3"));
  EXPECT_THAT(list(8890), IsEmpty());
}

TEST_F(AgentListeners, SkipsOddLines) {
  put_sockets(make_line("0100007F") + make_line("0100007G:22B8") + make_line("0100007:22B8") +
              make_line("0100007F:22B") + make_line("0100007F:22BX") + make_line(":22B8") +
              make_line("0100007F0100007F:22B8") + " 0: 0100007F:22B8 0 0A\n" + make_line("0900000A:22B8"));
  EXPECT_THAT(list(8888), ElementsAre("10.0.0.9"));
}

TEST_F(AgentListeners, ReportsAWebPortWhenThisUserListens) {
  put_sockets(make_line("0100007F:22B8"));
  EXPECT_EQ(find_web().port, 0) << "no such job";
  fake.put(jobs() / id / "web", "8888 0123abcd\n");
  EXPECT_EQ(find_web().port, 8888);
  EXPECT_EQ(find_web().token, "0123abcd");
  // Another user could have taken the port and would receive the token.
  put_sockets(make_line("0100007F:22B8", "0A", static_cast<int>(::getuid()) + 1));
  EXPECT_EQ(find_web().port, 0);
  EXPECT_EQ(find_web().token, "");
  put_sockets(make_line("0100007F:22B8", "01"), make_line("00000000000000000000000001000000:22B9"));
  EXPECT_EQ(find_web().port, 0);
  put_sockets("", make_line("00000000000000000000000001000000:22B8"));
  EXPECT_EQ(find_web().port, 8888);
}

TEST_F(AgentListeners, ReadsNoOddWebFile) {
  put_sockets(make_line("0100007F:22B8") + make_line("0100007F:0000"));
  for (const std::string text : {"", "8888", "8888 abc", "8888\n", "8888 a b\n", "8888 a/b\n", "x abc\n",
                                 "0 abc\n", "74424 abc\n", "-1 abc\n"}) {
    fake.put(jobs() / id / "web", text);
    EXPECT_EQ(find_web().port, 0) << text;
  }
  fake.put(jobs() / "elsewhere", "8888 abc\n");
  fs::remove(jobs() / id / "web");
  fs::create_symlink(jobs() / "elsewhere", jobs() / id / "web");
  EXPECT_EQ(find_web().port, 0) << "a link";
}

TEST_F(AgentListeners, ClearsTheMarkOfASickServer) {
  EXPECT_NO_THROW(clear_sick_mark(fake.host, {place()})) << "nothing was ever started there";
  fake.put(jobs() / ".sick", "gpu 1700000000\n");
  fake.put(jobs() / "other", "");
  clear_sick_mark(fake.host, {place()});
  EXPECT_FALSE(fs::exists(jobs() / ".sick"));
  EXPECT_TRUE(fs::exists(jobs() / "other"));
  EXPECT_NO_THROW(clear_sick_mark(fake.host, {place()})) << "there is none";
  fs::create_directories(jobs() / ".sick");
  try {
    clear_sick_mark(fake.host, {place()});
    FAIL() << "a folder cannot be the mark";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("cannot remove " + (jobs() / ".sick").string() + ": "));
  }
}

}  // namespace
}  // namespace remote::agent
