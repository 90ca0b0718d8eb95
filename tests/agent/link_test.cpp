#include "agent/launch/link.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tcp_pair.hpp"
#include "wire/cbor.hpp"

namespace remote::agent {
namespace {

using test::connect_pair;
using test::make_frame;
using test::read_frame;
using test::send_all;
using wire::LinkMessage;
using Messages = std::vector<LinkMessage>;

// The tokens of the members with the numbers 1 and 2.
const std::string token = "0123456789abcdef0123456789abcdef";
const std::string second_token = "fedcba9876543210fedcba9876543210";

// A coordinator's link, or the link of the member with the number 1.
std::unique_ptr<Link> make_link(Descriptor socket, bool is_coordinator) {
  const auto find_token = [](std::size_t number) {
    return number == 1 ? token : number == 2 ? second_token : std::string();
  };
  return is_coordinator ? std::make_unique<Link>(std::move(socket), find_token, Seconds(1))
                        : std::make_unique<Link>(std::move(socket), std::size_t{1}, token, Seconds(1));
}

// The number in a member's greeting.
std::string to_number(char last) {
  return std::string(3, '\0') + last;
}

// Waits for data, and receives once.
Messages receive(Link& link, Seconds now = Seconds(5)) {
  if (!link.is_open()) {
    return {};
  }
  pollfd ready{link.fd(), POLLIN, 0};
  ::poll(&ready, 1, 5000);
  return link.receive(now);
}

// Receives until there is a message, or the link closes.
Messages receive_message(Link& link, Seconds now = Seconds(5)) {
  Messages messages;
  for (int i = 0; i < 10 && messages.empty() && link.is_open(); ++i) {
    messages = receive(link, now);
  }
  return messages;
}

// The link of a coordinator or a member; the test is its peer.
struct OneEnd {
  explicit OneEnd(bool is_coordinator) {
    auto [one, other] = connect_pair();
    link = make_link(std::move(one), is_coordinator);
    peer = std::move(other);
  }
  bool closes_after(std::string_view bytes) {
    send_all(peer, bytes);
    return receive(*link).empty() && !link->is_open();
  }

  std::unique_ptr<Link> link;
  Descriptor peer;
};

// A coordinator and a member; the test passes the frames between them.
struct TwoEnds {
  TwoEnds() {
    const std::string to_member = read_frame(coordinator.peer);
    const std::string to_coordinator = read_frame(member.peer);
    greetings = {to_coordinator, to_member};
    send_all(coordinator.peer, to_coordinator);
    send_all(member.peer, to_member);
    receive(*coordinator.link);
    receive(*member.link);
    headers = {read_frame(member.peer), read_frame(coordinator.peer)};
    send_all(coordinator.peer, headers.first);
    send_all(member.peer, headers.second);
    receive(*coordinator.link);
    receive(*member.link);
  }
  // The encrypted frame of a message from the member.
  std::string encrypt(const LinkMessage& message) {
    member.link->send(message);
    return read_frame(member.peer);
  }
  Messages deliver(const std::string& bytes) {
    send_all(coordinator.peer, bytes);
    return receive(*coordinator.link);
  }
  // Authenticates both links.
  void say_hello() {
    deliver(encrypt(wire::Hello{}));
    coordinator.link->send(wire::Welcome{});
    send_all(member.peer, read_frame(coordinator.peer));
    receive(*member.link);
  }

