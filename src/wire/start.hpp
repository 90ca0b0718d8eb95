#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/jobs.hpp"
#include "wire/launch.hpp"
#include "wire/leases.hpp"
#include "wire/variable.hpp"

// Requests that start jobs.

namespace remote::wire {

// The scripts and Python programs that jobs need, as shipped with this build of the client, and its agent.
struct ServerProgram {
  std::string digest;      // in hexadecimal; it is the name of the folder in .bin of the jobs folder
  std::uint64_t size = 0;  // total size of the files without the agent, in bytes

  static constexpr auto fields() {
    using P = ServerProgram;
    return field_list(field("digest", &P::digest, a_word("", 64)),
                      field("size", &P::size, in_range(0, 1LL << 30)));
  }
};

// Ensures that .bin of the jobs folder has a copy of the program and of the agent. The archive of the program
// (tar, compressed with gzip) follows as data; without it, a missing program is only reported.
struct KeepProgramRequest {
  static constexpr std::string_view kind = "keep_program";

  JobsPlace place;
  ServerProgram program;

  static constexpr auto fields() {
    using R = KeepProgramRequest;
    return field_list(field("place", &R::place), field("program", &R::program));
  }
};

struct KeepProgramReply {
  static constexpr std::string_view kind = "keep_program";

  bool is_missing = false;  // repeat the request with the archive

  static constexpr auto fields() { return field_list(field("is_missing", &KeepProgramReply::is_missing)); }
};

// Starts the jobs of one launch on this server. A JobsToStart in CBOR follows as data, because it may be
// larger than a message.
struct StartJobsRequest {
  static constexpr std::string_view kind = "start_jobs";

  static constexpr auto fields() { return field_list(); }
};

enum class EnvironmentManager { conda, venv, system, none };

// A Python environment that can be entered without a shell. The paths may begin with "~/".
struct PythonEnvironment {
  EnvironmentManager manager = EnvironmentManager::none;
  std::string code;     // the folder of the project, or of a tree
  std::string scripts;  // its .remote-scripts
  std::string folder{};
  std::string other_folder{};  // used if `folder` has no Python; only for conda
  std::string conda{};         // Miniconda's folder
  bool is_isolated = false;    // for conda and venv: Python ignores the packages in ~/.local

  friend bool operator==(const PythonEnvironment&, const PythonEnvironment&) = default;
  static constexpr auto fields() {
    using E = PythonEnvironment;
    return field_list(field("manager", &E::manager), field("code", &E::code), field("scripts", &E::scripts),
                      field("folder", &E::folder), field("other_folder", &E::other_folder),
                      field("conda", &E::conda), field("is_isolated", &E::is_isolated));
  }
};

struct JobContainer {
  std::string engine;
  std::string image;
  bool is_rootless = false;         // the engine runs as the user, without root privileges
  std::vector<std::string> args{};  // the user's options for the engine
  std::string prologue{};           // shell text that runs on the server before the engine
  std::string workdir{};

  friend bool operator==(const JobContainer&, const JobContainer&) = default;
  static constexpr auto fields() {
    using C = JobContainer;
    return field_list(field("engine", &C::engine, a_word("", 32)), field("image", &C::image),
                      field("is_rootless", &C::is_rootless), field("args", &C::args, at_most(max_start_text)),
                      field("prologue", &C::prologue, at_most(max_start_text)),
                      field("workdir", &C::workdir));
  }
};

// The files that Python imports first (--enable-stacks).
enum class StartupFiles { none, python, torch_agent };

// What a job runs, and how. It is stored as the file `spec.json` in the job's folder.
struct JobSpec {
  std::string program{};  // the digest of its ServerProgram; set by the agent
  std::string project{};  // may begin with "~/"
  std::vector<Variable> variables{};
  std::vector<Variable> defaults{};                // set unless `activate` has set them
  std::string activate{};                          // shell text that enters the Python environment
  std::optional<PythonEnvironment> environment{};  // has the same effect as `activate`
  StartupFiles startup_files = StartupFiles::none;
  std::string tree{};  // the digest of the tree that it runs in
  std::optional<JobContainer> container{};
  // Names of links to the agent, whose folder is first on the command's PATH: "remote-mpi-rank".
  std::vector<std::string> programs{};
  bool is_leased = false;  // the file `devices` lists its leased devices
  std::string command{};

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
  static constexpr auto fields() {
    using S = JobSpec;
    return field_list(
        field("program", &S::program, a_word("", 64)), field("project", &S::project, at_most(4096)),
        field("variables", &S::variables, at_most(max_variables)),
        field("defaults", &S::defaults, at_most(max_variables)),
        field("activate", &S::activate, at_most(max_start_text)), field("environment", &S::environment),
        field("startup_files", &S::startup_files), field("tree", &S::tree, a_word("", 64)),
        field("container", &S::container), field("programs", &S::programs, a_word("-", 32)),
        field("is_leased", &S::is_leased), field("command", &S::command, at_most(max_start_text)));
  }
};

// The part of a job's spec that differs from the other jobs of its launch.
struct OwnSpec {
  std::vector<Variable> variables{};  // set after those of all jobs
  std::string activate{};             // "": the same as for all jobs
  std::string command{};              // "": the same as for all jobs

