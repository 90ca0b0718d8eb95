#include "agent/facts/network.hpp"

#include <array>
#include <random>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include "agent/facts/kernel_route.hpp"
#include "agent/fake_host.hpp"
#include "agent/host/run.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

class AgentNetwork : public ::testing::Test {
 protected:
  wire::RouteFacts way(std::string_view name) { return find_route(fake.host, name); }
  // The word after `key` in the output of `ip route get`; "" if there is none.
  std::string ask_ip(const std::string& address, std::string_view key) {
    const std::vector<std::string> words =
        split_words(run(fake.host, {.argv = {"ip", "route", "get", address}}).out);
    const auto found = std::ranges::find(words, key);
    return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
  }
  test::FakeHost fake;
};

TEST_F(AgentNetwork, LoopbackIsReachedByLo) {
  EXPECT_EQ(way("127.0.0.1").interface, "lo");
  EXPECT_EQ(way("127.0.0.1").address, "127.0.0.1");
  EXPECT_EQ(way("127.0.0.9").interface, "lo");
}

TEST_F(AgentNetwork, FindsTheSameWayAsTheProgramIp) {
  if (fake.host.find_program("ip").empty()) {
    GTEST_SKIP() << "no ip here";
  }
  for (const char* outside : {"198.51.100.7", "10.255.1.2", "2001:db8::7"}) {
    const wire::RouteFacts facts = way(outside);
    EXPECT_EQ(facts.address, outside);
    EXPECT_EQ(facts.interface.value_or(""), ask_ip(outside, "dev")) << outside;
    EXPECT_EQ(facts.source, ask_ip(outside, "src")) << outside;
    if (!facts.source.empty()) {
      // For this machine's own address: the interface that has it, not lo, which other machines cannot reach.
      EXPECT_EQ(way(facts.source).interface, facts.interface);
      EXPECT_EQ(way(facts.source).source, facts.source);
    }
  }
}

TEST_F(AgentNetwork, TheZoneOfALinkLocalAddressIsItsInterface) {
  const std::string address = "fe80::1%lo";
  EXPECT_EQ(way(address).interface, "lo");
  EXPECT_EQ(way(address).address, address);
  EXPECT_EQ(way("fe80::1%" + std::to_string(::if_nametoindex("lo"))).interface, "lo");
  EXPECT_FALSE(way("fe80::1%no-such").interface);
}

TEST_F(AgentNetwork, ResolvesNamesOrReturnsNoAddress) {
  EXPECT_EQ(way("localhost").interface.value_or("lo"), "lo");
  EXPECT_NE(way("localhost").address, "");
  for (const char* name : {"no-such-host.invalid", "'; echo x; '", "", "-V", "--help", "host:22", "%",
                           "1.2.3.4%lo", "fe80::1%", "10.0.0.300.invalid", "\x1b[2J"}) {
    EXPECT_EQ(way(name).address, "") << name;
    EXPECT_FALSE(way(name).interface) << name;
  }
}

TEST_F(AgentNetwork, AsksTheNameServiceFirst) {
  fake.put(fake.root() / "etc/hosts", "# 10.0.0.9 node-1\n10.0.0.1 other\n127.0.0.8\tx Node-1 # node-2\n");
  fake.put_program(fake.programs() / "getent",
                   "[ \"$1\" = ahosts ] && [ \"$2\" = node-1 ] &&\n"
                   "echo '127.0.0.7       STREAM node-1.site'; echo '127.0.0.6 DGRAM'");
  EXPECT_EQ(way("node-1").address, "127.0.0.7");
  EXPECT_EQ(way("node-1").interface, "lo");
  fake.put_program(fake.programs() / "getent", "exit 2");
  EXPECT_EQ(way("node-1").address, "127.0.0.8");
  EXPECT_EQ(way("node-2").address, "");
  fs::remove(fake.programs() / "getent");
  fake.host.environment["PATH"] = fake.programs();
  EXPECT_EQ(way("node-1").address, "127.0.0.8");
  fs::remove(fake.root() / "etc/hosts");
  EXPECT_EQ(way("node-1").address, "");
}

TEST(IpAddress, IsParsed) {
  for (const char* good : {"10.0.0.1", "255.255.255.255", "::1", "fd00::2", "::ffff:1.2.3.4", "fe80::1%lo"}) {
    const auto address = IpAddress::parse(good);
    ASSERT_TRUE(address) << good;
    EXPECT_EQ(address->text(), good);
  }
  for (const char* bad : {"", "1.2.3", "1.2.3.4.5", "300.1.1.1", "x", "::x", "1.2.3.4 ", "::1%", ":"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
}

TEST(IpAddress, IsFormattedLikeByTheCLibrary) {
  EXPECT_EQ(format_address(AF_INET, std::string_view("\x0a\0\0\xff", 4)), "10.0.0.255");
  EXPECT_EQ(format_address(AF_INET, "\x0a"), "");
  EXPECT_EQ(format_address(AF_INET6, "\x0a"), "");
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(16, '\0');
    for (std::size_t at = 0; at < bytes.size(); at += 2) {  // groups that are often 0, 1 or 0xffff
      const unsigned group = random() % 3 == 0   ? random() % 0x10000
                             : random() % 3 == 0 ? 0xffff
                                                 : random() % 2;
      bytes[at] = static_cast<char>(group / 256);
      bytes[at + 1] = static_cast<char>(group % 256);
    }
    if (random() % 4 == 0) {
      bytes.replace(0, 10, 10, '\0');
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    ASSERT_EQ(format_address(AF_INET6, bytes), ::inet_ntop(AF_INET6, bytes.data(), text.data(), text.size()));
  }
}

}  // namespace
}  // namespace remote::agent
