#include "agent/launch/lease_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/facts/machine_digest.hpp"
#include "agent/job_folders.hpp"
#include "rules/lease_turns.hpp"

namespace remote::agent {
namespace {

using rules::Seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::LeaseAction;
using wire::LeaseOrder;
using wire::LeaseReport;
using wire::LeaseTurn;
using Message = std::pair<std::string, wire::LinkMessage>;

class LeaseQueueTest : public ::testing::Test {
 protected:
  LeaseQueueTest() : id_(folders_.make({})) {
    HostFolder::put(folders_.host().root / "etc/machine-id", "5\n");
    for (const char* name : {"a", "b", "c"}) {
      spec_.servers.push_back({.name = name, .ranks = 1, .mpi_host = ""});
    }
    spec_.lease_seconds = 60;
    machine_ = read_machine_digest(folders_.host());
  }
  using HostFolder = test::HostFolder;

  LeaseQueue open(const std::string& server) {
    spec_.server = server;
    return {folders_.host(), spec_, folders_.folder(id_), [] { return 4121; }};
  }
  void set_state(const std::string& text) { folders_.put(id_, "turn.state", text + "\n"); }
  std::string order() { return folders_.read(id_, "turn.order"); }
  static LeaseReport report(const std::string& machine, LeaseTurn state, int port = 0) {
    return {.machine = machine, .state = state, .port = port};
  }

