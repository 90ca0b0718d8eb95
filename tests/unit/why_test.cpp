#include "jobs/why.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "cli/show/why.hpp"
#include "jobs/why_frames.hpp"
#include "support/instants.hpp"

namespace remote::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string in_python = "/usr/lib/python3/dist-packages/torch/distributed/";

std::vector<std::string> collective_at(const std::string& name, const std::string& place) {
  return {name + " (" + in_python + "distributed_c10d.py:2501)",
          "wrapper (" + in_python + "c10d_logger.py:83)", "step (" + place + ")",
          "<module> (/home/ada/proj/train.py:120)"};
}

// A rank of a sample: alike at both looks, unless a test changes that.
struct Rank {
  int number = 0;
  std::vector<std::string> frames{};
  char state = 'S';
  std::string kernel = "futex_do_wait";
  int ticks = 0;  // between the looks, which are five seconds apart
  int throttled_ms = 0;
  std::vector<std::string> frames_before{};
};

Job job_of(const Rank& rank, const std::string& server) {
  Job job;
  job.key = 10 + rank.number;
  job.id = *JobId::parse(std::string(31, '0') + "0123456789abcdef"[rank.number]);
  job.server = server;
  job.state = JobState::running;
  job.rank = rank.number;
  job.launch = JobId();
  return job;
}

// What a server answers, as it would write it.
WhySample sample_of(const std::string& server, const std::vector<Rank>& ranks, const std::string& more = {}) {
  WhySample sample{server, {}, {}};
  std::string text = more;
  for (int look = 0; look < 2; ++look) {
    text += fmt::format("@remote1 look {} {}\n", look, 1000 + 500 * look);
    for (const Rank& rank : ranks) {
      const Job job = job_of(rank, server);
      const int pid = 100 + rank.number;
      text += fmt::format("@remote1 rank {} {} {} {} 0\n", look, job.id.text(), pid, rank.number);
      text += fmt::format("@remote1 state {} {} 1 {} {} 77 {}\n", look, pid, rank.state,
                          50 + look * rank.ticks, rank.kernel.empty() ? "-" : rank.kernel);
      if (rank.throttled_ms > 0) {
        text += fmt::format("@remote1 throttled {} {} {}\n", look, pid, look * rank.throttled_ms * 1000);
      }
    }
    text += fmt::format("@remote1 stacks {}\n", look);
    for (const Rank& rank : ranks) {
      const auto& frames = look == 0 && !rank.frames_before.empty() ? rank.frames_before : rank.frames;
      const int pid = 100 + rank.number;
      const std::string id = job_of(rank, server).id.text();
      if (frames.empty()) {
        text += fmt::format("@remote1 process {} {} {} kernel there is no py-spy\n", id, pid, rank.number);
        continue;
      }
      text += fmt::format(
          "@remote1 process {} {} {} py-spy\n@remote1 line {} |Thread {} (idle): \"MainThread\"\n", id, pid,
          rank.number, pid, pid);
      for (const std::string& frame : frames) {
        text += fmt::format("@remote1 line {} |    {}\n", pid, frame);
      }
    }
  }
  for (const Rank& rank : ranks) {
    sample.jobs.push_back(job_of(rank, server));
  }
  sample.answer = servers::read_answer<WhyAnswer>(text + "@remote1 end\n");
  return sample;
}

Rank waiting(int number, const std::string& name = "all_reduce", int line = 88) {
  return {.number = number, .frames = collective_at(name, "/home/ada/proj/train.py:" + std::to_string(line))};
}

std::vector<std::string> lines_of(const std::vector<WhySample>& samples,
                                  const std::vector<Job>& others = {}) {
  return cli::why_lines(judge(samples, others, {}));
}