  OneEnd coordinator{true};
  OneEnd member{false};
  std::pair<std::string, std::string> greetings;  // of the member and of the coordinator
  std::pair<std::string, std::string> headers;
};

struct Connected {
  // A coordinator and a member.
  explicit Connected(std::size_t number = 1, const std::string& own_token = token) {
    auto [one, other] = connect_pair();
    first = make_link(std::move(one), true);
    second = std::make_unique<Link>(std::move(other), number, own_token, Seconds(1));
    exchange_keys();
  }
  // Both have the same role.
  explicit Connected(bool are_coordinators) {
    auto [one, other] = connect_pair();
    first = make_link(std::move(one), are_coordinators);
    second = make_link(std::move(other), are_coordinators);
    exchange_keys();
  }
  void exchange_keys() const {
    for (const Link* waiting : {first.get(), second.get()}) {
      Link& link = waiting == first.get() ? *first : *second;
      while (!link.has_keys() && link.is_open()) {
        receive(link);
      }
    }
  }
  void expect_refused() const {
    first->send(wire::Beat{});
    second->send(wire::Hello{});
    EXPECT_TRUE(receive_message(*first, Seconds(9)).empty());
    EXPECT_TRUE(receive_message(*second, Seconds(9)).empty());
    for (const Link* link : {first.get(), second.get()}) {
      EXPECT_FALSE(link->is_open());
      EXPECT_FALSE(link->is_authenticated());
      EXPECT_EQ(link->heard(), Seconds(1));
    }
  }
  std::unique_ptr<Link> first;
  std::unique_ptr<Link> second;
};

TEST(Link, CarriesMessagesBothWays) {
  Connected ends;
  EXPECT_TRUE(ends.first->has_keys());
  EXPECT_FALSE(ends.first->is_authenticated());
  EXPECT_EQ(ends.first->heard(), Seconds(1));
  ends.second->send(wire::Hello{});
  EXPECT_EQ(receive_message(*ends.first, Seconds(7)), Messages{wire::Hello{}});
  EXPECT_TRUE(ends.first->is_authenticated());
  EXPECT_EQ(ends.first->number(), 1U);
  EXPECT_FALSE(ends.second->is_authenticated());
  EXPECT_EQ(ends.first->heard(), Seconds(7));
  EXPECT_EQ(ends.second->heard(), Seconds(1));
  ends.first->send(wire::Welcome{});
  ends.first->send(wire::EndLaunch{});
  EXPECT_EQ(receive_message(*ends.second), (Messages{wire::Welcome{}, wire::EndLaunch{}}));
  EXPECT_TRUE(ends.second->is_authenticated());
  ends.second->send(wire::Beat{});
  ends.second->send(wire::Bye{});
  EXPECT_EQ(receive_message(*ends.first), (Messages{wire::Beat{}, wire::Bye{}}));
}

TEST(Link, SendsNothingWithoutKeys) {
  OneEnd end(true);
  const std::string greeting = read_frame(end.peer);
  EXPECT_EQ(greeting.substr(4, 13), "remote-link1 ");
  EXPECT_EQ(greeting.size(), 4U + 13 + 32);
  EXPECT_EQ(greeting.find(token), std::string::npos);
  end.link->send(wire::Beat{});
  EXPECT_FALSE(end.link->has_unsent());
  EXPECT_EQ(test::read_some(end.peer), "");
}

TEST(Link, EncryptsItsMessages) {
  TwoEnds ends;
  EXPECT_EQ(ends.encrypt(wire::MarkSick{"a-long-mark"}).find("a-long-mark"), std::string::npos);
  EXPECT_NE(ends.encrypt(wire::Beat{}), ends.encrypt(wire::Beat{}));
}

TEST(Link, ClosesForAnotherToken) {
  for (const std::string& other : {token + "x", token.substr(1), std::string()}) {
    Connected(1, other).expect_refused();
  }
}

// A hostile server of the launch knows its own token.
TEST(Link, ClosesForTheTokenOfAnotherMember) {
  Connected own(2, second_token);
  own.second->send(wire::Hello{});
  EXPECT_EQ(receive_message(*own.first), Messages{wire::Hello{}});
  EXPECT_EQ(own.first->number(), 2U);
  Connected(1, second_token).expect_refused();
  Connected(2, token).expect_refused();
}

TEST(Link, ClosesForANumberWithoutAToken) {
  for (const std::size_t number : {std::size_t{0}, std::size_t{3}, std::size_t{0xffffffff}}) {
    Connected(number, token).expect_refused();
    Connected(number, "").expect_refused();
  }
}

TEST(Link, IsBetweenACoordinatorAndAMember) {
  for (const bool role : {true, false}) {
    Connected ends(role);
    ends.first->send(wire::Beat{});
    EXPECT_TRUE(receive_message(*ends.second).empty());
    EXPECT_FALSE(ends.second->is_open());
  }
}

TEST(Link, RefusesItsOwnNonce) {
  for (const bool role : {true, false}) {
    OneEnd end(role);
    const std::string greeting = read_frame(end.peer).substr(4, 13 + 32);
    EXPECT_TRUE(end.closes_after(make_frame(greeting + (role ? to_number(1) : ""))));
    OneEnd other(role);
    EXPECT_FALSE(other.closes_after(make_frame(greeting + (role ? to_number(1) : "")))) << "another's";
  }
}

TEST(Link, RefusesItsOwnMessages) {
  TwoEnds ends;
  ends.coordinator.link->send(wire::Beat{});
  EXPECT_TRUE(ends.coordinator.closes_after(read_frame(ends.coordinator.peer)));
}

TEST(Link, RefusesARepeatedMessage) {
  TwoEnds ends;
  const std::string frame = ends.encrypt(wire::Hello{});
  EXPECT_EQ(ends.deliver(frame), Messages{wire::Hello{}});
  EXPECT_TRUE(ends.coordinator.closes_after(frame));
}

TEST(Link, RefusesAnOmittedMessage) {
  TwoEnds ends;
  ends.encrypt(wire::Hello{});
  EXPECT_TRUE(ends.coordinator.closes_after(ends.encrypt(wire::Beat{})));
}

TEST(Link, RefusesARecordedConversation) {
  TwoEnds ends;
  const std::string recorded = ends.greetings.first + ends.headers.first + ends.encrypt(wire::Hello{});
  OneEnd other(true);
  send_all(other.peer, recorded);
  EXPECT_TRUE(receive_message(*other.link, Seconds(9)).empty());
  EXPECT_FALSE(other.link->is_open());
  EXPECT_FALSE(other.link->is_authenticated());
  EXPECT_EQ(other.link->heard(), Seconds(1));
}

TEST(Link, RefusesAnyChangedByte) {
  const std::size_t size = TwoEnds().encrypt(wire::Hello{}).size();
  for (std::size_t i = 4; i < size; ++i) {
    TwoEnds ends;
    std::string frame = ends.encrypt(wire::Hello{});
    frame[i] = static_cast<char>(frame[i] ^ 1);
    EXPECT_TRUE(ends.coordinator.closes_after(frame)) << i;
    EXPECT_EQ(ends.coordinator.link->heard(), Seconds(1));
  }
}

TEST(Link, RefusesAChangedStreamHeader) {
  TwoEnds ends;
  OneEnd coordinator(true);
  OneEnd member(false);
  send_all(coordinator.peer, read_frame(member.peer));
  send_all(member.peer, read_frame(coordinator.peer));
  receive(*coordinator.link);
  receive(*member.link);
  std::string header = read_frame(member.peer);
  header.back() = static_cast<char>(header.back() ^ 1);
  member.link->send(wire::Hello{});
  send_all(coordinator.peer, header + read_frame(member.peer));
  EXPECT_TRUE(receive_message(*coordinator.link).empty());
  EXPECT_FALSE(coordinator.link->is_open());
}

TEST(Link, KeepsMessagesBeforeAnInvalidOne) {
  TwoEnds ends;
  const std::string frame = ends.encrypt(wire::Hello{});
  EXPECT_EQ(ends.deliver(frame + frame), Messages{wire::Hello{}});
  EXPECT_FALSE(ends.coordinator.link->is_open());
}

TEST(Link, TakesDataByteByByte) {
  TwoEnds ends;
  std::string bytes = ends.encrypt(wire::Hello{});
  bytes += ends.encrypt(wire::Beat{});
  Messages messages;
  for (const char c : bytes) {
    for (LinkMessage& message : ends.deliver(std::string(1, c))) {
      messages.push_back(std::move(message));
    }
  }
  EXPECT_EQ(messages, (Messages{wire::Hello{}, wire::Beat{}}));
}

TEST(Link, ClosesForStrangers) {
  const std::string nonce(32, 'x');
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("SSH-2.0-x\r\n"), make_frame(""),
        make_frame("remote-link2 " + nonce), make_frame("remote-link1 " + nonce.substr(1)),
        make_frame("remote-link1 " + nonce + "x"), make_frame("remote-link1 "),
        make_frame("lifeline1 " + nonce), make_frame("remote-link1 " + nonce + to_number(1) + "x")}) {
    EXPECT_TRUE(OneEnd(true).closes_after(bytes)) << bytes;
    EXPECT_TRUE(OneEnd(false).closes_after(bytes)) << bytes;
  }
  const std::string greeting = make_frame("remote-link1 " + nonce + to_number(1));
  EXPECT_TRUE(OneEnd(true).closes_after(make_frame("remote-link1 " + nonce)));
  EXPECT_TRUE(OneEnd(false).closes_after(greeting));
  for (const std::string& second :
       {make_frame(""), make_frame(std::string(23, 'x')), make_frame(std::string(25, 'x'))}) {
    EXPECT_TRUE(OneEnd(true).closes_after(greeting + second));
  }
  const std::string header = make_frame(std::string(24, 'x'));
  for (const std::string& third : {make_frame(""), make_frame(std::string(16, 'x')),
                                   make_frame(std::string(17, 'x')), make_frame(std::string(60, 'x'))}) {
    EXPECT_TRUE(OneEnd(true).closes_after(greeting + header + third));
  }
}

