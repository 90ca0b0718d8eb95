#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <remote/why.hpp>

#include "jobs/stacks.hpp"
#include "servers/facts.hpp"

// Two looks at a launch's processes, and what follows from them.

namespace remote::jobs {

// A process at a look.
struct ProcessState {
  int parent = 0;
  char state = '?';                        // as in /proc/PID/stat
  std::uint64_t ticks = 0;                 // hundredths of a second of processor time, all threads
  std::optional<std::uint64_t> written{};  // bytes, also into sockets by write(2)
  std::string kernel{};                    // where the main thread waits; ""
};

// A rank at a look.
struct RankState {
  JobId id;
  std::optional<int> rank{};
  std::uint64_t delay_ns = 0;  // that its threads were ready and had no processor
};

// A collective of a rank, from PyTorch's flight recorder.
struct Flight {
  int rank = 0;
  std::string group{};
  std::uint64_t number = 0;  // 0: the rank is in that group, and no more
  bool completed = false;
  std::string function{};
  std::string types{};
  std::string shapes{};
};

// What actions/why.sh answers of one server.
struct WhyAnswer {
  struct Look {
    double at = 0;  // seconds
    std::map<int, ProcessState> processes{};
    std::map<int, RankState> ranks{};
    std::map<int, std::uint64_t> throttled_us{};
    StacksAnswer stacks{};
  };
  struct Pipe {
    int fd = 0;
    int reader = 0;
  };
  std::array<Look, 2> looks{};
  std::vector<Flight> flights{};
  std::map<int, Pipe> pipes{};        // by the pid of who writes
  std::set<std::string> addresses{};  // of this server, in the kernel's hexadecimal digits
  std::set<std::string> silent{};     // that do not acknowledge
  bool hangs = false;
  std::optional<WhyKept> kept{};  // by the server's clock
  servers::FactsAnswer facts{};

  void take(servers::AnswerLine& line);

 private:
  Look* of_stacks_ = nullptr;
  Look& look(servers::AnswerLine& line) { return looks.at(line.number<std::size_t>(0, 1)); }
};

servers::Action<WhyAnswer> why_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                      const std::string& activate, const WhyRequest& request);

// The same from what the launch's lifeline kept when it stood still (src/server/python/lifeline_evidence.py);
// without `kept`: there is none.
servers::Action<WhyAnswer> kept_action(const RemoteFolder& folder, const std::vector<JobId>& ids);

// What one server told of the launch's jobs there; these have not ended, as far as was known.
struct WhySample {
  std::string server;
  std::vector<Job> jobs;
  WhyAnswer answer;
};

// Of each process group the first collective that did not come about, as far as these tell.
std::vector<WhyCollective> collectives_in(const std::vector<Flight>& flights);

// `others`: the launch's jobs that were not looked at: ended ones, and those of servers that do not answer.
Why judge(const std::vector<WhySample>& samples, const std::vector<Job>& others, ExactInstant now);

// Looks at all of these jobs, which are of one launch; final ones are not asked about.
Why look_why(const Site& site, const std::vector<Job>& jobs, const WhyRequest& request);

// The same of the moment at which the launch was found to stand still. Throws Error (usage) where nothing was
// kept.
Why look_kept(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