TEST(WhyFrames, TheProgramsOwnCallIsThePlace) {
  const Place place = place_of(collective_at("all_reduce", "/home/ada/proj/train.py:88"));
  EXPECT_EQ(place, (Place{RankDoing::collective, "all_reduce", "/home/ada/proj/train.py", 88}));
  EXPECT_EQ(place_of({"wait (threading.py:331)", "get (queue.py:171)",
                      "_try_get_data (torch/utils/data/dataloader.py:1133)",
                      "__next__ (torch/utils/data/dataloader.py:701)", "main (data.py:41)"}),
            (Place{RankDoing::data, "DataLoader.__next__", "data.py", 41}));
  EXPECT_EQ(place_of({"wait (threading.py:331)", "acquire (threading.py:507)", "save (train.py:7)"}),
            (Place{RankDoing::lock, "save", "train.py", 7}));
  EXPECT_EQ(
      place_of({"_tcp_rendezvous_handler (" + in_python + "rendezvous.py:20)",
                "init_process_group (" + in_python + "distributed_c10d.py:900)", "<module> (train.py:3)"}),
      (Place{RankDoing::meeting, "init_process_group", "train.py", 3}));
  EXPECT_EQ(place_of({"broadcast (numpy/lib/stride.py:1)", "f (/x/site-packages/numpy/a.py:2)", "g (t.py:3)"})
                .doing,
            RankDoing::collective)
      << "a function of the program's own that has such a name";
  EXPECT_EQ(place_of({"gather (/x/site-packages/numpy/a.py:2)", "g (t.py:3)"}),
            (Place{RankDoing::waiting, "g", "t.py", 3}));
  EXPECT_EQ(place_of({"", "(", "x (y:z)", ":)"}).line, 0) << "foreign text";
}

TEST(Why, ARankThatSkippedACollectiveIsTheOddOne) {
  Rank other{.number = 3, .frames = {"next_batch (/home/ada/proj/data.py:41)", "<module> (train.py:9)"}};
  other.kernel = "hrtimer_nanosleep";
  const Why why = judge(
      {sample_of("node-1", {waiting(0), waiting(1)}), sample_of("node-2", {waiting(2), other})}, {}, {});
  EXPECT_EQ(why.kind, WhyKind::held_up);
  EXPECT_EQ(why.between, std::chrono::seconds(5));
  ASSERT_EQ(why.groups.size(), 2U);
  EXPECT_TRUE(why.groups[0].odd);
  EXPECT_EQ(why.groups[0].ranks.at(0).doing, RankDoing::sleeping);
  EXPECT_THAT(
      cli::why_lines(why),
      ElementsAre("3 of 4 ranks wait in all_reduce (train.py:88)",
                  "rank 3 on node-2 sleeps in next_batch (data.py:41): it used no processor time in 5.0 s"));
  EXPECT_EQ(cli::why_next(why), "remote job-stacks --threads --launch 10");
}

TEST(Why, WhoWaitsInDdpsBackwardWaitsForTheOthers) {
  const auto in_backward = [](int number) {
    return Rank{.number = number,
                .frames = {"backward (torch/autograd/__init__.py:197)", "backward (torch/_tensor.py:488)",
                           "<module> (/home/ada/proj/train.py:28)"}};
  };
  Rank other{.number = 3, .frames = {"<module> (/home/ada/proj/train.py:20)"}};
  other.kernel = "hrtimer_nanosleep";
  EXPECT_EQ(lines_of({sample_of("node-1", {in_backward(0), in_backward(1)}),
                      sample_of("node-2", {in_backward(2), other})})
                .front(),
            "3 of 4 ranks wait in backward (train.py:28)");
  Rank busy = in_backward(0);
  busy.ticks = 450;
  EXPECT_EQ(judge({sample_of("node-1", {busy})}, {}, {}).groups.at(0).ranks.at(0).doing,
            RankDoing::computing);
}

TEST(Why, CollectivesInAnotherOrderAreAMismatch) {
  const Why why =
      judge({sample_of("a", {waiting(0), waiting(1), waiting(2), waiting(3, "broadcast", 90)})}, {}, {});
  EXPECT_EQ(why.kind, WhyKind::mismatch);
  EXPECT_THAT(cli::why_lines(why),
              ElementsAre(HasSubstr("different collectives"), "3 of 4 ranks wait in all_reduce (train.py:88)",
                          HasSubstr("rank 3 on a waits in broadcast (train.py:90)")));
}

TEST(Why, WhereAllWaitAtOnePlaceNobodyIsBlamed) {
  const Why why = judge({sample_of("a", {waiting(0), waiting(1)})}, {}, {});
  EXPECT_EQ(why.kind, WhyKind::same_place);
  EXPECT_FALSE(why.groups.at(0).odd);
}

TEST(Why, AnEndedRankIsWhyTheOthersWait) {
  Job ended = job_of({.number = 1}, "b");
  ended.state = JobState::succeeded;
  ended.result = ExitStatus::exited(0);
  const Why why = judge({sample_of("a", {waiting(0)})}, {ended}, {});
  EXPECT_EQ(why.kind, WhyKind::ended);
  EXPECT_THAT(cli::why_lines(why), testing::Contains("rank 1 on b has ended (exit 0)"));
}