  test::JobFolders folders_;
  std::string id_;
  std::string machine_;
  wire::LaunchSpec spec_;
};

TEST_F(LeaseQueueTest, AMemberReportsAndObeys) {
  LeaseQueue queue = open("b");
  EXPECT_THAT(queue.step(Seconds(0), {}, false).messages, IsEmpty());
  EXPECT_EQ(order(), "");
  const std::vector<std::pair<std::string, LeaseReport>> cases{
      {"keep", report(machine_, LeaseTurn::waiting)},
      {"line", report(machine_, LeaseTurn::in_line)},
      {"held", report(machine_, LeaseTurn::held)},
      {"gone 4121", report(machine_, LeaseTurn::started, 4121)},
      {"gone 0", report(machine_, LeaseTurn::started)}};
  for (const auto& [text, expected] : cases) {
    set_state(text);
    EXPECT_THAT(queue.step(Seconds(1), {}, false).messages, ElementsAre(Message("a", expected))) << text;
  }
  queue.hear("a", LeaseOrder{LeaseAction::wait});
  EXPECT_EQ(order(), "keep\n");
  queue.hear("a", LeaseOrder{LeaseAction::take});
  EXPECT_EQ(order(), "take\n");
  queue.hear("a", LeaseOrder{LeaseAction::start, 99});
  EXPECT_EQ(order(), "go 99\n");
  queue.hear("a", report("9", LeaseTurn::held));
  EXPECT_EQ(order(), "go 99\n");
}

TEST_F(LeaseQueueTest, AMessageIsRepeated) {
  LeaseQueue queue = open("b");
  set_state("line");
  EXPECT_EQ(queue.step(Seconds(10), {}, false).messages.size(), 1U);
  EXPECT_THAT(queue.step(Seconds(11.9), {}, false).messages, IsEmpty());
  EXPECT_EQ(queue.step(Seconds(12), {}, false).messages.size(), 1U);
  EXPECT_THAT(queue.step(Seconds(13), {}, false).messages, IsEmpty());
  set_state("held");
  EXPECT_EQ(queue.step(Seconds(13), {}, false).messages.size(), 1U);
}

TEST_F(LeaseQueueTest, AnOrderIsWrittenOnce) {
  LeaseQueue queue = open("b");
  queue.hear("a", LeaseOrder{LeaseAction::take});
  folders_.put(id_, "turn.order", "x");
  queue.hear("a", LeaseOrder{LeaseAction::take});
  EXPECT_EQ(order(), "x");
  queue.hear("a", LeaseOrder{LeaseAction::start, 1});
  queue.hear("a", LeaseOrder{LeaseAction::start, 2});
  EXPECT_EQ(order(), "go 2\n");
}

TEST_F(LeaseQueueTest, AnOrderThatCannotBeWrittenIsTriedAgain) {
  LeaseQueue queue = open("b");
  const fs::path folder = folders_.folder(id_);
  fs::rename(folder, folder.string() + ".away");
  queue.hear("a", LeaseOrder{LeaseAction::take});
  fs::rename(folder.string() + ".away", folder);
  EXPECT_EQ(order(), "");
  queue.hear("a", LeaseOrder{LeaseAction::take});
  EXPECT_EQ(order(), "take\n");
}

TEST_F(LeaseQueueTest, AnInvalidStateIsNotReported) {
  LeaseQueue queue = open("b");
  for (const char* text :
       {"", "gone", "gone x", "gone -1", "gone 65536", "gone 1 2", "held 1", "take", "HELD"}) {
    set_state(text);
    EXPECT_THAT(queue.step(Seconds(0), {}, false).messages, IsEmpty()) << text;
  }
}

TEST_F(LeaseQueueTest, AMemberStaysUntilTheCoordinatorHasLeft) {
  LeaseQueue queue = open("b");
  set_state("held");
  queue.step(Seconds(0), {}, true);
  EXPECT_FALSE(queue.is_over());
  set_state("gone 1");
  queue.step(Seconds(1), {}, false);
  EXPECT_FALSE(queue.is_over());
  queue.step(Seconds(2), {}, true);
  EXPECT_TRUE(queue.is_over());
  EXPECT_THAT(queue.step(Seconds(9), {"a"}, true).messages, IsEmpty());
  EXPECT_FALSE(queue.step(Seconds(9), {"a"}, true).lost);
}

TEST_F(LeaseQueueTest, AMemberWithoutCoordinatorEndsTheLaunch) {
  LeaseQueue queue = open("b");
  set_state("held");
  EXPECT_EQ(queue.step(Seconds(0), {"a"}, false).lost, "a");
}

TEST_F(LeaseQueueTest, TheCoordinatorOrders) {
  LeaseQueue queue = open("a");
  set_state("keep");
  const auto wait = [](const std::string& server) { return Message(server, LeaseOrder{LeaseAction::wait}); };
  EXPECT_THAT(queue.step(Seconds(0), {}, false).messages, ElementsAre(wait("b"), wait("c")));
  EXPECT_EQ(order(), "keep\n");
  queue.hear("b", report("", LeaseTurn::waiting));
  queue.hear("c", report("z", LeaseTurn::waiting));
  queue.hear("d", report("", LeaseTurn::waiting));
  EXPECT_THAT(queue.step(Seconds(1), {}, false).messages,
              ElementsAre(Message("b", LeaseOrder{LeaseAction::take})));
  queue.hear("b", report("", LeaseTurn::held));
  EXPECT_THAT(queue.step(Seconds(2), {}, false).messages, ElementsAre(wait("c")));  // repeated
  EXPECT_EQ(order(), "take\n");
  queue.hear("c", LeaseOrder{LeaseAction::start, 1});  // a member cannot give orders
  set_state("held");
  EXPECT_THAT(queue.step(Seconds(2.5), {}, false).messages,
              ElementsAre(Message("c", LeaseOrder{LeaseAction::take})));
  queue.hear("c", report("z", LeaseTurn::held));
  const LeaseOrder start{LeaseAction::start, 4121};
  EXPECT_THAT(queue.step(Seconds(3), {}, false).messages,
              ElementsAre(Message("b", start), Message("c", start)));
  EXPECT_EQ(order(), "go 4121\n");
  set_state("gone 4121");
  queue.hear("b", report("", LeaseTurn::started, 4121));
  queue.step(Seconds(4), {}, false);
  EXPECT_FALSE(queue.is_over());
  queue.hear("c", report("z", LeaseTurn::started, 4121));
  queue.step(Seconds(5), {}, false);
  EXPECT_TRUE(queue.is_over());
}

TEST_F(LeaseQueueTest, LeasesAreGivenBackAfterTheTimeOfTheLaunch) {
  spec_.lease_seconds = 7;
  LeaseQueue queue = open("a");
  set_state("held");
  for (const char* name : {"b", "c"}) {
    queue.hear(name, report("z", LeaseTurn::waiting));
  }
  queue.step(Seconds(10), {}, false);
  queue.step(Seconds(17), {}, false);
  EXPECT_EQ(order(), "take\n");
  queue.step(Seconds(17.5), {}, false);
  EXPECT_EQ(order(), "keep\n");
  set_state("keep");
  queue.step(Seconds(17.9), {}, false);
  EXPECT_EQ(order(), "keep\n");
  queue.step(Seconds(22.6), {}, false);  // the pause is at most 5 s
  EXPECT_EQ(order(), machine_ < "z" ? "take\n" : "keep\n");
}

TEST_F(LeaseQueueTest, AMemberThatDoesNotConnectEndsTheLaunch) {
  LeaseQueue queue = open("a");
  set_state("held");
  const LeaseQueue::Step step = queue.step(Seconds(40), {"c"}, false);
  EXPECT_EQ(step.lost, "c");
  EXPECT_THAT(step.messages, IsEmpty());
  EXPECT_TRUE(queue.is_over());
  EXPECT_EQ(order(), "");
}

TEST_F(LeaseQueueTest, AMemberThatIsMissingAfterTheStartDoesNot) {
  LeaseQueue queue = open("a");
  set_state("gone 5");
  EXPECT_FALSE(queue.step(Seconds(40), {"c"}, false).lost);
  EXPECT_FALSE(queue.is_over());
}

// Two launches name the servers in different orders, as in two projects. They can only avoid a deadlock if
// both take their leases in the same order.
TEST_F(LeaseQueueTest, LaunchesOnMachinesOfOneImageTakeTheirLeasesInOneOrder) {
  const test::HostFolder first;
  const test::HostFolder second;
  for (const test::HostFolder* machine : {&first, &second}) {
    machine->put_system("etc/machine-id", "5\n");
  }
  first.put_system("proc/sys/kernel/hostname", "node-1\n");
  second.put_system("proc/sys/kernel/hostname", "node-2\n");
  // Whether the first machine is the first to take its lease in a launch in which it is named `one`.
  const auto takes_first = [&](const std::string& one, const std::string& other) {
    rules::LeaseTurns turns(
        {"a", "b"}, Seconds(60), [] { return 4121; }, [] { return Seconds(5); });
    turns.hear(one, report(read_machine_digest(first.host), LeaseTurn::waiting));
    turns.hear(other, report(read_machine_digest(second.host), LeaseTurn::waiting));
    const auto& orders = turns.decide(Seconds(1));
    EXPECT_NE(orders.at("a"), orders.at("b")) << "one after the other";
    return orders.at(one).action == LeaseAction::take;
  };
  EXPECT_EQ(takes_first("a", "b"), takes_first("b", "a"));
}

TEST_F(LeaseQueueTest, TheDigestIsTheMachines) {
  EXPECT_THAT(machine_, ::testing::MatchesRegex("[0-9a-f]{16}"));
  test::HostFolder first;
  first.put_system("etc/machine-id", "5\n");
  const std::string machine = read_machine_digest(first.host);
  test::HostFolder other;
  other.put_system("var/lib/dbus/machine-id", " 5 \n");
  other.put_system("etc/machine-id", "\n");
  EXPECT_EQ(read_machine_digest(other.host), machine);
  other.put_system("etc/machine-id", "6\n");
  EXPECT_NE(read_machine_digest(other.host), machine);
  // Machines created from the same image.
  other.put_system("etc/machine-id", "5\n");
  EXPECT_EQ(read_machine_digest(other.host), machine);
  other.put_system("proc/sys/kernel/hostname", "node-2\n");
  const std::string renamed = read_machine_digest(other.host);
  EXPECT_NE(renamed, machine);
  other.put_system("sys/class/net/veth0/address", "02:00:00:00:00:01\n");
  EXPECT_EQ(read_machine_digest(other.host), renamed) << "it is not a card";
  other.put_system("sys/class/net/eth0/address", "52:54:00:00:00:07\n");
  other.put_system("sys/class/net/eth0/device/vendor", "x\n");
  EXPECT_NE(read_machine_digest(other.host), renamed);
  EXPECT_EQ(read_machine_digest(test::HostFolder().host), "0");
  const test::HostFolder named;
  named.put_system("proc/sys/kernel/hostname", "n1\n");
  EXPECT_NE(read_machine_digest(named.host), "0");
}

TEST_F(LeaseQueueTest, TheDigestOfTheImageIsThatOfTheMachineId) {
  test::HostFolder first;
  first.put_system("etc/machine-id", "5\n");
  EXPECT_EQ(read_image_digest(first.host), "") << "a container";
  first.put_system("sys/class/net/eth0/device/vendor", "0x1af4\n");
  first.put_system("sys/class/net/eth0/address", "52:54:00:00:00:01\n");
  EXPECT_THAT(read_image_digest(first.host), ::testing::MatchesRegex("[0-9a-f]{16}"));
  test::HostFolder copy;
  copy.put_system("etc/machine-id", "5\n");
  copy.put_system("sys/class/net/eth0/device/vendor", "0x1af4\n");
  copy.put_system("sys/class/net/eth0/address", "52:54:00:00:00:02\n");
  EXPECT_EQ(read_image_digest(copy.host), read_image_digest(first.host));
  EXPECT_NE(read_machine_digest(copy.host), read_machine_digest(first.host));
  copy.put_system("etc/machine-id", "6\n");
  EXPECT_NE(read_image_digest(copy.host), read_image_digest(first.host));
  first.put_system("etc/machine-id", "");
  EXPECT_EQ(read_image_digest(first.host), "");
}

}  // namespace
}  // namespace remote::agent
