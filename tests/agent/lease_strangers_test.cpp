#include <array>
#include <chrono>
#include <functional>

#include <fcntl.h>
#include <sys/file.h>

#include "agent/lease/list_leases.hpp"
#include "agent/lease_host.hpp"
#include "agent/waiting.hpp"

// Another user of the machine, who does everything to the lease files that the kernel allows. Requires root.

namespace remote::agent {
namespace {

using rules::LeaseState;
using std::chrono::steady_clock;
using test::lock_bytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeaseStrangers : public test::LeaseHost {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can be another user";
    }
  }

  // Runs `act` as another user, in a process that keeps its descriptors open until the test ends.
  void run_stranger(const std::function<void()>& act) {
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    strangers_.emplace_back([&] {
      close_descriptors(3, ready[1]);  // inherited descriptors would keep leases
      test::become(test::nobody);
      act();
      (void)!::write(ready[1], ".", 1);
      test::sleep_long();
    });
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  // The exit status of `act` as another user.
  static int run_as_nobody(const std::function<int()>& act) {
    test::Started child([&] {
      test::become(test::nobody);
      ::_exit(act());
    });
    return child.wait();
  }
  // Locks of this type on all files that can be opened, and on the folder.
  static void lock_all(const fs::path& folder, short type) {
    std::vector<fs::path> files{folder};
    for (const auto& entry : fs::directory_iterator(folder)) {
      files.push_back(entry.path());
    }
    for (const fs::path& file : files) {
      for (const int flags : {O_RDONLY, O_RDWR}) {
        const int fd = ::open(file.c_str(), flags | O_NONBLOCK);
        for (const auto& [start, length] : std::vector<std::pair<off_t, off_t>>{
                 {0, 0}, {0, 1}, {1, 1}, {2, 1}, {1, 0}, {off_t{1} << 40, 0}}) {
          lock_bytes(fd, type, start, length);
        }
        if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
          (void)::flock(fd, LOCK_SH | LOCK_NB);
        }
        struct flock lock {};
        lock.l_type = type;
        ::fcntl(fd, F_SETLK, &lock);
      }
    }
  }
  // Like run_stranger(), with a file that the other user owns.
  void forge(const std::vector<std::string>& texts) {
    run_stranger([&] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        std::string number = std::to_string(i);
        number.insert(0, 8 - number.size(), '0');
        const int fd = ::open(own(number, test::nobody).c_str(), O_RDWR | O_CREAT, 0644);
        (void)!::write(fd, texts[i].data(), texts[i].size());
        lock_bytes(fd, F_WRLCK);
      }
    });
  }

  std::vector<test::Started> strangers_;
};

TEST_F(LeaseStrangers, AFileCountsForItsOwnerAlone) {
  const auto mine = take({.gpus = 2});
  const fs::path path = only_file();
  EXPECT_EQ(run_as_nobody([&] {
              const int fd = ::open(path.c_str(), O_RDONLY);
              lock_bytes(fd, F_WRLCK);
              if (::open(path.c_str(), O_RDWR) >= 0) {
                return 1;
              }
              if (::unlink(path.c_str()) == 0) {
                return 2;
              }
              const int forged = ::open(own("ffffffff", 0).c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
              const std::string text = "remote-lease1 1 0 0 state:held GPU-7\n";
              const bool is_locked =
                  ::write(forged, text.data(), text.size()) > 0 && lock_bytes(forged, F_WRLCK);
              return is_locked ? static_cast<int>(entries().size()) - 1 : 3;
            }),
            0);
}

TEST_F(LeaseStrangers, UsersSeeEachOther) {
  auto mine = take({.gpus = 5});
  EXPECT_EQ(run_as_nobody([&] { return take({.gpus = 4}) ? 1 : 0; }), 0);
  EXPECT_EQ(run_as_nobody([&] {
              const auto theirs = take({.gpus = 3});
              const auto found = list_leases(host, {}).leases;
              const bool is_right =
                  found.size() == 2 && !found[0].own && found[0].user == "root" && found[1].own;
              return indices_of(theirs) == "5,6,7" && is_right ? 0 : 1;
            }),
            0);
}

TEST_F(LeaseStrangers, TheirLocksKeepAndDelayNothing) {
  for (const short type : {F_RDLCK, F_WRLCK}) {
    auto mine = take({.gpus = 5});
    Lease waits = Lease::make(host);
    waits.get_in_line(true);
    run_stranger([&] { lock_all(leases, type); });
    const auto began = steady_clock::now();
    EXPECT_EQ(claim(waits, 4), "3");
    EXPECT_EQ(entries().size(), 2U);
    mine.reset();  // as if its process had died; the other user still holds locks on the file
    run_stranger([&] { lock_all(leases, type); });
    EXPECT_EQ(claim(waits, 4), "");
    waits.give_back();
    waits.get_in_line(true);
    EXPECT_EQ(claim(waits, 8), "");
    waits.remove();
    const auto all = take({.gpus = 8});
    EXPECT_EQ(indices_of(all), "0,1,2,3,4,5,6,7");
    EXPECT_LT(steady_clock::now() - began, test::patience);
    EXPECT_THAT(states(), ElementsAre(LeaseState::held));
  }
}

TEST_F(LeaseStrangers, TheirLocksDoNotKeepTheFileOfALeaseThatEnds) {
  auto mine = take({.gpus = 1});
  const fs::path path = only_file();
  const int other = ::dup(mine->fd());  // as in another guard of the launch
  run_stranger([&] { lock_all(leases, F_RDLCK); });
  close_lease(::dup(mine->fd()));
  EXPECT_TRUE(fs::exists(path)) << "it is still held";
  const int last = ::dup(other);
  mine.reset();
  ::close(other);
  close_lease(last);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(LeaseStrangers, OpenAFileOnlyOnceItIsLocked) {
  const fs::path path = own("abcdefgh");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  run_stranger([&] { lock_all(leases, F_RDLCK); });
  Lease lease = Lease::adopt(host, fd);
  EXPECT_EQ(claim(lease, 8), "");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0644));
  EXPECT_FALSE(take({.gpus = 1}));
  lease.remove();
  const Lease made = Lease::make(host);
  run_stranger([&] { lock_all(leases, F_WRLCK); });
  EXPECT_FALSE(lock_bytes(::open(only_file().c_str(), O_RDWR), F_WRLCK)) << "it is locked from the beginning";
}

