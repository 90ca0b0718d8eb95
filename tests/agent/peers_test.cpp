#include "agent/launch/peers.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "agent/host/background.hpp"
#include "agent/host/processes.hpp"
#include "agent/network/socket_address.hpp"
#include "agent/waiting.hpp"
#include "fake_host.hpp"
#include "started.hpp"
#include "tcp_pair.hpp"

namespace remote::agent {
namespace {

using wire::LinkMessage;

const std::vector<std::string> server_names{"n1", "n2", "n3"};
// The tokens of the members.
const wire::LinkTokens member_tokens{"0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"};
const std::string nobodys_address = "192.0.2.1";  // unassigned (RFC 5737)

// A server of a launch that answers like the supervisor.
class PeersServer : public PeersHandler {
 public:
  PeersServer(const Host& host, PeersSetup setup)
      : is_coordinator_(setup.is_coordinator()), peers(host, std::move(setup), *this) {}

  void greet(Link& link) override {
    ++greeted;
    for (const LinkMessage& message : first_messages) {
      link.send(message);
    }
    if (says_hello) {
      link.send(wire::Hello{});
    }
  }
  void take(Link& link, const LinkMessage& message) override {
    if (is_coordinator_) {
      senders.insert(link.server());
    }
    if (is_coordinator_ && std::holds_alternative<wire::Hello>(message)) {
      link.send(wire::Welcome{});
    } else if (refuses_beats && std::holds_alternative<wire::Beat>(message)) {
      link.close();
      return;
    }
    received.push_back(message);
  }
  void note_drop(const Link& link) override { drops.push_back(link.server()); }

  std::size_t count(const LinkMessage& message) const {
    return static_cast<std::size_t>(std::count(received.begin(), received.end(), message));
  }
  void step(int wait = 1) {
    peers.flush();
    std::vector<pollfd> fds;
    peers.prepare(fds);
    ::poll(fds.data(), fds.size(), wait);
    peers.step(fds, now());
  }
  static Seconds now() { return read_boot_clock(); }

  bool says_hello = true;
  bool refuses_beats = false;
  std::vector<LinkMessage> first_messages;
  std::set<std::string> senders;  // to the coordinator
  int greeted = 0;
  std::vector<LinkMessage> received;
  std::vector<std::string> drops;

 private:
  bool is_coordinator_;

 public:
  Peers peers;
};

class PeersOfLaunch : public testing::Test {
 protected:
  PeersSetup make_setup(const std::string& name, const std::string& address = "127.0.0.1") const {
    PeersSetup setup{
        .own = name, .servers = server_names, .tokens = member_tokens, .address = address, .port = port};
    if (!setup.is_coordinator()) {
      setup.tokens = {member_tokens.at(name == "n2" ? 0 : 1)};
    }
    return setup;
  }
  PeersServer& listen(const std::string& address = "127.0.0.1") {
    coordinator = std::make_unique<PeersServer>(fake.host, make_setup("n1", address));
    coordinator->peers.listen();
    return *coordinator;
  }
  PeersServer& add_member(const std::string& name, const std::string& address = "127.0.0.1") {
    return add_member(make_setup(name, address));
  }
  PeersServer& add_member(const PeersSetup& setup) {
    members.push_back(std::make_unique<PeersServer>(fake.host, setup));
    return *members.back();
  }
  void step() {
    if (coordinator) {
      coordinator->step();
    }
    for (const auto& member : members) {
      member->peers.keep_connecting(PeersServer::now(), Seconds(0.05));
      member->step();
    }
  }
  bool run_until(const std::function<bool()>& condition, Seconds limit = Seconds(10)) {
    const Seconds end = PeersServer::now() + limit;
    while (!condition() && PeersServer::now() < end) {
      step();
    }
    return condition();
  }
  bool is_welcome(const PeersServer& member) {
    return run_until([&] { return member.count(wire::Welcome{}) > 0; });
  }
  // Descriptors of connections that send nothing.
  std::vector<Descriptor> connect_strangers(std::size_t count) {
    std::vector<Descriptor> strangers;
    for (std::size_t i = 0; i < count; ++i) {
      strangers.push_back(test::connect_to_port(port));
      if (i % 32 == 31) {
        coordinator->step();  // before its backlog is full
      }
    }
    return strangers;
  }

