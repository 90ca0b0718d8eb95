#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/launch.hpp>

#include "wire/facts.hpp"
#include "wire/jobs.hpp"

// Requests that inspect the processes of running jobs, and their replies. Stacks, names and reasons are
// untrusted text.

namespace remote::wire {

constexpr std::size_t max_stack_line = 5000;  // bytes; also the largest number of frames in a thread
constexpr Limits pid_limit = in_range(1, 1 << 30);
constexpr Limits rank_limit = in_range(0, 1 << 30);

template <>
struct Fields<ThreadStack> {
  static constexpr auto fields() {
    return field_list(field("name", &ThreadStack::name, a_line(max_stack_line)),
                      field("frames", &ThreadStack::frames, a_line(max_stack_line)));
  }
};

struct ProcessStack {
  std::string id;
  int pid = 1;
  std::optional<int> rank{};  // RANK in its environment
  std::vector<ThreadStack> threads{};
  std::string why{};                  // why it has no Python stack
  std::vector<std::string> kernel{};  // in that case, the kernel's state of each thread

  static constexpr auto fields() {
    using S = ProcessStack;
    return field_list(field("id", &S::id, an_id()), field("pid", &S::pid, pid_limit),
                      field("rank", &S::rank, rank_limit),
                      field("threads", &S::threads, at_most(max_stack_line)),
                      field("why", &S::why, a_line(1000)), field("kernel", &S::kernel, a_line(500)));
  }
};

struct StacksRequest {
  static constexpr std::string_view kind = "stacks";

  JobsPlace place;
  std::vector<std::string> ids{};
  std::string activate{};  // shell text that enters the project's environment, to find py-spy
  std::string digest{};    // of the program's copy for jobs, which runs on Slurm's nodes

  static constexpr auto fields() {
    using R = StacksRequest;
    return field_list(field("place", &R::place), field("ids", &R::ids, job_ids),
                      field("activate", &R::activate, at_most(std::size_t{512} << 10U)),
                      field("digest", &R::digest, a_word("", 64)));
  }
};

// Part of an answer. Jobs that have ended have no processes.
struct StacksReply {
  static constexpr std::string_view kind = "stacks";

  std::vector<ProcessStack> processes{};

  static constexpr auto fields() {
    return field_list(field("processes", &StacksReply::processes, at_most(max_jobs)));
  }
};

// ---- Why a launch hangs or is slow: two samples of its processes, some seconds apart

struct ProcessSample {
  int pid = 1;
  int parent = 0;
  std::string state = "?";                 // as in /proc/PID/stat
  std::uint64_t ticks = 0;                 // hundredths of a second of processor time, all threads
  std::optional<std::uint64_t> written{};  // bytes, including those written to sockets with write(2)
  std::string kernel{};                    // the kernel function in which the main thread waits, or ""
  // If it writes to a pipe: its descriptor, and the process of this user that can read the pipe. Set only in
  // the second sample.
  std::optional<int> pipe_fd{};
  std::optional<int> pipe_reader{};

  static constexpr auto fields() {
    using S = ProcessSample;
    return field_list(field("pid", &S::pid, pid_limit), field("parent", &S::parent, in_range(0, 1 << 30)),
                      field("state", &S::state, a_name(1)), field("ticks", &S::ticks),
                      field("written", &S::written), field("kernel", &S::kernel, a_word("._", 200)),
                      field("pipe_fd", &S::pipe_fd, in_range(0, 1 << 30)),
                      field("pipe_reader", &S::pipe_reader, pid_limit));
  }
};

// A rank in a sample, or a Python program that starts ranks.
struct RankSample {
  std::string id;
  int pid = 1;
  std::optional<int> rank{};
  std::uint64_t delay_ns = 0;                   // how long its threads were ready to run but had no processor
  std::optional<std::uint64_t> throttled_us{};  // how long its control group withheld the processor