// Root makes the link, because the kernel may forbid it to other users (protected_hardlinks).
TEST_F(LeaseStrangers, ALinkToALeaseNeitherEndsNorDoublesIt) {
  auto mine = take({.cpus = 1});
  const fs::path path = only_file();
  for (const fs::path& name : {own("aaaaaaaa"), own("zzzzzzzz"), leases / "other"}) {
    fs::create_hard_link(path, name);
  }
  EXPECT_EQ(entries().size(), 1U);
  if (cores() > 1) {
    EXPECT_TRUE(take({.cpus = 1}));
  }
  EXPECT_FALSE(take({.cpus = cores()}));
  mine->remove();
  Lease waits = Lease::make(host);
  fs::path file;
  for (const auto& entry : fs::directory_iterator(leases)) {
    file = fs::hard_link_count(entry.path()) == 1 ? entry.path() : file;
  }
  fs::create_hard_link(file, leases / "link of it");
  EXPECT_EQ(claim(waits, 1), "");
}

TEST_F(LeaseStrangers, AFloodHidesNoLease) {
  auto mine = take({.gpus = 3});
  run_stranger([&] {
    for (int number = 0; number < 3000; ++number) {
      for (const uid_t user : {uid_t{0}, test::nobody}) {
        std::string random = std::to_string(number);
        random.insert(0, 8 - random.size(), '0');
        const fs::path path = own(random, user);
        if (number % 3 == 0) {
          ::mkfifo(path.c_str(), 0644);
        } else if (number % 3 == 1) {
          (void)!::symlink("/dev/zero", path.c_str());
        } else {
          const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0666);
          (void)!::ftruncate(fd, off_t{1} << 40);
          lock_bytes(fd, F_WRLCK);
          if (number > 900) {
            ::close(fd);
          }
        }
      }
    }
  });
  const auto began = steady_clock::now();
  const auto rest = take({.gpus = 5});
  EXPECT_EQ(indices_of(rest), "3,4,5,6,7");
  EXPECT_LT(steady_clock::now() - began, test::patience);
  ASSERT_EQ(entries().size(), 2U);
  EXPECT_EQ(entries()[0].uid + entries()[1].uid, 0U);
  mine->remove();
  EXPECT_TRUE(take({.gpus = 3}));
}

TEST_F(LeaseStrangers, OnlyTheirFirstFilesCount) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1100; ++i) {
    texts.push_back("remote-lease1 " + std::to_string(i) + " 0 0 state:held\n");
  }
  forge(texts);
  EXPECT_EQ(entries().size(), 1024U);
}

TEST_F(LeaseStrangers, NumbersThatNoMachineHasCountForNothing) {
  std::vector<std::string> texts{"remote-lease1 1 1 1 state:x\n", "remote-lease1\n",
                                 "remote-lease1 1 1 0 state:held GPU-0 \x1b[2J\n",
                                 "remote-lease1 1 1 0 state:held GPU-0  GPU-1\n"};
  for (const std::string& number : {std::string("99999999999999999999"), std::string(4500, '9'),
                                    std::string("-1"), std::string("1e3"), std::string("\u0663")}) {
    texts.push_back("remote-lease1 1 " + number + " 0 state:held\n");
    texts.push_back("remote-lease1 1 0 " + number + " state:held\n");
    texts.push_back("remote-lease1 " + number + " 1 0 state:held\n");
  }
  texts.push_back("remote-lease1 1 2147483648 0 state:held\n");
  std::string gpus = "remote-lease1 1 1 1 state:held";
  for (int i = 0; i < 129; ++i) {
    gpus += " G" + std::to_string(i);
  }
  texts.push_back(gpus + "\n");
  forge(texts);
  EXPECT_THAT(entries(), IsEmpty());
  EXPECT_TRUE(take({.gpus = 8, .cpus = cores()}));
}

TEST_F(LeaseStrangers, TheListFitsAMessage) {
  std::string text = "remote-lease1 1 1 1 state:held";
  for (int i = 0; i < 128; ++i) {
    text += " " + std::string(80, 'x');
  }
  forge(std::vector<std::string>(1024, text + "\n"));
  const wire::LeasesReply reply = list_leases(host, {});
  EXPECT_GT(reply.leases.size(), 50U);
  EXPECT_LT(reply.leases.size() * 128 * 82, 1'000'000U);
}

TEST_F(LeaseStrangers, OneWhoKeepsClaimingDelaysOthersBySecondsAtMost) {
  forge({"remote-lease1 1 0 0 state:claimed GPU-0\n"});
  auto began = steady_clock::now();
  const auto most = take({.gpus = 7});
  EXPECT_EQ(indices_of(most), "1,2,3,4,5,6,7");
  EXPECT_LT(steady_clock::now() - began, test::patience);
  EXPECT_FALSE(take({.gpus = 1})) << "it counts as leased";
  EXPECT_LT(steady_clock::now() - began, test::patience);
}

}  // namespace
}  // namespace remote::agent