  test::FakeHost fake;
  int port = find_free_port(false);
  std::unique_ptr<PeersServer> coordinator;
  std::vector<std::unique_ptr<PeersServer>> members;
};

TEST_F(PeersOfLaunch, ConnectMembersToTheCoordinator) {
  PeersServer& hub = listen();
  EXPECT_TRUE(hub.peers.is_listening());
  EXPECT_EQ(hub.peers.refusal(), "");
  PeersServer& second = add_member("n2");
  PeersServer& third = add_member("n3");
  EXPECT_TRUE(is_welcome(second));
  EXPECT_TRUE(is_welcome(third));
  EXPECT_EQ(second.greeted, 1);
  ASSERT_NE(hub.peers.find("n2"), nullptr);
  EXPECT_EQ(hub.peers.find("n4"), nullptr);
  EXPECT_EQ(hub.peers.find(""), nullptr);
  ASSERT_NE(second.peers.find("n1"), nullptr);
  hub.peers.find("n2")->send(wire::StopAttempt{3});
  hub.peers.broadcast(wire::EndLaunch{});
  third.peers.broadcast(wire::Bye{});
  EXPECT_TRUE(run_until([&] {
    return second.count(wire::EndLaunch{}) == 1 && third.count(wire::EndLaunch{}) == 1 &&
           hub.count(wire::Bye{}) == 1;
  }));
  EXPECT_EQ(second.count(wire::StopAttempt{3}), 1U);
  EXPECT_EQ(third.count(wire::StopAttempt{3}), 0U);
}

TEST_F(PeersOfLaunch, UseIpv6) {
  for (const std::string address : {"::1", "[::1]"}) {
    port = find_free_port(true);
    if (port == 0) {
      GTEST_SKIP() << "no IPv6 here";
    }
    listen(address);
    if (!coordinator->peers.is_listening()) {
      GTEST_SKIP() << coordinator->peers.refusal();
    }
    EXPECT_TRUE(is_welcome(add_member("n2", address))) << address;
    members.clear();
  }
}

TEST_F(PeersOfLaunch, ListenAtAnyAddressIfTheirsIsTranslated) {
  listen(nobodys_address);
  EXPECT_TRUE(coordinator->peers.is_listening());
  EXPECT_EQ(coordinator->peers.refusal(), "");
  EXPECT_TRUE(is_welcome(add_member("n2")));
}

TEST_F(PeersOfLaunch, ResolveNames) {
  fake.put_program(fake.programs() / "getent",
                   "[ \"$*\" = 'ahosts head.site' ] || exit 2\n"
                   "echo '127.0.0.9       STREAM head.site'; echo '127.0.0.9       DGRAM'; echo 'x'\n"
                   "echo '127.0.0.1       STREAM'");
  listen();
  PeersServer& member = add_member("n2", "head.site");
  EXPECT_TRUE(is_welcome(member));  // through the second address
  coordinator.reset();
  members.clear();
  listen("head.site");
  EXPECT_TRUE(coordinator->peers.is_listening());
  EXPECT_TRUE(is_welcome(add_member("n2", "127.0.0.9")));
}

TEST_F(PeersOfLaunch, ReportAnUnknownName) {
  fake.put_program(fake.programs() / "getent", "exit 2");
  PeersServer& member = add_member("n2", "no-such.site");
  EXPECT_TRUE(run_until([&] { return !member.peers.refusal().empty(); }));
  EXPECT_EQ(member.peers.refusal(), "Name or service not known");
  EXPECT_FALSE(member.peers.is_linked());
  for (const char* name : {"", "-V", "a:b", "1.2.3.4%lo", "[]", "[", "'; exit 1; '"}) {
    PeersServer& other = add_member("n2", name);
    EXPECT_TRUE(run_until([&] { return !other.peers.refusal().empty(); })) << name;
    members.pop_back();
  }
  // Members may still be able to resolve it.
  listen("no-such.site");
  EXPECT_TRUE(coordinator->peers.is_listening());
  EXPECT_TRUE(is_welcome(add_member("n2")));
}

TEST_F(PeersOfLaunch, DoNotWaitForASlowNameService) {
  fake.put_program(fake.programs() / "getent", "exec sleep 1000");
  const Seconds before = PeersServer::now();
  PeersServer& member = add_member("n2", "slow.site");
  for (int i = 0; i < 20; ++i) {
    step();
  }
  EXPECT_FALSE(member.peers.is_linked());
  members.clear();  // stops it
  EXPECT_LT(PeersServer::now() - before, test::patience);
}

TEST_F(PeersOfLaunch, ReportAPortInUse) {
  listen();
  PeersServer other(fake.host, make_setup("n1"));
  other.peers.listen();
  EXPECT_FALSE(other.peers.is_listening());
  EXPECT_EQ(other.peers.refusal(), "Address already in use");
  other.step();
}

TEST_F(PeersOfLaunch, KeepTryingUntilTheCoordinatorListens) {
  PeersServer& member = add_member("n2");
  EXPECT_TRUE(run_until([&] { return !member.peers.refusal().empty(); }));
  EXPECT_EQ(member.peers.refusal(), "Connection refused");
  EXPECT_EQ(member.peers.find("n1"), nullptr);
  listen();
  EXPECT_TRUE(is_welcome(member));
}

TEST_F(PeersOfLaunch, PauseBetweenTries) {
  PeersServer member(fake.host, make_setup("n2"));
  std::vector<pollfd> fds;
  const auto has_begun = [&](Seconds now) {
    member.peers.keep_connecting(now, Seconds(30));
    fds.clear();
    member.peers.prepare(fds);
    return !fds.empty();
  };
  const Seconds now = PeersServer::now();
  EXPECT_TRUE(has_begun(now));
  ::poll(fds.data(), fds.size(), 5000);
  member.peers.step(fds, now);
  EXPECT_EQ(member.peers.refusal(), "Connection refused");
  EXPECT_FALSE(has_begun(now + Seconds(29)));
  EXPECT_TRUE(has_begun(now + Seconds(30)));
}

TEST_F(PeersOfLaunch, GiveUpATryThatIsNotAnswered) {
  fake.put_program(fake.programs() / "getent", "echo '127.0.0.1 STREAM head.site'; echo '127.0.0.8 STREAM'");
  // A listener with a full backlog does not answer.
  const Descriptor full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  const Descriptor waiting = test::connect_to_port(port);
  PeersServer& member = add_member("n2", "head.site");
  const Seconds start = PeersServer::now();
  EXPECT_TRUE(run_until([&] { return !member.peers.refusal().empty(); }));
  EXPECT_EQ(member.peers.refusal(), "Connection timed out");
  EXPECT_GE(PeersServer::now() - start, Seconds(2));
  listen("127.0.0.8");
  EXPECT_TRUE(is_welcome(member));
}

TEST_F(PeersOfLaunch, DropAPeerWithAnotherToken) {
  PeersServer& hub = listen();
  const auto expect_dropped = [&](const PeersSetup& setup) {
    members.clear();
    PeersServer& member = add_member(setup);
    const std::size_t before = hub.drops.size();
    EXPECT_TRUE(run_until([&] { return hub.drops.size() >= before + 2; }));  // it tries again
    EXPECT_TRUE(hub.received.empty());
    EXPECT_TRUE(hub.senders.empty());
    EXPECT_TRUE(member.received.empty());
    EXPECT_GE(member.drops.size(), 1U);
  };
  PeersSetup setup = make_setup("n2");
  setup.tokens.front() += "x";
  expect_dropped(setup);
  setup = make_setup("n2");
  setup.servers = {"n1", "n3", "n4", "n2"};  // a number that no member has
  expect_dropped(setup);
}

// A server of the launch that uses another server's name, to report its ranks as failed or send its Bye.
TEST_F(PeersOfLaunch, AMemberHasNoOtherName) {
  PeersServer& hub = listen();
  PeersServer& second = add_member("n2");
  ASSERT_TRUE(is_welcome(second));
  Link* const link = hub.peers.find("n2");
  PeersSetup setup = make_setup("n3");
  setup.own = "n2";  // with the token of n3
  PeersServer& hostile = add_member(setup);
  hostile.first_messages = {wire::Hello{}, wire::Bye{}};
  EXPECT_TRUE(run_until([&] { return hub.drops.size() >= 3; }));
  EXPECT_EQ(hub.count(wire::Bye{}), 0U);
  EXPECT_EQ(hub.senders, std::set<std::string>{"n2"});
  EXPECT_TRUE(std::ranges::all_of(hub.drops, [](const auto& name) { return name.empty(); }));
  EXPECT_EQ(hostile.received.size(), 0U);
  EXPECT_EQ(hub.peers.find("n2"), link) << "its link is not replaced";
  second.peers.broadcast(wire::Beat{});
  EXPECT_TRUE(run_until([&] { return hub.count(wire::Beat{}) == 1; }));
  EXPECT_TRUE(second.drops.empty());
}

// Only the coordinator knows the tokens of several members.
TEST_F(PeersOfLaunch, AMemberIsNoCoordinatorOfOthers) {
  PeersSetup setup = make_setup("n1");
  setup.tokens = {member_tokens[1], member_tokens[1]};  // n3 knows its own token
  coordinator = std::make_unique<PeersServer>(fake.host, setup);
  coordinator->peers.listen();
  PeersServer& member = add_member("n2");
  EXPECT_TRUE(run_until([&] { return member.drops.size() >= 2; }));
  EXPECT_TRUE(member.received.empty());
  EXPECT_TRUE(coordinator->received.empty());
}

TEST_F(PeersOfLaunch, WithoutTokensThereIsNoLink) {
  PeersServer& hub = listen();
  PeersSetup setup = make_setup("n2");
  setup.tokens.clear();
  PeersServer& member = add_member(setup);
  EXPECT_TRUE(run_until([&] { return member.drops.size() >= 2; }));
  EXPECT_EQ(member.greeted, 0);
  EXPECT_TRUE(hub.received.empty());
}

TEST_F(PeersOfLaunch, TheFirstMessageIsHello) {
  PeersServer& hub = listen();
  PeersServer& member = add_member("n2");
  member.first_messages = {wire::Beat{}};  // then Hello, in one piece
  EXPECT_TRUE(run_until([&] { return hub.drops.size() >= 3; }));
  EXPECT_TRUE(hub.received.empty());
  EXPECT_TRUE(hub.senders.empty());
}

TEST_F(PeersOfLaunch, TakeNothingAfterTheHandlerHasClosedTheLink) {
  PeersServer& hub = listen();
  hub.refuses_beats = true;
  PeersServer& member = add_member("n2");
  member.first_messages = {wire::Hello{}, wire::Beat{}};  // then Hello, in one piece
  EXPECT_TRUE(run_until([&] { return hub.drops.size() >= 3; }));
  EXPECT_EQ(hub.count(wire::Hello{}), hub.received.size());
  EXPECT_LE(hub.received.size(), hub.drops.size() + 1) << "one of each connection";
}

TEST_F(PeersOfLaunch, LetMembersInDespiteStrangers) {
  PeersServer& hub = listen();
  PeersServer& early = add_member("n2");
  ASSERT_TRUE(is_welcome(early));
  const std::vector<Descriptor> strangers = connect_strangers(300);
  PeersServer& late = add_member("n3");
  EXPECT_TRUE(is_welcome(late));
  EXPECT_EQ(hub.peers.links().size(), Peers::max_strangers - 1 + 2);  // the late member was one of them
  EXPECT_GE(hub.drops.size(), 300 - Peers::max_strangers);
  EXPECT_TRUE(std::all_of(hub.drops.begin(), hub.drops.end(), [](const auto& name) { return name.empty(); }));
  EXPECT_TRUE(test::read_some(strangers.back()));  // the greeting
  // The oldest connections were closed.
  test::read_some(strangers.front());
  EXPECT_FALSE(test::read_some(strangers.front()));
  EXPECT_TRUE(early.drops.empty());
}

TEST_F(PeersOfLaunch, LetMembersInDespiteStrangersWithoutPause) {
  listen();
  PeersServer& member = add_member("n2");
  std::vector<Descriptor> strangers;
  EXPECT_TRUE(run_until([&] {
    for (int i = 0; i < 20; ++i) {
      strangers.push_back(test::connect_to_port(port));
    }
    if (strangers.size() > 600) {
      strangers.erase(strangers.begin(), strangers.begin() + 300);
    }
    return member.count(wire::Welcome{}) > 0;
  }));
}

TEST_F(PeersOfLaunch, ReplaceTheLinkOfAMemberThatConnectsAgain) {
  PeersServer& hub = listen();
  ASSERT_TRUE(is_welcome(add_member("n2")));
  Link* const first = hub.peers.find("n2");
  PeersServer& again = add_member("n2");
  EXPECT_TRUE(is_welcome(again));
  EXPECT_NE(hub.peers.find("n2"), first);
  EXPECT_EQ(hub.peers.links().size(), 1U);
  EXPECT_EQ(hub.drops, std::vector<std::string>{"n2"});
}

TEST_F(PeersOfLaunch, NoticeACutLink) {
  PeersServer& hub = listen();
  PeersServer& member = add_member("n2");
  ASSERT_TRUE(is_welcome(member));
  hub.peers.find("n2")->close();
  EXPECT_TRUE(run_until([&] { return member.drops.size() == 1 && member.count(wire::Welcome{}) == 2; }));
  EXPECT_EQ(hub.drops, std::vector<std::string>{"n2"});
  EXPECT_EQ(member.greeted, 2);
  members.clear();
  EXPECT_TRUE(run_until([&] { return !hub.peers.is_linked(); }));
  EXPECT_EQ(hub.drops.size(), 2U);
}

TEST_F(PeersOfLaunch, DropSilentLinks) {
  PeersServer& hub = listen();
  PeersServer& member = add_member("n2");
  ASSERT_TRUE(is_welcome(member));
  const Descriptor stranger = test::connect_to_port(port);
  ASSERT_TRUE(run_until([&] { return hub.peers.links().size() == 2; }));
  const Seconds now = PeersServer::now();
  hub.peers.drop_silent(now + Seconds(9), Seconds(10), Seconds(20));
  EXPECT_EQ(hub.peers.links().size(), 2U);
  hub.peers.drop_silent(now + Seconds(11), Seconds(10), Seconds(20));
  EXPECT_EQ(hub.peers.links().size(), 1U);
  hub.peers.drop_silent(now + Seconds(1000), Seconds(10), Seconds(20));  // the policy decides about members
  EXPECT_NE(hub.peers.find("n2"), nullptr);
  member.peers.drop_silent(now + Seconds(19), Seconds(10), Seconds(20));
  EXPECT_TRUE(member.peers.is_linked());
  member.peers.discount_pause(Seconds(5));
  member.peers.drop_silent(now + Seconds(24), Seconds(10), Seconds(20));
  EXPECT_TRUE(member.peers.is_linked());
  member.peers.drop_silent(now + Seconds(26), Seconds(10), Seconds(20));
  EXPECT_FALSE(member.peers.is_linked());
  EXPECT_EQ(member.drops.size(), 1U);
}

TEST_F(PeersOfLaunch, DropACoordinatorThatDoesNotAnswer) {
  listen();
  PeersServer& member = add_member("n2");
  member.says_hello = false;
  ASSERT_TRUE(run_until([&] { return member.greeted == 1; }));
  const Seconds now = PeersServer::now();
  member.peers.drop_silent(now + Seconds(9), Seconds(10), Seconds(20));
  EXPECT_TRUE(member.peers.is_linked());
  member.peers.drop_silent(now + Seconds(11), Seconds(10), Seconds(20));
  EXPECT_FALSE(member.peers.is_linked());
}

TEST_F(PeersOfLaunch, SayTheLastWord) {
  PeersServer& hub = listen();
  PeersServer& member = add_member("n2");
  ASSERT_TRUE(is_welcome(member));
  hub.peers.broadcast(wire::Beat{});  // unread when the member closes
  const wire::LastLines lines{.rank = 1, .text = std::string(4000, 'x')};
  Link* const link = member.peers.find("");
  std::size_t sent = 0;
  while (!link->has_unsent()) {
    link->send(lines);
    ++sent;
  }
  {
    BackgroundWork reading([&] { run_until([&] { return hub.count(wire::Bye{}) > 0; }, Seconds(5)); });
    // The fixture's step() must not use the member meanwhile.
    std::unique_ptr<PeersServer> leaving = std::move(members.back());
    members.clear();
    leaving->peers.say_last(wire::Bye{});
    reading.wait();
  }
  EXPECT_EQ(hub.count(wire::Bye{}), 1U);
  EXPECT_EQ(hub.count(lines), sent);
}

TEST_F(PeersOfLaunch, SayTheLastWordForTwoSecondsAtMost) {
  listen();
  for (const char* name : {"n2", "n3"}) {
    ASSERT_TRUE(is_welcome(add_member(name)));
    Link* const link = coordinator->peers.find(name);
    for (int unsent = 0; unsent < 150; unsent = link->has_unsent() ? unsent + 1 : 0) {
      link->send(wire::LastLines{.rank = 1, .text = std::string(4000, 'x')});
    }
  }
  const Seconds start = PeersServer::now();
  coordinator->peers.say_last(wire::Bye{});
  EXPECT_GE(PeersServer::now() - start, Seconds(2));
  EXPECT_LT(PeersServer::now() - start, test::patience);
  EXPECT_EQ(coordinator->peers.find("n2"), nullptr);
}

TEST_F(PeersOfLaunch, DropAMemberThatDoesNotRead) {
  PeersServer& hub = listen();
  ASSERT_TRUE(is_welcome(add_member("n2")));
  const wire::LastLines lines{.rank = 1, .text = std::string(4000, 'x')};
  for (int i = 0; i < 10000 && hub.peers.find("n2") != nullptr; ++i) {
    hub.peers.broadcast(lines);
  }
  EXPECT_EQ(hub.peers.find("n2"), nullptr);
  hub.peers.flush();
  EXPECT_EQ(hub.drops, std::vector<std::string>{"n2"});
}

TEST_F(PeersOfLaunch, BroadcastOnlyToMembers) {
  PeersServer& hub = listen();
  PeersServer& silent = add_member("n2");
  silent.says_hello = false;
  ASSERT_TRUE(run_until([&] { return silent.greeted == 1; }));
  PeersServer& member = add_member("n3");
  ASSERT_TRUE(is_welcome(member));
  hub.peers.broadcast(wire::Beat{});
  EXPECT_TRUE(run_until([&] { return member.count(wire::Beat{}) == 1; }));
  EXPECT_TRUE(silent.received.empty());
}

TEST_F(PeersOfLaunch, StopListening) {
  PeersServer& hub = listen();
  ASSERT_TRUE(is_welcome(add_member("n2")));
  hub.peers.stop_listening();
  EXPECT_FALSE(hub.peers.is_listening());
  EXPECT_FALSE(test::connect_to_port(port));
  EXPECT_NE(hub.peers.find("n2"), nullptr);
}

// Runs out of descriptors. In a child process, because the limit applies to the whole process.
class PeersWithoutDescriptors : public PeersOfLaunch {
 protected:
  static void use_up(std::vector<Descriptor>& used) {
    while (true) {
      Descriptor one(::dup(0));
      if (!one) {
        return;
      }
      used.push_back(std::move(one));
    }
  }
  int run_in_child(const std::function<bool()>& test) {
    test::Started child([&] {
      const rlimit limit{64, 64};
      ::setrlimit(RLIMIT_NOFILE, &limit);
      ::_exit(test() ? 0 : 1);
    });
    return child.wait();
  }
};

TEST_F(PeersWithoutDescriptors, StrangersGiveWay) {
  EXPECT_EQ(run_in_child([&] {
              listen();
              std::vector<Descriptor> ends;
              for (int i = 0; i < 4; ++i) {
                ends.push_back(test::connect_to_port(port));
              }
              run_until([&] { return coordinator->peers.links().size() == 4; });
              ends.push_back(test::connect_to_port(port));  // not accepted yet
              std::vector<Descriptor> used;
              use_up(used);
              return run_until([&] { return coordinator->drops.size() == 1; }) &&
                     coordinator->peers.links().size() == 4 && !coordinator->peers.is_deaf();
            }),
            0);
}

TEST_F(PeersWithoutDescriptors, ItIsDeafForASecond) {
  EXPECT_EQ(run_in_child([&] {
              listen();
              PeersServer& member = add_member("n2");
              std::vector<Descriptor> used;
              const bool begun = run_until([&] {
                member.peers.keep_connecting(PeersServer::now(), Seconds(0.05));
                return true;
              });
              use_up(used);
              if (!begun || !run_until([&] { return coordinator->peers.is_deaf(); })) {
                return false;
              }
              std::vector<pollfd> fds;
              coordinator->peers.prepare(fds);
              if (!fds.empty() || coordinator->peers.refusal() != "Too many open files") {
                return false;
              }
              const Seconds start = PeersServer::now();
              used.clear();
              return is_welcome(member) && PeersServer::now() - start > Seconds(0.7) &&
                     !coordinator->peers.is_deaf();
            }),
            0);
}

TEST(FreePort, IsFree) {
  for (const bool ipv6 : {false, true}) {
    const int port = find_free_port(ipv6);
    if (port == 0 && ipv6) {
      continue;  // no IPv6 here
    }
    EXPECT_GT(port, 0);
    EXPECT_LT(port, 65536);
    EXPECT_FALSE(test::connect_to_port(port));
  }
}

}  // namespace
}  // namespace remote::agent
