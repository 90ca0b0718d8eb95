#include <random>

#include <fcntl.h>

#include "agent/lease_host.hpp"
#include "agent/waiting.hpp"

// Processes that take and return leases at the same time, and die. Each marks its GPUs with files that only
// one process can create.

namespace remote::agent {
namespace {

class LeaseStress : public test::LeaseHost {
 protected:
  static rules::LeaseMachine make_machine(int gpus) {
    rules::LeaseMachine machine;
    for (int i = 0; i < gpus; ++i) {
      machine.gpus.push_back({i, "GPU-" + std::to_string(i)});
    }
    return machine;
  }
  fs::path mark_of(const rules::LeaseMachine::Gpu& gpu) const {
    return leases / ("gpu" + std::to_string(gpu.index));
  }
  // Exits if another process has one of the GPUs.
  void mark(const Lease& lease) const {
    for (const auto& gpu : lease.gpus()) {
      const int fd = ::open(mark_of(gpu).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
      if (fd < 0) {
        ::_exit(1);
      }
      ::close(fd);
    }
  }
  void clear_marks(const Lease& lease) const {
    for (const auto& gpu : lease.gpus()) {
      ::unlink(mark_of(gpu).c_str());
    }
  }
};

TEST_F(LeaseStress, OnesThatTakeAtTheSameMomentGetDifferentGpus) {
  const rules::LeaseNeeds one{.gpus = 1, .among = {}};
  const fs::path begin = folder() / "begin";
  std::vector<test::Started> racers;
  for (int i = 0; i < 6; ++i) {
    racers.emplace_back([&] {
      test::eventually([&] { return fs::exists(begin); });
      for (int done = 0; done < 20;) {
        Lease lease = Lease::make(host);
        if (!lease.claim(make_machine(2), one)) {
          mark(lease);
          ::usleep(2000);  // holds it for a while
          clear_marks(lease);
          ++done;
        }
        lease.remove();
      }
    });
  }
  put(begin, "");
  for (test::Started& racer : racers) {
    EXPECT_EQ(racer.wait(), 0);
  }
}

TEST_F(LeaseStress, NeverTwoHaveAGpuAndNoneStarves) {
  std::vector<test::Started> workers;
  for (unsigned seed = 0; seed < 30; ++seed) {
    workers.emplace_back([&, seed] {
      std::minstd_rand dice(seed + 1);
      if (seed % 3 == 0 && ::geteuid() == 0) {
        test::become(test::nobody);
      }
      constexpr std::array<std::size_t, 6> sizes{1, 1, 2, 3, 4, 8};
      const rules::LeaseNeeds needs{.gpus = sizes.at(dice() % sizes.size()), .among = {}};
      Lease lease = Lease::make(host);
      lease.get_in_line(true);
      while (lease.claim(make_machine(8), needs)) {
        ::usleep(5000);  // between two attempts
      }
      mark(lease);
      ::usleep(dice() % 50'000);  // holds it for a while
      clear_marks(lease);
      if (dice() % 10 < 3) {
        ::kill(::getpid(), SIGKILL);
      }
      lease.remove();
    });
  }
  for (test::Started& worker : workers) {
    EXPECT_THAT(worker.wait(), ::testing::AnyOf(0, 128 + SIGKILL));
  }
  EXPECT_TRUE(entries().empty());
}

}  // namespace
}  // namespace remote::agent
