#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <remote/job.hpp>

#include "jobs/protocol.hpp"
#include "servers/action.hpp"

// What is said between this program and the process of a sweep on a server (src/server/actions/sweep.sh).

namespace remote::jobs {

// What every server of a sweep is given of its points, once: how each is started there.
struct SweepPoints {
  std::vector<StartRequest> requests;  // by number; their ids are not used
  int slots = 1;
  std::vector<std::string> lease{};  // what each has for itself (servers::lease_words()); none: nothing
  int retry = 0;
};

// A run of a sweep: its start, or one that goes on with it.
struct SweepRun {
  JobId launch;
  std::string token;
  std::vector<std::string> servers;  // the first one gives out the points
  std::string address;
  int port = 0;
  std::vector<std::string> ids;  // by number; "": this point is not to run now
};

enum class SweepRunner { alive, dead, stopped, done, none };

struct SweepAnswer {
  SweepRunner runner = SweepRunner::none;
  bool began = false;
  std::string note;  // what is wrong with it; foreign text
  // Of the ids that were asked about: those that it gave to a server, as percent_encode() writes its name.
  std::map<JobId, std::string> given;
  std::vector<JobId> begun;                         // those that began on this one
  std::map<JobId, std::vector<std::string>> tails;  // the last lines; foreign text

  void take(servers::AnswerLine& line);
};

// Starts the process on a server. `points`: nullptr where it has them already. `busy`: the points that run
// there. `activate`: sh text that enters the Python environment.
servers::Action<SweepAnswer> sweep_begin_action(const RemoteFolder& folder, const std::string& own,
                                                const SweepRun& run, const SweepPoints* points,
                                                const std::vector<JobId>& busy, const std::string& activate);

// What is wanted: to know how it is; that nothing begins there any more, and then the same; to forget it.
enum class SweepAsk { look, stop, drop };
struct SweepQuestion {
  SweepAsk ask = SweepAsk::look;
  JobId launch;
  std::vector<JobId> waiting{};  // points of which it is not known that they began
  std::vector<JobId> tails{};    // those whose last lines are wanted
};
servers::Action<SweepAnswer> sweep_action(const RemoteFolder& folder, const SweepQuestion& question,
                                          const std::string& activate);

}  // namespace remote::jobs
