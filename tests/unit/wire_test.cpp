#include <limits>

#include <gtest/gtest.h>

#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/json.hpp"
#include "wire/launch_journal.hpp"
#include "wire/link.hpp"

namespace remote::wire {
namespace {

enum class Color { red, green };

struct Inner {
  int number = 0;
  static constexpr auto fields() { return field_list(field("number", &Inner::number, in_range(1, 9))); }
  friend bool operator==(const Inner&, const Inner&) = default;
};

struct Everything {
  bool yes = false;
  std::uint64_t big = 0;
  double real = 0;
  std::string text;
  Color color = Color::red;
  std::optional<int> maybe;
  std::vector<Inner> list;
  std::map<std::string, std::string> map;
  std::variant<Beat, MarkSick> variant;
  static constexpr auto fields() {
    return field_list(field("yes", &Everything::yes), field("big", &Everything::big),
                      field("real", &Everything::real), field("text", &Everything::text, at_most(8)),
                      field("color", &Everything::color), field("maybe", &Everything::maybe),
                      field("list", &Everything::list, at_most(2)), field("map", &Everything::map),
                      field("variant", &Everything::variant));
  }
  friend bool operator==(const Everything&, const Everything&) = default;
};

}  // namespace

template <>
inline constexpr std::array enum_names<Color> = {std::string_view("red"), std::string_view("green")};

namespace {

Everything example() {
  return {true, 1ULL << 62, 0.5, "text", Color::green, 7, {{1}, {9}}, {{"a", "b"}}, MarkSick{"disk"}};
}

TEST(Wire, EncodesAndDecodesEveryKindOfField) {
  EXPECT_EQ(decode<Everything>(encode(example())), example());
  Everything empty;
  EXPECT_EQ(decode<Everything>(encode(empty)), empty);
}

std::string refusal(const Json& json) {
  try {
    from_json<Everything>(json);
  } catch (const Malformed& error) {
    return error.what();
  }
  return "";
}

TEST(Wire, RefusesWhatIsNotDeclared) {
  const Json good = to_json(example());
  ASSERT_EQ(refusal(good), "");
  const auto with = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_EQ(with("/other", 1), "the message has an unknown field");
  EXPECT_EQ(with("/yes", 1), "'yes' is not true or false");
  EXPECT_EQ(with("/big", -1), "'big' is out of range");
  EXPECT_EQ(with("/big", std::numeric_limits<std::uint64_t>::max()), "'big' is not an integer");
  EXPECT_EQ(with("/big", 0.5), "'big' is not an integer");
  EXPECT_EQ(with("/real", std::numeric_limits<double>::quiet_NaN()), "'real' is out of range");
  EXPECT_EQ(with("/text", "longer than 8"), "'text' is longer than 8 bytes");
  EXPECT_EQ(with("/color", "blue"), "'color' is an unknown name");
  EXPECT_EQ(with("/maybe", "x"), "'maybe' is not an integer");
  EXPECT_EQ(with("/list/0/number", 10), "'list[0].number' is out of range");
  EXPECT_EQ(with("/list", {1, 2, 3}), "'list' has more than 2 entries");
  EXPECT_EQ(with("/map/a", 1), "'map[a]' is not a string");
  EXPECT_EQ(with("/variant/kind", "other"), "'variant' is of an unknown kind");
  EXPECT_EQ(with("/variant", {{"kind", "beat"}, {"server", "x"}}), "'variant' has an unknown field");
  Json less = good;
  less.erase("text");
  EXPECT_EQ(refusal(less), "'text' is missing");
  EXPECT_EQ(refusal(Json::array()), "the message is not an object");
}

TEST(Wire, BoundsTheDepthAndTheSizeOfWhatItParses) {
  EXPECT_THROW(parse_cbor(Bytes(1 << 20, 0x81)), Malformed);  // nested arrays: a stack overflow if recursive
  EXPECT_THROW(parse_cbor(Bytes{}), Malformed);
  EXPECT_THROW(parse_cbor(Bytes{0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), Malformed);
  Bytes many{0x9a, 0x00, 0x05, 0x00, 0x00};  // 327680 zeros
  many.resize(many.size() + 327680, 0);
  EXPECT_THROW(parse_cbor(many), Malformed);
  EXPECT_THROW(parse_cbor(Bytes{0xa2, 0x61, 'a', 0x01, 0x61, 'a', 0x02}), Malformed);  // a repeated field
  EXPECT_THROW(parse_cbor(Bytes{0x01, 0x01}), Malformed);                              // trailing data
  EXPECT_THROW(parse_cbor(Bytes{0x41, 0x00}), Malformed);                              // a byte string
}

TEST(Wire, CarriesEveryMessageOfALink) {
  const RankFailure failure{3, "a", {EndKind::out_of_memory, 9}, true, "gpu"};
  const std::vector<LinkMessage> messages = {
      Hello{},
      Welcome{},
      Beat{},
      Bye{},
      ByeNoted{},
      EndLaunch{Hang{60}},
      Left{RankEnded{1}},
      ContinueWithout{"b", ServerLoss{"b"}},
      JobFailed{failure},
      JobStopped{1, 200},
      LastLines{1, "text\n"},
      AskLease{7, 2, 1, {OutcomeState::failed, 0, failure}, {"ckpt/é=1 %.pt"}},
      AskNow{},
      GrantLease{7, 2, {1024, 4, 2, 1, 2, "ckpt/e3.pt", failure}},
      StopAttempt{2},
      NoMoreAttempts{},
      MarkSick{"gpu"},
      Stillness{1.5, 2.5},
      TakeEvidence{5},
      EvidenceTaken{5, true},
      Hangs{60},
      DropEvidence{},
      Continued{},
      MpiOrder{{"orted", "-mca", "a b"}},
      LeaseReport{"0a1b", LeaseTurn::started, 1024},
      LeaseOrder{LeaseAction::start, 1024},
      SweepNote{WantPoint{}}};
  for (const LinkMessage& message : messages) {
    EXPECT_EQ(decode<LinkMessage>(encode(message)), message) << to_json(message);
    EXPECT_EQ(from_json<LinkMessage>(to_json(message)), message) << to_json(message);
  }
  EXPECT_EQ(messages.size(), std::variant_size_v<LinkMessage>);
}

Frame frame(FrameKind kind, std::uint32_t stream, std::string_view payload) {
  return {kind, stream, Bytes(payload.begin(), payload.end())};
}

TEST(FrameReader, DividesBytesHoweverTheyCome) {
  Bytes bytes;
  const std::vector<Frame> frames = {frame(FrameKind::message, 0, "m"),
                                     frame(FrameKind::data, 70000, "some bytes"),
                                     frame(FrameKind::end, 70000, "")};
  for (const Frame& each : frames) {
    append_frame(bytes, each.kind, each.stream, each.payload);
  }
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    std::vector<Frame> read;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      while (auto next = reader.next()) {
        read.push_back(*next);
      }
    }
    EXPECT_EQ(read, frames);
    EXPECT_FALSE(reader.is_inside_frame());
  }
}

TEST(FrameReader, RefusesUnknownKindsAndLengthsBeforeTheyArrive) {
  FrameReader kinds;
  kinds.add(Bytes{0, 0, 0, 0, 0, 0, 0, 0, 5});
  EXPECT_THROW(kinds.next(), Malformed);
  FrameReader lengths;
  lengths.add(Bytes{0, 0x10, 0, 1, 0, 0, 0, 0, 0});
  EXPECT_THROW(lengths.next(), Malformed);
}

TEST(Credit, BoundsWhatIsUnderWay) {
  SendCredit send;
  ReceiveCredit receive;
  EXPECT_EQ(send.available(), initial_credit);
  send.consume(initial_credit);
  receive.receive(initial_credit);
  EXPECT_THROW(receive.receive(1), Malformed);
  EXPECT_EQ(receive.consume(10), 0U);
  const std::uint32_t grant = receive.consume(initial_credit / 2);
  EXPECT_EQ(grant, initial_credit / 2 + 10);
  Bytes bytes;
  append_credit(bytes, 3, grant);
  FrameReader reader;
  reader.add(bytes);
  send.grant(read_credit(*reader.next()));
  EXPECT_EQ(send.available(), grant);
  receive.receive(grant);
  EXPECT_THROW(send.grant(std::numeric_limits<std::uint32_t>::max()), Malformed);
  EXPECT_THROW(read_credit(frame(FrameKind::credit, 3, "abc")), Malformed);
}

}  // namespace
}  // namespace remote::wire