  static constexpr auto fields() {
    using S = RankSample;
    return field_list(field("id", &S::id, an_id()), field("pid", &S::pid, pid_limit),
                      field("rank", &S::rank, rank_limit), field("delay_ns", &S::delay_ns),
                      field("throttled_us", &S::throttled_us));
  }
};

struct LaunchSample {
  std::chrono::milliseconds at{};  // since boot
  std::vector<RankSample> ranks{};
  std::vector<ProcessSample> processes{};

  static constexpr auto fields() {
    using S = LaunchSample;
    return field_list(field("at", &S::at, in_range(0, 1LL << 62)),
                      field("ranks", &S::ranks, at_most(max_jobs)),
                      field("processes", &S::processes, at_most(max_jobs)));
  }
};

// A collective of a rank, from PyTorch's flight recorder (flight.py). Unknown texts are "-".
struct FlightEntry {
  int rank = 0;
  std::string group{};
  std::uint64_t number = 0;  // 0: the rank is a member of the group
  std::string state{};  // torch's state or, if it is not complete, "recent" or "old", depending on its age
  std::string function{};
  std::string types{};
  std::string shapes{};

  static constexpr auto fields() {
    using F = FlightEntry;
    return field_list(field("rank", &F::rank, rank_limit), field("group", &F::group, a_word("._:-")),
                      field("number", &F::number), field("state", &F::state, a_word("._:-")),
                      field("function", &F::function, a_word("._:-")),
                      field("types", &F::types, a_word("._:,-", 2000)),
                      field("shapes", &F::shapes, a_word("x,-", 8000)));
  }
};

constexpr std::size_t max_flight_entries = 100'000;
constexpr std::size_t max_addresses = 4096;

struct WhyRequest {
  static constexpr std::string_view kind = "why";

  JobsPlace place;
  std::vector<std::string> ids{};
  std::string activate{};
  std::chrono::seconds between{5};  // the time between the two samples
  std::string flight{};             // the text of flight.py

  static constexpr auto fields() {
    using R = WhyRequest;
    return field_list(field("place", &R::place), field("ids", &R::ids, job_ids),
                      field("activate", &R::activate, at_most(std::size_t{512} << 10U)),
                      field("between", &R::between, in_range(0, 1 << 30)),
                      field("flight", &R::flight, at_most(65536)));
  }
};

// A part of an answer.
struct WhyReply {
  static constexpr std::string_view kind = "why";

  std::optional<FactsReply> facts{};  // load, GPUs and disks
  // This user's TCP connections, in the kernel's hexadecimal digits: the server's own addresses, and
  // addresses that do not acknowledge.
  std::set<std::string> addresses{};
  std::set<std::string> silent{};
  std::vector<FlightEntry> flight{};
  int number = 0;  // 0 or 1: the sample that the following members belong to
  std::optional<LaunchSample> sample{};
  std::vector<ProcessStack> stacks{};

  static constexpr auto fields() {
    using R = WhyReply;
    return field_list(field("facts", &R::facts), field("addresses", &R::addresses, a_word("", max_addresses)),
                      field("silent", &R::silent, a_word("", max_addresses)),
                      field("flight", &R::flight, at_most(max_flight_entries)),
                      field("number", &R::number, in_range(0, 1)), field("sample", &R::sample),
                      field("stacks", &R::stacks, at_most(max_jobs)));
  }
};

// The evidence of a hang that the launch's supervisor has kept in the folder of one of these jobs.
struct KeptWhyRequest {
  static constexpr std::string_view kind = "kept_why";

  JobsPlace place;
  std::vector<std::string> ids{};

  static constexpr auto fields() {
    using R = KeptWhyRequest;
    return field_list(field("place", &R::place), field("ids", &R::ids, job_ids));
  }
};

constexpr std::size_t max_kept_part = std::size_t{900} << 10U;

// A part of an answer. There is one part with `hang` and any number with `part`, or only an empty one if no
// evidence was kept.
struct KeptWhyReply {
  static constexpr std::string_view kind = "kept_why";

  std::optional<HangRecord> hang{};
  std::string part{};  // a WhyReply in JSON

  static constexpr auto fields() {
    using R = KeptWhyReply;
    return field_list(field("hang", &R::hang), field("part", &R::part, at_most(max_kept_part)));
  }
};

}  // namespace remote::wire