TEST(Link, ClosesForALongFrameBeforeAuthentication) {
  // Because of its length alone, in every state.
  const std::string greeting = make_frame("remote-link1 " + std::string(32, 'x') + to_number(1));
  const std::string header = make_frame(std::string(24, 'x'));
  for (const std::string& before : {std::string(), greeting, greeting + header}) {
    OneEnd within(true);
    send_all(within.peer, before + std::string("\0\0\x10\0", 4) + "x");
    receive(*within.link);
    EXPECT_TRUE(within.link->is_open());
    EXPECT_TRUE(OneEnd(true).closes_after(before + std::string("\0\0\x10\1", 4)));
    EXPECT_TRUE(OneEnd(true).closes_after(before + std::string("\xff\xff\xff\xff", 4)));
  }
}

TEST(Link, TakesLongerFramesOfTheCoordinator) {
  TwoEnds ends;
  const wire::MpiOrder order{std::vector<std::string>(4, std::string(30000, 'x'))};
  ends.coordinator.link->send(order);
  EXPECT_TRUE(ends.member.closes_after(read_frame(ends.coordinator.peer)));  // the peer is not authenticated
  TwoEnds others;
  others.say_hello();
  others.coordinator.link->send(order);
  send_all(others.member.peer, read_frame(others.coordinator.peer));
  EXPECT_EQ(receive_message(*others.member.link), Messages{order});
  EXPECT_TRUE(others.member.closes_after(std::string("\0\2\0\1", 4)));
}