  friend bool operator==(const OwnSpec&, const OwnSpec&) = default;
  static constexpr auto fields() {
    using S = OwnSpec;
    return field_list(field("variables", &S::variables, at_most(max_variables)),
                      field("activate", &S::activate, at_most(max_start_text)),
                      field("command", &S::command, at_most(max_start_text)));
  }
};

struct JobFile {
  std::string name;
  std::string text;

  static constexpr auto fields() {
    return field_list(field("name", &JobFile::name, a_word("._", 32)),
                      field("text", &JobFile::text, at_most(max_start_text)));
  }
};

struct NewJob {
  std::string id;
  std::string backend = "local";
  OwnSpec spec{};
  std::vector<JobFile> files{};

  static constexpr auto fields() {
    using J = NewJob;
    return field_list(field("id", &J::id, an_id()), field("backend", &J::backend, a_word("", 32)),
                      field("spec", &J::spec), field("files", &J::files, at_most(64)));
  }
};

// If a job's folder already exists, the job is not started again.
struct JobsToStart {
  JobsPlace place;
  ServerProgram program;
  std::vector<NewJob> jobs{};
  JobSpec spec{};                      // for all jobs
  std::optional<LaunchSpec> launch{};  // its supervisor starts with the jobs
  std::optional<LeaseToTake> lease{};  // for all jobs together

  static constexpr auto fields() {
    using R = JobsToStart;
    return field_list(field("place", &R::place), field("program", &R::program),
                      field("jobs", &R::jobs, at_most(max_jobs)), field("spec", &R::spec),
                      field("launch", &R::launch), field("lease", &R::lease));
  }
};

enum class StartOutcome {
  started,
  queued,  // it will start later: `reason`
  exists,  // its folder exists, so nothing was done
  failed,  // it will never start: `reason`
};

struct StartedJob {
  std::string id;
  StartOutcome outcome = StartOutcome::failed;
  std::optional<int> pid{};
  std::string reason{};
  bool can_wait = false;  // it failed only because others have leased the resources
  std::string machine{};  // the machine that runs it, as in JobReport; "" under Slurm

  static constexpr auto fields() {
    using J = StartedJob;
    return field_list(field("id", &J::id, an_id()), field("outcome", &J::outcome),
                      field("pid", &J::pid, in_range(1, 1 << 30)), field("reason", &J::reason, a_line(1000)),
                      field("can_wait", &J::can_wait), field("machine", &J::machine, a_word("", 64)));
  }
};

struct StartJobsReply {
  static constexpr std::string_view kind = "start_jobs";

  // Nothing was started, because the program is missing: see KeepProgramRequest.
  bool is_program_missing = false;
  std::vector<StartedJob> jobs{};

  static constexpr auto fields() {
    using R = StartJobsReply;
    return field_list(field("is_program_missing", &R::is_program_missing),
                      field("jobs", &R::jobs, at_most(max_jobs)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::EnvironmentManager> = {
    std::string_view("conda"), std::string_view("venv"), std::string_view("system"),
    std::string_view("none")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::StartupFiles> = {
    std::string_view("none"), std::string_view("python"), std::string_view("torch_agent")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::StartOutcome> = {
    std::string_view("started"), std::string_view("queued"), std::string_view("exists"),
    std::string_view("failed")};
