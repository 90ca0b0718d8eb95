#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <remote/check.hpp>
#include <remote/error.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

// What happens while a call of Project goes on, as data: the words are the caller's. Every event arrives
// through Hooks::on_event.

namespace remote {

enum class OutputStream { out, err };

// ---- News of any call ----

// configs.yaml has something that is probably wrong: "FILE:7:5: unknown key 'hostnme' …".
struct ConfigWarning {
  std::string text;
};

// A host key was accepted on first use.
struct NewHostKey {
  std::string server;
  std::string host;         // as known_hosts names it
  std::string type;         // "ssh-ed25519"
  std::string fingerprint;  // "SHA256:…"
  std::string warning;      // why it could not be saved in known_hosts; empty when it was
};

// Told before a password is asked for: a private key cannot be used, or a server does not take it. Or a login
// waits until a person has opened a page in a browser: then the error says which one.
struct LoginProblem {
  Error error;
};

// A job's record in the store cannot be read or written; the other jobs are not concerned.
struct StoreProblem {
  std::string text;
};

// These servers, an error each, did not say how their jobs are: the state of these is unknown.
struct SilentServers {
  std::vector<Error> errors;
};

// A symbolic link that leads out of the project is not sent, nor is what would be of no use on a server.
struct LinkLeftOut {
  enum class Why {
    not_allowed,
    secret,  // it leads to keys, and can never be allowed
    circle,
    nowhere,     // the target does not exist
    environment  // told as EnvironmentsLeftOut
  };
  std::string name;
  std::string target;
  Why why = Why::not_allowed;
};

// Python environments of this machine in the project, which are not sent.
struct EnvironmentsLeftOut {
  std::vector<std::string> names;  // their folders, or links to them
};

// A line of exclude.txt that can match no file as it is written.
struct UselessPattern {
  enum class Why {
    negated,    // "!keep", as git has it
    comment,    // "data/ # big": a comment needs a line of its own
    blank,      // a blank at an end
    quoted,     // "'data/'"
    dots,       // "./data/"
    absolute,   // "~/data", or the project's own path
    sign,       // "+keep" without a blank
    braces,     // "*.{pt,bin}"
    backslash,  // "data\\raw"
    empty,      // "- " alone
    too_long,
  };
  std::string text;
  int line = 0;
  Why why = Why::negated;
};
// Told once a call that sends the project.
struct UselessPatterns {
  std::string file;  // as configs.yaml has it
  std::vector<UselessPattern> patterns;
};

// What git has not fetched here, and a server will miss. Told once a call that sends the project, or checks.
struct UnfetchedFiles {
  std::vector<std::string> pointers;    // files of git-lfs that are only pointers to their contents
  std::vector<std::string> submodules;  // empty folders
};

// Something failed on some servers or for some jobs, an error each; the call goes on for the others, and its
// result has the errors too.
struct PartsFailed {
  std::vector<Error> errors;
};

// ---- Following and launching ----

// The connection broke while output was followed, or (with `reached` false) was not made yet. It is tried
// again; the jobs go on meanwhile.
struct LinkLost {
  std::string server;
  std::string reason;
  bool reached = true;
  std::string hint{};  // for lost packets: what to try; only once per server
};
struct LinkBack {
  std::string server;
};

// All that could be started is started.
struct Launched {
  LaunchResult result;
};

// A launch's servers cannot all tell each other about a failure: the ranks of `servers` are ended after a
// failure elsewhere only while this program follows the launch.
struct NoLifeline {
  // no_port: no port is free for it; no_connection: a way between the servers is closed; dead: its process
  // has died, and could not be started again; restarted: it had died, and was started again
  enum class Cause { no_port, no_connection, dead, restarted };
  struct Server {
    std::string name;
    Cause cause = Cause::no_connection;
    std::string detail;  // for no_connection: which way is closed; for dead: why there is no new one
  };
  std::vector<Server> servers;
  bool for_all = false;  // the first server is the one without: there is none between the others either
};

// Points of a sweep wait, and a server does not begin them: all of it, as the server that gives them out does
// not, or this one alone.
struct SweepTrouble {
  // stopped: somebody has stopped it; gone: what the server kept of it is not there any more; dead: its
  // process there is dead; says: the process tells what is wrong, in `detail`
  enum class Cause { stopped, gone, dead, says };
  int key = 0;  // of the sweep's first job
  std::string server;
  Cause cause = Cause::says;
  std::string detail;  // foreign text
  bool all = false;
};

// A followed rank waits for Project::attach(): one of Job::waits. Reported once for each wait.
struct RankWaits {
  Job job;
  DebuggerWait wait;
};

// Followed jobs are still queued; Job::reason says why. Reported again if the reason changes.
struct JobsQueued {
  std::vector<Job> jobs;
};

// The server shows another number of GPUs than configs.yaml expects.
struct GpuCountDiffers {
  std::string server;
  int expected = 0;
  int found = 0;
};

// What was found on these servers, word for word the same, before a launch (LaunchRequest::check) would harm
// it, and does not stop it.
struct CheckWarned {
  std::vector<std::string> servers;
  Finding finding;
};

// The project on the server differs from the one here (LaunchRequest::verify_sync).
struct CodeDiffers {
  std::string server;
  std::vector<std::string> names;
};

// Files that differ between these servers and this machine. They were changed here since the project was last
// sent, or (`there`) changed on the servers or sent from another folder or machine.
struct CodeChanged {
  std::vector<std::string> servers;
  std::vector<std::string> names;  // sorted
  bool never_sent = false;         // nothing was ever sent from here
  bool there = false;
  bool gone = false;    // all of the files that were sent are missing
  std::string by = {};  // the last sender of the project, if it was another folder; foreign text
};

// The code that a launch is about to run.
struct LaunchCode {
  std::string commit;                   // of git here, in hexadecimal; "": none is known
  bool clean = false;                   // nothing here differs from the commit
  int untracked = 0;                    // files here that git neither has nor ignores
  std::vector<std::string> changed_in;  // submodules with changes ("libs/sub/")
  bool changed = false;                 // files here that git has differ from the commit
  std::vector<std::string> same;        // servers with the same files as here, or as the commit
  std::vector<std::string> different;   // servers that have something else
  std::vector<std::string> unknown;     // servers that could not be compared
};

// An unfinished launch of this project runs the same command on servers of the one that is about to start.
struct SameLaunchRuns {
  int key = 0;  // of its first job
  std::vector<std::string> servers{};
};

// The launch ends its other ranks: after this one failed, or (nullopt) because some did not start.
struct EndingRanks {
  std::optional<Job> failed;
};

// A private key was made (AuthorizeRequest::generate).
struct KeyMade {
  std::string file;
};

// ---- Preparing ----

enum class PrepareStep {
  setup,
  sync,
  packages,
  shared,  // another server does the steps
};
enum class StepResult { not_asked, skipped, done };

// What a project asks to be installed, by the first of these files that it has here. A pyproject.toml that
// only configures tools asks for nothing.
enum class PackageSource { none, pipenv, requirements, pyproject };

// What a transfer did.
struct SyncReport {
  std::vector<std::string> changed;   // files that went (or would go), as rsync names them
  std::vector<std::string> removed;   // files that were removed there; their folders are not named
  std::vector<std::string> newer;     // left alone, because they are newer on the receiving side
  std::vector<std::string> warnings;  // symlinks to nowhere, files that vanished meanwhile
  std::uint64_t bytes = 0;            // sizes of the files that went
};

// What prepare did on one server.
struct PrepareReport {
  StepResult setup = StepResult::not_asked;
  StepResult sync = StepResult::not_asked;
  StepResult packages = StepResult::not_asked;
  std::optional<PackageSource> package_source;  // nullopt: not asked for
  std::string sent_by;  // the server that files came from first; empty: this machine alone
  // The server that has the same folder (a common home, or one machine under two names), by way of which it
  // was prepared; empty: none. Then the rest tells only what was done for this server besides.
  std::string shared_with;
  bool shared_home = false;  // the folder is in the home
  SyncReport files;
  std::vector<std::string> differences;  // with PrepareRequest::verify
  std::vector<std::string> notes;        // what the user should know
};

// How far a transfer is.
struct TransferProgress {
  std::uint64_t bytes = 0;
  int percent = 0;  // 0: not known
  double bytes_per_second = 0;
  std::chrono::seconds left{0};  // until the end; what has passed, once all is there
};

// `server` of these four is the index in the list of servers that the call is about.
struct StepBegun {
  std::size_t server = 0;
  PrepareStep step = PrepareStep::setup;
  std::string other = {};  // of PrepareStep::shared: that server
};
struct StepDetail {
  std::size_t server = 0;
  std::string text;  // a line of pip, conda …; may be anything that a server prints
  std::optional<double> fraction;
};
struct TransferNews {
  std::size_t server = 0;
  TransferProgress progress;
};
struct ServerPrepared {
  std::size_t server = 0;
  PrepareReport report;
};
struct ServerFailed {
  std::size_t server = 0;
  Error error;
  std::string last_lines;  // of what the failed command wrote to stderr; may be ""
  std::string log;         // the folder with all of it; may be ""
};

using Event =
    std::variant<ConfigWarning, NewHostKey, LoginProblem, StoreProblem, SilentServers, LinkLeftOut,
                 EnvironmentsLeftOut, UselessPatterns, UnfetchedFiles, PartsFailed, LinkLost, LinkBack,
                 NoLifeline, SweepTrouble, RankWaits, JobsQueued, GpuCountDiffers, CheckWarned, CodeDiffers,
                 CodeChanged, LaunchCode, Launched, SameLaunchRuns, EndingRanks, KeyMade, StepBegun,
                 StepDetail, TransferNews, ServerPrepared, ServerFailed>;

}  // namespace remote
