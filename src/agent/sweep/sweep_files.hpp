#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/record.hpp"
#include "rules/sweep_policy.hpp"
#include "wire/sweep_request.hpp"

// The files of a sweep on one server, in JOBS_FOLDER/.sweeps/LAUNCH:
//
//   points    its wire::SweepPoints; may contain secrets
//   run       the wire::SweepRun that was started last
//   journal   see SweepDiary
//   lock      locked with flock while the supervisor is running
//   runner    the supervisor's process: PID START BOOT; removed when it ends on its own
//   stopped   no more points start here
//   note      the supervisor's problem, shown to the user

namespace remote::agent {

class SweepFolder {
 public:
  // Does not create the folder.
  SweepFolder(const JobsFolder& jobs, const std::string& launch) : path_(jobs.jobs / ".sweeps" / launch) {}

  const Path& path() const { return path_; }
  Path file(std::string_view name) const { return path_ / name; }

  // Creates the folder, and the folder of all sweeps. Throws std::runtime_error if other users could write to
  // them.
  void make() const;
  // These return nullopt if the file is missing or invalid.
  std::optional<wire::SweepPoints> read_points() const;
  std::optional<wire::SweepRun> read_run() const;
  // These return false on failure.
  bool write(const wire::SweepPoints& points) const;
  bool write(const wire::SweepRun& run) const;

  bool is_stopped() const { return exists(file("stopped")); }
  // nullopt if no supervisor is running.
  std::optional<ProcessId> find_supervisor(const Host& host) const;
  wire::SweepRunner find_state(const Host& host) const;

 private:
  Path path_;
};

// The file `journal`. Each entry is a line, which is on disk before any action based on it:
//
//   give ID SERVER, back ID   this server assigned the point to SERVER, and it was returned
//   begin ID, failed ID       the point is about to start here, and it could not be started
//
// SERVER is percent-encoded.
class SweepDiary final : public rules::SweepJournal {
 public:
  struct Content {
    std::map<std::string, std::string> given;  // point -> server
    std::set<std::string> begun;
  };

  explicit SweepDiary(const SweepFolder& folder) : path_(folder.file("journal")) {}

  Content read() const;
  // Throws std::runtime_error.
  void open();
  bool write(const wire::SweepEntry& entry) override;

 private:
  Path path_;
  Descriptor file_;
  bool was_cut_ = false;  // the last line is incomplete
};

}  // namespace remote::agent