TEST(Why, AServerThatDoesNotAnswerMayBeTheReason) {
  Job unseen = job_of({.number = 1}, "b");
  unseen.state = JobState::unknown;
  EXPECT_EQ(judge({sample_of("a", {waiting(0)})}, {unseen}, {}).kind, WhyKind::unknown);
}

TEST(Why, WhatTheKernelShowsGoesBeforeTheStack) {
  const auto doing = [](char state, const std::string& kernel) {
    Rank rank = waiting(1);
    rank.frames = {"load (data.py:4)"};
    rank.state = state;
    rank.kernel = kernel;
    return judge({sample_of("a", {waiting(0), rank})}, {}, {}).groups.at(0).ranks.at(0).doing;
  };
  EXPECT_EQ(doing('T', ""), RankDoing::stopped);
  EXPECT_EQ(doing('t', "ptrace_stop"), RankDoing::traced);
  EXPECT_EQ(doing('D', "rpc_wait_bit_killable"), RankDoing::storage);
  EXPECT_EQ(doing('S', "request_wait_answer"), RankDoing::storage);
  EXPECT_EQ(doing('S', "anon_pipe_write"), RankDoing::pipe_full);
  EXPECT_EQ(doing('S', "futex_wait_queue"), RankDoing::lock);
  EXPECT_EQ(doing('S', "do_sys_poll"), RankDoing::network);
  EXPECT_EQ(doing('S', ""), RankDoing::waiting);
}

TEST(Why, AThrottledRank) {
  Rank slow = waiting(1);
  slow.frames = {"forward (model.py:4)"};
  slow.ticks = 50;
  slow.throttled_ms = 4500;
  EXPECT_THAT(lines_of({sample_of("a", {waiting(0), slow})}),
              testing::Contains(
                  "rank 1 on a is throttled by its control group in forward (model.py:4): its control group "
                  "withheld the processor for 90% of the time; it used 0.10 processors"));
}

TEST(Why, ALaunchThatMovesIsNotStuck) {
  std::vector<Rank> ranks{waiting(0), waiting(1)};
  ranks[1].frames_before = {"forward (model.py:4)"};
  EXPECT_EQ(judge({sample_of("a", ranks)}, {}, {}).kind, WhyKind::moving);
}

TEST(Why, TheSlowRankIsTheOneThatTheOthersWaitFor) {
  std::vector<Rank> ranks{waiting(0), waiting(1), waiting(2)};
  ranks[0].ticks = ranks[1].ticks = 150;
  ranks[2] = {.number = 2, .frames = {"forward (model.py:4)"}, .state = 'R', .kernel = "", .ticks = 480};
  const Why why = judge({sample_of("a", ranks)}, {}, {});
  EXPECT_EQ(why.kind, WhyKind::slow);
  EXPECT_NEAR(why.factor, 3.2, 0.01);
  ASSERT_TRUE(why.groups.at(0).odd);
  EXPECT_EQ(why.groups[0].ranks.at(0).rank, 2);
  ranks[0].ticks = 400;  // as busy as that one
  EXPECT_EQ(judge({sample_of("a", ranks)}, {}, {}).kind, WhyKind::moving);
}

TEST(Why, ACutLinkIsNamed) {
  const auto samples =
      std::vector{sample_of("a", {waiting(0)}, "@remote1 address 014D4D0A\n@remote1 silent 024D4D0A\n"),
                  sample_of("b", {waiting(1)}, "@remote1 address 0000000000000000FFFF0000024D4D0A\n")};
  const Why why = judge(samples, {}, {});
  EXPECT_EQ(why.kind, WhyKind::link);
  EXPECT_THAT(cli::why_lines(why), testing::Contains("a gets no answer from b"));
}

TEST(Why, AFullDiskIsSaid) {
  WhySample sample = sample_of("a", {waiting(0)});
  DiskFacts disk;
  disk.path = "/dev/shm";
  disk.total_bytes = 65536;
  disk.free_bytes = 4096;
  sample.answer.facts.facts.disks = {disk};
  EXPECT_THAT(lines_of({sample}), testing::Not(testing::Contains(HasSubstr("full"))));
  sample.answer.facts.facts.disks[0].free_bytes = 0;
  EXPECT_THAT(lines_of({sample}), testing::Contains("the disk of /dev/shm on a is full"));
}

std::string flight(int rank, int number, const std::string& state, const std::string& call) {
  return fmt::format("@remote1 flight {} {} 0 {} {} {}\n", JobId().text(), rank, number, state, call);
}

WhySample with_flights(const std::string& flights) {
  return sample_of("a", {waiting(0), waiting(1), waiting(2)}, flights);
}

