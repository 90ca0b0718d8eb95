#include "jobs/sample.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

FactsAnswer read(const std::string& text) {
  return read_answer(text + "@remote1 end\n", FactsAnswer(load_request("").parts));
}

const std::string first =
    "@remote1 facts load 1.25 1 1\n@remote1 facts ticks 8 1000 4000\n@remote1 facts memory 2048 512\n"
    "@remote1 facts disk project 1 ssd 1024 1000 250 9 9 ext4\n";

TEST(Load, IsRead) {
  const ServerLoad load = read(first).load(std::nullopt);
  EXPECT_EQ(load.cpus, 8);
  EXPECT_EQ(load.load, 1.25);
  EXPECT_FALSE(load.cpu) << "one look tells nothing about a time";
  EXPECT_EQ(load.memory_total, 2048U * 1024);
  EXPECT_EQ(load.memory_available, 512U * 1024);
  EXPECT_EQ(load.disk_total, 1000U * 1024);
  EXPECT_EQ(load.disk_free, 250U * 1024);
}

TEST(Load, TellsWhatWasBusySinceTheLastLook) {
  const Ticks earlier = read(first).ticks;
  EXPECT_EQ(read("@remote1 facts ticks 8 1100 4400\n").load(earlier).cpu, 25);
  EXPECT_EQ(read("@remote1 facts ticks 8 1400 4400\n").load(earlier).cpu, 100);
  EXPECT_FALSE(read("@remote1 facts ticks 8 10 40\n").load(earlier).cpu) << "the server was restarted";
  EXPECT_FALSE(read("@remote1 facts ticks 8 2000 4400\n").load(earlier).cpu) << "more than there is";
  EXPECT_FALSE(read(first).load(earlier).cpu) << "no time has passed";
}

TEST(Load, BelievesNothingOdd) {
  for (const char* odd :
       {"", "@remote1 facts memory 1 1\n", "@remote1 facts ticks 0 1 1\n", "@remote1 facts ticks 8 -1 1\n",
        "@remote1 facts ticks 8 1\n", "@remote1 facts ticks 8 1 1 1\n",
        "@remote1 facts ticks 8 1 1\n@remote1 facts ticks 8 1 1\n",
        "@remote1 facts ticks 8 1 1\n@remote1 facts load nan 1 1\n",
        "@remote1 facts ticks 8 1 1\n@remote1 facts disk project x\n",
        "@remote1 facts ticks 8 1 1\n@remote1 facts memory 99999999999999999999 1\n",
        "@remote1 facts ticks 8 1 1\n@remote1 what 1\n"}) {
    EXPECT_THROW(read(odd), Error) << odd;
  }
}

TEST(Load, ASampleWithJobsNeedsTheClock) {
  jobs::SampleAnswer with_jobs;
  with_jobs.with_jobs = true;
  const std::string id(32, 'a');
  const std::string last = "@remote1 last " + id + " |step 3\n";
  EXPECT_THROW(read_answer(first + "@remote1 end\n", with_jobs), Error);
  const jobs::SampleAnswer answer = read_answer(first + last + "@remote1 now 12\n@remote1 end\n", with_jobs);
  EXPECT_EQ(answer.last_lines.at(0).second, "step 3");
  for (const std::string& odd : {std::string("@remote1 last x |y\n"), "@remote1 last " + id + " y\n",
                                 "@remote1 last " + id + " |" + std::string(1001, 'y') + "\n"}) {
    EXPECT_THROW(read_answer(first + odd + "@remote1 now 12\n@remote1 end\n", with_jobs), Error) << odd;
  }
}

}  // namespace
}  // namespace remote::servers
