#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/instant.hpp>
#include <remote/job.hpp>

#include "config/config.hpp"
#include "servers/match.hpp"
#include "ssh/connection.hpp"
#include "wire/files.hpp"

// The files that a launch wrote on a server.

namespace remote::servers {

using wire::WrittenFile;  // the name is from the server, but checked to be within one of the outputs

// Collects the files of a launch as the server sends them.
class WrittenFiles {
 public:
  explicit WrittenFiles(const std::vector<std::string>& outputs) : outputs_(outputs.begin(), outputs.end()) {}

  // Throws Error for more than 100,000 files, and for a name outside the outputs, because a server could send
  // any name.
  void take(std::vector<WrittenFile> files);

  std::vector<WrittenFile> files{};
  int odd = 0;  // number of skipped files: their names have control characters, or affect what runs here

 private:
  std::vector<PathPattern> outputs_;
};

// When a launch ran, by a server's clock. `to` is nullopt while it is running.
struct RunTime {
  Instant from;
  std::optional<Instant> to{};
};

// The files in these outputs (files, folders, patterns) that were written after this job began and before all
// jobs of its launch on its server had ended, sorted by name. `time` is used if the job's folder there was
// removed. Throws Error.
WrittenFiles find_written(ssh::Connection& connection, const Job& job, const std::vector<Job>& launch,
                          const std::vector<std::string>& outputs, const RunTime& time, const Cancel& cancel);

// Removes the files of incomplete checkpoints, and adds their names to `waiting`.
std::vector<WrittenFile> complete_files(std::vector<WrittenFile> files, const config::Checkpoint& checkpoint,
                                        std::vector<std::string>& waiting);

}  // namespace remote::servers
