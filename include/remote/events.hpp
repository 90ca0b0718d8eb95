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

// Events during a call of Project, as data: the caller chooses the wording. Hooks::on_event receives all of
// them.

namespace remote {

enum class OutputStream { out, err };

// ---- Events of any call ----

// configs.yaml has a probable mistake: "FILE:7:5: unknown key 'hostnme' …".
struct ConfigWarning {
  std::string text;
};

// A host key was accepted on first use.
struct NewHostKey {
  std::string server;
  std::string host;         // as in known_hosts
  std::string type;         // "ssh-ed25519"
  std::string fingerprint;  // "SHA256:…"
  std::string warning;      // why it could not be saved in known_hosts; empty if it was saved
};

// Sent before a password prompt: a private key cannot be used, or a server rejects it. Also sent when a login
// waits for the user to open a page in a browser: the error then names the page.
struct LoginProblem {
  Error error;
};

// The login shell of this server, which run() or shell() needs, has not begun the command after some seconds:
// its start files may be slow, or ask something.
struct SlowLogin {
  std::string server;
};

// A job's record in the store cannot be read or written. Other jobs are not affected.
struct StoreProblem {
  std::string text;
};

// These servers (one error each) did not report the state of their jobs, which is therefore unknown.
struct SilentServers {
  std::vector<Error> errors;
};

// A symbolic link that is not sent: it points outside the project, or would be useless on a server.
struct LinkLeftOut {
  enum class Why {
    not_allowed,
    secret,  // points to keys; this can never be allowed
    circle,
    nowhere,     // the target does not exist
    environment  // reported as EnvironmentsLeftOut
  };
  std::string name;
  std::string target;
  Why why = Why::not_allowed;
};

// Python environments of this machine inside the project. They are not sent.
struct EnvironmentsLeftOut {
  std::vector<std::string> names;  // their folders, or links to them
};

// A line of exclude.txt that cannot match any file as written.
struct UselessPattern {
  enum class Why {
    negated,    // "!keep", which is git's syntax
    comment,    // "data/ # big", "data/ // big": a comment needs its own line
    blank,      // a leading or trailing blank
    quoted,     // "'data/'"
    dots,       // "./data/"
    absolute,   // "~/data", "~bob/data", or the project's own path
    sign,       // "+keep" without a blank
    braces,     // "*.{pt,bin}"
    backslash,  // "data\\raw"
    slashes,    // "data//"
    bracket,    // "[abc" without an end
    variable,   // "$HOME/data"
    empty,      // "- " alone
    too_long,
  };
  std::string text;
  int line = 0;
  Why why = Why::negated;
};
// Sent once for each call that sends the project.
struct UselessPatterns {
  std::string file;  // as in configs.yaml
  std::vector<UselessPattern> patterns;
};

// Files that git has not fetched here, so a server will not have them. Sent once for each call that sends the
// project or checks.
struct UnfetchedFiles {
  std::vector<std::string> pointers;    // git-lfs files that are only pointers to their contents
  std::vector<std::string> submodules;  // empty folders
};

// Something failed on some servers or for some jobs, one error each. The call continues for the others; its
// result has these errors too.
struct PartsFailed {
  std::vector<Error> errors;
};

// ---- Following and launching ----

// The connection broke while following output or, if `reached` is false, was never made. remote keeps trying;
// the jobs continue to run.
struct LinkLost {
  std::string server;
  std::string reason;
  bool reached = true;
  std::string hint{};  // for lost packets: what to try; once per server
};
struct LinkBack {
  std::string server;
};

// Everything that could be started has been started.
struct Launched {
  LaunchResult result;
};

// Not all servers of a launch can notify each other of a failure. If a rank fails elsewhere, the ranks of
// `servers` are only stopped while this program follows the launch.
struct NoLifeline {
  // no_port: it has no free port; no_connection: a path between the servers is closed; dead: its process died
  // and could not be restarted; restarted: it died and was restarted
  enum class Cause { no_port, no_connection, dead, restarted };
  struct Server {
    std::string name;
    Cause cause = Cause::no_connection;
    std::string detail;  // for no_connection: which path is closed; for dead: why it could not be restarted
  };
  std::vector<Server> servers;
  bool for_all = false;  // the first server has no lifeline, so the others have none either
};

// Points of a sweep are waiting but a server does not start them. If this is the server that hands out the
// points, the whole sweep waits; otherwise only this server's points.
struct SweepTrouble {
  // stopped: a user stopped it; gone: its files on the server no longer exist; dead: its process there has
  // died; says: its process reports an error, in `detail`
  enum class Cause { stopped, gone, dead, says };
  int key = 0;  // the sweep's first job
  std::string server;
  Cause cause = Cause::says;
  std::string detail;  // untrusted text
  bool all = false;
};

// A followed rank waits for Project::attach(); `wait` is one of Job::waits. Sent once for each wait.
struct RankWaits {
  Job job;
  DebuggerWait wait;
};

// Followed jobs are still queued; Job::reason says why. Sent again if the reason changes.
struct JobsQueued {
  std::vector<Job> jobs;
};

// The server has a different number of GPUs than configs.yaml expects.
struct GpuCountDiffers {
  std::string server;
  int expected = 0;
  int found = 0;
};

// A finding from the check before a launch (LaunchRequest::check), identical on these servers. It would harm
// the launch but does not prevent it.
struct CheckWarned {
  std::vector<std::string> servers;
  Finding finding;
};

// The project on the server differs from the project here (LaunchRequest::verify_sync).
struct CodeDiffers {
  std::string server;
  std::vector<std::string> names;
};

// Files that differ between these servers and this machine. They were changed here since the project was last
// sent, or, if `there` is set, changed on the servers or sent from another folder or machine.
struct CodeChanged {
  std::vector<std::string> servers;
  std::vector<std::string> names;  // sorted
  bool never_sent = false;         // nothing was ever sent from this machine
  bool there = false;
  bool gone = false;    // all of the sent files are missing
  std::string by = {};  // the last sender of the project, if that was another folder; untrusted text
};

// The code that a launch is about to run.
struct LaunchCode {
  std::string commit;                   // git commit on this machine, in hexadecimal; "": unknown
  bool clean = false;                   // no file here differs from the commit
  int untracked = 0;                    // number of files here that git neither tracks nor ignores
  std::vector<std::string> changed_in;  // submodules with changes ("libs/sub/")
  bool changed = false;                 // tracked files here differ from the commit
  std::vector<std::string> same;        // servers whose files match those here, or the commit
  std::vector<std::string> different;   // servers whose files differ
  std::vector<std::string> unknown;     // servers that could not be compared
  std::size_t gone_here = 0;            // files that were sent, are gone here, and are still on a server
};

// An unfinished launch of this project runs the same command on servers that the new launch is about to use.
struct SameLaunchRuns {
  int key = 0;  // the key of its first job
  std::vector<std::string> servers{};
};

// The launch is stopping its other ranks, because this rank failed or, if nullopt, because some ranks did not
// start.
struct EndingRanks {
  std::optional<Job> failed;
};

// A private key was generated (AuthorizeRequest::generate).
struct KeyMade {
  std::string file;
};

// ---- Preparing ----

enum class PrepareStep {
  setup,
  sync,
  packages,
  shared,  // another server performs the steps
};
enum class StepResult { not_asked, skipped, done };

// The file that lists the project's packages: the first of these that exists here. A pyproject.toml that only
// configures tools lists none.
enum class PackageSource { none, pipenv, requirements, pyproject };

// The result of a transfer.
struct SyncReport {
  std::vector<std::string> changed;   // files that were (or would be) sent, as rsync names them
  std::vector<std::string> removed;   // files that were removed on the server, without their folders
  std::vector<std::string> newer;     // skipped, because they are newer on the receiving side
  std::vector<std::string> warnings;  // dangling symbolic links, files that vanished during the transfer
  std::uint64_t bytes = 0;            // total size of the files that were sent
};

// What prepare did on one server.
struct PrepareReport {
  StepResult setup = StepResult::not_asked;
  StepResult sync = StepResult::not_asked;
  StepResult packages = StepResult::not_asked;
  std::optional<PackageSource> package_source;  // nullopt: not requested
  std::string sent_by;  // the server that files were copied from first; empty: only this machine
  // The server that has the same folder (a shared home, or the same machine under another name) and was
  // prepared in its place; empty: none. The other fields then only cover the additional steps for this
  // server.
  std::string shared_with;
  bool shared_home = false;  // the shared folder is in the home directory
  SyncReport files;
  std::vector<std::string> differences;  // for PrepareRequest::verify
  std::vector<std::string> notes;        // notes for the user
};

struct TransferProgress {
  std::uint64_t bytes = 0;
  int percent = 0;  // 0: unknown
  double bytes_per_second = 0;
  std::chrono::seconds left{0};  // estimated time left; the elapsed time once the transfer is complete
};

// In these four, `server` is the index in the call's list of servers.
struct StepBegun {
  std::size_t server = 0;
  PrepareStep step = PrepareStep::setup;
  std::string other = {};  // for PrepareStep::shared: the other server
};
struct StepDetail {
  std::size_t server = 0;
  std::string text;  // a line of output of pip, conda …; may be any text that a server prints
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
  std::string last_lines;  // of the stderr of the failed command; may be ""
  std::string log;         // the folder with the whole output; may be ""
};

using Event =
    std::variant<ConfigWarning, NewHostKey, LoginProblem, SlowLogin, StoreProblem, SilentServers, LinkLeftOut,
                 EnvironmentsLeftOut, UselessPatterns, UnfetchedFiles, PartsFailed, LinkLost, LinkBack,
                 NoLifeline, SweepTrouble, RankWaits, JobsQueued, GpuCountDiffers, CheckWarned, CodeDiffers,
                 CodeChanged, LaunchCode, Launched, SameLaunchRuns, EndingRanks, KeyMade, StepBegun,
                 StepDetail, TransferNews, ServerPrepared, ServerFailed>;

}  // namespace remote
