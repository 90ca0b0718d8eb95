#pragma once

#include <map>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/protocol.hpp"
#include "jobs/site.hpp"

namespace remote::jobs {

// A job to start: the record to be (id, server, command, tags, rank …; key, state and times are set here) and
// what runs.
struct NewJob {
  Job job;
  servers::ProcessSpec process;
  std::string init_file{};  // where its launch has a shared file: see servers/init_file.hpp; else ""
  // Then the batch script that is submitted; "" for a job that is another one's in an array.
  std::string batch{};
  bool requeue = false;        // Slurm may run it again
  std::vector<JobId> after{};  // it begins when these have succeeded
  // What all jobs that are started with it on its server lease together (servers::lease_words()), and the sh
  // text that enters an environment with a Python, for where the server has none.
  std::vector<std::string> lease{};
  std::string lease_activate{};
};

// What the servers of a launch tell each other without this program (docs/protocol.md, The lifeline).
struct Lifeline {
  std::string token;                 // random; proves who belongs to the launch
  std::vector<std::string> servers;  // all that take part; the first one is the hub
  std::string address;               // where the hub listens
  int port = 0;
  std::map<std::string, std::string> activate;  // by server: sh text that enters its Python environment
  // By what mpirun calls them: the servers whose jobs wait for its orders, from the first one's lifeline.
  // Empty: nobody gives orders to anybody.
  std::map<std::string, std::string> mpi_hosts{};
  int grace_s = 5;     // between a failure and the end of the other ranks: they may write their own errors
  int timeout_s = 60;  // a server that is silent for so long is lost
  int needed = 0;      // how many servers an elastic launch needs to go on; 0: all
  // Of a launch that may begin anew (docs/resilience.md): how often, how many of `servers` are enough, after
  // what (none: any), how many ranks each has, and the words of `checkpoint` there.
  int restarts = 0;
  int least = 0;
  std::vector<RestartCause> restart_on{};
  std::vector<int> ranks{};
  std::vector<std::string> checkpoint{};
  bool queue = false;  // the jobs wait for their leases on several servers
  // After how many seconds without output and work it stands still, and what is done then; 0: nobody looks.
  std::int64_t hang_s = 0;
  OnHang on_hang = OnHang::leave;
  std::vector<int> no_restart_exit{};  // exit codes after which it does not
  int spares = 0;       // so many, the last of `servers`, have no ranks until they replace another one
  bool agents = false;  // its jobs are agents, which number their ranks by themselves
  bool whole = false;   // `servers` are all of the launch
  bool leave = false;   // a failure of a rank, or of a server, ends no other
  // What the hub's file `notify` has but for the key (docs/protocol.md): it tells the end of the launch.
  // "": it does not. A secret.
  std::string news{};
};

// What one server's lifeline process is given on its stdin, for these jobs on it.
std::string lifeline_request(const Lifeline& lifeline, const std::string& server,
                             const std::vector<Job>& jobs_there);

struct StartResult {
  std::vector<Job> jobs;      // all, in the order given, with keys
  std::vector<Error> errors;  // one for each server or job that did not start, or of which nothing is known
  std::optional<Error> unsaved{};  // what was found out could not be recorded here; it is true all the same
};

// Records the jobs and starts them: all of a server in one exec, servers side by side. The records are on
// disk before the first script goes out, so that whatever dies in between, `refresh` finds out later what
// came of it. Throws Error when a server cannot be reached or the store cannot be written (then nothing was
// started), and never once a byte of a script has gone out: what fails after that is in the result.
// `lifeline` is that of the launch, nullptr: none.
StartResult start(const Site& site, std::vector<NewJob> new_jobs, const Lifeline* lifeline = nullptr);

}  // namespace remote::jobs
