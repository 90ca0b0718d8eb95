#include "jobs/why.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.hpp"
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

// A rank of a sample. Both looks are the same unless a test changes that.
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

wire::ProcessStack stack_of(const Rank& rank, const std::string& id, const std::vector<std::string>& frames) {
  wire::ProcessStack stack{.id = id, .pid = 100 + rank.number, .rank = rank.number};
  if (frames.empty()) {
    stack.why = "there is no py-spy";
  } else {
    stack.threads = {{"Thread 100 (idle): \"MainThread\"", frames}};
  }
  return stack;
}

// `more`: the first part of the server's answer.
WhySample sample_of(const std::string& server, const std::vector<Rank>& ranks, wire::WhyReply more = {}) {
  WhySample sample{server, {}, {}};
  sample.answer.add(std::move(more));
  for (int look = 0; look < 2; ++look) {
    wire::WhyReply part;
    part.number = look;
    part.sample.emplace();
    part.sample->at = std::chrono::milliseconds(10000 + 5000 * look);
    for (const Rank& rank : ranks) {
      const std::string id = job_of(rank, server).id.text();
      const int pid = 100 + rank.number;
      wire::RankSample& state = part.sample->ranks.emplace_back();
      state = {.id = id, .pid = pid, .rank = rank.number};
      if (rank.throttled_ms > 0) {
        state.throttled_us = static_cast<std::uint64_t>(look * rank.throttled_ms * 1000);
      }
      part.sample->processes.push_back({.pid = pid,
                                        .parent = 1,
                                        .state = std::string(1, rank.state),
                                        .ticks = static_cast<std::uint64_t>(50 + look * rank.ticks),
                                        .written = 77,
                                        .kernel = rank.kernel});
      part.stacks.push_back(
          stack_of(rank, id, look == 0 && !rank.frames_before.empty() ? rank.frames_before : rank.frames));
    }
    sample.answer.add(std::move(part));
  }
  for (const Rank& rank : ranks) {
    sample.jobs.push_back(job_of(rank, server));
  }
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

TEST(WhyFrames, WhatAJobIsGivenIsNotTheProgram) {
  for (const std::string folder : {"/home/ada/proj/.jobs/0123/python/", ""}) {
    EXPECT_EQ(
        place_of({"tcp_store (" + folder + "sitecustomize.py:211)",
                  "_create_c10d_store (" + in_python + "rendezvous.py:185)",
                  "init_process_group (" + in_python + "distributed_c10d.py:900)", "<module> (train.py:3)"}),
        (Place{RankDoing::meeting, "init_process_group", "train.py", 3}));
    EXPECT_EQ(place_of({"readline (" + folder + "remote_debugger.py:189)", "trace_dispatch (bdb.py:90)",
                        "step (train.py:41)"}),
              (Place{RankDoing::traced, "step", "train.py", 41}));
  }
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
  for (const char* polls : {"do_sys_poll", "poll_schedule_timeout", "poll_schedule_timeout.constprop.0",
                            "do_poll", "ep_poll", "do_epoll_wait", "do_select", "core_sys_select"}) {
    EXPECT_EQ(doing('S', polls), RankDoing::event) << polls;
  }
  EXPECT_EQ(doing('S', "schedule_hrtimeout_range_clock"), RankDoing::waiting);
  EXPECT_EQ(doing('S', "sk_wait_data"), RankDoing::network);
  for (const char* file :
       {"nfs_wait_bit_killable", "__fuse_request_send", "ll_file_io_generic", "cifs_readv",
        "folio_wait_bit_common", "io_schedule_timeout", "ceph_read_iter", "nfs4_call_sync"}) {
    EXPECT_EQ(doing('S', file), RankDoing::storage) << file;
  }
  EXPECT_EQ(doing('S', ""), RankDoing::waiting);
  for (const char* file : {"", "folio_wait_bit_common", "io_schedule", "jbd2_log_wait_commit",
                           "xlog_wait_on_iclog", "rq_qos_wait", "d_alloc_parallel", "__wait_on_buffer"}) {
    EXPECT_EQ(doing('D', file), RankDoing::storage) << file;
  }
  for (const char* other : {"nv_wait_poll", "os_acquire_rwlock_write", "uvm_va_block_make_resident",
                            "rwsem_down_read_slowpath", "wait_for_vfork_done", "refrigerator", "do_exit"}) {
    EXPECT_EQ(doing('D', other), RankDoing::kernel) << other;
  }
}

TEST(Why, AWaitInTheKernelIsNamed) {
  Rank stuck = waiting(1);
  stuck.frames = {"load (data.py:4)"};
  stuck.state = 'D';
  stuck.kernel = "uvm_fault";
  const Why why = judge({sample_of("a", {waiting(0), stuck})}, {}, {});
  EXPECT_THAT(
      cli::why_lines(why),
      testing::Contains(HasSubstr("rank 1 on a waits in the kernel (uvm_fault) in load (data.py:4)")));
  EXPECT_THAT(cli::why_next(why), HasSubstr("remote job-stacks --threads"));
  EXPECT_EQ(to_string(why.groups.at(0).ranks.at(0).doing), "kernel");
  EXPECT_EQ(to_string(RankDoing::unreachable), "unreachable");
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
  ranks[0].ticks = 400;  // as busy as the other one
  EXPECT_EQ(judge({sample_of("a", ranks)}, {}, {}).kind, WhyKind::moving);
}

TEST(Why, ACutLinkIsNamed) {
  wire::WhyReply first;
  first.addresses = {"014D4D0A"};
  first.silent = {"024D4D0A"};
  wire::WhyReply second;
  second.addresses = {"024D4D0A"};
  const auto samples = std::vector{sample_of("a", {waiting(0)}, first), sample_of("b", {waiting(1)}, second)};
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

using Flights = std::vector<wire::FlightEntry>;

// `call`: "FUNCTION TYPES SHAPES".
Flights flight(int rank, int number, const std::string& state, const std::string& call) {
  const std::vector<std::string> words = split_words(call);
  return {{.rank = rank,
           .group = "0",
           .number = static_cast<std::uint64_t>(number),
           .state = state,
           .function = words.at(0),
           .types = words.at(1),
           .shapes = words.at(2)}};
}

Flights operator+(Flights one, const Flights& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

Flights& operator+=(Flights& one, const Flights& other) {
  return one = std::move(one) + other;
}

WhySample sample_of(const std::string& server, const std::vector<Rank>& ranks, const Flights& flights) {
  wire::WhyReply part;
  part.flight = flights;
  return sample_of(server, ranks, std::move(part));
}

WhySample with_flights(const Flights& flights) {
  return sample_of("a", {waiting(0), waiting(1), waiting(2)}, flights);
}

TEST(WhyFlight, WhoDidNotComeToTheCollective) {
  const std::string reduce = "all_reduce Float 3x4";
  Flights flights = flight(2, 0, "member", "- - -");
  for (int rank = 0; rank < 3; ++rank) {
    flights += flight(rank, 11, "completed", reduce);
    flights +=
        rank == 2 ? Flights() : flight(rank, 12, "started", reduce) + flight(rank, 13, "scheduled", reduce);
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

// As on an H100: the rank is in synchronize() or item(), and uses a processor.
Rank with_nccl(int number) {
  return {.number = number,
          .frames = {"synchronize (/x/site-packages/torch/cuda/__init__.py:1162)", "<module> (train.py:18)"},
          .state = 'R',
          .kernel = "",
          .ticks = 1000};
}

TEST(WhyFlight, ARankWaitsForItsGpuInTheCollectiveThatItHasEntered) {
  const Rank sleeping{.number = 1, .frames = {"<module> (train.py:12)"}, .kernel = "hrtimer_nanosleep"};
  const std::string reduce = "all_reduce Float 3x4";
  const Flights flights = flight(0, 3, "completed", reduce) + flight(1, 3, "completed", reduce);
  const auto sample = [&](const Rank& other, const Flights& more) {
    WhySample one = sample_of("a", {with_nccl(0), other}, flights + more);
    one.answer.facts.facts.gpus.gpus.resize(1);
    return one;
  };
  const Why why = judge({sample(sleeping, flight(0, 4, "scheduled", reduce))}, {}, {});
  EXPECT_EQ(why.kind, WhyKind::held_up);
  EXPECT_THAT(cli::why_lines(why),
              testing::IsSupersetOf(
                  {"rank 0 on a waits in all_reduce (train.py:18)",
                   "rank 1 on a sleeps in <module> (train.py:12): it used no processor time in 5.0 s"}));
  const auto kind_of = [&](const std::string& state, const std::string& other) {
    return judge({sample(with_nccl(1), flight(0, 4, state, reduce) + flight(1, 4, state, other))}, {}, {})
        .kind;
  };
  EXPECT_EQ(kind_of("scheduled", "all_reduce Float 3x5"), WhyKind::same_place);
  EXPECT_EQ(kind_of("old", reduce), WhyKind::same_place);
  EXPECT_EQ(kind_of("scheduled", reduce), WhyKind::moving) << "the GPU may be computing";
  EXPECT_EQ(kind_of("recent", "all_reduce Float 3x5"), WhyKind::same_place);
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
  Flights flights;
  for (int rank = 0; rank < 3; ++rank) {
    flights += flight(rank, 11, "completed", reduce);
  }
  // entries that are no longer in the other ranks' buffers
  flights += flight(0, 10, "completed", reduce) + flight(0, 12, "completed", reduce);
  flights += flight(1, 12, "recent", reduce);  // ranks are queried one after the other
  EXPECT_TRUE(judge({with_flights(flights)}, {}, {}).collectives.empty());
}

TEST(Why, WhatWasKeptSaysOfWhen) {
  Why why = judge({sample_of("a", {waiting(0), waiting(1)})}, {}, {});
  EXPECT_TRUE(cli::why_json(why)["as_of"].is_null());
  why.kept = WhyKept{instant(1700000000), std::chrono::seconds(1804)};
  EXPECT_THAT(cli::why_lines(why).front(),
              testing::MatchesRegex("as it was at .*, after 30m 04s without progress:"));
  EXPECT_EQ(cli::why_json(why)["as_of"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(cli::why_json(why)["hung_s"], 1804);
}

}  // namespace
}  // namespace remote::jobs