TEST(Link, LimitsTheFramesOfAMember) {
  TwoEnds ends;
  ends.say_hello();
  wire::AskLease ask;  // the longest message of a member
  ask.checkpoints =
      std::vector<std::string>(wire::max_checkpoints, std::string(wire::max_checkpoint_name, 'x'));
  const std::string frame = ends.encrypt(ask);
  EXPECT_EQ(ends.deliver(frame), Messages{ask});
  EXPECT_TRUE(ends.coordinator.closes_after(std::string("\0\0\x40\1", 4)));
}

TEST(Link, DoesNotSendWhatThePeerWouldRefuse) {
  TwoEnds ends;
  ends.say_hello();
  ends.member.link->send(wire::MpiOrder{std::vector<std::string>(1, std::string(20000, 'x'))});
  ends.coordinator.link->send(wire::MpiOrder{std::vector<std::string>(5, std::string(30000, 'x'))});
  EXPECT_EQ(ends.deliver(ends.encrypt(wire::Beat{})), Messages{wire::Beat{}});
  ends.coordinator.link->send(wire::Beat{});
  send_all(ends.member.peer, read_frame(ends.coordinator.peer));
  EXPECT_EQ(receive_message(*ends.member.link), Messages{wire::Beat{}});
}

TEST(Link, ClosesForAPeerThatDoesNotRead) {
  TwoEnds ends;
  const wire::LastLines lines{.rank = 1, .text = std::string(4000, 'x')};
  std::size_t sent = 0;
  bool had_unsent = false;
  while (ends.member.link->is_open() && sent < (std::size_t{64} << 20U)) {
    ends.member.link->send(lines);
    had_unsent = had_unsent || ends.member.link->has_unsent();
    sent += 4000;
  }
  EXPECT_FALSE(ends.member.link->is_open());
  EXPECT_FALSE(ends.member.link->has_unsent());
  EXPECT_TRUE(had_unsent);
  EXPECT_GT(sent, Link::max_unsent);
}

