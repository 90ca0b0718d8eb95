#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "support/wire_refusals.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/json.hpp"
#include "wire/json_text.hpp"
#include "wire/request.hpp"

// Messages about stacks: they arrive as they were sent, and impossible values are rejected.

namespace remote::wire {
namespace {

using test::expect_needs_all_fields;
using test::expect_refusals;

const std::string stacks_id = std::string(31, 'a') + "1";
const std::string character_refused = "has a character that is not allowed";

StacksRequest stacks_request() {
  return {{"~/my proj", ".jobs"}, {stacks_id}, ". venv/bin/activate\n", std::string(64, 'b')};
}

WhyRequest why_request() {
  WhyRequest request{
      {"~/my proj", ".jobs"}, {stacks_id}, ". venv/bin/activate\n", std::chrono::seconds(7), {}};
  request.flight = "import os\n";
  return request;
}

ProcessStack full_stack() {
  ProcessStack stack{.id = stacks_id, .pid = 12, .rank = 3};
  stack.threads = {{"main thread", {"forward (/a é/train.py:12)"}}, {"Thread 0x1", {}}};
  stack.why = "there is no py-spy";
  stack.kernel = {"thread 12 (python3): state S"};
  return stack;
}

WhyReply why_reply() {
  WhyReply reply;
  reply.facts.emplace().disks_hang = true;
  reply.addresses = {"014D4D0A"};
  reply.silent = {"024D4D0A"};
  reply.flight = {{0, "0", 12, "started", "all_reduce", "Float", "3x4"}};
  reply.number = 1;
  reply.sample.emplace();
  reply.sample->at = std::chrono::milliseconds(123456);
  reply.sample->ranks = {{stacks_id, 12, 3, 77, 88}};
  reply.sample->processes = {{12, 1, "S", 50, 700, "pipe_write", 1, 13}};
  reply.stacks = {full_stack()};
  return reply;
}

template <typename Any, typename Message>
void expect_arrives(const Message& message) {
  const Json sent = to_json(Any(message));
  EXPECT_EQ(to_json(decode<Any>(encode(Any(message)))), sent);
  EXPECT_EQ(to_json(from_json<Any>(sent)), sent);
}

TEST(WireStacks, MessagesArriveWithAllTheirFields) {
  expect_arrives<Request>(stacks_request());
  expect_arrives<Request>(why_request());
  expect_arrives<Request>(KeptWhyRequest{{"~/p", ".jobs"}, {stacks_id}});
  expect_arrives<Reply>(StacksReply{{full_stack(), ProcessStack{.id = stacks_id}}});
  expect_arrives<Reply>(why_reply());
  expect_arrives<Reply>(WhyReply{});
  KeptWhyReply kept{.hang = HangRecord{Moment(1'700'000'000'123), std::chrono::seconds(60), {}}};
  kept.part = to_json_text(why_reply());
  expect_arrives<Reply>(kept);
  const auto read = from_json<WhyReply>(Json::parse(kept.part));
  EXPECT_TRUE(read.facts->disks_hang);
  EXPECT_EQ(read.stacks.at(0).threads.at(0).frames, full_stack().threads[0].frames);
  EXPECT_EQ(read.sample->processes.at(0).pipe_reader, 13);
  kept.part.resize(max_kept_part);
  EXPECT_LE(encode(Reply(kept)).size(), max_payload);
}

TEST(WireStacks, OddStacksAreRefused) {
  expect_refusals(
      Reply(StacksReply{{full_stack()}}),
      {{"/processes/0/id", "x", "'processes[0].id' " + character_refused},
       {"/processes/0/pid", 0, "'processes[0].pid' is out of range"},
       {"/processes/0/pid", -5, "'processes[0].pid' is out of range"},
       {"/processes/0/rank", -1, "'processes[0].rank' is out of range"},
       {"/processes/0/threads/0/name", "\x1b[2J", "'processes[0].threads[0].name' " + character_refused},
       {"/processes/0/threads/0/frames/0", "a\nb",
        "'processes[0].threads[0].frames[0]' " + character_refused},
       {"/processes/0/why", "\x07", "'processes[0].why' " + character_refused},
       {"/processes/0/kernel/0", "\r", "'processes[0].kernel[0]' " + character_refused}});
}

TEST(WireStacks, OddSamplesAreRefused) {
  expect_refusals(
      Reply(why_reply()),
      {{"/number", 2, "'number' is out of range"},
       {"/addresses/0", "../..", "'addresses[0]' " + character_refused},
       {"/silent/0", "0A;", "'silent[0]' " + character_refused},
       {"/flight/0/rank", -1, "'flight[0].rank' is out of range"},
       {"/flight/0/function", "a b", "'flight[0].function' " + character_refused},
       {"/flight/0/shapes", "3/4", "'flight[0].shapes' " + character_refused},
       {"/sample/ranks/0/id", "abc", "'sample.ranks[0].id' " + character_refused},
       {"/sample/processes/0/pid", 0, "'sample.processes[0].pid' is out of range"},
       {"/sample/processes/0/state", "SS", "'sample.processes[0].state' is longer than 1 bytes"},
       {"/sample/processes/0/state", "", "'sample.processes[0].state' " + character_refused},
       {"/sample/processes/0/kernel", "a/b", "'sample.processes[0].kernel' " + character_refused},
       {"/sample/processes/0/pipe_reader", 0, "'sample.processes[0].pipe_reader' is out of range"}});
  expect_needs_all_fields(Request(stacks_request()));
  expect_needs_all_fields(Request(why_request()));
}

}  // namespace
}  // namespace remote::wire