TEST(WhyFlight, WhoDidNotComeToTheCollective) {
  const std::string reduce = "all_reduce Float 3x4";
  std::string flights = flight(2, 0, "member", "- - -");
  for (int rank = 0; rank < 3; ++rank) {
    flights += flight(rank, 11, "completed", reduce);
    flights += rank == 2 ? "" : flight(rank, 12, "started", reduce) + flight(rank, 13, "scheduled", reduce);
  }
  const Why why = judge({with_flights(flights)}, {}, {});
  ASSERT_EQ(why.collectives.size(), 1U);
  EXPECT_EQ(why.collectives[0].kind, WhyCollective::Kind::missing);
  EXPECT_EQ(why.collectives[0].number, 12U);
  EXPECT_EQ(why.collectives[0].missing, std::vector<int>{2});
  EXPECT_THAT(cli::why_lines(why),
              testing::Contains("collective 12 of process group 0: ranks 0-1 are in all_reduce of Float 3x4; "
                                "rank 2 did not come (the last was 11)"));
  EXPECT_EQ(cli::why_json(why)["collectives"][0]["kind"], "missing");
}

TEST(WhyFlight, WhoCameWithAnotherShapeOrFunction) {
  const auto line = [](const std::string& first, const std::string& other) {
    const Why why = judge({with_flights(flight(0, 1, "started", first) + flight(1, 1, "started", first) +
                                        flight(2, 1, "scheduled", other))},
                          {}, {});
    EXPECT_EQ(why.collectives.at(0).kind, first == other || first.starts_with("all_to")
                                              ? WhyCollective::Kind::stuck
                                              : WhyCollective::Kind::differs);
    return cli::why_lines(why).back();
  };
  EXPECT_EQ(line("all_reduce Float 3x4", "all_reduce Float 3x5"),
            "collective 1 of process group 0: rank 2 is in all_reduce of Float 3x5; ranks 0-1 are in "
            "all_reduce of Float 3x4");
  EXPECT_EQ(
      line("all_reduce Float 3x4", "broadcast Float 3x4"),
      "collective 1 of process group 0: rank 2 is in broadcast of Float 3x4; ranks 0-1 are in all_reduce "
      "of Float 3x4");
  EXPECT_EQ(line("all_to_all Float 3", "all_to_all Float 4"),
            "collective 1 of process group 0: ranks 0-2 are in all_to_all of Float 3");
  EXPECT_EQ(line("barrier - -", "barrier - -"), "collective 1 of process group 0: ranks 0-2 are in barrier");
}

TEST(WhyFlight, WhatCameAboutIsNotTold) {
  const std::string reduce = "all_reduce Float 3x4";
  std::string flights;
  for (int rank = 0; rank < 3; ++rank) {
    flights += flight(rank, 11, "completed", reduce);
  }
  // what has left the buffers of the others
  flights += flight(0, 10, "completed", reduce) + flight(0, 12, "completed", reduce);
  EXPECT_TRUE(judge({with_flights(flights)}, {}, {}).collectives.empty());
}

TEST(Why, WhatWasKeptSaysOfWhen) {
  Why why = judge({sample_of("a", {waiting(0), waiting(1)})}, {}, {});
  EXPECT_TRUE(cli::why_json(why)["as_of"].is_null());
  why.kept = WhyKept{instant(1700000000), std::chrono::seconds(1804)};
  EXPECT_THAT(cli::why_lines(why).front(),
              testing::MatchesRegex("as it was at .*, after 30m 04s of standing still:"));
  EXPECT_EQ(cli::why_json(why)["as_of"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(cli::why_json(why)["hung_s"], 1804);
}

TEST(Why, RefusesForeignAnswers) {
  for (const std::string line :
       {"look 2 5", "state 0 x", "state 0 5 1 SS 0 0 -", "state 0 5 1 S 0 0 a/b", "rank 0 abc 4 0 0",
        "address 0A", "silent ../../../", "process x", "pipe 4 x -", "hangs now", "other", "kept 1",
        "kept x 2", "kept 253402300801 2", "flight x 0 0 1 started a b c",
        "flight 00000000000000000000000000000000 -1 0 1 started a b c",
        "flight 00000000000000000000000000000000 0 0 1 started a b c/d"}) {
    EXPECT_THROW(servers::read_answer<WhyAnswer>("@remote1 " + line + "\n@remote1 end\n"), Error) << line;
  }
}

}  // namespace
}  // namespace remote::jobs
