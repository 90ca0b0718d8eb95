#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/facts.hpp>
#include <remote/job.hpp>

// Why a launch hangs or is slow: Project::why(). Based on two samples of its processes, several seconds
// apart.

namespace remote {

// What a rank does or waits for.
enum class RankDoing {
  computing,   // uses a processor
  collective,  // waits in a collective of torch.distributed, or in a function with the name of one
  meeting,     // waits in init_process_group for the other ranks
  peer,        // waits in a torch.distributed send or receive
  data,        // waits for a data loader
  lock,        // waits for a lock, a queue or one of its own threads
  sleeping,
  network,     // waits for a socket
  event,       // waits in poll, select or epoll, for an unknown event
  pipe_full,   // writes to a pipe that is full because no process reads it
  pipe_empty,  // reads from a pipe
  child,       // waits for a process that it started
  stopped,     // is stopped (SIGSTOP)
  traced,      // is stopped by a debugger, or waits in breakpoint() for Project::attach()
  storage,     // waits in the kernel for a disk or a file system
  kernel,      // waits in the kernel and cannot be interrupted, as in a GPU's driver
  throttled,   // has used up the CPU quota of its control group
  waiting,     // uses no processor, and the reason is unknown
  ended,
  unreachable,
};
std::string_view to_string(RankDoing doing);  // "pipe_full"

struct RankLook {
  Job job;
  std::optional<int> rank;  // nullopt: a job without ranks
  int pid = 0;              // 0: ended, or unreachable
  RankDoing doing = RankDoing::waiting;
  // The innermost call in the program's own files; untrusted text. For a collective or a data loader,
  // `function` is its name and file:line is the caller. "" and 0 if there is no Python stack.
  std::string function{};
  std::string file{};
  int line = 0;
  // Whether it waited in a collective in both samples (waited), or in neither (worked), according to its
  // stack.
  bool waited = false;
  bool worked = false;
  bool moved = false;      // it used a processor, wrote output, or reached another line between the samples
  double cpu = 0;          // processors used, including child processes
  double cpu_wait = 0;     // seconds per second that its threads waited for a processor
  double throttled = 0;    // seconds per second that it was throttled by its control group
  std::string kernel{};    // the kernel function that the main thread waits in; or ""
  std::string no_stack{};  // why there is no Python stack
  int pipe_fd = -1;  // for pipe_full: the descriptor, and the process at the other end (0: none of the user)
  int pipe_reader = 0;
  std::optional<std::chrono::seconds> silent{};  // since its job's last line, for a single rank
};

// Ranks that do the same thing at the same place.
struct WhyGroup {
  std::vector<RankLook> ranks;  // by rank
  bool odd = false;             // the others wait for these ranks, or these differ from the others
};

enum class WhyKind {
  moving,      // no rank hangs
  slow,        // it is running, but the odd ranks take `factor` times as long as the others
  held_up,     // the others wait for the odd ranks
  ended,       // the others wait for the odd ranks, which have ended
  mismatch,    // all wait, but in different collectives
  link,        // they wait for each other, because two servers cannot reach each other (WhyLink)
  same_place,  // all wait in the same collective, without any difference
  standing,    // they hang, but no rank waits for another one
  unknown,     // not enough data
};
std::string_view to_string(WhyKind kind);

// `server` has sent data that `to` does not acknowledge.
struct WhyLink {
  std::string server;
  std::string to;
};

// The first incomplete collective of a process group, from PyTorch's flight recorder (NCCL). Ranks are those
// of the launch.
struct WhyCollective {
  enum class Kind {
    missing,  // some ranks of the group have not reached it
    differs,  // ranks called it with different functions, shapes or types
    stuck     // all ranks are in it, with identical calls
  };
  // The ranks with identical calls.
  struct Call {
    std::string function{};  // "all_reduce"; like the next ones untrusted text
    std::string types{};     // "Float"
    std::string shapes{};    // of the inputs: "3x4,7"; "" for scalars
    std::vector<int> ranks{};
  };
  Kind kind = Kind::missing;
  std::string group{};                // the group's name: "0" for the default group
  std::uint64_t number = 0;           // number of the collective in the group, from 1
  std::vector<Call> calls{};          // fewest ranks first
  std::vector<int> missing{};         // the ranks that have not reached it
  std::uint64_t last_of_missing = 0;  // the number of the last collective that the first of these reached
  bool old = false;                   // pending for at least a minute
};
std::string_view to_string(WhyCollective::Kind kind);

struct WhyServer {
  std::string server;
  std::optional<DiskFacts> full_disk{};  // a file system without free space
  bool storage_hangs = false;            // the file system of the project does not respond
  std::string lifeline{};                // why its lifeline is not connected; untrusted text; or ""
  std::optional<double> gpu_use{};       // average of its GPUs in percent
};

// When the servers saved the data for `Why`: Job::hung.
struct WhyKept {
  Instant at;
  std::chrono::seconds stood{0};  // duration of the hang at that time
};

struct Why {
  WhyKind kind = WhyKind::unknown;
  double factor = 0;                         // for the kind `slow`
  std::chrono::duration<double> between{0};  // time between the samples
  std::vector<WhyGroup> groups;              // odd ones first, then by ascending size
  std::vector<WhyLink> links;
  std::vector<WhyCollective> collectives{};  // by group
  std::vector<WhyServer> servers;            // by name
  std::vector<Error> errors;                 // servers that did not answer
  std::optional<WhyKept> kept{};             // nullopt: current data
};

struct WhyRequest {
  std::chrono::seconds between{5};  // time between the samples, at least 1
  // Use the data saved when the hang was detected instead of current samples; the jobs may have ended.
  bool kept = false;
};

}  // namespace remote
