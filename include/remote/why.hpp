#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/facts.hpp>
#include <remote/job.hpp>

// Why a launch stands still, or is slow: Project::why(). All of it is what two looks at its processes saw,
// some seconds apart.

namespace remote {

// What a rank does, or what it waits for.
enum class RankDoing {
  computing,    // it uses a processor
  collective,   // waits in a collective of torch.distributed, or in a function that has such a name
  meeting,      // waits in init_process_group for the other ranks
  peer,         // waits in a send or a receive of torch.distributed
  data,         // waits for a data loader
  lock,         // waits for a lock, a queue or a thread of its own
  sleeping,     // sleeps
  network,      // waits for a socket
  event,        // waits in poll, select or epoll, for whatever it may be
  pipe_full,    // writes into a pipe that nobody empties
  pipe_empty,   // reads from a pipe
  child,        // waits for a process that it started
  stopped,      // is stopped by a signal (SIGSTOP)
  traced,       // is held by a debugger, or waits in breakpoint() for Project::attach()
  storage,      // waits in the kernel for a disk or a file system
  throttled,    // its control group gives it no more processor time
  waiting,      // it uses no processor, and nothing shows what it waits for
  ended,        // it has ended
  unreachable,  // its server does not answer
};
std::string_view to_string(RankDoing doing);  // "pipe_full"

struct RankLook {
  Job job;
  std::optional<int> rank;  // nullopt: a job without ranks
  int pid = 0;              // 0: ended, or unreachable
  RankDoing doing = RankDoing::waiting;
  // The innermost call in the program's own files, foreign text. Of a collective or a data loader `function`
  // is that, called from file:line. "" and 0 where there is no Python stack.
  std::string function{};
  std::string file{};
  int line = 0;
  // Whether its stack showed at both looks that it waited in a collective, or at none.
  bool waited = false;
  bool worked = false;
  bool moved = false;      // it used a processor, wrote, or got to another line between the looks
  double cpu = 0;          // processors that it used, with its children
  double cpu_wait = 0;     // seconds a second that its threads waited for a processor
  double throttled = 0;    // seconds a second that its control group withheld
  std::string kernel{};    // the kernel's name of what the main thread waits in; ""
  std::string no_stack{};  // why there is no Python stack
  int pipe_fd = -1;        // of pipe_full: its descriptor, and who has the other end (0: none of the user)
  int pipe_reader = 0;
  std::optional<std::chrono::seconds> silent{};  // since its job last wrote a line, where it is one rank
};

// Ranks that do the same at the same place.
struct WhyGroup {
  std::vector<RankLook> ranks;  // by rank
  bool odd = false;             // the others wait for these, or these differ
};

enum class WhyKind {
  moving,      // no rank stands still
  slow,        // it moves, and the odd ranks need `factor` times as much time as the others
  held_up,     // the others wait for the odd ranks
  ended,       // the others wait for the odd ranks, which have ended
  mismatch,    // all wait, in different collectives
  link,        // they wait for each other, and two servers do not reach each other (WhyLink)
  same_place,  // all wait in the same collective, and nothing differs
  standing,    // they stand still, and no rank waits for another one
  unknown,     // too little was seen
};
std::string_view to_string(WhyKind kind);

// `server` has sent something that `to` does not acknowledge.
struct WhyLink {
  std::string server;
  std::string to;
};

// The first collective of a process group that did not come about, from PyTorch's flight recorder (NCCL).
// Ranks are those of the launch.
struct WhyCollective {
  enum class Kind {
    missing,  // not all ranks of the group have come to it
    differs,  // they came with another function, shape or type
    stuck     // all are in it, with the same
  };
  // Ranks that came with the same.
  struct Call {
    std::string function{};  // "all_reduce", foreign text as what follows
    std::string types{};     // "Float"
    std::string shapes{};    // "3x4,7" of the inputs; "" for scalars
    std::vector<int> ranks{};
  };
  Kind kind = Kind::missing;
  std::string group{};                // its name: "0", the default one
  std::uint64_t number = 0;           // of the collective in the group, from 1
  std::vector<Call> calls{};          // those of the fewest ranks first
  std::vector<int> missing{};         // the ranks that have not come
  std::uint64_t last_of_missing = 0;  // the last one to which the first of these came
  bool old = false;                   // pending for a minute
};
std::string_view to_string(WhyCollective::Kind kind);

struct WhyServer {
  std::string server;
  std::optional<DiskFacts> full_disk{};  // one without room
  bool storage_hangs = false;            // the project's file system does not answer
  std::string lifeline{};                // why its lifeline is not connected, foreign text; ""
  std::optional<double> gpu_use{};       // percent, mean of its GPUs
};

// When the servers kept what `Why` was judged by: Job::hung.
struct WhyKept {
  Instant at;
  std::chrono::seconds stood{0};  // for how long the launch had stood still
};

struct Why {
  WhyKind kind = WhyKind::unknown;
  double factor = 0;                         // of slow
  std::chrono::duration<double> between{0};  // the looks
  std::vector<WhyGroup> groups;              // the odd ones first, then the smaller ones
  std::vector<WhyLink> links;
  std::vector<WhyCollective> collectives{};  // by group
  std::vector<WhyServer> servers;            // by name
  std::vector<Error> errors;                 // servers that did not answer
  std::optional<WhyKept> kept{};             // nullopt: it is as it was just now
};

struct WhyRequest {
  std::chrono::seconds between{5};  // the two looks, at least 1
  // Not how it is, but how it was when the launch was found to stand still; the jobs may have ended.
  bool kept = false;
};

}  // namespace remote
