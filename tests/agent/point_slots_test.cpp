#include "agent/sweep/point_slots.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/free_lease.hpp"

namespace remote::agent {
namespace {

using rules::Seconds;

class PointSlotsTest : public testing::Test {
 protected:
  // Takes a lease while `free` allows it.
  std::optional<TakenLease> take_lease() {
    ++tries;
    if (!reason.empty()) {
      throw std::runtime_error(reason);
    }
    if (free == 0) {
      return std::nullopt;
    }
    --free;
    return leases.take("devices");
  }
  PointSlots make_slots(int count) {
    return {count, [this] { return take_lease(); }};
  }

  test::FreeLeases leases;
  int free = 0;
  int tries = 0;
  std::string reason;
};

TEST_F(PointSlotsTest, AreForSoManyPoints) {
  PointSlots slots(2, {});
  const int first = slots.take(Seconds(1)).value();
  const int second = slots.take(Seconds(1)).value();
  EXPECT_NE(first, second);
  EXPECT_FALSE(slots.take(Seconds(1)));
  EXPECT_EQ(slots.find_lease(first), nullptr);
  slots.give_back(first);
  EXPECT_TRUE(slots.take(Seconds(1)));
  EXPECT_FALSE(slots.take(Seconds(1)));
}

TEST_F(PointSlotsTest, PointsThatRunAlreadyOccupyMoreThanThereAre) {
  PointSlots slots(1, {});
  const int first = slots.occupy();
  slots.give_back(slots.occupy());
  EXPECT_FALSE(slots.take(Seconds(1)));
  slots.give_back(first);
  EXPECT_TRUE(slots.take(Seconds(1)));
}

TEST_F(PointSlotsTest, LeasesAreTriedAgainAfterTwoSeconds) {
  PointSlots slots = make_slots(3);
  EXPECT_FALSE(slots.take(Seconds(10)));
  EXPECT_FALSE(slots.take(Seconds(11.9)));
  EXPECT_EQ(tries, 1);
  free = 2;
  EXPECT_TRUE(slots.take(Seconds(12)));
  EXPECT_TRUE(slots.take(Seconds(12))) << "more can be free";
  EXPECT_FALSE(slots.take(Seconds(12)));
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(slots.trouble(), "");
}

TEST_F(PointSlotsTest, ALeaseIsGivenBackOrLeftToThePoint) {
  PointSlots slots = make_slots(2);
  free = 2;
  const int first = slots.take(Seconds(1)).value();
  const int second = slots.take(Seconds(1)).value();
  const TakenLease* lease = slots.find_lease(first);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->devices, "devices");
  const int fd = lease->lease.fd();
  const Path file = test::find_file(lease->lease);
  EXPECT_TRUE(exists(file));
  slots.give_back(first);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_FALSE(exists(file));
  const int other = slots.find_lease(second)->lease.fd();
  const Path other_file = test::find_file(slots.find_lease(second)->lease);
  slots.hand_over(second);
  EXPECT_EQ(::fcntl(other, F_GETFD), -1);
  EXPECT_TRUE(exists(other_file)) << "the point holds it";
  EXPECT_EQ(slots.find_lease(second), nullptr);
  slots.give_back(second);
  EXPECT_TRUE(exists(other_file));
}

TEST_F(PointSlotsTest, WithoutLeasesTheReasonIsKept) {
  PointSlots slots = make_slots(1);
  reason = "none of /run/lock is shared";
  EXPECT_FALSE(slots.take(Seconds(1)));
  EXPECT_EQ(slots.trouble(), "cannot lease anything here: none of /run/lock is shared");
  reason = "";
  EXPECT_FALSE(slots.take(Seconds(2)));
  EXPECT_NE(slots.trouble(), "") << "not tried yet";
  EXPECT_FALSE(slots.take(Seconds(3)));
  EXPECT_EQ(slots.trouble(), "");
}

}  // namespace
}  // namespace remote::agent