TEST(Link, SendsTheRestWhenThePeerReads) {
  Connected ends;
  const wire::LastLines lines{.rank = 1, .text = std::string(4000, 'x')};
  std::size_t sent = 0;
  while (!ends.second->has_unsent()) {
    ends.second->send(lines);
    ++sent;
  }
  std::size_t received = 0;
  for (int i = 0; i < 100000 && received < sent; ++i) {
    received += receive(*ends.first).size();
    ends.second->flush();
  }
  EXPECT_EQ(received, sent);
  EXPECT_FALSE(ends.second->has_unsent());
}

TEST(Link, ClosesWithItsPeer) {
  OneEnd end(true);
  end.peer.reset();
  EXPECT_TRUE(receive(*end.link).empty());
  EXPECT_FALSE(end.link->is_open());
  EXPECT_EQ(end.link->fd(), -1);
  EXPECT_TRUE(end.link->receive(Seconds(2)).empty());
  end.link->send(wire::Beat{});
  end.link->flush();
}

TEST(Link, DoesNotCountItsOwnPause) {
  OneEnd end(true);
  end.link->discount_pause(Seconds(30));
  EXPECT_EQ(end.link->heard(), Seconds(31));
}

// A peer that knows the token and can encrypt any message.
class KnowingPeer {
 public:
  explicit KnowingPeer(OneEnd& end) : end_(end) {
    const std::string nonce = read_frame(end.peer).substr(4 + 13);
    const std::string own(32, 'n');
    std::array<unsigned char, 32> secret;
    std::array<unsigned char, 32> key;
    crypto_generichash(secret.data(), 32, as_unsigned(token), token.size(), nullptr, 0);
    const std::string text = "remote-link1 from a member " + nonce + own;
    crypto_generichash(key.data(), 32, as_unsigned(text), text.size(), secret.data(), 32);
    std::string header(24, '\0');
    crypto_secretstream_xchacha20poly1305_init_push(&stream_, reinterpret_cast<unsigned char*>(header.data()),
                                                    key.data());
    send_all(end.peer, make_frame("remote-link1 " + own + to_number(1)) + make_frame(header));
    receive(*end.link);
  }
  Messages send(std::string_view plain, unsigned char tag = 0) {
    std::string sealed(plain.size() + 17, '\0');
    crypto_secretstream_xchacha20poly1305_push(&stream_, reinterpret_cast<unsigned char*>(sealed.data()),
                                               nullptr, as_unsigned(plain), plain.size(), nullptr, 0, tag);
    send_all(end_.peer, make_frame(sealed));
    return receive(*end_.link, Seconds(9));
  }

 private:
  static const unsigned char* as_unsigned(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  }
  OneEnd& end_;
  crypto_secretstream_xchacha20poly1305_state stream_{};
};

std::string to_bytes(const LinkMessage& message) {
  const wire::Bytes bytes = wire::encode(message);
  return {bytes.begin(), bytes.end()};
}

TEST(Link, ClosesForMalformedMessages) {
  {
    OneEnd end(true);
    EXPECT_EQ(KnowingPeer(end).send(to_bytes(wire::Beat{})), Messages{wire::Beat{}});
  }
  for (const std::string& plain : {std::string(), std::string("x"), to_bytes(wire::Beat{}) + "x",
                                   to_bytes(wire::MarkSick{std::string(65, 'x')})}) {
    OneEnd end(true);
    EXPECT_TRUE(KnowingPeer(end).send(plain).empty());
    EXPECT_FALSE(end.link->is_open()) << plain.size();
    EXPECT_FALSE(end.link->is_authenticated());
    EXPECT_EQ(end.link->heard(), Seconds(1));
  }
  OneEnd end(true);
  EXPECT_TRUE(
      KnowingPeer(end).send(to_bytes(wire::Beat{}), crypto_secretstream_xchacha20poly1305_TAG_FINAL).empty());
  EXPECT_FALSE(end.link->is_open());
}

}  // namespace
}  // namespace remote::agent
